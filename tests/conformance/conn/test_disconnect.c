// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_disconnect: arguments, the states in which it is refused or has no effect, the abort of a
 * set-up, and the events at each side. Posted operations are in test_disconnect_work.c.
 */
#include "conn_remote.h"

static const DAT_CLOSE_FLAGS both_flags[] = {DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG};

/* --- arguments --- */

/* EP-DISC-02 */
static void close_flags__values__those_of_the_header(void **state)
{
	(void)state;
	assert_int_equal(DAT_CLOSE_ABRUPT_FLAG, 0x00);
	assert_int_equal(DAT_CLOSE_DEFAULT, 0x00);
	assert_int_equal(DAT_CLOSE_GRACEFUL_FLAG, 0x01);
}

/* EP-DISC-03 */
static void ep_disconnect__undefined_flags__invalid_parameter(void **state)
{
	static const unsigned int bad[] = {0x02, 0x03, 0x10, 0x80000000};
	struct conn_fixture *f = *state;

	conn_link(f, &f->a, &f->b);
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		dt_fails_with(dat_ep_disconnect(f->a.ep, (DAT_CLOSE_FLAGS)bad[i]),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_CONNECTED);
	conn_stays_quiet(&f->a);
	conn_no_events(&f->b);
	conn_transfer(f, &f->a, &f->b);
}

static DAT_RETURN disconnect_handle(DAT_HANDLE handle, void *arg)
{
	return dat_ep_disconnect(handle, *(const DAT_CLOSE_FLAGS *)arg);
}

/* EP-DISC-04 */
static void ep_disconnect__bad_handle__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EP_HANDLE freed = conn_freed_ep(&f->ia);

	for (size_t i = 0; i < COUNT_OF(both_flags); i++) {
		DAT_CLOSE_FLAGS flags = both_flags[i];

		conn_refuses_handles(disconnect_handle, &flags, f->a.conn, freed,
				     DAT_INVALID_HANDLE_EP);
	}
}

/* --- states --- */

static void check_refused(struct dt_ep *ep, DAT_EP_STATE expected)
{
	for (size_t i = 0; i < COUNT_OF(both_flags); i++) {
		assert_int_equal(dt_ep_state(ep->ep), expected);
		dt_returns(dat_ep_disconnect(ep->ep, both_flags[i]), dt_state_error(expected));
	}
	assert_int_equal(dt_ep_state(ep->ep), expected);
	conn_stays_quiet(ep);
}

/* EP-DISC-24 EP-DISC-25 EP-DISC-26 EP-STATE-59 EP-DISC-20 */
static void ep_disconnect__nothing_to_end__invalid_state(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL qual = dt_unused_qual();
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;

	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	check_refused(&f->b, DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_rsp_create(f->ia.ia, qual, f->b.ep, f->listener.evd, &rsp));
	check_refused(&f->b, DAT_EP_STATE_RESERVED);
	dt_connect(&f->ia, f->a.ep, qual);
	cr = dt_request(&f->listener);
	check_refused(&f->b, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	dt_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_rsp_free(rsp));
}

/* EP-DISC-27 EP-STATE-59 */
static void ep_disconnect__tentative__invalid_state(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_ep offered = f->b;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;

	dt_ok(dat_psp_create_any(f->ia.ia, &qual, f->listener.evd, DAT_PSP_PROVIDER_FLAG, &psp));
	dt_connect(&f->ia, f->a.ep, qual);
	cr = dt_request(&f->listener);
	offered.ep = conn_cr_query(cr).local_ep_handle;
	check_refused(&offered, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	dt_ok(dat_cr_reject(cr));
}

/* EP-DISC-23 EP-STATE-60 EP-DISC-20 COMPAT-15 */
static void ep_disconnect__disconnected__success_without_event(void **state)
{
	struct conn_fixture *f = *state;

	conn_link(f, &f->a, &f->b);
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (size_t i = 0; i < COUNT_OF(both_flags); i++) {
		dt_ok(dat_ep_disconnect(f->a.ep, both_flags[i]));
		dt_ok(dat_ep_disconnect(f->b.ep, both_flags[i]));
	}
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_DISCONNECTED);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_DISCONNECTED);
}

/* --- a connection --- */

