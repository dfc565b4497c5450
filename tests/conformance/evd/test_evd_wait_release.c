// SPDX-License-Identifier: BSD-2-Clause
/* Other ways in which a dat_evd_wait ends: unwaitable, free, abrupt close, signals,
 * cancellation; and races of them. */
#include <signal.h>

#include "evd_util.h"

/* EVD-WAIT-20 EVD-SET-UNWAITABLE-02 EVD-SET-UNWAITABLE-03 EVD-SET-UNWAITABLE-08
 * EVD-SET-UNWAITABLE-10 */
static void evd_set_unwaitable__waiter_blocked__released_without_event(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};

	for (uintptr_t queued = 0; queued < 3; queued++) {
		evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 3);
		evd_post_range(f->evd, 1, queued);
		dt_ok(dat_evd_set_unwaitable(f->evd));
		evd_check_state(f->evd, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_UNWAITABLE);
		dt_fails_with(evd_waiter_join(&waiter), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_EVD_UNWAITABLE);
		evd_take_range(f->evd, 1, queued);
		dt_no_event(f->evd);
		dt_ok(dat_evd_clear_unwaitable(f->evd));
	}
}

/* EVD-WAIT-23 EVD-FREE-08 EVD-FREE-01 */
static void evd_free__waiter_blocked__abort(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};
	DAT_EVENT event;

	for (uintptr_t queued = 0; queued < 3; queued++) {
		DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 8, DAT_EVD_SOFTWARE_FLAG);

		evd_waiter_start(&waiter, evd, DAT_TIMEOUT_INFINITE, 3);
		evd_post_range(evd, 1, queued);
		dt_ok(dat_evd_free(evd));
		dt_fails(evd_waiter_join(&waiter), DAT_ABORT);
		dt_fails(dat_evd_dequeue(evd, &event), DAT_INVALID_HANDLE);
	}
}

/* --- signals --- */

static atomic_int signals;

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&signals, 1);
}

static void handle_signal(int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	action.sa_flags = flags;
	sigemptyset(&action.sa_mask);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	atomic_store(&signals, 0);
}

/* Sends more than one signal: the first may arrive before the thread sleeps. */
static void signal_until_done(struct evd_waiter *waiter)
{
	uint64_t end = dt_now_us() + DT_WAIT_US;

	while (!atomic_load(&waiter->is_done)) {
		assert_true(dt_now_us() < end);
		assert_int_equal(pthread_kill(waiter->thread, SIGUSR1), 0);
		usleep(2000);
	}
}

/* EVD-WAIT-24 EVD-WAIT-26 EVD-WAIT-19 */
static void evd_wait__signal_handled__interrupted_and_nothing_removed(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};

	handle_signal(0);
	for (uintptr_t queued = 0; queued < 3; queued++) {
		evd_post_range(f->evd, 1, queued);
		evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 3);
		signal_until_done(&waiter);
		dt_fails(evd_waiter_join(&waiter), DAT_INTERRUPTED_CALL);
		assert_true(atomic_load(&signals) > 0);
		assert_int_equal(waiter.nmore, queued);
		evd_take_range(f->evd, 1, queued);
		dt_no_event(f->evd);
	}
}

/* EVD-WAIT-25: A signal does not restart the time limit. */
static void evd_wait__signals_with_restart__interrupted_or_on_time(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};
	DAT_RETURN ret;

	handle_signal(SA_RESTART);
	evd_post(f->evd, 1);
	evd_waiter_start(&waiter, f->evd, 400000, 2);
	signal_until_done(&waiter);
	ret = evd_waiter_join(&waiter);
	assert_true(DAT_GET_TYPE(ret) == DAT_INTERRUPTED_CALL ||
		    DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED);
	assert_int_equal(waiter.nmore, 1);
	evd_take(f->evd, 1);
}

/* --- cancellation --- */

