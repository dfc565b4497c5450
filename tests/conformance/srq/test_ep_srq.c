// SPDX-License-Identifier: BSD-2-Clause
/* dat_ep_create_with_srq: arguments, attributes and limits. Its use: test_ep_srq_use.c. */
#include <stdlib.h>

#include "ep_util.h"
#include "srq_util.h"

/* What a call is made with; one thing at a time is changed. */
struct call {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE recv, request, conn;
	DAT_SRQ_HANDLE srq;
	DAT_EP_ATTR attr;
};

static struct call call_of(struct bench *bench)
{
	return (struct call){
		.ia = bench->ia.ia,
		.pz = bench->ia.pz,
		.recv = dt_evd_create(&bench->ia, 64, DAT_EVD_DTO_FLAG),
		.request = dt_evd_create(&bench->ia, 64, DAT_EVD_DTO_FLAG),
		.conn = dt_evd_create(&bench->ia, 8, DAT_EVD_CONNECTION_FLAG),
		.srq = bench->srq,
		.attr = bench->attr,
	};
}

static DAT_RETURN make(const struct call *call, DAT_EP_HANDLE *ep)
{
	return dat_ep_create_with_srq(call->ia, call->pz, call->recv, call->request, call->conn,
				      call->srq, &call->attr, ep);
}

static DAT_RETURN try(const struct call *call)
{
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
	DAT_RETURN ret = make(call, &ep);

	if (ret == DAT_SUCCESS)
		dt_ok(dat_ep_free(ep));
	return ret;
}

/* The refused calls tied nothing: all can be freed. */
static void call_end(struct bench *bench, struct call *call)
{
	dt_ok(dat_evd_free(call->recv));
	dt_ok(dat_evd_free(call->request));
	dt_ok(dat_evd_free(call->conn));
	dt_ok(dat_srq_free(bench->srq));
}

/* --- the new endpoint --- */

