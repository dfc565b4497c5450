// SPDX-License-Identifier: BSD-2-Clause
/*
 * The local segments of a post: which memory each of the four kinds refuses, with which code, and
 * what it ignores. The last IDs of a row of four are those of Send, Receive, RDMA Read and RDMA
 * Write.
 */
#include "refused.h"

/* EP-SEND-28 EP-RECV-25 EP-RDMAR-28 EP-RDMAW-33 LMR-USE-01 */
static void post__segment_outside_its_region__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	struct dt_buf part;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p + 1000, 1000, DAT_MEM_PRIV_ALL_FLAG, &part);
	const DAT_VADDR start = (uintptr_t)part.p;
	const struct {
		DAT_VADDR address;
		DAT_VLEN len;
	} bad[] = {
		{start - 1, 1},
		{start - 1, 10},
		{start + 1000, 1},
		{start + 999, 2},
		{start, 1001},
		{start - 1, 1002},
		{0, 1},
		{UINT64_MAX, 1},
		{start + 10, UINT64_MAX},
		{start, INT64_MAX},
		{start, UINT64_MAX - start + 1},
		{start + 500, UINT64_MAX - 499},
	};
	const DAT_RMR_TRIPLET remote = target(rig, RIG_LEN);

	for (int kind = 0; kind < DTO_KINDS; kind++) {
		for (size_t i = 0; i < COUNT_OF(bad); i++) {
			DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 1), dt_seg(&part, 0, 1)};
			DAT_RMR_TRIPLET small = remote;

			/* an RDMA Read must not be refused for its length */
			small.segment_length = kind == DTO_READ ? 1 : UINT64_MAX;
			iov[1].virtual_address = bad[i].address;
			iov[1].segment_length = bad[i].len;
			dto_refused(rig, kind, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 2,
				    iov, &small, 0);
			dto_refused(rig, kind, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 1,
				    iov + 1, &small, 0);
		}
	}
	check_y_unchanged(rig);
	rig_works(rig);
}

/* EP-SEND-28 DTO-84: the first and the last byte belong to the region */
static void post__segment_at_the_borders__moves_data(void **state)
{
	struct rig *rig = *state;
	struct dt_buf part;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p + 1001, 999, DAT_MEM_PRIV_ALL_FLAG, &part);
	DAT_LMR_TRIPLET iov[3] = {dt_seg(&part, 0, 1), dt_seg(&part, 998, 1),
				  dt_seg(&part, 0, 999)};

	post_recv(&rig->b, dt_seg(&rig->y, 0, RIG_LEN), 1);
	dt_ok(dto_post(DTO_SEND, rig->a.ep, 3, iov, 2, NULL, 0));
	expect_received(&rig->b, 1, 1001);
	expect_sent(&rig->a, 2, 1001);
	assert_memory_equal(rig->y.p, rig->x.p + 1001, 1);
	assert_memory_equal(rig->y.p + 1, rig->x.p + 1999, 1);
	assert_memory_equal(rig->y.p + 2, rig->x.p + 1001, 999);
}

/* EP-SEND-29 EP-RECV-26 EP-RDMAR-29 EP-RDMAW-37 DTO-85 LMR-USE-02 LMR-CREATE-51 PZ-CREATE-03 */
static void post__region_of_another_zone__protection_violation(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_TRIPLET remote = target(rig, 16);
	DAT_PZ_HANDLE pz;
	struct dt_buf other;

	dt_ok(dat_pz_create(rig->ia.ia, &pz));
	dt_lmr_create(&rig->ia, pz, rig->x.p, 4096, DAT_MEM_PRIV_ALL_FLAG, &other);
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 8), dt_seg(&other, 8, 8)};

	for (int kind = 0; kind < DTO_KINDS; kind++) {
		dto_refused(rig, kind, dto_bad_zone(kind), 2, iov, &remote, 0);
		dto_refused(rig, kind, dto_bad_zone(kind), 1, iov + 1, &remote, 0);
	}
	check_y_unchanged(rig);
	rig_works(rig);
}