/* EVD-WAIT-39: Afterwards the EVD has no owner, no lock is held, and all events are queued. */
static void cancel_blocked(struct evd_fixture *f, int cancel_type)
{
	struct evd_waiter waiter = {.cancel_type = cancel_type};
	DAT_EVENT event;
	DAT_COUNT nmore;

	for (int round = 0; round < 30; round++) {
		uintptr_t queued = (uintptr_t)round % 3;
		DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 8, DAT_EVD_SOFTWARE_FLAG);

		evd_post_range(evd, 1, queued);
		evd_waiter_start(&waiter, evd, round % 2 ? DAT_TIMEOUT_INFINITE : 15000000, 3);
		evd_waiter_cancel(&waiter);
		assert_true(waiter.is_cancelled);
		assert_false(evd_is_waited(evd));
		evd_take_range(evd, 1, queued);
		dt_no_event(evd);
		evd_post(evd, 9);
		dt_ok(dat_evd_wait(evd, DT_WAIT_US, 1, &event, &nmore));
		evd_check_soft(&event, evd, 9);
		dt_ok(dat_evd_free(evd));
	}
}

/* EVD-WAIT-39 */
static void evd_wait__cancelled_deferred__gives_up_the_evd(void **state)
{
	cancel_blocked(*state, PTHREAD_CANCEL_DEFERRED);
}

/* EVD-WAIT-39 */
static void evd_wait__cancelled_asynchronously__gives_up_the_evd(void **state)
{
	cancel_blocked(*state, DT_CANCEL_ANYWHERE);
}

/* EVD-WAIT-39: The thread is cancelled at any point of the call. The threshold is not reached. */
static void cancel_anywhere(struct evd_fixture *f, int cancel_type)
{
	struct evd_waiter waiter = {.cancel_type = cancel_type};

	evd_post(f->evd, 1);
	for (int round = 0; round < 2000; round++) {
		evd_waiter_launch(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 2);
		for (int i = 0; i < round % 64; i++)
			sched_yield();
		evd_waiter_cancel(&waiter);
		assert_true(waiter.is_cancelled);
		assert_false(evd_is_waited(f->evd));
	}
	evd_take(f->evd, 1);
	dt_no_event(f->evd);
}

/* EVD-WAIT-39 */
static void evd_wait__deferred_cancel_at_any_time__no_lock_left(void **state)
{
	cancel_anywhere(*state, PTHREAD_CANCEL_DEFERRED);
}

/* EVD-WAIT-39 */
static void evd_wait__asynchronous_cancel_at_any_time__no_lock_left(void **state)
{
	cancel_anywhere(*state, DT_CANCEL_ANYWHERE);
}

/* EVD-WAIT-09 EVD-WAIT-39: The request stays pending while the consumer has disabled cancellation.
 */
static void evd_wait__cancellation_disabled__waits_on(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {.cancel_type = PTHREAD_CANCEL_DEFERRED, .is_protected = true};

	for (uintptr_t round = 0; round < 30; round++) {
		evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 1);
		assert_int_equal(pthread_cancel(waiter.thread), 0);
		evd_post(f->evd, round);
		dt_ok(evd_waiter_join(&waiter));
		evd_check_soft(&waiter.event, f->evd, round);
	}
}

/* EVD-WAIT-37: Events are posted between the waiter's check and its sleep. */
static void evd_wait__threshold_reached_while_falling_asleep__returns(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};

	for (uintptr_t round = 0; round < 500; round++) {
		evd_waiter_launch(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 2);
		evd_post(f->evd, 2 * round);
		for (uintptr_t i = 0; i < round % 50; i++)
			sched_yield();
		evd_post(f->evd, 2 * round + 1);
		dt_ok(evd_waiter_join(&waiter));
		evd_check_soft(&waiter.event, f->evd, 2 * round);
		assert_int_equal(waiter.nmore, 1);
		evd_take(f->evd, 2 * round + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(evd_set_unwaitable__waiter_blocked__released_without_event),
		evd_test(evd_free__waiter_blocked__abort),
		evd_test(evd_wait__signal_handled__interrupted_and_nothing_removed),
		evd_test(evd_wait__signals_with_restart__interrupted_or_on_time),
		evd_test(evd_wait__cancelled_deferred__gives_up_the_evd),
		evd_test(evd_wait__cancelled_asynchronously__gives_up_the_evd),
		evd_test(evd_wait__deferred_cancel_at_any_time__no_lock_left),
		evd_test(evd_wait__asynchronous_cancel_at_any_time__no_lock_left),
		evd_test(evd_wait__cancellation_disabled__waits_on),
		evd_test(evd_wait__threshold_reached_while_falling_asleep__returns),
	};

	return cmocka_run_group_tests_name("evd_wait_release", tests, NULL, NULL);
}
