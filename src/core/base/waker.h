// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a waiting thread sleeps on: a semaphore, or a futex word of the transport (a bell). A peer
 * can ring the bell itself, so that its message reaches the waiter without a third thread
 * (transport_ops.h, sleep_begin). models/bell.pml models bells.
 */
#ifndef CORE_WAKER_H
#define CORE_WAKER_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All members but `sem` are guarded by the lock of the object that the thread waits on. */
struct core_waker {
	sem_t sem;
	bool is_asleep; /* the thread sleeps or is about to; cleared by the thread that wakes it */
	_Atomic uint32_t *bell; /* the bell that it sleeps on; NULL: sem */
};

/* A sleep on a bell. */
struct core_sleep {
	_Atomic uint32_t *bell; /* NULL: the sleep is on a semaphore instead */
	uint32_t seen;		/* value of the bell before the last poll */
	bool has_slept;	 /* the thread slept on the bell, so a peer may rely on having woken it */
	void *transport; /* for the transport */
};

void core_waker_init(struct core_waker *waker);
void core_waker_fini(struct core_waker *waker);
/* Wakes the thread if it sleeps. */
void core_waker_wake_locked(struct core_waker *waker);
/* Called by the waiter once it is awake: discards a wake-up that arrived too late. */
void core_waker_reset_locked(struct core_waker *waker);

/* Bells are in memory that processes share. Wakes at most one sleeper. True: there was one. */
bool core_bell_wake(_Atomic uint32_t *bell);
/* Sleeps while the bell has the value `seen`, at most until `end_ns` (CLOCK_MONOTONIC). Returns 0,
 * EINTR or ETIMEDOUT. */
int core_bell_wait(_Atomic uint32_t *bell, uint32_t seen, uint64_t end_ns);

#endif
