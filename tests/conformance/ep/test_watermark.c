// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_set_watermark: the soft and the hard high watermark of the Receives that an endpoint
 * holds, of endpoints with a queue of their own and with an SRQ.
 */
#include "ep_lab.h"
#include "srq_util.h"

/* CONN-EVT-53 CONN-EVT-55 */
static void expect_soft(DAT_EVD_HANDLE async, DAT_EP_HANDLE ep)
{
	const DAT_EVENT event = dt_event_poll(async);
	const DAT_ASYNCH_ERROR_EVENT_DATA *data = &event.event_data.asynch_error_event_data;

	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	assert_int_equal(event.event_number, 0x08005);
	assert_ptr_equal(event.evd_handle, async);
	assert_ptr_equal(data->dat_handle, ep);
	assert_int_equal(data->reason, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	assert_int_equal(data->reason, 2);
	dt_no_event(async);
}

static void give(struct dt_ep *ep, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		dt_ok(ep_recv_empty(ep->ep, 0x30));
}

static void take_one(struct rig *rig)
{
	dt_ok(ep_send_empty(rig->a.ep, 0x40));
	expect_received(&rig->b, 0x30, 0);
	expect_sent(&rig->a, 0x40, 0);
}

/* --- soft, without SRQ --- */

/* CONN-EVT-53 CONN-EVT-55 EP-WMARK-01 EP-WMARK-02 EP-WMARK-03 EP-WMARK-04 EP-WMARK-09
 * EP-WMARK-15 */
static void ep_set_watermark__soft_exceeded_by_posts__one_event(void **state)
{
	struct rig *rig = *state;
	const DAT_EVD_HANDLE async = rig->ia.async;

	dt_ok(dat_ep_set_watermark(rig->b.ep, 3, DAT_WATERMARK_INFINITE));
	give(&rig->b, 3); /* equal */
	dt_no_event(async);
	give(&rig->b, 1);
	expect_soft(async, rig->b.ep);
	give(&rig->b, 2);
	dt_no_event(async);
	for (int i = 0; i < 6; i++)
		take_one(rig);
	give(&rig->b, 6); /* exceeds it again */
	dt_no_event(async);
	assert_int_equal(dt_ep_state(rig->b.ep), DAT_EP_STATE_CONNECTED);
	dt_no_event(rig->b.conn);
}

/* EP-WMARK-05 EP-WMARK-08 EP-WMARK-13 */
static void ep_set_watermark__soft_set_again__armed_again(void **state)
{
	struct rig *rig = *state;
	const DAT_EVD_HANDLE async = rig->ia.async;

	dt_ok(dat_ep_set_watermark(rig->b.ep, 1, DAT_WATERMARK_INFINITE));
	dt_ok(dat_ep_set_watermark(rig->b.ep, 2, DAT_WATERMARK_INFINITE)); /* replaced */
	give(&rig->b, 2);
	dt_no_event(async);
	give(&rig->b, 1);
	expect_soft(async, rig->b.ep);
	dt_ok(dat_ep_set_watermark(rig->b.ep, 2, DAT_WATERMARK_INFINITE)); /* 3 are posted */
	expect_soft(async, rig->b.ep);
	dt_ok(dat_ep_set_watermark(rig->b.ep, 3, DAT_WATERMARK_INFINITE));
	dt_no_event(async);
	dt_ok(dat_ep_set_watermark(rig->b.ep, 0, DAT_WATERMARK_INFINITE));
	expect_soft(async, rig->b.ep);
	dt_ok(dat_ep_set_watermark(rig->b.ep, 0, DAT_WATERMARK_INFINITE));
	expect_soft(async, rig->b.ep);
}

/* EP-WMARK-11 EP-WMARK-12 EP-WMARK-16 DTO-104 */
static void ep_set_watermark__infinite__no_event(void **state)
{
	struct rig *rig = *state;

	give(&rig->b, 10); /* the default */
	dt_ok(dat_ep_set_watermark(rig->b.ep, 10, 10));
	dt_ok(dat_ep_set_watermark(rig->b.ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE));
	give(&rig->b, 2);
	dt_stays_empty(rig->ia.async);
	dt_no_event(rig->b.conn);
	for (int i = 0; i < 12; i++)
		take_one(rig);
	if (dt_is_iwarp())
		return; /* a message without a Receive breaks the connection */
	dt_ok(ep_send_empty(rig->a.ep, 0x41)); /* finds no Receive, and waits as it would */
	dt_stays_empty(rig->a.request);
	give(&rig->b, 1);
	expect_received(&rig->b, 0x30, 0);
	expect_sent(&rig->a, 0x41, 0);
}

/* --- hard, without SRQ --- */

/* CONN-EVT-37 EP-WMARK-06 EP-WMARK-07 EP-WMARK-03 EP-STATE-43 EP-STATE-41 */
static void ep_set_watermark__hard_exceeded_by_a_post__broken(void **state)
{
	struct rig *rig = *state;

	dt_ok(dat_ep_set_watermark(rig->b.ep, DAT_WATERMARK_INFINITE, 3));
	give(&rig->b, 3);
	dt_stays_empty(rig->b.conn);
	assert_int_equal(dt_ep_state(rig->b.ep), DAT_EP_STATE_CONNECTED);
	give(&rig->b, 1);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_BROKEN);
	dt_expect_conn(rig->a.conn, rig->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	for (int i = 0; i < 4; i++)
		expect_recv_flushed(&rig->b, 0x30);
	dt_no_event(rig->b.recv);
	dt_no_event(rig->ia.async); /* the soft one was not exceeded */
}

/* EP-WMARK-07: the soft one acts alone, below the hard one; both when both are exceeded */
static void ep_set_watermark__soft_and_hard__independent(void **state)
{
	struct rig *rig = *state;

	dt_ok(dat_ep_set_watermark(rig->b.ep, 1, 3));
	give(&rig->b, 3);
	expect_soft(rig->ia.async, rig->b.ep);
	dt_stays_empty(rig->b.conn);
	give(&rig->b, 1);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_BROKEN);
	dt_no_event(rig->ia.async);
}

