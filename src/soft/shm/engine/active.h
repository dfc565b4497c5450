// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of active connections of an engine, which polls check in turn: an array in the order of
 * their turns, with gaps where connections were removed.
 */
#ifndef SHM_ACTIVE_H
#define SHM_ACTIVE_H

#include "soft/shm/conn.h"

/* A connection whose polls found nothing that often is armed and removed from the list. */
#define SHM_IDLE_POLLS 20000u
/* From more connections than this on, some polls check a likely one out of turn. */
#define SHM_LIKELY_AFTER 16u

/* relaxed: the lock guards it, and without the lock it is a hint */
static inline uint32_t shm_active_count(const struct shm_engine *engine)
{
	return atomic_load_explicit(&engine->active_count, memory_order_relaxed);
}

static inline uint32_t shm_active_at(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->active_at, memory_order_relaxed);
}

/* The one whose turn it is; the list is not empty. */
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
 * In a long list, one poll in four is out of turn: of the connection that was posted to last, which
 * may answer, or of the one behind that which had work last. NULL: this poll is in turn.
 */
CORE_INLINE struct shm_conn *shm_active_likely_locked(struct shm_engine *engine)
{
	uint32_t at;

	if (engine->active_end <= SHM_LIKELY_AFTER || ++engine->checked % 4)
		return NULL;
	at = engine->checked % 8 ? engine->likely_next
				 : atomic_load_explicit(&engine->posted_at, memory_order_relaxed);
	return at < engine->active_end ? engine->active[at] : NULL;
}

void shm_engine_activate(struct shm_engine *engine, struct shm_conn *conn);
void shm_engine_deactivate(struct shm_engine *engine, struct shm_conn *conn);
/*
 * Removes the connection at that address, which may have been freed, if it is still on the list and
 * belongs to that endpoint. If the endpoint lives the caller has locked it, so that no other
 * connection of it can have come to the same address.
 */
void shm_engine_deactivate_stale(struct shm_engine *engine, const struct shm_conn *address,
				 struct core_ref owner);
/* The connection whose turn it is, with a reference; it goes to the end of the list. */
struct shm_conn *shm_engine_rotate(struct shm_engine *engine);

#endif
