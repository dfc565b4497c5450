// SPDX-License-Identifier: BSD-2-Clause
/*
 * The lock that becomes one thread's own: when it does, that another thread takes it away, and that
 * what it guards is never seen half changed, whoever holds it in whichever way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include "core/base/lock.h"

#define THREADS 4u
#define ROUNDS 40000u

struct guarded {
	struct core_lock lock;
	pthread_cond_t cond;
	/* equal whenever the lock is free */
	volatile uint64_t first;
	volatile uint64_t second;
	pthread_barrier_t start;
	volatile uint64_t torn; /* times they were not */
	volatile bool is_set;
};

static int setup(void **state)
{
	struct guarded *guarded = calloc(1, sizeof(*guarded));

	assert_non_null(guarded);
	core_lock_init(&guarded->lock);
	pthread_cond_init(&guarded->cond, NULL);
	pthread_barrier_init(&guarded->start, NULL, THREADS);
	*state = guarded;
	return 0;
}

static int teardown(void **state)
{
	struct guarded *guarded = *state;

	pthread_barrier_destroy(&guarded->start);
	pthread_cond_destroy(&guarded->cond);
	core_lock_destroy(&guarded->lock);
	free(guarded);
	return 0;
}

static void change(struct guarded *guarded)
{
	core_lock_acquire(&guarded->lock);
	if (guarded->first != guarded->second)
		guarded->torn++;
	guarded->first++;
	for (unsigned int i = 0; i < 10; i++)
		(void)guarded->first; /* some time in between */
	guarded->second++;
	core_lock_release(&guarded->lock);
}

static void become_owner(struct guarded *guarded)
{
	for (unsigned int i = 0; i < 1000; i++)
		change(guarded);
}

static void *change_once(void *arg)
{
	change(arg);
	return NULL;
}

static void lock__one_thread__becomes_its_own(void **state)
{
	struct guarded *guarded = *state;

	if (!CORE_LOCK_IS_OWNED)
		skip();
	assert_true(atomic_load(&guarded->lock.owner) == 0);
	become_owner(guarded);
	if (!atomic_load(&guarded->lock.owner))
		skip(); /* a kernel or a sandbox without membarrier */
	assert_true(atomic_load(&guarded->lock.owner) == core_lock_self());
	core_lock_acquire(&guarded->lock);
	assert_true(guarded->lock.is_entered);
	core_lock_release(&guarded->lock);
	assert_int_equal(atomic_load(&guarded->lock.inside), 0);
}

static void in_another_thread(struct guarded *guarded, void *(*run)(void *arg))
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, guarded), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void lock__other_thread__takes_it_away(void **state)
{
	struct guarded *guarded = *state;

	become_owner(guarded);
	in_another_thread(guarded, change_once);
	assert_true(guarded->first == 1001 && guarded->second == 1001);
	assert_true(atomic_load(&guarded->lock.owner) == 0);
	change(guarded);
	assert_false(guarded->lock.is_entered);
}

/* The time at which locks are lost. */
static _Atomic unsigned int loss_ms = 100000;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock != CLOCK_MONOTONIC_COARSE)
		return __real_clock_gettime(clock, now);
	now->tv_sec = loss_ms / 1000;
	now->tv_nsec = loss_ms % 1000 * 1000000L;
	return 0;
}

/* The longer it is fought for, the longer it stays a mutex. */
static void lock__taken_away_often__stays_a_mutex(void **state)
{
	struct guarded *guarded = *state;
	unsigned int round;

	if (!CORE_LOCK_IS_OWNED)
		skip();
	guarded->lock.lost_ms = (uint16_t)loss_ms;
	for (round = 0; round < 4; round++) {
		become_owner(guarded);
		if (!atomic_load(&guarded->lock.owner))
			break;
		in_another_thread(guarded, change_once);
	}
	if (round == 0)
		skip(); /* a kernel or a sandbox without membarrier */
	assert_int_equal(round, 4);
	become_owner(guarded); /* 64 << 4 are more than these */
	assert_true(atomic_load(&guarded->lock.owner) == 0);
}

