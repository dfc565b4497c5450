// SPDX-License-Identifier: BSD-2-Clause
/* Locks that become one thread's own (lock.h): taking them by the mutex, and taking them away. */
#include "core/base/lock.h"

#include <sched.h>
#include <time.h>

#include "core/base/cancel.h"
#include "core/base/fence.h"

#define STREAK 64u	/* before a lock is a thread's own for the first time */
#define LOSSES_MOST 20u /* doublings of that at most */
#define SOON_MS 10u	/* a loss so soon after the last one counts */
#define SPINS 100u

void core_lock_init(struct core_lock *lock)
{
	int rc = pthread_mutex_init(&lock->mutex, NULL);

	assert(rc == 0);
	(void)rc;
	atomic_init(&lock->owner, 0);
	atomic_init(&lock->inside, 0);
	lock->is_entered = false;
	lock->losses = 0;
	lock->lost_ms = 0;
	lock->former = 0;
	lock->streak = 0;
	lock->last = 0;
}

void core_lock_destroy(struct core_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

static void count_loss(struct core_lock *lock)
{
	struct timespec now;
	uint16_t now_ms;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	now_ms = (uint16_t)((uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u);
	if ((uint16_t)(now_ms - lock->lost_ms) > SOON_MS)
		lock->losses /= 2;
	else if (lock->losses < LOSSES_MOST)
		lock->losses++;
	lock->lost_ms = now_ms;
}

static uint32_t page_of(uintptr_t thread)
{
	return (uint32_t)(thread >> 12);
}

/* Mutex held: the owner is out, and stays out, when it returns. */
static void take_away(struct core_lock *lock, uintptr_t owner)
{
	const struct timespec pause = {0, 50000};
	unsigned int spins;
	/* a sleep is a cancellation point, and the mutex would stay locked */
	int state = core_cancel_off();

	lock->former = page_of(owner);
	atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
	core_fence_everywhere(CORE_FENCE_PROCESS);
	/* acquire: pairs with the release in core_lock_release */
	for (spins = 0; atomic_load_explicit(&lock->inside, memory_order_acquire); spins++) {
		if (spins < SPINS)
			sched_yield();
		else /* it may have a lower priority than we have */
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	core_cancel_restore(state);
	count_loss(lock);
}

/* Mutex held: makes the lock ours. */
static void claim(struct core_lock *lock)
{
	uintptr_t owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);

	if (owner)
		take_away(lock, owner);
	lock->is_entered = false;
}

/* Mutex held: has this thread come alone for long? */
static void lock_count(struct core_lock *lock, uintptr_t self)
{
	if (lock->former == page_of(self))
		lock->former = 0;
	if (lock->last != self) {
		lock->last = self;
		lock->streak = 0;
		return;
	}
	if (++lock->streak < STREAK << lock->losses)
		return;
	lock->streak = 0;
	if (lock->former)
		return;
	if (core_fence_can(CORE_FENCE_PROCESS))
		atomic_store_explicit(&lock->owner, self, memory_order_relaxed);
}

void core_lock_acquire_shared(struct core_lock *lock)
{
	pthread_mutex_lock(&lock->mutex);
	claim(lock);
	lock_count(lock, core_lock_self());
}

bool core_lock_try_shared(struct core_lock *lock)
{
	if (pthread_mutex_trylock(&lock->mutex))
		return false;
	claim(lock);
	return true;
}

void core_lock_release_shared(struct core_lock *lock)
{
	/* if the lock is ours by now we shall enter without the mutex from now on */
	lock->is_entered = atomic_load_explicit(&lock->owner, memory_order_relaxed);
	pthread_mutex_unlock(&lock->mutex);
}

void core_lock_wait(struct core_lock *lock, pthread_cond_t *cond)
{
	if (lock->is_entered) {
		/* a condition goes with the mutex: once more, by that */
		core_lock_release(lock);
		pthread_mutex_lock(&lock->mutex);
		claim(lock);
		return;
	}
	/* nobody enters without the mutex while we wait for it */
	atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
	pthread_cond_wait(cond, &lock->mutex);
	claim(lock);
}
