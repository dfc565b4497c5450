// SPDX-License-Identifier: BSD-2-Clause
/* dat_srq_set_lw: when the low watermark of an SRQ raises its event, and when it does not. */
#include "srq_util.h"

/* CONN-EVT-54 CONN-EVT-55 */
static void expect_low(struct bench *bench, DAT_SRQ_HANDLE srq)
{
	const DAT_EVENT event = dt_event_poll(bench->ia.async);
	const DAT_ASYNCH_ERROR_EVENT_DATA *data = &event.event_data.asynch_error_event_data;

	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	assert_int_equal(event.event_number, 0x08005);
	assert_ptr_equal(event.evd_handle, bench->ia.async);
	assert_ptr_equal(data->dat_handle, srq);
	assert_int_equal(data->reason, DAT_SRQ_LOW_WATERMARK_EVENT);
	assert_int_equal(data->reason, 2);
	dt_no_event(bench->ia.async);
}

/* An endpoint takes one buffer. */
static void take(struct bench *bench)
{
	bench_send(bench, 0, bench->sent);
	dt_event(bench->to[0].recv);
}

/* CONN-EVT-54 CONN-EVT-55 SRQ-LW-01 SRQ-LW-02 SRQ-LW-03 SRQ-LW-04 SRQ-LW-06 SRQ-LW-07 */
static void srq_set_lw__buffers_taken__one_event_when_below(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	bench_give_many(bench, 0, 6);
	dt_ok(dat_srq_set_lw(bench->srq, 4));
	assert_int_equal(srq_query(bench->srq).low_watermark, 4);
	dt_no_event(bench->ia.async);
	take(bench);
	dt_no_event(bench->ia.async);
	take(bench); /* equal */
	dt_no_event(bench->ia.async);
	take(bench);
	expect_low(bench, bench->srq);
	take(bench);
	dt_no_event(bench->ia.async);
	bench_give_many(bench, 0, 10);
	for (int i = 0; i < 12; i++) /* below again */
		take(bench);
	srq_counts(bench->srq, 0, 0);
	dt_no_event(bench->ia.async);
}

/* SRQ-LW-08 SRQ-LW-05: same value included */
static void srq_set_lw__set_again__armed_again(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	bench_give_many(bench, 0, 3);
	dt_ok(dat_srq_set_lw(bench->srq, 3));
	take(bench);
	expect_low(bench, bench->srq);
	dt_ok(dat_srq_set_lw(bench->srq, 3)); /* 2 are left */
	expect_low(bench, bench->srq);
	bench_give_many(bench, 5, 2);
	dt_ok(dat_srq_set_lw(bench->srq, 3)); /* 4 are left */
	dt_ok(dat_srq_set_lw(bench->srq, 3));
	dt_no_event(bench->ia.async);
	take(bench);
	dt_no_event(bench->ia.async);
	take(bench);
	expect_low(bench, bench->srq);
	take(bench);
	dt_no_event(bench->ia.async);
}

/* SRQ-LW-05 SRQ-LW-12 */
static void srq_set_lw__already_below__event_during_the_call(void **state)
{
	struct bench *bench = *state;
	const DAT_COUNT max = srq_query(bench->srq).max_recv_dtos;
	DAT_EVENT event;

	dt_ok(dat_srq_set_lw(bench->srq, 1));
	dt_ok(dat_evd_dequeue(bench->ia.async, &event)); /* there at return */
	assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, bench->srq);
	bench_give_many(bench, 0, (unsigned)max);
	dt_ok(dat_srq_set_lw(bench->srq, max));
	assert_int_equal(srq_query(bench->srq).low_watermark, max);
	dt_no_event(bench->ia.async);
	bench_add(bench, 1);
	take(bench);
	expect_low(bench, bench->srq);
}

/* SRQ-LW-09 */
static void srq_set_lw__before_the_event__new_value_only(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	bench_give_many(bench, 0, 8);
	dt_ok(dat_srq_set_lw(bench->srq, 7));
	dt_ok(dat_srq_set_lw(bench->srq, 3));
	for (int i = 0; i < 5; i++)
		take(bench);
	dt_no_event(bench->ia.async); /* 3 are left */
	dt_ok(dat_srq_set_lw(bench->srq, 1));
	dt_ok(dat_srq_set_lw(bench->srq, 3));
	take(bench);
	expect_low(bench, bench->srq);
}

