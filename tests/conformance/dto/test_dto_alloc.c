// SPDX-License-Identifier: BSD-2-Clause
/*
 * No memory is allocated per post: a malloc in this program counts the calls of the whole process,
 * including the threads of the library, while DTOs of all kinds are posted and completed.
 * Sanitizers replace malloc; the tests are skipped then.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "copy_path.h"
#include "srq_util.h"

#define ROUNDS 500

#if !DT_SLOW && defined(__GLIBC__)
#define CAN_COUNT 1

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static _Atomic int is_counting;
static _Atomic unsigned allocations;

void *malloc(size_t size)
{
	if (is_counting)
		allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	if (is_counting)
		allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	if (is_counting)
		allocations++;
	return __libc_realloc(p, size);
}
#else
#define CAN_COUNT 0
static _Atomic int is_counting;
static _Atomic unsigned allocations;
#endif

static const size_t sizes[] = {0, 8, 4096, 5000, 60000};

/* Performs each operation once at each size; a Send finds a Receive or waits for it. */
static void exchange(struct rig *rig, int round)
{
	const size_t len = sizes[(size_t)round % COUNT_OF(sizes)];

	if (round % 2)
		post_recv(&rig->b, dt_seg(&rig->y, 0, len), 1);
	post_send(&rig->a, dt_seg(&rig->x, 0, len), 2, 0);
	post_write(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, 0, len), 3, 0);
	post_read(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, 0, len), 4, 0);
	post_write(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, 0, len), 5,
		   DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG);
	if (round % 2 == 0)
		post_recv(&rig->b, dt_seg(&rig->y, 0, len), 1);
	expect_received(&rig->b, 1, len);
	for (uint64_t i = 2; i <= 4; i++)
		expect_sent(&rig->a, i, len);
}

/* EP-SEND-15 EP-RECV-12 EP-RDMAR-16 EP-RDMAW-18 */
static void post__steady_state__allocates_nothing(void **state)
{
	struct rig *rig = *state;

	if (!CAN_COUNT)
		skip();
	free(malloc(1)); /* verify the counter */
	is_counting = 1;
	void *volatile probe = malloc(1);

	is_counting = 0;
	free(probe);
	assert_int_equal(allocations, 1);
	for (int i = 0; i < 100; i++)
		exchange(rig, i);
	allocations = 0;
	is_counting = 1;
	for (int i = 0; i < ROUNDS; i++)
		exchange(rig, i);
	is_counting = 0;
	assert_int_equal(allocations, 0);
}

/* EP-SEND-15 EP-RECV-12: also when posts stay outstanding, up to the size of the queues */
static void post__queues_filled__allocates_nothing(void **state)
{
	struct rig *rig = *state;
	const DAT_COUNT n = rig->attr_a.max_request_dtos;

	if (!CAN_COUNT)
		skip();
	for (int i = 0; i < 100; i++)
		exchange(rig, i);
	post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&rig->y, 0, 8), 6, 0);
	expect_sent(&rig->a, 6, 8); /* the suppressed request before it is done too */
	allocations = 0;
	is_counting = 1;
	for (DAT_COUNT i = 0; i < n; i++)
		post_send(&rig->a, dt_seg(&rig->x, 0, 3000), 1, 0);
	for (DAT_COUNT i = 0; i < rig->attr_a.max_recv_dtos; i++)
		post_recv(&rig->a, dt_seg(&rig->x, 0, 3000), 1);
	is_counting = 0;
	assert_int_equal(allocations, 0);
}

/* SRQ-RECV-24: also through an SRQ, with messages that wait for a buffer */
static void srq_post_recv__steady_state__allocates_nothing(void **state)
{
	struct bench *bench = *state;

	if (!CAN_COUNT)
		skip();
	bench_add(bench, 2);
	for (int i = 0; i < ROUNDS + 100; i++) {
		is_counting = i >= 100;
		if (i == 100)
			allocations = 0;
		for (unsigned pair = 0; pair < 2 && i % 2; pair++)
			bench_send(bench, pair, (uint64_t)i);
		bench_give_many(bench, 0, 2);
		for (unsigned pair = 0; pair < 2 && i % 2 == 0; pair++)
			bench_send(bench, pair, (uint64_t)i);
		for (unsigned pair = 0; pair < 2; pair++)
			bench_receive(bench, pair, (uint64_t)i);
	}
	for (int i = 0; i < 16; i++)
		dt_ok(srq_post_empty(bench->srq, 1));
	is_counting = 0;
	assert_int_equal(allocations, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post__steady_state__allocates_nothing),
		rig_test(post__queues_filled__allocates_nothing),
		bench_test(srq_post_recv__steady_state__allocates_nothing),
	};

	if (!CAN_COUNT) /* all tests are skipped */
		copy_path_skip();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