/* EP-CRSRQ-01 EP-CRSRQ-02 EP-QUERY-11 EP-STATE-15 EP-CRSRQ-04 EP-RECV-32 EP-STATE-64 */
static void ep_create_with_srq__plain__unconnected_and_tied(void **state)
{
	struct bench *bench = *state;
	struct call call = call_of(bench);
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_LMR_TRIPLET seg = dt_seg(&bench->y, 0, 8);
	DAT_EP_HANDLE ep;
	DAT_EP_PARAM param;
	DAT_EP_STATE ep_state;
	struct dt_ep plain;

	dt_ok(make(&call, &ep));
	dt_ok(dat_ep_get_status(ep, &ep_state, &recv_idle, &request_idle));
	assert_int_equal(ep_state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(recv_idle, DAT_TRUE);
	assert_int_equal(request_idle, DAT_TRUE);
	param = ep_query(ep);
	assert_ptr_equal(param.srq_handle, bench->srq);
	assert_ptr_equal(param.ia_handle, call.ia);
	assert_ptr_equal(param.pz_handle, call.pz);
	assert_ptr_equal(param.recv_evd_handle, call.recv);
	assert_ptr_equal(param.request_evd_handle, call.request);
	assert_ptr_equal(param.connect_evd_handle, call.conn);
	dt_fails_with(dat_ep_post_recv(ep, 1, &seg, dt_cookie(1), 0), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG1);
	dt_fails_with(ep_recv_empty(ep, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	assert_true(ep_is_recv_idle(ep));
	srq_counts(bench->srq, 0, 0);
	dt_no_event(call.recv);
	dt_no_event(call.conn);
	dt_ok(dat_ep_free(ep));
	dt_ep_create(&bench->ia, bench->ia.pz, NULL, &plain);
	assert_ptr_equal(ep_query(plain.ep).srq_handle, DAT_HANDLE_NULL);
	dt_ep_free(&plain);
	call_end(bench, &call);
}

/* EP-CRSRQ-07 */
static void ep_create_with_srq__without_each_evd__success(void **state)
{
	struct bench *bench = *state;

	for (int mask = 0; mask < 8; mask++) {
		struct call call = call_of(bench);
		DAT_EP_PARAM param;
		DAT_EP_HANDLE ep;

		if (mask & 1)
			call.recv = DAT_HANDLE_NULL;
		if (mask & 2) {
			call.request = DAT_HANDLE_NULL;
			call.attr.max_request_dtos = 0;
		}
		if (mask & 4)
			call.conn = DAT_HANDLE_NULL;
		dt_ok(make(&call, &ep));
		param = ep_query(ep);
		assert_ptr_equal(param.recv_evd_handle, call.recv);
		assert_ptr_equal(param.request_evd_handle, call.request);
		assert_ptr_equal(param.connect_evd_handle, call.conn);
		assert_ptr_equal(param.srq_handle, bench->srq);
		dt_ok(dat_ep_free(ep));
	}
}

/* --- handles --- */

/* EP-CRSRQ-08 EP-CRSRQ-09 EP-CRSRQ-10 EP-CRSRQ-11 EP-CRSRQ-12 EP-CRSRQ-13 GEN-15 */
static void ep_create_with_srq__bad_handle_in_each_place__invalid_handle(void **state)
{
	struct bench *bench = *state;
	const struct call good = call_of(bench);
	const DAT_SRQ_HANDLE dead = srq_make(&bench->ia, 1, 1);
	struct conf_bad bad;
	struct call call = good;

	dt_ok(dat_srq_free(dead));
	conf_bad_make(&bench->ia, &bad);
	bad.handle[5] = good.conn; /* an EVD, for places that want another or none */
	for (size_t i = 0; i < CONF_BAD_COUNT; i++) {
		const DAT_HANDLE h = bad.handle[i];

#define BAD_AT(member, kind)                                                                       \
	do {                                                                                       \
		struct call one = good;                                                            \
		one.member = h;                                                                    \
		dt_fails_with(try(&one), DAT_INVALID_HANDLE, kind);                                \
	} while (0)
		BAD_AT(srq, DAT_INVALID_HANDLE_SRQ);
		if (h != bench->ia.ia)
			BAD_AT(ia, DAT_INVALID_HANDLE_IA);
		if (h == DAT_HANDLE_NULL)
			continue;
		BAD_AT(pz, DAT_INVALID_HANDLE_PZ);
		BAD_AT(recv, DAT_INVALID_HANDLE_EVD_RECV);	 /* good.conn has no DTO flag */
		BAD_AT(request, DAT_INVALID_HANDLE_EVD_REQUEST); /* nor here */
		if (h != good.conn)
			BAD_AT(conn, DAT_INVALID_HANDLE_EVD_CONN);
#undef BAD_AT
	}
	call.srq = dead;
	dt_fails_with(try(&call), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	call = good;
	call.conn = good.recv; /* no connection flag */
	dt_fails_with(try(&call), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	call = good;
	call.pz = bench->srq;
	dt_fails_with(try(&call), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	call = good;
	call.srq = bench->ia.pz;
	dt_fails_with(try(&call), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	call = good;
	dt_ok(try(&call));
	call_end(bench, &call);
}

/* EP-CRSRQ-14 EP-CRSRQ-15 */
static void ep_create_with_srq__null_pointers__invalid_parameter(void **state)
{
	struct bench *bench = *state;
	struct call call = call_of(bench);
	DAT_EP_HANDLE ep;

	dt_fails_with(dat_ep_create_with_srq(call.ia, call.pz, call.recv, call.request, call.conn,
					     call.srq, NULL, &ep),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	dt_fails_with(dat_ep_create_with_srq(call.ia, call.pz, call.recv, call.request, call.conn,
					     call.srq, &call.attr, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
	call_end(bench, &call);
}

/* --- attributes --- */

static DAT_COUNT at_most(DAT_COUNT value, DAT_COUNT limit)
{
	return value < limit ? value : limit;
}

/* The high watermarks among the attributes are refused. */
static void check_refused(struct bench *bench, const DAT_EP_ATTR *attr)
{
	struct call call = call_of(bench);

	call.attr = *attr;
	dt_fails(try(&call), DAT_MODEL_NOT_SUPPORTED);
	dt_ok(dat_evd_free(call.recv));
	dt_ok(dat_evd_free(call.request));
	dt_ok(dat_evd_free(call.conn));
}

/* EP-CRSRQ-19 EP-CRSRQ-20 EP-CRSRQ-21 EP-CRSRQ-22 EP-CRSRQ-23 EP-CRSRQ-24 EP-CRSRQ-25 EP-CRSRQ-27
 * EP-CRSRQ-31 EP-CRSRQ-43: before and after connecting */
static void ep_create_with_srq__attributes__as_requested(void **state)
{
	struct bench *bench = *state;
	const DAT_IA_ATTR *limit = &bench->ia.attr;
	DAT_EP_ATTR want = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = 12345,
		.max_rdma_size = 23456,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG,
		.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG,
		.max_recv_dtos = 17,
		.max_request_dtos = 13,
		.max_recv_iov = 3,
		.max_request_iov = at_most(5, limit->max_iov_segments_per_dto),
		.max_rdma_read_in = 3,
		.max_rdma_read_out = 2,
		.srq_soft_hw = 7,
		.max_rdma_read_iov = at_most(2, limit->max_iov_segments_per_rdma_read),
		.max_rdma_write_iov = at_most(3, limit->max_iov_segments_per_rdma_write),
	};

	if (!srq_shows_held(&bench->ia)) { /* EP-CRSRQ-31 */
		check_refused(bench, &want);
		want.srq_soft_hw = DAT_HW_DEFAULT;
		check_refused(bench, &want);
		want.max_recv_dtos = DAT_HW_DEFAULT;
	}
	bench->attr = want;
	srq_ep_make(&bench->ia, bench->ia.pz, bench->srq, &bench->attr, &bench->to[0]);
	memset(&bench->attr, 0xff, sizeof(bench->attr)); /* not read again */
	for (int i = 0; i < 2; i++) {
		const DAT_EP_ATTR got = ep_query(bench->to[0].ep).ep_attr;

		assert_int_equal(got.service_type, want.service_type);
		assert_true(got.max_message_size == want.max_message_size);
		assert_true(got.max_rdma_size == want.max_rdma_size);
		assert_int_equal(got.qos, want.qos);
		assert_int_equal(got.recv_completion_flags, want.recv_completion_flags);
		assert_int_equal(got.request_completion_flags, want.request_completion_flags);
		assert_int_equal(got.max_recv_dtos, want.max_recv_dtos);
		assert_true(got.max_request_dtos >= want.max_request_dtos);
		assert_true(got.max_request_iov >= want.max_request_iov);
		assert_int_equal(got.max_rdma_read_in, want.max_rdma_read_in);
		assert_int_equal(got.max_rdma_read_out, want.max_rdma_read_out);
		assert_int_equal(got.srq_soft_hw, want.srq_soft_hw);
		assert_int_equal(got.max_rdma_read_iov, want.max_rdma_read_iov);
		assert_int_equal(got.max_rdma_write_iov, want.max_rdma_write_iov);
		if (i)
			break;
		bench->from_attr.max_rdma_read_in = 1; /* less than the EP wants out */
		dt_ep_create(&bench->ia, bench->ia.pz, &bench->from_attr, &bench->from[0]);
		dt_ep_link(&bench->ia, &bench->from[0], &bench->to[0]);
	}
}

/* EP-CRSRQ-22 EP-CRSRQ-23 EP-CRSRQ-27 EP-CRSRQ-44: 0 asks for the default */
static void ep_create_with_srq__zeros__defaults(void **state)
{
	struct bench *bench = *state;
	DAT_EP_ATTR got;

	bench->attr.max_message_size = 0;
	bench->attr.max_rdma_size = 0;
	bench->attr.max_rdma_read_iov = 0;
	bench->attr.max_rdma_write_iov = 0;
	bench_add(bench, 1);
	got = ep_query(bench->to[0].ep).ep_attr;
	assert_true(got.max_message_size == bench->ia.attr.max_message_size);
	assert_true(got.max_rdma_size == bench->ia.attr.max_rdma_size);
	assert_true(got.max_rdma_read_iov > 0);
	assert_true(got.max_rdma_write_iov > 0);
	bench_works(bench);
}

/* EP-CRSRQ-26: an SRQ's buffer may have more segments than the endpoint asked for */
static void ep_create_with_srq__any_max_recv_iov__ignored(void **state)
{
	static const DAT_COUNT values[] = {0, 1, 1000000, INT32_MAX, -1};
	struct bench *bench = *state;

	for (unsigned i = 0; i < COUNT_OF(values); i++) {
		DAT_LMR_TRIPLET iov[4];

		bench->attr.max_recv_iov = values[i];
		bench_add(bench, 1);
		for (size_t j = 0; j < 4; j++)
			iov[j] = dt_seg(&bench->y, 2 * j, 2);
		dt_ok(dat_srq_post_recv(bench->srq, 4, iov, dt_cookie(0)));
		bench_send(bench, i, 0x1122334455667788u);
		bench_receive(bench, i, 0x1122334455667788u);
	}
}

/* EP-CRSRQ-28 EP-CRSRQ-29 EP-CRSRQ-31 EP-CRSRQ-32 */
static void ep_create_with_srq__impossible_attribute__invalid_parameter(void **state)
{
	struct bench *bench = *state;
	const DAT_IA_ATTR *limit = &bench->ia.attr;
	const struct call good = call_of(bench);
	struct call call = good;
#define BAD(member, value)                                                                         \
	do {                                                                                       \
		call = good;                                                                       \
		call.attr.member = value;                                                          \
		dt_fails_with(try(&call), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);                \
	} while (0)

	BAD(service_type, (DAT_SERVICE_TYPE)7);
	BAD(max_message_size, limit->max_message_size + 1);
	BAD(max_rdma_size, limit->max_rdma_size + 1);
	BAD(qos, (DAT_QOS)0x100);
	BAD(recv_completion_flags, DAT_COMPLETION_SUPPRESS_FLAG);
	BAD(recv_completion_flags, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	BAD(recv_completion_flags,
	    DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	BAD(request_completion_flags,
	    DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	BAD(max_request_dtos, limit->max_dto_per_ep + 1);
	BAD(max_request_dtos, 0);
	BAD(max_request_dtos, -1);
	BAD(max_request_iov, limit->max_iov_segments_per_dto + 1);
	BAD(max_request_iov, 0);
	BAD(max_request_iov, -1);
	BAD(max_rdma_read_in, limit->max_rdma_read_per_ep_in + 1);
	BAD(max_rdma_read_in, -1);
	BAD(max_rdma_read_out, limit->max_rdma_read_per_ep_out + 1);
	BAD(max_rdma_read_out, -1);
	BAD(max_rdma_read_iov, limit->max_iov_segments_per_rdma_read + 1);
	BAD(max_rdma_read_iov, -1);
	BAD(max_rdma_write_iov, limit->max_iov_segments_per_rdma_write + 1);
	BAD(max_rdma_write_iov, -1);
	BAD(srq_soft_hw, -2);
	BAD(max_recv_dtos, -2);
	BAD(ep_transport_specific_count, 1);
	BAD(ep_provider_specific_count, -1);
#undef BAD
	call = good;
	call.request = DAT_HANDLE_NULL; /* but has requests */
	dt_fails_with(try(&call), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	call = good;
	call.attr.max_recv_dtos = limit->max_dto_per_ep + 1; /* is a watermark */
	if (srq_shows_held(&bench->ia))
		dt_ok(try(&call));
	else
		dt_fails(try(&call), DAT_MODEL_NOT_SUPPORTED);
	call_end(bench, &call);
}

/* EP-CRSRQ-29 */
static void ep_create_with_srq__unsupported_qos__model_not_supported(void **state)
{
	struct bench *bench = *state;
	struct call call = call_of(bench);

	call.attr.qos = DAT_QOS_LOW_LATENCY;
	dt_fails(try(&call), DAT_MODEL_NOT_SUPPORTED);
	call_end(bench, &call);
}

/* --- limits --- */

/* EP-CRSRQ-45 SRQ-GEN-05 IA-QUERY-33: of endpoints per SRQ */
static void ep_create_with_srq__more_than_max_ep_per_srq__insufficient_resources(void **state)
{
	struct bench *bench = *state;
	const DAT_COUNT max = bench->ia.attr.max_ep_per_srq;
	DAT_EP_HANDLE *ep = calloc((size_t)max, sizeof(DAT_EP_HANDLE));
	struct call call = {.ia = bench->ia.ia, .srq = bench->srq, .attr = bench->attr};

	assert_non_null(ep);
	assert_true(max > 0 && bench->ia.attr.max_eps >= max);
	call.attr.max_request_dtos = 0;
	for (DAT_COUNT i = 0; i < max; i++)
		dt_ok(make(&call, &ep[i]));
	dt_fails_with(try(&call), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	call.srq = srq_make(&bench->ia, 1, 1);
	if (bench->ia.attr.max_eps > max)
		dt_ok(try(&call)); /* another one has room */
	else
		dt_fails(try(&call), DAT_INSUFFICIENT_RESOURCES); /* max_eps */
	call.srq = bench->srq;
	dt_ok(dat_ep_free(ep[max / 2]));
	dt_ok(make(&call, &ep[max / 2]));
	dt_fails_with(try(&call), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	dt_fails_with(dat_srq_free(bench->srq), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	for (DAT_COUNT i = 0; i < max; i++)
		dt_ok(dat_ep_free(ep[i]));
	dt_ok(dat_srq_free(bench->srq));
	free(ep);
}

static void *create_and_free(void *arg)
{
	const struct call *call = arg;
	DAT_EP_HANDLE ep;

	for (int i = 0; i < 200; i++) {
		conf_try(make(call, &ep));
		conf_try(dat_ep_free(ep));
	}
	return NULL;
}

/* EP-CRSRQ-47 */
static void ep_create_with_srq__several_threads__success(void **state)
{
	struct bench *bench = *state;
	struct call call = call_of(bench);

	conf_parallel(create_and_free, &call);
	call_end(bench, &call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(ep_create_with_srq__plain__unconnected_and_tied),
		bench_test(ep_create_with_srq__without_each_evd__success),
		bench_test(ep_create_with_srq__bad_handle_in_each_place__invalid_handle),
		bench_test(ep_create_with_srq__null_pointers__invalid_parameter),
		bench_test(ep_create_with_srq__attributes__as_requested),
		bench_test(ep_create_with_srq__zeros__defaults),
		bench_test(ep_create_with_srq__any_max_recv_iov__ignored),
		bench_test(ep_create_with_srq__impossible_attribute__invalid_parameter),
		bench_test(ep_create_with_srq__unsupported_qos__model_not_supported),
		bench_test(ep_create_with_srq__more_than_max_ep_per_srq__insufficient_resources),
		bench_test(ep_create_with_srq__several_threads__success),
	};

	return cmocka_run_group_tests_name("ep_srq", tests, NULL, NULL);
}
