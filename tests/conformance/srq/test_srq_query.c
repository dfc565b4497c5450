// SPDX-License-Identifier: BSD-2-Clause
/* dat_srq_query and dat_srq_resize: values, limits, refusals. Under traffic: test_srq_threads.c. */
#include "srq_util.h"

/* --- query --- */

/* SRQ-QUERY-08 SRQ-QUERY-09 SRQ-QUERY-10 SRQ-QUERY-06 SRQ-QUERY-07 SRQ-USE-02 */
static void srq_query__life_of_a_buffer__counts_of_the_specification(void **state)
{
	struct bench *bench = *state;

	bench->srq = srq_make(&bench->ia, 10, 1);
	bench_add(bench, 1);
	bench_give_many(bench, 0, 3);
	assert_int_equal(srq_query(bench->srq).max_recv_dtos, 10);
	srq_counts(bench->srq, 3, 3);
	bench_send(bench, 0, 1);
	srq_until(bench->srq, 2);
	srq_counts(bench->srq, 2, 3);
	bench_receive(bench, 0, 1);
	srq_counts(bench->srq, 2, 2);
	assert_int_equal(srq_query(bench->srq).max_recv_dtos, 10);
}

/* SRQ-QUERY-10: taken by dat_evd_wait, and by the overflow of a dispatcher */
static void srq_query__events_lost_or_waited_for__entries_free(void **state)
{
	struct bench *bench = *state;
	DAT_COUNT more;
	DAT_EVENT event;
	struct dt_ep *to;

	bench_add(bench, 1);
	to = &bench->to[0];
	bench_give(bench, 0);
	bench_send(bench, 0, 1);
	srq_until(bench->srq, 0);
	dt_ok(dat_evd_wait(to->recv, DT_WAIT_US, 1, &event, &more));
	srq_counts(bench->srq, 0, 0);
	dt_ok(dat_evd_resize(to->recv, 1));
	bench->has_async = true; /* DAT_ASYNC_ERROR_EVD_OVERFLOW */
	bench_give_many(bench, 0, 3);
	for (uint64_t i = 0; i < 3; i++)
		bench_send(bench, 0, i);
	/* the first event is in its queue, the others are lost */
	srq_until_outstanding(bench->srq, 1);
	event = dt_event(bench->ia.async);
	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	bench_receive(bench, 0, 0);
	dt_no_event(to->recv);
	srq_counts(bench->srq, 0, 0);
}

/* SRQ-QUERY-01 SRQ-QUERY-03 SRQ-QUERY-14 SRQ-QUERY-12 GEN-22 */
static void srq_query__each_mask__fields_filled(void **state)
{
	struct bench *bench = *state;
	const DAT_SRQ_PARAM all = srq_query(bench->srq);

	for (int mask = 0; mask <= DAT_SRQ_FIELD_ALL; mask++) {
		DAT_SRQ_PARAM param;

		memset(&param, 0x77, sizeof(param));
		dt_ok(dat_srq_query(bench->srq, (DAT_SRQ_PARAM_MASK)mask, &param));
#define SAME(bit, member)                                                                          \
	do {                                                                                       \
		if (mask & (bit))                                                                  \
			assert_true(param.member == all.member);                                   \
	} while (0)
		SAME(DAT_SRQ_FIELD_IA_HANDLE, ia_handle);
		SAME(DAT_SRQ_FIELD_SRQ_STATE, srq_state);
		SAME(DAT_SRQ_FIELD_PZ_HANDLE, pz_handle);
		SAME(DAT_SRQ_FIELD_MAX_RECV_DTO, max_recv_dtos);
		SAME(DAT_SRQ_FIELD_MAX_RECV_IOV, max_recv_iov);
		SAME(DAT_SRQ_FIELD_LOW_WATERMARK, low_watermark);
		SAME(DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT, available_dto_count);
		SAME(DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT, outstanding_dto_count);
#undef SAME
	}
	/* both counts are known, as the attribute says (SRQ-QUERY-13) */
	assert_int_not_equal(all.available_dto_count, DAT_VALUE_UNKNOWN);
	assert_int_not_equal(all.outstanding_dto_count, DAT_VALUE_UNKNOWN);
}

