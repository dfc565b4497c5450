// SPDX-License-Identifier: BSD-2-Clause
/*
 * slow_reasons of EVDs: each bit is set exactly while its cause exists, and a dequeue does not poll
 * while its EVD has one.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "core/event/evd.h"
#include "slow_use.h"

static DAT_EVENT waiter_event;
static DAT_RETURN waiter_ret;
static DAT_TIMEOUT waiter_timeout;
static pthread_t waiter;

static void *wait_for_event(void *arg)
{
	DAT_COUNT more;

	waiter_ret = core_evd_wait(ia.evd, waiter_timeout, 1, &waiter_event, &more);
	return arg;
}

static void start_waiter(DAT_TIMEOUT timeout)
{
	waiter_timeout = timeout;
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_event, NULL), 0);
	while (!(reasons(ia.evd) & CORE_EVD_SLOW_WAITER))
		sched_yield();
}

static enum transport_poll poll_empty(struct core_evd *evd, DAT_EVENT *event)
{
	(void)evd;
	(void)event;
	return TRANSPORT_POLL_EMPTY;
}

static void expect_polls(bool is_polled, DAT_RETURN ret)
{
	unsigned int before = mock.polls;
	DAT_EVENT event;

	if (!mock_own(ia.evd))
		skip();
	mock.on_poll = poll_empty;
	assert_int_equal(core_evd_dequeue(ia.evd, &event), ret);
	mock.on_poll = NULL;
	assert_int_equal(mock.polls, before + is_polled);
}

/* How the wait ends. */
enum waiter_end {
	BY_EVENT,
	BY_TIMEOUT,
	BY_CANCEL,
	BY_UNWAITABLE,
	ENDS,
};

static void end_wait(enum waiter_end how)
{
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	if (how == BY_EVENT)
		assert_int_equal(core_evd_post_se(ia.evd, &event), DAT_SUCCESS);
	else if (how == BY_CANCEL)
		assert_int_equal(pthread_cancel(waiter), 0);
	else if (how == BY_UNWAITABLE)
		assert_int_equal(core_evd_set_unwaitable(ia.evd), DAT_SUCCESS);
	pthread_join(waiter, NULL);
	assert_int_equal(core_evd_clear_unwaitable(ia.evd), DAT_SUCCESS);
}

/* EVD-DEQUEUE-04 EVD-WAIT-17: for each way in which a wait ends. */
static void evd__thread_waits__slow_until_it_returns(void **state)
{
	const DAT_RETURN refused =
		DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_WAITER;

	(void)state;
	for (enum waiter_end how = 0; how < ENDS; how++) {
		expect_polls(true, DAT_QUEUE_EMPTY);
		start_waiter(how == BY_TIMEOUT ? 200000 : DAT_TIMEOUT_INFINITE);
		assert_int_equal(reasons(ia.evd), CORE_EVD_SLOW_WAITER);
		if (how != BY_TIMEOUT)
			expect_polls(false, refused);
		end_wait(how);
		assert_int_equal(reasons(ia.evd), 0);
		expect_polls(true, DAT_QUEUE_EMPTY);
	}
}

/* EVD-WAIT-39: a waiter that never sleeps, because it spins or finds work at each poll */
static void evd_wait__never_sleeps__can_be_cancelled(void **state)
{
	struct core_ia *inner = core_handle_lock(ia.ia, DAT_HANDLE_TYPE_IA);

	(void)state;
	inner->settings.spin_us = UINT64_C(3600000000);
	core_handle_unlock(ia.ia);
	alarm(60); /* a failure would hang */
	start_waiter(DAT_TIMEOUT_INFINITE);
	end_wait(BY_CANCEL);
	alarm(0);
	assert_int_equal(reasons(ia.evd), 0);
}

static DAT_CNO_HANDLE new_cno(void)
{
	DAT_OS_WAIT_PROXY_AGENT proxy = {NULL, NULL};
	DAT_CNO_HANDLE cno;

	assert_int_equal(core_cno_create(ia.ia, proxy, &cno), DAT_SUCCESS);
	return cno;
}

static void set_cno(DAT_CNO_HANDLE cno)
{
	assert_int_equal(core_evd_modify_cno(ia.evd, cno), DAT_SUCCESS);
}

/* EVD-MODIFY-CNO-01 EVD-MODIFY-CNO-04 EVD-MODIFY-CNO-09: also while the EVD is disabled. */
static void evd_modify_cno__set_and_cleared__slow_while_it_has_one(void **state)
{
	DAT_CNO_HANDLE first = new_cno(), second = new_cno();
	const DAT_CNO_HANDLE cnos[] = {first,		first,	second,		DAT_HANDLE_NULL,
				       DAT_HANDLE_NULL, second, DAT_HANDLE_NULL};

	(void)state;
	assert_int_equal(reasons(ia.evd), 0);
	for (size_t i = 0; i < sizeof(cnos) / sizeof(cnos[0]); i++) {
		bool has_one = cnos[i] != DAT_HANDLE_NULL;

		set_cno(cnos[i]);
		assert_int_equal(reasons(ia.evd), has_one ? CORE_EVD_SLOW_CNO : 0);
		expect_polls(!has_one, DAT_QUEUE_EMPTY);
	}
	/* a refused call changes nothing */
	set_cno(first);
	assert_int_not_equal(core_evd_modify_cno(ia.evd, (DAT_CNO_HANDLE)ia.pz), DAT_SUCCESS);
	assert_int_equal(reasons(ia.evd), CORE_EVD_SLOW_CNO);
	assert_int_equal(core_evd_disable(ia.evd), DAT_SUCCESS);
	assert_int_equal(reasons(ia.evd), CORE_EVD_SLOW_CNO);
}

static void evd_create__with_a_cno__slow(void **state)
{
	DAT_EVD_HANDLE evd;

	(void)state;
	assert_int_equal(core_evd_create(ia.ia, 8, new_cno(), DAT_EVD_DEFAULT_FLAG, &evd),
			 DAT_SUCCESS);
	assert_int_equal(reasons(evd), CORE_EVD_SLOW_CNO);
	assert_int_equal(core_evd_modify_cno(evd, DAT_HANDLE_NULL), DAT_SUCCESS);
	assert_int_equal(reasons(evd), 0);
}

static void evd__waiter_and_cno__independent_reasons(void **state)
{
	DAT_CNO_HANDLE cno = new_cno();

	(void)state;
	start_waiter(DAT_TIMEOUT_INFINITE);
	set_cno(cno);
	assert_int_equal(reasons(ia.evd), CORE_EVD_SLOW_WAITER | CORE_EVD_SLOW_CNO);
	set_cno(DAT_HANDLE_NULL);
	assert_int_equal(reasons(ia.evd), CORE_EVD_SLOW_WAITER);
	set_cno(cno);
	end_wait(BY_EVENT);
	assert_int_equal(reasons(ia.evd), CORE_EVD_SLOW_CNO);
	assert_int_equal(waiter_ret, DAT_SUCCESS);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(evd__thread_waits__slow_until_it_returns),
		T(evd_wait__never_sleeps__can_be_cancelled),
		T(evd_modify_cno__set_and_cleared__slow_while_it_has_one),
		T(evd_create__with_a_cno__slow),
		T(evd__waiter_and_cno__independent_reasons),
	};

	return cmocka_run_group_tests_name("core slow evd", tests, NULL, NULL);
}
