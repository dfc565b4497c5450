// SPDX-License-Identifier: BSD-2-Clause
/* Event dispatchers: everything but waiting (evd_wait.c). */
#include "core/event/evd.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/hooks.h"
#include "core/base/instance.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/event/async.h"

static const struct core_ref no_srq;

#define ARM_LOOKS 4 /* before a call returns that finds new work each time */
/* Asynchronous events have numbers in this range, all others are outside. */
#define ASYNC_EVENT_FIRST 0x8000u
#define ASYNC_EVENT_END 0x10000u

#define EVD_FLAGS_ALL (DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG)

/* The dispatcher refers to that CNO (NULL: none) from now on. Locked, or not yet published. */
static void evd_set_cno_locked(struct core_evd *evd, struct core_cno *cno)
{
	evd->cno = cno;
	core_handle_put_slow(evd->cell, CORE_EVD_SLOW_CNO, cno ? CORE_EVD_SLOW_CNO : 0);
}

static uint32_t evd_ring_size(DAT_COUNT qlen)
{
	uint32_t size = 1;

	while (size < (uint32_t)qlen)
		size *= 2;
	return size;
}

static bool evd_init(struct core_evd *evd, DAT_COUNT qlen)
{
	pthread_condattr_t attr;

	evd->capacity = (uint32_t)qlen;
	evd->mask = evd_ring_size(qlen) - 1;
	evd->ring = calloc((size_t)evd->mask + 1, sizeof(*evd->ring));
	if (!evd->ring)
		return false;
	evd->is_enabled = true;
	evd->is_waitable = true;
	core_waker_init(&evd->waker);
	pthread_condattr_init(&attr);
	pthread_cond_init(&evd->gone, &attr);
	pthread_condattr_destroy(&attr);
	return true;
}

static void evd_fini(struct core_evd *evd)
{
	pthread_cond_destroy(&evd->gone);
	core_waker_fini(&evd->waker);
	free(evd->ring);
	free(evd);
}

DAT_RETURN core_evd_new(struct core_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags,
			struct core_cno *cno, struct core_evd **evd_out)
{
	struct core_evd *evd = calloc(1, sizeof(*evd));
	DAT_RETURN ret = core_no_resources(DAT_RESOURCE_MEMORY);

	if (!evd)
		return ret;
	evd->ia = ia;
	evd->flags = flags;
	if (!evd_init(evd, qlen)) {
		free(evd);
		return ret;
	}
	evd->cell = core_handle_alloc(&ia->adapter->provider, ia, evd);
	if (!evd->cell)
		goto fini;
	evd->trigger.evd = evd->cell;
	evd_set_cno_locked(evd, cno);
	ret = core_ia_add(ia, evd->cell, DAT_HANDLE_TYPE_EVD);
	if (ret != DAT_SUCCESS)
		goto release_cell;
	*evd_out = evd;
	return DAT_SUCCESS;

release_cell:
	core_handle_release(evd->cell);
fini:
	evd_fini(evd);
	return ret;
}

static DAT_RETURN evd_create_on(struct core_ia *ia, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
				DAT_EVD_FLAGS flags, const DAT_EVD_HANDLE *handle,
				struct core_evd **evd_out)
{
	struct core_cno *cno = NULL;
	DAT_RETURN ret;

	if (cno_handle != DAT_HANDLE_NULL) {
		cno = core_cno_use(cno_handle, ia);
		if (!cno)
			return core_bad_handle(DAT_INVALID_HANDLE_CNO);
	}
	if (qlen <= 0)
		ret = core_bad_arg(2);
	else if (!flags || (flags & ~EVD_FLAGS_ALL))
		ret = core_bad_arg(4);
	else if (!handle)
		ret = core_bad_arg(5);
	else if (qlen > ia->attr.max_evd_qlen)
		ret = core_no_resources(DAT_RESOURCE_TEVD);
	else
		ret = core_evd_new(ia, qlen, flags, cno, evd_out);
	if (ret != DAT_SUCCESS && cno)
		core_cno_disuse(cno);
	return ret;
}

DAT_RETURN core_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
			   DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd_handle)
{
	struct core_ia *ia = core_ia_enter(ia_handle);
	DAT_RETURN ret = core_bad_handle(DAT_INVALID_HANDLE_IA);
	struct core_evd *evd = NULL;

	if (ia)
		ret = evd_create_on(ia, qlen, cno_handle, flags, evd_handle, &evd);
	if (evd_handle)
		*evd_handle = ret == DAT_SUCCESS ? evd->cell : DAT_HANDLE_NULL;
	if (ia)
		core_ia_leave(ia);
	return ret;
}

/* Refuses the requests whose events nobody can take any more (EVD-FREE-12), frees SRQ entries. */
static void evd_drop_events(struct core_evd *evd)
{
	for (; evd->head != evd->tail; evd->head++) {
		const struct core_event *slot = &evd->ring[evd->head & evd->mask];
		const DAT_EVENT *event = &slot->event;

		if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
			core_hooks.cr_abandon(event->event_data.cr_arrival_event_data.cr_handle);
		core_hooks.srq_return(slot->srq);
	}
}

