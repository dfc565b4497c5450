// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pins on regions. Revoking a region waits for every pin, however it is stored, and after the
 * return no thread uses the region: dat_lmr_free relies on this. Only a region that was pinned
 * often costs a membarrier.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/mem/mem.h"

#define USERS 2u
#define ROUNDS 2000u /* fewer on a busy machine, where each takes some time slices */
#define ROUNDS_LEAST 100u
#define ROUNDS_NS UINT64_C(5000000000)
/* Minimum uses of a region by all users together: before pins are light, and after that. */
#define USES_FEW 10u
#define USES_MANY 200u
#define READS 200u
#define COLD (32u * 1024 * 1024)
#define LINES 8u
#define PINS (2 * CORE_PINS_MAX)
#define YIELDS 500u

struct stage {
	struct core_mem *mem;
	struct core_lmr *lmr;
	DAT_LMR_TRIPLET segment;
	unsigned char memory[64];
	int is_live; /* not atomic: written only while no thread may use the region */
	_Atomic uint32_t key;
	_Atomic uint32_t uses;
	_Atomic uint32_t violations;
	_Atomic bool is_over;
	_Atomic bool is_revoked;
	sem_t pinned, go_on;
	unsigned char *cold; /* larger than the caches */
};

static struct stage *stage;

static unsigned barriers;

void __real_core_fence_heavy(enum core_fence_scope scope);
void __wrap_core_fence_heavy(enum core_fence_scope scope);
void __wrap_core_fence_heavy(enum core_fence_scope scope)
{
	barriers++;
	__real_core_fence_heavy(scope);
}

static void publish(void)
{
	stage->lmr = core_mem_alloc(stage->mem);
	assert_non_null(stage->lmr);
	core_mem_describe(stage->lmr, (uintptr_t)stage->memory, sizeof(stage->memory),
			  DAT_MEM_PRIV_ALL_FLAG, NULL);
	stage->is_live = 1;
	stage->segment.virtual_address = (uintptr_t)stage->memory;
	stage->segment.segment_length = sizeof(stage->memory);
	stage->segment.lmr_context = core_mem_publish(stage->mem, stage->lmr);
	atomic_store(&stage->key, stage->segment.lmr_context);
}

static int setup(void **state)
{
	(void)state;
	stage = calloc(1, sizeof(*stage));
	assert_non_null(stage);
	stage->mem = core_mem_new();
	assert_non_null(stage->mem);
	sem_init(&stage->pinned, 0, 0);
	sem_init(&stage->go_on, 0, 0);
	publish();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sem_destroy(&stage->pinned);
	sem_destroy(&stage->go_on);
	core_mem_delete(stage->mem);
	free(stage);
	return 0;
}

/* Stores to cache lines that no cache holds, which delays the stores after them. */
static void delay_stores(uint32_t *seed)
{
	for (unsigned i = 0; i < LINES; i++) {
		*seed = *seed * 1664525u + 1013904223u;
		__atomic_store_n(&stage->cold[*seed % COLD], 1, __ATOMIC_RELAXED);
	}
}

static struct core_lmr *get(const DAT_LMR_TRIPLET *segment)
{
	return core_mem_get(stage->mem, segment, NULL, CORE_MEM_SOURCE);
}

/* Pins the region of that key as the fast path does. NULL: it has no light pins, or is freed. */
static struct core_lmr *get_one(uint32_t key)
{
	struct core_lmr *lmr = core_mem_slot(stage->mem, key);

	if (!core_pin_one(&lmr->pinned))
		return NULL;
	if (atomic_load(&lmr->key) == key)
		return lmr;
	core_unpin_one();
	return NULL;
}

static void *use_region(void *unused)
{
	DAT_LMR_TRIPLET segment = {
		.virtual_address = (uintptr_t)stage->memory,
		.segment_length = sizeof(stage->memory),
	};
	uint32_t seed = 1;

	while (!atomic_load(&stage->is_over)) {
		struct core_lmr *lmr;
		bool is_one;

		segment.lmr_context = atomic_load(&stage->key);
		delay_stores(&seed);
		is_one = seed & 0x10000;
		lmr = is_one ? get_one(segment.lmr_context) : NULL;
		is_one = lmr;
		if (!lmr)
			lmr = get(&segment);
		if (!lmr) {
			sched_yield();
			continue;
		}
		for (unsigned i = 0; i < READS; i++)
			if (!*(volatile int *)&stage->is_live)
				atomic_fetch_add(&stage->violations, 1);
		if (is_one)
			core_unpin_one();
		else
			core_mem_put(lmr);
		atomic_fetch_add(&stage->uses, 1);
	}
	return unused;
}

