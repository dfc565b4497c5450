// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of active connections of an engine, which polls check in turn: an array in the order of
 * their turns, with gaps where connections were removed.
 */
#ifndef SHM_ACTIVE_H
#define SHM_ACTIVE_H

#include "soft/shm/conn.h"

/* A connection that was checked in vain that often is armed and removed from the list. */
#define SHM_IDLE_POLLS 20000u
/* A poll leaves out the list for so many checks of the only connection. */
#define SHM_LIST_AFTER 64u
/*
 * One poll checks so many connections. If the list is longer, gaps included, some checks are of a
 * likely one, out of turn. Else a poll checks all of them.
 */
#define SHM_POLL_MAX 64u
/* After so many checks, those out of turn are rare until one of them finds work again. */
#define SHM_LIKELY_FOR 1024u

/* relaxed: the lock guards it, and without the lock it is a hint */
static inline uint32_t shm_active_count(const struct shm_engine *engine)
{
	return atomic_load_explicit(&engine->active_count, memory_order_relaxed);
}

static inline uint32_t shm_active_at(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->active_at, memory_order_relaxed);
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

/*
 * In a long list, some checks are out of turn: of the connection that was posted to last, which may
 * get an answer, or of the one after the connection that last had work. They are three in four
 * after one of them has found work, else one in four. NULL: this check is in turn.
 */
CORE_INLINE struct shm_conn *shm_active_likely_locked(struct shm_engine *engine)
{
	uint32_t at;

	if (engine->active_end <= SHM_POLL_MAX)
		return NULL;
	if (++engine->checked % SHM_LIKELY_FOR == 0)
		engine->is_likely = false;
	if ((engine->checked % 4 != 0) != engine->is_likely)
		return NULL;
	engine->is_answer ^= !engine->is_likely;
	at = engine->is_answer ? atomic_load_explicit(&engine->posted_at, memory_order_relaxed)
			       : engine->likely_next;
	return at < engine->active_end ? engine->active[at] : NULL;
}

__attribute__((noinline)) void shm_engine_add_active(struct shm_engine *engine,
						     struct shm_conn *conn);
/* Something was posted, or has to be done: polls check the connection. */
static inline void shm_engine_activate(struct shm_engine *engine, struct shm_conn *conn)
{
	atomic_store_explicit(&engine->posted_at, shm_active_at(conn), memory_order_relaxed);
	/*
	 * relaxed: a stale value costs a poll; a caller that needs attention for sure uses
	 * shm_conn_serve_later
	 */
	if (!atomic_load_explicit(&conn->is_active, memory_order_relaxed))
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
