// SPDX-License-Identifier: BSD-2-Clause
/*
 * Part of every program with cmocka: the environment variable CMOCKA_TEST_FILTER selects its test
 * functions by a pattern, as later versions of cmocka do themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void select_tests(void)
{
	const char *pattern = getenv("CMOCKA_TEST_FILTER");

	if (pattern)
		cmocka_set_test_filter(pattern);
}
