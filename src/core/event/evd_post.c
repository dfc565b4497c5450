// SPDX-License-Identifier: BSD-2-Clause
/* Posting events to an EVD. */
#include "core/event/evd.h"

#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/hooks.h"
#include "core/base/instance.h"
#include "core/base/status.h"
#include "core/event/async.h"

static const struct core_ref no_srq;

void core_evd_notify_locked(struct core_evd *evd)
{
	if (!evd->has_waiter) {
		if (evd->is_enabled && evd->cno)
			core_cno_trigger(evd->cno, evd); /* EVD-STREAM-21 */
		return;
	}
	if (evd->release || core_evd_count_locked(evd) < (uint32_t)evd->threshold)
		return;
	evd->release = CORE_RELEASE_EVENT;
	evd->wakeups++;
	/* with the lock held: once released, the waiter may free the EVD */
	core_waker_wake_locked(&evd->waker);
}

static void evd_put_locked(struct core_evd *evd, DAT_EVENT *event, bool is_notifying)
{
	struct core_event *slot = core_evd_slot_locked(evd);

	event->evd_handle = evd->cell;
	slot->event = *event;
	slot->srq = no_srq;
	if (is_notifying)
		core_evd_notify_locked(evd);
}

bool core_evd_deliver_dto_queued(struct core_evd *evd, const struct core_handle *locked,
				 DAT_EP_HANDLE ep_handle, DAT_DTO_COOKIE cookie, DAT_VLEN len)
{
	bool has_room;

	if (evd->cell != locked &&
	    !core_handle_enter_fast((DAT_HANDLE)evd->cell, DAT_HANDLE_TYPE_EVD))
		return false;
	has_room = core_evd_count_locked(evd) < evd->capacity;
	if (has_room)
		core_evd_put_dto_locked(evd, ep_handle, cookie, DAT_DTO_SUCCESS, len, no_srq);
	if (evd->cell != locked)
		core_lock_leave(&evd->cell->lock);
	return has_room;
}

bool core_evd_try_post(struct core_evd *evd, DAT_EVENT *event)
{
	bool has_room;

	core_lock_acquire(&evd->cell->lock);
	has_room = core_evd_count_locked(evd) < evd->capacity;
	if (has_room)
		evd_put_locked(evd, event, true);
	core_lock_release(&evd->cell->lock);
	return has_room;
}

void core_evd_post_locked(struct core_evd *evd, DAT_EVENT *event)
{
	if (core_evd_count_locked(evd) < evd->capacity)
		evd_put_locked(evd, event, true);
}

void core_evd_overflow_locked(struct core_evd *evd, struct core_ref srq)
{
	struct core_ia *ia = evd->ia;
	struct core_handle *cell = evd->cell;
	bool is_new_loss = !evd->is_overflowed;

	evd->is_overflowed = true;
	core_lock_release(&cell->lock);
	if (srq.cell)
		core_hooks.srq_return(srq);
	if (is_new_loss && cell != ia->async_ref.cell)
		core_ia_async_event(ia, DAT_ASYNC_ERROR_EVD_OVERFLOW, cell, DAT_EVD_OVERFLOW_ERROR);
}

void core_evd_post(struct core_evd *evd, DAT_EVENT *event, bool is_notifying)
{
	core_lock_acquire(&evd->cell->lock);
	if (core_evd_count_locked(evd) >= evd->capacity) {
		core_evd_overflow_locked(evd, no_srq);
		return;
	}
	evd_put_locked(evd, event, is_notifying);
	core_lock_release(&evd->cell->lock);
}

DAT_RETURN core_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	CORE_NO_CANCELLATION;
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret = DAT_SUCCESS;
	struct core_handle *cell;
	DAT_EVENT copy;

	if (!evd)
		return core_bad_handle(CORE_ARG(evd_post_se, 1, evd_handle), DAT_NO_SUBTYPE,
				       evd_handle);
	cell = evd->cell;
	if (!event) {
		ret = core_bad_null(CORE_ARG(evd_post_se, 2, event));
	} else if (event->event_number != DAT_SOFTWARE_EVENT) {
		ret = core_bad_arg(CORE_ARG(evd_post_se, 2, event),
				   "event_number 0x%x is not DAT_SOFTWARE_EVENT",
				   (unsigned int)event->event_number);
	} else if (!(evd->flags & DAT_EVD_SOFTWARE_FLAG)) {
		ret = core_bad_arg(CORE_ARG(evd_post_se, 1, evd_handle),
				   "%s was created without DAT_EVD_SOFTWARE_FLAG",
				   core_handle_name(cell).text);
	} else if (core_evd_count_locked(evd) >= evd->capacity) {
		ret = core_error(DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
	} else {
		memset(&copy, 0, sizeof(copy));
		copy.event_number = DAT_SOFTWARE_EVENT;
		copy.event_data.software_event_data = event->event_data.software_event_data;
		evd_put_locked(evd, &copy, true);
	}
	core_handle_unlock(cell);
	return ret;
}

void core_evd_return_trigger(DAT_EVD_HANDLE handle, struct core_cno *cno)
{
	struct core_evd *evd = core_handle_lock(handle, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return;
	core_cno_return_trigger(cno, evd);
	core_handle_unlock(evd->cell);
}
