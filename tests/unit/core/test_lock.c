// SPDX-License-Identifier: BSD-2-Clause
/*
 * Biased locks: when a lock is biased, that another thread can revoke the bias, and that the lock
 * protects its data however it is held.
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
	volatile uint64_t torn; /* how often they differed */
	_Atomic bool is_set;
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
		(void)guarded->first; /* a delay between the two stores */
	guarded->second++;
	core_lock_release(&guarded->lock);
}

static void take_repeatedly(struct guarded *guarded)
{
	for (unsigned int i = 0; i < 1000; i++)
		change(guarded);
}

static void *change_once(void *arg)
{
	change(arg);
	return NULL;
}

static void lock__one_thread__biased_to_it(void **state)
{
	struct guarded *guarded = *state;

	assert_true(atomic_load(&guarded->lock.owner) == 0);
	take_repeatedly(guarded);
	if (!atomic_load(&guarded->lock.owner))
		skip(); /* a kernel or a sandbox without membarrier */
	assert_true(atomic_load(&guarded->lock.owner) == core_lock_self());
	core_lock_acquire(&guarded->lock);
	assert_true(guarded->lock.is_entered);
	core_lock_release(&guarded->lock);
	assert_int_equal(atomic_load(&guarded->lock.inside), 0);
}

static void run_in_another_thread(struct guarded *guarded, void *(*run)(void *arg))
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, guarded), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void lock__other_thread__revokes_the_bias(void **state)
{
	struct guarded *guarded = *state;

	take_repeatedly(guarded);
	run_in_another_thread(guarded, change_once);
	assert_true(guarded->first == 1001 && guarded->second == 1001);
	assert_true(atomic_load(&guarded->lock.owner) == 0);
	change(guarded);
	assert_false(guarded->lock.is_entered);
}

/* The time that a revocation sees. */
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

/* The more often the bias is revoked, the longer the lock stays a mutex. */
static void lock__revoked_often__stays_a_mutex(void **state)
{
	struct guarded *guarded = *state;
	unsigned int round;

	guarded->lock.lost_ms = (uint16_t)loss_ms;
	for (round = 0; round < 4; round++) {
		take_repeatedly(guarded);
		if (!atomic_load(&guarded->lock.owner))
			break;
		run_in_another_thread(guarded, change_once);
	}
	if (round == 0)
		skip(); /* a kernel or a sandbox without membarrier */
	assert_int_equal(round, 4);
	take_repeatedly(guarded); /* its 1000 acquisitions are fewer than 64 << 4 */
	assert_true(atomic_load(&guarded->lock.owner) == 0);
}

static void *take_repeatedly_run(void *arg)
{
	take_repeatedly(arg);
	return NULL;
}

/*
 * The former owner may be between its load of `owner` and its store to `inside`. Until it takes the
 * mutex, the lock is biased to no other thread.
 */
static void lock__revoked__not_biased_before_the_owner_took_the_mutex(void **state)
{
	struct guarded *guarded = *state;
	uintptr_t owner;

	take_repeatedly(guarded);
	owner = atomic_load(&guarded->lock.owner);
	if (!owner)
		skip(); /* a kernel or a sandbox without membarrier */
	loss_ms += 1000;
	for (unsigned int round = 0; round < 10; round++) {
		run_in_another_thread(guarded, take_repeatedly_run);
		assert_true(atomic_load(&guarded->lock.owner) == 0);
	}
	change(guarded);
	run_in_another_thread(guarded, take_repeatedly_run);
	assert_true(atomic_load(&guarded->lock.owner) != 0);
	assert_true(atomic_load(&guarded->lock.owner) != owner);
}

/* Rare revocations do not keep a lock from being biased again. */
static void lock__revoked_rarely__biased_again(void **state)
{
	struct guarded *guarded = *state;

	take_repeatedly(guarded);
	if (!atomic_load(&guarded->lock.owner))
		skip(); /* a kernel or a sandbox without membarrier */
	for (unsigned int round = 0; round < 40; round++) {
		loss_ms += 1000;
		run_in_another_thread(guarded, change_once);
		take_repeatedly(guarded);
		assert_true(atomic_load(&guarded->lock.owner) != 0);
	}
}

