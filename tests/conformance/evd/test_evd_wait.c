// SPDX-License-Identifier: BSD-2-Clause
/* dat_evd_wait: thresholds, time limits, ownership of the queue, and refused arguments. */
#include "evd_util.h"

static DAT_RETURN wait_now(DAT_EVD_HANDLE evd, DAT_COUNT threshold, DAT_EVENT *event,
			   DAT_COUNT *nmore)
{
	*nmore = -1;
	return dat_evd_wait(evd, 0, threshold, event, nmore);
}

/* EVD-WAIT-01 EVD-WAIT-02 EVD-WAIT-03 EVD-WAIT-04 EVD-WAIT-08 */
static void evd_wait__enough_queued__first_event_and_rest_counted(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVENT event;
	DAT_COUNT nmore;

	for (DAT_COUNT threshold = 1; threshold <= 3; threshold++) {
		evd_post_range(f->evd, 1, 4);
		dt_ok(wait_now(f->evd, threshold, &event, &nmore));
		evd_check_soft(&event, f->evd, 1);
		assert_int_equal(nmore, 3);
		evd_take_range(f->evd, 2, 3);
		dt_no_event(f->evd);
	}
}

/* EVD-WAIT-06 EVD-WAIT-07 EVD-WAIT-08 */
static void evd_wait__below_threshold__timeout_and_nothing_removed(void **state)
{
	static const DAT_TIMEOUT limits[] = {0, 1, 20000};
	struct evd_fixture *f = *state;
	DAT_EVENT event;
	DAT_COUNT nmore;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		for (DAT_COUNT queued = 0; queued < 3; queued++) {
			evd_post_range(f->evd, 1, (uintptr_t)queued);
			nmore = -1;
			dt_fails(dat_evd_wait(f->evd, limits[i], 3, &event, &nmore),
				 DAT_TIMEOUT_EXPIRED);
			assert_int_equal(nmore, queued);
			evd_take_range(f->evd, 1, (uintptr_t)queued);
			dt_no_event(f->evd);
		}
	}
}

/* EVD-WAIT-05: The limit is in microseconds. */
static void evd_wait__nothing_comes__limit_is_in_microseconds(void **state)
{
	static const DAT_TIMEOUT limits[] = {999, 1999, 10500, 120000};
	struct evd_fixture *f = *state;
	DAT_EVENT event;
	DAT_COUNT nmore;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		uint64_t start = dt_now_us();

		dt_fails(dat_evd_wait(f->evd, limits[i], 1, &event, &nmore), DAT_TIMEOUT_EXPIRED);
		assert_true(dt_now_us() - start >= limits[i]);
		assert_true(dt_now_us() - start < DT_WAIT_US);
	}
}

/* EVD-WAIT-09 EVD-WAIT-01: An infinite wait ends only with its event. */
static void evd_wait__infinite__ends_with_the_event(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};

	evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 1);
	evd_waiter_stays(&waiter);
	evd_post(f->evd, 5);
	dt_ok(evd_waiter_join(&waiter));
	evd_check_soft(&waiter.event, f->evd, 5);
	assert_int_equal(waiter.nmore, 0);
}

/* EVD-WAIT-32: Also values that are negative as signed numbers. One less than infinite waits,
 * too. */
static void evd_wait__any_timeout__accepted(void **state)
{
	static const DAT_TIMEOUT limits[] = {
		0, 1, 999999999, 0x7fffffff, 0x80000000, 0xfffffffe, DAT_TIMEOUT_INFINITE,
	};
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};
	DAT_EVENT event;
	DAT_COUNT nmore;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		evd_post(f->evd, i);
		dt_ok(dat_evd_wait(f->evd, limits[i], 1, &event, &nmore));
		evd_check_soft(&event, f->evd, i);
	}
	for (size_t i = 3; i < 6; i++) {
		evd_waiter_start(&waiter, f->evd, limits[i], 1);
		evd_post(f->evd, i);
		dt_ok(evd_waiter_join(&waiter));
	}
}

