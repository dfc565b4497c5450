// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread that waits for an event of a connection serves what arrives for connections while it
 * spins (transport_ops.h, attend). The mock transport checks that it does so only between
 * attend_begin and attend_end, and not when it arms.
 */
#include <pthread.h>

#include "mock_use.h"
#include "core/base/clock.h"

static DAT_EVD_HANDLE waited; /* the EVD of the wait */

static int attend_nothing(void)
{
	return 0;
}

static int attend_no_longer(void)
{
	return -1;
}

static void post_event(void)
{
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	assert_int_equal(core_evd_post_se(ia.evd, &event), DAT_SUCCESS);
}

static int attend_event(void)
{
	post_event();
	return 1;
}

/* The waiter is about to sleep: ends the wait. */
static void end_wait(void)
{
	assert_int_equal(core_evd_set_unwaitable(waited), DAT_SUCCESS);
}

static DAT_RETURN wait_for(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout)
{
	DAT_EVENT event;
	DAT_COUNT more;

	return DAT_GET_TYPE(core_evd_wait(evd, timeout, 1, &event, &more));
}

/* Waits until the thread would sleep; it has armed then. */
static void wait_to_sleep(DAT_EVD_HANDLE evd)
{
	waited = evd;
	mock.on_arm = end_wait;
	assert_int_equal(wait_for(evd, DAT_TIMEOUT_INFINITE), DAT_INVALID_STATE);
	assert_int_equal(core_evd_clear_unwaitable(evd), DAT_SUCCESS);
	mock.on_arm = NULL;
}

static void wait__event_served__ends_without_sleep(void **state)
{
	(void)state;
	mock.on_attend = attend_event;
	assert_int_equal(wait_for(ia.evd, DAT_TIMEOUT_INFINITE), DAT_SUCCESS);
	assert_int_equal(mock.attends, 1);
	assert_int_equal(mock.attended, 1);
	assert_int_equal(mock.arms, 0);
}

/* EVD-WAIT-37: the transport's own thread takes over before the waiter sleeps. */
static void wait__nothing_arrives__sleeps_after_a_while(void **state)
{
	(void)state;
	mock.on_attend = attend_nothing;
	wait_to_sleep(ia.evd);
	assert_int_not_equal(mock.attends, 0);
	assert_int_equal(mock.attended, 1);
}

static void wait__transport_ends_it__sleeps_at_once(void **state)
{
	(void)state;
	mock.on_attend = attend_no_longer;
	wait_to_sleep(ia.evd);
	assert_int_equal(mock.attends, 1);
	assert_int_equal(mock.attended, 1);
}

static void wait__transport_does_not_want_it__sleeps(void **state)
{
	(void)state;
	wait_to_sleep(ia.evd);
	assert_int_equal(mock.attends, 0);
	assert_int_equal(mock.attended, 0);
}

static DAT_EVD_HANDLE make_evd(DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	assert_int_equal(core_evd_create(ia.ia, 4, DAT_HANDLE_NULL, flags, &evd), DAT_SUCCESS);
	return evd;
}

static void wait__by_kind_of_events__only_for_connections(void **state)
{
	static const struct {
		DAT_EVD_FLAGS flags;
		bool is_for_connections;
	} kinds[] = {
		{DAT_EVD_CR_FLAG, true},	{DAT_EVD_CONNECTION_FLAG, true},
		{DAT_EVD_DTO_FLAG, false},	{DAT_EVD_RMR_BIND_FLAG, false},
		{DAT_EVD_SOFTWARE_FLAG, false},
	};

	(void)state;
	mock.on_attend = attend_no_longer;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		mock.attended = 0;
		wait_to_sleep(make_evd(kinds[i].flags));
		assert_int_equal(mock.attended, kinds[i].is_for_connections);
	}
}

static void post_when_attended(void)
{
	if (mock.attended) {
		mock.on_progress = NULL;
		post_event();
	}
}

/* Data that arrives all the time does not keep the thread from connections, nor for ever with them.
 */
