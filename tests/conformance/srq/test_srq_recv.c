// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_srq_post_recv: what a posted buffer does, and which posts are refused. Notification is in
 * test_srq_flags.c, how endpoints share the buffers in test_srq_use.c.
 */
#include "srq_util.h"

/* --- the completion --- */

/* SRQ-RECV-01: the prototype is checked by the compiler */
static DAT_RETURN (*const post_fn)(DAT_SRQ_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET *,
				   DAT_DTO_COOKIE) = dat_srq_post_recv;

/* SRQ-RECV-01 SRQ-RECV-02 SRQ-RECV-03 SRQ-RECV-12 SRQ-RECV-13 SRQ-RECV-23 SRQ-RECV-31 DTO-03
 * EP-CRSRQ-03 EP-CRSRQ-05 SRQ-QUERY-06 SRQ-QUERY-07 */
static void srq_post_recv__message_of_any_endpoint__completes_there(void **state)
{
	struct bench *bench = *state;
	DAT_LMR_TRIPLET seg = bench_slot(bench, 3);

	dt_ok(post_fn(bench->srq, 1, &seg, dt_cookie(3))); /* no endpoint yet */
	bench_add(bench, 3);
	for (unsigned i = 3; i-- > 0;) {
		bench_send(bench, i, 100 + i);
		assert_true(bench_receive(bench, i, 100 + i) == 3);
		for (unsigned j = 0; j < 3; j++)
			dt_no_event(bench->to[j].recv);
		dt_check_bytes(bench->y.p + 3u * SRQ_SLOT + 8, SRQ_SLOT - 8, RIG_FILL);
		srq_counts(bench->srq, 0, 0);
		bench_give(bench, 3);
		srq_counts(bench->srq, 1, 1);
	}
}

/* SRQ-RECV-03 DTO-104: a message more than there are buffers waits, except over iWARP */
static void srq_post_recv__more_messages__one_per_buffer(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	bench_give_many(bench, 0, 2);
	for (uint64_t i = 0; i < (dt_is_iwarp() ? 2 : 3); i++)
		bench_send(bench, 0, 70 + i);
	assert_true(bench_receive(bench, 0, 70) != bench_receive(bench, 0, 71));
	dt_stays_empty(bench->to[0].recv);
	bench_give(bench, 9);
	if (dt_is_iwarp())
		bench_send(bench, 0, 72);
	assert_true(bench_receive(bench, 0, 72) == 9);
}

/* SRQ-RECV-04 SRQ-RECV-05 SRQ-RECV-08 */
static void srq_post_recv__zero_size__completes_with_length_zero(void **state)
{
	struct bench *bench = *state;
	DAT_LMR_TRIPLET none[2] = {{.lmr_context = 0xdead}, {.virtual_address = 1}};

	bench_add(bench, 1);
	dt_ok(dat_srq_post_recv(bench->srq, 0, NULL, dt_cookie(1)));
	dt_ok(dat_srq_post_recv(bench->srq, 0, none, dt_cookie(1)));
	dt_ok(dat_srq_post_recv(bench->srq, 2, none, dt_cookie(1)));
	for (int i = 0; i < 3; i++) {
		dt_ok(dat_ep_post_send(bench->from[0].ep, 0, NULL, dt_cookie(2), 0));
		expect_received(&bench->to[0], 1, 0);
		expect_sent(&bench->from[0], 2, 0);
	}
}

