// SPDX-License-Identifier: BSD-2-Clause
/*
 * When the service thread leaves the work to a thread of the consumer: to one that polls steadily,
 * not to one that dequeues now and then. The test sets the clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <time.h>

#include "soft/driven.h"

#define US 1000u
#define MS 1000000u
#define POLLS 512u

/* What threads that poll and a service thread know, and the time. */
static struct soft_driven driven;
static uint64_t now;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	time->tv_sec = (time_t)(now / (UINT64_C(1000) * MS));
	time->tv_nsec = (long)(now % (UINT64_C(1000) * MS));
	return 0;
}

/* The processor time of the thread that polls, and what it has of each millisecond. */
static uint64_t cpu, marked;
static unsigned share;
static bool has_slept;
static unsigned moved;

bool soft_mark_move(struct soft_mark *mark, uint64_t *used_ns)
{
	bool is_same = mark->id == 7 && !has_slept;

	assert_ptr_equal(mark, &driven.mark);
	*used_ns = cpu - marked;
	marked = cpu;
	has_slept = false;
	mark->id = 7;
	moved++;
	return is_same;
}

/* The thread computes for so long. */
static void pass(uint64_t ns)
{
	now += ns;
	cpu += ns;
}

static bool check(void)
{
	return soft_driven_left(&driven, now) > 0;
}

/* Makes that many polls in that time, then a check by the service thread. */
static bool check_after(uint64_t polls, uint64_t ns)
{
	uint64_t begin = now, cpu_begin = cpu;

	for (uint64_t i = 1; i <= polls; i++) {
		now = begin + ns * i / polls;
		cpu = cpu_begin + ns * share / 100 * i / polls;
		soft_driven_count(&driven, 1, POLLS);
	}
	now = begin + ns;
	cpu = cpu_begin + ns * share / 100;
	return check();
}

static int setup(void **state)
{
	(void)state;
	driven = (struct soft_driven){.polls = 0};
	now = UINT64_C(5000) * MS;
	cpu = marked = 0;
	share = 100;
	has_slept = false;
	moved = 0;
	assert_false(check());
	return 0;
}

/* COMPAT-46: a wake-up for each message, and a poll or two after it, however fast they come */
static void driven__single_dequeues__never(void **state)
{
	static const uint64_t gaps[] = {5 * US, 20 * US, 999 * US, MS, 3 * MS, 5000u * US};

	(void)state;
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
		for (unsigned round = 0; round < 10000; round++)
			assert_false(check_after(1 + round % 2, gaps[i]));
}

/* COMPAT-46: many polls within a long time, without a check between them */
static void driven__rare_polls_for_long__never(void **state)
{
	(void)state;
	assert_false(check_after(100000, UINT64_C(1000) * MS));
	assert_false(check_after(511, 2 * MS));
	assert_false(check_after(1, MS));
}

/* COMPAT-46: the pauses between short bursts count. */
static void driven__bursts_with_pauses__never(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		assert_false(check_after(100, 10 * US));
		assert_false(check_after(0, MS));
	}
}

/*
 * A thread that polls each microsecond drives the connections from the first group on, however
 * often the service thread checks.
 */
static void driven__polls_all_the_time__is_driven(void **state)
{
	static const uint64_t gaps[] = {1, 10, 100, 1000, 4000};

	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
		(void)setup(state);
		for (uint64_t us = 0; us < 20000; us += gaps[i])
			assert_true(check_after(gaps[i], gaps[i] * US) || us + gaps[i] < 2 * POLLS);
	}
}

/* The service thread comes late, because it has no processor. */
static void driven__checked_late__is_driven(void **state)
{
	(void)state;
	assert_true(check_after(50000, 50u * MS));
	now += 9 * MS; /* neither has one */
	(void)check_after(5000, MS);
	assert_true(check());
}

/* It has no processor for a moment, because others share it. */
static void driven__pauses_for_a_moment__is_still_driven(void **state)
{
	(void)state;
	assert_true(check_after(50000, MS));
	assert_true(check_after(0, MS));
	assert_true(check_after(50000, 3 * MS));
}

/* It shares the processor: the time in which others have it does not count. */
static void driven__shares_the_processor__is_driven(void **state)
{
	(void)state;
	share = 25;
	(void)check_after(POLLS, 3 * MS); /* the first one sets the mark */
	for (unsigned i = 0; i < 100; i++)
		assert_true(check_after(POLLS, 3 * MS));
	/* with that share it polls too rarely */
	for (unsigned i = 0; i < 100; i++)
		assert_false(check_after(POLLS, 6 * MS));
}

