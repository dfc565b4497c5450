// SPDX-License-Identifier: BSD-2-Clause
/*
 * How a connection attempt fails: the event, the state, the effects on both sides, and the next
 * attempt.
 */
#include "conn_util.h"

/* --- time-out --- */

/* Starts an attempt that nobody answers; returns the microseconds until TIMED_OUT. */
static uint64_t time_to_expire(struct conn_fixture *f, DAT_TIMEOUT timeout_us)
{
	const uint64_t start = dt_now_us();
	uint64_t took;

	conn_start_timed(f, f->a.ep, timeout_us);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_TIMED_OUT);
	took = dt_now_us() - start;
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_DISCONNECTED);
	dt_no_event(f->a.conn);
	dt_ok(dat_ep_reset(f->a.ep));
	return took;
}

/*
 * EP-CONNECT-12 EP-CONNECT-13 EP-CONNECT-14 EP-CONNECT-15 CONN-EVT-29: one
 * attempt may be late on a busy machine, but not three.
 */
static void ep_connect__not_answered__timed_out_in_time(void **state)
{
	static const DAT_TIMEOUT timeouts[] = {1, 20000, 400000};
	struct conn_fixture *f = *state;

	for (size_t i = 0; i < COUNT_OF(timeouts); i++) {
		uint64_t best = UINT64_MAX;

		for (int attempt = 0; attempt < 3 && best > timeouts[i] + 1000000u; attempt++) {
			const uint64_t took = time_to_expire(f, timeouts[i]);

			assert_true(took >= timeouts[i]);
			if (took < best)
				best = took;
		}
		assert_true(best <= timeouts[i] + 1000000u);
	}
}

/* EP-CONNECT-17 CR-ACCEPT-21 CONN-EVT-18 CONN-EVT-28 EP-CONNECT-25 */
static void cr_accept__after_time_out__accept_completion_error(void **state)
{
	struct conn_fixture *f = *state;

	conn_start_timed(f, f->a.ep, CONN_SHORT_US);
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_TIMED_OUT);
	/* the request is still valid */
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
	conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_DISCONNECTED);
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
}

/* EP-CONNECT-17: the timer of an attempt ends with it */
static void ep_connect__established__no_time_out_later(void **state)
{
	struct conn_fixture *f = *state;
	uint64_t end;

	conn_start_timed(f, f->a.ep, 2 * CONN_SHORT_US);
	end = dt_now_us() + 3 * CONN_SHORT_US;
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	while (dt_now_us() < end)
		conn_stays_quiet(&f->a);
	conn_transfer(f, &f->a, &f->b);
}

/* EP-CONNECT-44: the timer of a failed attempt does not affect the next one */
static void ep_connect__next_attempt__old_timer_stopped(void **state)
{
	struct conn_fixture *f = *state;
	uint64_t end;

	conn_start_timed(f, f->a.ep, 2 * CONN_SHORT_US);
	end = dt_now_us() + 3 * CONN_SHORT_US;
	dt_ok(dat_cr_reject(dt_request(&f->listener)));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_ep_reset(f->a.ep));
	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	while (dt_now_us() < end)
		conn_stays_quiet(&f->a);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
}

/* --- the active side gives up --- */

static void active_disconnects(struct conn_fixture *f)
{
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void active_frees(struct conn_fixture *f)
{
	dt_ok(dat_ep_free(f->a.ep));
	f->a.ep = DAT_HANDLE_NULL;
}

/* CONN-EVT-28 CR-ACCEPT-19 CR-ACCEPT-20 CR-ACCEPT-21 EP-FREE-17 EP-STATE-33 EP-STATE-48 CONN-EVT-27
 * CR-QUERY-12 CONN-EVT-31 CONN-EVT-34 */
static void cr_accept__active_side_gave_up__accept_completion_error(void **state)
{
	void (*const ways[])(struct conn_fixture * f) = {active_disconnects, active_frees};
	struct conn_fixture *f = *state;

	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		DAT_CR_HANDLE cr;
		DAT_PORT_QUAL port;

		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		cr = dt_request(&f->listener);
		port = conn_cr_query(cr).remote_port_qual;
		ways[i](f);
		dt_no_event(f->listener.evd);
		assert_true(conn_cr_query(cr).remote_port_qual == port);
		conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 31);
		conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 32);
		dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
		conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		conn_expect_flushes(&f->b, 31, 2);
		conn_stays_quiet(&f->b);
		dt_ok(dat_ep_reset(f->b.ep));
		if (f->a.ep)
			dt_ok(dat_ep_reset(f->a.ep));
	}
}

/* CR-REJECT-07 */
static void cr_reject__active_side_gave_up__succeeds(void **state)
{
	void (*const ways[])(struct conn_fixture * f) = {active_disconnects, active_frees};
	struct conn_fixture *f = *state;

	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		DAT_CR_HANDLE cr;

		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		cr = dt_request(&f->listener);
		ways[i](f);
		dt_ok(dat_cr_reject(cr));
		if (!f->a.ep)
			break;
		conn_stays_quiet(&f->a);
		dt_ok(dat_ep_reset(f->a.ep));
	}
}

