// SPDX-License-Identifier: BSD-2-Clause
/* The registry with its allocations failing one at a time: linked from its sources for --wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <dat/dat_registry.h>
#include <dat/udat.h>

static int fail_at; /* the number of the next allocation that fails; 0: none */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

static int fails_now(void)
{
	return fail_at && !--fail_at;
}

void *__wrap_malloc(size_t size)
{
	return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails_now() ? NULL : __real_realloc(p, size);
}

static const DAT_PROVIDER provider;
static const DAT_PROVIDER_INFO info = {
	.ia_name = "full", .dapl_version_major = 1, .dapl_version_minor = 2};

/* REG-ADD-09: Nothing is registered, and the next attempt succeeds. */
static void registry_add__no_memory__insufficient_resources(void **state)
{
	DAT_RETURN ret;
	int n = 0;

	(void)state;
	do {
		fail_at = ++n;
		ret = dat_registry_add_provider(&provider, &info);
		if (ret == DAT_SUCCESS)
			break;
		fail_at = 0;
		assert_int_equal(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
		assert_int_equal(DAT_GET_TYPE(dat_registry_remove_provider(&provider, &info)),
				 DAT_INVALID_PARAMETER);
	} while (n < 100);
	assert_true(n > 1 && n < 100);
	fail_at = 0;
	assert_int_equal(dat_registry_remove_provider(&provider, &info), DAT_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registry_add__no_memory__insufficient_resources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
