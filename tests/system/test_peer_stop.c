// SPDX-License-Identifier: BSD-2-Clause
/*
 * The other process is stopped, as by a debugger. Calls do not wait for it, or wait with a limit,
 * and when it continues the connections work.
 */
#include "conn_remote.h"

/* The shortest of a few tries counts: the machine may be busy. */
#define TRIES 3
#define AT_ONCE_US 1000000u

/* The time-outs where a test shortens them. */
#define LIMIT_US 500000u
#define LIMIT_MS "500"

/* EP-CONNECT-13 EP-CONNECT-14 EP-CONNECT-25 EP-CONNECT-17 CONN-EVT-29 */
static void ep_connect__peer_stopped__timed_out(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	struct conn_args args = conn_args_of(f);
	uint64_t start;

	args.qual = remote_do(&r->peer, REMOTE_LISTEN, 0, 0);
	args.timeout = 300000;
	dt_peer_stop(&r->peer);
	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 1);
	start = dt_now_us();
	dt_ok(conn_try(f->a.ep, &args));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_TIMED_OUT);
	assert_true(dt_now_us() - start >= args.timeout);
	conn_expect_flushes(&f->a, 1, 1);
	dt_peer_continue(&r->peer);
	/* it finds a stale request or none; the next one works */
	dt_ok(dat_ep_reset(f->a.ep));
	conn_stays_quiet(&f->a);
	remote_do(&r->peer, REMOTE_CONNECT, f->listener.qual, DAT_TIMEOUT_INFINITE);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* EP-CONNECT-13: No thread of the consumer is in a call that waits or polls, and nothing else
 * happens that could wake a thread of the library. */
static void ep_connect__peer_stopped_and_nobody_waits__timed_out(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	struct conn_args args = conn_args_of(f);
	const uint64_t end = dt_now_us() + DT_WAIT_US;

	args.qual = remote_do(&r->peer, REMOTE_LISTEN, 0, 0);
	args.timeout = 100000;
	dt_peer_stop(&r->peer);
	dt_ok(conn_try(f->a.ep, &args));
	while (dt_ep_state(f->a.ep) != DAT_EP_STATE_DISCONNECTED)
		assert_true(dt_now_us() < end);
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_TIMED_OUT);
	dt_peer_continue(&r->peer);
}

/* EP-CONNECT-16: Without a limit it waits until the peer continues. */
static void ep_connect__peer_stopped__infinite_waits(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	const DAT_CONN_QUAL qual = remote_do(&r->peer, REMOTE_LISTEN, 0, 0);

	dt_peer_stop(&r->peer);
	dt_connect(&f->ia, f->a.ep, qual);
	for (unsigned int i = 0; i < 10; i++)
		conn_stays_quiet(&f->a);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	dt_peer_continue(&r->peer);
	remote_do(&r->peer, REMOTE_REQUEST, 0, 0);
	remote_do(&r->peer, REMOTE_ACCEPT, 0, 0);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* EP-CONNECT-17 CONN-EVT-28 CONN-EVT-57: The acceptor was stopped during the time-out. */
static void cr_accept__peer_timed_out_meanwhile__reported(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	struct conn_args args = conn_args_of(f);

	args.qual = remote_do(&r->peer, REMOTE_LISTEN, 0, 0);
	args.timeout = 200000;
	dt_ok(conn_try(f->a.ep, &args));
	remote_do(&r->peer, REMOTE_REQUEST, 0, 0);
	dt_peer_stop(&r->peer);
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_TIMED_OUT);
	dt_peer_continue(&r->peer);
	remote_do(&r->peer, REMOTE_ACCEPT, 0, 0);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	remote_do(&r->peer, REMOTE_QUIET, 0, 0);
	conn_stays_quiet(&f->a);
}

/* Short limits for the adapters that are opened from now on. */
static int short_limit_setup(void **state)
{
	setenv("DAT_SETUP_TIMEOUT_MS", LIMIT_MS, 1);
	setenv("DAT_PEER_TIMEOUT_MS", LIMIT_MS, 1);
	return remote_setup(state);
}

static int short_limit_teardown(void **state)
{
	unsetenv("DAT_SETUP_TIMEOUT_MS");
	unsetenv("DAT_PEER_TIMEOUT_MS");
	return remote_teardown(state);
}

