// SPDX-License-Identifier: BSD-2-Clause
/* Polling, arming, sleeping (wait.h). */
#include "core/wait.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "core/ia.h"
#include "core/transport.h"

#define WAIT_FOR_EVER_NS UINT64_C(4000000000000000000) /* 126 years after the machine started */

static uint64_t wait_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * The type too, and first: glibc (2.36) cancels a thread of the asynchronous type although it has
 * switched cancellation off, when the signal was sent before that and arrives after.
 */
void core_wait_cancel_off(struct core_wait_cancel *old)
{
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old->type);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old->state);
}

void core_wait_cancel_restore(const struct core_wait_cancel *old)
{
	pthread_setcancelstate(old->state, NULL);
	pthread_setcanceltype(old->type, NULL);
}

void core_wait_start(struct core_wait *wait, DAT_TIMEOUT timeout_us)
{
	uint64_t now = wait_now_ns();

	wait->has_deadline = timeout_us != DAT_TIMEOUT_INFINITE;
	wait->deadline_ns = now + (uint64_t)timeout_us * 1000u;
	wait->spin_end_ns = now + wait->ia->settings.spin_us * 1000u;
	wait->is_interrupted = false;
	wait->is_expired = false;
}

/* Sleeps until woken, interrupted or out of time: 0 or errno. Lock not held. */
static int wait_sleep(struct core_wait *wait)
{
	/* always with a limit: one system call for both kinds, and one that sanitizers let us leave
	 * by cancellation */
	uint64_t end_ns = wait->has_deadline ? wait->deadline_ns : WAIT_FOR_EVER_NS;
	struct timespec until = {(time_t)(end_ns / 1000000000u), (long)(end_ns % 1000000000u)};
	int old_type;
	int rc;

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old_type);
	pthread_cleanup_push(wait->cancelled, wait->arg);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	rc = sem_clockwait(wait->wake, CLOCK_MONOTONIC, &until) ? errno : 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	pthread_setcanceltype(old_type, NULL);
	return rc;
}

/* One round of polling; true when the waiter may go to sleep. Lock not held. */
static bool wait_poll(struct core_wait *wait)
{
	struct core_ia *ia = wait->ia;

	if (ia->ops->progress(ia) > 0)
		return false;
	if (wait_now_ns() < wait->spin_end_ns)
		return false;
	return ia->ops->arm(ia) <= 0;
}

static void wait_step_locked(struct core_wait *wait)
{
	bool may_sleep;
	int rc;

	core_lock_release(wait->lock);
	may_sleep = wait_poll(wait);
	core_lock_acquire(wait->lock);
	if (wait->is_over(wait->arg))
		return;
	if (wait->has_deadline && wait_now_ns() >= wait->deadline_ns) {
		wait->is_expired = true;
		return;
	}
	if (!may_sleep)
		return;
	*wait->is_asleep = true;
	core_lock_release(wait->lock);
	rc = wait_sleep(wait);
	core_lock_acquire(wait->lock);
	wait->is_interrupted = rc == EINTR;
	wait->is_expired = rc == ETIMEDOUT && wait->has_deadline;
}

void core_wait_locked(struct core_wait *wait)
{
	while (!wait->is_over(wait->arg) && !wait->is_expired && !wait->is_interrupted)
		wait_step_locked(wait);
}

void core_wait_settle_locked(struct core_wait *wait)
{
	if (!*wait->is_asleep)
		while (!sem_trywait(wait->wake))
			;
	*wait->is_asleep = false;
}
