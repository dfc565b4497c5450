// SPDX-License-Identifier: BSD-2-Clause
/* A child can create handles even if another thread used the arena during the fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/handle.h"

#define ROUNDS 40
/* enough in a row that the arena's lock is biased to this thread */
#define HANDLES_IN_A_ROW 1000
#define MEMORY ((size_t)32 << 20) /* of the process, to make the fork slow */

static _Atomic int requested, completed;

static void make_one(void)
{
	struct core_handle *cell = core_handle_alloc(NULL, NULL, &requested);

	assert_non_null(cell);
	core_handle_release(cell);
}

/* Creates a handle when requested to, with a delay that grows in each round. */
static void *make_later(void *arg)
{
	(void)arg;
	for (int round = 1; round <= ROUNDS; round++) {
		while (atomic_load(&requested) < round)
			sched_yield();
		for (volatile int i = 0; i < round * 2000; i = i + 1)
			;
		make_one();
		atomic_store(&completed, round);
	}
	return NULL;
}

/* GEN-35 */
static void fork__while_another_thread_wants_the_arena__child_makes_handles(void **state)
{
	char *memory = malloc(MEMORY);
	pthread_t thread;

	(void)state;
	assert_non_null(memory);
	memset(memory, 1, MEMORY);
	make_one();
	assert_int_equal(pthread_create(&thread, NULL, make_later, NULL), 0);
	for (int round = 1; round <= ROUNDS; round++) {
		int status;
		pid_t child;

		for (int i = 0; i < HANDLES_IN_A_ROW; i++)
			make_one();
		atomic_store(&requested, round);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			alarm(10); /* a failure would hang */
			make_one();
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		while (atomic_load(&completed) < round)
			sched_yield();
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fork__while_another_thread_wants_the_arena__child_makes_handles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
