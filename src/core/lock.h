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
 * Two locks of one rank are never held together, with one exception: dat_ep_dup_connect reads the
 * second endpoint before it locks the first. A transport's own locks are leaves: it never calls up
 * into the core with one held. No lock is held over a call into the consumer or a blocking call.
 */
#ifndef CORE_LOCK_H
#define CORE_LOCK_H

#include <assert.h>
#include <pthread.h>

struct core_lock {
	pthread_mutex_t mutex;
};

static inline void core_lock_init(struct core_lock *lock)
{
	int rc = pthread_mutex_init(&lock->mutex, NULL);

	assert(rc == 0);
	(void)rc;
}

static inline void core_lock_destroy(struct core_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

static inline void core_lock_acquire(struct core_lock *lock)
{
	pthread_mutex_lock(&lock->mutex);
}

static inline void core_lock_release(struct core_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

#endif
