// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_evd_wait. The waiter owns the EVD until the call returns. Cancellation is disabled except
 * where the waiter sleeps (wait.c), so that asynchronous cancellation cannot happen while a lock is
 * held.
 */
#include <pthread.h>

#include "core/base/calls.h"
#include "core/base/hooks.h"
#include "core/base/instance.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/event/evd_queue.h"
#include "core/event/wait.h"

/* A waiter finds events of these streams by polling. Other threads post all other events, such as
 * those of connections. */
#define EVD_COMPLETION_FLAGS (DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)

static bool wait_is_over(void *arg)
{
	const struct core_evd *evd = arg;

	return evd->release || evd->is_dying;
}

/* The waiter no longer owns the EVD. */
static void wait_leave_locked(struct core_evd *evd)
{
	evd->has_waiter = false;
	core_handle_clear_slow(evd->cell, CORE_EVD_SLOW_WAITER);
	core_waker_reset_locked(&evd->waker);
	core_evd_idle_locked(evd);
}

static void wait_cancelled(void *arg)
{
	struct core_evd *evd = arg;
	struct core_handle *cell = evd->cell;

	core_lock_acquire(&cell->lock);
	wait_leave_locked(evd);
	core_lock_release(&cell->lock);
}

/* Owns the EVD and blocks until released. The lock is held at the call and at return. */
static DAT_RETURN wait_block_locked(struct core_evd *evd, DAT_TIMEOUT timeout_us,
				    DAT_COUNT threshold, int cancel_state)
{
	struct core_wait wait = {.ia = evd->ia,
				 .lock = &evd->cell->lock,
				 .waker = &evd->waker,
				 .is_over = wait_is_over,
				 .cancelled = wait_cancelled,
				 .arg = evd,
				 .cancel_state = cancel_state,
				 .is_event_driven = !(evd->flags & EVD_COMPLETION_FLAGS)};

	core_evd_busy_locked(evd);
	evd->blocked++;
	evd->has_waiter = true;
	core_handle_set_slow(evd->cell, CORE_EVD_SLOW_WAITER);
	evd->release = CORE_RELEASE_NONE;
	evd->threshold = threshold;
	core_wait_start(&wait, timeout_us);
	core_wait_locked(&wait);
	wait_leave_locked(evd);
	if (evd->is_dying)
		return core_error(DAT_ABORT, DAT_NO_SUBTYPE);
	if (evd->release == CORE_RELEASE_UNWAITABLE)
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	if (evd->release == CORE_RELEASE_EVENT)
		return DAT_SUCCESS;
	if (wait.is_interrupted)
		return core_error(DAT_INTERRUPTED_CALL, DAT_NO_SUBTYPE);
	return core_error(DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE);
}

static DAT_RETURN wait_check_locked(const struct core_evd *evd, DAT_COUNT threshold,
				    const DAT_EVENT *event, const DAT_COUNT *nmore)
{
	if (threshold <= 0 || (uint32_t)threshold > evd->capacity)
		return core_bad_range(CORE_ARG(evd_wait, 3, threshold), threshold, 1,
				      evd->capacity);
	if (!event)
		return core_bad_null(CORE_ARG(evd_wait, 4, event));
	if (!nmore)
		return core_bad_null(CORE_ARG(evd_wait, 5, n_more_events));
	if (!evd->is_waitable)
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	if (evd->has_waiter)
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	if (threshold > 1 &&
	    (evd->users[CORE_STREAM_UNSIGNALLED] || evd->users[CORE_STREAM_SOLICITED]))
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD);
	return DAT_SUCCESS;
}

static DAT_RETURN wait_locked(struct core_evd *evd, DAT_TIMEOUT timeout_us, DAT_COUNT threshold,
			      int cancel_state, DAT_EVENT *event, DAT_COUNT *nmore,
			      struct core_ref *srq_out)
{
	DAT_RETURN ret = wait_check_locked(evd, threshold, event, nmore);

	if (ret == DAT_SUCCESS)
		evd->waits++;
	if (ret == DAT_SUCCESS && core_evd_count_locked(evd) < (uint32_t)threshold) {
		/* EVD-WAIT-30: an event that arrived before the call counts as queued */
		if (!core_evd_drive_locked(evd))
			return core_error(DAT_ABORT, DAT_NO_SUBTYPE);
		/* other threads may have changed the EVD meanwhile */
		ret = wait_check_locked(evd, threshold, event, nmore);
	}
	if (ret != DAT_SUCCESS)
		return ret;
	if (core_evd_count_locked(evd) < (uint32_t)threshold)
		ret = wait_block_locked(evd, timeout_us, threshold, cancel_state);
	if (ret == DAT_SUCCESS)
		*srq_out = core_evd_take_locked(evd, event);
	*nmore = (DAT_COUNT)core_evd_count_locked(evd);
	return ret;
}

DAT_RETURN core_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *nmore)
{
	struct core_ref srq = {NULL, 0};
	struct core_evd *evd;
	struct core_handle *cell;
	struct core_wait_cancel old;
	DAT_RETURN ret;

	core_wait_cancel_off(&old);
	evd = core_handle_lock(evd_handle, DAT_HANDLE_TYPE_EVD);
	if (evd) {
		cell = evd->cell;
		ret = wait_locked(evd, timeout, threshold, old.state, event, nmore, &srq);
		core_handle_unlock(cell);
	} else {
		ret = core_bad_handle(CORE_ARG(evd_wait, 1, evd_handle), DAT_NO_SUBTYPE,
				      evd_handle);
	}
	if (srq.cell)
		core_hooks.srq_return(srq);
	core_wait_cancel_restore(&old);
	return ret;
}
