// SPDX-License-Identifier: BSD-2-Clause
/*
 * Several threads call a function that the manual declares unsafe on one object: exactly one call
 * has the effect, and the others find the object freed or in its next state (GEN-26).
 */
#include "conf.h"
#include "conn_util.h"

#include <sched.h>

#define ROUNDS (DT_SLOW ? 20 : 100)

/* One call by each of CONF_THREADS threads. */
struct crowd {
	struct conn_fixture *f;
	DAT_HANDLE handle;
	DAT_EP_HANDLE eps[CONF_THREADS]; /* accepts: one each */
	DAT_CONN_QUAL qual;
	DAT_RETURN (*fn)(struct crowd *crowd, int number);
	DAT_RETURN loser; /* the result of the others */
	_Atomic int number;
	_Atomic int won;
	_Atomic int winner;
};

static void *crowd_member(void *arg)
{
	struct crowd *crowd = arg;
	const int number = atomic_fetch_add(&crowd->number, 1);
	const DAT_RETURN ret = crowd->fn(crowd, number);

	if (ret == DAT_SUCCESS) {
		atomic_fetch_add(&crowd->won, 1);
		atomic_store(&crowd->winner, number);
		return NULL;
	}
	return DAT_GET_TYPE(ret) == (DAT_RETURN)crowd->loser ? NULL
							     : (void *)(uintptr_t)dt_strerror(ret);
}

static void crowd_run(struct crowd *crowd)
{
	atomic_store(&crowd->number, 0);
	atomic_store(&crowd->won, 0);
	conf_parallel(crowd_member, crowd);
	assert_int_equal(crowd->won, 1);
}

/* --- service points --- */

static DAT_RETURN free_psp(struct crowd *crowd, int number)
{
	(void)number;
	return dat_psp_free(crowd->handle);
}

/* PSP-FREE-10 GEN-26 */
static void psp_free__by_several_threads__one_frees(void **state)
{
	struct conn_fixture *f = *state;
	struct crowd crowd = {.f = f, .fn = free_psp, .loser = DAT_INVALID_HANDLE};

	for (int i = 0; i < ROUNDS; i++) {
		const DAT_CONN_QUAL qual = dt_unused_qual();

		dt_ok(dat_psp_create(f->ia.ia, qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG,
				     &crowd.handle));
		crowd_run(&crowd);
	}
}

static DAT_RETURN free_rsp(struct crowd *crowd, int number)
{
	(void)number;
	return dat_rsp_free(crowd->handle);
}

/* RSP-FREE-11 GEN-26 */
static void rsp_free__by_several_threads__one_frees(void **state)
{
	struct conn_fixture *f = *state;
	struct crowd crowd = {.f = f, .fn = free_rsp, .loser = DAT_INVALID_HANDLE};

	for (int i = 0; i < ROUNDS; i++) {
		dt_ok(dat_rsp_create(f->ia.ia, dt_unused_qual(), f->b.ep, f->listener.evd,
				     &crowd.handle));
		crowd_run(&crowd);
		assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_UNCONNECTED);
	}
}

/* --- requests --- */

static DAT_RETURN reject(struct crowd *crowd, int number)
{
	(void)number;
	return dat_cr_reject(crowd->handle);
}

/* CR-REJECT-11 GEN-26 */
static void cr_reject__by_several_threads__rejected_once(void **state)
{
	struct conn_fixture *f = *state;
	struct crowd crowd = {.f = f, .fn = reject, .loser = DAT_INVALID_HANDLE};

	for (int i = 0; i < ROUNDS; i++) {
		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		crowd.handle = dt_request(&f->listener);
		crowd_run(&crowd);
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
	}
}

static DAT_RETURN hand_off(struct crowd *crowd, int number)
{
	(void)number;
	return dat_cr_handoff(crowd->handle, crowd->qual);
}

/* CR-HANDOFF-11 GEN-26 */
static void cr_handoff__by_several_threads__handed_on_once(void **state)
{
	struct conn_fixture *f = *state;
	struct crowd crowd = {.f = f, .fn = hand_off, .loser = DAT_INVALID_HANDLE};
	struct dt_listener other;

	dt_listen(&f->ia, &other);
	crowd.qual = other.qual;
	for (int i = 0; i < ROUNDS; i++) {
		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		crowd.handle = dt_request(&f->listener);
		crowd_run(&crowd);
		dt_ok(dat_cr_reject(dt_request(&other)));
		dt_no_event(other.evd);
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
	}
	dt_unlisten(&other);
}

static DAT_RETURN accept_with_own(struct crowd *crowd, int number)
{
	return dat_cr_accept(crowd->handle, crowd->eps[number], 0, NULL);
}

