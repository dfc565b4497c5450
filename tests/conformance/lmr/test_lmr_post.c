// SPDX-License-Identifier: BSD-2-Clause
/*
 * Posts that a region forbids: bounds, zones and privileges. A refused post leaves the connection
 * working.
 */
#include "lmr_use.h"

/* Posts with `local` as the local buffer; the remote buffer is always valid. */
static DAT_RETURN post_source(struct dt_pair *pair, int kind, DAT_LMR_TRIPLET local,
			      const struct dt_buf *remote)
{
	if (kind == 0)
		return conf_post_send(pair, local, 1);
	return conf_post_write(pair, local, dt_rseg(remote, 0, remote->len), 1);
}

static DAT_RETURN post_sink(struct dt_pair *pair, int kind, DAT_LMR_TRIPLET local,
			    const struct dt_buf *remote)
{
	if (kind == 0)
		return conf_post_recv(pair, local, 1);
	return conf_post_read(pair, local, dt_rseg(remote, 0, 1), 1);
}

static void check_refused(struct dt_pair *pair, post_fn post, DAT_LMR_TRIPLET local,
			  const struct dt_buf *remote, DAT_RETURN code)
{
	for (int kind = 0; kind < 2; kind++)
		dt_returns(post(pair, kind, local, remote), code);
	dt_no_event(pair->a.request);
	dt_no_event(pair->b.recv);
}

/* LMR-USE-01 LMR-CREATE-50 EP-SEND-28 EP-RECV-25 EP-RDMAR-28 EP-RDMAW-33 */
static void post__segment_outside_its_region__invalid_parameter(void **state)
{
	struct dt_pair *pair = *state;
	unsigned char *p = dt_mem_alloc(3 * PAGE);
	struct dt_buf buf, remote;

	/* The bytes around the region are mapped, but not part of it. */
	dt_lmr_create(&pair->ia, pair->ia.pz, p + 11, PAGE, DAT_MEM_PRIV_ALL_FLAG, &buf);
	create(pair, &remote, DAT_MEM_PRIV_ALL_FLAG);
	const uintptr_t start = (uintptr_t)buf.p;
	const struct {
		DAT_VADDR address;
		DAT_VLEN len;
	} outside[] = {
		{start - 1, 1},
		{start - 1, 2},
		{start, PAGE + 1},
		{start + PAGE, 1},
		{start + PAGE - 1, 2},
		{start + 1, PAGE},
		{start, UINT64_MAX},
		{start + 1, UINT64_MAX},
		{start + 16, UINT64_MAX - start},
		{0, 1},
		{start + (1ull << 32), 8},
		{start, (1ull << 32) + 8},
	};

	for (size_t i = 0; i < COUNT_OF(outside); i++) {
		const DAT_LMR_TRIPLET seg = {.lmr_context = buf.lkey,
					     .virtual_address = outside[i].address,
					     .segment_length = outside[i].len};

		dt_fails_with(conf_post_send(pair, seg, 1), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG3);
		dt_fails_with(conf_post_recv(pair, seg, 1), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG3);
		dt_fails_with(conf_post_read(pair, seg, dt_rseg(&remote, 0, 1), 1),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	}
	for (size_t i = 0; i < 6; i++) {
		const DAT_LMR_TRIPLET seg = {.lmr_context = buf.lkey,
					     .virtual_address = outside[i].address,
					     .segment_length = outside[i].len};
		const DAT_RMR_TRIPLET to = {.rmr_context = remote.rkey,
					    .target_address = (uintptr_t)remote.p,
					    .segment_length = outside[i].len};

		dt_fails_with(conf_post_write(pair, seg, to, 1), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG3);
	}
	dt_no_event(pair->a.request);
	/* The first and the last byte are part of it. */
	dt_fill(buf.p, PAGE, 1);
	conf_write(pair, dt_seg(&buf, 0, PAGE), dt_rseg(&remote, 0, PAGE));
	dt_check_pattern(remote.p, PAGE, 1);
	conf_send(pair, dt_seg(&buf, PAGE - 1, 1), dt_seg(&buf, 0, 1));
	assert_int_equal(buf.p[0], buf.p[PAGE - 1]);
	dt_buf_free(&remote);
	dt_buf_free(&buf);
	dt_mem_free(p, 3 * PAGE);
}

/* LMR-USE-02 LMR-CREATE-51 PZ-CREATE-03 DTO-85 */
static void post__region_of_another_zone__protection_violation(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf foreign, buf;
	DAT_PZ_HANDLE other;

	dt_ok(dat_pz_create(pair->ia.ia, &other));
	dt_buf_create(&pair->ia, other, &foreign, PAGE, DAT_MEM_PRIV_ALL_FLAG);
	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	check_refused(pair, post_source, dt_seg(&foreign, 0, 64), &buf,
		      DT_ERROR(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ));
	check_refused(pair, post_sink, dt_seg(&foreign, 0, 64), &buf,
		      DT_ERROR(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE));
	check_works(pair, &buf);
	dt_buf_free(&foreign);
	dt_buf_free(&buf);
	dt_ok(dat_pz_free(other));
}

/* LMR-USE-04 LMR-CREATE-29 LMR-CREATE-30 DTO-86 */
static void post__source_without_local_read__privileges_violation(void **state)
{
	static const unsigned without[] = {DAT_MEM_PRIV_NONE_FLAG, DAT_MEM_PRIV_REMOTE_READ_FLAG,
					   DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
					   DAT_MEM_PRIV_REMOTE_READ_FLAG |
						   DAT_MEM_PRIV_REMOTE_WRITE_FLAG};
	struct dt_pair *pair = *state;
	struct dt_buf buf, closed;

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	for (size_t i = 0; i < COUNT_OF(without); i++) {
		create(pair, &closed, without[i]);
		check_refused(pair, post_source, dt_seg(&closed, 0, 64), &buf,
			      DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ));
		dt_buf_free(&closed);
	}
	check_works(pair, &buf);
	dt_buf_free(&buf);
}