/* EP-DISC-01 EP-DISC-06 EP-DISC-07 EP-DISC-32 CONN-EVT-32 COMPAT-15 EP-STATE-52 */
static void ep_disconnect__either_side_and_flag__both_notified_once(void **state)
{
	struct conn_fixture *f = *state;

	for (unsigned int i = 0; i < 4; i++) {
		struct dt_ep *caller = i & 1 ? &f->a : &f->b;

		conn_link(f, &f->a, &f->b);
		conn_transfer(f, &f->a, &f->b);
		dt_ok(dat_ep_disconnect(caller->ep, both_flags[i / 2]));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_DISCONNECTED);
		conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		conn_stays_quiet(&f->a);
		conn_stays_quiet(&f->b);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
}

/* EP-DISC-34 COMPAT-15 */
static void ep_disconnect__both_sides__one_event_each(void **state)
{
	struct conn_fixture *f = *state;

	for (unsigned int i = 0; i < 100; i++) {
		conn_link(f, &f->a, &f->b);
		dt_ok(dat_ep_disconnect(f->a.ep, both_flags[i & 1]));
		dt_ok(dat_ep_disconnect(f->b.ep, both_flags[i / 2 & 1]));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_DISCONNECTED);
		conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
}

/* EP-DISC-37 */
static void ep_disconnect__no_recv_and_request_evd__event(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_ep bare = {.conn = dt_evd_create(&f->ia, 8, DAT_EVD_CONNECTION_FLAG)};

	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, bare.conn, NULL,
			    &bare.ep));
	for (size_t i = 0; i < COUNT_OF(both_flags); i++) {
		conn_link(f, &bare, &f->b);
		dt_ok(dat_ep_disconnect(bare.ep, both_flags[i]));
		dt_expect_conn(bare.conn, bare.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		assert_int_equal(dt_ep_state(bare.ep), DAT_EP_STATE_DISCONNECTED);
		conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(bare.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
	dt_ep_free(&bare);
}

/* --- a set-up --- */

/* EP-DISC-28 EP-DISC-30 EP-DISC-20 CONN-EVT-34 EP-STATE-22 */
static void ep_disconnect__active_pending__aborts(void **state)
{
	struct conn_fixture *f = *state;

	for (size_t i = 0; i < COUNT_OF(both_flags); i++) {
		DAT_CR_HANDLE cr;

		conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 1);
		conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 2);
		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		cr = dt_request(&f->listener);
		dt_ok(dat_ep_disconnect(f->a.ep, both_flags[i]));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_DISCONNECTED);
		conn_expect_flushes(&f->a, 1, 2);
		dt_ok(dat_cr_reject(cr));
		conn_stays_quiet(&f->a);
		dt_ok(dat_ep_reset(f->a.ep));
	}
	conn_link(f, &f->a, &f->b);
	conn_transfer(f, &f->a, &f->b);
}

/* EP-DISC-28: before the request can have reached a listener */
static void ep_disconnect__right_after_connect__one_event(void **state)
{
	struct conn_fixture *f = *state;

	for (unsigned int i = 0; i < 50; i++) {
		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		dt_ok(dat_ep_disconnect(f->a.ep, both_flags[i & 1]));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(f->a.ep));
	}
	conn_stays_quiet(&f->a);
}

/* The other side requests a connection and is stopped, b accepts: stays COMPLETION_PENDING. */
static void accept_from_stopped(struct remote_fixture *r)
{
	struct conn_fixture *f = r->f;
	DAT_CR_HANDLE cr;

	remote_connect(&r->peer, f->listener.qual);
	cr = dt_request(&f->listener);
	dt_peer_stop(&r->peer);
	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	conn_stays_quiet(&f->b);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_COMPLETION_PENDING);
}

