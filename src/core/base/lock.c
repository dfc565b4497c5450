// SPDX-License-Identifier: BSD-2-Clause
/* Biased locks (lock.h): taking the mutex, biasing, and revoking the bias. */
#include "core/base/lock.h"

#include <time.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/fence.h"

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
	if ((uint16_t)(now_ms - lock->lost_ms) > CORE_LOCK_LOSS_WINDOW_MS)
		lock->losses /= 2;
	else if (lock->losses < CORE_LOCK_LOSSES_MAX)
		lock->losses++;
	lock->lost_ms = now_ms;
}

static uint32_t thread_page(uintptr_t thread)
{
	return (uint32_t)(thread >> 12);
}

/* Mutex held. At return the owner is outside and cannot enter without the mutex. */
static void revoke_bias(struct core_lock *lock, uintptr_t owner)
{
	unsigned int turns = 0;
	/* the sleep is a cancellation point, and the mutex would stay locked */
	int state = core_cancel_off();

	lock->former = thread_page(owner);
	atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
	core_fence_heavy(CORE_FENCE_PROCESS);
	/*
	 * acquire: pairs with the release in core_lock_release, else what the owner did inside is
	 * not seen
	 */
	while (atomic_load_explicit(&lock->inside, memory_order_acquire))
		core_wait_turn(&turns);
	core_cancel_restore(state);
	count_loss(lock);
}

/* Mutex held: removes the bias, if any. The caller then holds the lock by the mutex. */
static void lock_unbias(struct core_lock *lock)
{
	uintptr_t owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);

	if (owner)
		revoke_bias(lock, owner);
	lock->is_entered = false;
}

/* Mutex held: biases the lock to this thread if it alone took the mutex often enough. */
static void lock_consider_bias(struct core_lock *lock, uintptr_t self)
{
	if (lock->former == thread_page(self))
		lock->former = 0;
	if (lock->last != self) {
		lock->last = self;
		lock->streak = 0;
		return;
	}
	if (++lock->streak < (uint32_t)CORE_FENCE_AFTER_LOCKS << lock->losses)
		return;
	lock->streak = 0;
	if (lock->former)
		return;
	if (core_fence_is_supported(CORE_FENCE_PROCESS))
		atomic_store_explicit(&lock->owner, self, memory_order_relaxed);
}

void core_lock_acquire_shared(struct core_lock *lock)
{
	pthread_mutex_lock(&lock->mutex);
	lock_unbias(lock);
	lock_consider_bias(lock, core_lock_self());
}

void core_lock_release_shared(struct core_lock *lock)
{
	/* if the lock was just biased to this thread, it enters without the mutex from now on */
	lock->is_entered = atomic_load_explicit(&lock->owner, memory_order_relaxed);
	pthread_mutex_unlock(&lock->mutex);
}

void core_lock_wait(struct core_lock *lock, pthread_cond_t *cond)
{
	if (lock->is_entered) {
		/*
		 * A condition variable needs the mutex. Take the lock again by the mutex and let
		 * the caller test its condition again.
		 */
		core_lock_release(lock);
		pthread_mutex_lock(&lock->mutex);
		lock_unbias(lock);
		return;
	}
	/* nobody may enter without the mutex while this thread waits */
	atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
	pthread_cond_wait(cond, &lock->mutex);
	lock_unbias(lock);
}
