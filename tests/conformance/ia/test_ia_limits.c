// SPDX-License-Identifier: BSD-2-Clause
/*
 * Limits: each one that dat_ia_query reports can be reached and not exceeded. Existing objects keep
 * working, and a freed object can be created again.
 */
#include "conf.h"

#include <stdlib.h>

/* --- numbers of objects --- */

typedef DAT_RETURN (*make_fn)(struct dt_ia *ia, DAT_HANDLE *handle_out);
typedef DAT_RETURN (*unmake_fn)(DAT_HANDLE handle);

static DAT_RETURN make_pz(struct dt_ia *ia, DAT_HANDLE *handle_out)
{
	return dat_pz_create(ia->ia, handle_out);
}

static DAT_RETURN make_evd(struct dt_ia *ia, DAT_HANDLE *handle_out)
{
	return dat_evd_create(ia->ia, 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, handle_out);
}

static DAT_RETURN make_ep(struct dt_ia *ia, DAT_HANDLE *handle_out)
{
	return dat_ep_create(ia->ia, ia->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
			     NULL, handle_out);
}

static DAT_RETURN make_lmr(struct dt_ia *ia, DAT_HANDLE *handle_out)
{
	static unsigned char bytes[64];
	const DAT_REGION_DESCRIPTION region = {.for_va = bytes};

	return dat_lmr_create(ia->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(bytes), ia->pz,
			      DAT_MEM_PRIV_ALL_FLAG, handle_out, NULL, NULL, NULL, NULL);
}

/* Creates objects until the limit refuses one; `there` of them exist already. */
static void check_limit(struct dt_ia *ia, DAT_COUNT max, DAT_COUNT there, make_fn make,
			unmake_fn unmake)
{
	const size_t count = (size_t)(max - there);
	DAT_HANDLE *handle = calloc(count, sizeof(*handle));
	DAT_HANDLE one_more = DAT_HANDLE_NULL;

	assert_true(max > there);
	assert_non_null(handle);
	for (size_t i = 0; i < count; i++)
		dt_ok(make(ia, &handle[i]));
	for (int i = 0; i < 3; i++)
		dt_fails(make(ia, &one_more), DAT_INSUFFICIENT_RESOURCES);
	dt_ok(unmake(handle[count / 2]));
	dt_ok(make(ia, &handle[count / 2]));
	dt_fails(make(ia, &one_more), DAT_INSUFFICIENT_RESOURCES);
	for (size_t i = 0; i < count; i++)
		dt_ok(unmake(handle[i]));
	dt_ok(make(ia, &one_more));
	dt_ok(unmake(one_more));
	free(handle);
}

/* IA-QUERY-28 PZ-CREATE-07 */
static void pz_create__beyond_max_pzs__insufficient_resources(void **state)
{
	struct dt_ia *ia = *state;

	check_limit(ia, ia->attr.max_pzs, 1, make_pz, dat_pz_free);
}

/* IA-QUERY-22 EVD-CREATE-24 */
static void evd_create__beyond_max_evds__insufficient_resources(void **state)
{
	struct dt_ia *ia = *state;

	check_limit(ia, ia->attr.max_evds, 1, make_evd, dat_evd_free);
}

/* IA-QUERY-18 EP-CREATE-69 */
static void ep_create__beyond_max_eps__insufficient_resources(void **state)
{
	struct dt_ia *ia = *state;

	check_limit(ia, ia->attr.max_eps, 0, make_ep, dat_ep_free);
}

/* IA-QUERY-25 LMR-CREATE-58 */
static void lmr_create__beyond_max_lmrs__insufficient_resources(void **state)
{
	struct dt_ia *ia = *state;

	check_limit(ia, ia->attr.max_lmrs, 0, make_lmr, dat_lmr_free);
}

/* --- queue lengths --- */