/* EP-WMARK-08 EP-WMARK-06: at the call */
static void ep_set_watermark__hard_already_exceeded__broken(void **state)
{
	struct rig *rig = *state;

	give(&rig->b, 4);
	dt_ok(dat_ep_set_watermark(rig->b.ep, DAT_WATERMARK_INFINITE, 4));
	dt_stays_empty(rig->b.conn);
	dt_ok(dat_ep_set_watermark(rig->b.ep, DAT_WATERMARK_INFINITE, 3));
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_BROKEN);
	dt_expect_conn(rig->a.conn, rig->a.ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* EP-WMARK-06 EP-WMARK-08: 0 is a watermark, too */
static void ep_set_watermark__hard_zero__broken_at_the_first_receive(void **state)
{
	struct rig *rig = *state;

	dt_ok(dat_ep_set_watermark(rig->b.ep, DAT_WATERMARK_INFINITE, 0));
	dt_stays_empty(rig->b.conn);
	give(&rig->b, 1);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_BROKEN);
}

/* EP-WMARK-10, on the accepting and on the connecting side */
static void
ep_set_watermark__hard_exceeded_while_unconnected__broken_after_established(void **state)
{
	struct rig *rig = *state;

	for (int side = 0; side < 2; side++) {
		struct dt_ep a, b, *marked = side ? &a : &b;
		struct dt_listener listener;

		dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &a);
		dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &b);
		give(marked, 2);
		dt_ok(dat_ep_set_watermark(marked->ep, DAT_WATERMARK_INFINITE, 1));
		give(marked, 1);
		assert_int_equal(dt_ep_state(marked->ep), DAT_EP_STATE_UNCONNECTED);
		dt_stays_empty(marked->conn);
		dt_listen(&rig->ia, &listener);
		dt_connect(&rig->ia, a.ep, listener.qual);
		dt_ok(dat_cr_accept(dt_request(&listener), b.ep, 0, NULL));
		dt_expect_conn(marked->conn, marked->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		expect_ended(marked, DAT_CONNECTION_EVENT_BROKEN);
		for (int i = 0; i < 3; i++)
			expect_recv_flushed(marked, 0x30);
		dt_unlisten(&listener);
		dt_ok(dat_ep_free(a.ep));
		dt_ok(dat_ep_free(b.ep));
	}
}

/* --- arguments and states --- */

/* EP-WMARK-17 EP-WMARK-18 GEN-15 */
static void ep_set_watermark__bad_arguments__refused(void **state)
{
	static const DAT_COUNT bad[] = {-2, -3, INT32_MIN};
	struct rig *rig = *state;
	struct conf_bad handles;
	DAT_EP_PARAM before = ep_query(rig->b.ep), after;

	conf_bad_make(&rig->ia, &handles);
	conf_refuses(&handles, h, DAT_INVALID_HANDLE_EP, dat_ep_set_watermark(h, 1, 1));
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		dt_fails_with(dat_ep_set_watermark(rig->b.ep, bad[i], 0), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
		dt_fails_with(dat_ep_set_watermark(rig->b.ep, 0, bad[i]), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG3);
	}
	after = ep_query(rig->b.ep);
	ep_check_same_config(&before, &after);
	give(&rig->b, 1); /* the good halves of the refused calls were not set */
	dt_stays_empty(rig->b.conn);
	dt_no_event(rig->ia.async);
}

