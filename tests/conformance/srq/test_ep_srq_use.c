// SPDX-License-Identifier: BSD-2-Clause
/* Endpoints with an SRQ: set-up, requests, reset, and changes of attributes. */
#include "ep_util.h"
#include "srq_util.h"

/* EP-CRSRQ-06 EP-CREATE-10 EP-CREATE-11 EP-CREATE-12 EP-CRSRQ-03: all kinds of events */
static void srq_endpoint__requests__events_where_they_belong(void **state)
{
	struct bench *bench = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&bench->x, 0, 64);
	const DAT_RMR_COOKIE cookie = {.as_64 = 9};
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;
	struct dt_ep *to;

	bench_add(bench, 1); /* took ESTABLISHED from to->conn */
	to = &bench->to[0];
	dt_ok(dat_rmr_create(bench->ia.pz, &rmr));
	post_recv(&bench->from[0], dt_seg(&bench->y, 0, 8), 1);
	post_send(to, dt_seg(&bench->x, 0, 8), 2, 0);
	expect_sent(to, 2, 8);
	expect_received(&bench->from[0], 1, 8);
	post_write(to, dt_seg(&bench->x, 0, 8), dt_rseg(&bench->y, 8, 8), 3, 0);
	expect_sent(to, 3, 8);
	post_read(to, dt_seg(&bench->x, 8, 8), dt_rseg(&bench->y, 0, 8), 4, 0);
	expect_sent(to, 4, 8);
	dt_ok(dat_rmr_bind(rmr, &seg, DAT_MEM_PRIV_REMOTE_READ_FLAG, to->ep, cookie, 0, &context));
	event = dt_event(to->request);
	assert_int_equal(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	assert_int_equal(event.event_data.rmr_completion_event_data.status, DAT_RMR_BIND_SUCCESS);
	dt_no_event(to->recv);
	dt_no_event(to->conn);
	bench_works(bench);
	dt_no_event(to->request);
	bench_cut(bench, 0); /* DISCONNECTED on to->conn */
	dt_ok(dat_rmr_free(rmr));
}

