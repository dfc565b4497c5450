// SPDX-License-Identifier: BSD-2-Clause
/* The queue of events of an EVD: posting, dequeuing (data_path.h has the fast path), overflow. */
#include "core/event/evd_queue.h"

#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/hooks.h"
#include "core/base/instance.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "shared/opendat.h"
#include "core/event/cno_trigger.h"

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
				 DAT_EP_HANDLE ep_handle, struct core_done done,
				 DAT_DTO_COOKIE cookie, DAT_VLEN len)
{
	bool has_room;

	if (evd->cell != locked &&
	    !core_handle_enter_fast((DAT_HANDLE)evd->cell, DAT_HANDLE_TYPE_EVD))
		return false;
	has_room = core_evd_count_locked(evd) < evd->capacity;
	if (has_room)
		core_evd_put_dto_locked(evd, ep_handle, done, cookie, DAT_DTO_SUCCESS, len, no_srq);
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

/* Replaces the handle of an IA by the one that the consumer has. Other handles are not changed. */
__attribute__((cold)) static void event_translate_ia(DAT_HANDLE *handle)
{
	struct core_handle *cell = *handle;
	DAT_IA_HANDLE consumer;

	/* no lock is needed: if the IA is closed meanwhile, neither handle is valid */
	if (!core_handle_is_cell(cell) || atomic_load(&cell->tag) != CORE_TAG(DAT_HANDLE_TYPE_IA))
		return;
	consumer = atomic_load(&cell->consumer);
	if (consumer)
		*handle = consumer;
}

/*
 * Copies a completion member by member, as core_event_fill_dto stores it. The stores may still be
 * in the store buffer: a wider load would wait until they, and all stores before them, have reached
 * the cache.
 */
CORE_INLINE void event_copy(DAT_EVENT *to, const DAT_EVENT *from)
{
	const struct core_note *note = (const struct core_note *)from;
	const DAT_DTO_COMPLETION_EVENT_DATA *in = &from->event_data.dto_completion_event_data;
	DAT_DTO_COMPLETION_EVENT_DATA *out = &to->event_data.dto_completion_event_data;

	if (from->event_number != DAT_DTO_COMPLETION_EVENT) {
		*to = *from;
		if (opendat_event_is_async(to->event_number))
			event_translate_ia(&to->event_data.asynch_error_event_data.dat_handle);
		return;
	}
	to->event_number = DAT_DTO_COMPLETION_EVENT;
	core_event_note(to)->op = __atomic_load_n(&note->op, __ATOMIC_RELAXED);
	core_event_note(to)->value = __atomic_load_n(&note->value, __ATOMIC_RELAXED);
	/* relaxed: only keeps the compiler from combining the loads */
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
		pthread_cond_signal(&evd->idle);
}

/*
 * A consumer that is notified by an agent or a descriptor dequeues until the EVD is empty and then
 * sleeps outside the library. The transport cannot distinguish that from polling, so the last
 * dequeue arms it. False: not armed, because there was new work each time.
 */
__attribute__((noinline)) bool core_evd_drive_and_arm(struct core_ia *ia)
{
	int state = core_cancel_off();
	bool is_armed = false;

	for (int tries = 0; tries < CORE_ARM_TRIES && !is_armed; tries++) {
		(void)transport_this->progress(ia);
		is_armed = transport_this->arm(ia) <= 0;
	}
	core_cancel_restore(state);
	return is_armed;
}

__attribute__((noinline)) static void evd_finish_arm(struct core_cno *cno, bool has_failed)
{
	if (has_failed)
		core_cno_request_arm(cno); /* a later dequeue tries again */
	else
		core_cno_add_sleeper(cno);
}

bool core_evd_drive_locked(struct core_evd *evd)
{
	bool must_arm = core_cno_take_arm_request(evd->cno);
	struct core_ia *ia = evd->ia;
	bool has_failed = false;

	core_evd_busy_locked(evd);
	core_handle_unlock(evd->cell);
	if (must_arm)
		has_failed = !core_evd_drive_and_arm(ia);
	else
		(void)transport_this->progress(ia);
	core_lock_acquire(&evd->cell->lock);
	core_evd_idle_locked(evd);
	if (must_arm && evd->cno)
		evd_finish_arm(evd->cno, has_failed);
	return !evd->is_dying;
}

DAT_RETURN core_evd_take_queued(struct core_evd *evd, DAT_EVENT *event)
{
	struct core_ref srq = evd_take_locked(evd, event);

	evd->dequeues[TRANSPORT_POLL_FOUND]++;
	core_handle_unlock(evd->cell);
	if (srq.cell)
		core_hooks.srq_return(srq);
	return DAT_SUCCESS;
}

CORE_COLD static DAT_RETURN evd_bad_handle(DAT_EVD_HANDLE handle)
{
	return core_bad_handle(CORE_ARG(evd_dequeue, 1, evd_handle), DAT_NO_SUBTYPE, handle);
}

DAT_RETURN core_evd_dequeue_slow(DAT_EVD_HANDLE handle, DAT_EVENT *event)
{
	struct core_evd *evd = core_handle_lock_inline(handle, DAT_HANDLE_TYPE_EVD);
	struct core_handle *cell;
	DAT_RETURN ret;

	if (!evd)
		return evd_bad_handle(handle);
	cell = evd->cell;
	if (!event)
		ret = core_bad_null(CORE_ARG(evd_dequeue, 2, event));
	else if (!core_evd_count_locked(evd) && !evd->has_waiter && !core_evd_drive_locked(evd))
		ret = evd_bad_handle(handle); /* freed meanwhile */
	else if (evd->has_waiter)	      /* it may have started while the lock was released */
		ret = core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	else if (core_evd_count_locked(evd))
		return core_evd_take_queued(evd, event);
	else
		ret = (DAT_RETURN)DAT_QUEUE_EMPTY; /* bare: GEN-07 */
	if (ret == (DAT_RETURN)DAT_QUEUE_EMPTY)
		evd->dequeues[TRANSPORT_POLL_EMPTY]++;
	core_handle_unlock(cell);
	return ret;
}

void core_ia_async_event(struct core_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE object,
			 DAT_COUNT reason)
{
	struct core_evd *evd = core_handle_lock_ref(ia->async_ref, DAT_HANDLE_TYPE_EVD);
	struct core_handle *cell;
	DAT_EVENT event;

	core_ia_count(ia, CORE_COUNT_ASYNC_ERROR);
	if (!evd)
		return;
	cell = evd->cell;
	memset(&event, 0, sizeof(event));
	event.event_number = number;
	event.event_data.asynch_error_event_data.dat_handle = object;
	event.event_data.asynch_error_event_data.reason = reason;
	/* a full queue drops it silently */
	if (core_evd_count_locked(evd) < evd->capacity)
		evd_put_locked(evd, &event, true);
	core_handle_unlock(cell);
}