/* SRQ-RECV-06 SRQ-RECV-08 SRQ-RECV-43: odd addresses and lengths, an ignored segment between */
static void srq_post_recv__segments__filled_in_order(void **state)
{
	static const size_t lengths[] = {0, 1, 12, 13, 14, 50, 113, 114, 120, 121};
	struct bench *bench = *state;
	DAT_LMR_TRIPLET iov[4] = {dt_seg(&bench->y, 1001, 13),
				  {.virtual_address = 3, .lmr_context = 0xbad},
				  dt_seg(&bench->y, 7, 101),
				  dt_seg(&bench->y, 503, 7)};

	bench_add(bench, 1);
	dt_fill(bench->x.p, 200, 4);
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		const size_t len = lengths[i];
		const size_t first = len < 13 ? len : 13;
		const size_t second = len < 114 ? len - first : 101;
		const size_t third = len - first - second;

		memset(bench->y.p, RIG_FILL, 2048);
		dt_ok(dat_srq_post_recv(bench->srq, 4, iov, dt_cookie(len)));
		post_send(&bench->from[0], dt_seg(&bench->x, 3, len), 5, 0);
		expect_received(&bench->to[0], len, len);
		expect_sent(&bench->from[0], 5, len);
		assert_memory_equal(bench->y.p + 1001, bench->x.p + 3, first);
		assert_memory_equal(bench->y.p + 7, bench->x.p + 16, second);
		assert_memory_equal(bench->y.p + 503, bench->x.p + 117, third);
		dt_check_bytes(bench->y.p + 1001 + first, 13 + 20 - first, RIG_FILL);
		dt_check_bytes(bench->y.p + 7 + second, 101 + 20 - second, RIG_FILL);
		dt_check_bytes(bench->y.p + 503 + third, 7 + 20 - third, RIG_FILL);
		dt_check_bytes(bench->y.p, 7, RIG_FILL);
	}
}

/* SRQ-RECV-09 SRQ-RECV-10 SRQ-RECV-11 */
static void srq_post_recv__cookies__returned_unchanged(void **state)
{
	static const uint64_t cookies[] = {0, 0, UINT64_MAX, 0x8000000000000001u, 5, 5, 5};
	struct bench *bench = *state;

	bench_add(bench, 1);
	for (size_t i = 0; i < COUNT_OF(cookies); i++) {
		dt_ok(srq_post_empty(bench->srq, cookies[i]));
		dt_ok(dat_ep_post_send(bench->from[0].ep, 0, NULL, dt_cookie(2), 0));
		expect_received(&bench->to[0], cookies[i], 0);
	}
	for (size_t i = 0; i < 3; i++)
		dt_ok(srq_post_empty(bench->srq, 5));
	for (size_t i = 0; i < 3; i++)
		dt_ok(dat_ep_post_send(bench->from[0].ep, 0, NULL, dt_cookie(2), 0));
	for (size_t i = 0; i < 3; i++)
		expect_received(&bench->to[0], 5, 0);
	dt_no_event(bench->to[0].recv);
}

/* SRQ-RECV-20 SRQ-RECV-22 IA-QUERY-41 IA-QUERY-42 */
static void srq_post_recv__array__not_changed_and_not_looked_at_again(void **state)
{
	struct bench *bench = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&bench->y, 0, 4), dt_seg(&bench->y, 100, 4)};
	const DAT_LMR_TRIPLET copy[2] = {iov[0], iov[1]};

	assert_int_equal(bench->ia.provider.iov_ownership_on_return, DAT_IOV_CONSUMER);
	bench_add(bench, 1);
	dt_ok(dat_srq_post_recv(bench->srq, 2, iov, dt_cookie(1)));
	assert_memory_equal(iov, copy, sizeof(copy));
	memset(iov, 0xff, sizeof(iov));
	bench_send(bench, 0, 0x1122334455667788u);
	expect_received(&bench->to[0], 1, 8);
	assert_memory_equal(bench->y.p, bench->x.p, 4);
	assert_memory_equal(bench->y.p + 100, bench->x.p + 4, 4);
	for (size_t i = 0; i < sizeof(iov); i++) /* nor after the completion */
		assert_int_equal(((unsigned char *)iov)[i], 0xff);
}

/* SRQ-RECV-07 SRQ-RECV-25: large; posts return at once although nobody sends */
static void srq_post_recv__large_message__complete_when_told(void **state)
{
	struct bench *bench = *state;
	const size_t half = RIG_LEN / 2;

	bench_add(bench, 1);
	dt_fill(bench->x.p, RIG_LEN, 3);
	for (int i = 0; i < 16; i++)
		dt_ok(srq_post(bench->srq, dt_seg(&bench->y, 0, half), 1));
	post_send(&bench->from[0], dt_seg(&bench->x, half, half), 2, 0);
	expect_received(&bench->to[0], 1, half);
	assert_memory_equal(bench->y.p, bench->x.p + half, half);
}

