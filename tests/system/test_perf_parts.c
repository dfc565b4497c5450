// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parts of dat_perf: the histogram of the percentiles, the verification of data, and the private
 * data with which the sides agree on a test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "perf.h"
#include "perf_pattern.h"
#include "stats.h"

#define VALUES 1000u
#define SIZE_MAX_TESTED 67u

static struct stats figures;

/* --- statistics --- */

static void stats__no_value__all_zero(void **state)
{
	(void)state;
	stats_reset(&figures);
	assert_int_equal(stats_percentile(&figures, 500), 0);
	assert_true(stats_average(&figures) == 0);
}

static void stats_percentile__small_values__exact_nearest_rank(void **state)
{
	(void)state;
	stats_reset(&figures);
	/* 1 to 100, from the largest on */
	for (uint64_t value = 100; value > 0; value--)
		stats_add(&figures, value);
	assert_int_equal(figures.count, 100);
	assert_int_equal(figures.min, 1);
	assert_int_equal(figures.max, 100);
	assert_true(stats_average(&figures) == 50.5);
	assert_int_equal(stats_percentile(&figures, 1), 1);
	assert_int_equal(stats_percentile(&figures, 500), 50);
	assert_int_equal(stats_percentile(&figures, 505), 51);
	assert_int_equal(stats_percentile(&figures, 990), 99);
	assert_int_equal(stats_percentile(&figures, 999), 100);
	assert_int_equal(stats_percentile(&figures, 1000), 100);
}

static void stats_percentile__one_value_of_any_size__that_value(void **state)
{
	(void)state;
	for (unsigned shift = 0; shift < 64; shift++) {
		uint64_t value = (UINT64_C(1) << shift) + (UINT64_C(1) << shift) / 3;

		stats_reset(&figures);
		stats_add(&figures, value);
		assert_int_equal(stats_percentile(&figures, 500), value);
	}
}

/* Buckets are adjacent, and as narrow as stats.h promises. */
static void stats_bucket__ascending_values__ascending_and_narrow(void **state)
{
	unsigned last = 0;
	uint64_t first = 0;

	(void)state;
	for (uint64_t value = 0; value < UINT64_C(1) << 18; value++) {
		unsigned bucket = stats_bucket(value);

		if (bucket == last) {
			assert_true((double)(value - first) <= (double)first * 0.004);
			continue;
		}
		assert_int_equal(bucket, last + 1);
		last = bucket;
		first = value;
	}
	assert_true(stats_bucket(UINT64_MAX) < STATS_BUCKETS);
}

static void stats_percentile__large_values__right_to_two_permille(void **state)
{
	(void)state;
	stats_reset(&figures);
	for (uint64_t i = 1; i <= VALUES; i++)
		stats_add(&figures, i * 12345);
	for (unsigned permille = 1; permille <= 1000; permille++) {
		double exact = permille * 12345.0;
		double found = (double)stats_percentile(&figures, permille);

		assert_true(found > exact * 0.998 && found < exact * 1.002);
	}
}

static void stats_merge__two_halves__as_if_added_to_one(void **state)
{
	static struct stats half, whole;

	(void)state;
	stats_reset(&figures);
	stats_reset(&half);
	stats_reset(&whole);
	for (uint64_t i = 0; i < VALUES; i++) {
		stats_add(i % 2 ? &figures : &half, i * i);
		stats_add(&whole, i * i);
	}
	stats_merge(&figures, &half);
	assert_memory_equal(&figures, &whole, sizeof(whole));
}

/* --- pattern --- */

static void perf_pattern__one_bit_changed__found(void **state)
{
	unsigned char data[SIZE_MAX_TESTED];

	(void)state;
	for (uint64_t size = 1; size <= sizeof(data); size++) {
		perf_pattern_fill(data, size, 5);
		assert_true(perf_pattern_is(data, size, 5));
		for (uint64_t i = 0; i < size; i++) {
			data[i] ^= 0x10;
			assert_false(perf_pattern_is(data, size, 5));
			data[i] ^= 0x10;
		}
	}
}

static void perf_pattern__another_number_or_place__found(void **state)
{
	unsigned char data[SIZE_MAX_TESTED];

	(void)state;
	perf_pattern_fill(data, sizeof(data), 5);
	assert_false(perf_pattern_is(data, sizeof(data), 4));
	assert_false(perf_pattern_is(data, sizeof(data), 6));
	assert_false(perf_pattern_is(data + 8, sizeof(data) - 8, 5));
}

static void perf_pattern_fill__any_size__no_byte_beyond(void **state)
{
	unsigned char data[SIZE_MAX_TESTED + 1];

	(void)state;
	for (uint64_t size = 1; size <= SIZE_MAX_TESTED; size++) {
		data[size] = 0x5a;
		perf_pattern_fill(data, size, size);
		assert_int_equal(data[size], 0x5a);
	}
}

/* The bounds that a histogram prints are those of the buckets. */
static void stats_first__every_bucket__its_smallest_value(void **state)
{
	(void)state;
	for (unsigned bucket = 0; bucket < STATS_BUCKETS; bucket++) {
		assert_int_equal(stats_bucket(stats_first(bucket)), bucket);
		if (bucket > 0)
			assert_int_equal(stats_bucket(stats_first(bucket) - 1), bucket - 1);
	}
}