/* EP-DISC-29 EP-DISC-30 EP-DISC-31 EP-STATE-34 EP-STATE-13 */
static void ep_disconnect__completion_pending__aborts(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;

	for (size_t i = 0; i < COUNT_OF(both_flags); i++) {
		DAT_EVENT_NUMBER number;

		accept_from_stopped(r);
		dt_ok(dat_ep_disconnect(f->b.ep, both_flags[i]));
		conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		conn_expect_flushes(&f->b, 1, 1);
		dt_peer_continue(&r->peer);
		number = (DAT_EVENT_NUMBER)remote_do(&r->peer, REMOTE_EVENT, 0, 0);
		if (number == DAT_CONNECTION_EVENT_ESTABLISHED)
			remote_expect(&r->peer, DAT_CONNECTION_EVENT_DISCONNECTED);
		else
			assert_int_equal(number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		remote_do(&r->peer, REMOTE_QUIET, 0, 0);
		conn_stays_quiet(&f->b);
		remote_do(&r->peer, REMOTE_RESET, 0, 0);
		dt_ok(dat_ep_reset(f->b.ep));
	}
	remote_link_passive(r);
}

/* EP-CONNECT-37 EP-DUPCONN-08 EP-STATE-56 EP-STATE-62 (COMPLETION_PENDING) CR-ACCEPT-01 */
static void ep_connect__completion_pending__invalid_state(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	const struct conn_args args = conn_args_of(f);

	accept_from_stopped(r);
	dt_fails_with(conn_try(f->b.ep, &args), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_COMPLPENDING);
	dt_fails_with(dat_ep_dup_connect(f->a.ep, f->b.ep, DAT_TIMEOUT_INFINITE, 0, NULL,
					 DAT_QOS_BEST_EFFORT),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_COMPLPENDING);
	dt_fails_with(dat_ep_reset(f->b.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_COMPLPENDING);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_COMPLETION_PENDING);
	dt_peer_continue(&r->peer);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* --- a peer that does not respond --- */

/* EP-DISC-08 EP-DISC-40: the fastest of three, as the machine may be busy */
static void ep_disconnect__peer_stopped__abrupt_ends_within_1_s(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	uint64_t best = UINT64_MAX;

	for (int attempt = 0; attempt < 3 && best > 1000000; attempt++) {
		uint64_t start, took;

		remote_link_passive(r);
		conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
		dt_peer_stop(&r->peer);
		conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, 2);
		start = dt_now_us();
		dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		took = dt_now_us() - start;
		if (took < best)
			best = took;
		conn_expect_flushes(&f->b, 1, 1);
		dt_expect_dto(f->b.request, f->b.ep, 2, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
		conn_stays_quiet(&f->b);
		dt_peer_continue(&r->peer);
		remote_expect(&r->peer, DAT_CONNECTION_EVENT_DISCONNECTED);
		remote_do(&r->peer, REMOTE_RESET, 0, 0);
		dt_ok(dat_ep_reset(f->b.ep));
	}
	assert_true(best <= 1000000);
}

/* EP-DISC-08 EP-DISC-41: a graceful disconnect returns at once too, then waits without limit */
static void ep_disconnect__peer_stopped__graceful_waits(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;

	remote_link_passive(r);
	dt_peer_stop(&r->peer);
	conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, 2);
	dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_GRACEFUL_FLAG));
	conn_stays_quiet(&f->b);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	dt_peer_continue(&r->peer);
	remote_do(&r->peer, REMOTE_POST_RECV, 1, 0);
	dt_expect_dto(f->b.request, f->b.ep, 2, DAT_DTO_SUCCESS, DT_ANY_LEN);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(remote_do(&r->peer, REMOTE_RECEIVED, 0, 0), DAT_DTO_SUCCESS);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* EP-DISC-36 EP-DISC-41 EP-STATE-80 */
static void ep_disconnect__peer_dies_while_graceful__one_disconnected(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	DAT_EVENT event;

	remote_link_passive(r);
	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, 2);
	dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_GRACEFUL_FLAG));
	conn_stays_quiet(&f->b);
	dt_peer_kill(&r->peer);
	conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	event = dt_event(f->b.request);
	assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == 2);
	assert_int_not_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	conn_expect_flushes(&f->b, 1, 1);
	conn_stays_quiet(&f->b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close_flags__values__those_of_the_header),
		conn_test(ep_disconnect__undefined_flags__invalid_parameter),
		conn_test(ep_disconnect__bad_handle__invalid_handle),
		conn_test(ep_disconnect__nothing_to_end__invalid_state),
		conn_test(ep_disconnect__tentative__invalid_state),
		conn_test(ep_disconnect__disconnected__success_without_event),
		conn_test(ep_disconnect__either_side_and_flag__both_notified_once),
		conn_test(ep_disconnect__both_sides__one_event_each),
		conn_test(ep_disconnect__no_recv_and_request_evd__event),
		conn_test(ep_disconnect__active_pending__aborts),
		conn_test(ep_disconnect__right_after_connect__one_event),
		remote_test(ep_disconnect__completion_pending__aborts),
		remote_test(ep_connect__completion_pending__invalid_state),
		remote_test(ep_disconnect__peer_stopped__abrupt_ends_within_1_s),
		remote_test(ep_disconnect__peer_stopped__graceful_waits),
		remote_test(ep_disconnect__peer_dies_while_graceful__one_disconnected),
	};

	return cmocka_run_group_tests_name("ep_disconnect", tests, NULL, NULL);
}
