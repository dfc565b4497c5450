// SPDX-License-Identifier: BSD-2-Clause
/* dat_cno_wait: the reported EVD, time-outs, and other ways in which it returns. */
#include <signal.h>

#include "cno_util.h"

struct fixture {
	struct evd_fixture *base;
	struct dt_ia *ia;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd[3];
};

static struct fixture open_three(void **state)
{
	struct evd_fixture *base = *state;
	struct fixture f = {.base = base, .ia = &base->ia, .cno = cno_create(&base->ia)};

	for (int i = 0; i < 3; i++)
		f.evd[i] = cno_evd(f.ia, f.cno);
	return f;
}

/* --- notifications --- */

/* CNO-WAIT-01 CNO-WAIT-07 CNO-WAIT-11 */
static void cno_wait__event_while_blocked__names_the_evd(void **state)
{
	struct fixture f = open_three(state);
	struct cno_waiter waiter = {0};

	for (uintptr_t i = 0; i < 6; i++) {
		cno_waiter_start(&waiter, f.cno, i % 2 ? DT_WAIT_US : DAT_TIMEOUT_INFINITE);
		cno_waiter_stays(&waiter);
		evd_post(f.evd[i % 3], i);
		cno_waiter_gets(&waiter, f.evd[i % 3]);
		evd_take(f.evd[i % 3], i);
		cno_is_quiet(f.cno);
	}
}

/* CNO-WAIT-02 CNO-WAIT-03 CNO-WAIT-07 CNO-WAIT-10 */
static void cno_wait__event_before__kept_for_one_wait(void **state)
{
	struct fixture f = open_three(state);

	evd_post(f.evd[1], 1);
	cno_expect(f.cno, f.evd[1]);
	cno_is_quiet(f.cno);
	cno_stays_quiet(f.cno);
	evd_take(f.evd[1], 1);
	evd_post(f.evd[1], 2);
	cno_expect(f.cno, f.evd[1]);
	cno_is_quiet(f.cno);
	evd_take(f.evd[1], 2);
}

/* CNO-WAIT-04 CNO-WAIT-06 */
static void cno_wait__several_triggered__one_wait_each_in_order(void **state)
{
	struct fixture f = open_three(state);
	static const unsigned int posts[] = {2, 0, 1, 0, 2, 2};
	static const unsigned int more[] = {1, 0, 2};

	for (uintptr_t i = 0; i < COUNT_OF(posts); i++)
		evd_post(f.evd[posts[i]], i);
	cno_expect(f.cno, f.evd[2]);
	evd_post(f.evd[2], 9); /* triggers again, after those that triggered before */
	cno_expect(f.cno, f.evd[0]);
	cno_expect(f.cno, f.evd[1]);
	cno_expect(f.cno, f.evd[2]);
	cno_is_quiet(f.cno);
	for (uintptr_t i = 0; i < COUNT_OF(more); i++)
		evd_post(f.evd[more[i]], i);
	for (uintptr_t i = 0; i < COUNT_OF(more); i++)
		cno_expect(f.cno, f.evd[more[i]]);
	cno_is_quiet(f.cno);
}

/* CNO-WAIT-04 CNO-WAIT-27: The order of the others stays. */
static void cno_wait__triggered_evd_freed__never_named(void **state)
{
	for (int gone = 0; gone < 3; gone++) {
		struct fixture f = open_three(state);

		for (int i = 0; i < 3; i++)
			evd_post(f.evd[i], 1);
		dt_ok(dat_evd_free(f.evd[gone]));
		for (int i = 0; i < 3; i++)
			if (i != gone)
				cno_expect(f.cno, f.evd[i]);
		cno_is_quiet(f.cno);
		f.evd[gone] = cno_evd(f.ia, f.cno);
		evd_post(f.evd[gone], 2);
		cno_expect(f.cno, f.evd[gone]);
		cno_is_quiet(f.cno);
	}
}

/* CNO-WAIT-27: the only one */
static void cno_wait__only_triggered_evd_freed__times_out(void **state)
{
	struct evd_fixture *base = *state;
	DAT_CNO_HANDLE cno = cno_create(&base->ia);
	DAT_EVD_HANDLE evd = cno_evd(&base->ia, cno);

	evd_post(evd, 1);
	dt_ok(dat_evd_free(evd));
	cno_is_quiet(cno);
	cno_stays_quiet(cno);
	dt_ok(dat_cno_free(cno));
}