/* COMPAT-46: a thread that sleeps between its polls does not drive the connections. */
static void driven__sleeps_between_polls__never(void **state)
{
	(void)state;
	share = 5;
	for (unsigned i = 0; i < 100; i++) {
		has_slept = true;
		assert_false(check_after(POLLS, 10 * MS));
	}
}

/* COMPAT-46: nor do two threads that poll rarely, whatever each has used. */
static void driven__another_thread_set_the_mark__never(void **state)
{
	(void)state;
	share = 5;
	for (unsigned i = 0; i < 100; i++) {
		driven.mark.id = 8;
		assert_false(check_after(POLLS, 10 * MS));
	}
}

/* The mark is moved now and then, not with each group. */
static void driven__polls_all_the_time__mark_moved_four_times_in_a_ms(void **state)
{
	(void)state;
	assert_true(check_after(50000, MS));
	assert_in_range(moved, 4, 5); /* also for the first group, which began at time 0 */
	assert_true(check_after(1000000, 10u * MS));
	assert_in_range(moved, 37, 45);
}

/* A few polls that move much count for many, and take as long. */
static void driven__few_polls_that_count_for_many__is_driven(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		pass(3 * MS);
		soft_driven_count(&driven, 8 * POLLS, POLLS);
		assert_int_equal(check(), i > 0);
	}
	/* each counts for too few */
	for (unsigned i = 0; i < 20; i++) {
		pass(3 * MS);
		soft_driven_count(&driven, 2 * POLLS, POLLS);
		assert_false(check());
	}
}

/* It stops polling. */
static void driven__stops_polling__is_not_after_two_ticks(void **state)
{
	(void)state;
	assert_true(check_after(50000, MS));
	(void)check_after(1, MS);
	assert_false(check_after(1, MS));
	assert_false(check_after(1, MS));
	assert_true(check_after(50000, MS));
}

/* How long the service thread may sleep: until the answer may change. */
static void left__polls_and_stops__rest_of_two_milliseconds(void **state)
{
	(void)state;
	assert_int_equal(soft_driven_left(&driven, now), 0);
	assert_true(check_after(50000, MS));
	assert_in_range(soft_driven_left(&driven, now), 2 * MS - 100 * US, 2 * MS);
	now = driven.last_ns + 1500 * US;
	assert_int_equal(soft_driven_left(&driven, now), 500 * US);
	/* `last` is newer, as another thread has read the clock */
	assert_int_equal(soft_driven_left(&driven, driven.last_ns - 5), 2 * MS);
	now = driven.last_ns + 2 * MS - 1;
	assert_int_equal(soft_driven_left(&driven, now), 1);
	now++;
	assert_int_equal(soft_driven_left(&driven, now), 0);
}

/* It is expected to poll, and does or does not. */
static void begin__then_polls_or_none__driven_for_a_moment_or_longer(void **state)
{
	(void)state;
	soft_driven_begin(&driven, now);
	assert_true(check());
	assert_true(check_after(0, MS));
	assert_true(check_after(5000, 2 * MS));
	(void)setup(state);
	assert_true(check_after(5000, MS));
	soft_driven_begin(&driven, now);
	assert_true(check_after(0, MS));
	assert_false(check_after(0, MS));
}

/* A thread that had no processor for long stores its old total: a new group begins. */
static void count__steps_back__new_group(void **state)
{
	(void)state;
	assert_true(check_after(50000, MS));
	now += 5 * MS;
	assert_false(check());
	atomic_store(&driven.polls, atomic_load(&driven.group) - 40000);
	assert_false(check_after(9, US));
	assert_true(check_after(2 * POLLS, MS));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(driven__single_dequeues__never),
		TEST(driven__rare_polls_for_long__never),
		TEST(driven__bursts_with_pauses__never),
		TEST(driven__polls_all_the_time__is_driven),
		TEST(driven__checked_late__is_driven),
		TEST(driven__pauses_for_a_moment__is_still_driven),
		TEST(driven__shares_the_processor__is_driven),
		TEST(driven__sleeps_between_polls__never),
		TEST(driven__another_thread_set_the_mark__never),
		TEST(driven__polls_all_the_time__mark_moved_four_times_in_a_ms),
		TEST(driven__few_polls_that_count_for_many__is_driven),
		TEST(driven__stops_polling__is_not_after_two_ticks),
		TEST(left__polls_and_stops__rest_of_two_milliseconds),
		TEST(begin__then_polls_or_none__driven_for_a_moment_or_longer),
		TEST(count__steps_back__new_group),
	};

	return cmocka_run_group_tests_name("soft driven", tests, NULL, NULL);
}