/* --- refused at the other side --- */

static void refused_nobody_listens(struct conn_fixture *f)
{
	dt_connect(&f->ia, f->a.ep, dt_unused_qual());
}

static void refused_service_point_freed(struct conn_fixture *f)
{
	const DAT_CONN_QUAL qual = f->listener.qual;

	dt_unlisten(&f->listener);
	dt_connect(&f->ia, f->a.ep, qual);
	dt_listen(&f->ia, &f->listener);
}

/* The event of the request is lost with its EVD, so the request cannot be answered. */
static void refused_evd_freed(struct conn_fixture *f)
{
	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	conn_stays_quiet(&f->a);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	dt_unlisten(&f->listener);
	dt_listen(&f->ia, &f->listener);
}

static void connect_to_other_ia(struct conn_fixture *f, struct dt_ia *other,
				struct dt_listener *listener)
{
	dt_ia_open(other);
	dt_listen(other, listener);
	dt_connect(&f->ia, f->a.ep, listener->qual);
}

static void refused_ia_closed_with_request(struct conn_fixture *f)
{
	struct dt_listener listener;
	struct dt_ia other;

	connect_to_other_ia(f, &other, &listener);
	dt_request(&listener);
	dt_ia_abort(&other);
}

/* The unanswered request does not delay a graceful close (IA-CLOSE-06). */
static void refused_ia_closed_gracefully(struct conn_fixture *f)
{
	struct dt_listener listener;
	struct dt_ia other;

	connect_to_other_ia(f, &other, &listener);
	dt_request(&listener);
	dt_unlisten(&listener);
	dt_ia_close(&other);
}

static void refused_full_backlog(struct conn_fixture *f)
{
	const DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 1, DAT_EVD_CR_FLAG);
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;

	dt_ok(dat_psp_create_any(f->ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_connect(&f->ia, f->b.ep, qual);
	conn_stays_quiet(&f->b);
	dt_connect(&f->ia, f->a.ep, qual);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	/* for the caller: another event of an attempt that finds the queue full */
	dt_expect_dto(f->a.recv, f->a.ep, 41, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
	dt_ok(dat_ep_reset(f->a.ep));
	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 41);
	dt_connect(&f->ia, f->a.ep, qual);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_ok(dat_psp_free(psp));
	/* the first request is still valid */
	dt_ok(dat_cr_reject(conn_request(evd)));
	conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_ep_reset(f->b.ep));
	dt_ok(dat_evd_free(evd));
}

static void check_refused(struct conn_fixture *f, void (*refuse)(struct conn_fixture *f))
{
	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 41);
	refuse(f);
	if (refuse != refused_full_backlog)
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_DISCONNECTED);
	conn_expect_flushes(&f->a, 41, 1);
	conn_stays_quiet(&f->a);
	/* after a reset the next attempt succeeds */
	dt_ok(dat_ep_reset(f->a.ep));
	conn_link(f, &f->a, &f->b);
	conn_transfer(f, &f->a, &f->b);
}

/* EP-CONNECT-20 CONN-EVT-25 CONN-EVT-26 CONN-EVT-31 EP-CONNECT-44 */
static void ep_connect__nobody_listens__non_peer_rejected(void **state)
{
	check_refused(*state, refused_nobody_listens);
}

/* CONN-EVT-26 PSP-FREE-02 PSP-FREE-06 */
static void ep_connect__service_point_freed__non_peer_rejected(void **state)
{
	check_refused(*state, refused_service_point_freed);
}

/* CONN-EVT-26 EVD-FREE-12 EP-STATE-82 */
static void ep_connect__evd_of_the_request_freed__non_peer_rejected(void **state)
{
	check_refused(*state, refused_evd_freed);
}

/* CONN-EVT-26 IA-CLOSE-07 */
static void ep_connect__remote_ia_closed_abruptly__non_peer_rejected(void **state)
{
	check_refused(*state, refused_ia_closed_with_request);
}

/* CONN-EVT-26 IA-CLOSE-06 */
static void ep_connect__remote_ia_closed_gracefully__non_peer_rejected(void **state)
{
	check_refused(*state, refused_ia_closed_gracefully);
}

/* EP-CONNECT-21 CONN-EVT-26 PSP-CREATE-06 */
static void ep_connect__backlog_full__non_peer_rejected(void **state)
{
	check_refused(*state, refused_full_backlog);
}

/* EP-CONNECT-19 CONN-EVT-24 CONN-EVT-31 CR-REJECT-01 EP-CONNECT-44 */
static void ep_connect__rejected__peer_rejected(void **state)
{
	struct conn_fixture *f = *state;
	const struct conn_args args = conn_args_of(f);

	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 41);
	dt_ok(conn_try(f->a.ep, &args));
	dt_ok(dat_cr_reject(dt_request(&f->listener)));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
	conn_expect_flushes(&f->a, 41, 1);
	dt_fails_with(conn_try(f->a.ep, &args), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_DISCONNECTED);
	conn_stays_quiet(&f->a);
	dt_ok(dat_ep_reset(f->a.ep));
	conn_link(f, &f->a, &f->b);
	conn_transfer(f, &f->a, &f->b);
}

