// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits that sleep at once (DAT_SPIN_US=0) while another process sends: a message that comes when
 * the sleep ends for another reason, a time-out, a cancellation, a signal, another thread, is not
 * forgotten, and neither are those after it.
 */
#include "conf.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 1500
#define DEPTH 8
#define SIZE 8
#define INTERRUPT_US 3000000u /* within which a signal must have ended a wait */

/* --- the sender --- */

enum order {
	SEND,	     /* one message */
	SEND_LATER,  /* the same after about that many microseconds: how */
	SEND_ANSWER, /* for each that comes, until `how` of them have come */
	END,
};

struct order_msg {
	enum order order;
	uint32_t how;
};

struct opening {
	DAT_CONN_QUAL qual;
};

static void spin_us(uint32_t us)
{
	const uint64_t end = dt_now_us() + us;

	while (dt_now_us() < end)
		continue;
}

static void send_one(struct dt_ep *ep, struct dt_buf *buf, uint64_t number)
{
	DAT_LMR_TRIPLET seg = dt_seg(buf, DEPTH * SIZE, SIZE);

	memcpy(buf->p + DEPTH * SIZE, &number, SIZE);
	dt_ok(dat_ep_post_send(ep->ep, 1, &seg, dt_cookie(number), DAT_COMPLETION_DEFAULT_FLAG));
}

static void post_recv(struct dt_ep *ep, struct dt_buf *buf, uint64_t number)
{
	DAT_LMR_TRIPLET seg = dt_seg(buf, number % DEPTH * SIZE, SIZE);

	dt_ok(dat_ep_post_recv(ep->ep, 1, &seg, dt_cookie(number), DAT_COMPLETION_DEFAULT_FLAG));
}

static void wait_event(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_COUNT more;

	dt_ok(dat_evd_wait(evd, DT_WAIT_US, 1, event, &more));
}

static void sender(struct dt_peer *peer, void *arg)
{
	uint64_t sent = 0, received = 0;
	struct opening opening;
	struct order_msg msg;
	struct dt_ia ia;
	struct dt_ep ep;
	struct dt_buf buf;
	DAT_EVENT event;

	(void)arg;
	dt_peer_recv(peer, &opening, sizeof(opening));
	dt_ia_open(&ia);
	dt_buf_create(&ia, ia.pz, &buf, (DEPTH + 1) * SIZE, CONF_LOCAL);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	for (uint64_t i = 0; i < DEPTH; i++)
		post_recv(&ep, &buf, i);
	dt_connect(&ia, ep.ep, opening.qual);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (;;) {
		dt_peer_recv(peer, &msg, sizeof(msg));
		if (msg.order == END)
			break;
		if (msg.order == SEND_LATER)
			spin_us(msg.how);
		for (uint32_t i = 0; i < (msg.order == SEND_ANSWER ? msg.how : 1); i++) {
			if (msg.order == SEND_ANSWER) {
				wait_event(ep.recv, &event);
				post_recv(&ep, &buf, received++);
			}
			send_one(&ep, &buf, sent++);
			wait_event(ep.request, &event);
		}
	}
	dt_ep_free(&ep);
	dt_buf_free(&buf);
	dt_ia_close(&ia);
}

/* --- the receiver --- */

struct stage {
	struct dt_peer peer;
	struct dt_ia ia;
	struct dt_ep ep;
	struct dt_buf buf;
	uint64_t received, sent;
	_Atomic uint64_t completed; /* requests of which another thread has taken the completion */
};