/* CR-ACCEPT-29 GEN-26: The endpoints of the others are unchanged. */
static void cr_accept__by_several_threads__accepted_once(void **state)
{
	struct conn_fixture *f = *state;
	struct crowd crowd = {.f = f, .fn = accept_with_own, .loser = DAT_INVALID_HANDLE};
	struct dt_ep own[CONF_THREADS];

	for (int i = 0; i < CONF_THREADS; i++) {
		dt_ep_create(&f->ia, f->ia.pz, NULL, &own[i]);
		crowd.eps[i] = own[i].ep;
	}
	for (int i = 0; i < ROUNDS; i++) {
		struct dt_ep *winner;

		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		crowd.handle = dt_request(&f->listener);
		crowd_run(&crowd);
		winner = &own[crowd.winner];
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(winner->conn, winner->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		for (int j = 0; j < CONF_THREADS; j++)
			if (&own[j] != winner)
				assert_int_equal(dt_ep_state(own[j].ep), DAT_EP_STATE_UNCONNECTED);
		dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_expect_conn(winner->conn, winner->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(winner->ep));
	}
}

/* --- endpoints --- */

static DAT_RETURN connect_it(struct crowd *crowd, int number)
{
	struct conn_args args = conn_args_of(crowd->f);

	(void)number;
	return conn_try(crowd->handle, &args);
}

/* EP-CONNECT-48 GEN-26 */
static void ep_connect__by_several_threads__one_attempt(void **state)
{
	struct conn_fixture *f = *state;
	struct crowd crowd = {
		.f = f, .fn = connect_it, .handle = f->a.ep, .loser = DAT_INVALID_STATE};

	for (int i = 0; i < ROUNDS; i++) {
		crowd_run(&crowd);
		dt_ok(dat_cr_reject(dt_request(&f->listener)));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_no_event(f->listener.evd);
		dt_ok(dat_ep_reset(f->a.ep));
	}
}

static DAT_RETURN duplicate(struct crowd *crowd, int number)
{
	(void)number;
	return dat_ep_dup_connect(crowd->handle, crowd->f->a.ep, DAT_TIMEOUT_INFINITE, 0, NULL,
				  DAT_QOS_BEST_EFFORT);
}

/* EP-DUPCONN-23 GEN-26 */
static void ep_dup_connect__by_several_threads__one_attempt(void **state)
{
	struct conn_fixture *f = *state;
	struct crowd crowd = {.f = f, .fn = duplicate, .loser = DAT_INVALID_STATE};
	struct dt_ep copy;

	dt_ep_create(&f->ia, f->ia.pz, NULL, &copy);
	crowd.handle = copy.ep;
	conn_link(f, &f->a, &f->b);
	for (int i = 0; i < ROUNDS; i++) {
		crowd_run(&crowd);
		dt_ok(dat_cr_reject(dt_request(&f->listener)));
		conn_expect_failure(&copy, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_no_event(f->listener.evd);
		dt_ok(dat_ep_reset(copy.ep));
	}
}

struct ending {
	DAT_EP_HANDLE ep;
	_Atomic int number;
	_Atomic int calls;
};

/* The first call ends the connection; in the states after that all others succeed, too. */
static void *disconnect_it(void *arg)
{
	struct ending *ending = arg;
	const bool is_graceful = atomic_fetch_add(&ending->number, 1) % 2;

	conf_try(dat_ep_disconnect(ending->ep,
				   is_graceful ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG));
	return NULL;
}

/* EP-DISC-38 EP-DISC-18 EP-DISC-19 EP-DISC-23 GEN-26 */
static void ep_disconnect__by_several_threads__one_end(void **state)
{
	struct conn_fixture *f = *state;
	struct ending ending;

	for (int i = 0; i < ROUNDS; i++) {
		conn_link(f, &f->a, &f->b);
		conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 5);
		ending.ep = f->a.ep;
		atomic_store(&ending.number, 0);
		conf_parallel(disconnect_it, &ending);
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		conn_expect_flushes(&f->a, 5, 1);
		conn_no_events(&f->a);
		conn_no_events(&f->b);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
}

/* One thread frees the endpoint when another one has disconnected it, or is about to. */
static void *disconnect_until_freed(void *arg)
{
	struct ending *ending = arg;
	DAT_RETURN ret;

	if (atomic_fetch_add(&ending->number, 1) == 0) {
		while (!atomic_load(&ending->calls))
			sched_yield();
		conf_try(dat_ep_free(ending->ep));
		return NULL;
	}
	do {
		atomic_fetch_add(&ending->calls, 1);
		ret = dat_ep_disconnect(ending->ep, DAT_CLOSE_ABRUPT_FLAG);
	} while (ret == DAT_SUCCESS);
	if (ret == (DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP))
		return NULL;
	return (void *)(uintptr_t)dt_strerror(ret);
}

/* Events of the freed endpoint: one end at most. */
static void check_end_of_freed(const struct dt_ep *ep)
{
	DAT_EVENT event;

	if (dat_evd_dequeue(ep->conn, &event) == DAT_SUCCESS)
		assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_no_event(ep->conn);
	dt_drain(ep->recv);
	dt_no_event(ep->request);
}

/* EP-DISC-38 EP-DISC-04 GEN-26 */
static void ep_disconnect__freed_meanwhile__one_end_at_the_peer(void **state)
{
	struct conn_fixture *f = *state;

	for (int i = 0; i < ROUNDS; i++) {
		struct ending ending = {.calls = 0};
		struct dt_ep freed = f->a; /* the same EVDs */

		dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, freed.recv, freed.request, freed.conn, NULL,
				    &freed.ep));
		conn_link(f, &freed, &f->b);
		conn_post_recv(freed.ep, &f->buf, CONN_A_RECEIVES_AT, 5);
		ending.ep = freed.ep;
		conf_parallel(disconnect_until_freed, &ending);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		conn_no_events(&f->b);
		check_end_of_freed(&freed);
		dt_ok(dat_ep_reset(f->b.ep));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(psp_free__by_several_threads__one_frees),
		conn_test(rsp_free__by_several_threads__one_frees),
		conn_test(cr_reject__by_several_threads__rejected_once),
		conn_test(cr_handoff__by_several_threads__handed_on_once),
		conn_test(cr_accept__by_several_threads__accepted_once),
		conn_test(ep_connect__by_several_threads__one_attempt),
		conn_test(ep_dup_connect__by_several_threads__one_attempt),
		conn_test(ep_disconnect__by_several_threads__one_end),
		conn_test(ep_disconnect__freed_meanwhile__one_end_at_the_peer),
	};

	return cmocka_run_group_tests_name("extra_threads", tests, NULL, NULL);
}
