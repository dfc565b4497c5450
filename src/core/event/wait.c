// SPDX-License-Identifier: BSD-2-Clause
/* Polling, arming, sleeping (wait.h). */
#include "core/event/wait.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/instance.h"
#include "core/base/transport_ops.h"

#define WAIT_NO_LIMIT_NS UINT64_C(4000000000000000000) /* 126 years after boot */

/*
 * Called after the type was changed from asynchronous to deferred. glibc (2.36) cancels a thread by
 * a signal. A signal that arrives late takes effect in the next system call that is a cancellation
 * point, even while cancellation is disabled. A cancellation point waits for the pending signal
 * before it returns. So this function calls one while cancellation is still enabled.
 */
static void await_cancel_signal(void)
{
	int saved = errno;
	ssize_t size;
	char byte;

	size = read(-1, &byte, 1);
	(void)size; /* always fails: there is no such descriptor */
	errno = saved;
}

void core_wait_cancel_off(struct core_wait_cancel *old)
{
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old->type);
	if (old->type == PTHREAD_CANCEL_ASYNCHRONOUS)
		await_cancel_signal();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old->state);
}

void core_wait_cancel_restore(const struct core_wait_cancel *old)
{
	pthread_setcancelstate(old->state, NULL);
	pthread_setcanceltype(old->type, NULL);
}

void core_wait_start(struct core_wait *wait, DAT_TIMEOUT timeout_us)
{
	uint64_t now = core_now_ns();

	wait->has_deadline = timeout_us != DAT_TIMEOUT_INFINITE;
	wait->deadline_ns = now + (uint64_t)timeout_us * 1000u;
	wait->cancel_test_ns = now + CORE_CANCEL_SLICE_NS;
	/* a thread that waits for another one should not take the processor from it */
	wait->spin_end_ns = wait->is_event_driven ? now : now + wait->ia->settings.spin_us * 1000u;
	wait->is_interrupted = false;
	wait->is_expired = false;
}

static uint64_t wait_end_ns(const struct core_wait *wait)
{
	return wait->has_deadline ? wait->deadline_ns : WAIT_NO_LIMIT_NS;
}

static void wait_remove_sleeper(const struct core_wait *wait)
{
	atomic_fetch_sub(&wait->ia->sleepers, 1);
}

/* --- on the semaphore --- */

#ifndef HAVE_SEM_CLOCKWAIT
/*
 * For musl. sem_timedwait uses the wall clock, so a step of that clock while a thread waits changes
 * the length of its wait.
 */
static int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until)
{
	struct timespec now, end;

	clock_gettime(clock, &now);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += until->tv_sec - now.tv_sec;
	end.tv_nsec += until->tv_nsec - now.tv_nsec;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	} else if (end.tv_nsec < 0) {
		end.tv_sec--;
		end.tv_nsec += 1000000000;
	}
	return sem_timedwait(sem, &end);
}
#endif

static void wait_cancelled_on_sem(void *arg)
{
	struct core_wait *wait = arg;

	wait_remove_sleeper(wait);
	wait->cancelled(wait->arg);
}

/* Sleeps until woken, interrupted or timed out. Returns 0 or errno. Lock not held. */
static int wait_on_sem(struct core_wait *wait)
{
	/* always with a timeout: the same call serves both cases, and a thread can be cancelled in
	 * it under the sanitizers too */
	const struct timespec until = core_timespec(wait_end_ns(wait));
	int rc;

	pthread_cleanup_push(wait_cancelled_on_sem, wait);
	pthread_setcancelstate(wait->cancel_state, NULL);
	rc = sem_clockwait(&wait->waker->sem, CLOCK_MONOTONIC, &until) ? errno : 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	return rc;
}

/* --- on a bell of the transport --- */

static void wait_begin(struct core_wait *wait)
{
	wait->sleep.bell = NULL;
	wait->sleep.has_slept = false;
	transport_this->sleep_begin(wait->ia, &wait->sleep);
}

/* Lock not held. The waiter is awake, so no thread rings the bell any more. */
static void wait_end(struct core_wait *wait)
{
	if (wait->sleep.bell)
		transport_this->sleep_end(wait->ia, &wait->sleep);
	wait->sleep.bell = NULL;
}

