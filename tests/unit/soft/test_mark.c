// SPDX-License-Identifier: BSD-2-Clause
/* How long the thread that polls has run, and whether it has slept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "soft/mark.h"

#define MS 1000000u
#define TRIES 100000

static struct soft_mark mark;

static int setup(void **state)
{
	(void)state;
	mark = (struct soft_mark){.sleeps = 0};
	return 0;
}

static uint64_t cpu_now(void)
{
	struct timespec time;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
	return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

/* Moves it until this thread has not slept meanwhile, which it may have in a page fault. */
static uint64_t move_awake(void)
{
	uint64_t used;
	int tries = 0;

	while (!soft_mark_move(&mark, &used))
		assert_true(++tries < TRIES);
	return used;
}

/* Only the processor time of this thread counts. */
static void move__computed_meanwhile__that_time(void **state)
{
	uint64_t begin, used = 0;

	(void)state;
	do { /* until the thread was not interrupted by a sleep */
		(void)move_awake();
		begin = cpu_now();
		while (cpu_now() < begin + 2 * MS)
			;
	} while (!soft_mark_move(&mark, &used));
	assert_in_range(used, 2 * MS - 10000, cpu_now() - begin + MS);
}

/* Computes for a millisecond, without a look at the clock of the thread: that updates it. */
static void compute(void)
{
	struct timespec now;
	uint64_t end = 0;

	do {
		assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
		if (!end)
			end = (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec + MS;
	} while ((uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec < end);
}

/* COMPAT-46: processor time counts at once, not when the tick of the kernel ends. */
static void move__computed_for_part_of_a_tick__all_of_it(void **state)
{
	int tries = 0;

	(void)state;
	for (int round = 0; round < 20;) {
		uint64_t begin = cpu_now(), used, all;
		bool is_awake;

		(void)move_awake();
		compute();
		is_awake = soft_mark_move(&mark, &used);
		all = cpu_now() - begin;
		assert_true(++tries < TRIES);
		if (!is_awake || all < MS / 2)
			continue; /* it slept, or others had the processor */
		assert_true(used >= all / 2);
		round++;
	}
}

static void move__yielded_meanwhile__still_awake(void **state)
{
	uint64_t used;
	int tries = 0;

	(void)state;
	do {
		(void)move_awake();
		sched_yield();
		assert_true(++tries < TRIES);
	} while (!soft_mark_move(&mark, &used));
}

static long sleeps(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

static void move__slept_meanwhile__false(void **state)
{
	const struct timespec moment = {.tv_nsec = MS};
	uint64_t used;
	long before;

	(void)state;
	(void)move_awake();
	before = sleeps();
	do /* the time may be over before the thread can sleep */
		assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL), 0);
	while (sleeps() == before);
	assert_false(soft_mark_move(&mark, &used));
	(void)move_awake();
}

static void *move_once(void *unused)
{
	uint64_t used;

	(void)unused;
	(void)soft_mark_move(&mark, &used);
	return NULL;
}

static void move__other_thread_set_it__false(void **state)
{
	pthread_t thread;
	uint64_t used;

	(void)state;
	assert_false(soft_mark_move(&mark, &used)); /* nobody has */
	(void)move_awake();
	assert_int_equal(pthread_create(&thread, NULL, move_once, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(soft_mark_move(&mark, &used));
	(void)move_awake();
	/* one that has slept as often */
	atomic_store(&mark.id, getpid() + 1);
	assert_false(soft_mark_move(&mark, &used));
	(void)move_awake();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(move__computed_meanwhile__that_time),
		TEST(move__computed_for_part_of_a_tick__all_of_it),
		TEST(move__yielded_meanwhile__still_awake),
		TEST(move__slept_meanwhile__false),
		TEST(move__other_thread_set_it__false),
	};

	return cmocka_run_group_tests_name("soft mark", tests, NULL, NULL);
}