/* EP-WMARK-14 EP-STATE-66 EP-WMARK-16 */
static void ep_set_watermark__each_state__success(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		if (!ep_lasts(ep_states[i]))
			continue;
		ep_lab_open(lab, ep_states[i]);
		dt_ok(dat_ep_set_watermark(lab->ep.ep, 5, 6));
		assert_int_equal(dt_ep_state(lab->ep.ep), ep_states[i]);
		assert_int_equal(ep_query(lab->ep.ep).ep_attr.srq_soft_hw, 5);
		assert_int_not_equal(ep_query(lab->ep.ep).ep_attr.max_recv_dtos, 6);
		dt_no_event(lab->ep.conn);
		dt_no_event(lab->ia.async);
		ep_lab_close(lab);
	}
}

/* --- with an SRQ --- */

/*
 * Without high watermarks: the endpoint of pair 0 is refused them, its attributes stay, and
 * messages arrive.
 */
static void check_refused(struct bench *bench, DAT_COUNT soft, DAT_COUNT hard)
{
	const DAT_EP_HANDLE ep = bench->to[0].ep;
	const DAT_EP_PARAM before = ep_query(ep);
	DAT_EP_PARAM after;

	dt_fails(dat_ep_set_watermark(ep, soft, hard), DAT_MODEL_NOT_SUPPORTED);
	after = ep_query(ep);
	ep_check_same_config(&before, &after);
	for (int i = 0; i < 3; i++)
		bench_works(bench);
	dt_no_event(bench->ia.async);
	dt_no_event(bench->to[0].conn);
}

/* EP-WMARK-02 EP-WMARK-04 EP-WMARK-05 EP-WMARK-09 EP-WMARK-15 EP-WMARK-19 SRQ-USE-14 CONN-EVT-53 */
static void ep_set_watermark__soft_with_srq__event_when_a_buffer_is_taken(void **state)
{
	struct bench *bench = *state;
	DAT_EP_HANDLE ep;

	bench_add(bench, 2);
	if (!srq_shows_held(&bench->ia)) {
		check_refused(bench, 1, DAT_WATERMARK_INFINITE);
		check_refused(bench, 0, DAT_WATERMARK_INFINITE);
		return;
	}
	ep = bench->to[0].ep;
	bench_give_many(bench, 0, 10);
	dt_ok(dat_ep_set_watermark(ep, 1, DAT_WATERMARK_INFINITE));
	bench_send(bench, 0, 1);
	bench_receive(bench, 0, 1); /* it held one */
	dt_no_event(bench->ia.async);
	dt_ok(dat_ep_set_watermark(ep, 0, DAT_WATERMARK_INFINITE));
	dt_no_event(bench->ia.async); /* buffers on the SRQ do not count */
	bench_send(bench, 1, 2);
	bench_receive(bench, 1, 2); /* nor those of another endpoint */
	dt_no_event(bench->ia.async);
	bench_send(bench, 0, 3);
	bench_receive(bench, 0, 3);
	expect_soft(bench->ia.async, ep);
	bench_send(bench, 0, 4);
	bench_receive(bench, 0, 4);
	dt_no_event(bench->ia.async);
	dt_ok(dat_ep_set_watermark(ep, 0, DAT_WATERMARK_INFINITE));
	bench_send(bench, 0, 5);
	bench_receive(bench, 0, 5);
	expect_soft(bench->ia.async, ep);
}

/* The endpoint of pair 0 breaks when it takes a buffer, which is flushed; the others work. */
static void check_breaks(struct bench *bench)
{
	bench_give_many(bench, 0, 2);
	bench_send(bench, 0, 1);
	expect_ended(&bench->to[0], DAT_CONNECTION_EVENT_BROKEN);
	dt_expect_conn(bench->from[0].conn, bench->from[0].ep, DAT_CONNECTION_EVENT_BROKEN);
	srq_counts(bench->srq, 1, 2);
	assert_int_equal(dt_event(bench->to[0].recv).event_data.dto_completion_event_data.status,
			 DAT_DTO_ERR_FLUSHED);
	srq_counts(bench->srq, 1, 1);
	dt_no_event(bench->to[0].recv);
	bench_works(bench);
}