/* --- time --- */

/* CNO-WAIT-08 CNO-WAIT-09 CNO-WAIT-19 */
static void cno_wait__nothing_comes__queue_empty_on_time(void **state)
{
	static const DAT_TIMEOUT timeouts[] = {1, 999, 1500, 30000, 120000};
	struct fixture f = open_three(state);
	DAT_CNO_HANDLE lonely = cno_create(f.ia);

	for (size_t i = 0; i < COUNT_OF(timeouts); i++) {
		uint64_t start = dt_now_us();

		cno_empty_for(i % 2 ? f.cno : lonely, timeouts[i]);
		assert_true(dt_now_us() - start >= timeouts[i]);
		assert_true(dt_now_us() - start < DT_WAIT_US);
	}
}

/* CNO-WAIT-10 CNO-WAIT-22: With a kept trigger, and short limits without one. */
static void cno_wait__any_timeout__valid(void **state)
{
	static const DAT_TIMEOUT timeouts[] = {0,	   1,	       999,	   4294967,
					       0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
	struct fixture f = open_three(state);
	struct cno_waiter waiter = {0};

	for (size_t i = 0; i < COUNT_OF(timeouts); i++) {
		DAT_EVD_HANDLE named = DAT_HANDLE_NULL;

		evd_post(f.evd[0], i);
		dt_ok(dat_cno_wait(f.cno, timeouts[i], &named));
		assert_ptr_equal(named, f.evd[0]);
		evd_take(f.evd[0], i);
		if (timeouts[i] <= 1000) {
			cno_empty_for(f.cno, timeouts[i]);
			continue;
		}
		cno_waiter_start(&waiter, f.cno, timeouts[i]);
		cno_waiter_stays(&waiter);
		evd_post(f.evd[1], i);
		cno_waiter_gets(&waiter, f.evd[1]);
		evd_take(f.evd[1], i);
	}
}

/* --- EVDs that do not notify --- */

/* CNO-WAIT-12 CNO-WAIT-13 */
static void cno_wait__disabled_or_waited_on__not_released(void **state)
{
	struct fixture f = open_three(state);
	struct evd_waiter direct = {0};
	struct cno_waiter waiter = {0};

	dt_ok(dat_evd_disable(f.evd[0]));
	evd_waiter_start(&direct, f.evd[1], DAT_TIMEOUT_INFINITE, 2);
	cno_waiter_start(&waiter, f.cno, DAT_TIMEOUT_INFINITE);
	evd_post(f.evd[0], 1);
	evd_post(f.evd[1], 1);
	cno_waiter_stays(&waiter);
	evd_post(f.evd[2], 1);
	cno_waiter_gets(&waiter, f.evd[2]);
	cno_is_quiet(f.cno);
	evd_post(f.evd[1], 2);
	dt_ok(evd_waiter_join(&direct));
	cno_is_quiet(f.cno);
}

/* --- the last EVD is removed --- */

/* CNO-WAIT-14 CNO-WAIT-16 EVD-FREE-10 EVD-FREE-09 */
static void evd_free__last_of_the_cno__waiters_get_the_null_handle(void **state)
{
	struct fixture f = open_three(state);
	struct cno_waiter waiter[2] = {{0}, {0}};

	for (int round = 0; round < 2; round++) {
		cno_waiter_start(&waiter[0], f.cno, DAT_TIMEOUT_INFINITE);
		cno_waiter_start(&waiter[1], f.cno, DT_WAIT_US);
		for (int i = 0; i < 2; i++) {
			dt_ok(dat_evd_free(f.evd[i]));
			cno_waiter_stays(&waiter[i]);
		}
		dt_ok(dat_evd_free(f.evd[2]));
		cno_waiter_gets(&waiter[0], DAT_HANDLE_NULL);
		cno_waiter_gets(&waiter[1], DAT_HANDLE_NULL);
		cno_is_quiet(f.cno); /* a later wait is not notified */
		for (int i = 0; i < 3; i++)
			f.evd[i] = cno_evd(f.ia, f.cno);
		evd_post(f.evd[0], 1);
		cno_expect(f.cno, f.evd[0]);
	}
	for (int i = 0; i < 3; i++)
		dt_ok(dat_evd_free(f.evd[i]));
	dt_ok(dat_cno_free(f.cno));
}

/* --- several threads --- */

/* CNO-WAIT-20 CNO-WAIT-26 */
static void cno_wait__several_threads__each_event_releases_one(void **state)
{
	struct fixture f = open_three(state);
	struct cno_waiter waiter[CONF_THREADS];
	int left = CONF_THREADS;

	memset(waiter, 0, sizeof(waiter));
	for (int i = 0; i < CONF_THREADS; i++)
		cno_waiter_start(&waiter[i], f.cno, DAT_TIMEOUT_INFINITE);
	for (int round = 0; left; round++) {
		const uint64_t end = dt_now_us() + DT_WAIT_US;
		const int before = left;

		evd_post(f.evd[round % 3], 1);
		while (left == before) {
			assert_true(dt_now_us() < end);
			for (int i = 0; i < CONF_THREADS; i++) {
				if (!waiter[i].cno || !atomic_load(&waiter[i].is_done))
					continue;
				cno_waiter_gets(&waiter[i], f.evd[round % 3]);
				waiter[i].cno = DAT_HANDLE_NULL;
				left--;
			}
		}
	}
}

/* --- signals --- */

static atomic_int signals;

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&signals, 1);
}