static int open_stage(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));
	struct dt_listener listener;
	struct opening opening;

	assert_non_null(s);
	dt_peer_start(&s->peer, sender, NULL);
	dt_ia_open(&s->ia);
	dt_buf_create(&s->ia, s->ia.pz, &s->buf, (DEPTH + 1) * SIZE, CONF_LOCAL);
	dt_ep_create(&s->ia, s->ia.pz, NULL, &s->ep);
	for (uint64_t i = 0; i < DEPTH; i++)
		post_recv(&s->ep, &s->buf, i);
	dt_listen(&s->ia, &listener);
	opening.qual = listener.qual;
	dt_peer_send(&s->peer, &opening, sizeof(opening));
	dt_ok(dat_cr_accept(dt_request(&listener), s->ep.ep, 0, NULL));
	dt_expect_conn(s->ep.conn, s->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_unlisten(&listener);
	*state = s;
	return 0;
}

static void order(struct stage *s, enum order order, uint32_t how)
{
	const struct order_msg msg = {order, how};

	dt_peer_send(&s->peer, &msg, sizeof(msg));
}

static int close_stage(void **state)
{
	struct stage *s = *state;

	order(s, END, 0);
	dt_expect_conn(s->ep.conn, s->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_peer_join(&s->peer);
	dt_ep_free(&s->ep);
	dt_buf_free(&s->buf);
	dt_ia_close(&s->ia);
	free(s);
	return 0;
}

/* The message whose turn it is. */
static void check_message(struct stage *s, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	uint64_t number;

	assert_int_equal(event->event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(dto->status, DAT_DTO_SUCCESS);
	memcpy(&number, s->buf.p + s->received % DEPTH * SIZE, SIZE);
	assert_true(number == s->received);
	post_recv(&s->ep, &s->buf, s->received++);
}

/* A thread that waits for one message; joined: what it got. */
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
	waiter->ret =
		dat_evd_wait(waiter->s->ep.recv, DT_WAIT_US,
			     waiter->threshold ? waiter->threshold : 1, &waiter->event, &more);
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

/* EVD-WAIT-37 EVD-WAIT-10: the time is over at about the moment at which the message comes */
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

/* Lets it wait, with a message under way; returns at about the moment at which that comes. */
static pthread_t begin_race(struct waiter *waiter, uint32_t round)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, waiter_run, waiter), 0);
	order(waiter->s, SEND_LATER, round * 3 % 100);
	spin_us(round * 5 % 130);
	return thread;
}

/* It is joined: it has the message, or was told `other` and the message is there for the next. */
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
 * EVD-WAIT-39. Where a thread can be cancelled anywhere, that may be behind the call, with the
 * message in its hands: there it wants two, and does not get them.
 */
static void evd_wait__message_races_a_cancel__not_lost(void **state)
{
	struct stage *s = *state;

	race_cancel(s, PTHREAD_CANCEL_DEFERRED, 1);
	race_cancel(s, DT_CANCEL_ANYWHERE, 2);
}

