// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel tells of the thread that polls: is it runnable, and how long has it run? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "soft/poller.h"

#define MS 1000000u
#define TRIES 100000

static struct soft_poller poller;
static struct soft_mark mark;

static void wait_stored(void)
{
	while (!atomic_load(&poller.id))
		sched_yield();
}

/* Keeps this thread, and those it starts, on one processor. */
static bool pin(void)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all))
		return false;
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			break;
		}
	}
	return sched_setaffinity(0, sizeof(one), &one) == 0;
}

static int setup(void **state)
{
	(void)state;
	atomic_store(&poller.id, 0);
	mark = (struct soft_mark){.sleeps = 0};
	return 0;
}

/* --- threads --- */

static atomic_bool is_stopped;

/* Polls all the time. Its name looks like the end of the name and another state. */
static void *poll_always(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, ") S (x");
	while (!atomic_load(&is_stopped))
		soft_poller_store(&poller);
	return NULL;
}

static void *poll_once_and_spin(void *unused)
{
	(void)unused;
	soft_poller_store(&poller);
	while (!atomic_load(&is_stopped))
		;
	return NULL;
}

static void *poll_once_and_block(void *fd)
{
	char byte;

	soft_poller_store(&poller);
	assert_int_equal(read(*(int *)fd, &byte, 1), 1);
	return NULL;
}

static void *poll_once(void *unused)
{
	(void)unused;
	soft_poller_store(&poller);
	return NULL;
}

static pthread_t start(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	atomic_store(&is_stopped, false);
	assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
	return thread;
}

static void stop(pthread_t thread)
{
	atomic_store(&is_stopped, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* --- tests --- */

/* Two threads on one processor: while this one runs, the other waits for it. */
static void preempted__other_thread_has_the_processor__true(void **state)
{
	cpu_set_t before;
	bool is_seen = false;
	pthread_t thread;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	if (!pin())
		skip();
	thread = start(poll_always, NULL);
	wait_stored();
	/* between the two system calls of a check, the other may get it for some milliseconds */
	for (int i = 0; i < TRIES && !is_seen; i++)
		is_seen = soft_poller_is_preempted(&poller, MS);
	assert_true(is_seen);
	stop(thread);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* It runs: it computes, and does not poll. */
static void preempted__has_run_for_long__false(void **state)
{
	pthread_t thread = start(poll_once_and_spin, NULL);
	struct timespec time;
	clockid_t clock;

	(void)state;
	wait_stored();
	assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
	do {
		sched_yield();
		assert_int_equal(clock_gettime(clock, &time), 0);
	} while (!time.tv_sec && (uint64_t)time.tv_nsec < atomic_load(&poller.cpu_ns) + MS);
	assert_false(soft_poller_is_preempted(&poller, MS));
	stop(thread);
}

/* It sleeps in the kernel. */
static void preempted__blocked__false(void **state)
{
	pthread_t thread;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	thread = start(poll_once_and_block, &fds[0]);
	wait_stored();
	/* runnable until it blocks */
	while (soft_poller_is_preempted(&poller, UINT64_MAX))
		sched_yield();
	assert_int_not_equal(atomic_load(&poller.id), 0);
	assert_false(soft_poller_is_preempted(&poller, UINT64_MAX));
	assert_int_equal(write(fds[1], "", 1), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(fds[0]);
	close(fds[1]);
}

static void preempted__thread_ended__false(void **state)
{
	pthread_t thread = start(poll_once, NULL);

	(void)state;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_not_equal(atomic_load(&poller.id), 0);
	/* the number lives a moment longer than pthread_join waits */
	while (soft_poller_is_preempted(&poller, UINT64_MAX))
		sched_yield();
	assert_false(soft_poller_is_preempted(&poller, UINT64_MAX));
}

static void preempted__nobody_has_polled__false(void **state)
{
	(void)state;
	assert_false(soft_poller_is_preempted(&poller, UINT64_MAX));
	soft_poller_store(&poller);
	assert_true(soft_poller_is_preempted(&poller, UINT64_MAX)); /* this thread is runnable */
	soft_poller_clear(&poller);
	assert_false(soft_poller_is_preempted(&poller, UINT64_MAX));
}

/* The newest thread counts, and one that polls again. */
static void store__two_threads__the_last_one(void **state)
{
	pthread_t thread;

	(void)state;
	soft_poller_store(&poller);
	assert_int_equal(atomic_load(&poller.id), getpid());
	thread = start(poll_once, NULL);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_not_equal(atomic_load(&poller.id), getpid());
	soft_poller_store(&poller);
	assert_int_equal(atomic_load(&poller.id), getpid());
}

/* The thread that called fork has a number of its own in the child. */
static void store__in_a_child__its_own_number(void **state)
{
	pid_t child;
	int status;

	(void)state;
	soft_poller_store(&poller);
	child = fork();
	if (!child) {
		soft_poller_store(&poller);
		_exit(atomic_load(&poller.id) == getpid() ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* --- marks --- */

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
	thread = start(move_once, NULL);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(soft_mark_move(&mark, &used));
	(void)move_awake();
	/* one that has slept as often */
	atomic_store(&mark.at.id, getpid() + 1);
	assert_false(soft_mark_move(&mark, &used));
	(void)move_awake();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(preempted__other_thread_has_the_processor__true),
		TEST(preempted__has_run_for_long__false),
		TEST(preempted__blocked__false),
		TEST(preempted__thread_ended__false),
		TEST(preempted__nobody_has_polled__false),
		TEST(store__two_threads__the_last_one),
		TEST(store__in_a_child__its_own_number),
		TEST(move__computed_meanwhile__that_time),
		TEST(move__computed_for_part_of_a_tick__all_of_it),
		TEST(move__yielded_meanwhile__still_awake),
		TEST(move__slept_meanwhile__false),
		TEST(move__other_thread_set_it__false),
	};

	return cmocka_run_group_tests_name("soft poller", tests, NULL, NULL);
}
