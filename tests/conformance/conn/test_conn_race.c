// SPDX-License-Identifier: BSD-2-Clause
/*
 * Both sides of a set-up act at the same moment: the results of the two sides match, and neither
 * stays connected alone. Processes that connect to each other.
 */
#include <pthread.h>

#include "conn_remote.h"

/* --- accept against giving up --- */

enum give_up { GIVE_UP_ABRUPT, GIVE_UP_GRACEFUL, GIVE_UP_FREE, GIVE_UP_WAYS };

struct quitter {
	pthread_t thread;
	pthread_barrier_t start;
	DAT_EP_HANDLE ep;
	enum give_up how;
	useconds_t pause;
};

static void *give_up(void *arg)
{
	struct quitter *quitter = arg;

	pthread_barrier_wait(&quitter->start);
	if (quitter->pause)
		usleep(quitter->pause);
	if (quitter->how == GIVE_UP_FREE)
		dt_ok(dat_ep_free(quitter->ep));
	else
		dt_ok(dat_ep_disconnect(quitter->ep, quitter->how == GIVE_UP_GRACEFUL
							     ? DAT_CLOSE_GRACEFUL_FLAG
							     : DAT_CLOSE_ABRUPT_FLAG));
	return NULL;
}

/* Accepts while the other thread gives up; the delay varies so that either may be first. */
static void race_accept(struct conn_fixture *f, struct dt_ep *a, enum give_up how, unsigned int i)
{
	struct quitter quitter = {.ep = a->ep, .how = how, .pause = i % 5 * 50};
	DAT_CR_HANDLE cr;

	dt_connect(&f->ia, a->ep, f->listener.qual);
	cr = dt_request(&f->listener);
	pthread_barrier_init(&quitter.start, NULL, 2);
	assert_int_equal(pthread_create(&quitter.thread, NULL, give_up, &quitter), 0);
	pthread_barrier_wait(&quitter.start);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	assert_int_equal(pthread_join(quitter.thread, NULL), 0);
	pthread_barrier_destroy(&quitter.start);
}

/* ACCEPT_COMPLETION_ERROR alone, or ESTABLISHED and an end event. */
static void check_passive(struct dt_ep *b)
{
	DAT_EVENT event = dt_event(b->conn);

	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		event = dt_event(b->conn);
		assert_true(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
			    event.event_number == DAT_CONNECTION_EVENT_BROKEN);
	} else {
		assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	}
	assert_int_equal(dt_ep_state(b->ep), DAT_EP_STATE_DISCONNECTED);
	dt_no_event(b->conn);
	dt_ok(dat_ep_reset(b->ep));
}

/* DISCONNECTED, perhaps after ESTABLISHED (EP-DISC-39). */
static void check_active(struct dt_ep *a)
{
	DAT_EVENT event = dt_event(a->conn);

	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		event = dt_event(a->conn);
	assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(dt_ep_state(a->ep), DAT_EP_STATE_DISCONNECTED);
	dt_no_event(a->conn);
	dt_ok(dat_ep_reset(a->ep));
}

/* CONN-EVT-57 EP-DISC-39 EP-DISC-28 EP-FREE-16 CONN-EVT-06 CONN-EVT-28 */
static void cr_accept__active_side_gives_up_meanwhile__both_end(void **state)
{
	struct conn_fixture *f = *state;

	for (unsigned int i = 0; i < 150; i++) {
		const enum give_up how = (enum give_up)(i % GIVE_UP_WAYS);

		race_accept(f, &f->a, how, i / GIVE_UP_WAYS);
		if (how != GIVE_UP_FREE) {
			check_active(&f->a);
		} else {
			dt_drain(f->a.conn);
			dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, f->a.recv, f->a.request, f->a.conn,
					    NULL, &f->a.ep));
		}
		check_passive(&f->b);
	}
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
	conn_link(f, &f->a, &f->b);
	conn_transfer(f, &f->a, &f->b);
}

/*
 * Starts attempts with a time-out of *timeout_us until one reaches the listener; where a set-up
 * takes longer the time-out is doubled. *start_us is when that attempt was started.
 */
static DAT_CR_HANDLE timed_request(struct conn_fixture *f, DAT_TIMEOUT *timeout_us,
				   uint64_t *start_us)
{
	DAT_EVENT event;
	DAT_COUNT more;

	for (;;) {
		*start_us = dt_now_us();
		conn_start_timed(f, f->a.ep, *timeout_us);
		if (dat_evd_wait(f->listener.evd, *timeout_us + 200000u, 1, &event, &more) ==
		    DAT_SUCCESS)
			break;
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_TIMED_OUT);
		dt_ok(dat_ep_reset(f->a.ep));
		*timeout_us *= 2;
		assert_true(*timeout_us < 1000000);
	}
	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

static void sleep_until(uint64_t when_us)
{
	const uint64_t now = dt_now_us();

	if (now < when_us)
		usleep((useconds_t)(when_us - now));
}

/*
 * CONN-EVT-57 EP-DISC-39 EP-CONNECT-17: the accept races with the timer. TIMED_OUT does not follow
 * ESTABLISHED, and no event follows TIMED_OUT.
 */