/* --- private data --- */

static const struct perf_plan good_plan = {.nonce = 77,
					   .size_max = 4096,
					   .window = 64,
					   .signal = 16,
					   .endpoints = 3,
					   .threads = 2,
					   .idle = 5,
					   .segments = 7,
					   .is_waiting = true,
					   .is_checked = true,
					   .is_target_polling = true};

static void perf_hello__sent_and_read__the_same_plan(void **state)
{
	struct session_private data = {.len = sizeof(struct perf_hello) + 3}; /* padded */
	struct perf_hello wire, hello;
	struct perf_plan plan;

	(void)state;
	perf_hello_plan(&wire, &good_plan);
	memcpy(data.data, &wire, sizeof(wire));
	assert_int_equal(perf_hello_read(&data, &hello), 0);
	assert_int_equal(hello.role, PERF_ROLE_CONTROL);
	perf_plan_read(&hello, &plan);
	assert_true(perf_plan_is_good(&plan));
	assert_int_equal(plan.nonce, good_plan.nonce);
	assert_int_equal(plan.size_max, good_plan.size_max);
	assert_int_equal(plan.window, good_plan.window);
	assert_int_equal(plan.signal, good_plan.signal);
	assert_int_equal(plan.endpoints, good_plan.endpoints);
	assert_int_equal(plan.threads, good_plan.threads);
	assert_int_equal(plan.idle, good_plan.idle);
	assert_int_equal(plan.segments, good_plan.segments);
	assert_true(plan.is_waiting && plan.is_checked && plan.is_target_polling);
	assert_false(plan.is_shared || plan.is_bidirectional || plan.is_huge || plan.is_srq);
}

static void perf_hello__bidirectional__only_with_polling(void **state)
{
	struct session_private data = {.len = sizeof(struct perf_hello)};
	struct perf_plan both = good_plan, plan;
	struct perf_hello wire, hello;

	(void)state;
	both.is_waiting = false;
	both.is_bidirectional = true;
	perf_hello_plan(&wire, &both);
	memcpy(data.data, &wire, sizeof(wire));
	assert_int_equal(perf_hello_read(&data, &hello), 0);
	perf_plan_read(&hello, &plan);
	assert_true(plan.is_bidirectional);
	assert_true(perf_plan_is_good(&plan));
	plan.is_waiting = true;
	assert_false(perf_plan_is_good(&plan));
}

static void perf_hello_read__short_or_foreign__refused(void **state)
{
	struct session_private data = {.len = sizeof(struct perf_hello)};
	struct perf_hello wire, hello;

	(void)state;
	assert_true(perf_hello_read(&data, &hello) < 0);
	perf_hello_plan(&wire, &good_plan);
	memcpy(data.data, &wire, sizeof(wire));
	assert_int_equal(perf_hello_read(&data, &hello), 0);
	data.len--;
	assert_true(perf_hello_read(&data, &hello) < 0);
}

static void perf_plan_is_good__one_number_out_of_range__false(void **state)
{
	struct perf_plan bad[16];

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		bad[i] = good_plan;
	bad[0].size_max = 0;
	bad[1].size_max = PERF_SIZE_LIMIT + 1;
	bad[2].window = 0;
	bad[3].window = PERF_WINDOW_LIMIT + 1;
	bad[4].signal = 0;
	bad[5].signal = bad[5].window + 1;
	bad[6].endpoints = 0;
	bad[7].endpoints = PERF_ENDPOINTS_LIMIT + 1;
	bad[8].threads = 0;
	bad[9].threads = bad[9].endpoints + 1;
	bad[10].idle = PERF_IDLE_LIMIT + 1;
	/* each number is valid, but the memory they need together is too large */
	bad[11].size_max = PERF_SIZE_LIMIT;
	bad[12].segments = 0;
	bad[13].segments = PERF_SEGMENTS_LIMIT + 1;
	bad[14].is_srq = true; /* data cannot be checked then */
	bad[15].is_shared = bad[15].is_huge = true;
	assert_true(perf_plan_is_good(&good_plan));
	for (unsigned i = 0; i < 16; i++)
		assert_false(perf_plan_is_good(&bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stats__no_value__all_zero),
		cmocka_unit_test(stats_percentile__small_values__exact_nearest_rank),
		cmocka_unit_test(stats_percentile__one_value_of_any_size__that_value),
		cmocka_unit_test(stats_bucket__ascending_values__ascending_and_narrow),
		cmocka_unit_test(stats_percentile__large_values__right_to_two_permille),
		cmocka_unit_test(stats_merge__two_halves__as_if_added_to_one),
		cmocka_unit_test(stats_first__every_bucket__its_smallest_value),
		cmocka_unit_test(perf_pattern__one_bit_changed__found),
		cmocka_unit_test(perf_pattern__another_number_or_place__found),
		cmocka_unit_test(perf_pattern_fill__any_size__no_byte_beyond),
		cmocka_unit_test(perf_hello__sent_and_read__the_same_plan),
		cmocka_unit_test(perf_hello__bidirectional__only_with_polling),
		cmocka_unit_test(perf_hello_read__short_or_foreign__refused),
		cmocka_unit_test(perf_plan_is_good__one_number_out_of_range__false),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