/* SRQ-LW-10 SRQ-CREATE-09 */
static void srq_set_lw__default__never_an_event(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	bench_give_many(bench, 0, 3);
	take(bench); /* as created */
	dt_ok(dat_srq_set_lw(bench->srq, 2));
	dt_ok(dat_srq_set_lw(bench->srq, DAT_SRQ_LW_DEFAULT)); /* switched off */
	take(bench);
	take(bench);
	dt_ok(dat_srq_set_lw(bench->srq, DAT_SRQ_LW_DEFAULT));
	srq_counts(bench->srq, 0, 0);
	dt_stays_empty(bench->ia.async);
}

/* SRQ-LW-11 SRQ-LW-13 */
static void srq_set_lw__impossible_value__invalid_parameter(void **state)
{
	struct bench *bench = *state;
	const DAT_COUNT max = srq_query(bench->srq).max_recv_dtos;

	bench_give_many(bench, 0, 2);
	dt_ok(dat_srq_set_lw(bench->srq, 2));
	dt_fails_with(dat_srq_set_lw(bench->srq, max + 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_srq_set_lw(bench->srq, INT32_MAX), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	dt_fails_with(dat_srq_set_lw(bench->srq, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_srq_set_lw(bench->srq, INT32_MIN), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	assert_int_equal(srq_query(bench->srq).low_watermark, 2);
	dt_no_event(bench->ia.async);
	bench_add(bench, 1);
	take(bench);
	expect_low(bench, bench->srq); /* the refused calls did not disarm it */
}

/* SRQ-LW-02 SRQ-CREATE-25: of the SRQ concerned */
static void srq_set_lw__two_queues__each_its_own(void **state)
{
	struct bench *bench = *state;
	const DAT_SRQ_HANDLE other = srq_make(&bench->ia, 4, 1);

	bench_add(bench, 1);
	bench_give_many(bench, 0, 4);
	for (uint64_t i = 0; i < 4; i++)
		dt_ok(srq_post_empty(other, i));
	dt_ok(dat_srq_set_lw(other, 4));
	dt_ok(dat_srq_set_lw(bench->srq, 3));
	take(bench);
	take(bench);
	expect_low(bench, bench->srq);
	dt_ok(dat_srq_set_lw(other, 4));
	dt_no_event(bench->ia.async);
}

/* SRQ-LW-17: buffers are posted in answer to the event, traffic goes on */
static void srq_set_lw__refilled_at_each_event__traffic_continues(void **state)
{
	struct bench *bench = *state;
	uint64_t given = 8;

	bench_add(bench, 2);
	bench_give_many(bench, 0, 8);
	dt_ok(dat_srq_set_lw(bench->srq, 3));
	for (uint64_t i = 0; i < 200; i++) {
		DAT_EVENT event;

		bench_send(bench, i % 2, i);
		bench_receive(bench, i % 2, i);
		if (dat_evd_dequeue(bench->ia.async, &event) != DAT_SUCCESS)
			continue;
		assert_int_equal(srq_query(bench->srq).available_dto_count, 2);
		bench_give_many(bench, given, 6);
		given += 6;
		dt_ok(dat_srq_set_lw(bench->srq, 3));
	}
	assert_true(given > 190);
	assert_int_equal(srq_query(bench->srq).srq_state, DAT_SRQ_STATE_OPERATIONAL);
}

/* SRQ-LW-02: an entry stays occupied until it is dequeued, but no endpoint can take it */
static void srq_set_lw__completions_not_dequeued__available_counts(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	bench_give_many(bench, 0, 2);
	dt_ok(dat_srq_set_lw(bench->srq, 1));
	bench_send(bench, 0, 1);
	bench_send(bench, 0, 2);
	srq_until(bench->srq, 0);
	srq_counts(bench->srq, 0, 2);
	expect_low(bench, bench->srq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(srq_set_lw__buffers_taken__one_event_when_below),
		bench_test(srq_set_lw__set_again__armed_again),
		bench_test(srq_set_lw__already_below__event_during_the_call),
		bench_test(srq_set_lw__before_the_event__new_value_only),
		bench_test(srq_set_lw__default__never_an_event),
		bench_test(srq_set_lw__impossible_value__invalid_parameter),
		bench_test(srq_set_lw__two_queues__each_its_own),
		bench_test(srq_set_lw__refilled_at_each_event__traffic_continues),
		bench_test(srq_set_lw__completions_not_dequeued__available_counts),
	};

	return cmocka_run_group_tests_name("watermark_low", tests, NULL, NULL);
}
