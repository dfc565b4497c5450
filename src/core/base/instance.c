// SPDX-License-Identifier: BSD-2-Clause
/* Adapter instances: entering and leaving, and the lists of their objects. */
#include "core/base/instance.h"

#include "core/base/log.h"
#include "core/base/status.h"
#include "shared/names.h"

struct core_ia *core_ia_enter(DAT_IA_HANDLE handle)
{
	struct core_ia *ia = core_handle_lock(handle, DAT_HANDLE_TYPE_IA);

	if (!ia)
		return NULL;
	ia->active_calls++;
	core_handle_unlock(ia->cell);
	return ia;
}

void core_ia_leave(struct core_ia *ia)
{
	struct core_handle *cell = ia->cell;

	core_lock_acquire(&cell->lock);
	if (!--ia->active_calls && ia->is_closing)
		pthread_cond_signal(&ia->idle);
	core_lock_release(&cell->lock);
}

void core_ia_set_consumer_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE consumer_handle)
{
	struct core_ia *ia = core_handle_lock(handle, DAT_HANDLE_TYPE_IA);

	if (!ia)
		return;
	atomic_store(&ia->cell->consumer, consumer_handle);
	core_handle_unlock(ia->cell);
}

DAT_RETURN core_ia_add(struct core_ia *ia, struct core_handle *cell, DAT_HANDLE_TYPE type)
{
	struct core_object_list *list = &ia->objects[type];
	DAT_RETURN ret = DAT_SUCCESS;

	core_lock_acquire(&ia->cell->lock);
	if (ia->is_closing) {
		ret = core_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	} else if (list->max && list->count >= list->max) {
		core_log(CORE_LOG_ERROR,
			 "%s: the limit of %u objects of the type \"%s\" is reached",
			 core_object_name(ia->cell, DAT_HANDLE_TYPE_IA).text, list->max,
			 opendat_object_name(type));
		ret = core_no_resources(DAT_NO_SUBTYPE);
	} else {
		cell->prev = NULL;
		cell->next = list->first;
		if (list->first)
			list->first->prev = cell;
		list->first = cell;
		list->count++;
		core_handle_publish(cell, type);
	}
	core_lock_release(&ia->cell->lock);
	return ret;
}

static void ia_remove(struct core_ia *ia, struct core_handle *cell, DAT_HANDLE_TYPE type,
		      uint64_t removed)
{
	struct core_object_list *list = &ia->objects[type];
	struct core_lock *lock = &ia->cell->lock;

	core_lock_acquire(lock);
	if (cell->prev)
		cell->prev->next = cell->next;
	else
		list->first = cell->next;
	if (cell->next)
		cell->next->prev = cell->prev;
	list->count--;
	list->removed += removed;
	core_lock_release(lock);
}

void core_ia_remove(struct core_ia *ia, struct core_handle *cell, DAT_HANDLE_TYPE type)
{
	ia_remove(ia, cell, type, 1);
}

void core_ia_take_back(struct core_ia *ia, struct core_handle *cell, DAT_HANDLE_TYPE type)
{
	ia_remove(ia, cell, type, 0);
}

uint64_t core_ia_removed(struct core_ia *ia, DAT_HANDLE_TYPE type)
{
	uint64_t removed;

	core_lock_acquire(&ia->cell->lock);
	removed = ia->objects[type].removed;
	core_lock_release(&ia->cell->lock);
	return removed;
}

bool core_ia_nth(struct core_ia *ia, DAT_HANDLE_TYPE type, uint32_t index, struct core_ref *ref_out)
{
	struct core_handle *cell;

	core_lock_acquire(&ia->cell->lock);
	for (cell = ia->objects[type].first; cell && index; cell = cell->next)
		index--;
	if (cell)
		*ref_out = core_handle_ref(cell);
	core_lock_release(&ia->cell->lock);
	return cell;
}

bool core_ia_find(struct core_ia *ia, DAT_HANDLE_TYPE type, bool (*use)(void *object, void *arg),
		  void *arg)
{
	bool is_found = false;
	struct core_handle *cell;

	core_lock_acquire(&ia->cell->lock);
	for (cell = ia->objects[type].first; cell && !is_found; cell = cell->next) {
		void *object = core_handle_lock_cell(cell, type);

		if (!object)
			continue;
		is_found = use(object, arg);
		core_handle_unlock(cell);
	}
	core_lock_release(&ia->cell->lock);
	return is_found;
}

void core_ia_count_tentative(struct core_ia *ia, int change)
{
	core_lock_acquire(&ia->cell->lock);
	ia->tentative_eps += (uint32_t)change;
	core_lock_release(&ia->cell->lock);
}
