// SPDX-License-Identifier: BSD-2-Clause
/* dat_evd_resize: growing and shrinking with events queued, refusals, concurrent posts. */
#include "evd_util.h"

/* The queue holds `first`, `first` + 1, ... and takes exactly `length` events in all. */
static void check_length(DAT_EVD_HANDLE evd, uintptr_t first, uintptr_t queued, uintptr_t length)
{
	assert_int_equal(evd_query(evd).evd_qlen, length);
	evd_post_range(evd, first + queued, length - queued);
	dt_fails(evd_try_post(evd, 0), DAT_QUEUE_FULL);
	evd_take_range(evd, first, length);
	dt_no_event(evd);
}

/* EVD-RESIZE-01 EVD-RESIZE-02 EVD-RESIZE-03: every fill level, with the ring wrapped at each point
 */
static void evd_resize__events_queued__kept_in_order(void **state)
{
	static const uintptr_t lengths[] = {4, 5, 6, 9, 16, 40};
	struct evd_fixture *f = *state;

	for (uintptr_t turn = 0; turn < EVD_QLEN; turn++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 6, DAT_EVD_SOFTWARE_FLAG);

			for (uintptr_t k = 0; k < turn; k++) {
				evd_post(evd, 77);
				evd_take(evd, 77);
			}
			evd_post_range(evd, 1, 4);
			dt_ok(dat_evd_resize(evd, (DAT_COUNT)lengths[i]));
			check_length(evd, 1, 4, lengths[i]);
			dt_ok(dat_evd_free(evd));
		}
	}
}

/* EVD-RESIZE-05 EVD-RESIZE-06 */
static void evd_resize__fewer_than_queued__invalid_state_and_nothing_changed(void **state)
{
	struct evd_fixture *f = *state;

	for (uintptr_t queued = 2; queued <= EVD_QLEN; queued++) {
		evd_post_range(f->evd, 1, queued);
		for (DAT_COUNT length = 1; length < (DAT_COUNT)queued; length++)
			dt_fails(dat_evd_resize(f->evd, length), DAT_INVALID_STATE);
		check_length(f->evd, 1, queued, EVD_QLEN);
	}
	dt_ok(dat_evd_resize(f->evd, 1));
}

/* EVD-RESIZE-07 */
static void evd_resize__present_size__nothing_changes(void **state)
{
	struct evd_fixture *f = *state;

	evd_post_range(f->evd, 1, EVD_QLEN);
	dt_ok(dat_evd_resize(f->evd, EVD_QLEN));
	check_length(f->evd, 1, EVD_QLEN, EVD_QLEN);
}

