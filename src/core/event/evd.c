// SPDX-License-Identifier: BSD-2-Clause
/*
 * EVDs (event dispatchers): creation, destruction, queries and changes, and the streams that feed
 * them. evd_queue.c has the queue of events, evd_wait.c the waiting.
 */
#include "core/event/evd_queue.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/hooks.h"
#include "core/base/instance.h"
#include "core/base/status.h"
#include "core/event/cno_trigger.h"

#define EVD_FLAGS_ALL (DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG)

/* Sets the CNO of the EVD, or NULL. Locked, or not yet published. */
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
	evd->capacity = (uint32_t)qlen;
	evd->mask = evd_ring_size(qlen) - 1;
	evd->ring = calloc((size_t)evd->mask + 1, sizeof(*evd->ring));
	if (!evd->ring)
		return false;
	evd->is_enabled = true;
	evd->is_waitable = true;
	core_waker_init(&evd->waker);
	pthread_cond_init(&evd->idle, NULL);
	return true;
}

static void evd_fini(struct core_evd *evd)
{
	pthread_cond_destroy(&evd->idle);
	core_waker_fini(&evd->waker);
	free(evd->counted_before);
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

static DAT_RETURN evd_too_long(DAT_COUNT qlen, DAT_COUNT max)
{
	(void)core_bad_range(CORE_ARG(evd_create, 2, evd_min_qlen), qlen, 1, max);
	return core_no_resources(DAT_RESOURCE_TEVD);
}

static DAT_RETURN evd_create_on(struct core_ia *ia, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
				DAT_EVD_FLAGS flags, const DAT_EVD_HANDLE *handle,
				struct core_evd **evd_out)
{
	DAT_EVD_FLAGS all = EVD_FLAGS_ALL | ia->adapter->front->evd_flags;
	struct core_cno *cno = NULL;
	DAT_RETURN ret;

	if (cno_handle != DAT_HANDLE_NULL) {
		cno = core_cno_use(cno_handle, ia);
		if (!cno)
			return core_bad_handle(CORE_ARG(evd_create, 3, cno_handle),
					       DAT_INVALID_HANDLE_CNO, cno_handle);
	}
	if (qlen <= 0)
		ret = core_bad_arg(CORE_ARG(evd_create, 2, evd_min_qlen), "%d is not positive",
				   (int)qlen);
	else if (!flags)
		ret = core_bad_arg(CORE_ARG(evd_create, 4, evd_flags), "0x0 has no flag");
	else if (flags & ~all)
		ret = core_bad_bits(CORE_ARG(evd_create, 4, evd_flags), flags, all);
	else if (!handle)
		ret = core_bad_null(CORE_ARG(evd_create, 5, evd_handle));
	else if (qlen > ia->attr.max_evd_qlen)
		ret = evd_too_long(qlen, ia->attr.max_evd_qlen);
	else
		ret = core_evd_new(ia, qlen, flags, cno, evd_out);
	if (cno && ret == DAT_SUCCESS)
		core_cno_enter(cno, *evd_out);
	else if (cno)
		core_cno_disuse(cno);
	return ret;
}

DAT_RETURN core_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
			   DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd_handle)
{
	CORE_NO_CANCELLATION;
	struct core_ia *ia = core_ia_enter(ia_handle);
	struct core_evd *evd = NULL;
	DAT_RETURN ret;

	if (ia)
		ret = evd_create_on(ia, qlen, cno_handle, flags, evd_handle, &evd);
	else
		ret = core_bad_handle(CORE_ARG(evd_create, 1, ia_handle), DAT_INVALID_HANDLE_IA,
				      ia_handle);
	if (evd_handle)
		*evd_handle = ret == DAT_SUCCESS ? evd->cell : DAT_HANDLE_NULL;
	if (ia)
		core_ia_leave(ia);
	return ret;
}

/* Discards the queued events: rejects connection requests (EVD-FREE-12), frees SRQ entries. */
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
		core_lock_wait(&cell->lock, &evd->idle);
	core_lock_release(&cell->lock);
	if (evd->has_detached_triggers)
		core_cno_drop_evd(evd->ia, cell);
	if (evd->cno)
		core_cno_evd_freed(evd->cno, evd);
	evd_drop_events(evd);
	core_ia_remove(evd->ia, cell, DAT_HANDLE_TYPE_EVD);
	core_handle_release(cell);
	evd_fini(evd);
}

