// SPDX-License-Identifier: BSD-2-Clause
/*
 * The life of a connection object, its endpoint, and accessors of its atomic fields.
 */
#ifndef SHM_STATE_H
#define SHM_STATE_H

#include "soft/shm/conn.h"

static inline enum shm_state shm_conn_state(const struct shm_conn *conn)
{
	/* acquire: pairs with the release in shm_conn_set_state */
	return (enum shm_state)atomic_load_explicit(&conn->state, memory_order_acquire);
}

static inline void shm_conn_set_state(struct shm_conn *conn, enum shm_state state)
{
	atomic_store_explicit(&conn->state, (uint32_t)state, memory_order_release);
}

static inline void shm_count(struct shm_conn *conn, enum shm_counter counter)
{
	/* relaxed, and a load and a store: there is one writer, and nothing is ordered by it */
	uint64_t count = atomic_load_explicit(&conn->counters[counter], memory_order_relaxed);

	atomic_store_explicit(&conn->counters[counter], count + 1, memory_order_relaxed);
}

/* Messages and ring writes that the peer has carried out. */
static inline uint32_t shm_conn_acked(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->acked, memory_order_relaxed);
}

static inline void shm_conn_set_acked(struct shm_conn *conn, uint32_t acked)
{
	atomic_store_explicit(&conn->acked, acked, memory_order_relaxed);
}

/* Checks of the connection in vain, since one that was not. Relaxed: hints. */
static inline uint16_t shm_conn_idle(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->idle_polls, memory_order_relaxed);
}

static inline void shm_conn_set_idle(struct shm_conn *conn, uint16_t checks)
{
	atomic_store_explicit(&conn->idle_polls, checks, memory_order_relaxed);
}

static inline uint16_t shm_conn_count_idle(struct shm_conn *conn)
{
	uint16_t checks = (uint16_t)(shm_conn_idle(conn) + 1u);

	shm_conn_set_idle(conn, checks);
	return checks;
}

/* Changes one bit of `watch`; EP locked. */
static inline void shm_conn_watch_bit(struct shm_conn *conn, enum shm_watch bit, bool is_set)
{
	uint32_t watch = atomic_load_explicit(&conn->watch, memory_order_relaxed);

	watch = is_set ? watch | bit : watch & ~(uint32_t)bit;
	atomic_store_explicit(&conn->watch, watch, memory_order_relaxed);
}

/* May `mine` and `theirs` be used, also without the lock? */
static inline bool shm_conn_has_segment(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->has_segment, memory_order_acquire);
}

static inline void shm_conn_set_has_segment(struct shm_conn *conn)
{
	atomic_store_explicit(&conn->has_segment, true, memory_order_release);
}

/* Do the two sides access each other's memory, where that is possible? */
static inline bool shm_conn_is_direct(const struct shm_conn *conn)
{
	return conn->remote.is_trusted && conn->engine->settings.copy != CORE_COPY_RING;
}

/*
 * The key of ours that the peer is copying through, else 0. A process of another user cannot copy,
 * whatever it writes there, and nobody waits for it.
 */
static inline uint32_t shm_conn_announced(const struct shm_conn *conn)
{
	if (!shm_conn_has_segment(conn) || !conn->remote.is_trusted)
		return 0;
	/* acquire: the copy is over when the announcement is withdrawn */
	return atomic_load_explicit(&conn->theirs->announce, memory_order_acquire);
}

/* --- the object (conn.c), its segment (segment.c) --- */

/* A connection with one reference around a socket, which it owns on success. */
int shm_conn_create(struct shm_engine *engine, int fd, enum shm_index self,
		    struct shm_conn **conn_out);
void shm_conn_get(struct shm_conn *conn);
bool shm_conn_get_unless_dead(struct shm_conn *conn);
void shm_conn_put(struct shm_conn *conn);

/* Maps a new segment (passive side), or that of the passive side, and initialises the rings. */
int shm_conn_make_segment(struct shm_conn *conn, int *fd_out);
int shm_conn_map_segment(struct shm_conn *conn, int fd);

/* --- its endpoint (conn.c) --- */

/* Gives the connection to the endpoint (locked), together with the caller's reference. */
void shm_conn_attach(struct shm_conn *conn, struct core_ep *ep);
/* Locks the endpoint of the connection; NULL if the endpoint has released it. */
struct core_ep *shm_conn_enter(struct shm_conn *conn);
/* Releases the endpoint's connection; EP locked. */
void shm_conn_drop(struct shm_conn *conn, struct core_ep *ep);

/* The endpoint that it was given to; cell NULL: none yet. */
static inline struct core_ref shm_conn_ep(const struct shm_conn *conn)
{
	/* acquire: pairs with the release in shm_conn_attach */
	if (!atomic_load_explicit(&conn->has_ep, memory_order_acquire))
		return (struct core_ref){NULL, 0};
	return conn->ep_ref;
}

/* The connection of a locked endpoint without slow_reasons; NULL: it is over TCP, or ended. */
static inline struct shm_conn *shm_ep_conn(const struct core_ep *ep)
{
	return ((const struct shm_ep *)ep->transport)->conn;
}

/* Does the locked endpoint still own this connection? If not, the connection may be freed. */
static inline bool shm_conn_belongs_to(const struct shm_conn *conn, const struct core_ep *ep)
{
	const struct shm_ep *mine = ep->transport;

	return mine && !mine->is_detached && mine->conn == conn;
}

/* --- attention of the service thread (conn.c) --- */

/* Has the service thread serve the connection soon. */
void shm_conn_serve_later(struct shm_conn *conn);
/* Sets the time at which the service thread serves the connection; 0: never. */
void shm_conn_set_deadline(struct shm_conn *conn, uint64_t deadline_ns);
/* The same, unless an earlier time is set. */
void shm_conn_lower_deadline(struct shm_conn *conn, uint64_t deadline_ns);

#endif