/* SRQ-QUERY-15 SRQ-QUERY-16 */
static void srq_query__bad_mask_or_pointer__invalid_parameter(void **state)
{
	static const unsigned bad[] = {0x100, 0x1ff, 0x8000, 0x40000000};
	struct bench *bench = *state;
	DAT_SRQ_PARAM param;

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		dt_fails_with(dat_srq_query(bench->srq, (DAT_SRQ_PARAM_MASK)bad[i], &param),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_srq_query(bench->srq, DAT_SRQ_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
}

/* SRQ-QUERY-05 SRQ-LW-01 */
static void srq_query__low_watermark__last_value(void **state)
{
	static const DAT_COUNT values[] = {0, 1, 5, 5, 16, 0};
	struct bench *bench = *state;

	bench->has_async = true;
	for (size_t i = 0; i < COUNT_OF(values); i++) {
		dt_ok(dat_srq_set_lw(bench->srq, values[i]));
		assert_int_equal(srq_query(bench->srq).low_watermark, values[i]);
	}
}

/* --- resize --- */

static void resize_refused(struct bench *bench, DAT_COUNT size, DAT_RETURN code)
{
	const DAT_SRQ_PARAM before = srq_query(bench->srq);
	DAT_SRQ_PARAM after;

	dt_returns(dat_srq_resize(bench->srq, size), code);
	after = srq_query(bench->srq);
	assert_int_equal(after.max_recv_dtos, before.max_recv_dtos);
	assert_int_equal(after.low_watermark, before.low_watermark);
	srq_counts(bench->srq, before.available_dto_count, before.outstanding_dto_count);
}

/* SRQ-RESIZE-01 SRQ-RESIZE-02 */
static void srq_resize__grow_with_buffers__all_used(void **state)
{
	struct bench *bench = *state;
	uint64_t seen = 0;

	bench_add(bench, 2);
	/* not at the start of the ring */
	for (uint64_t i = 0; i < 11; i++) {
		bench_give(bench, 0);
		bench_send(bench, 0, i);
		bench_receive(bench, 0, i);
	}
	bench_give_many(bench, 0, 16);
	dt_ok(dat_srq_resize(bench->srq, 40));
	assert_true(srq_query(bench->srq).max_recv_dtos >= 40);
	srq_counts(bench->srq, 16, 16);
	bench_give_many(bench, 16, 24);
	for (DAT_COUNT i = 40; i < srq_query(bench->srq).max_recv_dtos; i++)
		bench_give(bench, (uint64_t)i);
	dt_fails_with(srq_post_empty(bench->srq, 1), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	for (uint64_t i = 0; i < 40; i++) {
		bench_send(bench, i % 2, i);
		seen |= 1ull << bench_receive(bench, i % 2, i);
	}
	assert_true(seen == (1ull << 40) - 1);
}

/* SRQ-RESIZE-03: on the SRQ, and completed without being dequeued */
static void srq_resize__below_outstanding__invalid_state(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	bench_give_many(bench, 0, 6);
	resize_refused(bench, 5, DT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE));
	bench_send(bench, 0, 1);
	bench_send(bench, 0, 2);
	srq_until(bench->srq, 4);
	resize_refused(bench, 5, DT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE));
	bench_receive(bench, 0, 1);
	resize_refused(bench, 4, DT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE));
	dt_ok(dat_srq_resize(bench->srq, 5));
	srq_counts(bench->srq, 4, 5);
	bench_receive(bench, 0, 2);
	bench_works(bench);
}

/* SRQ-RESIZE-03: at an endpoint that is receiving */
static void srq_resize__below_outstanding_with_one_taken__invalid_state(void **state)
{
	struct bench *bench = *state;
	struct catch c;

	bench_add(bench, 1);
	catch_begin(&c, bench, 0);
	for (int tries = 0; tries < 5; tries++) {
		bool is_held = catch_try(&c);

		dt_ok(srq_post_empty(bench->srq, 1));
		if (srq_shows_held(&bench->ia))
			resize_refused(bench, 1, DT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE));
		else /* a device counts the buffer as available until it is filled */
			dt_returns(dat_srq_resize(bench->srq, 1),
				   DT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE));
		catch_missed(&c);
		dt_ok(dat_srq_resize(bench->srq, 1));
		dt_ok(dat_srq_resize(bench->srq, 16));
		dt_ok(dat_ep_post_send(bench->from[0].ep, 0, NULL, dt_cookie(2), 0));
		expect_received(&bench->to[0], 1, 0);
		expect_sent(&bench->from[0], 2, 0);
		if (is_held)
			break;
	}
	catch_end(&c);
}

/* SRQ-RESIZE-04 SRQ-RESIZE-05 SRQ-RESIZE-11 */
static void srq_resize__about_the_low_watermark__only_below_refused(void **state)
{
	struct bench *bench = *state;

	bench_give_many(bench, 0, 8);
	dt_ok(dat_srq_set_lw(bench->srq, 8));
	dt_no_event(bench->ia.async);
	bench_add(bench, 1);
	bench_send(bench, 0, 1);
	bench_receive(bench, 0, 1);
	dt_event(bench->ia.async); /* passed */
	resize_refused(bench, 7, DT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE));
	dt_ok(dat_srq_resize(bench->srq, 8));
	assert_int_equal(srq_query(bench->srq).low_watermark, 8);
	dt_ok(dat_srq_resize(bench->srq, 20));
	assert_int_equal(srq_query(bench->srq).low_watermark, 8);
	bench_send(bench, 0, 2);
	bench_receive(bench, 0, 2);
	dt_no_event(bench->ia.async); /* the resize has not armed it */
}