/* --- order --- */

/* SRQ-RECV-26 SRQ-RECV-27 SRQ-RECV-28 SRQ-USE-11 DTO-45: per connection only, found by cookie */
static void srq_post_recv__many_messages__in_order_per_connection(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 3);
	for (unsigned round = 0; round < 40; round++) {
		bench_give_many(bench, round * 12u, 12);
		for (unsigned i = 0; i < 12; i++) /* uneven, interleaved */
			bench_send(bench, i % 4 % 3, (uint64_t)round << 8 | i);
		for (unsigned pair = 0; pair < 3; pair++)
			for (unsigned i = 0; i < 12; i++)
				if (i % 4 % 3 == pair)
					bench_receive(bench, pair, (uint64_t)round << 8 | i);
	}
	srq_counts(bench->srq, 0, 0);
}

/* --- states --- */

/*
 * SRQ-RECV-30 SRQ-RECV-31: an SRQ of ours never is in DAT_SRQ_STATE_ERROR, so that the state it has
 * is the one to try; with endpoints tied to it, connected, and disconnected again
 */
static void srq_post_recv__any_state__success(void **state)
{
	struct bench *bench = *state;
	struct dt_ep ep;

	dt_ok(srq_post_empty(bench->srq, 1));
	srq_ep_make(&bench->ia, bench->ia.pz, bench->srq, &bench->attr, &ep);
	dt_ok(srq_post_empty(bench->srq, 1));
	bench_add(bench, 1);
	dt_ok(srq_post_empty(bench->srq, 1));
	bench_cut(bench, 0);
	dt_ok(srq_post_empty(bench->srq, 1));
	srq_counts(bench->srq, 4, 4);
	assert_int_equal(srq_query(bench->srq).srq_state, DAT_SRQ_STATE_OPERATIONAL);
	dt_no_event(ep.recv);
	dt_no_event(bench->to[0].recv);
}

/* --- room --- */

