// SPDX-License-Identifier: BSD-2-Clause
/*
 * When the service thread leaves the work to a thread of the consumer: to one that polls steadily,
 * not to one that dequeues now and then. The test sets the clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "soft/driven.h"

#define US 1000u
#define MS 1000000u
#define POLLS 512u

/* The state of a service thread, and the polls so far. */
struct scene {
	struct soft_driven driven;
	uint64_t polls;
	uint64_t now;
};

/* Makes that many polls in that time, then a check by the service thread. */
static bool check_after(struct scene *scene, uint64_t polls, uint64_t ns)
{
	scene->polls += polls;
	scene->now += ns;
	return soft_is_driven(&scene->driven, scene->polls, scene->now);
}

/* The first check only begins a window. */
static struct scene begin(void)
{
	struct scene scene = {.driven.least = POLLS, .now = UINT64_C(5000) * MS};

	assert_false(check_after(&scene, 50000, 0));
	return scene;
}

/* COMPAT-46: a wake-up for each message, and a poll or two after it, however fast they come */
static void driven__single_dequeues__never(void **state)
{
	static const uint64_t gaps[] = {5 * US, 20 * US, 999 * US, MS, 3 * MS, 5000u * US};
	struct scene scene = begin();

	(void)state;
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
		for (unsigned round = 0; round < 10000; round++)
			assert_false(check_after(&scene, 1 + round % 2, gaps[i]));
}

/* COMPAT-46: many polls within a long time, without a check between them */
static void driven__rare_polls_for_long__never(void **state)
{
	struct scene scene = begin();

	(void)state;
	assert_false(check_after(&scene, 100000, UINT64_C(1000) * MS));
	assert_false(check_after(&scene, 511, 100 * US));
	assert_false(check_after(&scene, 1, MS));
}

/*
 * A thread that polls each microsecond drives the connections from the first millisecond on,
 * however often the service thread checks.
 */
static void driven__polls_all_the_time__is_driven(void **state)
{
	static const uint64_t gaps[] = {1, 10, 100, 1000, 4000};

	(void)state;
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
		struct scene scene = begin();

		for (uint64_t us = 0; us < 20000; us += gaps[i])
			assert_true(check_after(&scene, gaps[i], gaps[i] * US) ||
				    us + gaps[i] < POLLS);
	}
}

/* It has no processor for a moment, because others share it. */
static void driven__pauses_for_a_moment__is_still_driven(void **state)
{
	struct scene scene = begin();

	(void)state;
	assert_true(check_after(&scene, 50000, MS));
	assert_true(check_after(&scene, 0, MS));
	assert_true(check_after(&scene, 50000, 3 * MS));
}

/* It stops polling. */
static void driven__stops_polling__is_not_after_two_ticks(void **state)
{
	struct scene scene = begin();

	(void)state;
	assert_true(check_after(&scene, 50000, MS));
	(void)check_after(&scene, 1, MS);
	assert_false(check_after(&scene, 1, MS));
	assert_false(check_after(&scene, 1, MS));
	assert_true(check_after(&scene, 50000, MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(driven__single_dequeues__never),
		cmocka_unit_test(driven__rare_polls_for_long__never),
		cmocka_unit_test(driven__polls_all_the_time__is_driven),
		cmocka_unit_test(driven__pauses_for_a_moment__is_still_driven),
		cmocka_unit_test(driven__stops_polling__is_not_after_two_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