/* SRQ-RESIZE-11: nor disarmed */
static void srq_resize__armed__event_as_before(void **state)
{
	struct bench *bench = *state;
	DAT_EVENT event;

	bench_add(bench, 1);
	bench_give_many(bench, 0, 4);
	dt_ok(dat_srq_set_lw(bench->srq, 4));
	dt_ok(dat_srq_resize(bench->srq, 30));
	dt_ok(dat_srq_resize(bench->srq, 4));
	dt_no_event(bench->ia.async);
	bench_send(bench, 0, 1);
	bench_receive(bench, 0, 1);
	event = dt_event(bench->ia.async);
	assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, bench->srq);
}

/* SRQ-RESIZE-06 SRQ-RESIZE-07 */
static void srq_resize__shrink_or_same__between_request_and_old(void **state)
{
	static const DAT_COUNT sizes[] = {16, 15, 15, 9, 8, 3, 3, 1, 1};
	struct bench *bench = *state;

	bench_give(bench, 1);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		const DAT_COUNT old = srq_query(bench->srq).max_recv_dtos;
		DAT_COUNT now;

		dt_ok(dat_srq_resize(bench->srq, sizes[i]));
		now = srq_query(bench->srq).max_recv_dtos;
		assert_true(now >= sizes[i] && now <= old);
		if (sizes[i] == old)
			assert_int_equal(now, old);
		srq_counts(bench->srq, 1, 1);
		for (DAT_COUNT j = 1; j < now; j++)
			dt_ok(srq_post_empty(bench->srq, 1));
		dt_fails_with(srq_post_empty(bench->srq, 1), DAT_INSUFFICIENT_RESOURCES,
			      DAT_RESOURCE_SRQ);
		dt_ok(dat_srq_free(bench->srq)); /* the same again, with one buffer */
		bench->srq = srq_make(&bench->ia, now, 4);
		bench_give(bench, 1);
	}
}

/* SRQ-RESIZE-08 */
static void srq_resize__impossible_size__invalid_parameter(void **state)
{
	struct bench *bench = *state;
	const DAT_COUNT max = bench->ia.attr.max_recv_per_srq;

	resize_refused(bench, 0, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	resize_refused(bench, -1, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	resize_refused(bench, INT32_MIN, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	resize_refused(bench, max + 1, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	resize_refused(bench, INT32_MAX, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	bench_give(bench, 1);
	resize_refused(bench, 0, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	dt_ok(dat_srq_resize(bench->srq, max));
	assert_int_equal(srq_query(bench->srq).max_recv_dtos, max);
}

/* SRQ-RESIZE-01 SRQ-RESIZE-02: segments of the buffers are kept too */
static void srq_resize__buffers_of_several_segments__kept(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	for (uint64_t i = 0; i < 5; i++) {
		DAT_LMR_TRIPLET iov[2] = {dt_seg(&bench->y, i * SRQ_SLOT, 3),
					  dt_seg(&bench->y, i * SRQ_SLOT + 3, 5)};

		dt_ok(dat_srq_post_recv(bench->srq, 2, iov, dt_cookie(i)));
		memset(iov, 0, sizeof(iov));
	}
	dt_ok(dat_srq_resize(bench->srq, 100));
	assert_int_equal(srq_query(bench->srq).max_recv_iov, 4);
	dt_ok(dat_srq_resize(bench->srq, 5));
	for (uint64_t i = 0; i < 5; i++) {
		bench_send(bench, 0, 0x0102030405060708u + i);
		bench_receive(bench, 0, 0x0102030405060708u + i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(srq_query__life_of_a_buffer__counts_of_the_specification),
		bench_test(srq_query__events_lost_or_waited_for__entries_free),
		bench_test(srq_query__each_mask__fields_filled),
		bench_test(srq_query__bad_mask_or_pointer__invalid_parameter),
		bench_test(srq_query__low_watermark__last_value),
		bench_test(srq_resize__grow_with_buffers__all_used),
		bench_test(srq_resize__below_outstanding__invalid_state),
		bench_test(srq_resize__below_outstanding_with_one_taken__invalid_state),
		bench_test(srq_resize__about_the_low_watermark__only_below_refused),
		bench_test(srq_resize__armed__event_as_before),
		bench_test(srq_resize__shrink_or_same__between_request_and_old),
		bench_test(srq_resize__impossible_size__invalid_parameter),
		bench_test(srq_resize__buffers_of_several_segments__kept),
	};

	return cmocka_run_group_tests_name("srq_query", tests, NULL, NULL);
}
