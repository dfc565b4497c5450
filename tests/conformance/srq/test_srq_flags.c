// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which completions of Receives from an SRQ wake a waiter, by the recv flag of the endpoint; and
 * which streams of such endpoints may share an event dispatcher.
 */
#include "srq_util.h"

static void add_with(struct bench *bench, DAT_COMPLETION_FLAGS flags)
{
	bench->attr.recv_completion_flags = flags;
	bench_add(bench, 1);
}

static void send_solicited(struct bench *bench, uint64_t cookie)
{
	post_send(&bench->from[0], dt_seg(&bench->x, 0, 8), cookie,
		  DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG);
}

/* --- notification --- */

/* Every completion wakes, solicited or not. */
static void check_each_wakes(struct bench *bench, DAT_COMPLETION_FLAGS flags)
{
	add_with(bench, flags);
	for (uint64_t i = 0; i < 3; i++) {
		struct dto_waiter waiter;

		bench_give(bench, i);
		dto_waiter_start(&waiter, bench->to[0].recv, 1);
		if (i == 1)
			send_solicited(bench, i);
		else
			bench_send(bench, 0, i);
		dto_waiter_wakes(&waiter, i, 0);
	}
}

/* SRQ-RECV-14 SRQ-RECV-17 EP-CRSRQ-35 */
static void evd_wait__default_endpoint__each_receive_wakes(void **state)
{
	check_each_wakes(*state, DAT_COMPLETION_DEFAULT_FLAG);
}

/* SRQ-RECV-15 SRQ-RECV-14 EP-CRSRQ-35 */
static void evd_wait__unsignalled_endpoint__each_receive_wakes(void **state)
{
	check_each_wakes(*state, DAT_COMPLETION_UNSIGNALLED_FLAG);
}

