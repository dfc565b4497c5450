// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loaded into a conformance program ahead of cmocka (LD_PRELOAD). Leaves out the tests whose names
 * match one of the patterns in SKIP_TESTS, which are separated by spaces.
 */
#include <dlfcn.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef int (*run_fn)(const char *name, const struct CMUnitTest *tests, size_t count,
		      CMFixtureFunction setup, CMFixtureFunction teardown);

static bool is_skipped(const char *test)
{
	char *patterns = strdup(getenv("SKIP_TESTS") ? getenv("SKIP_TESTS") : "");
	bool found = false;
	char *rest = patterns;

	for (char *word; !found && (word = strtok_r(rest, " ", &rest));)
		found = !fnmatch(word, test, 0);
	free(patterns);
	return found;
}

__attribute__((visibility("default"))) int
_cmocka_run_group_tests(const char *name, const struct CMUnitTest *const tests, const size_t count,
			CMFixtureFunction setup, CMFixtureFunction teardown)
{
	struct CMUnitTest *kept = calloc(count, sizeof(*kept));
	run_fn next;
	size_t used = 0;
	int rc;

	*(void **)&next = dlsym(RTLD_NEXT, "_cmocka_run_group_tests");
	for (size_t i = 0; kept && i < count; i++)
		if (!is_skipped(tests[i].name))
			kept[used++] = tests[i];
	rc = kept && next ? next(name, kept, used, setup, teardown) : 1;
	free(kept);
	return rc;
}
