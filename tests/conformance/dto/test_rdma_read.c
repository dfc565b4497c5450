// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_post_rdma_read: what it reads, where it puts the data, and what it leaves unchanged.
 * Refusals are in test_dto_refused.c, protection in test_dto_protect.c, order in test_dto_order.c.
 */
#include "dto_util.h"

/* y gets the pattern and x the fill: the reverse of what the rig starts with. */
static void swap_content(struct rig *rig)
{
	dt_fill(rig->y.p, RIG_LEN, RIG_SEED);
	memset(rig->x.p, RIG_FILL, RIG_LEN);
}

/* EP-RDMAR-01 EP-RDMAR-02 EP-RDMAR-03 EP-RDMAR-05 EP-RDMAR-11 EP-RDMAR-18 EP-RDMAR-19 DTO-04 */
static void post_rdma_read__larger_buffer__filled_in_order(void **state)
{
	struct rig *rig = *state;
	static const size_t sizes[] = {1, 9, 10, 11, 29, 30, 31, 59, 60, 100};
	DAT_LMR_TRIPLET into[4] = {dt_seg(&rig->x, 500, 10), dt_seg(&rig->x, 100, 20),
				   dt_seg(&rig->x, 300, 30), dt_seg(&rig->x, 200, 40)};

	swap_content(rig);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 77, sizes[i]);
		const size_t len = sizes[i];
		size_t at = 0;

		memset(rig->x.p, RIG_FILL, 1000);
		dt_ok(dat_ep_post_rdma_read(rig->a.ep, 4, into, dt_cookie(i), &remote, 0));
		expect_sent(&rig->a, i, len);
		for (int s = 0; s < 4; s++) {
			const size_t off = into[s].virtual_address - (uintptr_t)rig->x.p;
			const size_t all = into[s].segment_length;
			const size_t part = len - at < all ? len - at : all;

			assert_memory_equal(rig->x.p + off, rig->y.p + 77 + at, part);
			dt_check_bytes(rig->x.p + off + part, 100 - part, RIG_FILL);
			at += part;
		}
	}
	dt_check_pattern(rig->y.p, RIG_LEN, RIG_SEED);
	dt_no_event(rig->a.recv);
}

/* EP-RDMAR-07 DTO-119 */
static void post_rdma_read__zero_length__completes_unchecked(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_TRIPLET remote = {.rmr_context = 0xdeadbeef, .target_address = 1};
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 100);

	dt_ok(dat_ep_post_rdma_read(rig->a.ep, 1, &seg, dt_cookie(1), &remote, 0));
	dt_ok(dat_ep_post_rdma_read(rig->a.ep, 0, NULL, dt_cookie(2), &remote, 0));
	expect_sent(&rig->a, 1, 0);
	expect_sent(&rig->a, 2, 0);
	dt_check_pattern(rig->x.p, RIG_LEN, RIG_SEED);
	dt_stays_empty(rig->a.conn);
	rig_works(rig);
}

/* EP-RDMAR-13 EP-RDMAR-15 EP-RDMAR-17: the arrays may be reused when the call returns */
static void post_rdma_read__arrays_overwritten__no_effect(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2];
	DAT_RMR_TRIPLET remote;

	swap_content(rig);
	assert_int_equal(rig->ia.provider.iov_ownership_on_return, DAT_IOV_CONSUMER);
	post_send(&rig->a, dt_seg(&rig->x, 60000, 1), 0, 0); /* delays the completions */
	for (uint64_t i = 1; i <= 12; i++) {		     /* more than are outstanding at once */
		iov[0] = dt_seg(&rig->x, 4000 * i, 1500);
		iov[1] = dt_seg(&rig->x, 4000 * i + 2000, 1500);
		remote = dt_rseg(&rig->y, 3000 * i, 3000);
		dt_ok(dat_ep_post_rdma_read(rig->a.ep, 2, iov, dt_cookie(i), &remote, 0));
		memset(iov, 0xff, sizeof(iov));
		memset(&remote, 0xff, sizeof(remote));
	}
	dt_stays_empty(rig->a.request);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 1), 100);
	expect_sent(&rig->a, 0, 1);
	for (uint64_t i = 1; i <= 12; i++) {
		expect_sent(&rig->a, i, 3000);
		assert_memory_equal(rig->x.p + 4000 * i, rig->y.p + 3000 * i, 1500);
		assert_memory_equal(rig->x.p + 4000 * i + 2000, rig->y.p + 3000 * i + 1500, 1500);
		dt_check_bytes(rig->x.p + 4000 * i + 1500, 500, RIG_FILL);
		dt_check_bytes(rig->x.p + 4000 * i + 3500, 500, RIG_FILL);
	}
}

