// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers of the EVD tests: software events with a number in them, provider events on demand (a
 * Receive posted on a disconnected endpoint is flushed before the post returns, DTO-71), and a
 * thread that is known to be blocked in dat_evd_wait.
 */
#ifndef TESTS_EVD_UTIL_H
#define TESTS_EVD_UTIL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "dt.h"

/* --- fixture: an adapter, and the tests' own EVD --- */

struct evd_fixture {
	struct dt_ia ia;
	DAT_EVD_HANDLE evd; /* 8 software events */
	bool is_open;
};

#define EVD_QLEN 11 /* no power of two, which a ring may be rounded up to */

int evd_setup(void **state);
int evd_teardown(void **state);

#define evd_test(name) cmocka_unit_test_setup_teardown(name, evd_setup, evd_teardown)

/* --- software events --- */

DAT_RETURN evd_try_post(DAT_EVD_HANDLE evd, uintptr_t number);
void evd_post(DAT_EVD_HANDLE evd, uintptr_t number);
void evd_post_range(DAT_EVD_HANDLE evd, uintptr_t first, uintptr_t count);
void evd_check_soft(const DAT_EVENT *event, DAT_EVD_HANDLE evd, uintptr_t number);
/* Dequeues an event, which must be the software event of that number. */
void evd_take(DAT_EVD_HANDLE evd, uintptr_t number);
void evd_take_range(DAT_EVD_HANDLE evd, uintptr_t first, uintptr_t count);

/* --- state --- */

DAT_EVD_PARAM evd_query(DAT_EVD_HANDLE evd);
void evd_check_state(DAT_EVD_HANDLE evd, DAT_EVD_STATE expected);

/* --- provider events on demand --- */

/* A disconnected endpoint whose completions and connection events go to these EVDs. */
DAT_EP_HANDLE evd_flusher(struct dt_ia *ia, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE conn,
			  const DAT_EP_ATTR *attr);
/* Adds one completion with that cookie and status FLUSHED to the endpoint's recv EVD. */
void evd_flush(DAT_EP_HANDLE ep, uint64_t cookie);

/* --- a blocked thread --- */

struct evd_waiter {
	DAT_EVD_HANDLE evd;
	DAT_TIMEOUT timeout;
	DAT_COUNT threshold;
	int cancel_type;   /* PTHREAD_CANCEL_DEFERRED unless changed before the start */
	bool is_protected; /* the thread has disabled cancellation */
	pthread_t thread;
	atomic_bool is_done;
	/* valid after the join */
	DAT_RETURN ret;
	DAT_EVENT event;
	DAT_COUNT nmore;
	bool is_cancelled;
};

/* The present size is refused while a thread waits, and changes nothing else (EVD-RESIZE). */
bool evd_is_waited(DAT_EVD_HANDLE evd);
/* Starts the thread and does not wait until it is blocked. */
void evd_waiter_launch(struct evd_waiter *waiter, DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout,
		       DAT_COUNT threshold);
/* Returns when the thread is blocked in dat_evd_wait. */
void evd_waiter_start(struct evd_waiter *waiter, DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout,
		      DAT_COUNT threshold);
/* Joins a thread whose call must return by itself; its return code. */
DAT_RETURN evd_waiter_join(struct evd_waiter *waiter);
/* Cancels and joins; is_cancelled is false if the call returned before. */
void evd_waiter_cancel(struct evd_waiter *waiter);
/* The thread must stay blocked for DT_QUIET_US. */
void evd_waiter_stays(struct evd_waiter *waiter);

#endif
