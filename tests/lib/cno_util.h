// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the tests of notification objects and agents share: short calls, a thread that is blocked in
 * dat_cno_wait, and an agent that counts its calls and does what a test wants in them.
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

/* For agents and other threads, where a failing assertion may not jump back to the test. */
#define cno_check(condition)                                                                       \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* --- objects --- */

DAT_CNO_HANDLE cno_create(struct dt_ia *ia);
/* A dispatcher of software and all other events that notifies the CNO. */
DAT_EVD_HANDLE cno_evd(struct dt_ia *ia, DAT_CNO_HANDLE cno);
DAT_CNO_PARAM cno_query(DAT_CNO_HANDLE cno);

/* --- notifications --- */

/* A notification of that dispatcher comes, or has come. */
void cno_expect(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE evd);
void cno_empty_for(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout);
/* No notification is there. */
void cno_is_quiet(DAT_CNO_HANDLE cno);
/* None comes for a while. */
void cno_stays_quiet(DAT_CNO_HANDLE cno);

/* --- a blocked thread --- */

struct cno_waiter {
	DAT_CNO_HANDLE cno;
	DAT_TIMEOUT timeout;
	int cancel_type; /* PTHREAD_CANCEL_DEFERRED unless changed before the start */
	pthread_t thread;
	atomic_int tid;
	atomic_bool is_done;
	/* valid after the join */
	DAT_RETURN ret;
	DAT_EVD_HANDLE evd;
	bool is_cancelled;
};

/* Starts the thread without caring how far it comes. */
void cno_waiter_launch(struct cno_waiter *waiter, DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout);
/* Returns when the thread is blocked in dat_cno_wait. */
void cno_waiter_start(struct cno_waiter *waiter, DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout);
DAT_RETURN cno_waiter_join(struct cno_waiter *waiter);
/* It is released by a notification of that dispatcher; DAT_HANDLE_NULL: there is none any more. */
void cno_waiter_gets(struct cno_waiter *waiter, DAT_EVD_HANDLE evd);
/* Cancels and joins; is_cancelled tells whether the call had returned before. */
void cno_waiter_cancel(struct cno_waiter *waiter);
/* The thread stays blocked for a while. */
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
/* Makes a CNO with that agent; what is in `agent` beyond body and arg is set. */
DAT_CNO_HANDLE cno_agent_create(struct dt_ia *ia, struct cno_agent *agent);
void cno_agent_arm(struct cno_agent *agent);
bool cno_agent_has_returned(void *arg);
/* Before the agent goes out of scope: the close would call it. */
void cno_agent_disarm(struct cno_agent *agent);
/* Returns when the agent's calls are that many, the last with that argument, and have ended. */
void cno_agent_called(struct cno_agent *agent, int calls, DAT_EVD_HANDLE evd);
/*
 * Whatever agents of the instance were to be called so far, have been: the agent of another CNO,
 * triggered later, has had its call; and a little time has passed.
 */
void cno_agent_fence(struct dt_ia *ia);
/* Has the body run once inside an agent, on a CNO and a dispatcher of their own. */
void cno_agent_do(struct dt_ia *ia, void (*body)(struct cno_agent *agent, DAT_EVD_HANDLE evd),
		  void *arg);

#endif
