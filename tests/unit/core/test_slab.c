// SPDX-License-Identifier: BSD-2-Clause
/* The slab allocator: objects are zeroed, aligned and disjoint, and are reused when freed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/slab.h"

#define THREADS 4u
#define LIVE 64u
#define ROUNDS 20000u
#define FORKS 500u
#define PAIRS 6000u

static const size_t sizes[] = {1, 63, 64, 65, 1000, 1408, 4096, 4097, 65536, 200000};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static bool is_all(const unsigned char *p, size_t size, unsigned char value)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] != value)
			return false;
	return true;
}

static void alloc__any_size__zeroed_and_aligned(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		for (size_t i = 0; i < SIZES; i++) {
			unsigned char *p = core_slab_alloc(sizes[i]);

			assert_non_null(p);
			assert_int_equal((uintptr_t)p % CORE_SLAB_ALIGN, 0);
			/* holds for reused objects, too */
			assert_true(is_all(p, sizes[i], 0));
			memset(p, 0xA5, sizes[i]);
			core_slab_free(p, sizes[i]);
		}
	}
	core_slab_free(NULL, 64);
}

static void alloc__many_at_once__disjoint(void **state)
{
	static unsigned char *objects[SIZES][500];

	(void)state;
	for (size_t n = 0; n < 500; n++)
		for (size_t i = 0; i < SIZES - 3; i++) {
			objects[i][n] = core_slab_alloc(sizes[i]);
			assert_non_null(objects[i][n]);
			memset(objects[i][n], (int)(n + i) & 0xff, sizes[i]);
		}
	for (size_t n = 0; n < 500; n++)
		for (size_t i = 0; i < SIZES - 3; i++) {
			assert_true(
				is_all(objects[i][n], sizes[i], (unsigned char)((n + i) & 0xff)));
			core_slab_free(objects[i][n], sizes[i]);
		}
}

/* Fills each object with the value of the thread and checks it before freeing. */
static void *alloc_and_check(void *argument)
{
	unsigned char value = *(unsigned char *)argument;
	unsigned char *objects[LIVE] = {NULL};
	size_t object_sizes[LIVE] = {0};

	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned at = round * 7919 % LIVE;

		if (objects[at] && !is_all(objects[at], object_sizes[at], value))
			return argument;
		core_slab_free(objects[at], object_sizes[at]);
		object_sizes[at] = sizes[round % 6];
		objects[at] = core_slab_alloc(object_sizes[at]);
		if (!objects[at] || !is_all(objects[at], object_sizes[at], 0))
			return argument;
		memset(objects[at], value, object_sizes[at]);
	}
	for (unsigned at = 0; at < LIVE; at++)
		core_slab_free(objects[at], object_sizes[at]);
	return NULL;
}

static void alloc__several_threads__objects_are_disjoint(void **state)
{
	unsigned char values[THREADS];
	pthread_t threads[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		values[i] = (unsigned char)(i + 1);
		assert_int_equal(pthread_create(&threads[i], NULL, alloc_and_check, &values[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
}

static atomic_bool is_over;

static void *alloc_until_over(void *argument)
{
	while (!atomic_load(&is_over))
		core_slab_free(core_slab_alloc(256), 256);
	return argument;
}

/* GEN-35: another thread may be anywhere in the allocator when the process forks. */
static void alloc__in_a_child_of_a_busy_process__works(void **state)
{
	pthread_t threads[2];

	(void)state;
	if (CORE_SLAB_USES_MALLOC) /* the sanitizer's malloc does not guarantee this */
		skip();
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, alloc_until_over, NULL), 0);
	for (unsigned i = 0; i < FORKS; i++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (child == 0) {
			unsigned char *p;

			alarm(20);
			p = core_slab_alloc(256);
			_exit(p && is_all(p, 256, 0) ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	atomic_store(&is_over, true);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* The address space of the process. */
static size_t space(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Small objects go where a large one did not fit, so that blocks are used up. */
static void alloc__small_and_large__little_space_wasted(void **state)
{
	static void *small[PAIRS], *large[PAIRS];
	size_t before;

	(void)state;
	if (CORE_SLAB_USES_MALLOC)
		skip();
	before = space();
	for (unsigned i = 0; i < PAIRS; i++) {
		large[i] = core_slab_alloc(4096);
		small[i] = core_slab_alloc(64);
	}
	/* if the end of each block stayed unused, it would be 5 % more */
	assert_true(space() - before < PAIRS * (4096 + 64) * 102 / 100);
	for (unsigned i = 0; i < PAIRS; i++) {
		core_slab_free(large[i], 4096);
		core_slab_free(small[i], 64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: later it would get objects that the others have freed */
		cmocka_unit_test(alloc__small_and_large__little_space_wasted),
		cmocka_unit_test(alloc__any_size__zeroed_and_aligned),
		cmocka_unit_test(alloc__many_at_once__disjoint),
		cmocka_unit_test(alloc__several_threads__objects_are_disjoint),
		cmocka_unit_test(alloc__in_a_child_of_a_busy_process__works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
