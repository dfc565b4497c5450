// SPDX-License-Identifier: BSD-2-Clause
/*
 * Locks of the core, and their order. A thread may take a lock only while every lock it holds has
 * a smaller rank:
 *
 *   1 service point (PSP, RSP)     2 connection request      3 endpoint
 *   4 shared receive queue         5 interface adapter (object lists, limits)
 *   6 memory region, memory window, protection zone          7 event dispatcher
 *   8 notification object          9 locks inside a transport, arena
 *
 * core_lock_try waits for nobody, and is outside that order: a dequeue on its fast path holds its
 * dispatcher's lock and tries an endpoint's. Two locks of one rank are never held together, but by
 * core_lock_try. A transport's own locks are leaves: it never calls up
 * into the core with one held. No lock is held over a call into the consumer or a blocking call.
 *
 * Most endpoints and dispatchers are used by one thread, which should pay no atomic operation for
 * the others that might come. So a lock that one thread has taken many times in a row becomes that
 * thread's own: it then enters and leaves by plain stores to `inside`. Another thread first takes
 * the mutex, then takes the ownership away, and has the kernel run a memory barrier on every other
 * thread of the process (membarrier): after that either the owner sees that it owns the lock no
 * more, or its being inside is seen and waited for. Each time a lock is taken away soon
 * after the last time, it takes twice as long until it is somebody's own again, so one that threads
 * really share stays a mutex; one that was left alone for a while becomes somebody's own sooner.
 *
 * An owner may be stopped between its look at `owner` and its store to `inside`. What it stores
 * later must not fall into the ownership of another thread: so nobody else becomes the owner before
 * the former one has come by the mutex once, which shows that it is past that.
 */
#ifndef CORE_LOCK_H
#define CORE_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/fence.h"
#include "core/base/same.h"

/* The thread sanitizer knows no membarrier: there a lock is its mutex. */
#define CORE_LOCK_IS_OWNED (!CORE_UNDER_TSAN)

struct core_lock {
	_Atomic uint64_t owner;	 /* who may enter without the mutex, 0: nobody; set and taken away
				  * with the mutex held, relaxed */
	_Atomic uint32_t inside; /* written by the owner alone: it is inside, or finds out that it
				  * is the owner no more */
	bool is_entered;  /* how it is held, if it is: by `inside`. Changed by who holds it by the
			   * mutex, when it comes and, if it is the owner by then, when it goes */
	uint8_t losses;	  /* times it was soon taken away; guarded by the mutex, as are: */
	uint16_t lost_ms; /* when it was taken away last, */
	uint32_t former;  /* the page of the owner that has not come since then; 0: none, */
	uint32_t streak;  /* times in a row that the same thread took the mutex, */
	uintptr_t last;	  /* and which */
	pthread_mutex_t mutex;
};

#define CORE_LOCK_INIT                                                                             \
	{                                                                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER                                                 \
	}

void core_lock_init(struct core_lock *lock);
void core_lock_destroy(struct core_lock *lock);
/* The way by the mutex. */
void core_lock_acquire_shared(struct core_lock *lock);
void core_lock_release_shared(struct core_lock *lock);
bool core_lock_try_shared(struct core_lock *lock);
/* Waits on the condition with the lock held, which it gives up meanwhile. May return for no reason.
 */
void core_lock_wait(struct core_lock *lock, pthread_cond_t *cond);

/*
 * A number of the calling thread, not 0: where its control block is. One instruction, also in a
 * library that is opened late. Threads that live at the same time have theirs in pages of their
 * own.
 */
CORE_INLINE uintptr_t core_lock_self(void)
{
#ifdef __x86_64__
	uintptr_t self;

	/* volatile: looked up again instead of kept where it has to be saved first */
	__asm__ volatile("mov %%fs:0, %0" : "=r"(self));
	return self;
#else
	return (uintptr_t)__builtin_thread_pointer();
#endif
}

CORE_INLINE bool core_lock_is_own(const struct core_lock *lock, uintptr_t self)
{
	return core_is_same_64(&lock->owner, self);
}

/* True: entered, as its owner. */
CORE_INLINE bool core_lock_enter(struct core_lock *lock)
{
#if CORE_LOCK_IS_OWNED
	uintptr_t self = core_lock_self();

	/* only this thread makes it its own */
	if (__builtin_expect(core_lock_is_own(lock, self), true)) {
		/* relaxed, and kept in this order: the other half is the membarrier of take_away */
		atomic_store_explicit(&lock->inside, 1, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		if (__builtin_expect(core_lock_is_own(lock, self), true))
			return true;
		atomic_store_explicit(&lock->inside, 0, memory_order_relaxed);
	}
#endif
	(void)lock;
	return false;
}

CORE_INLINE void core_lock_acquire(struct core_lock *lock)
{
	if (!core_lock_enter(lock))
		core_lock_acquire_shared(lock);
}

/* Tries to take the lock, whatever other locks are held. False if that would mean to wait, or if
 * the lock is not biased to this thread. */
CORE_INLINE bool core_lock_try(struct core_lock *lock)
{
#if CORE_LOCK_IS_OWNED
	return core_lock_enter(lock);
#else
	return core_lock_try_shared(lock);
#endif
}

/* Takes core_lock_enter or core_lock_try back, with nothing done since that could have given the
 * lock up. */
CORE_INLINE void core_lock_leave(struct core_lock *lock)
{
#if CORE_LOCK_IS_OWNED
	/* release: as in core_lock_release */
	atomic_store_explicit(&lock->inside, 0, memory_order_release);
#else
	core_lock_release_shared(lock);
#endif
}

CORE_INLINE void core_lock_release(struct core_lock *lock)
{
	/* release: pairs with the acquire in take_away; what was done inside is seen there */
	if (lock->is_entered)
		atomic_store_explicit(&lock->inside, 0, memory_order_release);
	else
		core_lock_release_shared(lock);
}

#endif
