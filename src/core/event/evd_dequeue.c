// SPDX-License-Identifier: BSD-2-Clause
/* The slow path of dat_evd_dequeue (data_path.h has the fast one), shared with dat_evd_wait. */
#include "core/event/evd.h"

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/hooks.h"
#include "core/base/instance.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "shared/opendat.h"

#define ARM_TRIES 4 /* attempts to arm; new work makes one fail */

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
	const DAT_DTO_COMPLETION_EVENT_DATA *in = &from->event_data.dto_completion_event_data;
	DAT_DTO_COMPLETION_EVENT_DATA *out = &to->event_data.dto_completion_event_data;

	if (from->event_number != DAT_DTO_COMPLETION_EVENT) {
		*to = *from;
		if (opendat_event_is_async(to->event_number))
			event_translate_ia(&to->event_data.asynch_error_event_data.dat_handle);
		return;
	}
	to->event_number = DAT_DTO_COMPLETION_EVENT;
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

	for (int tries = 0; tries < ARM_TRIES && !is_armed; tries++) {
		(void)ia->ops->progress(ia);
		is_armed = ia->ops->arm(ia) <= 0;
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
		(void)ia->ops->progress(ia);
	core_lock_acquire(&evd->cell->lock);
	core_evd_idle_locked(evd);
	if (must_arm && evd->cno)
		evd_finish_arm(evd->cno, has_failed);
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
	else if (!core_evd_count_locked(evd))
		ret = (DAT_RETURN)DAT_QUEUE_EMPTY; /* bare: GEN-07 */
	else
		return core_evd_take_queued(evd, event);
	core_handle_unlock(cell);
	return ret;
}