static void cr_accept__active_side_times_out_meanwhile__both_agree(void **state)
{
	struct conn_fixture *f = *state;
	DAT_TIMEOUT timeout = 4000;

	for (unsigned int i = 0; i < 60; i++) {
		uint64_t start;
		const DAT_CR_HANDLE cr = timed_request(f, &timeout, &start);
		DAT_EVENT event;

		sleep_until(start + timeout / 2 + i % 20 * (timeout / 27));
		dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
		event = dt_event(f->a.conn);
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
			dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
			conn_transfer(f, &f->a, &f->b);
			dt_no_event(f->a.conn);
			dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
			conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_DISCONNECTED);
			dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
			dt_ok(dat_ep_reset(f->b.ep));
		} else {
			assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_TIMED_OUT);
			check_passive(&f->b);
			assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_DISCONNECTED);
			dt_no_event(f->a.conn);
		}
		dt_ok(dat_ep_reset(f->a.ep));
	}
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
}

/* --- the passive side ends what it has just accepted --- */

/* EP-DISC-31 EP-DISC-29 EP-DISC-39 EP-FREE-18 */
static void ep_disconnect__right_after_accept__active_side_notified(void **state)
{
	struct conn_fixture *f = *state;

	for (unsigned int i = 0; i < 100; i++) {
		const bool is_free = i & 1;
		DAT_EVENT event;

		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
		if (is_free) {
			dt_ok(dat_ep_free(f->b.ep));
			dt_drain(f->b.conn);
			dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, f->b.recv, f->b.request, f->b.conn,
					    NULL, &f->b.ep));
		} else {
			dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
			check_active(&f->b); /* the same two results are possible */
		}
		event = dt_event(f->a.conn);
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		else
			assert_int_equal(event.event_number,
					 DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_DISCONNECTED);
		dt_no_event(f->a.conn);
		dt_ok(dat_ep_reset(f->a.ep));
	}
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
}

/* --- crossed set-ups --- */

/* COMPAT-31: each process connects to the other before it polls for requests */
static void ep_connect__crossed_between_processes__both_established(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	const DAT_CONN_QUAL theirs = remote_do(&r->peer, REMOTE_LISTEN, 0, 0);

	/*
	 * the other process has one endpoint: it rejects the request, and its own attempt is
	 * accepted
	 */
	for (unsigned int i = 0; i < 20; i++) {
		remote_connect(&r->peer, f->listener.qual);
		dt_connect(&f->ia, f->a.ep, theirs);
		remote_do(&r->peer, REMOTE_REQUEST, 0, 0);
		remote_do(&r->peer, REMOTE_REJECT, 0, 0);
		dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
		conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		remote_expect(&r->peer, DAT_CONNECTION_EVENT_DISCONNECTED);
		remote_do(&r->peer, REMOTE_RESET, 0, 0);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
}

/* One of two equal processes: connects to the other and accepts its request at the same time. */
static void cross(struct conn_fixture *f, DAT_CONN_QUAL theirs)
{
	dt_connect(&f->ia, f->a.ep, theirs);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void run_cross(struct dt_peer *peer, void *arg)
{
	struct conn_fixture *f;
	void *state;
	DAT_CONN_QUAL theirs;

	(void)arg;
	conn_setup(&state);
	f = state;
	dt_peer_send(peer, &f->listener.qual, sizeof(f->listener.qual));
	dt_peer_recv(peer, &theirs, sizeof(theirs));
	for (unsigned int i = 0; i < 20; i++) {
		dt_peer_sync(peer);
		cross(f, theirs);
		dt_peer_sync(peer);
		dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
	conn_teardown(&state);
}

/* COMPAT-31 EP-DISC-34 */
static void ep_connect__crossed_and_symmetric__no_deadlock(void **state)
{
	struct dt_peer peer;

	(void)state;
	dt_peer_start(&peer, run_cross, NULL);
	run_cross(&peer, NULL);
	dt_peer_join(&peer);
}

/* --- attempts on many threads --- */

#define CALLERS 4

struct caller {
	pthread_t thread;
	pthread_barrier_t *start;
	struct conn_fixture *f;
	struct dt_ep ep;
};

static void *call_nobody(void *arg)
{
	struct caller *caller = arg;

	pthread_barrier_wait(caller->start);
	for (unsigned int i = 0; i < 1500; i++) {
		dt_connect(&caller->f->ia, caller->ep.ep, ~caller->f->listener.qual);
		dt_expect_conn(caller->ep.conn, caller->ep.ep,
			       DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		dt_ok(dat_ep_reset(caller->ep.ep));
	}
	return NULL;
}

/* CONN-GEN-06 EP-CONNECT-20: requests to a busy adapter are all carried out */
static void ep_connect__nobody_listens_from_many_threads__all_notified(void **state)
{
	struct conn_fixture *f = *state;
	struct caller callers[CALLERS];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, CALLERS);
	for (unsigned int i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){.start = &start, .f = f};
		dt_ep_create(&f->ia, f->ia.pz, NULL, &callers[i].ep);
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call_nobody, &callers[i]),
				 0);
	}
	for (unsigned int i = 0; i < CALLERS; i++) {
		assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
		dt_ep_free(&callers[i].ep);
	}
	pthread_barrier_destroy(&start);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(ep_connect__nobody_listens_from_many_threads__all_notified),
		conn_test(cr_accept__active_side_gives_up_meanwhile__both_end),
		conn_test(cr_accept__active_side_times_out_meanwhile__both_agree),
		conn_test(ep_disconnect__right_after_accept__active_side_notified),
		remote_test(ep_connect__crossed_between_processes__both_established),
		cmocka_unit_test(ep_connect__crossed_and_symmetric__no_deadlock),
	};

	return cmocka_run_group_tests_name("conn_race", tests, NULL, NULL);
}
