// SPDX-License-Identifier: BSD-2-Clause
/*
 * Protection of memory against remote DTOs: access that must be refused leaves all bytes unchanged
 * and breaks the connection. Freed regions are in test_dto_region_freed.c; what the posts
 * themselves refuse is in test_dto_refused.c.
 */
#include "dto_util.h"

/* --- remote access --- */

/*
 * RDMA of len bytes must fail at the target: nothing is moved and both sides break. Creates new
 * endpoints each time.
 */
static void refused_at_target(struct rig *rig, enum dto_kind kind, DAT_RMR_TRIPLET remote,
			      size_t len)
{
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, len);
	DAT_RETURN ret;

	remote.segment_length = len;
	rig_link(rig);
	post_recv(&rig->b, dt_seg(&rig->y, 60000, 8), 3);
	ret = dto_post(kind, rig->a.ep, 1, &seg, 1, &remote, 0);
	if (ret == DAT_SUCCESS) {
		expect_request(&rig->a, 1, DAT_DTO_ERR_REMOTE_ACCESS);
		expect_broken(rig);
		expect_recv_flushed(&rig->b, 3);
	} else if (DAT_GET_TYPE(ret) != DAT_PROTECTION_VIOLATION) {
		/* detected by the post: both codes are allowed, and the connection is kept */
		dt_fails(ret, DAT_PRIVILEGES_VIOLATION);
	}
	dt_check_bytes(rig->y.p, RIG_LEN, RIG_FILL);
	dt_check_pattern(rig->x.p, RIG_LEN, RIG_SEED);
	dt_no_event(rig->a.request);
	dt_no_event(rig->b.recv);
	dt_no_event(rig->b.request);
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);
}

static void both_refused_at_target(struct rig *rig, DAT_RMR_TRIPLET remote, size_t len)
{
	refused_at_target(rig, DTO_WRITE, remote, len);
	refused_at_target(rig, DTO_READ, remote, len);
}

/* DTO-58 DTO-65 DTO-90 DTO-94 CONN-EVT-35 CONN-EVT-36 CONN-EVT-40 CONN-EVT-50 EP-STATE-41 */
static void post_rdma__unknown_context__remote_access_breaks(void **state)
{
	struct rig *rig = *state;
	const uint32_t bad[] = {0, UINT32_MAX, 0x7fffffff, rig->y.rkey ^ 0x80000000};
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		if (bad[i] == rig->x.rkey || bad[i] == rig->y.rkey)
			continue;
		remote.rmr_context = bad[i];
		both_refused_at_target(rig, remote, 8);
	}
	both_refused_at_target(rig, remote, 20000);
}

/* DTO-58 DTO-91 DTO-94 CONN-EVT-36 */
static void post_rdma__outside_the_region__remote_access_breaks(void **state)
{
	struct rig *rig = *state;
	struct dt_buf part;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p + 8192, 4096, DAT_MEM_PRIV_ALL_FLAG, &part);
	const DAT_VADDR start = (uintptr_t)part.p;
	const struct {
		DAT_VADDR address;
		size_t len;
	} bad[] = {
		{start - 1, 1},
		{start - 1, 2},
		{start + 4096, 1},
		{start + 4095, 2},
		{start, 4097},
		{start - 10, 9000},
		{0, 8},
		{UINT64_MAX, 1},
		{UINT64_MAX - 7, 16},
		{start, 60000},
	};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		const DAT_RMR_TRIPLET remote = {.rmr_context = part.rkey,
						.target_address = bad[i].address};

		both_refused_at_target(rig, remote, bad[i].len);
	}
}

#define LONG_LEN 2000000u