/* SRQ-RECV-33 SRQ-RECV-34 SRQ-RECV-42 */
static void srq_post_recv__outstanding_at_the_limit__insufficient_resources(void **state)
{
	struct bench *bench = *state;
	const DAT_COUNT max = srq_query(bench->srq).max_recv_dtos;
	DAT_EVENT event;

	bench_add(bench, 1);
	bench_give_many(bench, 0, (unsigned)max);
	for (int i = 0; i < 3; i++)
		dt_fails_with(srq_post_empty(bench->srq, 1), DAT_INSUFFICIENT_RESOURCES,
			      DAT_RESOURCE_SRQ);
	srq_counts(bench->srq, max, max);
	bench_send(bench, 0, 1);
	bench_send(bench, 0, 2);
	srq_until(bench->srq, max - 2);
	/* completed, but not dequeued */
	dt_fails_with(srq_post_empty(bench->srq, 1), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	srq_counts(bench->srq, max - 2, max);
	bench_receive(bench, 0, 1);
	bench_give(bench, 100);
	dt_fails_with(srq_post_empty(bench->srq, 1), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	/* dequeued, not waited for */
	event = dt_event_poll(bench->to[0].recv);
	bench_check_event(&event, bench->to[0].ep);
	srq_counts(bench->srq, max - 1, max - 1);
	bench_give(bench, 101);
	srq_counts(bench->srq, max, max);
}

/* SRQ-RECV-34 SRQ-QUERY-07: without a recv EVD there is nothing to dequeue */
static void srq_post_recv__endpoint_without_recv_evd__entry_free_at_completion(void **state)
{
	struct bench *bench = *state;
	struct dt_ep to = {0};

	to.conn = dt_evd_create(&bench->ia, 8, DAT_EVD_CONNECTION_FLAG);
	bench->attr.max_request_dtos = 0;
	dt_ok(dat_ep_create_with_srq(bench->ia.ia, bench->ia.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
				     to.conn, bench->srq, &bench->attr, &to.ep));
	dt_ep_create(&bench->ia, bench->ia.pz, &bench->from_attr, &bench->from[0]);
	dt_ep_link(&bench->ia, &bench->from[0], &to);
	bench_give_many(bench, 0, 2);
	post_send(&bench->from[0], dt_seg(&bench->x, 0, 8), 7, 0);
	expect_sent(&bench->from[0], 7, 8);
	srq_counts(bench->srq, 1, 1);
}

/* --- refusals --- */

static void refused(struct bench *bench, DAT_RETURN code, DAT_COUNT n, DAT_LMR_TRIPLET *iov)
{
	dt_returns(dat_srq_post_recv(bench->srq, n, iov, dt_cookie(0xbad)), code);
	srq_counts(bench->srq, 1, 1);
	dt_no_event(bench->to[0].recv);
}

/* The one good buffer is used, no other. */
static void refused_end(struct bench *bench)
{
	bench_send(bench, 0, 8);
	assert_true(bench_receive(bench, 0, 8) == 500);
	bench_send(bench, 0, 9);
	dt_stays_empty(bench->to[0].recv);
}

/* SRQ-RECV-35 SRQ-RECV-36 SRQ-RECV-37 SRQ-RECV-42 */
static void srq_post_recv__bad_array__invalid_parameter(void **state)
{
	struct bench *bench = *state;
	DAT_LMR_TRIPLET iov[65];

	for (int i = 0; i < 65; i++)
		iov[i] = dt_seg(&bench->y, 0, 8);
	bench_add(bench, 1);
	bench_give(bench, 500);
	refused(bench, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 1, NULL);
	refused(bench, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2), -1, iov);
	refused(bench, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2), INT32_MIN, iov);
	refused(bench, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2),
		srq_query(bench->srq).max_recv_iov + 1, iov);
	refused(bench, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2), INT32_MAX, iov);
	iov[1] = dt_seg(&bench->y, RIG_LEN - 8, 9);
	refused(bench, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 2, iov);
	iov[1] = dt_seg(&bench->y, 0, RIG_LEN + 1);
	refused(bench, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 2, iov);
	iov[1] = dt_seg(&bench->y, 0, 8);
	iov[1].virtual_address -= 1;
	refused(bench, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 2, iov);
	iov[1].virtual_address = UINT64_MAX - 3;
	refused(bench, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 2, iov);
	iov[1] = dt_seg(&bench->y, 8, UINT64_MAX - 4);
	refused(bench, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 2, iov);
	refused_end(bench);
}

/* SRQ-RECV-38 SRQ-CREATE-05 LMR-USE-03 DTO-85 EP-CRSRQ-16 EP-CRSRQ-18: the zone of the SRQ, not of
 * its EPs */