/* EVD-WAIT-10: Events below the threshold do not extend the limit. */
static void evd_wait__events_trickle__limit_covers_the_whole_call(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 1000, DAT_EVD_SOFTWARE_FLAG);
	struct evd_waiter waiter = {0};
	uint64_t start = dt_now_us();
	DAT_COUNT posted = 0;

	evd_waiter_start(&waiter, evd, 300000, 1000);
	while (posted < 400 && !atomic_load(&waiter.is_done)) {
		evd_post(evd, (uintptr_t)posted++);
		usleep(20000);
	}
	assert_true(posted < 400);
	dt_fails(evd_waiter_join(&waiter), DAT_TIMEOUT_EXPIRED);
	assert_true(dt_now_us() - start >= 300000);
	assert_true(waiter.nmore >= 0 && waiter.nmore <= posted);
	evd_take_range(evd, 0, (uintptr_t)posted);
}

/* EVD-WAIT-11 EVD-WAIT-12 */
static void evd_wait__threshold_out_of_range__invalid_parameter(void **state)
{
	static const DAT_COUNT bad[] = {0, -1, INT32_MIN, EVD_QLEN + 1, INT32_MAX};
	struct evd_fixture *f = *state;
	DAT_EVENT event;
	DAT_COUNT nmore;

	evd_post(f->evd, 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		dt_fails_with(wait_now(f->evd, bad[i], &event, &nmore), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG3);
	dt_fails(wait_now(f->evd, EVD_QLEN, &event, &nmore), DAT_TIMEOUT_EXPIRED);
	evd_take(f->evd, 1);
}

/* EVD-WAIT-12: The limit is the current length of the queue. */
static void evd_wait__threshold_after_resize__new_length_counts(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVENT event;
	DAT_COUNT nmore;

	dt_ok(dat_evd_resize(f->evd, EVD_QLEN + 2));
	dt_fails(wait_now(f->evd, EVD_QLEN + 2, &event, &nmore), DAT_TIMEOUT_EXPIRED);
	dt_fails_with(wait_now(f->evd, EVD_QLEN + 3, &event, &nmore), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_ok(dat_evd_resize(f->evd, 2));
	dt_fails_with(wait_now(f->evd, 3, &event, &nmore), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

/* EVD-WAIT-16: A refused call takes neither an event nor the ownership. */
static void evd_wait__second_waiter__invalid_state(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};
	DAT_EVENT event;
	DAT_COUNT nmore;

	evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 2);
	evd_post(f->evd, 1);
	dt_fails_with(wait_now(f->evd, 1, &event, &nmore), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_WAITER);
	dt_fails_with(dat_evd_wait(f->evd, DAT_TIMEOUT_INFINITE, 1, &event, &nmore),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	evd_waiter_stays(&waiter);
	evd_post(f->evd, 2);
	dt_ok(evd_waiter_join(&waiter));
	evd_check_soft(&waiter.event, f->evd, 1);
	evd_take(f->evd, 2);
}

/* EVD-WAIT-19: After a time-out, a success and a refusal the EVD has no owner. */
static void evd_wait__call_returned__next_dequeue_and_wait_accepted(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};
	DAT_EVENT event;
	DAT_COUNT nmore;

	evd_waiter_start(&waiter, f->evd, 200000, 1);
	dt_fails(evd_waiter_join(&waiter), DAT_TIMEOUT_EXPIRED);
	dt_no_event(f->evd);
	dt_fails(wait_now(f->evd, 1, &event, &nmore), DAT_TIMEOUT_EXPIRED);
	dt_no_event(f->evd);
	dt_fails_with(wait_now(f->evd, 0, &event, &nmore), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_no_event(f->evd);
	evd_post(f->evd, 1);
	dt_ok(wait_now(f->evd, 1, &event, &nmore));
	dt_no_event(f->evd);
	assert_false(evd_is_waited(f->evd));
}

/* EVD-WAIT-18 EVD-SET-UNWAITABLE-01 EVD-WAIT-36 */
static void evd_wait__unwaitable__invalid_state_even_with_events(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVENT event;
	DAT_COUNT nmore;

	dt_ok(dat_evd_set_unwaitable(f->evd));
	dt_fails_with(dat_evd_wait(f->evd, DAT_TIMEOUT_INFINITE, 1, &event, &nmore),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	evd_post(f->evd, 1);
	dt_fails_with(dat_evd_wait(f->evd, DAT_TIMEOUT_INFINITE, 1, &event, &nmore),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	dt_fails_with(wait_now(f->evd, 1, &event, &nmore), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_UNWAITABLE);
	/* a wrong argument is reported first */
	dt_fails_with(wait_now(f->evd, 0, &event, &nmore), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(dat_evd_wait(f->evd, 0, 1, NULL, &nmore), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG4);
	evd_take(f->evd, 1);
}

/* EVD-WAIT-31 EVD-DISABLE-05: The thread waits before or after the EVD is disabled. */
static void evd_wait__disabled__works_the_same(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};
	DAT_EVENT event;
	DAT_COUNT nmore;

	evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 1);
	dt_ok(dat_evd_disable(f->evd));
	evd_waiter_stays(&waiter);
	evd_post(f->evd, 1);
	dt_ok(evd_waiter_join(&waiter));
	evd_check_soft(&waiter.event, f->evd, 1);
	evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 1);
	evd_post(f->evd, 2);
	dt_ok(evd_waiter_join(&waiter));
	evd_check_soft(&waiter.event, f->evd, 2);
	evd_post(f->evd, 3);
	dt_ok(wait_now(f->evd, 1, &event, &nmore));
}

/* EVD-ENABLE-04 */
static void evd_enable__waiter_blocked__keeps_waiting_and_gets_its_event(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};

	dt_ok(dat_evd_disable(f->evd));
	evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 1);
	dt_ok(dat_evd_enable(f->evd));
	evd_waiter_stays(&waiter);
	evd_post(f->evd, 1);
	dt_ok(evd_waiter_join(&waiter));
	evd_check_soft(&waiter.event, f->evd, 1);
}

/* EVD-WAIT-33 */
static void evd_wait__bad_handle__invalid_handle(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE freed = dt_evd_create(&f->ia, 4, DAT_EVD_SOFTWARE_FLAG);
	const DAT_HANDLE bad[] = {DAT_HANDLE_NULL, f->ia.pz, f->ia.ia, DT_NEVER_A_HANDLE, freed};
	DAT_EVENT event;
	DAT_COUNT nmore;

	dt_ok(dat_evd_free(freed));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		dt_fails(wait_now(bad[i], 1, &event, &nmore), DAT_INVALID_HANDLE);
}

/* EVD-WAIT-34 EVD-WAIT-35 */
static void evd_wait__null_outputs__invalid_parameter(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVENT event;
	DAT_COUNT nmore;

	evd_post(f->evd, 1);
	dt_fails_with(dat_evd_wait(f->evd, 0, 1, NULL, &nmore), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG4);
	dt_fails_with(dat_evd_wait(f->evd, 0, 1, &event, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG5);
	evd_take(f->evd, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(evd_wait__enough_queued__first_event_and_rest_counted),
		evd_test(evd_wait__below_threshold__timeout_and_nothing_removed),
		evd_test(evd_wait__nothing_comes__limit_is_in_microseconds),
		evd_test(evd_wait__infinite__ends_with_the_event),
		evd_test(evd_wait__any_timeout__accepted),
		evd_test(evd_wait__events_trickle__limit_covers_the_whole_call),
		evd_test(evd_wait__threshold_out_of_range__invalid_parameter),
		evd_test(evd_wait__threshold_after_resize__new_length_counts),
		evd_test(evd_wait__second_waiter__invalid_state),
		evd_test(evd_wait__call_returned__next_dequeue_and_wait_accepted),
		evd_test(evd_wait__unwaitable__invalid_state_even_with_events),
		evd_test(evd_wait__disabled__works_the_same),
		evd_test(evd_enable__waiter_blocked__keeps_waiting_and_gets_its_event),
		evd_test(evd_wait__bad_handle__invalid_handle),
		evd_test(evd_wait__null_outputs__invalid_parameter),
	};

	return cmocka_run_group_tests_name("evd_wait", tests, NULL, NULL);
}
