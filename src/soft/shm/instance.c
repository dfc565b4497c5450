// SPDX-License-Identifier: BSD-2-Clause
/*
 * The data of an engine: its references, how others wake its service thread, its table of
 * connections and listeners by number, walks over all connections, and the list of those that polls
 * check.
 */
#include "soft/shm/instance.h"

#include <errno.h>
#include <string.h>

#include "core/transport.h"
#include "core/base/slab.h"
#include "soft/fds.h"
#include "soft/shm/state.h"

#define FIRST_SLOTS 64u
#define GAPS_MAX 16u /* allowed in addition to the number of connections */

static void free_slots(struct shm_engine *engine)
{
	core_slab_free(engine->slots, engine->slot_count * sizeof(*engine->slots));
	core_slab_free(engine->active, engine->slot_count * sizeof(*engine->active));
}

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
	free_slots(engine);
	core_slab_free(engine, sizeof(*engine));
}

void shm_engine_kick(struct shm_engine *engine)
{
	core_service_kick(&engine->service);
}

void shm_engine_serve_srqs(struct shm_engine *engine)
{
	atomic_store(&engine->is_serving, true);
	shm_engine_kick(engine);
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

void shm_listener_get(struct shm_listener *listener)
{
	/* relaxed: the caller holds a reference, or the lock of the table */
	atomic_fetch_add_explicit(&listener->refs, 1, memory_order_relaxed);
}

void shm_listener_put(struct shm_listener *listener)
{
	if (atomic_fetch_sub_explicit(&listener->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&listener->lock);
	shm_engine_put(listener->engine);
	core_slab_free(listener, sizeof(*listener));
}

/* --- the table --- */

static int grow_slots(struct shm_engine *engine)
{
	uint32_t count = engine->slot_count ? engine->slot_count * 2 : FIRST_SLOTS;
	struct shm_conn **active = core_slab_alloc(count * sizeof(*active));
	struct shm_slot *slots = core_slab_alloc(count * sizeof(*slots));

	if (!active || !slots) {
		core_slab_free(active, count * sizeof(*active));
		core_slab_free(slots, count * sizeof(*slots));
		return -ENOMEM;
	}
	if (engine->slot_count) {
		memcpy(slots, engine->slots, engine->slot_count * sizeof(*slots));
		memcpy(active, engine->active, engine->slot_count * sizeof(struct shm_conn *));
		free_slots(engine);
	}
	engine->slots = slots;
	engine->active = active;
	engine->slot_count = count;
	return 0;
}

int shm_engine_add(struct shm_engine *engine, enum shm_slot_kind kind, void *object,
		   uint64_t *id_out)
{
	struct shm_slot *slot;
	uint32_t index;
	int rc = 0;

	core_lock_acquire(&engine->lock);
	if (engine->free_first) {
		index = engine->free_first - 1;
		slot = &engine->slots[index];
		engine->free_first = slot->next_free;
		if (!engine->free_first)
			engine->free_last = 0;
	} else {
		if (engine->slot_used == engine->slot_count)
			rc = grow_slots(engine);
		if (rc < 0)
			goto out;
		index = engine->slot_used++;
		slot = &engine->slots[index];
	}
	slot->object = object;
	slot->kind = (uint8_t)kind;
	slot->generation++;
	*id_out = (uint64_t)slot->generation << 32 | index;
out:
	core_lock_release(&engine->lock);
	return rc;
}

/* The slot of a number; NULL if its object is gone. */
static struct shm_slot *slot_locked(struct shm_engine *engine, uint64_t id)
{
	uint32_t index = (uint32_t)id;

	if (index >= engine->slot_used || engine->slots[index].kind == SHM_SLOT_FREE ||
	    engine->slots[index].generation != (uint32_t)(id >> 32))
		return NULL;
	return &engine->slots[index];
}

void shm_engine_remove(struct shm_engine *engine, uint64_t id)
{
	struct shm_slot *slot;

	core_lock_acquire(&engine->lock);
	slot = slot_locked(engine, id);
	if (slot) {
		slot->kind = SHM_SLOT_FREE;
		slot->object = NULL;
		slot->next_free = 0;
		if (engine->free_last)
			engine->slots[engine->free_last - 1].next_free = (uint32_t)id + 1;
		else
			engine->free_first = (uint32_t)id + 1;
		engine->free_last = (uint32_t)id + 1;
	}
	core_lock_release(&engine->lock);
}

void *shm_engine_find(struct shm_engine *engine, uint64_t id, enum shm_slot_kind *kind_out)
{
	struct shm_slot *slot;
	void *object = NULL;

	core_lock_acquire(&engine->lock);
	slot = slot_locked(engine, id);
	if (slot && slot->kind == SHM_SLOT_LISTENER) {
		object = slot->object;
		shm_listener_get(object);
	} else if (slot && shm_conn_get_unless_dead(slot->object)) {
		object = slot->object;
	}
	if (object)
		*kind_out = (enum shm_slot_kind)slot->kind;
	core_lock_release(&engine->lock);
	return object;
}

struct shm_conn *shm_engine_next_conn(struct shm_engine *engine, uint32_t *index,
				      bool (*wanted)(const struct shm_conn *, uint64_t),
				      uint64_t argument)
{
	struct shm_conn *found = NULL;

	core_lock_acquire(&engine->lock);
	for (; !found && *index < engine->slot_used; ++*index) {
		struct shm_slot *slot = &engine->slots[*index];

		if (slot->kind == SHM_SLOT_CONN && wanted(slot->object, argument) &&
		    shm_conn_get_unless_dead(slot->object))
			found = slot->object;
	}
	core_lock_release(&engine->lock);
	return found;
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
	/* there is room for as many as there are numbers */
	if (engine->active_end == engine->slot_count)
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
