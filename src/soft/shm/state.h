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
	_Atomic uint64_t *total = &conn->engine->counters[counter];

	atomic_store_explicit(total, atomic_load_explicit(total, memory_order_relaxed) + 1,
			      memory_order_relaxed);
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

/* Is one of those bits of `watch` set? Without the lock, a hint. */
static inline bool shm_conn_watches(const struct shm_conn *conn, uint32_t bits)
{
	return atomic_load_explicit(&conn->watch, memory_order_relaxed) & bits;
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
	return atomic_load_explicit(&conn->segment, memory_order_acquire) != NULL;
}

static inline enum shm_reach shm_conn_reach(const struct shm_conn *conn)
{
	/* relaxed: it is set before the segment; later changes are for requests of ours alone */
	return (enum shm_reach)atomic_load_explicit(&conn->remote.reach, memory_order_relaxed);
}

static inline void shm_conn_set_reach(struct shm_conn *conn, enum shm_reach reach)
{
	atomic_store_explicit(&conn->remote.reach, (uint8_t)reach, memory_order_relaxed);
}

static inline enum shm_trust shm_conn_trust(const struct shm_conn *conn)
{
	return (enum shm_trust)atomic_load(&conn->end.trust);
}

/* What the peer waits for: enum shm_waits, as a pass has last read it. */
static inline uint32_t shm_conn_peer_waits(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->seen_waits, memory_order_relaxed);
}

/* The key of ours that the peer is copying through, else 0. */
static inline uint32_t shm_conn_announced(const struct shm_conn *conn)
{
	if (!shm_conn_has_segment(conn) || shm_conn_reach(conn) < SHM_REACH_DIRECT)
		return 0;
	/* acquire: the copy is over when the announcement is withdrawn */
	return atomic_load_explicit(&conn->theirs->announce, memory_order_acquire);
}

/* --- the object (conn.c), its segment --- */

/* A connection with one reference around a socket, which it owns on success. */
int shm_conn_create(struct shm_engine *engine, int fd, struct shm_conn **conn_out);
/* It is established: frees what the set-up has needed. More calls do nothing. */
void shm_conn_end_setup(struct shm_conn *conn);
void shm_conn_get(struct shm_conn *conn);
static inline struct shm_conn *shm_conn_of_attended(struct soft_attended *attended)
{
	return (struct shm_conn *)((char *)attended - offsetof(struct shm_conn, attended));
}
static inline bool shm_conn_get_unless_dead(struct shm_conn *conn)
{
	return soft_attended_get_unless_dead(&conn->attended);
}
void shm_conn_put(struct shm_conn *conn);
/* Unmaps memory of the peer, and frees its place. */
void shm_map_release(struct shm_map *map);

/* Maps a new segment (passive side), or that of the passive side, and initialises the rings. */
int shm_conn_make_segment(struct shm_conn *conn, int *fd_out);
int shm_conn_map_segment(struct shm_conn *conn, int fd);

/* --- its endpoint (conn.c) --- */

/* Gives the connection to the endpoint (locked), together with the caller's reference. */
void shm_conn_attach(struct shm_conn *conn, struct core_ep *ep);
/* Takes it back, with the reference; nobody else has seen it there. */
void shm_conn_unattach(struct shm_conn *conn, struct core_ep *ep);
/* Locks the endpoint of the connection; NULL if the endpoint has released it. */
struct core_ep *shm_conn_enter(struct shm_conn *conn);
/* Releases the endpoint's connection; EP locked. */
void shm_conn_drop(struct shm_conn *conn, struct core_ep *ep);

/* The endpoint that it was given to; cell NULL: none yet. */
static inline struct core_ref shm_conn_ep(const struct shm_conn *conn)
{
	/* acquire: pairs with the release in shm_conn_attach */
	struct core_handle *cell = __atomic_load_n(&conn->ep_ref.cell, __ATOMIC_ACQUIRE);

	return (struct core_ref){cell, cell ? conn->ep_ref.generation : 0};
}

