// SPDX-License-Identifier: BSD-2-Clause
/*
 * The express way: a transport's own form of the calls of the data path, for objects of which it is
 * known that nothing but the usual can be asked of them. The cell says so (core_handle.express), so
 * that one look replaces all the others; what a call finds unusual all the same, it leaves to the
 * call of the core, which knows it all.
 *
 * An endpoint is on the express way from core_ep_express_begin(), which the transport calls, to
 * core_ep_express_end(), which whoever is about to do anything else with its queues calls first:
 * the transport may keep its books about them in a shorter form meanwhile. A dispatcher is on it
 * while no event is queued, no thread waits or drives the transport for it, and no CNO is told.
 */
#ifndef CORE_EXPRESS_H
#define CORE_EXPRESS_H

#include "core/ep.h"
#include "core/evd.h"
#include "core/handle.h"

/* Is the cell live, with that type, and on the express way? Locked; but it may be doomed at any
 * time. */
CORE_INLINE bool core_express_is_on(const struct core_handle *cell, DAT_HANDLE_TYPE type)
{
	return core_is_same_32(&cell->both, CORE_TAG(type) | (uint32_t)CORE_TAG(type) << 16);
}

/*
 * The object, locked, if it is on the express way and that waits for nobody; NULL: nothing is
 * locked. The handle is one of ours: libdat has looked at it, or its first word has led here.
 * core_lock_leave() gives it back.
 */
CORE_INLINE void *core_express_enter(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	struct core_handle *cell = (struct core_handle *)handle;
	void *object;

	if (!core_lock_try(&cell->lock))
		return NULL;
	if (!core_express_is_on(cell, type)) {
		core_lock_leave(&cell->lock);
		return NULL;
	}
	object = cell->object;
	if (!object)
		__builtin_unreachable();
	return object;
}

#endif