/* EP-WMARK-06 EP-WMARK-15 EP-WMARK-16 EP-WMARK-19 SRQ-USE-14 SRQ-USE-05 EP-STATE-43 EP-STATE-78
 * CONN-EVT-37 */
static void ep_set_watermark__hard_with_srq__broken_when_a_buffer_is_taken(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 2);
	if (!srq_shows_held(&bench->ia)) {
		check_refused(bench, DAT_WATERMARK_INFINITE, 1);
		check_refused(bench, 1, 1);
		return;
	}
	dt_ok(dat_ep_set_watermark(bench->to[0].ep, DAT_WATERMARK_INFINITE, 1));
	assert_int_equal(ep_query(bench->to[0].ep).ep_attr.max_recv_dtos, 1);
	bench_give(bench, 0);
	bench_send(bench, 0, 1);
	bench_receive(bench, 0, 1);
	dt_ok(dat_ep_set_watermark(bench->to[0].ep, DAT_WATERMARK_INFINITE, 0));
	dt_stays_empty(bench->to[0].conn);
	check_breaks(bench);
}

/* EP-WMARK-06 SRQ-USE-14: the buffer comes when the message is there already */
static void ep_set_watermark__hard_with_srq_message_waits__broken_by_the_post(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 2);
	if (!srq_shows_held(&bench->ia)) {
		check_refused(bench, DAT_WATERMARK_INFINITE, 0);
		return;
	}
	dt_ok(dat_ep_set_watermark(bench->to[0].ep, DAT_WATERMARK_INFINITE, 0));
	bench_send(bench, 0, 1);
	dt_stays_empty(bench->to[0].conn);
	bench_give(bench, 1);
	expect_ended(&bench->to[0], DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(dt_event(bench->to[0].recv).event_data.dto_completion_event_data.status,
			 DAT_DTO_ERR_FLUSHED);
	bench_works(bench);
	srq_counts(bench->srq, 0, 0);
}

/* --- the attributes of an SRQ endpoint --- */

/*
 * Modifies an attribute of an SRQ's endpoint, that is a high watermark, without support for it: a
 * finite one is refused, and stays as it was.
 */