static void wait_cancelled_on_bell(void *arg)
{
	struct core_wait *wait = arg;

	core_lock_acquire(wait->lock);
	wait->waker->is_asleep = false;
	core_lock_release(wait->lock);
	wait_end(wait);
	wait_remove_sleeper(wait);
	wait->cancelled(wait->arg);
}

/*
 * Sleeps in slices; the thread can be cancelled between two of them. With asynchronous cancellation
 * the sleep itself could be cancelled, but each wake-up would cost a second system call (see
 * await_cancel_signal). The end of a slice is returned as a wake-up, and the caller sleeps again.
 */
static int bell_wait_cancellable(struct core_sleep *sleep, uint64_t end_ns)
{
	uint64_t slice_ns = core_now_ns() + CORE_CANCEL_SLICE_NS;
	int rc;

	pthread_testcancel();
	rc = core_bell_wait(sleep->bell, sleep->seen, end_ns < slice_ns ? end_ns : slice_ns);
	return rc == ETIMEDOUT && slice_ns < end_ns ? 0 : rc;
}

static int wait_on_bell(struct core_wait *wait)
{
	int rc;

	pthread_cleanup_push(wait_cancelled_on_bell, wait);
	pthread_setcancelstate(wait->cancel_state, NULL);
	rc = bell_wait_cancellable(&wait->sleep, wait_end_ns(wait));
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	return rc;
}

/* --- awake --- */

/* For a thread that finds work at each poll, or spins, and so does not sleep. Lock not held. */
static void wait_test_cancel(struct core_wait *wait)
{
	uint64_t now = core_now_ns();

	if (now < wait->cancel_test_ns)
		return;
	wait->cancel_test_ns = now + CORE_CANCEL_SLICE_NS;
	pthread_cleanup_push(wait->cancelled, wait->arg);
	pthread_setcancelstate(wait->cancel_state, NULL);
	pthread_testcancel();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
}

/* --- the loop --- */

static void wait_sleep_locked(struct core_wait *wait)
{
	struct core_waker *waker = wait->waker;
	int rc;

	waker->is_asleep = true;
	waker->bell = wait->sleep.bell;
	wait->sleep.has_slept = waker->bell;
	core_lock_release(wait->lock);
	rc = waker->bell ? wait_on_bell(wait) : wait_on_sem(wait);
	core_lock_acquire(wait->lock);
	waker->is_asleep = false;
	wait->is_interrupted = rc == EINTR;
	wait->is_expired = rc == ETIMEDOUT && wait->has_deadline;
}

/* Polls once. True: the waiter may sleep, and is counted in ia->sleepers. Lock not held. */
static bool wait_poll(struct core_wait *wait)
{
	struct core_ia *ia = wait->ia;

	if (transport_this->progress(ia) > 0 || core_now_ns() < wait->spin_end_ns)
		return false;
	atomic_fetch_add(&ia->sleepers, 1);
	if (transport_this->arm(ia) <= 0)
		return true;
	wait_remove_sleeper(wait);
	return false;
}

/* Returns whether the next step has to test for a cancellation. */
static bool wait_step_locked(struct core_wait *wait, bool has_test)
{
	bool may_sleep;

	core_lock_release(wait->lock);
	if (has_test)
		wait_test_cancel(wait);
	may_sleep = wait_poll(wait);
	if (may_sleep)
		wait_begin(wait);
	core_lock_acquire(wait->lock);
	if (!wait->is_over(wait->arg)) {
		if (wait->has_deadline && core_now_ns() >= wait->deadline_ns)
			wait->is_expired = true;
		else if (may_sleep)
			wait_sleep_locked(wait);
	}
	if (may_sleep)
		wait_remove_sleeper(wait);
	if (wait->sleep.bell) {
		core_lock_release(wait->lock);
		wait_end(wait);
		core_lock_acquire(wait->lock);
	}
	return !may_sleep;
}

void core_wait_locked(struct core_wait *wait)
{
	bool has_test = false;

	while (!wait->is_over(wait->arg) && !wait->is_expired && !wait->is_interrupted)
		has_test = wait_step_locked(wait, has_test);
}
