// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pools: memory for the large pieces of messages and RDMA that go through the rings (piece.h). A
 * process has one pool for each process that it sends to, shared by all connections to it and
 * created when the first of them sends something large. The owner of a pool writes it, the peer
 * maps it read-only.
 *
 * The kernel says which process is at the other end, and on both sides a pool is shared within one
 * process only. The peer's engine is identified by a token, which the peer claims to have: a peer
 * that claims to be an engine that has our pool already must send back the secret that was sent
 * with it (wire.h, POOL_NAME).
 *
 * A pool that has lost many pieces gets no new connections, and those that use it leave it when
 * they hold no piece. The engine's lock guards the list of pools and their counters.
 */
#ifndef SHM_POOL_H
#define SHM_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "soft/shm/wire.h"

struct shm_conn;
struct shm_engine;

#define SHM_PIECE 32768u
#define SHM_PIECES 16u
#define SHM_POOL_SIZE ((size_t)SHM_PIECE * SHM_PIECES)
#define SHM_POOLS 256u /* of one engine; further peers have none */

/* A pool of ours for one peer process, or a peer's for us. */
struct shm_pool {
	/* constant after creation */
	uint64_t number;
	uint8_t secret[SHM_TOKEN_SIZE];
	pid_t pid;		      /* of the process at the other end, as the kernel says */
	uint8_t peer[SHM_TOKEN_SIZE]; /* ours: the token of the peer's engine */
	bool is_ours;
	uint8_t *memory;

	/* engine lock */
	struct shm_pool *next;
	uint32_t refs;	  /* connections */
	uint32_t lost;	  /* ours: pieces that the peer may never give back */
	bool is_verified; /* ours: the peer has sent the secret back, so it has the pool */
	/* ours: the free pieces in the order of their use. The one that was freed last comes last:
	 * its lines are still in the peer's nearest cache, and each store would fetch one from
	 * there */
	uint32_t free_first;
	uint32_t free_count;
	uint8_t free[SHM_PIECES];
};

/* A new pool of ours for the peer of that connection; the caller closes the descriptor. */
struct shm_pool *shm_pool_create(struct shm_conn *conn, int *fd_out);
/* A peer's pool, mapped from the descriptor that it sent. */
struct shm_pool *shm_pool_map(struct shm_conn *conn, const struct shm_wire_pool *wire, int fd);
/* Our pool for the peer of that connection, with a reference; NULL: none that can be shared. */
struct shm_pool *shm_pool_find_ours(struct shm_conn *conn);
/* The peer's pool of that number if it is mapped here already, with a reference, or NULL. */
struct shm_pool *shm_pool_find_theirs(struct shm_conn *conn, uint64_t number);
void shm_pool_put(struct shm_engine *engine, struct shm_pool *pool);

/* The peer has sent the secret of our pool back. */
void shm_pool_set_verified(struct shm_engine *engine, struct shm_pool *pool);
/* Has the peer done so, on this or another connection? */
bool shm_pool_is_verified(struct shm_engine *engine, const struct shm_pool *pool);
/* Has it lost so many pieces that a new pool is better? */
bool shm_pool_is_depleted(struct shm_engine *engine, const struct shm_pool *pool);

/* Takes a free piece: its index, or -1. */
int shm_pool_take_piece(struct shm_engine *engine, struct shm_pool *pool);
void shm_pool_put_piece(struct shm_engine *engine, struct shm_pool *pool, uint32_t piece);
/* Counts a piece that the peer may still read: it is never used again. */
void shm_pool_lose_piece(struct shm_engine *engine, struct shm_pool *pool);

#endif