static void handle_signal(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigemptyset(&action.sa_mask);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	atomic_store(&signals, 0);
}

/* CNO-WAIT-21 */
static void cno_wait__signal_handled__interrupted_call(void **state)
{
	struct fixture f = open_three(state);
	struct cno_waiter waiter = {0};
	uint64_t end;

	handle_signal();
	for (int round = 0; round < 20; round++) {
		cno_waiter_start(&waiter, f.cno, round % 2 ? DT_WAIT_US : DAT_TIMEOUT_INFINITE);
		end = dt_now_us() + DT_WAIT_US;
		while (!atomic_load(&waiter.is_done)) {
			assert_true(dt_now_us() < end);
			assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
			usleep(500);
		}
		dt_fails(cno_waiter_join(&waiter), DAT_INTERRUPTED_CALL);
		assert_true(atomic_load(&signals) > 0);
		evd_post(f.evd[0], 1); /* no thread waits: the trigger is kept */
		cno_expect(f.cno, f.evd[0]);
		evd_take(f.evd[0], 1);
	}
}

/* CNO-WAIT-21: Both at the same time: the call returns the notification, or it is kept. */
static void cno_wait__signal_and_event__notification_never_lost(void **state)
{
	struct fixture f = open_three(state);
	struct cno_waiter waiter = {0};

	handle_signal();
	for (uintptr_t round = 0; round < 200; round++) {
		cno_waiter_start(&waiter, f.cno, DAT_TIMEOUT_INFINITE);
		if (round % 2)
			assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
		evd_post(f.evd[0], round);
		if (!(round % 2))
			pthread_kill(waiter.thread, SIGUSR1);
		if (cno_waiter_join(&waiter) == DAT_SUCCESS) {
			assert_ptr_equal(waiter.evd, f.evd[0]);
		} else {
			dt_fails(waiter.ret, DAT_INTERRUPTED_CALL);
			cno_expect(f.cno, f.evd[0]);
		}
		cno_is_quiet(f.cno);
		evd_take(f.evd[0], round);
	}
}

/* --- cancellation --- */

static const int cancel_types[] = {PTHREAD_CANCEL_DEFERRED, DT_CANCEL_ANYWHERE};

/* CNO-WAIT-28: The thread is cancelled at any point of the call. */
static void cno_wait__cancelled_at_any_time__no_lock_left(void **state)
{
	struct evd_fixture *base = *state;

	for (int round = 0; round < 400; round++) {
		struct cno_waiter waiter = {.cancel_type = cancel_types[round % 2]};
		DAT_CNO_HANDLE cno = cno_create(&base->ia);

		cno_waiter_launch(&waiter, cno, DAT_TIMEOUT_INFINITE);
		for (int i = 0; i < round / 2; i++)
			sched_yield();
		cno_waiter_cancel(&waiter);
		assert_true(waiter.is_cancelled);
		dt_ok(dat_cno_free(cno));
	}
}

