// SPDX-License-Identifier: BSD-2-Clause
/* Sleeping consumers: when a dequeue arms the transport, and ia->sleepers. */
#include <pthread.h>
#include <sched.h>

#include "core/event/cno.h"
#include "mock.h"

static int setup(void **state)
{
	static struct mock_ia ia;

	mock_open(&ia);
	*state = &ia;
	return 0;
}

static int teardown(void **state)
{
	mock_close(*state);
	return 0;
}

static void agent(DAT_PVOID instance_data, DAT_EVD_HANDLE evd)
{
	(void)instance_data;
	(void)evd;
}

static DAT_CNO_HANDLE cno_new(struct mock_ia *ia, DAT_AGENT_FUNC function)
{
	DAT_OS_WAIT_PROXY_AGENT proxy = {NULL, function};
	DAT_CNO_HANDLE cno;

	assert_int_equal(core_cno_create(ia->ia, proxy, &cno), DAT_SUCCESS);
	return cno;
}

/* A CNO of ia->evd that has a descriptor. */
static DAT_CNO_HANDLE cno_with_descriptor(struct mock_ia *ia)
{
	DAT_CNO_HANDLE cno = cno_new(ia, NULL);
	int fd;

	assert_int_equal(core_evd_modify_cno(ia->evd, cno), DAT_SUCCESS);
	assert_int_equal(core_cno_fd(cno, &fd), DAT_SUCCESS);
	return cno;
}

static void post_event(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	assert_int_equal(core_evd_post_se(evd, &event), DAT_SUCCESS);
}

static unsigned int arms_of_empty_dequeue(DAT_EVD_HANDLE evd)
{
	unsigned int before = mock.arms;

	mock_no_event(evd);
	return mock.arms - before;
}

/* Without an agent or a descriptor, the consumer polls. */
static void evd_dequeue__empty_without_agent_or_descriptor__not_armed(void **state)
{
	struct mock_ia *ia = *state;
	DAT_CNO_HANDLE cno = cno_new(ia, NULL);

	assert_int_equal(arms_of_empty_dequeue(ia->evd), 0);
	assert_int_equal(core_evd_modify_cno(ia->evd, cno), DAT_SUCCESS);
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 0);
}

/* An agent empties the queue and returns, so the first empty dequeue arms. Later ones only poll. */
static void evd_dequeue__empty_with_an_agent__armed(void **state)
{
	struct mock_ia *ia = *state;
	DAT_CNO_HANDLE cno = cno_new(ia, agent);

	assert_int_equal(core_evd_modify_cno(ia->evd, cno), DAT_SUCCESS);
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 1);
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 0);
	post_event(ia->evd); /* the agent is called */
	(void)mock_event(ia->evd);
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 1);
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 0);
}

static void evd_dequeue__empty_with_an_agent_set_later__armed(void **state)
{
	struct mock_ia *ia = *state;
	DAT_CNO_HANDLE cno = cno_new(ia, NULL);
	DAT_OS_WAIT_PROXY_AGENT proxy = {NULL, agent};

	assert_int_equal(core_evd_modify_cno(ia->evd, cno), DAT_SUCCESS);
	assert_int_equal(core_cno_modify_agent(cno, proxy), DAT_SUCCESS);
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 1);
}

static void evd_dequeue__empty_with_a_descriptor__armed(void **state)
{
	struct mock_ia *ia = *state;
	DAT_CNO_HANDLE cno = cno_with_descriptor(ia);
	DAT_EVD_HANDLE named;

	assert_int_equal(arms_of_empty_dequeue(ia->evd), 1);
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 0);
	post_event(ia->evd);
	(void)mock_event(ia->evd);
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 0); /* no core_cno_wait() yet */
	assert_int_equal(core_cno_wait(cno, 0, &named), DAT_SUCCESS);
	assert_ptr_equal(named, ia->evd);
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 1);
}

/* If arm() reports pending work, the dequeue polls and arms again ... */
static void evd_dequeue__event_while_arming__polls_again(void **state)
{
	struct mock_ia *ia = *state;
	unsigned int polls_before;

	assert_int_equal(core_evd_modify_cno(ia->evd, cno_new(ia, agent)), DAT_SUCCESS);
	polls_before = mock.progresses;
	mock.arm_finds = 3;
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 4);
	assert_int_equal(mock.progresses - polls_before, 4);
}

/* ... a limited number of times. The next empty dequeue then arms, as after a notification. */
static void evd_dequeue__events_all_the_time__returns(void **state)
{
	struct mock_ia *ia = *state;

	assert_int_equal(core_evd_modify_cno(ia->evd, cno_new(ia, agent)), DAT_SUCCESS);
	mock.arm_finds = 1000000;
	assert_in_range(arms_of_empty_dequeue(ia->evd), 2, 100);
	mock.arm_finds = 0;
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 1);
	assert_int_equal(arms_of_empty_dequeue(ia->evd), 0);
}