DAT_RETURN core_evd_free(DAT_EVD_HANDLE evd_handle)
{
	CORE_NO_CANCELLATION;
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return core_bad_handle(CORE_ARG(evd_free, 1, evd_handle), DAT_NO_SUBTYPE,
				       evd_handle);
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
	CORE_NO_CANCELLATION;
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret;

	if (!evd)
		return core_bad_handle(CORE_ARG(evd_query, 1, evd_handle), DAT_NO_SUBTYPE,
				       evd_handle);
	ret = core_check_query(CORE_ARG(evd_query, 2, evd_param_mask), mask, DAT_EVD_FIELD_ALL,
			       CORE_ARG(evd_query, 3, evd_param), param);
	if (ret == DAT_SUCCESS) {
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

static DAT_RETURN evd_set_switches(const char *call, DAT_EVD_HANDLE evd_handle,
				   const bool *is_enabled, const bool *is_waitable)
{
	const struct core_arg arg = {call, "evd_handle", 1};
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return core_bad_handle(&arg, DAT_NO_SUBTYPE, evd_handle);
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
	CORE_NO_CANCELLATION;

	return evd_set_switches("dat_evd_enable", evd_handle, &(const bool){true}, NULL);
}

DAT_RETURN core_evd_disable(DAT_EVD_HANDLE evd_handle)
{
	CORE_NO_CANCELLATION;

	return evd_set_switches("dat_evd_disable", evd_handle, &(const bool){false}, NULL);
}

DAT_RETURN core_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	CORE_NO_CANCELLATION;

	return evd_set_switches("dat_evd_set_unwaitable", evd_handle, NULL, &(const bool){false});
}

DAT_RETURN core_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	CORE_NO_CANCELLATION;

	return evd_set_switches("dat_evd_clear_unwaitable", evd_handle, NULL, &(const bool){true});
}

static DAT_RETURN evd_change_cno_locked(struct core_evd *evd, struct core_cno *cno)
{
	struct core_trigger *spare = NULL;

	if (evd->cno) {
		spare = core_cno_new_trigger();
		if (!spare)
			return core_no_resources(DAT_RESOURCE_MEMORY);
		core_cno_leave(evd->cno, evd, spare);
	}
	if (cno)
		core_cno_enter(cno, evd);
	evd_set_cno_locked(evd, cno);
	return DAT_SUCCESS;
}

/*
 * Completions of pending requests now trigger the CNO. A transport may report completions late
 * while nobody waits for them, so it is armed as for a thread that begins to wait.
 */
static void evd_arm_for_cno_locked(struct core_evd *evd)
{
	bool is_armed;

	core_evd_busy_locked(evd);
	core_handle_unlock(evd->cell);
	is_armed = core_evd_drive_and_arm(evd->ia);
	core_lock_acquire(&evd->cell->lock);
	core_evd_idle_locked(evd);
	if (!is_armed && evd->cno)
		core_cno_request_arm(evd->cno); /* a later dequeue tries again */
}

DAT_RETURN core_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle)
{
	CORE_NO_CANCELLATION;
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);
	struct core_cno *cno = NULL;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!evd)
		return core_bad_handle(CORE_ARG(evd_modify_cno, 1, evd_handle), DAT_NO_SUBTYPE,
				       evd_handle);
	if (cno_handle != DAT_HANDLE_NULL) {
		cno = core_cno_use(cno_handle, evd->ia);
		if (!cno)
			ret = core_bad_handle(CORE_ARG(evd_modify_cno, 2, cno_handle),
					      DAT_INVALID_HANDLE_CNO, cno_handle);
	}
	if (ret == DAT_SUCCESS && cno && cno == evd->cno) {
		core_cno_disuse(cno); /* EVD-MODIFY-CNO-09: a queued trigger stays, too */
	} else if (ret == DAT_SUCCESS) {
		ret = evd_change_cno_locked(evd, cno);
		if (ret != DAT_SUCCESS && cno)
			core_cno_disuse(cno);
		else if (cno)
			evd_arm_for_cno_locked(evd);
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
	CORE_NO_CANCELLATION;
	struct core_evd *evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret;

	if (!evd)
		return core_bad_handle(CORE_ARG(evd_resize, 1, evd_handle), DAT_NO_SUBTYPE,
				       evd_handle);
	if (qlen <= 0 || qlen > evd->ia->attr.max_evd_qlen)
		ret = core_bad_range(CORE_ARG(evd_resize, 2, evd_min_qlen), qlen, 1,
				     evd->ia->attr.max_evd_qlen);
	else
		ret = evd_resize_locked(evd, qlen);
	core_handle_unlock(evd->cell);
	return ret;
}