/* CR-ACCEPT-30 */
static void cr_accept__asker_stopped__completion_pending_has_a_limit(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	DAT_CR_HANDLE cr;
	uint64_t start;

	remote_connect(&r->peer, f->listener.qual);
	cr = dt_request(&f->listener);
	dt_peer_stop(&r->peer);
	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	start = dt_now_us();
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	assert_true(dt_now_us() - start >= LIMIT_US);
	conn_expect_flushes(&f->b, 1, 1);
	dt_peer_continue(&r->peer);
	/* neither side stays connected alone */
	if (remote_do(&r->peer, REMOTE_EVENT, 0, 0) == DAT_CONNECTION_EVENT_ESTABLISHED)
		remote_do(&r->peer, REMOTE_EVENT, 0, 0);
	assert_int_equal(remote_do(&r->peer, REMOTE_STATE, 0, 0), DAT_EP_STATE_DISCONNECTED);
	conn_stays_quiet(&f->b);
}

/* EP-DISC-08 EP-DISC-40 EP-STATE-73: idle, with Sends that wait, and with a stream under way */
static void ep_disconnect__peer_stopped__reported_within_1_s(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;

	for (unsigned int sends = 0; sends <= 8; sends += 4) {
		uint64_t best = UINT64_MAX;

		for (unsigned int i = 0; i < TRIES && best > AT_ONCE_US; i++) {
			uint64_t start, took;

			remote_link_passive(r);
			dt_peer_stop(&r->peer);
			for (uint64_t j = 0; j < sends; j++)
				conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, j);
			start = dt_now_us();
			dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
			conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
			took = dt_now_us() - start;
			best = took < best ? took : best;
			for (uint64_t j = 0; j < sends; j++)
				dt_expect_dto(f->b.request, f->b.ep, j, DAT_DTO_ERR_FLUSHED,
					      DT_ANY_LEN);
			dt_ok(dat_ep_reset(f->b.ep)); /* while it is still stopped */
			dt_peer_continue(&r->peer);
			remote_expect(&r->peer, DAT_CONNECTION_EVENT_DISCONNECTED);
			remote_do(&r->peer, REMOTE_RESET, 0, 0);
		}
		assert_true(best <= AT_ONCE_US);
	}
}

/* EP-FREE-29 EP-FREE-24 EP-FREE-25 EP-FREE-19: in every state in which a peer takes part */
static void ep_free__peer_stopped__does_not_wait(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	uint64_t best = UINT64_MAX;

	for (unsigned int i = 0; i < TRIES && best > AT_ONCE_US; i++) {
		uint64_t start, took;

		remote_link_passive(r);
		dt_peer_stop(&r->peer);
		conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
		conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, 2);
		if (i & 1)
			dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_GRACEFUL_FLAG));
		start = dt_now_us();
		dt_ep_free(&f->b); /* its EVDs too */
		took = dt_now_us() - start;
		best = took < best ? took : best;
		dt_peer_continue(&r->peer);
		remote_expect(&r->peer, DAT_CONNECTION_EVENT_DISCONNECTED);
		remote_do(&r->peer, REMOTE_RESET, 0, 0);
		dt_ep_create(&f->ia, f->ia.pz, NULL, &f->b);
	}
	assert_true(best <= AT_ONCE_US);
}

/* EP-FREE-29 EP-FREE-05 EP-FREE-06 EP-FREE-16: during the set-up */
static void ep_free__peer_stopped_in_set_up__does_not_wait(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	uint64_t best = UINT64_MAX;

	for (unsigned int i = 0; i < TRIES && best > AT_ONCE_US; i++) {
		uint64_t start, took;
		DAT_CR_HANDLE cr;

		remote_connect(&r->peer, f->listener.qual);
		cr = dt_request(&f->listener);
		dt_peer_stop(&r->peer);
		dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
		start = dt_now_us();
		dt_ep_free(&f->b);
		took = dt_now_us() - start;
		best = took < best ? took : best;
		dt_peer_continue(&r->peer);
		if (remote_do(&r->peer, REMOTE_EVENT, 0, 0) == DAT_CONNECTION_EVENT_ESTABLISHED)
			remote_expect(&r->peer, DAT_CONNECTION_EVENT_DISCONNECTED);
		remote_do(&r->peer, REMOTE_RESET, 0, 0);
		dt_ep_create(&f->ia, f->ia.pz, NULL, &f->b);
	}
	assert_true(best <= AT_ONCE_US);
}

