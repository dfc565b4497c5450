// SPDX-License-Identifier: BSD-2-Clause
/* dat_srq_create: the new queue, its sizes and limits, and everything that is refused. */
#include <stdlib.h>

#include "srq_util.h"

static DAT_RETURN create(struct dt_ia *ia, DAT_COUNT dtos, DAT_COUNT iov, DAT_COUNT watermark)
{
	DAT_SRQ_ATTR attr = {dtos, iov, watermark};
	DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
	DAT_RETURN ret = dat_srq_create(ia->ia, ia->pz, &attr, &srq);

	if (ret == DAT_SUCCESS)
		dt_ok(dat_srq_free(srq));
	return ret;
}

/* SRQ-CREATE-01 SRQ-CREATE-03 SRQ-CREATE-04 SRQ-CREATE-09 SRQ-CREATE-11 SRQ-GEN-04 SRQ-QUERY-01
 * SRQ-QUERY-02 SRQ-QUERY-05 SRQ-USE-15 HANDLE-TYPE-11 */
static void srq_create__plain__empty_and_operational(void **state)
{
	struct bench *bench = *state;
	DAT_SRQ_PARAM param = srq_query(bench->srq);
	DAT_CONTEXT context = {.as_64 = 5};
	DAT_HANDLE_TYPE type;

	assert_int_equal(DAT_SRQ_STATE_OPERATIONAL, 0);
	assert_int_equal(DAT_SRQ_STATE_ERROR, 1);
	assert_int_equal(DAT_SRQ_OTHER_ERROR, 1);
	assert_int_equal(DAT_SRQ_LW_DEFAULT, 0);
	assert_ptr_equal(param.ia_handle, bench->ia.ia);
	assert_ptr_equal(param.pz_handle, bench->ia.pz);
	assert_int_equal(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
	assert_true(param.max_recv_dtos >= 16);
	assert_true(param.max_recv_iov >= 4);
	assert_int_equal(param.low_watermark, 0);
	assert_int_equal(param.available_dto_count, 0);
	assert_int_equal(param.outstanding_dto_count, 0);
	dt_ok(dat_get_handle_type(bench->srq, &type));
	assert_int_equal(type, DAT_HANDLE_TYPE_SRQ);
	dt_ok(dat_get_consumer_context(bench->srq, &context));
	assert_true(context.as_64 == 0);
	dt_stays_empty(bench->ia.async);
}

/* SRQ-GEN-01 IA-QUERY-55 SRQ-QUERY-13 EP-WMARK-21 SRQ-LW-15 EP-CRSRQ-17 EP-RECVQ-14 */
static void ia_query__srq_attributes__all_supported(void **state)
{
	struct bench *bench = *state;
	/* a device does not show which buffers an endpoint holds, and has one zone for both */
	const DAT_COUNT watermarks = dt_is_verbs() ? 0x001 : 0x111;
	const DAT_BOOLEAN differ = dt_is_verbs() ? DAT_FALSE : DAT_TRUE;

	assert_int_equal(bench->ia.provider.srq_supported, DAT_TRUE);
	assert_int_equal(bench->ia.provider.srq_watermarks_supported, watermarks);
	assert_int_equal(bench->ia.provider.srq_ep_pz_difference_supported, differ);
	assert_int_equal(bench->ia.provider.srq_info_supported, 0x11);
	assert_int_equal(bench->ia.provider.ep_recv_info_supported, 0x11);
}

/* SRQ-CREATE-02 */
static void srq_free__new_queue__success(void **state)
{
	struct bench *bench = *state;

	dt_ok(dat_srq_free(bench->srq));
}

/* --- sizes --- */

/* SRQ-CREATE-06 SRQ-CREATE-07 SRQ-CREATE-08 SRQ-QUERY-04 SRQ-RECV-33 SRQ-RECV-37 */
static void srq_create__any_size__holds_what_the_query_says(void **state)
{
	static const DAT_COUNT sizes[][2] = {{1, 1}, {2, 3}, {7, 1}, {64, 5}, {1000, 2}};
	struct bench *bench = *state;

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		const DAT_SRQ_HANDLE srq = srq_make(&bench->ia, sizes[i][0], sizes[i][1]);
		const DAT_SRQ_PARAM param = srq_query(srq);
		DAT_LMR_TRIPLET iov[64];

		assert_true(param.max_recv_dtos >= sizes[i][0]);
		assert_true(param.max_recv_iov >= sizes[i][1] && param.max_recv_iov < 64);
		for (int j = 0; j < 64; j++)
			iov[j] = dt_seg(&bench->y, 8u * (size_t)j, 8);
		dt_fails_with(dat_srq_post_recv(srq, param.max_recv_iov + 1, iov, dt_cookie(0)),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		for (DAT_COUNT j = 0; j < param.max_recv_dtos; j++)
			dt_ok(dat_srq_post_recv(srq, param.max_recv_iov, iov, dt_cookie(1)));
		dt_fails_with(dat_srq_post_recv(srq, 1, iov, dt_cookie(2)),
			      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
		srq_counts(srq, param.max_recv_dtos, param.max_recv_dtos);
		dt_ok(dat_srq_free(srq));
	}
}

/* SRQ-CREATE-18 SRQ-CREATE-19 SRQ-CREATE-20 SRQ-CREATE-21 SRQ-GEN-05 IA-QUERY-33 */
static void srq_create__sizes_at_and_beyond_the_limits__as_announced(void **state)
{
	static const DAT_COUNT bad[] = {0, -1, INT32_MIN};
	struct bench *bench = *state;
	const DAT_COUNT dtos = bench->ia.attr.max_recv_per_srq;
	const DAT_COUNT iov = bench->ia.attr.max_iov_segments_per_dto;

	assert_true(dtos > 0 && iov > 0);
	dt_ok(create(&bench->ia, dtos, 1, 0));
	dt_ok(create(&bench->ia, 1, iov, 0));
	dt_fails_with(create(&bench->ia, dtos + 1, 1, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(create(&bench->ia, INT32_MAX, 1, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(create(&bench->ia, 1, iov + 1, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(create(&bench->ia, 1, INT32_MAX, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		dt_fails_with(create(&bench->ia, bad[i], 1, 0), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG3);
		dt_fails_with(create(&bench->ia, 1, bad[i], 0), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG3);
	}
}

/* SRQ-CREATE-10 */
static void srq_create__low_watermark__invalid_parameter(void **state)
{
	static const DAT_COUNT watermarks[] = {1, 8, 9, -1};
	struct bench *bench = *state;

	for (size_t i = 0; i < COUNT_OF(watermarks); i++)
		dt_fails_with(create(&bench->ia, 8, 1, watermarks[i]), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG3);
	dt_no_event(bench->ia.async);
}

/* SRQ-CREATE-22 SRQ-GEN-05 IA-QUERY-33 */
static void srq_create__more_than_max_srqs__insufficient_resources(void **state)
{
	struct bench *bench = *state;
	const DAT_COUNT max = bench->ia.attr.max_srqs;
	DAT_SRQ_HANDLE *srq = calloc((size_t)max, sizeof(*srq));

	assert_true(max > 0);
	assert_non_null(srq);
	for (DAT_COUNT i = 1; i < max; i++) /* the bench has one */
		srq[i] = srq_make(&bench->ia, 1, 1);
	dt_fails(create(&bench->ia, 1, 1, 0), DAT_INSUFFICIENT_RESOURCES);
	dt_ok(dat_srq_free(srq[max / 2]));
	srq[max / 2] = srq_make(&bench->ia, 1, 1);
	dt_fails(create(&bench->ia, 1, 1, 0), DAT_INSUFFICIENT_RESOURCES);
	for (DAT_COUNT i = 1; i < max; i++)
		dt_ok(dat_srq_free(srq[i]));
	free(srq);
}

/* --- arguments --- */

/* SRQ-CREATE-12 SRQ-CREATE-13 SRQ-CREATE-14 GEN-15 */
static void srq_create__bad_handles__invalid_handle(void **state)
{
	struct bench *bench = *state;
	DAT_SRQ_ATTR attr = {4, 1, 0};
	DAT_SRQ_HANDLE srq;
	struct conf_bad bad;
	struct dt_ia gone;
	DAT_IA_HANDLE ia;

	conf_bad_make(&bench->ia, &bad);
	for (size_t i = 0; i < CONF_BAD_COUNT; i++) {
		dt_fails_with(dat_srq_create(bench->ia.ia, bad.handle[i], &attr, &srq),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
		if (bad.handle[i] != bench->ia.ia)
			dt_fails_with(dat_srq_create(bad.handle[i], bench->ia.pz, &attr, &srq),
				      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	}
	dt_fails_with(dat_srq_create(bench->ia.ia, bench->srq, &attr, &srq), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_PZ);
	dt_fails_with(dat_srq_create(bench->srq, bench->ia.pz, &attr, &srq), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	dt_ia_open(&gone);
	ia = gone.ia;
	dt_ia_close(&gone);
	dt_fails_with(dat_srq_create(ia, bench->ia.pz, &attr, &srq), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
}

/* SRQ-CREATE-15 GEN-17 */
static void srq_create__zone_of_another_instance__invalid_handle(void **state)
{
	struct bench *bench = *state;
	DAT_SRQ_ATTR attr = {4, 1, 0};
	DAT_SRQ_HANDLE srq;
	struct dt_ia other;

	dt_ia_open(&other);
	dt_fails_with(dat_srq_create(bench->ia.ia, other.pz, &attr, &srq), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_PZ);
	dt_fails_with(dat_srq_create(other.ia, bench->ia.pz, &attr, &srq), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_PZ);
	dt_ia_close(&other); /* the refused calls use nothing */
}

/* SRQ-CREATE-16 SRQ-CREATE-17 */
static void srq_create__null_pointers__invalid_parameter(void **state)
{
	struct bench *bench = *state;
	DAT_SRQ_ATTR attr = {4, 1, 0};
	DAT_SRQ_HANDLE srq;

	dt_fails_with(dat_srq_create(bench->ia.ia, bench->ia.pz, NULL, &srq), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_fails_with(dat_srq_create(bench->ia.ia, bench->ia.pz, &attr, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
}

/* SRQ-CREATE-26 */
static void srq_create__attributes_overwritten__nothing_changes(void **state)
{
	struct bench *bench = *state;
	DAT_SRQ_ATTR attr = {4, 2, 0};
	DAT_SRQ_PARAM before, after;
	DAT_SRQ_HANDLE srq;

	dt_ok(dat_srq_create(bench->ia.ia, bench->ia.pz, &attr, &srq));
	assert_int_equal(attr.max_recv_dtos, 4);
	assert_int_equal(attr.max_recv_iov, 2);
	before = srq_query(srq);
	memset(&attr, 0xff, sizeof(attr));
	after = srq_query(srq);
	assert_int_equal(after.max_recv_dtos, before.max_recv_dtos);
	assert_int_equal(after.max_recv_iov, before.max_recv_iov);
	assert_int_equal(after.low_watermark, 0);
	for (uint64_t i = 0; i < 4; i++)
		dt_ok(srq_post_empty(srq, i));
	dt_ok(dat_srq_free(srq));
}

/* SRQ-CREATE-24 PZ-FREE-05 SRQ-FREE-06 */
static void pz_free__zone_of_an_srq__invalid_state(void **state)
{
	struct bench *bench = *state;
	DAT_SRQ_ATTR attr = {4, 1, 0};
	DAT_SRQ_HANDLE first, second;
	DAT_PZ_HANDLE pz;

	dt_ok(dat_pz_create(bench->ia.ia, &pz));
	dt_ok(dat_srq_create(bench->ia.ia, pz, &attr, &first));
	dt_ok(dat_srq_create(bench->ia.ia, pz, &attr, &second));
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	dt_ok(dat_srq_free(first));
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	assert_ptr_equal(srq_query(second).pz_handle, pz);
	dt_ok(dat_srq_free(second));
	/* refused calls leave it unused */
	attr.max_recv_dtos = 0;
	dt_fails_with(dat_srq_create(bench->ia.ia, pz, &attr, &first), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_ok(dat_pz_free(pz));
}

/* --- more than one --- */

/* SRQ-CREATE-25 */
static void srq_create__several__independent(void **state)
{
	struct bench *bench = *state;
	const DAT_SRQ_HANDLE first = bench->srq;
	const DAT_SRQ_HANDLE second = srq_make(&bench->ia, 16, 4);

	bench_add(bench, 1);
	bench->srq = second;
	bench_add(bench, 1);
	bench_give(bench, 20); /* to the second */
	/* DTO-104: over iWARP the message cannot wait */
	if (!dt_is_iwarp())
		bench_send(bench, 0, 111);
	bench_send(bench, 1, 222);
	assert_true(bench_receive(bench, 1, 222) == 20);
	dt_stays_empty(bench->to[0].recv); /* nothing on the first */
	srq_counts(first, 0, 0);
	srq_counts(second, 0, 0);
	bench->srq = first;
	bench_give(bench, 10);
	if (dt_is_iwarp())
		bench_send(bench, 0, 111);
	assert_true(bench_receive(bench, 0, 111) == 10);
	srq_counts(second, 0, 0);
}

static void *create_and_free(void *arg)
{
	struct bench *bench = arg;
	DAT_SRQ_ATTR attr = {4, 2, 0};
	DAT_LMR_TRIPLET seg = dt_seg(&bench->y, 0, 8);
	DAT_SRQ_HANDLE srq;

	for (int i = 0; i < 300; i++) {
		conf_try(dat_srq_create(bench->ia.ia, bench->ia.pz, &attr, &srq));
		conf_try(dat_srq_post_recv(srq, 1, &seg, dt_cookie(1)));
		conf_try(dat_srq_free(srq));
	}
	return NULL;
}

/* SRQ-CREATE-27 */
static void srq_create__several_threads__success(void **state)
{
	struct bench *bench = *state;

	conf_parallel(create_and_free, bench);
	srq_counts(bench->srq, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(srq_create__plain__empty_and_operational),
		bench_test(ia_query__srq_attributes__all_supported),
		bench_test(srq_free__new_queue__success),
		bench_test(srq_create__any_size__holds_what_the_query_says),
		bench_test(srq_create__sizes_at_and_beyond_the_limits__as_announced),
		bench_test(srq_create__low_watermark__invalid_parameter),
		bench_test(srq_create__more_than_max_srqs__insufficient_resources),
		bench_test(srq_create__bad_handles__invalid_handle),
		bench_test(srq_create__zone_of_another_instance__invalid_handle),
		bench_test(srq_create__null_pointers__invalid_parameter),
		bench_test(srq_create__attributes_overwritten__nothing_changes),
		bench_test(pz_free__zone_of_an_srq__invalid_state),
		bench_test(srq_create__several__independent),
		bench_test(srq_create__several_threads__success),
	};

	return cmocka_run_group_tests_name("srq_create", tests, NULL, NULL);
}
