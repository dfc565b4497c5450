// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_cr_accept: arguments, refusals, which leave the request valid, and what follows a success.
 * Set-ups that fail are in test_conn_result.c, endpoints of service points in test_rsp.c and
 * test_psp_provider.c.
 */
#include <pthread.h>

#include "conn_remote.h"

static DAT_CR_HANDLE request_connection(struct conn_fixture *f)
{
	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	return dt_request(&f->listener);
}

static void expect_link(struct conn_fixture *f)
{
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	conn_transfer(f, &f->a, &f->b);
}

/* --- success --- */

/* CR-ACCEPT-01 CR-ACCEPT-02 CR-ACCEPT-03 EP-STATE-31 EP-STATE-32 */
static void cr_accept__plain__connects_that_ep(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CR_HANDLE cr = request_connection(f);
	DAT_EP_STATE ep_state;

	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	ep_state = dt_ep_state(f->b.ep);
	assert_true(ep_state == DAT_EP_STATE_COMPLETION_PENDING ||
		    ep_state == DAT_EP_STATE_CONNECTED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_CONNECTED);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_CONNECTED);
	conn_transfer(f, &f->a, &f->b);
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
}

/* CR-ACCEPT-17 */
static void cr_accept__done__request_invalid(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CR_HANDLE cr = request_connection(f);
	struct dt_ep c;
	DAT_CR_PARAM param;

	dt_ep_create(&f->ia, f->ia.pz, NULL, &c);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	dt_fails_with(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CR);
	dt_fails_with(dat_cr_accept(cr, c.ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	dt_fails_with(dat_cr_reject(cr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	dt_fails_with(dat_cr_handoff(cr, f->listener.qual), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CR);
	assert_int_equal(dt_ep_state(c.ep), DAT_EP_STATE_UNCONNECTED);
	expect_link(f);
}

/* CR-ACCEPT-22 EP-CONNECT-16 */
static void cr_accept__late__works(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CR_HANDLE cr = request_connection(f);
	const uint64_t end = dt_now_us() + 1500000;

	while (dt_now_us() < end)
		conn_stays_quiet(&f->a);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	expect_link(f);
}

/* CR-ACCEPT-24 CONN-EVT-58 CONN-EVT-23: on one EVD, while the peer sends as soon as it can */
static void cr_accept__messages_at_once__established_first(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EVD_HANDLE evd =
		dt_evd_create(&f->ia, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	struct dt_ep eager[2];

	for (size_t i = 0; i < 2; i++) {
		eager[i] = (struct dt_ep){.recv = evd, .request = evd, .conn = evd};
		if (i == 1)
			eager[i].recv = eager[i].request = eager[i].conn = dt_evd_create(
				&f->ia, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
		dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, eager[i].recv, eager[i].request,
				    eager[i].conn, NULL, &eager[i].ep));
	}
	for (unsigned int round = 0; round < 50; round++) {
		/* the first to be established sends; the other one polls */
		struct dt_ep *first = &eager[round & 1], *second = &eager[!(round & 1)];

		conn_post_recv(second->ep, &f->buf, CONN_B_RECEIVES_AT, 1);
		dt_connect(&f->ia, eager[0].ep, f->listener.qual);
		dt_ok(dat_cr_accept(dt_request(&f->listener), eager[1].ep, 0, NULL));
		dt_expect_conn(first->conn, first->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		conn_post_send(first->ep, &f->buf, CONN_A_SENDS_AT, 2);
		dt_expect_conn(second->conn, second->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_dto(second->recv, second->ep, 1, DAT_DTO_SUCCESS, CONN_BUF_LEN);
		dt_expect_dto(first->request, first->ep, 2, DAT_DTO_SUCCESS, DT_ANY_LEN);
		dt_ok(dat_ep_disconnect(first->ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_expect_conn(first->conn, first->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_expect_conn(second->conn, second->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(first->ep));
		dt_ok(dat_ep_reset(second->ep));
	}
}

/* --- refusals --- */

/*
 * After a refused accept the request and both endpoints are unchanged, and the request can be
 * accepted.
 */
static void check_usable(struct conn_fixture *f, DAT_CR_HANDLE cr, const struct conn_snapshot *b)
{
	const DAT_CR_PARAM param = conn_cr_query(cr);

	assert_true(param.remote_port_qual == conn_ep_query(f->a.ep).local_port_qual);
	conn_check_unchanged(&f->b, b);
	conn_no_events(&f->a);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
}

/* CR-ACCEPT-14 CR-ACCEPT-15 CR-ACCEPT-16 CR-ACCEPT-18 CR-ACCEPT-06 */
static void cr_accept__bad_argument__request_stays(void **state)
{
	static const unsigned char data[65536];
	struct conn_fixture *f = *state;
	const DAT_CR_HANDLE cr = request_connection(f);
	const DAT_COUNT too_much = f->ia.provider.max_private_data_size + 1;
	const DAT_PVOID some = (DAT_PVOID)(uintptr_t)data;
	struct conn_snapshot before;

	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 5);
	before = conn_snapshot(f->b.ep);
	dt_fails_with(dat_cr_accept(cr, f->b.ep, -1, some), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	check_usable(f, cr, &before);
	dt_fails_with(dat_cr_accept(cr, f->b.ep, too_much, some), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	check_usable(f, cr, &before);
	dt_fails_with(dat_cr_accept(cr, f->b.ep, 4, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	check_usable(f, cr, &before);
	dt_fails_with(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	check_usable(f, cr, &before);
	conn_stays_quiet(&f->a);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	conn_post_send(f->a.ep, &f->buf, CONN_A_SENDS_AT, 1);
	dt_expect_dto(f->b.recv, f->b.ep, 5, DAT_DTO_SUCCESS, CONN_BUF_LEN);
}

static DAT_RETURN accept_cr(DAT_HANDLE handle, void *arg)
{
	struct conn_fixture *f = arg;

	return dat_cr_accept(handle, f->b.ep, 0, NULL);
}

/* CR-ACCEPT-07 */
static void cr_accept__bad_request__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;
	const struct conn_snapshot before = conn_snapshot(f->b.ep);

	conn_refuses_handles(accept_cr, f, f->a.ep, conn_freed_cr(f), DAT_INVALID_HANDLE_CR);
	conn_check_unchanged(&f->b, &before);
}

struct request_and_fixture {
	struct conn_fixture *f;
	DAT_CR_HANDLE cr;
};

static DAT_RETURN accept_with_ep(DAT_HANDLE handle, void *arg)
{
	struct request_and_fixture *open = arg;

	return dat_cr_accept(open->cr, handle, 0, NULL);
}

/* CR-ACCEPT-08 CR-ACCEPT-06 CR-ACCEPT-18 */
static void cr_accept__bad_ep__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;
	struct request_and_fixture open = {.f = f, .cr = request_connection(f)};
	const struct conn_snapshot before = conn_snapshot(f->b.ep);
	struct dt_ia other;
	struct dt_ep foreign;

	dt_ia_open(&other);
	dt_ep_create(&other, other.pz, NULL, &foreign);
	conn_refuses_handles(accept_with_ep, &open, f->a.conn, conn_freed_ep(&f->ia),
			     DAT_INVALID_HANDLE_EP);
	dt_fails_with(dat_cr_accept(open.cr, foreign.ep, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	assert_int_equal(dt_ep_state(foreign.ep), DAT_EP_STATE_UNCONNECTED);
	conn_stays_quiet(&foreign);
	dt_ia_abort(&other);
	check_usable(f, open.cr, &before);
	dt_ok(dat_cr_accept(open.cr, f->b.ep, 0, NULL));
	expect_link(f);
}

/* CR-ACCEPT-10 CR-ACCEPT-18 EP-STATE-54 */
static void cr_accept__ep_not_configured__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CR_HANDLE cr = request_connection(f);
	const struct conn_snapshot before = conn_snapshot(f->b.ep);
	struct dt_ep no_zone;
	DAT_EP_HANDLE no_evd;

	dt_ep_create(&f->ia, DAT_HANDLE_NULL, NULL, &no_zone);
	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, f->b.recv, f->b.request, DAT_HANDLE_NULL, NULL,
			    &no_evd));
	dt_fails_with(dat_cr_accept(cr, no_zone.ep, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	dt_fails_with(dat_cr_accept(cr, no_evd, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	assert_int_equal(dt_ep_state(no_zone.ep), DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(dt_ep_state(no_evd), DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_ep_free(no_evd));
	dt_ep_free(&no_zone);
	check_usable(f, cr, &before);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	expect_link(f);
}

/* CR-ACCEPT-09 CR-ACCEPT-18 EP-STATE-58 */
static void cr_accept__ep_not_unconnected__invalid_state(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL qual = dt_unused_qual();
	struct dt_ep c;
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr, other;

	dt_ep_create(&f->ia, f->ia.pz, NULL, &c);
	conn_link(f, &f->b, &c); /* CONNECTED */
	cr = request_connection(f);
	dt_fails_with(dat_cr_accept(cr, f->b.ep, 0, NULL), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_CONNECTED);
	dt_fails_with(dat_cr_accept(cr, c.ep, 0, NULL), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_CONNECTED);
	conn_transfer(f, &f->b, &c);
	dt_ok(dat_ep_disconnect(c.ep, DAT_CLOSE_ABRUPT_FLAG)); /* DISCONNECTED */
	conn_await_state(c.ep, DAT_EP_STATE_DISCONNECTED);
	conn_await_state(f->b.ep, DAT_EP_STATE_DISCONNECTED);
	dt_fails_with(dat_cr_accept(cr, c.ep, 0, NULL), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_DISCONNECTED);
	dt_ok(dat_ep_reset(c.ep));
	dt_drain(c.conn);
	dt_ok(dat_rsp_create(f->ia.ia, qual, c.ep, f->listener.evd, &rsp)); /* RESERVED */
	dt_fails_with(dat_cr_accept(cr, c.ep, 0, NULL), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_RESERVED);
	dt_ok(dat_ep_reset(f->b.ep));
	dt_drain(f->b.conn);
	dt_connect(&f->ia, f->b.ep, qual); /* PASSIVE_ and ACTIVE_CONNECTION_PENDING */
	other = dt_request(&f->listener);
	dt_fails_with(dat_cr_accept(cr, c.ep, 0, NULL), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_PASSCONNPENDING);
	dt_fails_with(dat_cr_accept(cr, f->b.ep, 0, NULL), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_ACTCONNPENDING);
	assert_int_equal(dt_ep_state(c.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	dt_ok(dat_cr_reject(other));
	conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_rsp_free(rsp));
	conn_no_events(&f->a);
	dt_ok(dat_cr_accept(cr, c.ep, 0, NULL));
	dt_expect_conn(c.conn, c.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* COMPAT-30: the endpoint that requested the connection */
static void cr_accept__the_requesting_ep__refused_then_reject_works(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CR_HANDLE cr = request_connection(f);

	dt_fails_with(dat_cr_accept(cr, f->a.ep, 0, NULL), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_ACTCONNPENDING);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	conn_stays_quiet(&f->a);
	dt_ok(dat_cr_reject(cr));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/*
 * CR-ACCEPT-28: either the call needs no descriptor, or it reports that and changes nothing. The
 * active side has descriptors of its own.
 */
static void cr_accept__no_descriptors__no_effect(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	struct conn_snapshot before;
	struct rlimit limit;
	DAT_CR_HANDLE cr;
	DAT_RETURN ret;

	remote_connect(&r->peer, f->listener.qual);
	cr = dt_request(&f->listener);
	before = conn_snapshot(f->b.ep);
	limit = conn_descriptors_take();
	ret = dat_cr_accept(cr, f->b.ep, 0, NULL);
	conn_descriptors_give(&limit);
	if (ret != DAT_SUCCESS) {
		dt_fails(ret, DAT_INSUFFICIENT_RESOURCES);
		conn_check_unchanged(&f->b, &before);
		conn_cr_query(cr);
		dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	}
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* --- two threads, one request --- */

struct answerer {
	pthread_t thread;
	pthread_barrier_t *start;
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep; /* NULL: rejects */
	DAT_RETURN ret;
};

static void *answer(void *arg)
{
	struct answerer *answerer = arg;

	pthread_barrier_wait(answerer->start);
	answerer->ret = answerer->ep ? dat_cr_accept(answerer->cr, answerer->ep, 0, NULL)
				     : dat_cr_reject(answerer->cr);
	return NULL;
}

static void race(struct answerer *answerers)
{
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, 2);
	for (size_t i = 0; i < 2; i++) {
		answerers[i].start = &start;
		assert_int_equal(pthread_create(&answerers[i].thread, NULL, answer, &answerers[i]),
				 0);
	}
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_join(answerers[i].thread, NULL), 0);
	pthread_barrier_destroy(&start);
}

/* CR-ACCEPT-31 */
static void cr__answered_by_two_threads__one_succeeds(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_ep c;

	dt_ep_create(&f->ia, f->ia.pz, NULL, &c);
	for (unsigned int round = 0; round < 50; round++) {
		const DAT_CR_HANDLE cr = request_connection(f);
		struct answerer both[2] = {
			{.cr = cr, .ep = f->b.ep},
			{.cr = cr, .ep = round & 1 ? c.ep : DAT_HANDLE_NULL},
		};
		size_t winner;

		race(both);
		winner = both[0].ret == DAT_SUCCESS ? 0 : 1;
		dt_ok(both[winner].ret);
		dt_fails_with(both[!winner].ret, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
		if (!both[winner].ep) {
			conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
			assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_UNCONNECTED);
			dt_ok(dat_ep_reset(f->a.ep));
			continue;
		}
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(winner ? c.conn : f->b.conn, both[winner].ep,
			       DAT_CONNECTION_EVENT_ESTABLISHED);
		assert_int_equal(dt_ep_state(winner ? f->b.ep : c.ep), DAT_EP_STATE_UNCONNECTED);
		dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
		conn_await_state(f->a.ep, DAT_EP_STATE_DISCONNECTED);
		conn_await_state(both[winner].ep, DAT_EP_STATE_DISCONNECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(both[winner].ep));
		dt_drain(f->a.conn);
		dt_drain(f->b.conn);
		dt_drain(c.conn);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(cr_accept__plain__connects_that_ep),
		conn_test(cr_accept__done__request_invalid),
		conn_test(cr_accept__late__works),
		conn_test(cr_accept__messages_at_once__established_first),
		conn_test(cr_accept__bad_argument__request_stays),
		conn_test(cr_accept__bad_request__invalid_handle),
		conn_test(cr_accept__bad_ep__invalid_handle),
		conn_test(cr_accept__ep_not_configured__invalid_handle),
		conn_test(cr_accept__ep_not_unconnected__invalid_state),
		conn_test(cr_accept__the_requesting_ep__refused_then_reject_works),
		remote_test(cr_accept__no_descriptors__no_effect),
		conn_test(cr__answered_by_two_threads__one_succeeds),
	};

	return cmocka_run_group_tests_name("cr_accept", tests, NULL, NULL);
}
