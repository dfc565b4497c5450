// SPDX-License-Identifier: BSD-2-Clause
/*
 * slow_reasons of endpoints: each bit is set exactly while its cause exists. test_post*.c test
 * posts on endpoints with slow_reasons.
 */
#include <errno.h>

#include "slow_use.h"

#define STATE CORE_EP_SLOW_STATE
#define EVD CORE_EP_SLOW_EVD
#define LIMIT CORE_EP_SLOW_LIMIT
#define WATERMARK CORE_EP_SLOW_WATERMARK
#define CONN CORE_EP_SLOW_CONN

static struct core_ep *enter(DAT_EP_HANDLE handle)
{
	struct core_ep *ep = core_handle_lock(handle, DAT_HANDLE_TYPE_EP);

	assert_non_null(ep);
	return ep;
}

/* --- state --- */

static void start_connect(DAT_EP_HANDLE handle)
{
	struct sockaddr_in address = {.sin_family = AF_INET};

	assert_int_equal(core_ep_connect(handle, (DAT_IA_ADDRESS_PTR)&address, 7,
					 DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
					 DAT_CONNECT_DEFAULT_FLAG),
			 DAT_SUCCESS);
}

static void establish(DAT_EP_HANDLE handle)
{
	const struct transport_conn_param peer = {.read_in = 8, .read_out = 8};
	struct core_ep *ep = enter(handle);

	core_ep_established(ep, &peer);
	core_ep_leave(ep);
}

static void end(DAT_EP_HANDLE handle, DAT_EVENT_NUMBER number)
{
	struct core_ep *ep = enter(handle);

	core_ep_ended(ep, number);
	core_ep_leave(ep);
}