/* EP-RECV-27: a Receive may be posted before the endpoint has a zone */
static void post_recv__endpoint_without_zone__accepted(void **state)
{
	struct rig *rig = *state;
	DAT_EP_PARAM param = {.pz_handle = rig->ia.pz};

	dt_ep_create(&rig->ia, DAT_HANDLE_NULL, &rig->attr_b, &rig->b);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 1);
	dt_no_event(rig->b.recv);
	dt_ok(dat_ep_modify(rig->b.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 2, 0);
	expect_received(&rig->b, 1, 8);
	assert_memory_equal(rig->y.p, rig->x.p, 8);
}

/* EP-SEND-30 EP-RECV-28 EP-RDMAR-30 EP-RDMAW-39 DTO-95 LMR-FREE-06 */
static void post__dead_context__privileges_violation(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_TRIPLET remote = target(rig, 16);
	struct dt_buf gone;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, 4096, DAT_MEM_PRIV_ALL_FLAG, &gone);
	dt_ok(dat_lmr_free(gone.lmr));
	const DAT_LMR_CONTEXT bad[] = {gone.lkey, 0, UINT32_MAX, 0x7fffffff,
				       rig->x.lkey ^ 0x80000000};

	for (int kind = 0; kind < DTO_KINDS; kind++) {
		for (size_t i = 0; i < COUNT_OF(bad); i++) {
			DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 8), dt_seg(&rig->x, 8, 8)};

			if (bad[i] == rig->x.lkey || bad[i] == rig->y.lkey)
				continue;
			iov[1].lmr_context = bad[i];
			dto_refused(rig, kind, dto_bad_privilege(kind), 2, iov, &remote, 0);
			dto_refused(rig, kind, dto_bad_privilege(kind), 1, iov + 1, &remote, 0);
			iov[0].lmr_context = bad[i];
			iov[1].lmr_context = rig->x.lkey;
			dto_refused(rig, kind, dto_bad_privilege(kind), 2, iov, &remote, 0);
		}
	}
	check_y_unchanged(rig);
	rig_works(rig);
}

/* EP-SEND-31 EP-RECV-29 EP-RDMAR-31 EP-RDMAW-40 DTO-86 DTO-87 LMR-USE-04 LMR-USE-05 */
static void post__privilege_missing__privileges_violation(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_TRIPLET remote = target(rig, 16);
	struct dt_buf no_read, no_write, none;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, 4096,
		      DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &no_read);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, 4096,
		      DAT_MEM_PRIV_ALL_FLAG & ~DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &no_write);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, 4096, DAT_MEM_PRIV_NONE_FLAG, &none);
	for (int kind = 0; kind < DTO_KINDS; kind++) {
		DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 8),
					  dt_seg(dto_is_source(kind) ? &no_read : &no_write, 8, 8)};
		DAT_LMR_TRIPLET without = dt_seg(&none, 8, 8);

		dto_refused(rig, kind, dto_bad_privilege(kind), 2, iov, &remote, 0);
		dto_refused(rig, kind, dto_bad_privilege(kind), 1, iov + 1, &remote, 0);
		dto_refused(rig, kind, dto_bad_privilege(kind), 1, &without, &remote, 0);
	}
	check_y_unchanged(rig);
	rig_works(rig);
}