/* DTO-91 DTO-94: long requests that start inside the region: not even their first part is moved */
static void post_rdma__long_and_leaves_the_region__moves_nothing(void **state)
{
	struct rig *rig = *state;
	struct dt_buf from, to, part;

	dt_buf_create(&rig->ia, rig->ia.pz, &from, LONG_LEN, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&rig->ia, rig->ia.pz, &to, LONG_LEN, DAT_MEM_PRIV_ALL_FLAG);
	dt_lmr_create(&rig->ia, rig->ia.pz, to.p, LONG_LEN - 10, DAT_MEM_PRIV_ALL_FLAG, &part);
	memset(from.p, 0x42, LONG_LEN);
	memset(to.p, RIG_FILL, LONG_LEN);
	for (int kind = DTO_READ; kind <= DTO_WRITE; kind++) {
		DAT_LMR_TRIPLET seg = dt_seg(&from, 0, LONG_LEN);
		const DAT_RMR_TRIPLET remote = dt_rseg(&part, 0, LONG_LEN);

		rig_link(rig);
		/* an allowed request first: then the path for long requests is in use */
		post_write(&rig->a, seg, dt_rseg(&to, 0, LONG_LEN), 2, 0);
		expect_sent(&rig->a, 2, LONG_LEN);
		dt_check_bytes(to.p, LONG_LEN, 0x42);
		memset(to.p, RIG_FILL, LONG_LEN);
		dt_ok(dto_post(kind, rig->a.ep, 1, &seg, 1, &remote, 0));
		expect_request(&rig->a, 1, DAT_DTO_ERR_REMOTE_ACCESS);
		expect_broken(rig);
		dt_check_bytes(from.p, LONG_LEN, 0x42);
		dt_check_bytes(to.p, LONG_LEN, RIG_FILL);
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
	}
	dt_ok(dat_lmr_free(part.lmr));
	dt_buf_free(&from);
	dt_buf_free(&to);
}

/* DTO-84: access up to the boundaries is allowed */
static void post_rdma__at_the_borders__moves_data(void **state)
{
	struct rig *rig = *state;
	struct dt_buf part;

	rig_link(rig);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p + 8193, 4095, DAT_MEM_PRIV_ALL_FLAG, &part);
	post_write(&rig->a, dt_seg(&rig->x, 0, 1), dt_rseg(&part, 0, 1), 1, 0);
	post_write(&rig->a, dt_seg(&rig->x, 1, 1), dt_rseg(&part, 4094, 1), 2, 0);
	expect_sent(&rig->a, 1, 1);
	expect_sent(&rig->a, 2, 1);
	assert_int_equal(part.p[0], rig->x.p[0]);
	assert_int_equal(part.p[4094], rig->x.p[1]);
	dt_check_bytes(part.p + 1, 4093, RIG_FILL);
	post_write(&rig->a, dt_seg(&rig->x, 0, 4095), dt_rseg(&part, 0, 4095), 3, 0);
	post_read(&rig->a, dt_seg(&rig->x, 20000, 4095), dt_rseg(&part, 0, 4095), 4, 0);
	expect_sent(&rig->a, 3, 4095);
	expect_sent(&rig->a, 4, 4095);
	assert_memory_equal(rig->x.p + 20000, rig->x.p, 4095);
	dt_check_bytes(rig->y.p, 8193, RIG_FILL);
	dt_check_bytes(rig->y.p + 8193 + 4095, 10000, RIG_FILL);
}

/* DTO-58 DTO-88 DTO-89 DTO-92 DTO-94 EP-RDMAR-34 EP-RDMAW-41 LMR-USE-06 */
static void post_rdma__privilege_missing__remote_access_breaks(void **state)
{
	struct rig *rig = *state;
	const DAT_MEM_PRIV_FLAGS local =
		DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	struct dt_buf only_read, only_write, neither;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN,
		      local | DAT_MEM_PRIV_REMOTE_READ_FLAG, &only_read);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN,
		      local | DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &only_write);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, local, &neither);
	refused_at_target(rig, DTO_WRITE, dt_rseg(&only_read, 0, 0), 8);
	refused_at_target(rig, DTO_WRITE, dt_rseg(&only_read, 0, 0), 30000);
	refused_at_target(rig, DTO_READ, dt_rseg(&only_write, 0, 0), 8);
	refused_at_target(rig, DTO_READ, dt_rseg(&only_write, 0, 0), 30000);
	both_refused_at_target(rig, dt_rseg(&neither, 0, 0), 8);
	neither.rkey = neither.lkey; /* a consumer may try the local context instead */
	if (neither.lkey != rig->x.rkey && neither.lkey != rig->y.rkey &&
	    neither.lkey != only_read.rkey && neither.lkey != only_write.rkey)
		both_refused_at_target(rig, dt_rseg(&neither, 0, 0), 8);
	/* the one privilege that each region has is enough */
	rig_link(rig);
	post_read(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&only_read, 0, 8), 1, 0);
	post_write(&rig->a, dt_seg(&rig->x, 8, 8), dt_rseg(&only_write, 8, 8), 2, 0);
	expect_sent(&rig->a, 1, 8);
	expect_sent(&rig->a, 2, 8);
	dt_check_bytes(rig->x.p, 8, RIG_FILL);
	assert_memory_equal(rig->y.p + 8, rig->x.p + 8, 8);
}

