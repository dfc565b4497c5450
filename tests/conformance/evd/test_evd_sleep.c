// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits that sleep at once (DAT_SPIN_US=0) while another process sends. A message that arrives when
 * the sleep ends for another reason (a time-out, a cancellation, a signal, another thread) is not
 * lost, and neither are those after it.
 */
#include "evd_sleep.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define ROUNDS 1500

/* A thread that waits for one message, and its result. */
struct waiter {
	struct stage *s;
	DAT_EVENT event;
	DAT_RETURN ret;
	DAT_COUNT threshold; /* 0: 1 */
	int cancel_type;
};

static void *waiter_run(void *arg)
{
	struct waiter *waiter = arg;
	DAT_COUNT more;

	pthread_setcanceltype(waiter->cancel_type, NULL);
	pthread_cleanup_push(dt_stack_left, NULL);
	waiter->ret =
		dat_evd_wait(waiter->s->ep.recv, DT_WAIT_US,
			     waiter->threshold ? waiter->threshold : 1, &waiter->event, &more);
	pthread_cleanup_pop(0);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	return waiter;
}

/* EVD-WAIT-37 */
static void evd_wait__message_each_time__never_left_asleep(void **state)
{
	struct stage *s = *state;
	DAT_EVENT event;

	order(s, SEND_ANSWER, ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		send_one(&s->ep, &s->buf, s->sent++);
		wait_event(s->ep.recv, &event);
		check_message(s, &event);
		wait_event(s->ep.request, &event);
	}
}

/* EVD-WAIT-37 EVD-WAIT-10: The time-out expires at about the time at which the message arrives. */
static void evd_wait__message_races_the_time_out__not_lost(void **state)
{
	struct stage *s = *state;
	DAT_EVENT event;
	DAT_COUNT more;

	for (uint32_t i = 0; i < ROUNDS / 2; i++) {
		DAT_RETURN ret;

		order(s, SEND_LATER, i % 60);
		do {
			ret = dat_evd_wait(s->ep.recv, i * 7 % 120, 1, &event, &more);
			if (ret != DAT_SUCCESS)
				dt_fails(ret, DAT_TIMEOUT_EXPIRED);
		} while (ret != DAT_SUCCESS);
		check_message(s, &event);
	}
}

/* Starts the waiter with a message under way. Returns at about the time at which that arrives. */
static pthread_t begin_race(struct waiter *waiter, uint32_t round)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, waiter_run, waiter), 0);
	order(waiter->s, SEND_LATER, round * 3 % 100);
	spin_us(round * 5 % 130);
	return thread;
}

/* Joins the waiter. It has the message, or has returned `other` and the message is still queued. */
static void end_race(struct waiter *waiter, DAT_RETURN other)
{
	if (waiter->ret != DAT_SUCCESS) {
		dt_fails(waiter->ret, other);
		wait_event(waiter->s->ep.recv, &waiter->event);
	}
	check_message(waiter->s, &waiter->event);
}

static void race_cancel(struct stage *s, int type, DAT_COUNT threshold)
{
	for (uint32_t i = 0; i < 150; i++) {
		struct waiter waiter = {.s = s, .cancel_type = type, .threshold = threshold};
		pthread_t thread;
		DAT_EVENT event;
		void *result;

		thread = begin_race(&waiter, i);
		pthread_cancel(thread);
		assert_int_equal(pthread_join(thread, &result), 0);
		if (result == PTHREAD_CANCELED) {
			wait_event(s->ep.recv, &event);
			check_message(s, &event);
		} else {
			dt_ok(waiter.ret);
			check_message(s, &waiter.event);
		}
	}
}

/*
 * EVD-WAIT-39. A thread that can be cancelled anywhere may be cancelled after the call has taken
 * the message. There the call waits for two messages, so that it cannot return with one.
 */
static void evd_wait__message_races_a_cancel__not_lost(void **state)
{
	struct stage *s = *state;

	race_cancel(s, PTHREAD_CANCEL_DEFERRED, 1);
	race_cancel(s, DT_CANCEL_ANYWHERE, 2);
}

/* EVD-WAIT-24 EVD-WAIT-19 */
static void evd_wait__message_races_a_signal__not_lost(void **state)
{
	struct sigaction action = {.sa_handler = on_signal}, old;
	struct stage *s = *state;

	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	for (uint32_t i = 0; i < 200; i++) {
		struct waiter waiter = {.s = s, .cancel_type = PTHREAD_CANCEL_DEFERRED};
		pthread_t thread;

		thread = begin_race(&waiter, i);
		pthread_kill(thread, SIGUSR1);
		assert_int_equal(pthread_join(thread, NULL), 0);
		end_race(&waiter, DAT_INTERRUPTED_CALL);
	}
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

/* EVD-WAIT-20 EVD-WAIT-19: By another thread of this process while messages arrive. */
static void evd_set_unwaitable__message_races_it__released_and_not_lost(void **state)
{
	struct stage *s = *state;

	for (uint32_t i = 0; i < 200; i++) {
		struct waiter waiter = {.s = s, .cancel_type = PTHREAD_CANCEL_DEFERRED};
		pthread_t thread;

		thread = begin_race(&waiter, i);
		dt_ok(dat_evd_set_unwaitable(s->ep.recv));
		assert_int_equal(pthread_join(thread, NULL), 0);
		dt_ok(dat_evd_clear_unwaitable(s->ep.recv));
		end_race(&waiter, DAT_INVALID_STATE);
	}
}

static void *wait_for_requests(void *arg)
{
	struct stage *s = arg;
	DAT_EVENT event;

	for (int i = 0; i < ROUNDS; i++) {
		wait_event(s->ep.request, &event);
		atomic_fetch_add(&s->completed, 1);
	}
	return NULL;
}

/* EVD-WAIT-37: One connection, two EVDs and two sleeping threads. */
static void evd_wait__two_threads_of_one_connection__both_are_woken(void **state)
{
	struct stage *s = *state;
	pthread_t thread;
	DAT_EVENT event;

	order(s, SEND_ANSWER, ROUNDS);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_requests, s), 0);
	for (int i = 0; i < ROUNDS; i++) {
		send_one(&s->ep, &s->buf, s->sent++);
		wait_event(s->ep.recv, &event);
		check_message(s, &event);
		/* else its queue overflows if that thread does not run for long */
		while (s->sent - atomic_load(&s->completed) > DEPTH)
			sched_yield();
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
	setenv("DAT_SPIN_US", "0", 1);
	const struct CMUnitTest tests[] = {
		STAGED(evd_wait__message_each_time__never_left_asleep),
		STAGED(evd_wait__message_races_the_time_out__not_lost),
		STAGED(evd_wait__message_races_a_cancel__not_lost),
		STAGED(evd_wait__message_races_a_signal__not_lost),
		STAGED(evd_set_unwaitable__message_races_it__released_and_not_lost),
		STAGED(evd_wait__two_threads_of_one_connection__both_are_woken),
	};

	return cmocka_run_group_tests_name("evd sleep", tests, NULL, NULL);
}