static void *become_owner_run(void *arg)
{
	become_owner(arg);
	return NULL;
}

/*
 * The owner may stand between its look at the lock and its entry: until it has come again, nobody
 * else enters in that way.
 */
static void lock__taken_away__nobodys_own_before_the_owner_came_again(void **state)
{
	struct guarded *guarded = *state;
	uintptr_t owner;

	if (!CORE_LOCK_IS_OWNED)
		skip();
	become_owner(guarded);
	owner = atomic_load(&guarded->lock.owner);
	if (!owner)
		skip(); /* a kernel or a sandbox without membarrier */
	loss_ms += 1000;
	for (unsigned int round = 0; round < 10; round++) {
		in_another_thread(guarded, become_owner_run);
		assert_true(atomic_load(&guarded->lock.owner) == 0);
	}
	change(guarded);
	in_another_thread(guarded, become_owner_run);
	assert_true(atomic_load(&guarded->lock.owner) != 0);
	assert_true(atomic_load(&guarded->lock.owner) != owner);
}

/* One that is lost now and then does not stay a mutex for good. */
static void lock__taken_away_rarely__becomes_owned_again(void **state)
{
	struct guarded *guarded = *state;

	if (!CORE_LOCK_IS_OWNED)
		skip();
	become_owner(guarded);
	if (!atomic_load(&guarded->lock.owner))
		skip(); /* a kernel or a sandbox without membarrier */
	for (unsigned int round = 0; round < 40; round++) {
		loss_ms += 1000;
		in_another_thread(guarded, change_once);
		become_owner(guarded);
		assert_true(atomic_load(&guarded->lock.owner) != 0);
	}
}

/* Bursts, so that the ownership comes and goes at any point of the others. */
static void *fight(void *arg)
{
	struct guarded *guarded = arg;
	unsigned int seed = (unsigned int)(uintptr_t)&seed;

	pthread_barrier_wait(&guarded->start);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		change(guarded);
		seed = seed * 1664525u + 1013904223u;
		if (seed >> 20 == 0)
			sched_yield();
		/* as a lock that was hardly ever lost */
		if (i % 512 == 0) {
			core_lock_acquire(&guarded->lock);
			guarded->lock.losses = 0;
			core_lock_release(&guarded->lock);
		}
	}
	return NULL;
}

static void lock__many_threads__nothing_lost(void **state)
{
	struct guarded *guarded = *state;
	pthread_t threads[THREADS];

	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fight, guarded), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_true(guarded->first == THREADS * ROUNDS);
	assert_true(guarded->second == THREADS * ROUNDS);
	assert_true(guarded->torn == 0);
}

static void *enter_again_and_again(void *arg)
{
	struct guarded *guarded = arg;

	while (!guarded->is_set)
		change(guarded);
	return NULL;
}

/* Each time while the owner goes in and out as fast as it can. */
static void lock__taken_from_a_busy_owner__nothing_lost(void **state)
{
	struct guarded *guarded = *state;
	pthread_t thread;

	if (!CORE_LOCK_IS_OWNED)
		skip();
	assert_int_equal(pthread_create(&thread, NULL, enter_again_and_again, guarded), 0);
	for (unsigned int round = 0; round < 20000; round++) {
		unsigned int tries;

		for (tries = 0; !atomic_load(&guarded->lock.owner) && tries < 10000; tries++)
			;
		change(guarded);
		core_lock_acquire(&guarded->lock);
		guarded->lock.losses = 0;
		core_lock_release(&guarded->lock);
	}
	guarded->is_set = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(guarded->first == guarded->second);
	assert_true(guarded->torn == 0);
}

static void *set_and_signal(void *arg)
{
	struct guarded *guarded = arg;

	become_owner(guarded);
	core_lock_acquire(&guarded->lock);
	guarded->is_set = true;
	pthread_cond_signal(&guarded->cond);
	core_lock_release(&guarded->lock);
	return NULL;
}