/* EVD-RESIZE-08 EVD-RESIZE-09 EVD-RESIZE-06 */
static void evd_resize__size_out_of_range__invalid_parameter(void **state)
{
	struct evd_fixture *f = *state;

	evd_post_range(f->evd, 1, 3);
	dt_fails_with(dat_evd_resize(f->evd, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_evd_resize(f->evd, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_evd_resize(f->evd, INT32_MIN), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (f->ia.attr.max_evd_qlen < INT32_MAX) {
		dt_fails_with(dat_evd_resize(f->evd, f->ia.attr.max_evd_qlen + 1),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		dt_fails_with(dat_evd_resize(f->evd, INT32_MAX), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
	}
	check_length(f->evd, 1, 3, EVD_QLEN);
}

/* EVD-RESIZE-09: The limit itself is accepted. */
static void evd_resize__limit__accepted(void **state)
{
	struct evd_fixture *f = *state;

	evd_post_range(f->evd, 1, 3);
	dt_ok(dat_evd_resize(f->evd, f->ia.attr.max_evd_qlen));
	assert_int_equal(evd_query(f->evd).evd_qlen, f->ia.attr.max_evd_qlen);
	evd_take_range(f->evd, 1, 3);
}

/* EVD-RESIZE-11 EVD-RESIZE-06: for every kind of size */
static void evd_resize__waiter_blocked__invalid_state(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};

	evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 2);
	dt_fails_with(dat_evd_resize(f->evd, EVD_QLEN + 1), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_WAITER);
	dt_fails_with(dat_evd_resize(f->evd, EVD_QLEN - 1), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_WAITER);
	dt_fails_with(dat_evd_resize(f->evd, EVD_QLEN), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_WAITER);
	assert_int_equal(evd_query(f->evd).evd_qlen, EVD_QLEN);
	evd_post_range(f->evd, 1, 2);
	dt_ok(evd_waiter_join(&waiter));
	evd_take(f->evd, 2);
	dt_ok(dat_evd_resize(f->evd, EVD_QLEN + 1));
}

/* EVD-RESIZE-12 */
static void evd_resize__asynchronous_evd__accepted(void **state)
{
	struct evd_fixture *f = *state;
	DAT_COUNT length = evd_query(f->ia.async).evd_qlen;

	dt_ok(dat_evd_resize(f->ia.async, length + 5));
	assert_int_equal(evd_query(f->ia.async).evd_qlen, length + 5);
	dt_ok(dat_evd_resize(f->ia.async, 1));
	assert_int_equal(evd_query(f->ia.async).evd_qlen, 1);
}

/* EVD-RESIZE-13 */
static void evd_resize__any_state__flags_and_state_kept(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE evd =
		dt_evd_create(&f->ia, 4, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CONNECTION_FLAG);

	for (int i = 0; i < 4; i++) {
		DAT_EVD_PARAM before, after;

		dt_ok(i & 1 ? dat_evd_disable(evd) : dat_evd_enable(evd));
		dt_ok(i & 2 ? dat_evd_set_unwaitable(evd) : dat_evd_clear_unwaitable(evd));
		before = evd_query(evd);
		dt_ok(dat_evd_resize(evd, 5 + i));
		after = evd_query(evd);
		assert_int_equal(after.evd_qlen, 5 + i);
		assert_int_equal(after.evd_state, before.evd_state);
		assert_int_equal(after.evd_flags, before.evd_flags);
		assert_ptr_equal(after.cno_handle, before.cno_handle);
		assert_ptr_equal(after.ia_handle, before.ia_handle);
	}
}

#define POSTS 4000

struct poster {
	DAT_EVD_HANDLE evd;
	DAT_RETURN ret;
};

static void *post_all(void *arg)
{
	struct poster *poster = arg;

	for (uintptr_t i = 0; i < POSTS && poster->ret == DAT_SUCCESS; i++) {
		do {
			poster->ret = evd_try_post(poster->evd, i);
		} while (DAT_GET_TYPE(poster->ret) == DAT_QUEUE_FULL && !sched_yield());
	}
	return NULL;
}

/* EVD-RESIZE-04 EVD-RESIZE-15: On a busy machine two spinning threads can take long, so only the
 * next event has a time limit. */
static void evd_resize__posts_at_the_same_time__nothing_lost(void **state)
{
	struct evd_fixture *f = *state;
	struct poster poster = {.evd = f->evd};
	uint64_t end = dt_now_us() + DT_WAIT_US;
	uintptr_t taken = 0;
	pthread_t thread;
	DAT_COUNT turn = 0;

	assert_int_equal(pthread_create(&thread, NULL, post_all, &poster), 0);
	while (taken < POSTS) {
		DAT_RETURN ret = dat_evd_resize(f->evd, 4 + turn++ % 20);
		DAT_EVENT event;

		assert_true(ret == DAT_SUCCESS || DAT_GET_TYPE(ret) == DAT_INVALID_STATE);
		for (int i = 0; i < 3; i++) {
			ret = dat_evd_dequeue(f->evd, &event);
			if (ret == DAT_QUEUE_EMPTY)
				break;
			dt_ok(ret);
			evd_check_soft(&event, f->evd, taken++);
			end = dt_now_us() + DT_WAIT_US; /* for the next one */
		}
		assert_true(dt_now_us() < end);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	dt_ok(poster.ret);
	dt_no_event(f->evd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(evd_resize__events_queued__kept_in_order),
		evd_test(evd_resize__fewer_than_queued__invalid_state_and_nothing_changed),
		evd_test(evd_resize__present_size__nothing_changes),
		evd_test(evd_resize__size_out_of_range__invalid_parameter),
		evd_test(evd_resize__limit__accepted),
		evd_test(evd_resize__waiter_blocked__invalid_state),
		evd_test(evd_resize__asynchronous_evd__accepted),
		evd_test(evd_resize__any_state__flags_and_state_kept),
		evd_test(evd_resize__posts_at_the_same_time__nothing_lost),
	};

	return cmocka_run_group_tests_name("evd_resize", tests, NULL, NULL);
}
