// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared receive queues on devices that do less than the soft provider: endpoint and SRQ must share
 * a zone, and there is no high watermark, because a device does not show which buffers an endpoint
 * holds.
 */
#include "rig.h"

#include <unistd.h>

#define BAD_ARG(number) (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG##number)
#define NOT_SUPPORTED (DAT_CLASS_ERROR | DAT_MODEL_NOT_SUPPORTED)

static struct rig rig;
static DAT_SRQ_HANDLE srq;

static void make_srq(DAT_COUNT size)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = size, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT};

	assert_int_equal(core_srq_create(rig.ia, rig.pz, &attr, &srq), DAT_SUCCESS);
}

static int srq_setup(void **state)
{
	(void)state;
	rig.qual = 0;
	assert_int_equal(rig_open(&rig), DAT_SUCCESS);
	assert_int_equal(rig_make(&rig), DAT_SUCCESS);
	make_srq(8);
	return 0;
}

static int srq_teardown(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

/* Makes an endpoint with b's EVDs and attributes, but for the watermarks. */
static DAT_RETURN create_ep(DAT_PZ_HANDLE pz, DAT_COUNT soft, DAT_COUNT hard, DAT_EP_HANDLE *ep)
{
	DAT_EP_PARAM param;

	assert_int_equal(core_ep_query(rig.b.ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	param.ep_attr.srq_soft_hw = soft;
	param.ep_attr.max_recv_dtos = hard;
	return core_ep_create_with_srq(rig.ia, pz, rig.b.dto, rig.b.dto, rig.b.conn, srq,
				       &param.ep_attr, ep);
}

/* An endpoint with the SRQ takes the place of b. */
static void replace_b(void)
{
	DAT_EP_HANDLE ep;

	assert_int_equal(create_ep(rig.pz, DAT_HW_DEFAULT, DAT_HW_DEFAULT, &ep), DAT_SUCCESS);
	assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	rig.b.ep = ep;
}

/* Connects a to an endpoint with the SRQ. */
static void connect_to_srq(void)
{
	replace_b();
	assert_int_equal(rig_connect(&rig, NULL, 0), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void post_buffer(uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, RIG_LEN / 2, 64);

	assert_int_equal(core_srq_post_recv(srq, 1, &seg, (DAT_DTO_COOKIE){.as_64 = cookie}),
			 DAT_SUCCESS);
}

static DAT_PROVIDER_ATTR provider_attr(DAT_PROVIDER_ATTR_MASK mask)
{
	DAT_PROVIDER_ATTR attr;

	assert_int_equal(core_ia_query(rig.ia, NULL, 0, NULL, mask, &attr), DAT_SUCCESS);
	return attr;
}

/* EP-CRSRQ-18 EP-CRSRQ-17: as the attribute says */
static void ep_create_with_srq__different_zones__refused(void **state)
{
	DAT_PZ_HANDLE other;
	DAT_EP_HANDLE ep;

	(void)state;
	assert_int_equal(provider_attr(DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED)
				 .srq_ep_pz_difference_supported,
			 DAT_FALSE);
	assert_int_equal(core_pz_create(rig.ia, &other), DAT_SUCCESS);
	assert_int_equal(create_ep(other, DAT_HW_DEFAULT, DAT_HW_DEFAULT, &ep), BAD_ARG(2));
	assert_int_equal(core_pz_free(other), DAT_SUCCESS);
	assert_int_equal(create_ep(rig.pz, DAT_HW_DEFAULT, DAT_HW_DEFAULT, &ep), DAT_SUCCESS);
	assert_int_equal(core_ep_free(ep), DAT_SUCCESS);
}

/* EP-CRSRQ-31 EP-CRSRQ-30: a refused call leaves the SRQ unused */
static void ep_create_with_srq__high_watermark__model_not_supported(void **state)
{
	static const DAT_COUNT none[] = {DAT_HW_DEFAULT, 0};
	DAT_EP_HANDLE ep;

	(void)state;
	assert_int_equal(create_ep(rig.pz, 4, DAT_HW_DEFAULT, &ep), NOT_SUPPORTED);
	assert_int_equal(create_ep(rig.pz, DAT_HW_DEFAULT, 4, &ep), NOT_SUPPORTED);
	assert_int_equal(create_ep(rig.pz, 0, 1, &ep), NOT_SUPPORTED);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(create_ep(rig.pz, none[i / 2], none[i % 2], &ep), DAT_SUCCESS);
		assert_int_equal(core_ep_free(ep), DAT_SUCCESS);
	}
	assert_int_equal(core_srq_free(srq), DAT_SUCCESS);
}

/* EP-WMARK-19 EP-WMARK-21: a watermark that is refused has no effect */
static void ep_set_watermark__with_srq__model_not_supported(void **state)
{
	DAT_EP_PARAM before, after;

	(void)state;
	assert_int_equal(
		provider_attr(DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED).srq_watermarks_supported,
		0x001);
	connect_to_srq();
	assert_int_equal(core_ep_query(rig.b.ep, DAT_EP_FIELD_ALL, &before), DAT_SUCCESS);
	assert_int_equal(core_ep_set_watermark(rig.b.ep, 1, DAT_WATERMARK_INFINITE), NOT_SUPPORTED);
	assert_int_equal(core_ep_set_watermark(rig.b.ep, DAT_WATERMARK_INFINITE, 1), NOT_SUPPORTED);
	assert_int_equal(core_ep_query(rig.b.ep, DAT_EP_FIELD_ALL, &after), DAT_SUCCESS);
	assert_int_equal(after.ep_attr.srq_soft_hw, before.ep_attr.srq_soft_hw);
	assert_int_equal(after.ep_attr.max_recv_dtos, before.ep_attr.max_recv_dtos);
	for (uint64_t i = 0; i < 4; i++)
		post_buffer(i);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(rig_send(&rig, &rig.a, 8, 10 + i, 0), DAT_SUCCESS);
	for (uint64_t i = 0; i < 4; i++)
		rig_expect_dto(&rig.b, i, DAT_DTO_SUCCESS);
	rig_no_event(rig.async);
	rig_no_event(rig.b.conn);
}

/* EP-WMARK-20 */
static void ep_set_watermark__infinite_with_srq__accepted(void **state)
{
	(void)state;
	connect_to_srq();
	for (int i = 0; i < 2; i++)
		assert_int_equal(core_ep_set_watermark(rig.b.ep, DAT_WATERMARK_INFINITE,
						       DAT_WATERMARK_INFINITE),
				 DAT_SUCCESS);
	post_buffer(1);
	assert_int_equal(rig_send(&rig, &rig.a, 8, 2, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.b, 1, DAT_DTO_SUCCESS);
}

/* EP-WMARK-19 EP-MODIFY-02 EP-CRSRQ-30: the attributes are refused as the call is */
static void ep_modify__high_watermark_with_srq__model_not_supported(void **state)
{
	const DAT_EP_PARAM_MASK soft = DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW;
	const DAT_EP_PARAM_MASK hard = DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS;
	DAT_EP_PARAM param, after;
	DAT_EP_HANDLE ep;

	(void)state;
	assert_int_equal(create_ep(rig.pz, DAT_HW_DEFAULT, DAT_HW_DEFAULT, &ep), DAT_SUCCESS);
	assert_int_equal(core_ep_query(ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	param.ep_attr.srq_soft_hw = 4;
	assert_int_equal(core_ep_modify(ep, soft, &param), NOT_SUPPORTED);
	assert_int_equal(core_ep_modify(ep, soft | hard, &param), NOT_SUPPORTED);
	assert_int_equal(core_ep_modify(ep, hard, &param), DAT_SUCCESS); /* is not selected */
	param.ep_attr.srq_soft_hw = DAT_HW_DEFAULT;
	param.ep_attr.max_recv_dtos = 4;
	assert_int_equal(core_ep_modify(ep, hard, &param), NOT_SUPPORTED);
	assert_int_equal(core_ep_modify(ep, soft | hard, &param), NOT_SUPPORTED);
	assert_int_equal(core_ep_modify(ep, soft, &param), DAT_SUCCESS);
	assert_int_equal(core_ep_query(ep, DAT_EP_FIELD_ALL, &after), DAT_SUCCESS);
	assert_int_equal(after.ep_attr.srq_soft_hw, DAT_HW_DEFAULT);
	assert_int_equal(after.ep_attr.max_recv_dtos, DAT_HW_DEFAULT);
	param.ep_attr.srq_soft_hw = -2;
	assert_int_equal(core_ep_modify(ep, soft, &param), BAD_ARG(3));
	param.ep_attr.srq_soft_hw = 0;
	param.ep_attr.max_recv_dtos = 0;
	assert_int_equal(core_ep_modify(ep, soft | hard, &param), DAT_SUCCESS);
	assert_int_equal(core_ep_free(ep), DAT_SUCCESS);
}

/* EP-RECVQ-12 EP-RECVQ-14: idle, with buffers posted, and with buffers taken */
static void ep_recv_query__with_srq__unknown(void **state)
{
	DAT_COUNT held = 1, span = 1;

	(void)state;
	connect_to_srq();
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(core_ep_recv_query(rig.b.ep, &held, &span), DAT_SUCCESS);
		assert_int_equal(held, DAT_VALUE_UNKNOWN);
		assert_int_equal(span, DAT_VALUE_UNKNOWN);
		post_buffer(i);
		if (i)
			assert_int_equal(rig_send(&rig, &rig.a, 8, 10 + i, 0), DAT_SUCCESS);
	}
	/* an endpoint without SRQ supplies both */
	assert_int_equal(rig_recv(&rig, &rig.a, 8, 1), DAT_SUCCESS);
	assert_int_equal(core_ep_recv_query(rig.a.ep, &held, &span), DAT_SUCCESS);
	assert_int_equal(held, 1);
	assert_int_equal(span, 1);
}

/* SRQ-RESIZE-01 SRQ-RESIZE-02 SRQ-RECV-02: the device's queue does not grow, the rest waits here */
static void srq_resize__more_than_the_device_holds__all_receive(void **state)
{
	(void)state;
	connect_to_srq();
	assert_int_equal(core_srq_resize(srq, 12), DAT_SUCCESS);
	for (uint64_t i = 0; i < 12; i++)
		post_buffer(i);
	for (uint64_t i = 0; i < 12; i++) {
		assert_int_equal(rig_send(&rig, &rig.a, 8, 20 + i, 0), DAT_SUCCESS);
		rig_expect_dto(&rig.b, i, DAT_DTO_SUCCESS);
		rig_expect_dto(&rig.a, 20 + i, DAT_DTO_SUCCESS);
	}
}

static DAT_SRQ_PARAM srq_param(void)
{
	DAT_SRQ_PARAM param;

	assert_int_equal(core_srq_query(srq, DAT_SRQ_FIELD_ALL, &param), DAT_SUCCESS);
	return param;
}

/* SRQ-LW-02 SRQ-LW-04 SRQ-LW-06 */
static void srq_set_lw__messages_arrive__one_event_below_it(void **state)
{
	DAT_EVENT event;

	(void)state;
	connect_to_srq();
	for (uint64_t i = 0; i < 4; i++)
		post_buffer(i);
	assert_int_equal(core_srq_set_lw(srq, 3), DAT_SUCCESS);
	for (uint64_t i = 0; i < 3; i++) {
		rig_no_event(rig.async);
		assert_int_equal(rig_send(&rig, &rig.a, 8, 20 + i, 0), DAT_SUCCESS);
		rig_expect_dto(&rig.b, i, DAT_DTO_SUCCESS);
		assert_int_equal(srq_param().available_dto_count, 3 - (int)i);
		if (i != 1)
			continue;
		event = rig_event(rig.async);
		assert_int_equal(event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
		assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, srq);
		assert_int_equal(event.event_data.asynch_error_event_data.reason,
				 DAT_SRQ_LOW_WATERMARK_EVENT);
	}
	rig_no_event(rig.async);
}

static void receive_into_srq(void)
{
	connect_to_srq();
	post_buffer(1);
	fake_take_buffer();
	assert_int_equal(srq_param().outstanding_dto_count, 1);
}

/* EP-FREE-26 EP-FREE-20: the device flushes the buffer after the call has begun */
static void ep_free__while_receiving__buffer_consumed(void **state)
{
	(void)state;
	receive_into_srq();
	assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	assert_int_equal(srq_param().available_dto_count, 0);
	assert_int_equal(srq_param().outstanding_dto_count, 0);
	rig_no_event(rig.b.dto);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(core_srq_free(srq), DAT_SUCCESS);
}

/* EP-FREE-26: the device does not report when it has flushed the last buffer */
static void ep_free__while_receiving_device_silent__buffer_consumed(void **state)
{
	fake_silent_srqs(true);
	ep_free__while_receiving__buffer_consumed(state);
	fake_silent_srqs(false);
}

/* SRQ-USE-05 EP-STATE-78: the flush is there before the end is */
static void disconnect__while_receiving__buffer_flushed(void **state)
{
	(void)state;
	receive_into_srq();
	assert_int_equal(core_ep_disconnect(rig.b.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_expect_dto(&rig.b, 1, DAT_DTO_ERR_FLUSHED);
	assert_int_equal(srq_param().outstanding_dto_count, 0);
}

/* SRQ-USE-03 SRQ-USE-05: no buffer vanishes if the endpoint holds several */
static void disconnect__while_receiving_two__both_flushed(void **state)
{
	(void)state;
	receive_into_srq();
	post_buffer(2);
	fake_take_buffer();
	assert_int_equal(srq_param().outstanding_dto_count, 2);
	assert_int_equal(core_ep_disconnect(rig.b.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_expect_dto(&rig.b, 1, DAT_DTO_ERR_FLUSHED);
	rig_expect_dto(&rig.b, 2, DAT_DTO_ERR_FLUSHED);
	assert_int_equal(srq_param().outstanding_dto_count, 0);
}

static void disconnect__while_receiving_device_silent__buffer_flushed(void **state)
{
	fake_silent_srqs(true);
	disconnect__while_receiving__buffer_flushed(state);
	fake_silent_srqs(false);
}

/* EP-FREE-26: more completions wait than one poll takes; the device drops them with the queue pair
 */
static void ep_free__many_completions_wait__buffers_consumed(void **state)
{
	(void)state;
	assert_int_equal(core_srq_free(srq), DAT_SUCCESS);
	make_srq(400);
	connect_to_srq();
	for (uint64_t i = 0; i < 400; i++)
		post_buffer(i);
	fake_hold(true); /* the service thread takes no completions */
	fake_fill_buffers(400);
	assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	assert_int_equal(srq_param().outstanding_dto_count, 0);
	fake_hold(false);
}

/* The connection is accepted and not established, and a message is arriving. */
static void receive_before_established(void)
{
	DAT_CR_HANDLE cr;

	replace_b();
	post_buffer(1);
	assert_int_equal(rig_ask(&rig, RIG_WAIT_US, NULL, 0), DAT_SUCCESS);
	cr = rig_request(&rig);
	fake_hold(true);
	assert_int_equal(core_cr_accept(cr, rig.b.ep, 0, NULL), DAT_SUCCESS);
	fake_take_buffer();
}

/* EP-FREE-26 */
static void ep_free__accepted_and_receiving__buffer_consumed(void **state)
{
	(void)state;
	fake_silent_srqs(true);
	receive_before_established();
	assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	assert_int_equal(srq_param().outstanding_dto_count, 0);
	fake_hold(false);
	fake_silent_srqs(false);
}

/* The buffer is consumed a little later. */
static void ep_disconnect__accepted_and_receiving__buffer_consumed(void **state)
{
	(void)state;
	fake_silent_srqs(true);
	receive_before_established();
	assert_int_equal(core_ep_disconnect(rig.b.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	fake_hold(false);
	for (int ms = 0; ms < 5000 && srq_param().outstanding_dto_count; ms++)
		usleep(1000);
	assert_int_equal(srq_param().outstanding_dto_count, 0);
	assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	assert_int_equal(core_srq_free(srq), DAT_SUCCESS);
	fake_silent_srqs(false);
}

/* SRQ-FREE-01: the device refuses to free the SRQ until the queue pair is gone */
static void srq_free__queue_pair_still_there__freed_later(void **state)
{
	(void)state;
	receive_before_established();
	assert_int_equal(core_ep_disconnect(rig.b.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	assert_int_equal(core_srq_free(srq), DAT_SUCCESS);
	fake_hold(false); /* rig_close checks that nothing is left */
}

/* SRQ-USE-07 SRQ-RECV-02: a buffer that waited gets the place of one that was dropped */
static void ep_free__while_receiving__next_buffer_posted(void **state)
{
	(void)state;
	assert_int_equal(core_srq_free(srq), DAT_SUCCESS);
	make_srq(1);
	assert_int_equal(core_srq_resize(srq, 2), DAT_SUCCESS);
	receive_into_srq();
	post_buffer(2);
	replace_b();
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(core_ep_reset(rig.a.ep), DAT_SUCCESS);
	assert_int_equal(rig_connect(&rig, NULL, 0), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(rig_send(&rig, &rig.a, 8, 3, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.b, 2, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, 3, DAT_DTO_SUCCESS);
}

/* SRQ-USE-15 SRQ-RECV-30: the state and one event; buffers are still accepted */
static void srq__device_reports_an_error__state_and_event(void **state)
{
	DAT_EVENT event;

	(void)state;
	connect_to_srq();
	assert_int_equal(srq_param().srq_state, DAT_SRQ_STATE_OPERATIONAL);
	fake_fail_srq();
	fake_fail_srq();
	event = rig_event(rig.async);
	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, srq);
	assert_int_equal(event.event_data.asynch_error_event_data.reason, DAT_SRQ_OTHER_ERROR);
	assert_int_equal(srq_param().srq_state, DAT_SRQ_STATE_ERROR);
	post_buffer(1);
	while (fake_unread_events())
		usleep(1000);
	fake_hold(true); /* the last that was read, the second report, is handled */
	fake_hold(false);
	rig_no_event(rig.async);
}

/*
 * SRQ-GEN-02 EP-CRSRQ-46 SRQ-CREATE-23: a device without shared receive queues. No handle can name
 * one, so any is given.
 */
static void srq__device_has_none__model_not_supported(void **state)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 8, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT};
	DAT_EP_HANDLE ep;

	(void)state;
	fake_srqs(false);
	rig.qual = 0;
	assert_int_equal(rig_open(&rig), DAT_SUCCESS);
	assert_int_equal(rig_make(&rig), DAT_SUCCESS);
	assert_int_equal(provider_attr(DAT_PROVIDER_FIELD_SRQ_SUPPORTED).srq_supported, DAT_FALSE);
	assert_int_equal(core_srq_create(rig.ia, rig.pz, &attr, &srq), NOT_SUPPORTED);
	srq = rig.pz;
	assert_int_equal(create_ep(rig.pz, DAT_HW_DEFAULT, DAT_HW_DEFAULT, &ep), NOT_SUPPORTED);
	rig_close(&rig);
	fake_srqs(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define SRQ_TEST(name) cmocka_unit_test_setup_teardown(name, srq_setup, srq_teardown)
		SRQ_TEST(ep_create_with_srq__different_zones__refused),
		SRQ_TEST(ep_create_with_srq__high_watermark__model_not_supported),
		SRQ_TEST(ep_set_watermark__with_srq__model_not_supported),
		SRQ_TEST(ep_set_watermark__infinite_with_srq__accepted),
		SRQ_TEST(ep_modify__high_watermark_with_srq__model_not_supported),
		SRQ_TEST(ep_recv_query__with_srq__unknown),
		SRQ_TEST(srq_resize__more_than_the_device_holds__all_receive),
		SRQ_TEST(srq_set_lw__messages_arrive__one_event_below_it),
		SRQ_TEST(ep_free__while_receiving__buffer_consumed),
		SRQ_TEST(ep_free__while_receiving_device_silent__buffer_consumed),
		SRQ_TEST(disconnect__while_receiving__buffer_flushed),
		SRQ_TEST(disconnect__while_receiving_two__both_flushed),
		SRQ_TEST(disconnect__while_receiving_device_silent__buffer_flushed),
		SRQ_TEST(ep_free__many_completions_wait__buffers_consumed),
		SRQ_TEST(ep_free__accepted_and_receiving__buffer_consumed),
		SRQ_TEST(ep_disconnect__accepted_and_receiving__buffer_consumed),
		SRQ_TEST(srq_free__queue_pair_still_there__freed_later),
		SRQ_TEST(ep_free__while_receiving__next_buffer_posted),
		SRQ_TEST(srq__device_reports_an_error__state_and_event),
		cmocka_unit_test(srq__device_has_none__model_not_supported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