/* LMR-FREE-06 LMR-FREE-21: threads use a region as fast as they can. In every other round they use
 * it often enough for light pins. */
static void revoke__threads_use_the_region__none_does_afterwards(void **state)
{
	uint64_t end_ns = core_now_ns() + ROUNDS_NS;
	pthread_t users[USERS];

	(void)state;
	stage->cold = mmap(NULL, COLD, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	assert_ptr_not_equal(stage->cold, MAP_FAILED);
	for (unsigned i = 0; i < USERS; i++)
		assert_int_equal(pthread_create(&users[i], NULL, use_region, NULL), 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		atomic_store(&stage->uses, 0);
		while (atomic_load(&stage->uses) < (round % 2 ? USES_MANY : USES_FEW))
			sched_yield();
		/* a delay, so that the revoke happens at any point of a use */
		for (unsigned spins = 0; spins < round * 37 % 512; spins++)
			atomic_signal_fence(memory_order_seq_cst);
		core_mem_revoke(stage->mem, stage->lmr);
		stage->is_live = 0;
		core_mem_free(stage->mem, stage->lmr);
		publish();
		if (round >= ROUNDS_LEAST && core_now_ns() > end_ns)
			break;
	}
	atomic_store(&stage->is_over, true);
	for (unsigned i = 0; i < USERS; i++)
		pthread_join(users[i], NULL);
	munmap(stage->cold, COLD);
	assert_int_equal(atomic_load(&stage->violations), 0);
}

static void use_times(unsigned uses)
{
	while (uses--)
		core_mem_put(get(&stage->segment));
}

/* COMPAT-47: a region that is registered for one message is freed without a system call. */
static void revoke__used_a_few_times__no_barrier(void **state)
{
	(void)state;
	barriers = 0;
	core_mem_revoke(stage->mem, stage->lmr);
	publish();
	use_times(CORE_FENCE_AFTER_PINS - 1);
	core_mem_revoke(stage->mem, stage->lmr);
	assert_int_equal(barriers, 0);
}

/* Light pins end with the region: the next region in the slot starts with full fences. */
static void revoke__used_often__one_barrier(void **state)
{
	struct core_lmr *slot = stage->lmr;

	(void)state;
	if (!core_fence_is_supported(CORE_FENCE_PROCESS))
		skip(); /* a kernel or a sandbox without membarrier */
	barriers = 0;
	use_times(CORE_FENCE_AFTER_PINS);
	core_mem_revoke(stage->mem, slot);
	assert_int_equal(barriers, 1);
	stage->segment.lmr_context = core_mem_publish(stage->mem, slot);
	use_times(1);
	core_mem_revoke(stage->mem, slot);
	assert_int_equal(barriers, 1);
}

static void *revoke_region(void *unused)
{
	core_mem_revoke(stage->mem, stage->lmr);
	atomic_store(&stage->is_revoked, true);
	return unused;
}

/* A stale key shows that the other thread is inside core_mem_revoke. */
static void await_revoker(void)
{
	struct core_lmr *lmr;

	while ((lmr = get(&stage->segment)) != NULL) {
		core_mem_put(lmr);
		sched_yield();
	}
}

/* Removes a pin for which the revoker must have waited. */
static void put_pinned(struct core_lmr *lmr)
{
	if (atomic_load(&stage->is_revoked))
		atomic_fetch_add(&stage->violations, 1);
	core_mem_put(lmr);
}

/* Releases the last one. A revoker that does not wait for it gets the time to return. */
static void put_last(struct core_lmr *lmr)
{
	for (unsigned i = 0; i < YIELDS && !atomic_load(&stage->is_revoked); i++)
		sched_yield();
	put_pinned(lmr);
}

/* The region is revoked while the thread `user` has it pinned. */
static void revoke_while(void *(*user_main)(void *))
{
	pthread_t user, revoker;

	assert_int_equal(pthread_create(&user, NULL, user_main, NULL), 0);
	sem_wait(&stage->pinned);
	assert_int_equal(pthread_create(&revoker, NULL, revoke_region, NULL), 0);
	pthread_join(revoker, NULL);
	pthread_join(user, NULL);
	assert_true(atomic_load(&stage->is_revoked));
	assert_int_equal(atomic_load(&stage->violations), 0);
}

/* Takes more pins than the set of a thread holds. */
static void *pin_many(void *unused)
{
	struct core_lmr *pins[PINS];
	unsigned i;

	for (i = 0; i < PINS; i++) {
		pins[i] = get(&stage->segment);
		if (!pins[i])
			atomic_fetch_add(&stage->violations, 1);
	}
	sem_post(&stage->pinned);
	await_revoker();
	for (i = 0; i < PINS - 1; i++)
		put_pinned(stage->lmr);
	put_last(stage->lmr);
	return unused;
}

static void revoke__pinned_many_times__waits_for_the_last(void **state)
{
	(void)state;
	revoke_while(pin_many);
}

/* Takes two light pins, and removes the second one before the revoker comes. */
static void *pin_twice(void *unused)
{
	struct core_lmr *first = get(&stage->segment);
	struct core_lmr *second = get(&stage->segment);

	core_mem_put(second);
	sem_post(&stage->pinned);
	await_revoker();
	put_last(first);
	return unused;
}

/* LMR-FREE-21 */
static void revoke__pinned_twice_lightly__waits_for_the_first(void **state)
{
	(void)state;
	use_times(CORE_FENCE_AFTER_PINS);
	revoke_while(pin_twice);
}

/* Takes the pin of the fast path, and meanwhile others. */
static void *pin_lightly(void *unused)
{
	struct core_lmr *other = get(&stage->segment); /* the set of the thread is listed */
	struct core_lmr *first = get_one(stage->segment.lmr_context);

	if (!first)
		atomic_fetch_add(&stage->violations, 1);
	core_mem_put(other);
	sem_post(&stage->pinned);
	await_revoker();
	for (unsigned i = 0; i < YIELDS && !atomic_load(&stage->is_revoked); i++)
		sched_yield();
	if (atomic_load(&stage->is_revoked))
		atomic_fetch_add(&stage->violations, 1);
	core_unpin_one();
	return unused;
}

/* LMR-FREE-21 */
static void revoke__pinned_by_the_fast_path__waits_for_it(void **state)
{
	(void)state;
	if (!core_fence_is_supported(CORE_FENCE_PROCESS))
		skip();
	use_times(CORE_FENCE_AFTER_PINS);
	revoke_while(pin_lightly);
}

/* A region without light pins, and a thread whose set nobody would search, have no such pin. */
static void *pin_unlisted(void *unused)
{
	if (get_one(stage->segment.lmr_context))
		atomic_fetch_add(&stage->violations, 1);
	return unused;
}

static void pin_one__no_light_pins_or_no_set__refused(void **state)
{
	pthread_t thread;

	(void)state;
	if (!core_fence_is_supported(CORE_FENCE_PROCESS))
		skip();
	use_times(CORE_FENCE_AFTER_PINS - 1);
	assert_null(get_one(stage->segment.lmr_context));
	use_times(1);
	assert_non_null(get_one(stage->segment.lmr_context));
	core_unpin_one();
	assert_int_equal(pthread_create(&thread, NULL, pin_unlisted, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&stage->violations), 0);
}

/* Two regions are pinned; the first one is unpinned first. */
static void revoke__not_the_newest_pin__returns_when_it_is_removed(void **state)
{
	struct core_lmr *other = core_mem_alloc(stage->mem);
	DAT_LMR_TRIPLET segment = stage->segment;
	struct core_lmr *first, *second;

	(void)state;
	core_mem_describe(other, (uintptr_t)stage->memory, sizeof(stage->memory),
			  DAT_MEM_PRIV_ALL_FLAG, NULL);
	segment.lmr_context = core_mem_publish(stage->mem, other);
	first = get(&stage->segment);
	second = get(&segment);
	assert_ptr_equal(first, stage->lmr);
	assert_ptr_equal(second, other);
	core_mem_put(first);
	core_mem_revoke(stage->mem, stage->lmr);
	assert_null(get(&stage->segment));
	core_mem_put(second);
	core_mem_revoke(stage->mem, other);
	assert_null(get(&segment));
}

static void *pin_one(void *unused)
{
	struct core_lmr *lmr = get(&stage->segment);

	sem_post(&stage->pinned);
	sem_wait(&stage->go_on);
	core_mem_put(lmr);
	return unused;
}

/* A child does not wait for pins of threads of its parent. The parent still does. */
static void revoke__in_a_child__does_not_wait_for_threads_of_the_parent(void **state)
{
	pthread_t user;
	pid_t child;
	int status;

	(void)state;
	assert_int_equal(pthread_create(&user, NULL, pin_one, NULL), 0);
	sem_wait(&stage->pinned);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		alarm(60); /* a failure would hang */
		core_mem_revoke(stage->mem, stage->lmr);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	sem_post(&stage->go_on);
	pthread_join(user, NULL);
	core_mem_revoke(stage->mem, stage->lmr);
	assert_null(get(&stage->segment));
}

/* --- threads that end, and handlers of the consumer --- */

static pthread_key_t late;
static _Atomic int rounds_left;

/* Runs in each round of destructors, so after the last one of the library too. */
static void use_at_the_end(void *rounds)
{
	core_mem_put(get(&stage->segment));
	if (atomic_fetch_sub(&rounds_left, 1) > 1)
		pthread_setspecific(late, rounds);
}

static void *end_late(void *rounds)
{
	core_mem_put(get(&stage->segment));
	pthread_setspecific(late, rounds);
	return NULL;
}

static void revoke__threads_used_the_region_in_their_last_destructor__returns(void **state)
{
	(void)state;
	core_mem_put(get(&stage->segment)); /* creates the key of the library first */
	assert_int_equal(pthread_key_create(&late, use_at_the_end), 0);
	for (unsigned i = 0; i < 3; i++) { /* mostly at the same address */
		pthread_t user;

		atomic_store(&rounds_left, PTHREAD_DESTRUCTOR_ITERATIONS);
		assert_int_equal(pthread_create(&user, NULL, end_late, &rounds_left), 0);
		pthread_join(user, NULL);
		assert_int_equal(atomic_load(&rounds_left), 0);
	}
	pthread_key_delete(late);
	alarm(60); /* a failure would hang */
	core_mem_revoke(stage->mem, stage->lmr);
	alarm(0);
	assert_null(get(&stage->segment));
}

static unsigned revoked_in_handlers;

static void revoke_in_a_handler(void)
{
	if (!stage || !stage->lmr)
		return;
	core_mem_revoke(stage->mem, stage->lmr);
	revoked_in_handlers++;
}

/* A program may free its regions in its own fork handlers. */
static void revoke__in_a_handler_of_a_fork__returns(void **state)
{
	int status;
	pid_t child;

	(void)state;
	core_mem_put(get(&stage->segment)); /* installs the handlers of the library first */
	assert_int_equal(pthread_atfork(revoke_in_a_handler, revoke_in_a_handler, NULL), 0);
	alarm(60); /* a failure would hang */
	child = fork();
	if (!child)
		_exit(0);
	alarm(0);
	stage->lmr = NULL;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(revoked_in_handlers, 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(revoke__threads_use_the_region__none_does_afterwards),
		TEST(revoke__used_a_few_times__no_barrier),
		TEST(revoke__used_often__one_barrier),
		TEST(revoke__pinned_many_times__waits_for_the_last),
		TEST(revoke__pinned_twice_lightly__waits_for_the_first),
		TEST(revoke__pinned_by_the_fast_path__waits_for_it),
		TEST(pin_one__no_light_pins_or_no_set__refused),
		TEST(revoke__not_the_newest_pin__returns_when_it_is_removed),
		TEST(revoke__in_a_child__does_not_wait_for_threads_of_the_parent),
		TEST(revoke__threads_used_the_region_in_their_last_destructor__returns),
		TEST(revoke__in_a_handler_of_a_fork__returns), /* last: handlers stay */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