/* CNO-WAIT-28: the request stays pending while the consumer has disabled cancellation */
static void cno_wait__cancellation_disabled__waits_on(void **state)
{
	struct fixture f = open_three(state);

	for (int round = 0; round < 30; round++) {
		struct cno_waiter waiter = {.cancel_type = PTHREAD_CANCEL_DEFERRED,
					    .is_protected = true};

		cno_waiter_start(&waiter, f.cno, DAT_TIMEOUT_INFINITE);
		assert_int_equal(pthread_cancel(waiter.thread), 0);
		evd_post(f.evd[0], 1);
		cno_waiter_gets(&waiter, f.evd[0]);
		evd_take(f.evd[0], 1);
	}
}

/*
 * CNO-WAIT-28 CNO-WAIT-06 CNO-MODIFY-AGENT-06: A notification arrives with the cancellation: either
 * the call returns it, or it is kept as the first one. No agent is called twice for it.
 */
static void cno_wait__cancel_races_with_event__notification_never_lost(void **state)
{
	struct fixture f = open_three(state);
	struct cno_agent agent = {.cno = f.cno};

	for (int round = 0; round < 300; round++) {
		struct cno_waiter waiter = {.cancel_type = PTHREAD_CANCEL_DEFERRED};

		cno_waiter_start(&waiter, f.cno, DAT_TIMEOUT_INFINITE);
		evd_post(f.evd[0], 1);
		evd_post(f.evd[1], 1);
		cno_agent_arm(&agent);
		cno_waiter_cancel(&waiter);
		assert_ptr_equal(cno_query(f.cno).agent.instance_data, &agent);
		dt_ok(dat_cno_modify_agent(f.cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
		if (waiter.is_cancelled) {
			cno_expect(f.cno, f.evd[0]);
		} else {
			dt_ok(waiter.ret);
			assert_ptr_equal(waiter.evd, f.evd[0]);
		}
		cno_expect(f.cno, f.evd[1]);
		cno_is_quiet(f.cno);
		evd_take(f.evd[0], 1);
		evd_take(f.evd[1], 1);
	}
	assert_int_equal(atomic_load(&agent.calls), 0);
}

/* CNO-WAIT-28: The notification of a cancelled thread goes to another waiter. */
static void cno_wait__cancelled_beside_another__the_other_is_released(void **state)
{
	struct fixture f = open_three(state);

	for (int round = 0; round < 150; round++) {
		struct cno_waiter first = {.cancel_type = PTHREAD_CANCEL_DEFERRED};
		struct cno_waiter second = {.cancel_type = PTHREAD_CANCEL_DEFERRED};

		cno_waiter_start(&first, f.cno, DAT_TIMEOUT_INFINITE);
		cno_waiter_start(&second, f.cno, DAT_TIMEOUT_INFINITE);
		evd_post(f.evd[0], 1);
		cno_waiter_cancel(&first);
		if (!first.is_cancelled) {
			dt_ok(first.ret);
			evd_post(f.evd[0], 1);
		}
		cno_waiter_gets(&second, f.evd[0]);
		cno_is_quiet(f.cno);
		dt_drain(f.evd[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(cno_wait__event_while_blocked__names_the_evd),
		evd_test(cno_wait__event_before__kept_for_one_wait),
		evd_test(cno_wait__several_triggered__one_wait_each_in_order),
		evd_test(cno_wait__triggered_evd_freed__never_named),
		evd_test(cno_wait__only_triggered_evd_freed__times_out),
		evd_test(cno_wait__nothing_comes__queue_empty_on_time),
		evd_test(cno_wait__any_timeout__valid),
		evd_test(cno_wait__disabled_or_waited_on__not_released),
		evd_test(evd_free__last_of_the_cno__waiters_get_the_null_handle),
		evd_test(cno_wait__several_threads__each_event_releases_one),
		evd_test(cno_wait__signal_handled__interrupted_call),
		evd_test(cno_wait__signal_and_event__notification_never_lost),
		evd_test(cno_wait__cancelled_at_any_time__no_lock_left),
		evd_test(cno_wait__cancellation_disabled__waits_on),
		evd_test(cno_wait__cancel_races_with_event__notification_never_lost),
		evd_test(cno_wait__cancelled_beside_another__the_other_is_released),
	};

	return cmocka_run_group_tests_name("cno_wait", tests, NULL, NULL);
}
