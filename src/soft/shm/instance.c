// SPDX-License-Identifier: BSD-2-Clause
/*
 * The data of an engine: its references, how others wake its service thread, walks over all
 * connections, and the list of those that polls check.
 */
#include "soft/shm/instance.h"

#include <errno.h>
#include <string.h>

#include "core/transport.h"
#include "core/base/slab.h"
#include "soft/fds.h"
#include "soft/shm/state.h"

#define FIRST_ROOM 64u
#define GAPS_MAX 16u /* allowed in addition to the number of connections */

void shm_engine_get(struct shm_engine *engine)
{
	/* relaxed: the caller holds a reference already */
	atomic_fetch_add_explicit(&engine->refs, 1, memory_order_relaxed);
}

void shm_engine_put(struct shm_engine *engine)
{
	if (atomic_fetch_sub_explicit(&engine->refs, 1, memory_order_acq_rel) != 1)
		return;
	soft_thread_close(&engine->service);
	soft_fd_close(engine->dir.fd);
	core_lock_destroy(&engine->attention.lock);
	core_lock_destroy(&engine->lock);
	core_slab_free(engine->active, engine->active_room * sizeof(*engine->active));
	core_slab_free(engine, sizeof(*engine));
}

void shm_engine_serve_srqs(struct shm_engine *engine)
{
	atomic_store(&engine->is_serving, true);
	core_service_kick(&engine->service);
}

/* --- what the engine for TCP asks (soft.h) --- */

uint64_t soft_polls(const struct soft_adapter *adapter)
{
	/* relaxed: only totals are compared */
	return atomic_load_explicit(&adapter->shm->driven.polls, memory_order_relaxed);
}

bool soft_is_unattended(const struct soft_adapter *adapter)
{
	return atomic_load(&adapter->shm->is_unattended);
}

/* --- service points --- */

void shm_listener_put(struct shm_listener *listener)
{
	if (!soft_attended_put(&listener->attended))
		return;
	soft_attention_remove(&listener->engine->attention, &listener->attended);
	pthread_mutex_destroy(&listener->lock);
	shm_engine_put(listener->engine);
	core_slab_free(listener, sizeof(*listener));
}

/* --- all connections --- */

static int grow_active_locked(struct shm_engine *engine)
{
	const uint32_t old = engine->active_room, room = old ? old * 2 : FIRST_ROOM;
	struct shm_conn **active = core_slab_alloc(room * sizeof(*active));

	if (!active)
		return -ENOMEM;
	if (old) {
		memcpy(active, engine->active, old * sizeof(struct shm_conn *));
		core_slab_free(engine->active, old * sizeof(struct shm_conn *));
	}
	engine->active = active;
	engine->active_room = room;
	return 0;
}

int shm_engine_add(struct shm_engine *engine, struct shm_conn *conn)
{
	int rc = 0;

	core_lock_acquire(&engine->lock);
	if (engine->conn_count == engine->active_room)
		rc = grow_active_locked(engine);
	if (rc == 0)
		engine->conn_count++;
	core_lock_release(&engine->lock);
	if (rc == 0)
		soft_attention_add(&engine->attention, &conn->attended);
	return rc;
}

void shm_engine_remove(struct shm_engine *engine, struct shm_conn *conn)
{
	struct shm_conn *armed_last = conn;

	soft_attention_remove(&engine->attention, &conn->attended);
	core_lock_acquire(&engine->lock);
	engine->conn_count--;
	(void)atomic_compare_exchange_strong(&engine->armed_last, &armed_last, NULL);
	core_lock_release(&engine->lock);
}

struct shm_conn *shm_engine_armed_last(struct shm_engine *engine)
{
	struct shm_conn *conn;

	/* it is removed with the lock held, before it is freed */
	core_lock_acquire(&engine->lock);
	conn = atomic_load(&engine->armed_last);
	if (conn && !shm_conn_get_unless_dead(conn))
		conn = NULL;
	core_lock_release(&engine->lock);
	return conn;
}

struct wanted {
	bool (*is_it)(const struct shm_conn *, uint64_t);
	uint64_t argument;
};

static bool is_wanted(struct soft_attended *attended, void *argument)
{
	const struct wanted *wanted = argument;

	return wanted->is_it(shm_conn_of_attended(attended), wanted->argument);
}

struct shm_conn *shm_engine_next_conn(struct shm_engine *engine, struct shm_conn *after,
				      bool (*wanted)(const struct shm_conn *, uint64_t),
				      uint64_t argument)
{
	struct wanted what = {wanted, argument};
	struct soft_attended *found = soft_attention_find(
		&engine->attention, after ? &after->attended : NULL, is_wanted, &what);

	if (after)
		shm_conn_put(after);
	return found ? shm_conn_of_attended(found) : NULL;
}

/* --- the list of active connections --- */

static void set_active_count(struct shm_engine *engine, uint32_t count)
{
	atomic_store_explicit(&engine->active_count, count, memory_order_relaxed);
}

/* 1 + its place in the array, or 0. */
static void set_place(struct shm_conn *conn, uint32_t place)
{
	atomic_store_explicit(&conn->active_at, place, memory_order_relaxed);
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
			engine->active[to++] = conn;
			set_place(conn, to);
		}
	}
	engine->active_next = next;
	engine->active_end = to;
}

static void append_locked(struct shm_engine *engine, struct shm_conn *conn)
{
	if (engine->active_end == engine->active_room)
		close_gaps_locked(engine);
	engine->active[engine->active_end++] = conn;
	set_place(conn, engine->active_end);
	set_active_count(engine, shm_active_count(engine) + 1);
}

static void remove_locked(struct shm_engine *engine, struct shm_conn *conn)
{
	uint32_t count = shm_active_count(engine) - 1;

	engine->active[conn->active_at - 1] = NULL;
	set_place(conn, 0);
	set_active_count(engine, count);
	if (engine->active_end - count > count + GAPS_MAX)
		close_gaps_locked(engine);
}

void shm_engine_add_active(struct shm_engine *engine, struct shm_conn *conn)
{
	core_lock_acquire(&engine->lock);
	if (!shm_conn_is_active(conn)) {
		shm_conn_get(conn);
		shm_conn_set_idle(conn, 0);
		append_locked(engine, conn);
	}
	core_lock_release(&engine->lock);
}

/* True: the caller has to drop the list's reference. */
static bool deactivate_locked(struct shm_engine *engine, struct shm_conn *conn)
{
	if (!shm_conn_is_active(conn))
		return false;
	remove_locked(engine, conn);
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
