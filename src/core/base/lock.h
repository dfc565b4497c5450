// SPDX-License-Identifier: BSD-2-Clause
/*
 * Locks of the core, and their order. A thread may take a lock only while every lock it holds has
 * a smaller rank:
 *
 *   1 service point (PSP, RSP)     2 connection request      3 endpoint
 *   4 shared receive queue         5 interface adapter (object lists, limits)
 *   6 memory region, memory window, protection zone          7 EVD (event dispatcher)
 *   8 CNO (notification object)    9 locks inside a transport, arena
 *
 * core_lock_try never waits and is exempt from this order: a dequeue on the fast path holds the
 * lock of its EVD and tries that of an endpoint. A thread holds two locks of one rank only if it
 * took the second one by core_lock_try. A transport's own locks are leaves: it never calls up into
 * the core while it holds one. No lock is held across a call into the consumer or a blocking call.
 *
 * Biased locking. Most endpoints and EVDs are used by one thread, which should not pay for atomic
 * operations. A lock that one thread has taken many times in a row is biased to that thread, its
 * owner: the owner enters and leaves by plain stores to `inside`. Another thread first takes the
 * mutex and then revokes the bias: it clears `owner`, has the kernel run a full fence on every
 * thread of the process (membarrier, see fence.h) and waits while `inside` is set. After the fence
 * either the owner sees that it is no longer the owner, or the revoking thread sees `inside`. Each
 * revocation that follows soon after the previous one doubles the number of acquisitions before the
 * lock is biased again. So a lock that threads really share stays a mutex; one that was not revoked
 * for a while is biased sooner.
 *
 * An owner may be preempted between its load of `owner` and its store to `inside`. That late store
 * must not happen while the lock is biased to another thread, which writes `inside` too. Therefore
 * no other thread becomes the owner until the former one has taken the mutex once: by then its
 * store is done.
 *
 * models/lock.pml models the bias.
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

struct core_lock {
	_Atomic uint64_t owner;	 /* the thread that may enter without the mutex, 0: none. Set and
				  * cleared relaxed, with the mutex held */
	_Atomic uint32_t inside; /* written by the owner alone: it holds the lock, or is about to
				  * find that it is no longer the owner */
	bool is_entered; /* the holder holds the lock by `inside`, not by the mutex. Written by a
			  * holder of the mutex: cleared when it acquires the lock, set when it
			  * releases the lock and has become the owner */
	/* guarded by the mutex */
	uint8_t losses;	  /* revocations that followed soon after another; halved after a pause */
	uint16_t lost_ms; /* time of the last revocation */
	uint32_t former;  /* page of the last owner until it takes the mutex again; 0: none */
	uint32_t streak;  /* acquisitions in a row of the mutex by the same thread, */
	uintptr_t last;	  /* which is this one */
	pthread_mutex_t mutex;
};

#define CORE_LOCK_INIT                                                                             \
	{                                                                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER                                                 \
	}

void core_lock_init(struct core_lock *lock);
void core_lock_destroy(struct core_lock *lock);
/* The slow paths, which take the mutex. */
void core_lock_acquire_shared(struct core_lock *lock);
void core_lock_release_shared(struct core_lock *lock);
/* Waits on the condition variable. The lock is held at the call and at return, and released in
 * between. Wakes up spuriously. */
void core_lock_wait(struct core_lock *lock, pthread_cond_t *cond);

/*
 * Identifies the calling thread: the address of its control block, never 0. Reading it takes one
 * instruction, even in a library opened by dlopen. No two living threads have their control blocks
 * in the same page.
 */
CORE_INLINE uintptr_t core_lock_self(void)
{
#ifdef __x86_64__
	uintptr_t self;

	__asm__ volatile("mov %%fs:0, %0" : "=r"(self));
	return self;
#else
	return (uintptr_t)__builtin_thread_pointer();
#endif
}

/* Does the word hold the identity of this thread? It does only if this thread has stored it. */
CORE_INLINE bool core_lock_is_self(const _Atomic uintptr_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed) == core_lock_self();
}

CORE_INLINE bool core_lock_is_biased_to(const struct core_lock *lock, uintptr_t self)
{
	return core_is_same_64(&lock->owner, self);
}

/* Enters a lock that is biased to this thread. False: it is not, nothing is held. */
CORE_INLINE bool core_lock_enter(struct core_lock *lock)
{
	uintptr_t self = core_lock_self();

	/* only this thread biases a lock to itself, so true may become false but not the reverse */
	if (__builtin_expect(core_lock_is_biased_to(lock, self), true)) {
		/*
		 * Store `inside`, then load `owner`, in this order. Both are relaxed, with a
		 * compiler barrier in between: the membarrier in revoke_bias is the fence. Without
		 * the order the owner could enter unseen after its bias was revoked.
		 */
		atomic_store_explicit(&lock->inside, 1, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		if (__builtin_expect(core_lock_is_biased_to(lock, self), true))
			return true;
		atomic_store_explicit(&lock->inside, 0, memory_order_relaxed);
	}
	return false;
}

CORE_INLINE void core_lock_acquire(struct core_lock *lock)
{
	if (!core_lock_enter(lock))
		core_lock_acquire_shared(lock);
}

/* Tries to take the lock; any other lock may be held. False: it is not biased to this thread. */
CORE_INLINE bool core_lock_try(struct core_lock *lock)
{
	return core_lock_enter(lock);
}

/* Releases a lock that core_lock_enter or core_lock_try took, if core_lock_wait was not called
 * since. */
CORE_INLINE void core_lock_leave(struct core_lock *lock)
{
	/* release: as in core_lock_release */
	atomic_store_explicit(&lock->inside, 0, memory_order_release);
}

CORE_INLINE void core_lock_release(struct core_lock *lock)
{
	/*
	 * release: pairs with the acquire in revoke_bias, else the next holder may not see what was
	 * done inside
	 */
	if (lock->is_entered)
		atomic_store_explicit(&lock->inside, 0, memory_order_release);
	else
		core_lock_release_shared(lock);
}

#endif
