// SPDX-License-Identifier: BSD-2-Clause
/* dat_evd_wait while the transport is driven: the EVD changes, or the thread is cancelled. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "mock_use.h"

#define THRESHOLD 2

static DAT_COUNT new_qlen;

/* progress: the EVD is not locked. */
static void resize(void)
{
	mock.on_progress = NULL;
	assert_int_equal(core_evd_resize(ia.evd, new_qlen), DAT_SUCCESS);
}

static DAT_RETURN wait_while_resized(DAT_COUNT qlen)
{
	DAT_EVENT event;
	DAT_COUNT more;

	new_qlen = qlen;
	mock.on_progress = resize;
	return core_evd_wait(ia.evd, 1000, THRESHOLD, &event, &more);
}

/* EVD-WAIT-12 EVD-RESIZE-11: no thread sleeps until more events are queued than fit. */
static void evd_wait__resized_below_the_threshold__refused(void **state)
{
	(void)state;
	assert_int_equal(wait_while_resized(THRESHOLD),
			 DAT_CLASS_ERROR | DAT_TIMEOUT_EXPIRED | DAT_NO_SUBTYPE);
	assert_int_equal(wait_while_resized(THRESHOLD - 1),
			 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

static void *wait_for_ever(void *arg)
{
	DAT_EVENT event;
	DAT_COUNT more;

	(void)core_evd_wait(ia.evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
	return arg;
}

/* EVD-WAIT-39: a waiter that never sleeps, because it finds work at each poll */
static void evd_wait__never_sleeps__can_be_cancelled(void **state)
{
	pthread_t waiter;
	DAT_EVENT event;

	(void)state;
	mock.progress_finds = 1;
	alarm(60); /* a failure would hang */
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_ever, NULL), 0);
	while (mock.progresses < 100)
		sched_yield();
	assert_int_equal(pthread_cancel(waiter), 0);
	assert_int_equal(pthread_join(waiter, NULL), 0);
	alarm(0);
	mock.progress_finds = 0;
	assert_int_equal(core_evd_dequeue(ia.evd, &event), DAT_QUEUE_EMPTY); /* no waiter is left */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(evd_wait__never_sleeps__can_be_cancelled, setup,
						teardown),
		cmocka_unit_test_setup_teardown(evd_wait__resized_below_the_threshold__refused,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("core evd_wait", tests, NULL, NULL);
}
