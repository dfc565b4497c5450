// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel tells of the thread that polls: is it runnable, and how long has it run? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "soft/poller.h"

#define MS 1000000u
#define TRIES 100000 /* each lasts until both threads have had the processor */

static struct soft_poller poller;

/* The number that the thread has noted, once it has. */
static int32_t wait_noted(void)
{
	int32_t id;

	while (!(id = atomic_load(&poller.id)))
		sched_yield();
	return id;
}

static bool is_alone(void)
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
	return 0;
}

/* --- threads --- */

static atomic_bool is_stopped;

static void *spin(void *name)
{
	if (name)
		prctl(PR_SET_NAME, name);
	soft_poller_note(&poller);
	while (!atomic_load(&is_stopped))
		;
	return NULL;
}

static void *block(void *fd)
{
	char byte;

	soft_poller_note(&poller);
	assert_int_equal(read(*(int *)fd, &byte, 1), 1);
	return NULL;
}

static void *note(void *unused)
{
	(void)unused;
	soft_poller_note(&poller);
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

/*
 * Two threads on one processor: while this one runs, the other waits for it. Its name looks like
 * the end of the name and another state.
 */
static void preempted__other_thread_has_the_processor__true(void **state)
{
	cpu_set_t before;
	struct soft_poller_time since;
	bool is_seen = false;
	pthread_t thread;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	if (!is_alone())
		skip();
	thread = start(spin, ") S (x");
	(void)wait_noted();
	for (int i = 0; i < TRIES && !is_seen; i++) {
		since = soft_poller_time(&poller);
		assert_int_equal(since.id, atomic_load(&poller.id));
		/* a tick between the two calls may give it the processor for some milliseconds */
		is_seen = soft_poller_is_preempted(&since, MS);
	}
	assert_true(is_seen);
	stop(thread);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* It runs: it computes, and does not poll. */
static void preempted__has_run_for_long__false(void **state)
{
	pthread_t thread = start(spin, NULL);
	struct soft_poller_time since, now;

	(void)state;
	(void)wait_noted();
	since = soft_poller_time(&poller);
	assert_int_not_equal(since.id, 0);
	do {
		sched_yield();
		now = soft_poller_time(&poller);
	} while (now.cpu_ns - since.cpu_ns < MS);
	assert_false(soft_poller_is_preempted(&since, MS));
	stop(thread);
}

/* It sleeps in the kernel. */
static void preempted__blocked__false(void **state)
{
	struct soft_poller_time since, now;
	pthread_t thread;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	thread = start(block, &fds[0]);
	(void)wait_noted();
	/* runnable until it blocks */
	for (since = soft_poller_time(&poller);
	     soft_poller_is_preempted(&since, (uint64_t)MS * 1000000);)
		sched_yield();
	now = soft_poller_time(&poller);
	assert_int_equal(now.id, since.id);
	assert_false(soft_poller_is_preempted(&now, MS));
	assert_int_equal(write(fds[1], "", 1), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(fds[0]);
	close(fds[1]);
}

static void preempted__thread_ended__false(void **state)
{
	struct soft_poller_time since;
	pthread_t thread = start(spin, NULL);

	(void)state;
	(void)wait_noted();
	since = soft_poller_time(&poller);
	assert_int_not_equal(since.id, 0);
	stop(thread);
	/* the number lives a moment longer than pthread_join waits */
	while (soft_poller_time(&poller).id)
		sched_yield();
	assert_false(soft_poller_is_preempted(&since, UINT64_MAX));
}

static void preempted__nobody_has_polled__false(void **state)
{
	struct soft_poller_time since = soft_poller_time(&poller);

	(void)state;
	assert_int_equal(since.id, 0);
	assert_false(soft_poller_is_preempted(&since, UINT64_MAX));
}

/* The newest thread counts, and one that polls again. */
static void note__two_threads__the_last_one(void **state)
{
	int32_t first;
	pthread_t thread;

	(void)state;
	soft_poller_note(&poller);
	first = atomic_load(&poller.id);
	assert_int_equal(first, getpid());
	thread = start(note, NULL);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_not_equal(atomic_load(&poller.id), first);
	soft_poller_note(&poller);
	assert_int_equal(atomic_load(&poller.id), first);
}

/* The thread that called fork has a number of its own in the child. */
static void note__in_a_child__its_own_number(void **state)
{
	pid_t child;
	int status;

	(void)state;
	soft_poller_note(&poller);
	child = fork();
	if (!child) {
		soft_poller_note(&poller);
		_exit(atomic_load(&poller.id) == getpid() ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
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
		TEST(note__two_threads__the_last_one),
		TEST(note__in_a_child__its_own_number),
	};

	return cmocka_run_group_tests_name("soft poller", tests, NULL, NULL);
}
