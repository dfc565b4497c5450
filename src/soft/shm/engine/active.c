// SPDX-License-Identifier: BSD-2-Clause
/*
 * Additions to and removals from the list of active connections (active.h).
 */
#include "soft/shm/engine/active.h"

#include "core/transport.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/state.h"

#define GAPS_MAX 16u /* allowed in addition to the number of connections */

static void set_active_count(struct shm_engine *engine, uint32_t count)
{
	atomic_store_explicit(&engine->active_count, count, memory_order_relaxed);
}

static void set_active_at(struct shm_conn *conn, uint32_t at)
{
	atomic_store_explicit(&conn->active_at, at, memory_order_relaxed);
}

/* Closes the gaps; the turn stays at the same connection. */
static void close_gaps_locked(struct shm_engine *engine)
{
	uint32_t from, to = 0, next = 0;

	for (from = 0; from < engine->active_end; from++) {
		struct shm_conn *conn = engine->active[from];

		if (from == engine->active_next)
			next = to;
		if (conn) {
			set_active_at(conn, to);
			engine->active[to++] = conn;
		}
	}
	engine->active_next = next;
	engine->active_end = to;
}

static void append_locked(struct shm_engine *engine, struct shm_conn *conn)
{
	/* there is room for as many as there are numbers */
	if (engine->active_end == engine->slot_count)
		close_gaps_locked(engine);
	set_active_at(conn, engine->active_end);
	engine->active[engine->active_end++] = conn;
	set_active_count(engine, shm_active_count(engine) + 1);
}

static void remove_locked(struct shm_engine *engine, struct shm_conn *conn)
{
	uint32_t count = shm_active_count(engine) - 1;

	engine->active[shm_active_at(conn)] = NULL;
	set_active_count(engine, count);
	if (engine->active_end - count > count + GAPS_MAX)
		close_gaps_locked(engine);
}

void shm_engine_add_active(struct shm_engine *engine, struct shm_conn *conn)
{
	core_lock_acquire(&engine->lock);
	if (!atomic_load_explicit(&conn->is_active, memory_order_relaxed)) {
		shm_conn_get(conn);
		append_locked(engine, conn);
		shm_conn_set_idle(conn, 0);
		atomic_store_explicit(&conn->is_active, true, memory_order_relaxed);
	}
	core_lock_release(&engine->lock);
}

/* True: the caller has to drop the list's reference. */
static bool deactivate_locked(struct shm_engine *engine, struct shm_conn *conn)
{
	if (!atomic_load_explicit(&conn->is_active, memory_order_relaxed))
		return false;
	remove_locked(engine, conn);
	atomic_store_explicit(&conn->is_active, false, memory_order_relaxed);
	return true;
}

void shm_engine_deactivate(struct shm_engine *engine, struct shm_conn *conn)
{
	bool was_active;

	core_lock_acquire(&engine->lock);
	was_active = deactivate_locked(engine, conn);
	core_lock_release(&engine->lock);
	if (was_active)
		shm_conn_put(conn);
}

void shm_engine_deactivate_stale(struct shm_engine *engine, const struct shm_conn *address,
				 struct core_ref owner)
{
	struct shm_conn *conn = NULL;
	bool was_active = false;
	struct core_ref ep;
	uint32_t i = 0;

	core_lock_acquire(&engine->lock);
	while (i < engine->active_end && engine->active[i] != address)
		i++;
	if (i < engine->active_end) {
		conn = engine->active[i];
		ep = shm_conn_ep(conn);
		if (ep.cell == owner.cell && ep.generation == owner.generation)
			was_active = deactivate_locked(engine, conn);
	}
	core_lock_release(&engine->lock);
	if (was_active)
		shm_conn_put(conn);
}

struct shm_conn *shm_engine_rotate(struct shm_engine *engine)
{
	struct shm_conn *conn = NULL;

	core_lock_acquire(&engine->lock);
	if (shm_active_count(engine)) {
		conn = shm_active_next_locked(engine);
		shm_conn_get(conn);
	}
	core_lock_release(&engine->lock);
	return conn;
}
