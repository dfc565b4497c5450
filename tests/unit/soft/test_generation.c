// SPDX-License-Identifier: BSD-2-Clause
/* Keys that others do not tell: the generations of an index, and those of a table's keys. */
#include "soft/generation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "soft/key.h"

#define SAMPLES 10000u

static int compare_keys(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* IWCM-44: no key twice, and neither of two in a row tells the next one */
static void keys_add__ten_thousand__no_pattern(void **state)
{
	static uint32_t seen[SAMPLES], steps[SOFT_GENERATION_MASK + 1];
	struct soft_keys *keys;
	uint32_t most = 0;

	(void)state;
	assert_int_equal(soft_keys_create(&keys), 0);
	/* of new indexes, and of some that are used again and again */
	for (uint32_t i = 0; i < SAMPLES; i++) {
		assert_int_equal(soft_keys_add(keys, 4096, 4096, 0, 1, &seen[i]), 0);
		if (i % 4)
			continue;
		soft_keys_invalidate(keys, seen[i]);
		soft_keys_release(keys, seen[i]);
	}
	for (uint32_t i = 1; i < SAMPLES; i++) {
		uint32_t before = seen[i - 1] >> SOFT_KEY_INDEX_BITS;
		uint32_t step = ((seen[i] >> SOFT_KEY_INDEX_BITS) - before) & SOFT_GENERATION_MASK;

		if (++steps[step] > most)
			most = steps[step];
	}
	/* at random a step is seen 0.6 times on average, 16 times once in 10^12 runs */
	assert_true(most < 16);
	qsort(seen, SAMPLES, sizeof(seen[0]), compare_keys);
	for (uint32_t i = 1; i < SAMPLES; i++)
		assert_int_not_equal(seen[i], seen[i - 1]);
	soft_keys_destroy(keys);
}

/* IWCM-44: the next generation of an index does not follow from the last one either */
static void generation__of_one_index__each_once_and_no_pattern(void **state)
{
	static uint32_t seen[SOFT_GENERATION_MASK + 1], steps[SOFT_GENERATION_MASK + 1];
	struct soft_secret secret = {{1, 2}}, other = {{1, 3}};
	uint32_t most = 0, equal = 0;

	(void)state;
	for (uint32_t use = 0; use <= SOFT_GENERATION_MASK; use++) {
		uint32_t now = soft_generation(&secret, 7, use);
		uint32_t next = soft_generation(&secret, 7, use + 1);
		uint32_t step = (next - now) & SOFT_GENERATION_MASK;

		assert_int_equal(seen[now]++, 0);
		if (++steps[step] > most)
			most = steps[step];
		equal += now == soft_generation(&secret, 8, use);
		equal += now == soft_generation(&other, 7, use);
	}
	assert_true(most < 16);
	assert_true(equal < 32); /* 2 on average */
	assert_int_equal(soft_generation(&secret, 7, 1u << SOFT_GENERATION_BITS),
			 soft_generation(&secret, 7, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_add__ten_thousand__no_pattern),
		cmocka_unit_test(generation__of_one_index__each_once_and_no_pattern),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