/* DTO-58 DTO-93 DTO-94 EP-RDMAR-33 EP-RDMAW-38 EP-CREATE-08 LMR-USE-07 */
static void post_rdma__other_zone_at_target__remote_access_breaks(void **state)
{
	struct rig *rig = *state;
	DAT_PZ_HANDLE pz;
	struct dt_buf other;

	dt_ok(dat_pz_create(rig->ia.ia, &pz));
	dt_lmr_create(&rig->ia, pz, rig->y.p, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &other);
	both_refused_at_target(rig, dt_rseg(&other, 0, 0), 8);
	both_refused_at_target(rig, dt_rseg(&other, 0, 0), 30000);
	/* the zone of the target endpoint decides, not that of the initiator */
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
	dt_ep_create(&rig->ia, pz, &rig->attr_b, &rig->b);
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&other, 0, 8), 1, 0);
	expect_sent(&rig->a, 1, 8);
	assert_memory_equal(rig->y.p, rig->x.p, 8);
}

/* DTO-102: contexts of another instance are refused, locally and remotely */
static void post__contexts_of_another_instance__refused(void **state)
{
	struct rig *rig = *state;
	struct dt_ia other;
	struct dt_buf far;
	DAT_LMR_TRIPLET seg;

	/* many regions, so that their contexts differ from those of the first instance */
	dt_ia_open(&other);
	for (int i = 0; i < 50; i++)
		dt_lmr_create(&other, other.pz, rig->x.p, 4096, DAT_MEM_PRIV_ALL_FLAG, &far);
	if (far.lkey != rig->x.lkey && far.lkey != rig->y.lkey) {
		rig_link(rig);
		seg = dt_seg(&far, 0, 8);
		dto_refused(rig, DTO_SEND, DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ),
			    1, &seg, NULL, 0);
		dto_refused(rig, DTO_RECV, DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE),
			    1, &seg, NULL, 0);
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
	}
	if (far.rkey != rig->x.rkey && far.rkey != rig->y.rkey)
		both_refused_at_target(rig, dt_rseg(&far, 0, 0), 8);
	dt_ia_abort(&other);
}

/* DTO-97 DTO-94 LMR-FREE-06: after the free the context is invalid at the target */
static void post_rdma__region_freed__remote_access_breaks(void **state)
{
	struct rig *rig = *state;
	static const size_t sizes[] = {8, 30000};

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		for (int kind = DTO_READ; kind <= DTO_WRITE; kind++) {
			struct dt_buf gone;

			dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN,
				      DAT_MEM_PRIV_ALL_FLAG, &gone);
			/* used before, so that the peer may have cached it */
			rig_link(rig);
			for (int n = 0; n < 20; n++) {
				post_read(&rig->a, dt_seg(&rig->x, 0, sizes[i]),
					  dt_rseg(&gone, 0, sizes[i]), 1, 0);
				expect_sent(&rig->a, 1, sizes[i]);
			}
			dt_fill(rig->x.p, RIG_LEN, RIG_SEED);
			dt_ok(dat_lmr_free(gone.lmr));
			dt_ok(dto_post(kind, rig->a.ep, 1,
				       &(DAT_LMR_TRIPLET){.lmr_context = rig->x.lkey,
							  .virtual_address = (uintptr_t)rig->x.p,
							  .segment_length = sizes[i]},
				       2,
				       &(DAT_RMR_TRIPLET){.rmr_context = gone.rkey,
							  .target_address = (uintptr_t)gone.p,
							  .segment_length = sizes[i]},
				       0));
			expect_request(&rig->a, 2, DAT_DTO_ERR_REMOTE_ACCESS);
			expect_broken(rig);
			dt_check_bytes(rig->y.p, RIG_LEN, RIG_FILL);
			dt_check_pattern(rig->x.p, RIG_LEN, RIG_SEED);
			dt_ep_free(&rig->a);
			dt_ep_free(&rig->b);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_bare(post_rdma__unknown_context__remote_access_breaks),
		rig_test_bare(post_rdma__outside_the_region__remote_access_breaks),
		rig_test_bare(post_rdma__long_and_leaves_the_region__moves_nothing),
		rig_test_bare(post_rdma__at_the_borders__moves_data),
		rig_test_bare(post_rdma__privilege_missing__remote_access_breaks),
		rig_test_bare(post_rdma__other_zone_at_target__remote_access_breaks),
		rig_test_bare(post__contexts_of_another_instance__refused),
		rig_test_bare(post_rdma__region_freed__remote_access_breaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
