// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory for large pieces of messages and RDMA that go through the rings: the entry in the ring
 * says in which piece its bytes are. So several large pieces are on their way at once, and one side
 * copies in while the other copies out. A process has one pool for each process that it sends to,
 * however many connections they have; it is made when the first of them has something large to
 * send.
 *
 * The owner of a pool writes it, the peer maps it read-only. A piece is lent to one ring, from the
 * entry that names it until the consumer has given the space of that entry back. A ring may hold
 * half of the pieces; without one the bytes go into the ring itself, so that a connection that is
 * held up (no Receive is posted there) holds up no other.
 *
 * Which process is at the other end? The kernel tells its number, and on both sides a pool is
 * shared within one process only. Its engine is known by a token, which it claims to have: a peer
 * that claims to be one that has our pool already must know the proof that was given with it
 * (wire.h, POOL_NAME).
 *
 * A connection can end with pieces lent. They are free when the peer has said that it takes nothing
 * more (`is_over`) or is gone; else they are lost. A pool that has lost many gets no new
 * connections, and those that have it leave it when they have nothing lent.
 */
#ifndef SHM_POOL_H
#define SHM_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/shm/ring.h"
#include "soft/shm/wire.h"

struct shm_conn;
struct shm_engine;

#define SHM_PIECE 32768u
#define SHM_PIECES 16u
#define SHM_POOL_SIZE ((size_t)SHM_PIECE * SHM_PIECES)
#define SHM_LOANS (SHM_PIECES / 2) /* pieces of one ring */
#define SHM_POOLS 256u		   /* of one engine; more peers than that go without */

/* The payload of an entry with SHM_FLAG_PIECE. */
struct shm_piece {
	uint32_t index;
	uint32_t bytes;
};
static_assert(sizeof(struct shm_piece) == 8, "part of the layout");

/* A pool of ours for one peer process, or a peer's for us. */
struct shm_pool;

/* What a ring holds of the pool, oldest first; EP locked. */
struct shm_loans {
	uint32_t first;
	uint32_t count;
	struct shm_loan {
		uint32_t end; /* the ring's index behind the entry */
		uint32_t piece;
	} loan[SHM_LOANS];
};

/* What one connection has to do with pools; EP locked. */
struct shm_bulk {
	enum shm_bulk_state {
		SHM_BULK_NONE,	  /* nothing large was sent yet */
		SHM_BULK_NAMED,	  /* the peer was asked whether it has our pool */
		SHM_BULK_GIVEN,	  /* it was given one */
		SHM_BULK_READY,	  /* it has it */
		SHM_BULK_REFUSED, /* there is none for this connection */
	} state;
	struct shm_pool *out; /* ours */
	struct shm_pool *in;  /* the peer's */
	struct shm_loans requests;
	struct shm_loans responses;
	bool is_giving; /* space was given back for a piece, and the peer was not woken yet */
};

/* Where the bytes of the next entry go: into the ring, or into a piece. */
struct shm_room {
	uint8_t *to;
	uint32_t bytes;
	uint8_t *payload; /* of the entry */
	int piece;	  /* -1: none */
};

/*
 * Room for the next of `left` bytes, of which the ring itself takes inline_max at most: 1, 0 when
 * there is none now (something will be given back), or -EPROTO. What is reserved and not committed
 * is given back by shm_room_leave.
 */
int shm_room_reserve(struct shm_conn *conn, struct shm_producer *ring, struct shm_loans *loans,
		     uint64_t left, uint32_t inline_max, struct shm_room *room);
/* Completes the entry; one with a piece is visible to the peer at once. */
void shm_room_commit(struct shm_conn *conn, struct shm_producer *ring, struct shm_loans *loans,
		     struct shm_entry *entry, const struct shm_room *room);
void shm_room_leave(struct shm_conn *conn, const struct shm_room *room);

/* Takes back the pieces that the peer has given back: 0, or -EPROTO. */
int shm_pool_reclaim(struct shm_conn *conn);

/* Where the bytes of an entry are. */
struct shm_bytes {
	const uint8_t *at; /* writable by the peer: read each byte once */
	uint32_t count;
};
/* 0, or -EPROTO for what no honest peer can have written. */
int shm_bytes_of(const struct shm_conn *conn, const struct shm_entry *entry, const uint8_t *payload,
		 struct shm_bytes *bytes);
/* The entry that was taken last: gives its piece back at once. */
void shm_bytes_taken(struct shm_conn *conn, struct shm_consumer *ring,
		     const struct shm_entry *entry);

/* Packets of the service thread; EP locked. */
void shm_pool_named(struct shm_conn *conn, const struct shm_wire_pool *wire);
void shm_pool_given(struct shm_conn *conn, const struct shm_wire_pool *wire, int fd);
void shm_pool_answered(struct shm_conn *conn, const struct shm_wire_pool *wire);

/* The connection is destroyed: nobody else looks at it. */
void shm_pool_forget(struct shm_conn *conn);

#endif