/* EP-RDMAR-32 EP-RECV-29 DTO-86 DTO-87: only the one local privilege is required */
static void post__only_the_needed_privilege__moves_data(void **state)
{
	struct rig *rig = *state;
	struct dt_buf read_only, write_only;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, 4096, DAT_MEM_PRIV_LOCAL_READ_FLAG,
		      &read_only);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p + 8192, 4096, DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
		      &write_only);
	post_recv(&rig->a, dt_seg(&write_only, 0, 50), 1);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 50), 2);
	post_send(&rig->b, dt_seg(&rig->y, 1000, 50), 3, 0);
	post_send(&rig->a, dt_seg(&read_only, 0, 50), 4, 0);
	post_write(&rig->a, dt_seg(&read_only, 50, 50), dt_rseg(&rig->y, 50, 50), 5, 0);
	post_read(&rig->a, dt_seg(&write_only, 50, 50), dt_rseg(&rig->y, 50, 50), 6, 0);
	expect_received(&rig->a, 1, 50);
	expect_received(&rig->b, 2, 50);
	for (uint64_t cookie = 4; cookie <= 6; cookie++)
		expect_sent(&rig->a, cookie, 50);
	dt_check_bytes(rig->x.p + 8192, 50, RIG_FILL);
	assert_memory_equal(rig->y.p, rig->x.p, 100);
	assert_memory_equal(rig->x.p + 8192 + 50, rig->x.p + 50, 50);
	assert_int_equal(rig->ia.provider.rdma_write_for_rdma_read_req, DAT_FALSE);
}

/* --- empty segments --- */

/* EP-SEND-04 EP-RECV-04 EP-RDMAR-06 EP-RDMAW-07 LMR-USE-09 */
static void post__empty_segments_of_garbage__ignored(void **state)
{
	struct rig *rig = *state;
	const DAT_LMR_TRIPLET garbage = {.lmr_context = 0xdeadbeef,
					 .pad = 0xffffffff,
					 .virtual_address = 0xdeadbeefdeadbeef,
					 .segment_length = 0};
	DAT_LMR_TRIPLET from[4] = {garbage, dt_seg(&rig->x, 0, 10), garbage,
				   dt_seg(&rig->x, 10, 5)};
	DAT_LMR_TRIPLET into[4] = {dt_seg(&rig->y, 0, 7), garbage, dt_seg(&rig->y, 7, 8), garbage};
	DAT_LMR_TRIPLET back[4] = {garbage, garbage, dt_seg(&rig->x, 1000, 15), garbage};
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 100, 15);

	dt_ok(dto_post(DTO_RECV, rig->b.ep, 4, into, 1, NULL, 0));
	dt_ok(dto_post(DTO_SEND, rig->a.ep, 4, from, 2, NULL, 0));
	dt_ok(dto_post(DTO_WRITE, rig->a.ep, 4, from, 3, &remote, 0));
	dt_ok(dto_post(DTO_READ, rig->a.ep, 4, back, 4, &remote, 0));
	expect_received(&rig->b, 1, 15);
	for (uint64_t cookie = 2; cookie <= 4; cookie++)
		expect_sent(&rig->a, cookie, 15);
	assert_memory_equal(rig->y.p, rig->x.p, 15);
	assert_memory_equal(rig->y.p + 100, rig->x.p, 15);
	assert_memory_equal(rig->x.p + 1000, rig->x.p, 15);
	dt_check_bytes(rig->y.p + 15, 85, RIG_FILL);
}

/* EP-RDMAW-05: no kind of request reads memory after the array */
static void post__garbage_after_the_array__ignored(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 10)};
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 10);

	memset(&iov[1], 0xff, sizeof(iov[1]));
	dt_ok(dto_post(DTO_WRITE, rig->a.ep, 1, iov, 1, &remote, 0));
	expect_sent(&rig->a, 1, 10);
	assert_memory_equal(rig->y.p, rig->x.p, 10);
	dt_check_bytes(rig->y.p + 10, RIG_LEN - 10, RIG_FILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post__segment_outside_its_region__invalid_parameter),
		rig_test(post__segment_at_the_borders__moves_data),
		rig_test(post__region_of_another_zone__protection_violation),
		rig_test_bare(post_recv__endpoint_without_zone__accepted),
		rig_test(post__dead_context__privileges_violation),
		rig_test(post__privilege_missing__privileges_violation),
		rig_test(post__only_the_needed_privilege__moves_data),
		rig_test(post__empty_segments_of_garbage__ignored),
		rig_test(post__garbage_after_the_array__ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