static const uint32_t none_leaving[CORE_STREAM_KINDS];

/* Does the EVD have a stream of that kind, apart from those that leave? */
static bool evd_has_other(const struct core_evd *evd, enum core_stream kind,
			  const uint32_t leaving[CORE_STREAM_KINDS])
{
	assert(evd->users[kind] >= leaving[kind]);
	return evd->users[kind] > leaving[kind];
}

static bool evd_stream_is_compatible(const struct core_evd *evd, enum core_stream stream,
				     const uint32_t leaving[CORE_STREAM_KINDS])
{
	if (stream == CORE_STREAM_SOLICITED)
		return !evd_has_other(evd, CORE_STREAM_PLAIN, leaving) &&
		       !evd_has_other(evd, CORE_STREAM_UNSIGNALLED, leaving);
	return !evd_has_other(evd, CORE_STREAM_SOLICITED, leaving);
}

bool core_evd_suits(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need)
{
	struct core_evd *evd = core_handle_lock_in(handle, DAT_HANDLE_TYPE_EVD, ia);
	bool is_good;

	if (!evd)
		return false;
	is_good = (evd->flags & need) == need;
	core_handle_unlock(evd->cell);
	return is_good;
}

enum core_evd_fit core_evd_attach(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need,
				  enum core_stream stream, struct core_evd **evd_out)
{
	return core_evd_attach_for(handle, ia, need, stream, none_leaving, evd_out);
}

enum core_evd_fit core_evd_attach_for(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need,
				      enum core_stream stream,
				      const uint32_t leaving[CORE_STREAM_KINDS],
				      struct core_evd **evd_out)
{
	struct core_evd *evd = core_handle_lock_in(handle, DAT_HANDLE_TYPE_EVD, ia);
	enum core_evd_fit fit = CORE_EVD_FITS;

	if (!evd)
		return CORE_EVD_UNFIT;
	if ((evd->flags & need) != need)
		fit = CORE_EVD_UNFIT;
	else if (!evd_stream_is_compatible(evd, stream, leaving))
		fit = CORE_EVD_CONFLICT;
	else
		evd->users[stream]++;
	core_handle_unlock(evd->cell);
	if (fit == CORE_EVD_FITS)
		*evd_out = evd;
	return fit;
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

static const struct core_arg async_evd = CORE_ARG_INIT(ia_openv, 3, asynch_evd_handle);

DAT_RETURN core_evd_borrow(DAT_EVD_HANDLE handle, struct core_ia *ia)
{
	struct core_evd *evd = core_handle_lock(handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret = DAT_SUCCESS;
	struct core_handle *cell;

	if (!evd)
		return core_bad_handle(&async_evd, DAT_INVALID_HANDLE_EVD_ASYNC, handle);
	cell = evd->cell;
	if (!(evd->flags & DAT_EVD_ASYNC_FLAG) || evd->ia->adapter->front != ia->adapter->front ||
	    strcmp(evd->ia->adapter->info.ia_name, ia->adapter->info.ia_name)) {
		ret = core_bad_handle(&async_evd, DAT_INVALID_HANDLE_EVD_ASYNC, handle);
	} else if (!evd_stream_is_compatible(evd, CORE_STREAM_PLAIN, none_leaving)) {
		ret = core_bad_arg(
			&async_evd,
			"%s receives events that need DAT_COMPLETION_SOLICITED_WAIT_FLAG",
			core_handle_name(cell).text);
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