static void wait__owner_waits_for_another_thread__is_woken(void **state)
{
	struct guarded *guarded = *state;
	pthread_t thread;

	for (unsigned int round = 0; round < 200; round++) {
		become_owner(guarded);
		guarded->is_set = false;
		assert_int_equal(pthread_create(&thread, NULL, set_and_signal, guarded), 0);
		core_lock_acquire(&guarded->lock);
		while (!guarded->is_set)
			core_lock_wait(&guarded->lock, &guarded->cond);
		assert_false(guarded->lock.is_entered);
		core_lock_release(&guarded->lock);
		assert_int_equal(pthread_join(thread, NULL), 0);
		guarded->lock.losses = 0;
	}
	assert_true(guarded->first == guarded->second);
	assert_true(guarded->torn == 0);
}

/* What a thread sleeps by while the owner is inside. */
static _Atomic unsigned int sleeps;

int __real_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
			   struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
			   struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
			   struct timespec *left)
{
	int rc = __real_clock_nanosleep(clock, flags, time, left);

	sleeps++;
	return rc;
}

static void note_cancellation(void *arg)
{
	*(_Atomic bool *)arg = true;
}

static _Atomic bool was_cancelled;

/* Its cancellation is asked for already, and acts at the first cancellation point. */
static void *change_and_die(void *arg)
{
	pthread_cleanup_push(note_cancellation, &was_cancelled);
	pthread_cancel(pthread_self());
	change(arg);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	return arg;
}

/* The calls of the data path run with cancellation on: it must not leave the mutex locked. */
static void lock__cancelled_while_the_owner_is_inside__is_taken_first(void **state)
{
	struct guarded *guarded = *state;
	void *result = NULL;
	pthread_t thread;

	become_owner(guarded);
	if (!atomic_load(&guarded->lock.owner))
		skip(); /* a kernel or a sandbox without membarrier */
	sleeps = 0;
	was_cancelled = false;
	core_lock_acquire(&guarded->lock);
	assert_int_equal(pthread_create(&thread, NULL, change_and_die, guarded), 0);
	while (!sleeps && !was_cancelled)
		sched_yield();
	core_lock_release(&guarded->lock);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, guarded);
	change(guarded);
	assert_true(guarded->first == 1002);
}

static bool is_sandboxed;

/* Only membarrier comes this way. */
long __real_syscall(long number, long command, long flags, long cpu);
long __wrap_syscall(long number, long command, long flags, long cpu);
long __wrap_syscall(long number, long command, long flags, long cpu)
{
	assert_int_equal(number, SYS_membarrier);
	if (!is_sandboxed)
		return __real_syscall(number, command, flags, cpu);
	errno = EPERM;
	return -1;
}

/* What a lock costs when it is taken away without membarrier is not paid twice. Comes last. */
static void lock__sandbox_closed_meanwhile__taken_away_for_good(void **state)
{
	struct guarded *guarded = *state;

	become_owner(guarded);
	if (!atomic_load(&guarded->lock.owner))
		skip(); /* a kernel or a sandbox without membarrier */
	is_sandboxed = true;
	in_another_thread(guarded, change_once);
	assert_true(guarded->first == 1001 && guarded->second == 1001);
	become_owner(guarded);
	assert_true(atomic_load(&guarded->lock.owner) == 0);
	is_sandboxed = false;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(lock__one_thread__becomes_its_own),
		TEST(lock__other_thread__takes_it_away),
		TEST(lock__taken_away_often__stays_a_mutex),
		TEST(lock__taken_away__nobodys_own_before_the_owner_came_again),
		TEST(lock__taken_away_rarely__becomes_owned_again),
		TEST(lock__many_threads__nothing_lost),
		TEST(lock__taken_from_a_busy_owner__nothing_lost),
		TEST(wait__owner_waits_for_another_thread__is_woken),
		TEST(lock__cancelled_while_the_owner_is_inside__is_taken_first),
		TEST(lock__sandbox_closed_meanwhile__taken_away_for_good),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
