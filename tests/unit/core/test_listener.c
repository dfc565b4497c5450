// SPDX-License-Identifier: BSD-2-Clause
/* Who sleeps, and how the transport learns of it. */
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

/* One that ia->evd refers to, and that has a descriptor. */
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

static unsigned int arms_of_an_empty_dequeue(DAT_EVD_HANDLE evd)
{
	unsigned int before = mock.arms;

	mock_no_event(evd);
	return mock.arms - before;
}

/* Without somebody who is told elsewhere, a look at an empty queue is one of a thread that polls.
 */
static void evd_dequeue__empty_without_listener__not_armed(void **state)
{
	struct mock_ia *ia = *state;
	DAT_CNO_HANDLE cno = cno_new(ia, NULL);

	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 0);
	assert_int_equal(core_evd_modify_cno(ia->evd, cno), DAT_SUCCESS);
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 0);
}

/* An agent empties the queue and returns: nobody polls after that. Who does poll is left alone. */
static void evd_dequeue__empty_with_an_agent__armed(void **state)
{
	struct mock_ia *ia = *state;
	DAT_CNO_HANDLE cno = cno_new(ia, agent);

	assert_int_equal(core_evd_modify_cno(ia->evd, cno), DAT_SUCCESS);
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 1);
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 0);
	post_event(ia->evd); /* the agent is called */
	(void)mock_event(ia->evd);
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 1);
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 0);
}

static void evd_dequeue__empty_with_an_agent_set_later__armed(void **state)
{
	struct mock_ia *ia = *state;
	DAT_CNO_HANDLE cno = cno_new(ia, NULL);
	DAT_OS_WAIT_PROXY_AGENT proxy = {NULL, agent};

	assert_int_equal(core_evd_modify_cno(ia->evd, cno), DAT_SUCCESS);
	assert_int_equal(core_cno_modify_agent(cno, proxy), DAT_SUCCESS);
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 1);
}

static void evd_dequeue__empty_with_a_descriptor__armed(void **state)
{
	struct mock_ia *ia = *state;
	DAT_CNO_HANDLE cno = cno_with_descriptor(ia);
	DAT_EVD_HANDLE named;

	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 1);
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 0);
	post_event(ia->evd);
	(void)mock_event(ia->evd);
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 0); /* it was not asked why */
	assert_int_equal(core_cno_wait(cno, 0, &named), DAT_SUCCESS);
	assert_ptr_equal(named, ia->evd);
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 1);
}

/* What arrives while it arms is looked at, and it arms again ... */
static void evd_dequeue__news_while_arming__looks_again(void **state)
{
	struct mock_ia *ia = *state;
	unsigned int looks;

	assert_int_equal(core_evd_modify_cno(ia->evd, cno_new(ia, agent)), DAT_SUCCESS);
	looks = mock.progresses;
	mock.arm_finds = 3;
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 4);
	assert_int_equal(mock.progresses - looks, 4);
}

/* ... but not for ever; then the next look is as if it was told. */
static void evd_dequeue__news_all_the_time__returns(void **state)
{
	struct mock_ia *ia = *state;

	assert_int_equal(core_evd_modify_cno(ia->evd, cno_new(ia, agent)), DAT_SUCCESS);
	mock.arm_finds = 1000000;
	assert_in_range(arms_of_an_empty_dequeue(ia->evd), 2, 100);
	mock.arm_finds = 0;
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 1);
	assert_int_equal(arms_of_an_empty_dequeue(ia->evd), 0);
}

/* Its consumer counts as one that sleeps, from the time when nothing is left until it is told. */
static void evd_dequeue__empty_with_a_descriptor__a_sleeper_until_told(void **state)
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

static void evd_wait__expired__was_a_sleeper(void **state)
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

/* How often a wait on it that expires looks at the transport, where it may look for long. */
static unsigned int looks_of_a_wait(DAT_EVD_HANDLE evd)
{
	unsigned int before = mock.progresses;
	DAT_EVENT event;
	DAT_COUNT more;

	mock.ia->settings.spin_us = 20000;
	assert_int_equal(mock_code(core_evd_wait(evd, 30000, 1, &event, &more)),
			 DAT_TIMEOUT_EXPIRED);
	return mock.progresses - before;
}

static void evd_wait__completions_may_come__polls_before_it_sleeps(void **state)
{
	struct mock_ia *ia = *state;

	assert_true(looks_of_a_wait(ia->evd) > 20);
}

static void evd_wait__no_completions_come_there__sleeps_at_once(void **state)
{
	struct mock_ia *ia = *state;
	DAT_EVD_HANDLE evd;

	assert_int_equal(core_evd_create(ia->ia, 8, DAT_HANDLE_NULL,
					 DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, &evd),
			 DAT_SUCCESS);
	assert_in_range(looks_of_a_wait(evd), 1, 4);
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

static void evd_wait__cancelled__no_sleeper_is_left(void **state)
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

struct told {
	struct mock_ia *ia;
	DAT_CNO_HANDLE cno;
	_Atomic bool is_through;
};

static void *wait_for_cno(void *arg)
{
	struct told *told = arg;
	DAT_EVD_HANDLE evd;

	assert_int_equal(core_cno_wait(told->cno, DAT_TIMEOUT_INFINITE, &evd), DAT_SUCCESS);
	return NULL;
}

static void *post_while_cancelled(void *arg)
{
	struct told *told = arg;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	post_event(told->ia->evd);
	told->is_through = true;
	return NULL;
}

/* The data path has cancellation as the consumer has it, and no cancellation point. */
static void trigger__taken_by_a_waiter_and_cancel_pending__carried_out(void **state)
{
	struct told told = {.ia = *state, .cno = cno_with_descriptor(*state)};
	pthread_t waiter, poster;

	assert_int_equal(pthread_create(&waiter, NULL, wait_for_cno, &told), 0);
	while (!mock.ia->sleepers)
		sched_yield();
	assert_int_equal(pthread_create(&poster, NULL, post_while_cancelled, &told), 0);
	assert_int_equal(pthread_join(poster, NULL), 0);
	assert_true(told.is_through);
	assert_int_equal(pthread_join(waiter, NULL), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(evd_dequeue__empty_without_listener__not_armed),
		T(evd_dequeue__empty_with_an_agent__armed),
		T(evd_dequeue__empty_with_an_agent_set_later__armed),
		T(evd_dequeue__empty_with_a_descriptor__armed),
		T(evd_dequeue__news_while_arming__looks_again),
		T(evd_dequeue__news_all_the_time__returns),
		T(evd_dequeue__empty_with_a_descriptor__a_sleeper_until_told),
		T(evd_wait__expired__was_a_sleeper),
		T(evd_wait__completions_may_come__polls_before_it_sleeps),
		T(evd_wait__no_completions_come_there__sleeps_at_once),
		T(evd_wait__cancelled__no_sleeper_is_left),
		T(trigger__taken_by_a_waiter_and_cancel_pending__carried_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
