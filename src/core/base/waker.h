// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a waiting thread sleeps on: a semaphore, or a word of the transport (a bell) that a peer can
 * ring as well, so that its news need no third thread (transport_ops.h, sleep_begin).
 */
#ifndef CORE_WAKER_H
#define CORE_WAKER_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All but `sem` are guarded by the lock of the object that is waited for. */
struct core_waker {
	sem_t sem;
	bool is_asleep;		/* in, or on the way into, a sleep; whoever wakes clears it */
	_Atomic uint32_t *bell; /* what it sleeps on; NULL: sem */
};

/* A sleep on a bell, while it lasts. */
struct core_sleep {
	_Atomic uint32_t *bell;
	uint32_t seen;
	bool has_slept;	 /* the thread went to sleep there, so whoever rang may rely on it */
	void *transport; /* the transport's */
};

void core_waker_init(struct core_waker *waker);
void core_waker_fini(struct core_waker *waker);
/* Ends the sleep, if there is one. */
void core_waker_wake_locked(struct core_waker *waker);
/* The sleeper is awake: takes back a wake-up that came too late. */
void core_waker_settle_locked(struct core_waker *waker);

/* Bells lie in memory that processes share. */
void core_bell_ring(_Atomic uint32_t *bell);
/* The same for at most one sleeper; did anybody sleep there? */
bool core_bell_wake(_Atomic uint32_t *bell);
/* Sleeps while it has that value, until woken or that time (CLOCK_MONOTONIC): 0, EINTR, ETIMEDOUT.
 */
int core_bell_wait(_Atomic uint32_t *bell, uint32_t seen, uint64_t end_ns);

#endif
