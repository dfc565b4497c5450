// SPDX-License-Identifier: BSD-2-Clause
/* The barrier fence: a fenced request starts after all earlier RDMA Reads have completed. */
#include "dto_util.h"

#define FENCE_READS 6
#define FENCE_LEN 10000

/* Reads the pattern in pieces, one at a time, then sends or writes what was read. */
static void read_and_forward(struct rig *rig, enum dto_kind kind, unsigned round)
{
	const size_t piece = FENCE_LEN / FENCE_READS + 1;

	dt_fill(rig->y.p, FENCE_LEN, round);
	memset(rig->x.p, 0, FENCE_LEN);
	post_recv(&rig->b, dt_seg(&rig->y, 20000, FENCE_LEN), 1);
	for (size_t at = 0, left = FENCE_LEN; left; at += piece) {
		const size_t len = left < piece ? left : piece;

		post_read(&rig->a, dt_seg(&rig->x, at, len), dt_rseg(&rig->y, at, len), 2, 0);
		left -= len;
	}
	if (kind == DTO_WRITE) {
		post_write(&rig->a, dt_seg(&rig->x, 0, FENCE_LEN),
			   dt_rseg(&rig->y, 40000, FENCE_LEN), 3,
			   DAT_COMPLETION_BARRIER_FENCE_FLAG);
		post_send(&rig->a, dt_seg(&rig->x, 0, 0), 4, 0);
	} else {
		post_send(&rig->a, dt_seg(&rig->x, 0, FENCE_LEN), 3,
			  DAT_COMPLETION_BARRIER_FENCE_FLAG);
	}
	expect_received(&rig->b, 1, kind == DTO_WRITE ? 0 : FENCE_LEN);
	dt_check_pattern(rig->y.p + (kind == DTO_WRITE ? 40000 : 20000), FENCE_LEN, round);
	for (int i = 0; i < FENCE_READS; i++)
		expect_request(&rig->a, 2, DAT_DTO_SUCCESS);
	expect_sent(&rig->a, 3, FENCE_LEN);
	if (kind == DTO_WRITE)
		expect_sent(&rig->a, 4, 0);
}

/* EP-SEND-25 EP-RDMAW-26 DTO-30 */
static void post__fenced_after_reads__transfers_the_data_read(void **state)
{
	struct rig *rig = *state;

	rig->attr_a.max_rdma_read_out = 1;
	rig_link(rig);
	for (unsigned round = 0; round < 30; round++) {
		read_and_forward(rig, DTO_SEND, 2 * round);
		read_and_forward(rig, DTO_WRITE, 2 * round + 1);
	}
}

/*
 * Sends a message that waits for a Receive, then posts an RDMA Read and a fenced request that
 * transfers what is read. A transport may copy the small sizes when they are posted. Over iWARP no
 * message may wait (DTO-104): there the Read starts at once.
 */
static void read_late_and_forward(struct rig *rig, enum dto_kind kind, size_t len, uint32_t seed)
{
	const size_t to = kind == DTO_WRITE ? 40000 : 20000;

	dt_fill(rig->y.p, len, seed);
	for (size_t i = 0; i < len; i++)
		rig->x.p[i] = (unsigned char)~rig->y.p[i];
	memset(rig->y.p + to, RIG_FILL, len);
	if (dt_is_iwarp()) {
		post_recv(&rig->b, dt_seg(&rig->y, 10000, 8), 1);
		post_recv(&rig->b, dt_seg(&rig->y, 20000, len), 2);
	}
	post_send(&rig->a, dt_seg(&rig->x, 60000, 8), 3, 0);
	post_read(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, 0, len), 4, 0);
	if (kind == DTO_WRITE) {
		post_write(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, to, len), 5,
			   DAT_COMPLETION_BARRIER_FENCE_FLAG);
		post_send(&rig->a, dt_seg(&rig->x, 0, 0), 6, 0);
	} else {
		post_send(&rig->a, dt_seg(&rig->x, 0, len), 5, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	}
	if (!dt_is_iwarp()) {
		post_recv(&rig->b, dt_seg(&rig->y, 10000, 8), 1);
		post_recv(&rig->b, dt_seg(&rig->y, 20000, len), 2);
	}
	expect_received(&rig->b, 1, 8);
	expect_received(&rig->b, 2, kind == DTO_WRITE ? 0 : len);
	expect_sent(&rig->a, 3, 8);
	expect_sent(&rig->a, 4, len);
	expect_sent(&rig->a, 5, len);
	if (kind == DTO_WRITE)
		expect_sent(&rig->a, 6, 0);
	dt_check_pattern(rig->y.p + to, len, seed);
}

