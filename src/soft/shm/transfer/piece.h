// SPDX-License-Identifier: BSD-2-Clause
/*
 * Large pieces of one connection. An entry in the ring names the piece of a pool (pool.h) that
 * holds its bytes. So several large pieces are in flight at once, and one side copies in while the
 * other copies out.
 *
 * A piece is lent to one ring, from the entry that names it until the consumer has given back the
 * space of that entry. A ring may hold half of the pieces. Without a piece the bytes go into the
 * ring itself, so a connection that is blocked because no Receive is posted there blocks no other.
 *
 * A connection can end with pieces lent. They are free if the peer has set `is_over` or is gone;
 * else they are lost.
 */
#ifndef SHM_PIECE_H
#define SHM_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/shm/ring.h"
#include "soft/shm/transfer/pool.h"
#include "soft/shm/wire.h"

struct shm_conn;

#define SHM_LOANS (SHM_PIECES / 2) /* pieces of one ring */

/* The payload of an entry with SHM_FLAG_PIECE. */
struct shm_piece {
	uint32_t index;
	uint32_t bytes;
};
static_assert(sizeof(struct shm_piece) == 8, "part of the layout");

/* The pieces that a ring holds, oldest first; EP locked. */
struct shm_loans {
	uint32_t first;
	uint32_t count;
	struct shm_loan {
		uint32_t end; /* the ring's index behind the entry */
		uint32_t piece;
	} loan[SHM_LOANS];
};

/* The pools of one connection; EP locked. */
struct shm_bulk {
	enum shm_bulk_state {
		SHM_BULK_NONE,	  /* nothing large was sent yet */
		SHM_BULK_NAMED,	  /* the peer was asked whether it has our pool */
		SHM_BULK_GIVEN,	  /* the pool was sent to it */
		SHM_BULK_READY,	  /* the peer has it */
		SHM_BULK_REFUSED, /* there is none for this connection */
	} state;
	bool was_verified;    /* another connection had verified `out` before it was named */
	struct shm_pool *out; /* ours */
	struct shm_pool *in;  /* the peer's */
	struct shm_loans requests;
	struct shm_loans responses;
	bool is_space_returned; /* space of a piece was given back, and the peer not woken yet */
};

/* --- sending --- */

/* Where the bytes of the next entry go: into the ring, or into a piece. */
struct shm_room {
	uint8_t *to;
	uint32_t bytes;
	uint8_t *payload; /* of the entry */
	int piece;	  /* -1: none */
};

/*
 * Reserves room for the next of `left` bytes, of which the ring itself takes inline_max at most: 1,
 * 0 when there is none now (the peer will give some back), or -EPROTO. shm_room_cancel gives back
 * what is not committed.
 */
int shm_room_reserve(struct shm_conn *conn, struct shm_producer *ring, struct shm_loans *loans,
		     uint64_t left, uint32_t inline_max, struct shm_room *room);
/* Completes the entry; one with a piece is visible to the peer at once. */
void shm_room_commit(struct shm_conn *conn, struct shm_producer *ring, struct shm_loans *loans,
		     struct shm_entry *entry, const struct shm_room *room);
void shm_room_cancel(struct shm_conn *conn, const struct shm_room *room);

/* Takes back the pieces that the peer has given back: 0, or -EPROTO. */
int shm_pool_reclaim(struct shm_conn *conn);

/* --- receiving --- */

/* Where the bytes of an entry are. */
struct shm_bytes {
	const uint8_t *at; /* the peer can change them: read each byte once */
	uint32_t count;
};
/* Finds the bytes of an entry: 0, or -EPROTO for what no honest peer can have written. */
int shm_bytes_find(const struct shm_conn *conn, const struct shm_entry *entry,
		   const uint8_t *payload, struct shm_bytes *bytes);
/* The entry was taken last: gives its piece back at once. */
void shm_bytes_release(struct shm_conn *conn, struct shm_consumer *ring,
		       const struct shm_entry *entry);

/* --- packets of the service thread; EP locked --- */

void shm_pool_named(struct shm_conn *conn, const struct shm_wire_pool *wire);
void shm_pool_given(struct shm_conn *conn, const struct shm_wire_pool *wire, int fd);
void shm_pool_answered(struct shm_conn *conn, const struct shm_wire_pool *wire);

/* The connection is destroyed: no other thread uses it. */
void shm_pool_release(struct shm_conn *conn);

#endif