static void fail_a_request(DAT_EP_HANDLE handle)
{
	DAT_DTO_COOKIE cookie = {.as_64 = 1};
	struct core_ep *ep;

	assert_int_equal(core_ep_post_send(handle, 0, NULL, cookie, 0), DAT_SUCCESS);
	ep = enter(handle);
	core_req_done(ep, mock.req, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	core_ep_leave(ep);
}

/* The core sets CONN, which is the transport's bit, at creation and never clears it. */
static void ep__each_state__fast_only_when_connected(void **state)
{
	DAT_EP_HANDLE handle = mock_ep(&ia);

	(void)state;
	assert_int_equal(reasons(handle), STATE | CONN);
	mock.failing = "connect";
	mock.error = -EAFNOSUPPORT;
	assert_int_not_equal(
		core_ep_connect(handle,
				(DAT_IA_ADDRESS_PTR) & (struct sockaddr_in){.sin_family = AF_INET},
				7, DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
				DAT_CONNECT_DEFAULT_FLAG),
		DAT_SUCCESS);
	mock.failing = NULL;
	assert_int_equal(reasons(handle), STATE | CONN);
	start_connect(handle);
	assert_int_equal(reasons(handle), STATE | CONN);
	establish(handle);
	assert_int_equal(reasons(handle), CONN);
	core_handle_clear_slow(handle, CONN);
	assert_int_equal(core_ep_disconnect(handle, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	assert_int_equal(reasons(handle), STATE);
	end(handle, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(reasons(handle), STATE);
	assert_int_equal(core_ep_reset(handle), DAT_SUCCESS);
	assert_int_equal(reasons(handle), STATE);
	start_connect(handle);
	establish(handle);
	assert_int_equal(reasons(handle), 0);
	end(handle, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(reasons(handle), STATE);
	assert_int_equal(core_ep_reset(handle), DAT_SUCCESS);
	start_connect(handle);
	establish(handle);
	assert_int_equal(core_ep_disconnect(handle, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_int_equal(reasons(handle), STATE);
}

/* DTO-48: after a failure no request of this connection may succeed. */
static void ep__a_request_failed__slow_until_the_next_connection(void **state)
{
	DAT_EP_HANDLE handle = mock_connected(&ia);

	(void)state;
	assert_int_equal(reasons(handle), 0);
	fail_a_request(handle);
	assert_int_equal(enter(handle)->state, DAT_EP_STATE_CONNECTED);
	core_handle_unlock(handle);
	assert_int_equal(reasons(handle), STATE);
	end(handle, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(core_ep_reset(handle), DAT_SUCCESS);
	assert_int_equal(reasons(handle), STATE);
	start_connect(handle);
	establish(handle);
	assert_int_equal(reasons(handle), 0);
}

/* A failed attempt flushes, which sets is_breaking; the next connection must clear it. */
static void ep__attempt_failed_before__fast_when_connected(void **state)
{
	DAT_EP_HANDLE handle = mock_ep(&ia);
	struct core_ep *ep;

	(void)state;
	core_handle_clear_slow(handle, CONN);
	start_connect(handle);
	ep = enter(handle);
	core_ep_connect_failed(ep, DAT_CONNECTION_EVENT_TIMED_OUT);
	core_ep_leave(ep);
	assert_int_equal(reasons(handle), STATE);
	assert_int_equal(core_ep_reset(handle), DAT_SUCCESS);
	start_connect(handle);
	establish(handle);
	assert_int_equal(reasons(handle), 0);
}

/* --- EVDs and limits --- */

static void modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	assert_int_equal(core_ep_modify(handle, mask, param), DAT_SUCCESS);
}

#define EVD_MASK (DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS)
#define RECV_MASK (DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS)

/* EP-MODIFY-30: an endpoint without Receives needs no EVD for them. */
static void ep__request_evd_missing__slow(void **state)
{
	DAT_EP_HANDLE handle = mock_ep(&ia), without;
	DAT_EP_PARAM none = {.request_evd_handle = DAT_HANDLE_NULL};
	DAT_EP_PARAM some = {.request_evd_handle = ia.evd, .ep_attr.max_request_dtos = 8};

	(void)state;
	modify(handle, EVD_MASK, &none);
	assert_int_equal(reasons(handle), STATE | CONN | EVD);
	modify(handle, EVD_MASK, &some);
	assert_int_equal(reasons(handle), STATE | CONN);
	modify(handle, RECV_MASK, &none);
	assert_int_equal(reasons(handle), STATE | CONN);
	assert_int_equal(
		core_ep_create(ia.ia, ia.pz, ia.evd, DAT_HANDLE_NULL, ia.evd, NULL, &without),
		DAT_SUCCESS);
	assert_int_equal(reasons(without), STATE | CONN | EVD);
	assert_int_equal(
		core_ep_create(ia.ia, ia.pz, DAT_HANDLE_NULL, ia.evd, ia.evd, NULL, &without),
		DAT_SUCCESS);
	assert_int_equal(reasons(without), STATE | CONN);
}

/* An endpoint made for a connection request. It has queues before it has EVDs, and its limits need
 * not agree with its EVDs. */
static DAT_EP_HANDLE provider_made(void)
{
	const struct core_ep_args args = {.pz = ia.pz, .is_provider_made = true};
	struct core_ia *adapter = core_ia_enter(ia.ia);
	struct core_ep *ep;

	assert_int_equal(core_ep_new(adapter, &args, &ep), DAT_SUCCESS);
	core_ia_leave(adapter);
	return (DAT_EP_HANDLE)ep->cell;
}

static void ep__made_by_the_provider__slow_until_it_has_both_evds(void **state)
{
	DAT_EP_PARAM param = {.recv_evd_handle = ia.evd, .request_evd_handle = ia.evd};
	DAT_EP_HANDLE handle = provider_made();

	(void)state;
	assert_int_equal(reasons(handle), STATE | CONN | EVD);
	modify(handle, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param);
	assert_int_equal(reasons(handle), STATE | CONN | EVD);
	modify(handle, DAT_EP_FIELD_RECV_EVD_HANDLE, &param);
	assert_int_equal(reasons(handle), STATE | CONN);
	param.request_evd_handle = DAT_HANDLE_NULL;
	modify(handle, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param);
	assert_int_equal(reasons(handle), STATE | CONN | EVD);
}

static void ep__no_segment_allowed_to_a_receive__slow(void **state)
{
	DAT_EP_PARAM param = {.recv_evd_handle = ia.evd, .request_evd_handle = ia.evd};
	const DAT_EP_PARAM_MASK iov = DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV;
	DAT_EP_HANDLE handle = provider_made();

	(void)state;
	modify(handle, DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param);
	modify(handle, iov, &param);
	assert_int_equal(reasons(handle), STATE | CONN | LIMIT);
	/* without Receives their limit does not matter */
	modify(handle, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param);
	assert_int_equal(reasons(handle), STATE | CONN);
	param.ep_attr.max_recv_dtos = 4;
	modify(handle, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param);
	assert_int_equal(reasons(handle), STATE | CONN | LIMIT);
	param.ep_attr.max_recv_iov = 1;
	modify(handle, iov, &param);
	assert_int_equal(reasons(handle), STATE | CONN);
}

static void ep__limits_of_the_adapter__slow_if_they_allow_no_segment(void **state)
{
	DAT_EP_HANDLE handle;
	struct core_ep *ep;

	(void)state;
	mock.ia->attr.max_iov_segments_per_rdma_write = 0;
	handle = mock_ep(&ia);
	assert_int_equal(reasons(handle), STATE | CONN | LIMIT);
	mock.ia->attr.max_iov_segments_per_rdma_write = 1;
	handle = mock_ep(&ia);
	assert_int_equal(reasons(handle), STATE | CONN);
	/* dat_ep_create refuses max_request_iov 0, but the fast path relies on the bit */
	ep = enter(handle);
	ep->attr.max_request_iov = 0;
	core_ep_update_slow_reasons(ep);
	core_ep_leave(ep);
	assert_int_equal(reasons(handle), STATE | CONN | LIMIT);
}

/* --- watermarks --- */

static void set_watermarks(DAT_EP_HANDLE handle, DAT_COUNT soft, DAT_COUNT hard)
{
	assert_int_equal(core_ep_set_watermark(handle, soft, hard), DAT_SUCCESS);
}

/* EP-WMARK-01 EP-WMARK-05 EP-WMARK-07 EP-WMARK-11 */
static void ep_set_watermark__soft_and_hard__slow_while_one_is_armed(void **state)
{
	static const struct {
		DAT_COUNT soft, hard;
		unsigned int expected;
	} cases[] = {
		{5, DAT_WATERMARK_INFINITE, WATERMARK},
		{DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE, 0},
		{DAT_WATERMARK_INFINITE, 5, WATERMARK},
		{5, 5, WATERMARK},
		{0, DAT_WATERMARK_INFINITE, WATERMARK},
		{DAT_WATERMARK_INFINITE, 0, WATERMARK},
		{DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE, 0},
	};
	DAT_EP_HANDLE handle = mock_connected(&ia);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_watermarks(handle, cases[i].soft, cases[i].hard);
		assert_int_equal(reasons(handle), cases[i].expected);
	}
	assert_int_not_equal(core_ep_set_watermark(handle, -2, 5), DAT_SUCCESS);
	assert_int_equal(reasons(handle), 0);
}

static void receive(DAT_EP_HANDLE handle)
{
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	assert_int_equal(core_ep_post_recv(handle, 0, NULL, cookie, 0), DAT_SUCCESS);
}

/* EP-WMARK-04 EP-WMARK-05 EP-WMARK-08: after its event the soft watermark is disarmed. */
static void ep__soft_watermark_passed__fast_again(void **state)
{
	DAT_EP_HANDLE handle = mock_connected(&ia);

	(void)state;
	set_watermarks(handle, 1, DAT_WATERMARK_INFINITE);
	receive(handle);
	assert_int_equal(reasons(handle), WATERMARK);
	receive(handle);
	assert_int_equal(reasons(handle), 0);
	(void)mock_event(ia.async);
	/* exceeded when it is set */
	set_watermarks(handle, 1, DAT_WATERMARK_INFINITE);
	assert_int_equal(reasons(handle), 0);
	(void)mock_event(ia.async);
	set_watermarks(handle, 2, DAT_WATERMARK_INFINITE);
	assert_int_equal(reasons(handle), WATERMARK);
	mock_no_event(ia.async);
	/* the hard watermark stays armed */
	set_watermarks(handle, 2, 8);
	receive(handle);
	(void)mock_event(ia.async);
	assert_int_equal(reasons(handle), WATERMARK);
}

/* --- endpoints of a shared receive queue --- */

static DAT_EP_HANDLE srq_ep(DAT_EVD_HANDLE recv_evd, DAT_COUNT soft, DAT_COUNT hard)
{
	DAT_SRQ_ATTR srq_attr = {.max_recv_dtos = 20, .max_recv_iov = 2};
	DAT_EP_PARAM param;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE handle;

	handle = mock_ep(&ia);
	assert_int_equal(core_ep_query(handle, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(core_ep_free(handle), DAT_SUCCESS);
	param.ep_attr.srq_soft_hw = soft;
	param.ep_attr.max_recv_dtos = hard;
	param.ep_attr.max_recv_iov = 0;
	assert_int_equal(core_srq_create(ia.ia, ia.pz, &srq_attr, &srq), DAT_SUCCESS);
	assert_int_equal(core_ep_create_with_srq(ia.ia, ia.pz, recv_evd, ia.evd, ia.evd, srq,
						 &param.ep_attr, &handle),
			 DAT_SUCCESS);
	return handle;
}

/* EP-CRSRQ-30: its attributes set the watermarks. */
static void srq_ep__created__slow_if_it_has_watermarks(void **state)
{
	static const struct {
		DAT_COUNT soft, hard;
		unsigned int expected;
	} cases[] = {
		{DAT_HW_DEFAULT, DAT_HW_DEFAULT, 0}, {0, 0, 0},		{3, 0, WATERMARK},
		{DAT_HW_DEFAULT, 3, WATERMARK},	     {3, 3, WATERMARK},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		DAT_EP_HANDLE handle = srq_ep(ia.evd, cases[i].soft, cases[i].hard);

		assert_int_equal(reasons(handle), STATE | CONN | cases[i].expected);
		assert_int_equal(core_ep_free(handle), DAT_SUCCESS);
	}
}

static void srq_ep__watermarks_modified__slow_while_it_has_one(void **state)
{
	DAT_EP_PARAM param = {.ep_attr.srq_soft_hw = 3, .ep_attr.max_recv_dtos = 3};
	DAT_EP_HANDLE handle = srq_ep(ia.evd, 0, 0);

	(void)state;
	modify(handle, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param);
	assert_int_equal(reasons(handle), STATE | CONN | WATERMARK);
	modify(handle, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param);
	param.ep_attr.srq_soft_hw = DAT_HW_DEFAULT;
	modify(handle, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param);
	assert_int_equal(reasons(handle), STATE | CONN | WATERMARK);
	param.ep_attr.max_recv_dtos = 0;
	modify(handle, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param);
	assert_int_equal(reasons(handle), STATE | CONN);
	start_connect(handle);
	establish(handle);
	assert_int_equal(reasons(handle), CONN);
}

/* EP-CRSRQ-04 */
static void srq_ep__post_recv__refused_on_the_fast_path_too(void **state)
{
	DAT_EP_HANDLE handle = srq_ep(ia.evd, 0, 0);
	DAT_DTO_COOKIE cookie = {.as_64 = 1};
	unsigned char byte;
	DAT_REGION_DESCRIPTION region = {.for_va = &byte};
	DAT_LMR_TRIPLET iov = {.virtual_address = (uintptr_t)&byte, .segment_length = 1};
	DAT_LMR_HANDLE lmr;
	struct core_ep *ep;

	(void)state;
	assert_int_equal(core_lmr_create(ia.ia, DAT_MEM_TYPE_VIRTUAL, region, 1, ia.pz,
					 DAT_MEM_PRIV_ALL_FLAG, &lmr, &iov.lmr_context, NULL, NULL,
					 NULL),
			 DAT_SUCCESS);
	start_connect(handle);
	establish(handle);
	core_handle_clear_slow(handle, CONN);
	(void)mock_own(handle);
	ep = enter(handle);
	core_mem_cache_fill(ep->ia->mem, iov.lmr_context, &ep->cached_target);
	core_ep_leave(ep);
	assert_int_equal(core_ep_post_recv(handle, 1, &iov, cookie, 0),
			 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1);
	assert_int_equal(mock.fast_recvs, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(ep__each_state__fast_only_when_connected),
		T(ep__a_request_failed__slow_until_the_next_connection),
		T(ep__attempt_failed_before__fast_when_connected),
		T(ep__request_evd_missing__slow),
		T(ep__made_by_the_provider__slow_until_it_has_both_evds),
		T(ep__no_segment_allowed_to_a_receive__slow),
		T(ep__limits_of_the_adapter__slow_if_they_allow_no_segment),
		T(ep_set_watermark__soft_and_hard__slow_while_one_is_armed),
		T(ep__soft_watermark_passed__fast_again),
		T(srq_ep__created__slow_if_it_has_watermarks),
		T(srq_ep__watermarks_modified__slow_while_it_has_one),
		T(srq_ep__post_recv__refused_on_the_fast_path_too),
	};

	return cmocka_run_group_tests_name("core slow", tests, NULL, NULL);
}
