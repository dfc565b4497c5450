// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers of the tests of notification objects and agents: short calls, a thread that is blocked in
 * dat_cno_wait, and an agent that counts its calls and runs a function of the test in each.
 */
#ifndef TESTS_CNO_UTIL_H
#define TESTS_CNO_UTIL_H

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "conf.h"
#include "evd_util.h"

/* For agents and other threads, in which a failing cmocka assertion must not jump to the test. */
#define cno_check(condition)                                                                       \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* --- objects --- */

DAT_CNO_HANDLE cno_create(struct dt_ia *ia);
/* Creates an EVD for software and other events that notifies the CNO. */
DAT_EVD_HANDLE cno_evd(struct dt_ia *ia, DAT_CNO_HANDLE cno);
DAT_CNO_PARAM cno_query(DAT_CNO_HANDLE cno);

/* --- notifications --- */

/* Waits for a notification, which must name that EVD. */
void cno_expect(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE evd);
void cno_empty_for(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout);
/* No notification is there. */
void cno_is_quiet(DAT_CNO_HANDLE cno);
/* None comes for a while. */
void cno_stays_quiet(DAT_CNO_HANDLE cno);

/* Sends an empty message from a of the pair to b; both the Receive and the Send have the cookie. */
void cno_send(struct dt_pair *pair, uint64_t cookie, DAT_COMPLETION_FLAGS flags);

/* --- a blocked thread --- */

struct cno_waiter {
	DAT_CNO_HANDLE cno;
	DAT_TIMEOUT timeout;
	int cancel_type;   /* PTHREAD_CANCEL_DEFERRED unless changed before the start */
	bool is_protected; /* the thread has disabled cancellation */
	pthread_t thread;
	atomic_int tid;
	atomic_bool is_done;
	/* valid after the join */
	DAT_RETURN ret;
	DAT_EVD_HANDLE evd;
	bool is_cancelled;
};

/* Starts the thread and does not wait until it is blocked. */
void cno_waiter_launch(struct cno_waiter *waiter, DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout);
/* Returns when the thread is blocked in dat_cno_wait. */
void cno_waiter_start(struct cno_waiter *waiter, DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout);
DAT_RETURN cno_waiter_join(struct cno_waiter *waiter);
/* Joins the thread; a notification of that EVD, or DAT_HANDLE_NULL for a freed one, released it. */
void cno_waiter_gets(struct cno_waiter *waiter, DAT_EVD_HANDLE evd);
/* Cancels and joins; is_cancelled is false if the call returned before. */
void cno_waiter_cancel(struct cno_waiter *waiter);
/* The thread must stay blocked for DT_QUIET_US. */
void cno_waiter_stays(struct cno_waiter *waiter);

/* --- agents --- */

struct cno_agent {
	void (*body)(struct cno_agent *agent, DAT_EVD_HANDLE evd); /* or NULL */
	void *arg;						   /* the body's */
	DAT_CNO_HANDLE cno;
	atomic_int calls;	     /* begun */
	atomic_int returned;	     /* ended */
	_Atomic(DAT_EVD_HANDLE) evd; /* argument of the latest call */
	int expected;		     /* for cno_agent_called */
};

DAT_OS_WAIT_PROXY_AGENT cno_agent_of(struct cno_agent *agent);
/* Creates a CNO with that agent; sets all fields of `agent` except body and arg. */
DAT_CNO_HANDLE cno_agent_create(struct dt_ia *ia, struct cno_agent *agent);
void cno_agent_arm(struct cno_agent *agent);
bool cno_agent_has_returned(void *arg);
/* Required before the agent goes out of scope, because dat_ia_close would call it. */
void cno_agent_disarm(struct cno_agent *agent);
/* Waits until the agent was called that many times, the last time with that EVD, and returned. */
void cno_agent_called(struct cno_agent *agent, int calls, DAT_EVD_HANDLE evd);
/* Returns when all agents that the instance had to call have been called. Triggers an agent of its
 * own, waits for that call and 2 ms more. */
void cno_agent_fence(struct dt_ia *ia);
/* Runs the body once inside an agent, with a CNO and an EVD of its own. */
void cno_agent_do(struct dt_ia *ia, void (*body)(struct cno_agent *agent, DAT_EVD_HANDLE evd),
		  void *arg);

#endif