/* The peer continues; the freed memory must not change. */
static void check_not_written(struct remote_fixture *r, const struct dt_buf *local)
{
	memset(local->p, 0xee, local->len);
	dt_peer_continue(&r->peer);
	usleep(20000);
	dt_check_bytes(local->p, local->len, 0xee);
}

/* EP-DISC-40 EP-FREE-29 EP-FREE-23: The peer is stopped at any point, perhaps in a copy into
 * this memory. Then the peer time-out is the limit, and the peer may finish that piece later. */
static void ep_disconnect__peer_stopped_in_a_stream__ends(void **state)
{
	static const size_t lens[] = {CONN_BUF_LEN, 1u << 20};
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	struct dt_buf local;

	dt_buf_create(&f->ia, f->ia.pz, &local, lens[1], DAT_MEM_PRIV_ALL_FLAG);
	for (unsigned int i = 0; i < 8; i++) {
		const size_t len = lens[i & 1];
		const bool is_free = i & 2;
		uint64_t start, took;

		remote_link_passive(r);
		remote_do(&r->peer, REMOTE_BIG, len, 0);
		remote_do(&r->peer, REMOTE_STREAM, (uintptr_t)local.p,
			  (uint64_t)CONN_STREAM_WRITE << 32 | local.rkey);
		usleep(1000 + i * 500);
		dt_peer_stop(&r->peer);
		start = dt_now_us();
		if (is_free) {
			dt_ep_free(&f->b);
			dt_ep_create(&f->ia, f->ia.pz, NULL, &f->b);
		} else {
			dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
			conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
			dt_ok(dat_ep_reset(f->b.ep));
		}
		took = dt_now_us() - start;
		assert_true(took < DT_WAIT_US);
		if (took < LIMIT_US)
			check_not_written(r, &local);
		dt_peer_kill(&r->peer);
		remote_start(&r->peer);
	}
	dt_buf_free(&local);
}

/* IA-CLOSE-13: The close does not wait either. */
static void ia_close__peer_stopped__does_not_wait(void **state)
{
	struct remote_fixture *r = *state;
	uint64_t best = UINT64_MAX;

	for (unsigned int i = 0; i < TRIES && best > AT_ONCE_US; i++) {
		struct dt_ia second;
		struct dt_ep ep;
		struct dt_listener listener;
		uint64_t start, took;

		dt_ia_open(&second);
		dt_ep_create(&second, second.pz, NULL, &ep);
		dt_listen(&second, &listener);
		remote_connect(&r->peer, listener.qual);
		dt_ok(dat_cr_accept(dt_request(&listener), ep.ep, 0, NULL));
		dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_peer_stop(&r->peer);
		start = dt_now_us();
		dt_ia_abort(&second);
		took = dt_now_us() - start;
		best = took < best ? took : best;
		dt_peer_continue(&r->peer);
		remote_expect(&r->peer, DAT_CONNECTION_EVENT_DISCONNECTED);
		remote_do(&r->peer, REMOTE_RESET, 0, 0);
	}
	assert_true(best <= AT_ONCE_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		remote_test(ep_connect__peer_stopped__timed_out),
		remote_test(ep_connect__peer_stopped_and_nobody_waits__timed_out),
		remote_test(ep_connect__peer_stopped__infinite_waits),
		remote_test(cr_accept__peer_timed_out_meanwhile__reported),
		cmocka_unit_test_setup_teardown(
			cr_accept__asker_stopped__completion_pending_has_a_limit, short_limit_setup,
			short_limit_teardown),
		remote_test(ep_disconnect__peer_stopped__reported_within_1_s),
		remote_test(ep_free__peer_stopped__does_not_wait),
		remote_test(ep_free__peer_stopped_in_set_up__does_not_wait),
		cmocka_unit_test_setup_teardown(ep_disconnect__peer_stopped_in_a_stream__ends,
						short_limit_setup, short_limit_teardown),
		remote_test(ia_close__peer_stopped__does_not_wait),
	};

	return cmocka_run_group_tests_name("peer_stop", tests, NULL, NULL);
}
