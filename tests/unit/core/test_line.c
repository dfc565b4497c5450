// SPDX-License-Identifier: BSD-2-Clause
/* Memory that begins at a cache line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/line.h"

#define OBJECTS 64u

static void alloc__any_size__zeroed_and_aligned(void **state)
{
	unsigned char *objects[OBJECTS];

	(void)state;
	for (size_t i = 0; i < OBJECTS; i++) {
		const size_t size = 3 * (i * i + 1);

		objects[i] = core_line_alloc(3, i * i + 1);
		assert_non_null(objects[i]);
		assert_int_equal((uintptr_t)objects[i] % CORE_LINE, 0);
		for (size_t at = 0; at < size; at++)
			assert_int_equal(objects[i][at], 0);
		memset(objects[i], 0xa5, size);
	}
	for (size_t i = 0; i < OBJECTS; i++) {
		for (size_t at = 0; at < 3 * (i * i + 1); at++)
			assert_int_equal(objects[i][at], 0xa5);
		core_line_free(objects[i]);
	}
	core_line_free(NULL);
}

/* 2^32 objects of 2^32 bytes, and sizes to which nothing can be added: calloc is not called */
static void alloc__too_large__null(void **state)
{
	(void)state;
	assert_null(core_line_alloc((size_t)1 << 32, (size_t)1 << 32));
	assert_null(core_line_alloc(1, SIZE_MAX));
	assert_null(core_line_alloc(1, SIZE_MAX - CORE_LINE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alloc__any_size__zeroed_and_aligned),
		cmocka_unit_test(alloc__too_large__null),
	};

	return cmocka_run_group_tests_name("core line", tests, NULL, NULL);
}
