// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of an engine: connections and listeners by number, and walks over all connections.
 */
#include "soft/shm/engine/engine.h"

#include <errno.h>
#include <string.h>

#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/connect/process.h"
#include "soft/shm/state.h"

#define FIRST_SLOTS 64u

void shm_engine_free_slots(struct shm_engine *engine)
{
	core_slab_free(engine->slots, engine->slot_count * sizeof(*engine->slots));
	core_slab_free(engine->active, engine->slot_count * sizeof(*engine->active));
}

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
		shm_engine_free_slots(engine);
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
	} else if (slot && slot->kind == SHM_SLOT_PROCESS) {
		object = shm_process_get_unless_dead(slot->object);
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

struct shm_conn *shm_engine_next_pending(struct shm_engine *engine)
{
	struct shm_conn *conn;

	/* sequentially consistent: a thread that adds one stores it, then kicks */
	if (!atomic_load(&engine->pending_first))
		return NULL;
	core_lock_acquire(&engine->lock);
	conn = atomic_load(&engine->pending_first);
	if (conn) {
		atomic_store(&engine->pending_first, conn->next_pending);
		conn->is_pending = false;
	}
	core_lock_release(&engine->lock);
	return conn;
}

uint64_t shm_engine_count(struct shm_engine *engine, enum shm_counter counter)
{
	uint64_t count;
	uint32_t i;

	core_lock_acquire(&engine->lock);
	count = atomic_load_explicit(&engine->counters[counter], memory_order_relaxed);
	for (i = 0; i < engine->slot_used; i++) {
		const struct shm_conn *conn = engine->slots[i].object;

		if (engine->slots[i].kind == SHM_SLOT_CONN)
			count += atomic_load_explicit(&conn->counters[counter],
						      memory_order_relaxed);
	}
	core_lock_release(&engine->lock);
	return count;
}

void shm_engine_update_deadline(struct shm_engine *engine)
{
	uint64_t earliest = UINT64_MAX, old;
	uint32_t i;

	core_lock_acquire(&engine->lock);
	for (i = 0; i < engine->slot_used; i++) {
		const struct shm_conn *conn = engine->slots[i].object;
		uint64_t deadline;

		if (engine->slots[i].kind != SHM_SLOT_CONN)
			continue;
		deadline = atomic_load(&conn->deadline_ns);
		if (deadline && deadline < earliest)
			earliest = deadline;
	}
	core_lock_release(&engine->lock);
	old = atomic_load(&engine->resume_ns);
	if (old < earliest)
		earliest = old;
	old = atomic_load(&engine->deadline_ns);
	while (earliest < old)
		if (atomic_compare_exchange_weak(&engine->deadline_ns, &old, earliest))
			return;
}
