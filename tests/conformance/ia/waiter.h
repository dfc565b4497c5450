// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread that waits on an EVD without a time-out.
 */
#ifndef TESTS_WAITER_H
#define TESTS_WAITER_H

#include "world.h"

struct waiter {
	DAT_EVD_HANDLE evd;
	DAT_RETURN ret;
	pthread_t thread;
};

static inline void *wait_for_ever(void *arg)
{
	struct waiter *waiter = arg;
	DAT_EVENT event;
	DAT_COUNT more;

	waiter->ret = dat_evd_wait(waiter->evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
	return NULL;
}

static inline bool is_waited_on(void *arg)
{
	DAT_EVENT event;

	/* A waiter owns the EVD: EVD-DEQUEUE-04. */
	return DAT_GET_TYPE(dat_evd_dequeue(arg, &event)) == DAT_INVALID_STATE;
}

static inline void start_waiter(struct waiter *waiter, DAT_EVD_HANDLE evd)
{
	waiter->evd = evd;
	assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_ever, waiter), 0);
	dt_until(is_waited_on, evd);
}

#endif
