// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waiting for something that another thread brings about under a lock: what dat_evd_wait and
 * dat_cno_wait have in common. The waiter first drives the transport itself for a short while, then
 * lets the transport's own thread watch (arm) and sleeps (waker.h), which a signal handler ends and
 * which is a cancellation point. Cancellation must be off everywhere else in the call.
 */
#ifndef CORE_WAIT_H
#define CORE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include <dat/udat.h>

#include "core/base/lock.h"
#include "core/base/waker.h"

struct core_ia;

struct core_wait {
	/* set by the caller before core_wait_start */
	struct core_ia *ia; /* must not vanish meanwhile */
	struct core_lock *lock;
	struct core_waker *waker;
	bool (*is_over)(void *arg);   /* asked with the lock held */
	void (*cancelled)(void *arg); /* the thread is being cancelled; lock not held */
	void *arg;
	bool is_told; /* what it waits for is brought about by other threads, not by polling */
	/* ours */
	bool has_deadline;
	uint64_t deadline_ns;
	uint64_t spin_end_ns;
	struct core_sleep sleep;
	/* results */
	bool is_interrupted;
	bool is_expired;
};

/* Cancellation of the calling thread, as it was before it was switched off. */
struct core_wait_cancel {
	int state;
	int type;
};

void core_wait_cancel_off(struct core_wait_cancel *old);
void core_wait_cancel_restore(const struct core_wait_cancel *old);

void core_wait_start(struct core_wait *wait, DAT_TIMEOUT timeout_us);
/* Returns with the lock held (as it was called) when is_over, interrupted or expired. */
void core_wait_locked(struct core_wait *wait);

#endif
