// SPDX-License-Identifier: BSD-2-Clause
/* dat_cno_wait. */
#include <pthread.h>

#include "core/base/calls.h"
#include "core/base/instance.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/event/cno_trigger.h"
#include "core/event/evd_queue.h"
#include "core/event/wait.h"

static void waiter_unlink_locked(struct core_cno_waiter *waiter)
{
	struct core_cno_waiter **link = &waiter->cno->waiters;

	while (*link && *link != waiter)
		link = &(*link)->next;
	if (*link)
		*link = waiter->next;
}

static bool waiter_is_over(void *arg)
{
	const struct core_cno_waiter *waiter = arg;

	return waiter->is_released;
}

/* CNO-WAIT-28: a trigger that this waiter was given goes to the next one, or back to the queue. */
static void waiter_cancelled(void *arg)
{
	struct core_cno_waiter *waiter = arg;
	struct core_handle *cell = waiter->cno->cell;

	core_lock_acquire(&cell->lock);
	waiter_unlink_locked(waiter);
	if (waiter->is_released && waiter->evd != DAT_HANDLE_NULL) {
		core_lock_release(&cell->lock); /* the EVD's lock has a smaller rank */
		core_evd_return_trigger(waiter->evd, waiter->cno);
		core_lock_acquire(&cell->lock);
	}
	core_cno_idle_locked(waiter->cno);
	core_lock_release(&cell->lock);
	core_waker_fini(&waiter->waker);
}

static void waiter_append_locked(struct core_cno_waiter *waiter)
{
	struct core_cno_waiter **link = &waiter->cno->waiters;

	while (*link)
		link = &(*link)->next;
	waiter->next = NULL;
	*link = waiter;
}

/* Blocks until released, interrupted or timed out. Locked. On success waiter->evd is set. */
static DAT_RETURN cno_block_locked(struct core_cno *cno, DAT_TIMEOUT timeout_us, int cancel_state,
				   struct core_cno_waiter *waiter)
{
	struct core_wait wait = {.ia = cno->ia,
				 .lock = &cno->cell->lock,
				 .waker = &waiter->waker,
				 .is_over = waiter_is_over,
				 .cancelled = waiter_cancelled,
				 .arg = waiter,
				 .cancel_state = cancel_state};

	waiter_append_locked(waiter);
	cno->busy++;
	core_wait_start(&wait, timeout_us);
	core_wait_locked(&wait);
	waiter_unlink_locked(waiter);
	core_cno_idle_locked(waiter->cno);
	if (waiter->is_released)
		return DAT_SUCCESS;
	if (wait.is_interrupted)
		return core_error(DAT_INTERRUPTED_CALL, DAT_NO_SUBTYPE);
	return (DAT_RETURN)DAT_QUEUE_EMPTY; /* bare: GEN-07 */
}

/* Polls once, so that events from before the call can trigger. False: the CNO was freed. */
static bool cno_poll_locked(struct core_cno *cno)
{
	struct core_ia *ia = cno->ia;

	cno->busy++;
	core_handle_unlock(cno->cell);
	(void)transport_this->progress(ia);
	core_lock_acquire(&cno->cell->lock);
	core_cno_idle_locked(cno);
	return !cno->is_dying;
}

CORE_COLD static DAT_RETURN cno_bad_handle(DAT_CNO_HANDLE handle)
{
	return core_bad_handle(CORE_ARG(cno_wait, 1, cno_handle), DAT_INVALID_HANDLE_CNO, handle);
}

static DAT_RETURN cno_wait_locked(struct core_cno *cno, DAT_TIMEOUT timeout_us, int cancel_state,
				  DAT_EVD_HANDLE *evd_out)
{
	struct core_cno_waiter waiter = {.cno = cno, .evd = DAT_HANDLE_NULL};
	DAT_RETURN ret;

	*evd_out = DAT_HANDLE_NULL;
	if (!cno->first && !cno_poll_locked(cno)) /* CNO-WAIT-17, GEN-26 */
		return cno->is_freed ? cno_bad_handle(cno->cell) : DAT_SUCCESS;
	if (cno->first) { /* then no thread waits, see cno_queue_trigger_locked */
		*evd_out = core_cno_pop_trigger_locked(cno);
		return DAT_SUCCESS;
	}
	core_waker_init(&waiter.waker);
	ret = cno_block_locked(cno, timeout_us, cancel_state, &waiter);
	core_waker_fini(&waiter.waker);
	if (ret == DAT_SUCCESS)
		*evd_out = waiter.evd;
	return ret;
}

DAT_RETURN core_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle)
{
	struct core_handle *cell;
	struct core_cno *cno;
	struct core_wait_cancel old;
	DAT_RETURN ret;

	core_wait_cancel_off(&old);
	cno = core_handle_lock(cno_handle, DAT_HANDLE_TYPE_CNO);
	if (cno) {
		cell = cno->cell;
		ret = evd_handle ? cno_wait_locked(cno, timeout, old.state, evd_handle)
				 : core_bad_null(CORE_ARG(cno_wait, 3, evd_handle));
		core_handle_unlock(cell);
	} else {
		ret = cno_bad_handle(cno_handle);
	}
	core_wait_cancel_restore(&old);
	return ret;
}