/* LMR-USE-05 LMR-CREATE-29 LMR-CREATE-31 DTO-87 */
static void post__sink_without_local_write__privileges_violation(void **state)
{
	static const unsigned without[] = {DAT_MEM_PRIV_NONE_FLAG, DAT_MEM_PRIV_LOCAL_READ_FLAG,
					   DAT_MEM_PRIV_READ_FLAG, DAT_MEM_PRIV_REMOTE_WRITE_FLAG};
	struct dt_pair *pair = *state;
	struct dt_buf buf, closed;

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	for (size_t i = 0; i < COUNT_OF(without); i++) {
		create(pair, &closed, without[i]);
		check_refused(pair, post_sink, dt_seg(&closed, 0, 64), &buf,
			      DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE));
		dt_buf_free(&closed);
	}
	check_works(pair, &buf);
	dt_buf_free(&buf);
}

/* LMR-USE-04 LMR-USE-05 LMR-CREATE-44 */
static void post__context_of_no_region__privileges_violation(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf buf;

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	const DAT_LMR_CONTEXT wrong[] = {0, UINT32_MAX, buf.lkey ^ 0x80000000u, buf.lkey ^ 1u,
					 ~buf.lkey};

	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		DAT_LMR_TRIPLET seg = dt_seg(&buf, 0, 64);

		seg.lmr_context = wrong[i];
		check_refused(pair, post_source, seg, &buf,
			      DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ));
		check_refused(pair, post_sink, seg, &buf,
			      DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE));
	}
	check_works(pair, &buf);
	dt_buf_free(&buf);
}

/* LMR-USE-08 */
static void post_rdma__more_local_than_remote__length_error(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf buf, remote;

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	create(pair, &remote, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(buf.p, PAGE, 8);
	dt_fails(conf_post_write(pair, dt_seg(&buf, 0, 65), dt_rseg(&remote, 0, 64), 1),
		 DAT_LENGTH_ERROR);
	dt_fails(conf_post_write(pair, dt_seg(&buf, 0, 1), dt_rseg(&remote, 0, 0), 1),
		 DAT_LENGTH_ERROR);
	dt_stays_empty(pair->a.request);
	dt_check_bytes(remote.p, PAGE, 0);
	conf_write(pair, dt_seg(&buf, 0, 64), dt_rseg(&remote, 0, 64));
	dt_buf_free(&remote);
	dt_buf_free(&buf);
}

/* LMR-USE-09 LMR-USE-10 LMR-USE-11 LMR-USE-12 COMPAT-11 */
static void post__several_segments__joined_in_vector_order(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf buf, remote;
	unsigned char expected[33];

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	create(pair, &remote, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(buf.p, PAGE, 10);
	DAT_LMR_TRIPLET iov[4] = {
		dt_seg(&buf, 1001, 7),
		{.lmr_context = 0xdeadbeef, .virtual_address = 1, .segment_length = 0},
		dt_seg(&buf, 3, 21),
		dt_seg(&buf, 2049, 5),
	};
	DAT_RMR_TRIPLET to = dt_rseg(&remote, 17, 33);

	for (size_t i = 0; i < COUNT_OF(iov); i++)
		iov[i].pad = 0xa5a5a5a5;
	to.pad = 0x5a5a5a5a;
	memcpy(expected, buf.p + 1001, 7);
	memcpy(expected + 7, buf.p + 3, 21);
	memcpy(expected + 28, buf.p + 2049, 5);
	dt_ok(dat_ep_post_rdma_write(pair->a.ep, 4, iov, dt_cookie(1), &to,
				     DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(pair->a.request, pair->a.ep, 1, DAT_DTO_SUCCESS, 33);
	assert_memory_equal(remote.p + 17, expected, 33);
	dt_check_bytes(remote.p, 17, 0);
	dt_check_bytes(remote.p + 50, PAGE - 50, 0);
	dt_ok(conf_post_recv(pair, dt_seg(&remote, 101, 40), 2));
	dt_ok(dat_ep_post_send(pair->a.ep, 4, iov, dt_cookie(3), DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(pair->b.recv, pair->b.ep, 2, DAT_DTO_SUCCESS, 33);
	dt_expect_dto(pair->a.request, pair->a.ep, 3, DAT_DTO_SUCCESS, 33);
	assert_memory_equal(remote.p + 101, expected, 33);
	dt_buf_free(&remote);
	dt_buf_free(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_pair_test(post__segment_outside_its_region__invalid_parameter),
		dt_pair_test(post__region_of_another_zone__protection_violation),
		dt_pair_test(post__source_without_local_read__privileges_violation),
		dt_pair_test(post__sink_without_local_write__privileges_violation),
		dt_pair_test(post__context_of_no_region__privileges_violation),
		dt_pair_test(post_rdma__more_local_than_remote__length_error),
		dt_pair_test(post__several_segments__joined_in_vector_order),
	};

	return cmocka_run_group_tests_name("lmr post", tests, NULL, NULL);
}