/* Takes the lock in bursts, so that it is biased and revoked at any point of the other threads. */
static void *contend(void *arg)
{
	struct guarded *guarded = arg;
	unsigned int seed = (unsigned int)(uintptr_t)&seed;

	pthread_barrier_wait(&guarded->start);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		change(guarded);
		seed = seed * 1664525u + 1013904223u;
		if (seed >> 20 == 0)
			sched_yield();
		/* as if the bias had rarely been revoked */
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
		assert_int_equal(pthread_create(&threads[i], NULL, contend, guarded), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_true(guarded->first == THREADS * ROUNDS);
	assert_true(guarded->second == THREADS * ROUNDS);
	assert_true(guarded->torn == 0);
}

static void *take_until_set(void *arg)
{
	struct guarded *guarded = arg;

	while (!guarded->is_set)
		change(guarded);
	return NULL;
}

/* The bias is revoked while the owner takes and releases the lock as fast as it can. */
static void lock__revoked_from_a_busy_owner__nothing_lost(void **state)
{
	struct guarded *guarded = *state;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, take_until_set, guarded), 0);
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

	take_repeatedly(guarded);
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
		take_repeatedly(guarded);
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

/* Counts the sleeps of a thread that revokes the bias while the owner is inside. */
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

/* Cancels itself: the cancellation happens at the first cancellation point. */
static void *change_and_be_cancelled(void *arg)
{
	pthread_cleanup_push(note_cancellation, &was_cancelled);
	pthread_cancel(pthread_self());
	change(arg);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	return arg;
}

/* The data path runs with cancellation enabled, which must not leave the mutex locked. */
static void lock__cancelled_while_the_owner_is_inside__taken_first(void **state)
{
	struct guarded *guarded = *state;
	void *result = NULL;
	pthread_t thread;

	take_repeatedly(guarded);
	if (!atomic_load(&guarded->lock.owner))
		skip(); /* a kernel or a sandbox without membarrier */
	sleeps = 0;
	was_cancelled = false;
	core_lock_acquire(&guarded->lock);
	assert_int_equal(pthread_create(&thread, NULL, change_and_be_cancelled, guarded), 0);
	while (!sleeps && !was_cancelled)
		sched_yield();
	core_lock_release(&guarded->lock);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, guarded);
	change(guarded);
	assert_true(guarded->first == 1002);
}

static bool is_sandboxed;

/* The lock calls syscall() only for membarrier. */
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

/* Revoking without membarrier is slow, so no lock is biased after that. This test runs last. */
static void lock__membarrier_forbidden_meanwhile__never_biased_again(void **state)
{
	struct guarded *guarded = *state;

	take_repeatedly(guarded);
	if (!atomic_load(&guarded->lock.owner))
		skip(); /* a kernel or a sandbox without membarrier */
	is_sandboxed = true;
	run_in_another_thread(guarded, change_once);
	assert_true(guarded->first == 1001 && guarded->second == 1001);
	take_repeatedly(guarded);
	assert_true(atomic_load(&guarded->lock.owner) == 0);
	is_sandboxed = false;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(lock__one_thread__biased_to_it),
		TEST(lock__other_thread__revokes_the_bias),
		TEST(lock__revoked_often__stays_a_mutex),
		TEST(lock__revoked__not_biased_before_the_owner_took_the_mutex),
		TEST(lock__revoked_rarely__biased_again),
		TEST(lock__many_threads__nothing_lost),
		TEST(lock__revoked_from_a_busy_owner__nothing_lost),
		TEST(wait__owner_waits_for_another_thread__is_woken),
		TEST(lock__cancelled_while_the_owner_is_inside__taken_first),
		TEST(lock__membarrier_forbidden_meanwhile__never_biased_again),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
