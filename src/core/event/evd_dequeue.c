// SPDX-License-Identifier: BSD-2-Clause
/* dat_evd_dequeue without its fast path (data_path.h), and what dat_evd_wait shares with it. */
#include "core/event/evd.h"

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/hooks.h"
#include "core/base/instance.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "shared/opendat.h"

#define ARM_LOOKS 4 /* before a call returns that finds new work each time */

/* An instance is told by the name that consumers have for it; other objects are what they are. */
__attribute__((cold)) static void event_name_ia(DAT_HANDLE *handle)
{
	struct core_handle *cell = *handle;
	DAT_IA_HANDLE consumer;

	/* without its lock: it may be closed at any time, and is refused then by either name */
	if (!core_handle_is_cell(cell) || atomic_load(&cell->tag) != CORE_TAG(DAT_HANDLE_TYPE_IA))
		return;
	consumer = atomic_load(&cell->consumer);
	if (consumer)
		*handle = consumer;
}

/*
 * A completion is copied member by member, as core_evd_post_dto may have written it just now: a
 * longer load would wait until those stores, and all before them, have left the processor.
 */
CORE_INLINE void event_copy(DAT_EVENT *to, const DAT_EVENT *from)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *in = &from->event_data.dto_completion_event_data;
	DAT_DTO_COMPLETION_EVENT_DATA *out = &to->event_data.dto_completion_event_data;

	if (from->event_number != DAT_DTO_COMPLETION_EVENT) {
		*to = *from;
		if (opendat_event_is_async(to->event_number))
			event_name_ia(&to->event_data.asynch_error_event_data.dat_handle);
		return;
	}
	to->event_number = DAT_DTO_COMPLETION_EVENT;
	/* relaxed: this is only to keep the compiler from joining them */
	to->evd_handle = __atomic_load_n(&from->evd_handle, __ATOMIC_RELAXED);
	out->ep_handle = __atomic_load_n(&in->ep_handle, __ATOMIC_RELAXED);
	out->user_cookie.as_64 = __atomic_load_n(&in->user_cookie.as_64, __ATOMIC_RELAXED);
	out->status = __atomic_load_n(&in->status, __ATOMIC_RELAXED);
	out->transfered_length = __atomic_load_n(&in->transfered_length, __ATOMIC_RELAXED);
}

CORE_INLINE struct core_ref evd_take_locked(struct core_evd *evd, DAT_EVENT *event)
{
	const struct core_event *slot = &evd->ring[evd->head++ & evd->mask];

	event_copy(event, &slot->event);
	evd->is_overflowed = false;
	return slot->srq;
}

struct core_ref core_evd_take_locked(struct core_evd *evd, DAT_EVENT *event)
{
	return evd_take_locked(evd, event);
}

void core_evd_busy_locked(struct core_evd *evd)
{
	evd->busy++;
}

void core_evd_idle_locked(struct core_evd *evd)
{
	if (!--evd->busy && evd->is_dying)
		pthread_cond_signal(&evd->gone);
}

/*
 * Who is told of events by an agent or a descriptor takes them until there is none, and sleeps
 * somewhere else. To the transport that looks like a thread that polls, so it is told otherwise.
 * False: there was something new each time.
 */
__attribute__((noinline)) static bool evd_drive_and_arm(struct core_ia *ia)
{
	int state = core_cancel_off();
	bool is_armed = false;

	for (int looks = 0; looks < ARM_LOOKS && !is_armed; looks++)
		is_armed = ia->ops->progress(ia) <= 0 && ia->ops->arm(ia) <= 0;
	core_cancel_restore(state);
	return is_armed;
}

__attribute__((noinline)) static void evd_went_to_sleep(struct core_cno *cno, bool is_late)
{
	if (is_late)
		core_cno_told(cno); /* it goes later */
	else
		core_cno_sleeps(cno);
}

bool core_evd_drive_locked(struct core_evd *evd)
{
	bool goes_to_sleep = core_cno_goes_to_sleep(evd->cno);
	struct core_ia *ia = evd->ia;
	bool is_late = false;

	core_evd_busy_locked(evd);
	core_handle_unlock(evd->cell);
	if (goes_to_sleep)
		is_late = !evd_drive_and_arm(ia);
	else
		(void)ia->ops->progress(ia);
	core_lock_acquire(&evd->cell->lock);
	core_evd_idle_locked(evd);
	if (goes_to_sleep && evd->cno)
		evd_went_to_sleep(evd->cno, is_late);
	return !evd->is_dying;
}

DAT_RETURN core_evd_take_queued(struct core_evd *evd, DAT_EVENT *event)
{
	struct core_ref srq = evd_take_locked(evd, event);

	core_handle_unlock(evd->cell);
	if (srq.cell)
		core_hooks.srq_return(srq);
	return DAT_SUCCESS;
}

DAT_RETURN core_evd_dequeue_any(DAT_EVD_HANDLE handle, DAT_EVENT *event)
{
	struct core_evd *evd = core_handle_lock_inline(handle, DAT_HANDLE_TYPE_EVD);
	struct core_handle *cell;
	DAT_RETURN ret;

	if (!evd)
		return core_bad_handle(DAT_NO_SUBTYPE);
	cell = evd->cell;
	if (!event)
		ret = core_bad_arg(2);
	else if (!core_evd_count_locked(evd) && !evd->has_waiter && !core_evd_drive_locked(evd))
		ret = core_bad_handle(DAT_NO_SUBTYPE); /* it was freed meanwhile */
	else if (evd->has_waiter) /* it may have come while we drove the transport */
		ret = core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	else if (!core_evd_count_locked(evd))
		ret = (DAT_RETURN)DAT_QUEUE_EMPTY; /* bare: GEN-07 */
	else
		return core_evd_take_queued(evd, event);
	core_handle_unlock(cell);
	return ret;
}
