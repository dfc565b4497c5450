// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waiting for a condition that is guarded by a lock: the common part of dat_evd_wait and
 * dat_cno_wait. The waiter first drives the transport itself for a short while. Then it arms the
 * transport, whose own thread takes over, and sleeps (waker.h). A signal handler ends the sleep.
 * The sleep is a cancellation point, and so is a wait that finds work for long and never sleeps,
 * unless the consumer had disabled cancellation. Everywhere else in the call it must be disabled.
 * models/bell.pml models one step of the wait.
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
	struct core_ia *ia; /* must stay open during the wait */
	struct core_lock *lock;
	struct core_waker *waker;
	bool (*is_over)(void *arg);   /* the condition; called with the lock held */
	void (*cancelled)(void *arg); /* called when the thread is cancelled; lock not held */
	void *arg;
	int cancel_state;     /* of the consumer */
	bool is_event_driven; /* other threads make the condition true: do not spin */
	/* internal */
	bool has_deadline;
	uint64_t deadline_ns;
	uint64_t spin_end_ns;
	uint64_t cancel_test_ns; /* the next test for a cancellation while the thread is awake */
	struct core_sleep sleep;
	/* results */
	bool is_interrupted;
	bool is_expired;
};

/* The cancellation state and type of the calling thread before they were changed. */
struct core_wait_cancel {
	int state;
	int type;
};

void core_wait_cancel_off(struct core_wait_cancel *old);
void core_wait_cancel_restore(const struct core_wait_cancel *old);

void core_wait_start(struct core_wait *wait, DAT_TIMEOUT timeout_us);
/* Waits until is_over returns true, a signal arrives or the time expires. The lock is held at the
 * call and at return. */
void core_wait_locked(struct core_wait *wait);

#endif