void core_evd_destroy(struct core_evd *evd)
{
	struct core_handle *cell = evd->cell;

	core_lock_acquire(&cell->lock);
	evd->is_dying = true;
	core_waker_wake_locked(&evd->waker);
	while (evd->busy)
		core_lock_wait(&cell->lock, &evd->gone);
	core_lock_release(&cell->lock);
	if (evd->has_past_triggers)
		core_cno_forget_evd(evd->ia, cell);
	if (evd->cno)
		core_cno_evd_freed(evd->cno, evd);
	evd_drop_events(evd);
	core_ia_remove(evd->ia, cell, DAT_HANDLE_TYPE_EVD);
	core_handle_release(cell);
	evd_fini(evd);
}

DAT_RETURN core_evd_free(DAT_EVD_HANDLE evd_handle)
{
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return core_bad_handle(DAT_NO_SUBTYPE);
	for (int i = 0; i < CORE_STREAM_KINDS; i++) {
		if (evd->users[i]) {
			core_handle_unlock(evd->cell);
			return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
		}
	}
	core_handle_kill_locked(evd->cell);
	core_handle_unlock(evd->cell);
	core_evd_destroy(evd);
	return DAT_SUCCESS;
}

DAT_RETURN core_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param)
{
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!evd)
		return core_bad_handle(DAT_NO_SUBTYPE);
	if (mask & ~DAT_EVD_FIELD_ALL) {
		ret = core_bad_arg(2);
	} else if (!param) {
		ret = core_bad_arg(3);
	} else {
		param->ia_handle = evd->ia->cell;
		param->evd_qlen = (DAT_COUNT)evd->capacity;
		param->evd_state =
			(evd->is_enabled ? DAT_EVD_STATE_ENABLED : DAT_EVD_STATE_DISABLED) |
			(evd->is_waitable ? DAT_EVD_STATE_WAITABLE : DAT_EVD_STATE_UNWAITABLE);
		param->cno_handle = evd->cno ? evd->cno->cell : DAT_HANDLE_NULL;
		param->evd_flags = evd->flags;
	}
	core_handle_unlock(evd->cell);
	return ret;
}

static DAT_RETURN evd_set_switches(DAT_EVD_HANDLE evd_handle, const bool *is_enabled,
				   const bool *is_waitable)
{
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return core_bad_handle(DAT_NO_SUBTYPE);
	if (is_enabled)
		evd->is_enabled = *is_enabled;
	if (is_waitable) {
		evd->is_waitable = *is_waitable;
		if (!evd->is_waitable && evd->has_waiter && !evd->release) {
			evd->release = CORE_RELEASE_UNWAITABLE;
			core_waker_wake_locked(&evd->waker);
		}
	}
	core_handle_unlock(evd->cell);
	return DAT_SUCCESS;
}

DAT_RETURN core_evd_enable(DAT_EVD_HANDLE evd_handle)
{
	return evd_set_switches(evd_handle, &(const bool){true}, NULL);
}

DAT_RETURN core_evd_disable(DAT_EVD_HANDLE evd_handle)
{
	return evd_set_switches(evd_handle, &(const bool){false}, NULL);
}

DAT_RETURN core_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	return evd_set_switches(evd_handle, NULL, &(const bool){false});
}

DAT_RETURN core_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	return evd_set_switches(evd_handle, NULL, &(const bool){true});
}

DAT_RETURN core_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle)
{
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);
	struct core_cno *cno = NULL;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!evd)
		return core_bad_handle(DAT_NO_SUBTYPE);
	if (cno_handle != DAT_HANDLE_NULL) {
		cno = core_cno_use(cno_handle, evd->ia);
		if (!cno)
			ret = core_bad_handle(DAT_INVALID_HANDLE_CNO);
	}
	if (ret == DAT_SUCCESS && cno && cno == evd->cno) {
		core_cno_disuse(cno); /* EVD-MODIFY-CNO-09: nothing changes, its trigger included */
	} else if (ret == DAT_SUCCESS) {
		if (evd->cno)
			core_cno_leave(evd->cno, evd);
		if (cno)
			core_cno_enter(cno, evd);
		evd_set_cno_locked(evd, cno);
	}
	core_handle_unlock(evd->cell);
	return ret;
}