/* Its consumer counts as a sleeper from an empty dequeue until the next notification. */
static void evd_dequeue__empty_with_a_descriptor__sleeper_until_notified(void **state)
{
	struct mock_ia *ia = *state;
	DAT_CNO_HANDLE cno = cno_with_descriptor(ia);
	DAT_EVD_HANDLE named;

	mock_no_event(ia->evd);
	assert_int_equal(mock.ia->sleepers, 1);
	mock_no_event(ia->evd);
	assert_int_equal(mock.ia->sleepers, 1);
	post_event(ia->evd);
	assert_int_equal(core_cno_wait(cno, 0, &named), DAT_SUCCESS);
	assert_int_equal(mock.ia->sleepers, 0);
	(void)mock_event(ia->evd);
	mock_no_event(ia->evd);
	assert_int_equal(mock.ia->sleepers, 1);
	assert_int_equal(core_evd_modify_cno(ia->evd, DAT_HANDLE_NULL), DAT_SUCCESS);
	assert_int_equal(core_cno_free(cno), DAT_SUCCESS);
	assert_int_equal(mock.ia->sleepers, 0);
}

/* --- threads that sleep --- */

static void evd_wait__expired__counted_as_sleeper(void **state)
{
	struct mock_ia *ia = *state;
	DAT_EVENT event;
	DAT_COUNT more;

	assert_int_equal(mock_code(core_evd_wait(ia->evd, 1000, 1, &event, &more)),
			 DAT_TIMEOUT_EXPIRED);
	assert_true(mock.arms > 0);
	assert_int_equal(mock.sleepers_armed, 1);
	assert_int_equal(mock.ia->sleepers, 0);
}

/* The number of polls of a wait that expires, with a long spin time. */
static unsigned int polls_of_a_wait(DAT_EVD_HANDLE evd)
{
	unsigned int before = mock.progresses;
	DAT_EVENT event;
	DAT_COUNT more;

	mock.ia->settings.spin_us = 20000;
	assert_int_equal(mock_code(core_evd_wait(evd, 30000, 1, &event, &more)),
			 DAT_TIMEOUT_EXPIRED);
	return mock.progresses - before;
}

static void evd_wait__completions_possible__polls_before_it_sleeps(void **state)
{
	struct mock_ia *ia = *state;

	assert_true(polls_of_a_wait(ia->evd) > 20);
}

static void evd_wait__no_completions_possible__sleeps_at_once(void **state)
{
	struct mock_ia *ia = *state;
	DAT_EVD_HANDLE evd;

	assert_int_equal(core_evd_create(ia->ia, 8, DAT_HANDLE_NULL,
					 DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, &evd),
			 DAT_SUCCESS);
	assert_in_range(polls_of_a_wait(evd), 1, 4);
	assert_int_equal(core_evd_free(evd), DAT_SUCCESS);
}

static void *wait_for_ever(void *arg)
{
	struct mock_ia *ia = arg;
	DAT_EVENT event;
	DAT_COUNT more;

	core_evd_wait(ia->evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
	return NULL;
}

static void evd_wait__cancelled__no_sleeper_left(void **state)
{
	struct mock_ia *ia = *state;
	struct core_ia *inner = mock.ia;
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, ia), 0);
	while (!inner->sleepers)
		sched_yield();
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(inner->sleepers, 0);
}

struct trigger_case {
	struct mock_ia *ia;
	DAT_CNO_HANDLE cno;
	_Atomic bool is_posted;
};

static void *wait_for_cno(void *arg)
{
	struct trigger_case *trigger_case = arg;
	DAT_EVD_HANDLE evd;

	assert_int_equal(core_cno_wait(trigger_case->cno, DAT_TIMEOUT_INFINITE, &evd), DAT_SUCCESS);
	return NULL;
}

static void *post_while_cancelled(void *arg)
{
	struct trigger_case *trigger_case = arg;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	post_event(trigger_case->ia->evd);
	trigger_case->is_posted = true;
	return NULL;
}

/* The data path leaves cancellation enabled and has no cancellation point. */
static void trigger__cno_waiter_and_cancel_pending__delivered(void **state)
{
	struct trigger_case trigger_case = {.ia = *state, .cno = cno_with_descriptor(*state)};
	pthread_t waiter, poster;

	assert_int_equal(pthread_create(&waiter, NULL, wait_for_cno, &trigger_case), 0);
	while (!mock.ia->sleepers)
		sched_yield();
	assert_int_equal(pthread_create(&poster, NULL, post_while_cancelled, &trigger_case), 0);
	assert_int_equal(pthread_join(poster, NULL), 0);
	assert_true(trigger_case.is_posted);
	assert_int_equal(pthread_join(waiter, NULL), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(evd_dequeue__empty_without_agent_or_descriptor__not_armed),
		T(evd_dequeue__empty_with_an_agent__armed),
		T(evd_dequeue__empty_with_an_agent_set_later__armed),
		T(evd_dequeue__empty_with_a_descriptor__armed),
		T(evd_dequeue__event_while_arming__polls_again),
		T(evd_dequeue__events_all_the_time__returns),
		T(evd_dequeue__empty_with_a_descriptor__sleeper_until_notified),
		T(evd_wait__expired__counted_as_sleeper),
		T(evd_wait__completions_possible__polls_before_it_sleeps),
		T(evd_wait__no_completions_possible__sleeps_at_once),
		T(evd_wait__cancelled__no_sleeper_left),
		T(trigger__cno_waiter_and_cancel_pending__delivered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