/* CONN-EVT-31 EP-STATE-72: receives are flushed after a time-out and an abort too */
static void ep_connect__timed_out_or_aborted__receives_flushed(void **state)
{
	struct conn_fixture *f = *state;

	for (int is_abort = 0; is_abort < 2; is_abort++) {
		for (uint64_t i = 0; i < 3; i++)
			conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 50 + i);
		conn_start_timed(f, f->a.ep, is_abort ? DAT_TIMEOUT_INFINITE : CONN_SHORT_US);
		if (is_abort)
			dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
		conn_expect_failure(&f->a, is_abort ? DAT_CONNECTION_EVENT_DISCONNECTED
						    : DAT_CONNECTION_EVENT_TIMED_OUT);
		conn_expect_flushes(&f->a, 50, 3);
		conn_stays_quiet(&f->a);
		dt_ok(dat_ep_reset(f->a.ep));
	}
}

/*
 * EP-STATE-20 EP-CONNECT-24 EP-CONNECT-32 EP-CONNECT-34 CONN-EVT-30: an address without a host
 * (reserved for documentation)
 */
static void ep_connect__no_such_host__unreachable(void **state)
{
	struct conn_fixture *f = *state;
	union conn_address address = {.in = {.sin_family = AF_INET}};
	struct conn_args args = conn_args_of(f);
	DAT_RETURN ret;

	address.in.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
	args.address = conn_dat_address(&address);
	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 41);
	ret = conn_try(f->a.ep, &args);
	if (ret != DAT_SUCCESS) {
		dt_fails_with(ret, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
		assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_UNCONNECTED);
		conn_stays_quiet(&f->a);
		return;
	}
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_UNREACHABLE);
	conn_expect_flushes(&f->a, 41, 1);
	conn_stays_quiet(&f->a);
}

/* --- counts that differ --- */

static void make_with_reads(struct conn_fixture *f, DAT_COUNT in, DAT_COUNT out,
			    struct dt_ep *ep_out)
{
	DAT_EP_ATTR attr;

	dt_ep_attr(&f->ia, &attr);
	attr.max_rdma_read_in = in;
	attr.max_rdma_read_out = out;
	dt_ep_create(&f->ia, f->ia.pz, &attr, ep_out);
}

/* EP-CONNECT-45 EP-CONNECT-46 CR-ACCEPT-25 CR-ACCEPT-26 */
static void ep_connect__read_counts_differ__established(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_COUNT most_in = f->ia.attr.max_rdma_read_per_ep_in;
	const DAT_COUNT most_out = f->ia.attr.max_rdma_read_per_ep_out;
	const DAT_COUNT counts[][4] = {
		{1, 4, 1, 4}, {0, 0, 4, 4}, {4, 4, 0, 0}, {most_in, most_out, 1, 1}};

	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		struct dt_ep a, b;
		DAT_EP_ATTR attr;

		make_with_reads(f, counts[i][0], counts[i][1], &a);
		make_with_reads(f, counts[i][2], counts[i][3], &b);
		conn_link(f, &a, &b);
		conn_transfer(f, &a, &b);
		attr = conn_ep_query(b.ep).ep_attr;
		assert_int_equal(attr.max_rdma_read_in, counts[i][2]);
		assert_int_equal(attr.max_rdma_read_out, counts[i][3]);
		dt_ep_free(&a);
		dt_ep_free(&b);
	}
	/* default counts on one side, counts set by the consumer on the other */
	make_with_reads(f, 1, 1, &f->a);
	conn_link(f, &f->a, &f->b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(ep_connect__not_answered__timed_out_in_time),
		conn_test(cr_accept__after_time_out__accept_completion_error),
		conn_test(ep_connect__established__no_time_out_later),
		conn_test(ep_connect__next_attempt__old_timer_stopped),
		conn_test(cr_accept__active_side_gave_up__accept_completion_error),
		conn_test(cr_reject__active_side_gave_up__succeeds),
		conn_test(ep_connect__nobody_listens__non_peer_rejected),
		conn_test(ep_connect__service_point_freed__non_peer_rejected),
		conn_test(ep_connect__evd_of_the_request_freed__non_peer_rejected),
		conn_test(ep_connect__remote_ia_closed_abruptly__non_peer_rejected),
		conn_test(ep_connect__remote_ia_closed_gracefully__non_peer_rejected),
		conn_test(ep_connect__backlog_full__non_peer_rejected),
		conn_test(ep_connect__rejected__peer_rejected),
		conn_test(ep_connect__timed_out_or_aborted__receives_flushed),
		conn_test(ep_connect__no_such_host__unreachable),
		conn_test(ep_connect__read_counts_differ__established),
	};

	return cmocka_run_group_tests_name("conn_result", tests, NULL, NULL);
}