/* EP-SEND-25 EP-RDMAW-26 DTO-30 */
static void post__fenced_after_late_read__transfers_the_data_read(void **state)
{
	static const size_t sizes[] = {1, 8, 64, 220, 1000, 10000};

	for (uint32_t i = 0; i < 10 * COUNT_OF(sizes); i++) {
		read_late_and_forward(*state, DTO_SEND, sizes[i % COUNT_OF(sizes)], 2 * i);
		read_late_and_forward(*state, DTO_WRITE, sizes[i % COUNT_OF(sizes)], 2 * i + 1);
	}
}

/* EP-RDMAR-24 DTO-30: a fenced Read, and several fences in a row */
static void post_rdma_read__fenced__completes_in_order(void **state)
{
	struct rig *rig = *state;

	for (uint64_t i = 0; i < 10; i++)
		post_read(&rig->a, dt_seg(&rig->x, 0, 3000), dt_rseg(&rig->y, 3000 * i, 3000), i,
			  DAT_COMPLETION_BARRIER_FENCE_FLAG);
	memset(rig->y.p + 27000, 0x77, 3000);
	post_read(&rig->a, dt_seg(&rig->x, 0, 3000), dt_rseg(&rig->y, 27000, 3000), 10,
		  DAT_COMPLETION_BARRIER_FENCE_FLAG);
	for (uint64_t i = 0; i <= 10; i++)
		expect_sent(&rig->a, i, 3000);
	dt_check_bytes(rig->x.p, 3000, 0x77);
}

/* DTO-31: earlier requests, and Receives, do not wait for a fence */
static void post__fenced__others_not_delayed(void **state)
{
	struct rig *rig = *state;

	post_recv(&rig->a, dt_seg(&rig->x, 50000, 8), 1);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 2, 0); /* waits for a Receive */
	post_read(&rig->a, dt_seg(&rig->x, 10000, 8), dt_rseg(&rig->y, 0, 8), 3, 0);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 4, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	post_send(&rig->b, dt_seg(&rig->y, 0, 8), 5, 0);
	expect_received(&rig->a, 1, 8);
	expect_sent(&rig->b, 5, 8);
	post_recv(&rig->b, dt_seg(&rig->y, 100, 8), 6);
	expect_received(&rig->b, 6, 8);
	expect_sent(&rig->a, 2, 8);
	expect_sent(&rig->a, 3, 8);
	dt_stays_empty(rig->a.request);
	post_recv(&rig->b, dt_seg(&rig->y, 100, 8), 7);
	expect_received(&rig->b, 7, 8);
	expect_sent(&rig->a, 4, 8);
}

/* DTO-32 */
static void post__fenced_without_reads__completes(void **state)
{
	struct rig *rig = *state;

	for (uint64_t i = 0; i < 5; i++) {
		post_recv(&rig->b, dt_seg(&rig->y, 100, 1), 1);
		dt_ok(dto_post_byte(rig, DTO_SEND, 1, DAT_COMPLETION_BARRIER_FENCE_FLAG));
		expect_received(&rig->b, 1, 1);
		dt_ok(dto_post_byte(rig, DTO_WRITE, 2, DAT_COMPLETION_BARRIER_FENCE_FLAG));
		expect_sent(&rig->a, 1, 1);
		expect_sent(&rig->a, 2, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_bare(post__fenced_after_reads__transfers_the_data_read),
		rig_test(post__fenced_after_late_read__transfers_the_data_read),
		rig_test(post_rdma_read__fenced__completes_in_order),
		rig_test(post__fenced__others_not_delayed),
		rig_test(post__fenced_without_reads__completes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