static DAT_RETURN evd_resize_locked(struct core_evd *evd, DAT_COUNT qlen)
{
	uint32_t count = core_evd_count_locked(evd);
	uint32_t size = evd_ring_size(qlen);
	struct core_event *ring;

	if (evd->has_waiter)
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	if (count > (uint32_t)qlen)
		return core_error(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return core_no_resources(DAT_RESOURCE_MEMORY);
	for (uint32_t i = 0; i < count; i++)
		ring[i] = evd->ring[(evd->head + i) & evd->mask];
	free(evd->ring);
	evd->ring = ring;
	evd->mask = size - 1;
	evd->capacity = (uint32_t)qlen;
	evd->head = 0;
	evd->tail = count;
	return DAT_SUCCESS;
}

DAT_RETURN core_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT qlen)
{
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret;

	if (!evd)
		return core_bad_handle(DAT_NO_SUBTYPE);
	if (qlen <= 0 || qlen > evd->ia->attr.max_evd_qlen)
		ret = core_bad_arg(2);
	else
		ret = evd_resize_locked(evd, qlen);
	core_handle_unlock(evd->cell);
	return ret;
}

/* --- streams --- */

static bool evd_streams_agree(const struct core_evd *evd, enum core_stream stream)
{
	if (stream == CORE_STREAM_SOLICITED)
		return !evd->users[CORE_STREAM_PLAIN] && !evd->users[CORE_STREAM_UNSIGNALLED];
	return !evd->users[CORE_STREAM_SOLICITED];
}

bool core_evd_suits(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need)
{
	struct core_evd *evd = core_handle_lock(handle, DAT_HANDLE_TYPE_EVD);
	bool is_good;

	if (!evd)
		return false;
	is_good = evd->ia == ia && (evd->flags & need) == need;
	core_handle_unlock((struct core_handle *)handle);
	return is_good;
}

DAT_RETURN core_evd_attach(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need,
			   enum core_stream stream, DAT_RETURN bad, unsigned int arg,
			   struct core_evd **evd_out)
{
	struct core_evd *evd = core_handle_lock(handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret = DAT_SUCCESS;
	struct core_handle *cell;

	if (!evd)
		return bad;
	cell = evd->cell;
	if (evd->ia != ia || (evd->flags & need) != need)
		ret = bad;
	else if (!evd_streams_agree(evd, stream))
		ret = core_bad_arg(arg);
	else
		evd->users[stream]++;
	core_handle_unlock(cell);
	if (ret == DAT_SUCCESS)
		*evd_out = evd;
	return ret;
}

void core_evd_reattach(struct core_evd *evd, enum core_stream stream)
{
	core_lock_acquire(&evd->cell->lock);
	evd->users[stream]++;
	core_lock_release(&evd->cell->lock);
}

void core_evd_detach(struct core_evd *evd, enum core_stream stream)
{
	core_lock_acquire(&evd->cell->lock);
	assert(evd->users[stream] > 0);
	evd->users[stream]--;
	core_lock_release(&evd->cell->lock);
}

DAT_RETURN core_evd_borrow(DAT_EVD_HANDLE handle, struct core_ia *ia)
{
	struct core_evd *evd = core_handle_lock(handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret = DAT_SUCCESS;
	struct core_handle *cell;

	if (!evd)
		return core_bad_handle(DAT_INVALID_HANDLE_EVD_ASYNC);
	cell = evd->cell;
	if (!(evd->flags & DAT_EVD_ASYNC_FLAG) ||
	    strcmp(evd->ia->adapter->info.ia_name, ia->adapter->info.ia_name)) {
		ret = core_bad_handle(DAT_INVALID_HANDLE_EVD_ASYNC);
	} else if (!evd_streams_agree(evd, CORE_STREAM_PLAIN)) {
		ret = core_bad_arg(3);
	} else {
		evd->users[CORE_STREAM_PLAIN]++;
		ia->async_evd = handle;
		ia->async_ref = core_handle_ref(cell);
	}
	core_handle_unlock(cell);
	return ret;
}

void core_evd_unborrow(struct core_ia *ia)
{
	struct core_evd *evd = core_handle_lock_ref(ia->async_ref, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return;
	evd->users[CORE_STREAM_PLAIN]--;
	core_handle_unlock(evd->cell);
}

/* --- events in --- */

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
	/* with the lock held: the waiter may free the EVD at once */
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

bool core_evd_give_dto_queued(struct core_evd *evd, const struct core_handle *locked,
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
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret = DAT_SUCCESS;
	struct core_handle *cell;
	DAT_EVENT copy;

	if (!evd)
		return core_bad_handle(DAT_NO_SUBTYPE);
	cell = evd->cell;
	if (!event || event->event_number != DAT_SOFTWARE_EVENT) {
		ret = core_bad_arg(2);
	} else if (!(evd->flags & DAT_EVD_SOFTWARE_FLAG)) {
		ret = core_bad_arg(1);
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

void core_evd_give_back(DAT_EVD_HANDLE handle, struct core_cno *cno)
{
	struct core_evd *evd = core_handle_lock(handle, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return;
	core_cno_give_back(cno, evd);
	core_handle_unlock(evd->cell);
}

/* --- events out --- */

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
		if (to->event_number >= ASYNC_EVENT_FIRST && to->event_number < ASYNC_EVENT_END)
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