/* EP-CRSRQ-41 COMPAT-08: on the same EVDs as one without SRQ; one EVD for everything */
static void srq_endpoint__beside_a_plain_one_on_one_evd__both_work(void **state)
{
	struct bench *bench = *state;
	const DAT_EVD_HANDLE evd = dt_evd_create(
		&bench->ia, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG);
	DAT_EP_HANDLE from[2], to[2];
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	dt_ok(dat_psp_create_any(bench->ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_ok(dat_ep_create_with_srq(bench->ia.ia, bench->ia.pz, evd, evd, evd, bench->srq,
				     &bench->attr, &to[0]));
	dt_ok(dat_ep_create(bench->ia.ia, bench->ia.pz, evd, evd, evd, NULL, &to[1]));
	bench_give(bench, 40);
	dt_ok(ep_recv_empty(to[1], 41));
	for (int i = 0; i < 2; i++) {
		int established = 0;

		dt_ok(dat_ep_create(bench->ia.ia, bench->ia.pz, evd, evd, evd, NULL, &from[i]));
		dt_connect(&bench->ia, from[i], qual);
		event = dt_event(evd);
		assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
		dt_ok(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, to[i], 0,
				    NULL));
		for (; established < 2; established++)
			assert_int_equal(dt_event(evd).event_number,
					 DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	for (int i = 0; i < 2; i++) {
		bool has_sent = false, has_received = false;

		dt_ok(ep_send_empty(from[i], 50));
		for (int n = 0; n < 2; n++) {
			const DAT_DTO_COMPLETION_EVENT_DATA *data =
				&event.event_data.dto_completion_event_data;

			event = dt_event(evd);
			assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
			assert_int_equal(data->status, DAT_DTO_SUCCESS);
			has_sent |= data->ep_handle == from[i] && data->user_cookie.as_64 == 50;
			has_received |= data->ep_handle == to[i] &&
					data->user_cookie.as_64 == 40u + (unsigned)i;
		}
		assert_true(has_sent && has_received);
	}
	dt_no_event(evd);
	srq_counts(bench->srq, 0, 0);
}

/* CR-ACCEPT-27 EP-CRSRQ-42 EP-CRSRQ-03: accepts, connects, is reserved; the first time each */
static void srq_endpoint__each_way_to_connect__established(void **state)
{
	struct bench *bench = *state;
	struct dt_ep plain[3], with[3];
	DAT_RSP_HANDLE rsp;
	DAT_CONN_QUAL qual;
	DAT_EVD_HANDLE evd = dt_evd_create(&bench->ia, 8, DAT_EVD_CR_FLAG);

	for (int i = 0; i < 3; i++) {
		dt_ep_create(&bench->ia, bench->ia.pz, NULL, &plain[i]);
		srq_ep_make(&bench->ia, bench->ia.pz, bench->srq, &bench->attr, &with[i]);
	}
	dt_ep_link(&bench->ia, &plain[0], &with[0]); /* accepts */
	dt_ep_link(&bench->ia, &with[1], &plain[1]); /* connects */
	qual = ep_reserve(&bench->ia, with[2].ep, evd, &rsp);
	dt_connect(&bench->ia, plain[2].ep, qual);
	dt_ok(dat_cr_accept(ep_next_request(evd), DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(with[2].conn, with[2].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(plain[2].conn, plain[2].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(dt_ep_state(with[i].ep), DAT_EP_STATE_CONNECTED);
		bench_give(bench, 0);
		dt_ok(ep_send_empty(plain[i].ep, 1));
		expect_received(&with[i], 0, 0);
	}
}

/* EP-CRSRQ-38 EP-CRSRQ-39 EP-MODIFY-14 */
static void ep_modify__srq__never_changed(void **state)
{
	struct bench *bench = *state;
	const DAT_SRQ_HANDLE other = srq_make(&bench->ia, 4, 1);
	DAT_EP_PARAM param;
	struct dt_ep plain;

	srq_ep_make(&bench->ia, bench->ia.pz, bench->srq, &bench->attr, &bench->to[0]);
	dt_ep_create(&bench->ia, bench->ia.pz, NULL, &plain);
	param = ep_query(bench->to[0].ep);
	dt_fails_with(dat_ep_modify(bench->to[0].ep, DAT_EP_FIELD_SRQ_HANDLE, &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2); /* not even to the same */
	param.srq_handle = other;
	dt_fails_with(dat_ep_modify(bench->to[0].ep, DAT_EP_FIELD_SRQ_HANDLE, &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_ep_modify(plain.ep, DAT_EP_FIELD_SRQ_HANDLE, &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	param.srq_handle = DAT_HANDLE_NULL;
	dt_fails_with(dat_ep_modify(bench->to[0].ep, DAT_EP_FIELD_SRQ_HANDLE, &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	assert_ptr_equal(ep_query(bench->to[0].ep).srq_handle, bench->srq);
	assert_ptr_equal(ep_query(plain.ep).srq_handle, DAT_HANDLE_NULL);
	dt_ok(dat_srq_free(other));
	dt_fails_with(dat_srq_free(bench->srq), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	dt_ok(dat_ep_reset(bench->to[0].ep));
	assert_ptr_equal(ep_query(bench->to[0].ep).srq_handle, bench->srq);
	dt_fails_with(dat_srq_free(bench->srq), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
}

/* EP-MODIFY-18 EP-MODIFY-48 SRQ-RECV-12: another recv EVD, none, and one again */
static void ep_modify__recv_evd_of_an_srq_endpoint__used_from_then_on(void **state)
{
	struct bench *bench = *state;
	const DAT_EVD_HANDLE other = dt_evd_create(&bench->ia, 16, DAT_EVD_DTO_FLAG);
	DAT_EP_PARAM param;
	struct dt_ep *to = &bench->to[0];

	srq_ep_make(&bench->ia, bench->ia.pz, bench->srq, &bench->attr, to);
	param = ep_query(to->ep);
	param.recv_evd_handle = DAT_HANDLE_NULL;
	dt_ok(dat_ep_modify(to->ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param));
	dt_ok(dat_evd_free(to->recv));
	param.recv_evd_handle = other;
	dt_ok(dat_ep_modify(to->ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param));
	to->recv = other;
	dt_ep_create(&bench->ia, bench->ia.pz, &bench->from_attr, &bench->from[0]);
	dt_ep_link(&bench->ia, &bench->from[0], to);
	bench->pairs = 1;
	bench_works(bench);
	dt_fails_with(dat_evd_free(other), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
}

/* EP-CRSRQ-33 EP-CRSRQ-34: the pair is taken, and that many can be under way */
static void srq_endpoint__all_rdma_reads__complete(void **state)
{
	struct bench *bench = *state;
	const DAT_COUNT n = bench->ia.attr.max_rdma_read_per_ep_out < 16
				    ? bench->ia.attr.max_rdma_read_per_ep_out
				    : 16;
	const DAT_COUNT iov_max = bench->ia.attr.max_iov_segments_per_rdma_read < 8
					  ? bench->ia.attr.max_iov_segments_per_rdma_read
					  : 8;

	bench->attr.max_rdma_read_out = n;
	bench->attr.max_rdma_read_iov = iov_max;
	bench->attr.max_request_dtos = n;
	bench->from_attr.max_rdma_read_in = n < bench->ia.attr.max_rdma_read_per_ep_in
						    ? n
						    : bench->ia.attr.max_rdma_read_per_ep_in;
	bench_add(bench, 1);
	dt_fill(bench->y.p, RIG_LEN, 9);
	for (DAT_COUNT i = 0; i < n; i++) {
		const DAT_RMR_TRIPLET remote =
			dt_rseg(&bench->y, (size_t)i * 512, (size_t)iov_max * 8);
		DAT_LMR_TRIPLET iov[8];

		for (size_t j = 0; j < (size_t)iov_max; j++)
			iov[j] = dt_seg(&bench->x, (size_t)i * 512 + j * 8, 8);
		dt_ok(dat_ep_post_rdma_read(bench->to[0].ep, iov_max, iov, dt_cookie((uint64_t)i),
					    &remote, 0));
	}
	for (DAT_COUNT i = 0; i < n; i++) {
		expect_sent(&bench->to[0], (uint64_t)i, (DAT_VLEN)iov_max * 8);
		assert_memory_equal(bench->x.p + i * 512, bench->y.p + i * 512, iov_max * 8);
	}
}

/* EP-CRSRQ-40 EP-GEN-12 EP-FREE-26: freed in each way that ends it */
static void ep_free__srq_endpoint_connected__srq_unused(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 2);
	bench_give(bench, 0);
	bench_send(bench, 0, 1);
	srq_until(bench->srq, 0);
	for (int i = 0; i < 2; i++) {
		dt_fails_with(dat_srq_free(bench->srq), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_SRQ_IN_USE);
		dt_ok(dat_ep_free(bench->to[i].ep));
		dt_expect_conn(bench->from[i].conn, bench->from[i].ep,
			       DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	dt_ok(dat_srq_free(bench->srq));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(srq_endpoint__requests__events_where_they_belong),
		bench_test(srq_endpoint__beside_a_plain_one_on_one_evd__both_work),
		bench_test(srq_endpoint__each_way_to_connect__established),
		bench_test(ep_modify__srq__never_changed),
		bench_test(ep_modify__recv_evd_of_an_srq_endpoint__used_from_then_on),
		bench_test(srq_endpoint__all_rdma_reads__complete),
		bench_test(ep_free__srq_endpoint_connected__srq_unused),
	};

	return cmocka_run_group_tests_name("ep_srq_use", tests, NULL, NULL);
}