static void srq_post_recv__region_of_another_zone__protection_violation(void **state)
{
	struct bench *bench = *state;
	struct dt_buf other;
	DAT_PZ_HANDLE pz, ep_pz;
	DAT_LMR_TRIPLET seg;

	dt_ok(dat_pz_create(bench->ia.ia, &pz));
	ep_pz = srq_takes_other_zones(&bench->ia) ? pz : bench->ia.pz;
	dt_buf_create(&bench->ia, pz, &other, 4096, DAT_MEM_PRIV_ALL_FLAG);
	if (!srq_takes_other_zones(&bench->ia))
		srq_refuses_zone(&bench->ia, pz, bench->srq, &bench->attr);
	dt_ep_create(&bench->ia, bench->ia.pz, &bench->from_attr, &bench->from[0]);
	srq_ep_make(&bench->ia, ep_pz, bench->srq, &bench->attr, &bench->to[0]);
	dt_ep_link(&bench->ia, &bench->from[0], &bench->to[0]);
	bench_give(bench, 500);
	seg = dt_seg(&other, 0, 8);
	refused(bench, DT_ERROR(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE), 1, &seg);
	/* the EP's own requests follow the EP's zone */
	if (ep_pz == pz) {
		dt_ok(dat_ep_post_send(bench->to[0].ep, 1, &seg, dt_cookie(1), 0));
		seg = dt_seg(&bench->y, 0, 8);
	}
	dt_fails_with(dat_ep_post_send(bench->to[0].ep, 1, &seg, dt_cookie(1), 0),
		      DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
	refused_end(bench);
	dt_mem_free(other.p, other.mapped);
}

/* SRQ-RECV-39 SRQ-RECV-40 SRQ-RECV-41 */
static void srq_post_recv__context_or_privileges__privileges_violation(void **state)
{
	struct bench *bench = *state;
	struct dt_buf buf;
	DAT_LMR_TRIPLET seg;

	bench_add(bench, 1);
	bench_give(bench, 500);
	seg = dt_seg(&bench->y, 0, 8);
	seg.lmr_context ^= 0x10101;
	refused(bench, DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE), 1, &seg);
	seg.lmr_context = 0;
	refused(bench, DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE), 1, &seg);
	dt_lmr_create(&bench->ia, bench->ia.pz, bench->y.p, 4096,
		      DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG, &buf);
	seg = dt_seg(&buf, 0, 8);
	refused(bench, DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE), 1, &seg);
	dt_ok(dat_lmr_free(buf.lmr));
	refused(bench, DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE), 1,
		&seg); /* the region is gone */
	dt_lmr_create(&bench->ia, bench->ia.pz, bench->y.p, 4096, DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
		      &buf);
	bench_send(bench, 0, 8);
	assert_true(bench_receive(bench, 0, 8) == 500);
	dt_ok(srq_post(bench->srq, dt_seg(&buf, 0, 64), 0));
	bench_send(bench, 0, 9);
	assert_true(bench_receive(bench, 0, 9) == 0);
}

/* --- buffers that do not fit --- */

/* SRQ-RECV-29 SRQ-RECV-44 SRQ-RECV-45 SRQ-USE-10 SRQ-USE-06 DTO-79 */
static void srq_post_recv__message_too_long__breaks_that_endpoint_only(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 3);
	dt_ok(srq_post(bench->srq, dt_seg(&bench->y, 0, 16), 1));
	post_send(&bench->from[1], dt_seg(&bench->x, 0, 17), 2, 0);
	dt_expect_dto(bench->to[1].recv, bench->to[1].ep, 1, DAT_DTO_ERR_LOCAL_LENGTH, 0);
	expect_request(&bench->from[1], 2, DAT_DTO_ERR_REMOTE_RESPONDER);
	expect_ended(&bench->to[1], DAT_CONNECTION_EVENT_BROKEN);
	expect_ended(&bench->from[1], DAT_CONNECTION_EVENT_BROKEN);
	dt_check_bytes(bench->y.p + 16, 64, RIG_FILL);
	srq_counts(bench->srq, 0, 0);
	assert_int_equal(srq_query(bench->srq).srq_state, DAT_SRQ_STATE_OPERATIONAL);
	bench_works(bench);
	dt_no_event(bench->to[1].recv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(srq_post_recv__message_of_any_endpoint__completes_there),
		bench_test(srq_post_recv__more_messages__one_per_buffer),
		bench_test(srq_post_recv__zero_size__completes_with_length_zero),
		bench_test(srq_post_recv__segments__filled_in_order),
		bench_test(srq_post_recv__cookies__returned_unchanged),
		bench_test(srq_post_recv__array__not_changed_and_not_looked_at_again),
		bench_test(srq_post_recv__large_message__complete_when_told),
		bench_test(srq_post_recv__many_messages__in_order_per_connection),
		bench_test(srq_post_recv__any_state__success),
		bench_test(srq_post_recv__outstanding_at_the_limit__insufficient_resources),
		bench_test(srq_post_recv__endpoint_without_recv_evd__entry_free_at_completion),
		bench_test(srq_post_recv__bad_array__invalid_parameter),
		bench_test(srq_post_recv__region_of_another_zone__protection_violation),
		bench_test(srq_post_recv__context_or_privileges__privileges_violation),
		bench_test(srq_post_recv__message_too_long__breaks_that_endpoint_only),
	};

	return cmocka_run_group_tests_name("srq_recv", tests, NULL, NULL);
}