/* EP-RDMAR-14 */
static void post_rdma_read__done__arrays_unchanged(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 4000), dt_seg(&rig->x, 4100, 30000)};
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 33000);
	DAT_LMR_TRIPLET iov_before[2];
	DAT_RMR_TRIPLET remote_before;

	iov[0].pad = remote.pad = 0x12345678;
	memcpy(iov_before, iov, sizeof(iov));
	remote_before = remote;
	dt_ok(dat_ep_post_rdma_read(rig->a.ep, 2, iov, dt_cookie(1), &remote, 0));
	expect_sent(&rig->a, 1, 33000);
	assert_memory_equal(iov, iov_before, sizeof(iov));
	assert_memory_equal(&remote, &remote_before, sizeof(remote));
	dt_check_bytes(rig->y.p, RIG_LEN, RIG_FILL);
}

/* EP-RDMAR-20 EP-RDMAR-26 */
static void post_rdma_read__done__no_event_at_peer(void **state)
{
	struct rig *rig = *state;
	DAT_BOOLEAN idle;

	post_recv(&rig->b, dt_seg(&rig->y, 40000, 8), 1);
	post_read(&rig->a, dt_seg(&rig->x, 0, 30000), dt_rseg(&rig->y, 0, 30000), 2,
		  DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	expect_sent(&rig->a, 2, 30000);
	dt_check_bytes(rig->x.p, 30000, RIG_FILL);
	dt_stays_empty(rig->b.recv);
	expect_quiet(&rig->b);
	dt_ok(dat_ep_get_status(rig->b.ep, NULL, &idle, NULL));
	assert_int_equal(idle, DAT_FALSE);
}

/* Posts Reads of different lengths through endpoints with these counts, `rounds` queues full. */
static void check_read_counts(struct rig *rig, DAT_COUNT out, DAT_COUNT in)
{
	const uint64_t n = (uint64_t)rig->attr_a.max_request_dtos;

	rig->attr_a.max_rdma_read_out = out;
	rig->attr_b.max_rdma_read_in = in;
	rig_link(rig);
	swap_content(rig);
	for (int round = 0; round < 5; round++) {
		memset(rig->x.p, RIG_FILL, RIG_LEN);
		for (uint64_t i = 0; i < n; i++)
			post_read(&rig->a, dt_seg(&rig->x, 2000 * i, 1000 + i),
				  dt_rseg(&rig->y, 1777 * i, 1000 + i), i, 0);
		for (uint64_t i = 0; i < n; i++) {
			expect_sent(&rig->a, i, 1000 + i);
			assert_memory_equal(rig->x.p + 2000 * i, rig->y.p + 1777 * i, 1000 + i);
			dt_check_bytes(rig->x.p + 2000 * i + 1000 + i, 1000 - i, RIG_FILL);
		}
	}
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);
}

/* EP-RDMAR-36 EP-RDMAR-37 DTO-43 DTO-108 */
static void post_rdma_read__more_than_read_counts__all_complete_in_order(void **state)
{
	struct rig *rig = *state;

	assert_true(rig->attr_a.max_request_dtos > rig->attr_a.max_rdma_read_out);
	check_read_counts(rig, 1, 1);
	check_read_counts(rig, 1, 8);
	check_read_counts(rig, 8, 1);
	check_read_counts(rig, 4, 3);
	check_read_counts(rig, 8, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post_rdma_read__larger_buffer__filled_in_order),
		rig_test(post_rdma_read__zero_length__completes_unchecked),
		rig_test(post_rdma_read__arrays_overwritten__no_effect),
		rig_test(post_rdma_read__done__arrays_unchanged),
		rig_test(post_rdma_read__done__no_event_at_peer),
		rig_test_bare(post_rdma_read__more_than_read_counts__all_complete_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