static void check_modify(struct dt_ep *ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param,
			 DAT_COUNT *attribute)
{
	const DAT_EP_PARAM before = ep_query(ep->ep);
	DAT_EP_PARAM after;

	*attribute = 9;
	dt_fails(dat_ep_modify(ep->ep, mask, param), DAT_MODEL_NOT_SUPPORTED);
	*attribute = -2;
	dt_fails_with(dat_ep_modify(ep->ep, mask, param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*attribute = 0;
	dt_ok(dat_ep_modify(ep->ep, mask, param));
	*attribute = DAT_HW_DEFAULT;
	dt_ok(dat_ep_modify(ep->ep, mask, param));
	after = ep_query(ep->ep);
	ep_check_same_config(&before, &after);
}

/* Modifies srq_soft_hw and max_recv_dtos of the endpoint that is then connected as pair 0. */
static void check_modify_refused(struct bench *bench)
{
	struct dt_ep *to = &bench->to[0];
	DAT_EP_PARAM param = ep_query(to->ep);

	check_modify(to, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param, &param.ep_attr.srq_soft_hw);
	check_modify(to, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param, &param.ep_attr.max_recv_dtos);
	dt_ep_link(&bench->ia, &bench->from[0], to);
	bench->pairs = 1;
	check_refused(bench, 1, 1);
}

/* EP-MODIFY-35 EP-CRSRQ-30 EP-WMARK-16 EP-WMARK-19 */
static void ep_modify__soft_watermark_of_an_srq_endpoint__as_if_set(void **state)
{
	struct bench *bench = *state;
	DAT_EP_PARAM param;
	struct dt_ep *to = &bench->to[0];

	dt_ep_create(&bench->ia, bench->ia.pz, &bench->from_attr, &bench->from[0]);
	srq_ep_make(&bench->ia, bench->ia.pz, bench->srq, &bench->attr, to);
	if (!srq_shows_held(&bench->ia)) {
		check_modify_refused(bench);
		return;
	}
	param = ep_query(to->ep);
	param.ep_attr.srq_soft_hw = 9;
	dt_ok(dat_ep_modify(to->ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param));
	assert_int_equal(ep_query(to->ep).ep_attr.srq_soft_hw, 9);
	param.ep_attr.srq_soft_hw = -2;
	dt_fails_with(dat_ep_modify(to->ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	/* set by the call, then the other one by its attribute: it stays */
	dt_ok(dat_ep_set_watermark(to->ep, 0, DAT_WATERMARK_INFINITE));
	param.ep_attr.srq_soft_hw = 3;
	param.ep_attr.max_recv_dtos = 40;
	dt_ok(dat_ep_modify(to->ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
	assert_int_equal(ep_query(to->ep).ep_attr.srq_soft_hw, 0);
	dt_ep_link(&bench->ia, &bench->from[0], to);
	bench->pairs = 1;
	bench_give_many(bench, 0, 3);
	bench_send(bench, 0, 1);
	bench_receive(bench, 0, 1);
	expect_soft(bench->ia.async, to->ep);
	dt_fails_with(dat_ep_modify(to->ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED); /* connected */
	dt_fails_with(dat_ep_modify(bench->from[0].ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3); /* has no SRQ */
}

/* EP-MODIFY-02 EP-MODIFY-35 EP-CRSRQ-30: the hard one set by the call survives a change of the soft
 * one */
static void ep_modify__soft_watermark__hard_one_stays(void **state)
{
	struct bench *bench = *state;
	DAT_EP_PARAM param;

	dt_ep_create(&bench->ia, bench->ia.pz, &bench->from_attr, &bench->from[0]);
	srq_ep_make(&bench->ia, bench->ia.pz, bench->srq, &bench->attr, &bench->to[0]);
	if (!srq_shows_held(&bench->ia)) {
		/* a finite value that is not selected does not matter */
		param = ep_query(bench->to[0].ep);
		param.ep_attr.max_recv_dtos = 20;
		dt_ok(dat_ep_modify(bench->to[0].ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param));
		assert_int_equal(ep_query(bench->to[0].ep).ep_attr.max_recv_dtos, DAT_HW_DEFAULT);
		check_modify_refused(bench);
		return;
	}
	dt_ok(dat_ep_set_watermark(bench->to[0].ep, DAT_WATERMARK_INFINITE, 0));
	param = ep_query(bench->to[0].ep);
	param.ep_attr.srq_soft_hw = 20;
	dt_ok(dat_ep_modify(bench->to[0].ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param));
	dt_ep_link(&bench->ia, &bench->from[0], &bench->to[0]);
	bench->pairs = 1;
	check_breaks(bench);
}

/* EP-CRSRQ-30 EP-CRSRQ-31: 0 and DAT_HW_DEFAULT mean none, other values act or are refused */
static void ep_create_with_srq__watermark_attributes__as_if_set(void **state)
{
	static const DAT_COUNT none[] = {0, DAT_HW_DEFAULT, 1, 1000};
	struct bench *bench = *state;
	const unsigned count = srq_shows_held(&bench->ia) ? COUNT_OF(none) : 2;

	for (unsigned i = 0; i < count; i++) {
		bench->attr.srq_soft_hw = none[i];
		bench->attr.max_recv_dtos = none[i];
		bench_add(bench, 1);
		assert_int_equal(ep_query(bench->to[i].ep).ep_attr.srq_soft_hw, none[i]);
		assert_int_equal(ep_query(bench->to[i].ep).ep_attr.max_recv_dtos, none[i]);
	}
	bench_works(bench);
	dt_stays_empty(bench->ia.async);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(ep_set_watermark__soft_exceeded_by_posts__one_event),
		rig_test(ep_set_watermark__soft_set_again__armed_again),
		rig_test(ep_set_watermark__infinite__no_event),
		rig_test(ep_set_watermark__hard_exceeded_by_a_post__broken),
		rig_test(ep_set_watermark__soft_and_hard__independent),
		rig_test(ep_set_watermark__hard_already_exceeded__broken),
		rig_test(ep_set_watermark__hard_zero__broken_at_the_first_receive),
		rig_test(
			ep_set_watermark__hard_exceeded_while_unconnected__broken_after_established),
		rig_test(ep_set_watermark__bad_arguments__refused),
		ep_test(ep_set_watermark__each_state__success),
		bench_test(ep_set_watermark__soft_with_srq__event_when_a_buffer_is_taken),
		bench_test(ep_set_watermark__hard_with_srq__broken_when_a_buffer_is_taken),
		bench_test(ep_set_watermark__hard_with_srq_message_waits__broken_by_the_post),
		bench_test(ep_modify__soft_watermark_of_an_srq_endpoint__as_if_set),
		bench_test(ep_modify__soft_watermark__hard_one_stays),
		bench_test(ep_create_with_srq__watermark_attributes__as_if_set),
	};

	return cmocka_run_group_tests_name("watermark", tests, NULL, NULL);
}