static void wait__progress_finds_each_time__attends_for_a_while(void **state)
{
	(void)state;
	mock.on_attend = attend_nothing;
	mock.on_progress = post_when_attended;
	mock.progress_finds = 1;
	assert_int_equal(wait_for(ia.evd, DAT_TIMEOUT_INFINITE), DAT_SUCCESS);
	mock.progress_finds = 0;
	assert_int_not_equal(mock.attends, 0);
	assert_int_equal(mock.attended, 1);
	assert_int_equal(mock.arms, 0);
}

/* A wait that would be over soon does not yield the processor. */
static void wait__short_timeout__does_not_attend(void **state)
{
	static const DAT_TIMEOUT timeouts[] = {0, 1, 100};

	(void)state;
	mock.on_attend = attend_nothing;
	for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++)
		assert_int_equal(wait_for(ia.evd, timeouts[i]), DAT_TIMEOUT_EXPIRED);
	assert_int_equal(mock.attended, 0);
}

/* EVD-WAIT-24: a signal ends a wait that sleeps, so it sleeps soon, whatever spin_us is. */
static void wait__spin_us_is_large__attends_for_a_millisecond(void **state)
{
	DAT_EVD_HANDLE evd = make_evd(DAT_EVD_CR_FLAG);
	uint64_t spin_us = mock.ia->settings.spin_us;
	uint64_t begin = core_now_ns();

	(void)state;
	mock.on_attend = attend_nothing;
	mock.ia->settings.spin_us = 1000000;
	wait_to_sleep(evd);
	mock.ia->settings.spin_us = spin_us;
	assert_int_equal(mock.attended, 1);
	assert_true(core_now_ns() - begin < UINT64_C(5000000000)); /* not ten seconds */
}

static void wait__spin_us_is_0__sleeps(void **state)
{
	uint64_t spin_us = mock.ia->settings.spin_us;

	(void)state;
	mock.on_attend = attend_nothing;
	mock.ia->settings.spin_us = 0;
	wait_to_sleep(ia.evd);
	mock.ia->settings.spin_us = spin_us;
	assert_int_equal(mock.attended, 0);
}

/* One that finds something each time does not sleep, and is cancelled awake. */
static int attend_cancelled(void)
{
	if (mock.attends == 1)
		pthread_cancel(pthread_self());
	return 1;
}

static void *wait_cancelled(void *unused)
{
	DAT_EVENT event;
	DAT_COUNT more;

	core_evd_wait(ia.evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
	return unused;
}

/* EVD-WAIT-39 COMPAT-24 */
static void wait__cancelled__service_takes_over(void **state)
{
	pthread_t thread;
	void *result;

	(void)state;
	mock.on_attend = attend_cancelled;
	assert_int_equal(pthread_create(&thread, NULL, wait_cancelled, NULL), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(mock.attended, 1);
	assert_int_equal(mock.attending, 0);
	/* the EVD has no waiter any more */
	mock.on_attend = NULL;
	wait_to_sleep(ia.evd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(wait__event_served__ends_without_sleep, setup,
						teardown),
		cmocka_unit_test_setup_teardown(wait__nothing_arrives__sleeps_after_a_while, setup,
						teardown),
		cmocka_unit_test_setup_teardown(wait__transport_ends_it__sleeps_at_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(wait__transport_does_not_want_it__sleeps, setup,
						teardown),
		cmocka_unit_test_setup_teardown(wait__by_kind_of_events__only_for_connections,
						setup, teardown),
		cmocka_unit_test_setup_teardown(wait__progress_finds_each_time__attends_for_a_while,
						setup, teardown),
		cmocka_unit_test_setup_teardown(wait__short_timeout__does_not_attend, setup,
						teardown),
		cmocka_unit_test_setup_teardown(wait__spin_us_is_large__attends_for_a_millisecond,
						setup, teardown),
		cmocka_unit_test_setup_teardown(wait__spin_us_is_0__sleeps, setup, teardown),
		cmocka_unit_test_setup_teardown(wait__cancelled__service_takes_over, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("core attend", tests, NULL, NULL);
}