/* IA-QUERY-23 EVD-CREATE-12 EVD-CREATE-13 */
static void evd_create__max_evd_qlen__is_the_longest(void **state)
{
	struct dt_ia *ia = *state;
	const DAT_COUNT max = ia->attr.max_evd_qlen;
	DAT_EVD_HANDLE evd;
	DAT_EVD_PARAM param;

	assert_true(max > 0);
	evd = dt_evd_create(ia, max, DAT_EVD_SOFTWARE_FLAG);
	dt_ok(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	assert_true(param.evd_qlen >= max);
	dt_ok(dat_evd_free(evd));
	if (max < INT32_MAX)
		dt_fails_with(dat_evd_create(ia->ia, max + 1, DAT_HANDLE_NULL,
					     DAT_EVD_SOFTWARE_FLAG, &evd),
			      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
}

/* Creates an endpoint with these attributes, which the adapter's limits may refuse. */
static DAT_RETURN try_attr(struct dt_ia *ia, const DAT_EP_ATTR *attr)
{
	const DAT_EVD_HANDLE evd = dt_evd_create(ia, 16, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE ep;
	const DAT_RETURN ret = dat_ep_create(ia->ia, ia->pz, evd, evd, DAT_HANDLE_NULL, attr, &ep);

	if (ret == DAT_SUCCESS)
		dt_ok(dat_ep_free(ep));
	dt_ok(dat_evd_free(evd));
	return ret;
}

/* IA-QUERY-19 IA-QUERY-20 IA-QUERY-21 IA-QUERY-24 IA-QUERY-33 EP-CREATE-50 EP-CREATE-51
 * EP-CREATE-52 EP-CREATE-53 EP-CREATE-54 EP-CREATE-55 EP-CREATE-56 EP-CREATE-57 */
static void ep_create__counts_at_the_limit__accepted_and_no_more(void **state)
{
	struct dt_ia *ia = *state;
	const DAT_IA_ATTR *limit = &ia->attr;
	DAT_EP_ATTR attr;
	const struct {
		DAT_COUNT *count;
		DAT_COUNT max;
	} counts[] = {
		{&attr.max_recv_dtos, limit->max_dto_per_ep},
		{&attr.max_request_dtos, limit->max_dto_per_ep},
		{&attr.max_recv_iov, limit->max_iov_segments_per_dto},
		{&attr.max_request_iov, limit->max_iov_segments_per_dto},
		{&attr.max_rdma_read_in, limit->max_rdma_read_per_ep_in},
		{&attr.max_rdma_read_out, limit->max_rdma_read_per_ep_out},
		{&attr.max_rdma_read_iov, limit->max_iov_segments_per_rdma_read},
		{&attr.max_rdma_write_iov, limit->max_iov_segments_per_rdma_write},
	};

	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		assert_true(counts[i].max > 0);
		dt_ep_attr(ia, &attr);
		*counts[i].count = counts[i].max;
		dt_ok(try_attr(ia, &attr));
		if (counts[i].max == INT32_MAX)
			continue;
		*counts[i].count = counts[i].max + 1;
		dt_fails_with(try_attr(ia, &attr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	}
}

/* IA-QUERY-29 IA-QUERY-30 EP-CREATE-48 EP-CREATE-49 EP-CREATE-82 COMPAT-10 */
static void ep_create__sizes_at_the_limit__accepted_and_no_more(void **state)
{
	struct dt_ia *ia = *state;
	DAT_EP_ATTR attr;
	const struct {
		DAT_VLEN *size;
		DAT_VLEN max;
	} sizes[] = {
		{&attr.max_message_size, ia->attr.max_message_size},
		{&attr.max_rdma_size, ia->attr.max_rdma_size},
	};

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		assert_true(sizes[i].max >= 2147483648u);
		dt_ep_attr(ia, &attr);
		*sizes[i].size = sizes[i].max;
		dt_ok(try_attr(ia, &attr));
		if (sizes[i].max == UINT64_MAX)
			continue;
		*sizes[i].size = sizes[i].max + 1;
		dt_fails_with(try_attr(ia, &attr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	}
	assert_true(ia->attr.max_dto_per_ep >= 20000);
}

/* IA-QUERY-19 EP-RECV-30 EP-RECV-31 DTO-112 */
static void ep_post_recv__max_dto_per_ep__that_many_and_no_more(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_ep ep;
	DAT_EP_ATTR attr;

	dt_ep_attr(ia, &attr);
	attr.max_recv_dtos = ia->attr.max_dto_per_ep;
	dt_ep_create(ia, ia->pz, &attr, &ep);
	for (DAT_COUNT i = 0; i < attr.max_recv_dtos; i++)
		dt_ok(dat_ep_post_recv(ep.ep, 0, NULL, dt_cookie(0), 0));
	dt_fails_with(dat_ep_post_recv(ep.ep, 0, NULL, dt_cookie(0), 0), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_TEP);
	dt_ep_free(&ep);
}

/* --- vectors and addresses --- */

/* IA-QUERY-24 IA-QUERY-33 EP-SEND-08 */
static void post__longest_vectors__data_arrives(void **state)
{
	struct dt_ia *ia = *state;
	const DAT_IA_ATTR *limit = &ia->attr;
	const DAT_COUNT max = limit->max_iov_segments_per_dto;
	const size_t len = (size_t)max * 3;
	DAT_LMR_TRIPLET *iov = calloc((size_t)max, sizeof(*iov));
	struct dt_buf from, to;
	struct dt_pair pair;
	DAT_EP_ATTR attr;

	dt_ep_attr(ia, &attr);
	attr.max_recv_iov = max;
	attr.max_request_iov = max;
	attr.max_rdma_write_iov = limit->max_iov_segments_per_rdma_write;
	attr.max_rdma_read_iov = limit->max_iov_segments_per_rdma_read;
	dt_pair_open_with(&pair, &attr, &attr);
	dt_buf_create(&pair.ia, pair.ia.pz, &from, len, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&pair.ia, pair.ia.pz, &to, len, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(from.p, len, 24);
	for (DAT_COUNT i = 0; i < max; i++)
		iov[i] = dt_seg(&to, (size_t)i * 3, 3);
	dt_ok(dat_ep_post_recv(pair.b.ep, max, iov, dt_cookie(1), 0));
	for (DAT_COUNT i = 0; i < max; i++)
		iov[i] = dt_seg(&from, (size_t)i * 3, 3);
	dt_ok(dat_ep_post_send(pair.a.ep, max, iov, dt_cookie(2), 0));
	dt_expect_dto(pair.b.recv, pair.b.ep, 1, DAT_DTO_SUCCESS, len);
	dt_expect_dto(pair.a.request, pair.a.ep, 2, DAT_DTO_SUCCESS, len);
	dt_check_pattern(to.p, len, 24);
	dt_buf_free(&from);
	dt_buf_free(&to);
	dt_pair_close(&pair);
	free(iov);
}

/* IA-QUERY-27 IA-QUERY-32 */
static void ia_query__highest_addresses__cover_the_process(void **state)
{
	struct dt_ia *ia = *state;
	int on_stack;

	assert_true(ia->attr.max_lmr_virtual_address >= 0x00007fffffffefffull);
	assert_true(ia->attr.max_rmr_target_address >= 0x00007fffffffefffull);
	assert_true(ia->attr.max_lmr_virtual_address >= (uintptr_t)&on_stack);
}

/* IA-QUERY-26 IA-QUERY-31 */
static void ia_query__other_limits__positive(void **state)
{
	struct dt_ia *ia = *state;

	assert_true(ia->attr.max_lmr_block_size >= 1ull << 30);
	assert_true(ia->attr.max_rmrs > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_ia_test(pz_create__beyond_max_pzs__insufficient_resources),
		dt_ia_test(evd_create__beyond_max_evds__insufficient_resources),
		dt_ia_test(ep_create__beyond_max_eps__insufficient_resources),
		dt_ia_test(lmr_create__beyond_max_lmrs__insufficient_resources),
		dt_ia_test(evd_create__max_evd_qlen__is_the_longest),
		dt_ia_test(ep_create__counts_at_the_limit__accepted_and_no_more),
		dt_ia_test(ep_create__sizes_at_the_limit__accepted_and_no_more),
		dt_ia_test(ep_post_recv__max_dto_per_ep__that_many_and_no_more),
		dt_ia_test(post__longest_vectors__data_arrives),
		dt_ia_test(ia_query__highest_addresses__cover_the_process),
		dt_ia_test(ia_query__other_limits__positive),
	};

	return cmocka_run_group_tests_name("ia limits", tests, NULL, NULL);
}