/* It for messages: "ep 3", or "no endpoint". */
static inline struct core_name shm_conn_name(const struct shm_conn *conn)
{
	const struct core_ref ref = shm_conn_ep(conn);

	return ref.cell ? core_object_name(ref.cell, DAT_HANDLE_TYPE_EP)
			: (struct core_name){"no endpoint"};
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

/* --- attention of the service thread (soft/attention.h) --- */

static inline void shm_conn_serve_later(struct shm_conn *conn)
{
	soft_attention_ask(&conn->engine->attention, &conn->attended);
}

static inline void shm_conn_set_deadline(struct shm_conn *conn, uint64_t deadline_ns)
{
	soft_attention_set(&conn->engine->attention, &conn->attended, deadline_ns);
}

static inline void shm_conn_lower_deadline(struct shm_conn *conn, uint64_t deadline_ns)
{
	soft_attention_lower(&conn->engine->attention, &conn->attended, deadline_ns);
}

/* --- pending work --- */

/* Is there work other than messages and acknowledgements? */
bool shm_conn_has_rare_work(const struct shm_conn *conn, uint32_t watch);
/* Has the peer reported a failure, or begun or ceased to wait? A hint. */
static inline bool shm_conn_has_news(const struct shm_conn *conn)
{
	const struct shm_side *theirs = conn->theirs;

	/* relaxed: a pass, which has the lock, reads again */
#define WORD(word) atomic_load_explicit(&(word), memory_order_relaxed)
	return WORD(theirs->waits) != WORD(conn->seen_waits) || WORD(theirs->failed) != 0;
#undef WORD
}

/* Is there work? Needs no lock: a hint, and a wrong answer is soon corrected. */
static inline bool shm_conn_has_work(const struct shm_conn *conn)
{
	/* relaxed throughout: a pass, which has the lock, reads again */
	uint32_t watch = atomic_load_explicit(&conn->watch, memory_order_relaxed);
	uint32_t done = atomic_load_explicit(&conn->theirs->done, memory_order_relaxed);

	if (!(watch & SHM_WATCH_BLOCKED) && shm_consumer_has_entry(&conn->request_in))
		return true;
	if ((int32_t)(done - shm_conn_acked(conn)) > 0 || shm_conn_has_news(conn))
		return true;
	return watch && shm_conn_has_rare_work(conn, watch);
}

/*
 * --- the list of active connections (instance.c) ---
 *
 * Polls check them in turn: an array in the order of their turns, with gaps where connections were
 * removed.
 */

/* A connection that was checked in vain that often is armed and removed from the list. */
#define SHM_IDLE_POLLS 20000u
/* A poll leaves out the list for so many checks of the only connection. */
#define SHM_LIST_AFTER 64u
/* One poll checks so many connections at most. */
#define SHM_POLL_MAX 128u

/* relaxed: the lock guards it, and without the lock it is a hint */
static inline uint32_t shm_active_count(const struct shm_engine *engine)
{
	return atomic_load_explicit(&engine->active_count, memory_order_relaxed);
}

/* Relaxed: a hint without the engine's lock. */
static inline bool shm_conn_is_active(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->active_at, memory_order_relaxed) != 0;
}

/* The connection whose turn it is; the list is not empty. */
CORE_INLINE struct shm_conn *shm_active_next_locked(struct shm_engine *engine)
{
	uint32_t at = engine->active_next;
	struct shm_conn *conn;

	do {
		if (at >= engine->active_end)
			at = 0;
		conn = engine->active[at++];
	} while (!conn);
	engine->active_next = at;
	return conn;
}

__attribute__((noinline)) void shm_engine_add_active(struct shm_engine *engine,
						     struct shm_conn *conn);
/* Something was posted, or has to be done: polls check the connection. */
static inline void shm_engine_activate(struct shm_engine *engine, struct shm_conn *conn)
{
	/*
	 * relaxed: a stale value costs a poll; a caller that needs attention for sure uses
	 * shm_conn_serve_later
	 */
	if (!shm_conn_is_active(conn))
		shm_engine_add_active(engine, conn);
}
void shm_engine_deactivate(struct shm_engine *engine, struct shm_conn *conn);
/*
 * Removes the connection at that address if it is still on the list and belongs to that endpoint.
 * The connection may have been freed. The caller has locked the endpoint if it still exists, so no
 * other connection of that endpoint can have come to the same address.
 */
void shm_engine_deactivate_stale(struct shm_engine *engine, const struct shm_conn *address,
				 struct core_ref owner);
/* The connection whose turn it is, with a reference; it goes to the end of the list. */
struct shm_conn *shm_engine_rotate(struct shm_engine *engine);

#endif