/* SRQ-RECV-18 SRQ-RECV-17 */
static void evd_wait__threshold_endpoint__each_receive_wakes(void **state)
{
	check_each_wakes(*state, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
}

/* SRQ-RECV-18: the threshold of the wait decides */
static void evd_wait__threshold_of_three__wakes_after_three(void **state)
{
	static const DAT_COMPLETION_FLAGS flags[] = {DAT_COMPLETION_EVD_THRESHOLD_FLAG,
						     DAT_COMPLETION_DEFAULT_FLAG};
	struct bench *bench = *state;

	for (unsigned i = 0; i < COUNT_OF(flags); i++) {
		struct dto_waiter waiter;

		add_with(bench, flags[i]);
		for (uint64_t n = 0; n < 3; n++)
			dt_ok(srq_post_empty(bench->srq, 4));
		dto_waiter_start(&waiter, bench->to[i].recv, 3);
		for (unsigned n = 0; n < 3; n++) {
			dto_waiter_sleeps(&waiter);
			dt_ok(dat_ep_post_send(bench->from[i].ep, 0, NULL, dt_cookie(1), 0));
		}
		dto_waiter_wakes(&waiter, 4, 2);
		expect_received(&bench->to[i], 4, 0);
		expect_received(&bench->to[i], 4, 0);
	}
}

/* SRQ-RECV-16 SRQ-RECV-12 EP-CRSRQ-35 */
static void evd_wait__solicited_endpoint__the_send_decides(void **state)
{
	struct bench *bench = *state;
	struct dto_waiter waiter;

	add_with(bench, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	for (uint64_t i = 0; i < 3; i++)
		bench_give(bench, 6);
	dto_waiter_start(&waiter, bench->to[0].recv, 1);
	bench_send(bench, 0, 1);
	bench_send(bench, 0, 2);
	srq_until(bench->srq, 1);
	dto_waiter_sleeps(&waiter);
	send_solicited(bench, 3);
	dto_waiter_wakes(&waiter, 6, 2);
}

/* SRQ-RECV-16: an unsuccessful one always notifies */
static void evd_wait__solicited_endpoint_and_failure__wakes(void **state)
{
	struct bench *bench = *state;
	struct dto_waiter waiter;

	add_with(bench, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	dt_ok(srq_post_empty(bench->srq, 6));
	dto_waiter_start(&waiter, bench->to[0].recv, 1);
	bench_send(bench, 0, 1); /* does not fit */
	assert_int_equal(pthread_join(waiter.thread, NULL), 0);
	dt_ok(waiter.ret);
	assert_int_equal(waiter.event.event_data.dto_completion_event_data.status,
			 DAT_DTO_ERR_LOCAL_LENGTH);
}

/* SRQ-RECV-12 SRQ-USE-04: endpoints of one SRQ with different flags, each by its own */
static void evd_wait__endpoints_with_different_flags__each_by_its_own(void **state)
{
	struct bench *bench = *state;
	struct dto_waiter waiter[2];

	add_with(bench, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	add_with(bench, DAT_COMPLETION_UNSIGNALLED_FLAG);
	bench_give_many(bench, 0, 2);
	for (int i = 0; i < 2; i++)
		dto_waiter_start(&waiter[i], bench->to[i].recv, 1);
	bench_send(bench, 0, 1);
	srq_until(bench->srq, 1);
	bench_send(bench, 1, 2);
	dto_waiter_wakes(&waiter[1], 1, 0);
	dto_waiter_sleeps(&waiter[0]);
	bench_give(bench, 2);
	send_solicited(bench, 3);
	dto_waiter_wakes(&waiter[0], 0, 1);
}

/* --- streams of one dispatcher --- */

static const DAT_COMPLETION_FLAGS recv_flags[] = {
	DAT_COMPLETION_DEFAULT_FLAG,
	DAT_COMPLETION_EVD_THRESHOLD_FLAG,
	DAT_COMPLETION_UNSIGNALLED_FLAG,
	DAT_COMPLETION_SOLICITED_WAIT_FLAG,
};

static bool is_solicited(DAT_COMPLETION_FLAGS flags)
{
	return flags == DAT_COMPLETION_SOLICITED_WAIT_FLAG;
}

/* An endpoint of the SRQ, or a plain one, that uses the dispatchers. */
static DAT_RETURN make_ep(struct bench *bench, bool has_srq, DAT_COMPLETION_FLAGS flags,
			  DAT_EVD_HANDLE recv, DAT_EVD_HANDLE conn, DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr = has_srq ? bench->attr : bench->from_attr;

	attr.recv_completion_flags = flags;
	attr.max_request_dtos = 0;
	if (has_srq)
		return dat_ep_create_with_srq(bench->ia.ia, bench->ia.pz, recv, DAT_HANDLE_NULL,
					      conn, bench->srq, &attr, ep);
	return dat_ep_create(bench->ia.ia, bench->ia.pz, recv, DAT_HANDLE_NULL, conn, &attr, ep);
}

static void check_pair(struct bench *bench, DAT_COMPLETION_FLAGS first, DAT_COMPLETION_FLAGS second,
		       bool has_srq, bool is_first)
{
	const DAT_EVD_HANDLE evd = dt_evd_create(&bench->ia, 8, DAT_EVD_DTO_FLAG);
	bool is_good = is_solicited(first) == is_solicited(second);
	DAT_EP_HANDLE a, b;
	DAT_RETURN ret;

	dt_ok(make_ep(bench, has_srq || is_first, first, evd, DAT_HANDLE_NULL, &a));
	ret = make_ep(bench, has_srq || !is_first, second, evd, DAT_HANDLE_NULL, &b);
	if (is_good) {
		dt_ok(ret);
		dt_ok(dat_ep_free(b));
	} else {
		dt_fails_with(ret, DAT_INVALID_PARAMETER,
			      has_srq || !is_first ? DAT_INVALID_ARG7 : DAT_INVALID_ARG6);
	}
	dt_ok(dat_ep_free(a));
	dt_ok(dat_evd_free(evd)); /* a refused one is not tied */
}

/* EP-CRSRQ-36 EP-CRSRQ-37 EP-CREATE-71 EP-CREATE-73 EP-CREATE-75 */
static void ep_create_with_srq__two_streams_on_one_evd__solicited_ones_apart(void **state)
{
	struct bench *bench = *state;

	for (size_t i = 0; i < COUNT_OF(recv_flags); i++) {
		for (size_t j = 0; j < COUNT_OF(recv_flags); j++) {
			check_pair(bench, recv_flags[i], recv_flags[j], true, false);
			check_pair(bench, recv_flags[i], recv_flags[j], false, false);
			check_pair(bench, recv_flags[i], recv_flags[j], false, true);
		}
	}
}

/* EP-CRSRQ-36 EP-CRSRQ-37 EP-CREATE-74 EP-CREATE-75: with a stream of another kind */
static void ep_create_with_srq__recv_and_other_events__unless_solicited(void **state)
{
	struct bench *bench = *state;

	for (size_t i = 0; i < COUNT_OF(recv_flags); i++) {
		const DAT_EVD_HANDLE evd =
			dt_evd_create(&bench->ia, 8,
				      DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG);
		DAT_CONN_QUAL qual;
		DAT_PSP_HANDLE psp;
		DAT_EP_HANDLE ep;
		DAT_RETURN ret;

		ret = make_ep(bench, true, recv_flags[i], evd, evd, &ep);
		if (!is_solicited(recv_flags[i])) {
			dt_ok(ret);
			dt_ok(dat_ep_free(ep));
		} else {
			dt_fails_with(ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
		}
		dt_ok(make_ep(bench, true, recv_flags[i], evd, DAT_HANDLE_NULL, &ep));
		ret = dat_psp_create_any(bench->ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp);
		if (!is_solicited(recv_flags[i])) {
			dt_ok(ret);
			dt_ok(dat_psp_free(psp));
		} else {
			dt_fails_with(ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		}
		dt_ok(dat_ep_free(ep));
		dt_ok(dat_evd_free(evd));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(evd_wait__default_endpoint__each_receive_wakes),
		bench_test(evd_wait__unsignalled_endpoint__each_receive_wakes),
		bench_test(evd_wait__threshold_endpoint__each_receive_wakes),
		bench_test(evd_wait__threshold_of_three__wakes_after_three),
		bench_test(evd_wait__solicited_endpoint__the_send_decides),
		bench_test(evd_wait__solicited_endpoint_and_failure__wakes),
		bench_test(evd_wait__endpoints_with_different_flags__each_by_its_own),
		bench_test(ep_create_with_srq__two_streams_on_one_evd__solicited_ones_apart),
		bench_test(ep_create_with_srq__recv_and_other_events__unless_solicited),
	};

	return cmocka_run_group_tests_name("srq_flags", tests, NULL, NULL);
}