static void on_signal(int number)
{
	(void)number;
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

/* EVD-WAIT-20 EVD-WAIT-19: by another thread of this process, while messages come */
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

/* EVD-WAIT-37: one connection, two queues, two threads that sleep */
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
		/* or its queue overflows when that thread does not run for long */
		while (s->sent - atomic_load(&s->completed) > DEPTH)
			sched_yield();
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* --- signals while nothing comes --- */

/* A thread that waits for what does not come. */
struct sleeper {
	DAT_EVD_HANDLE evd;
	pthread_t thread;
	_Atomic pid_t tid;
	_Atomic bool is_done;
	DAT_RETURN ret;
	DAT_COUNT more;
};

static void *sleeper_run(void *arg)
{
	struct sleeper *sleeper = arg;
	DAT_EVENT event;

	atomic_store(&sleeper->tid, (pid_t)syscall(SYS_gettid));
	sleeper->ret = dat_evd_wait(sleeper->evd, DAT_TIMEOUT_INFINITE, 1, &event, &sleeper->more);
	atomic_store(&sleeper->is_done, true);
	return NULL;
}

/* It owns the EVD, and the kernel says that it sleeps. */
static bool sleeper_is_asleep(void *arg)
{
	struct sleeper *sleeper = arg;
	char name[64], text[256] = "";
	const char *end;
	DAT_EVENT event;
	FILE *file;

	if (DAT_GET_TYPE(dat_evd_dequeue(sleeper->evd, &event)) != DAT_INVALID_STATE)
		return false;
	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", (int)atomic_load(&sleeper->tid));
	file = fopen(name, "r");
	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = 0;
	fclose(file);
	end = strrchr(text, ')'); /* of the thread's name */
	return end && end[1] == ' ' && end[2] == 'S';
}

static void sleeper_start(struct sleeper *sleeper, DAT_EVD_HANDLE evd)
{
	memset(sleeper, 0, sizeof(*sleeper));
	sleeper->evd = evd;
	assert_int_equal(pthread_create(&sleeper->thread, NULL, sleeper_run, sleeper), 0);
	dt_until(sleeper_is_asleep, sleeper);
}

/*
 * A signal ends its sleep. It is sent again only if the thread is found asleep after it: the first
 * may have come before the sleep, for a lock, say.
 */
static bool sleeper_is_interrupted(void *arg)
{
	struct sleeper *sleeper = arg;

	if (atomic_load(&sleeper->is_done))
		return true;
	if (sleeper_is_asleep(sleeper))
		pthread_kill(sleeper->thread, SIGUSR1);
	return false;
}

static void sleeper_interrupt(struct sleeper *sleeper)
{
	const uint64_t end = dt_now_us() + INTERRUPT_US;
	bool is_interrupted;

	do {
		is_interrupted = sleeper_is_interrupted(sleeper);
		sched_yield();
	} while (!is_interrupted && dt_now_us() < end);
	if (!is_interrupted) /* or the program would not end */
		dt_ok(dat_evd_set_unwaitable(sleeper->evd));
	assert_int_equal(pthread_join(sleeper->thread, NULL), 0);
	assert_true(is_interrupted);
	dt_fails(sleeper->ret, DAT_INTERRUPTED_CALL);
	assert_int_equal(sleeper->more, 0);
}

/*
 * EVD-WAIT-24: on an EVD of a connection, with nothing under way. Of two such threads at most one
 * sleeps where the peer wakes it; each is interrupted, in either order.
 */
static void evd_wait__signal_while_asleep_on_a_connection__interrupted(void **state)
{
	struct sigaction action = {.sa_handler = on_signal}, old;
	struct stage *s = *state;
	DAT_EVENT event;

	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	for (int i = 0; i < 20; i++) {
		struct sleeper first, second;

		sleeper_start(&first, s->ep.recv);
		if (i % 4 == 0) {
			sleeper_interrupt(&first);
			continue;
		}
		sleeper_start(&second, i % 4 == 1 ? s->ep.conn : s->ep.request);
		sleeper_interrupt(i % 4 == 2 ? &second : &first);
		sleeper_interrupt(i % 4 == 2 ? &first : &second);
	}
	/* all goes on */
	order(s, SEND_LATER, 0);
	wait_event(s->ep.recv, &event);
	check_message(s, &event);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

/* EVD-WAIT-24: on an EVD that no connection has to do with */
static void evd_wait__signal_while_asleep_without_connection__interrupted(void **state)
{
	struct sigaction action = {.sa_handler = on_signal}, old;
	struct sleeper sleeper;
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	for (int i = 0; i < 20; i++) {
		sleeper_start(&sleeper, ia.async);
		sleeper_interrupt(&sleeper);
	}
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
	dt_ia_close(&ia);
}

#define STAGED(test) cmocka_unit_test_setup_teardown(test, open_stage, close_stage)

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
		STAGED(evd_wait__signal_while_asleep_on_a_connection__interrupted),
		cmocka_unit_test(evd_wait__signal_while_asleep_without_connection__interrupted),
	};

	return cmocka_run_group_tests_name("evd sleep", tests, NULL, NULL);
}
