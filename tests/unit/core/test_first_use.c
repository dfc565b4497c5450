// SPDX-License-Identifier: BSD-2-Clause
/* Failures when the process allocates its first handle or object: later allocations work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/handle.h"
#include "core/base/slab.h"

static bool madvise_fails, atfork_fails;

int __real_madvise(void *address, size_t size, int advice);
int __wrap_madvise(void *address, size_t size, int advice);
int __real_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

int __wrap_madvise(void *address, size_t size, int advice)
{
	if (!madvise_fails || advice != MADV_WIPEONFORK)
		return __real_madvise(address, size, advice);
	errno = ENOMEM;
	return -1;
}

int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	return atfork_fails ? ENOMEM : __real_pthread_atfork(prepare, parent, child);
}

/* In a process of its own, because only the first use of a process matters. */
static void run_in_child(int (*body)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(body());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int handle_after_madvise_failed(void)
{
	static char object;
	struct core_handle *cell;

	madvise_fails = true;
	if (core_handle_alloc(NULL, NULL, &object))
		return 1;
	madvise_fails = false;
	cell = core_handle_alloc(NULL, NULL, &object);
	if (!cell)
		return 2;
	core_handle_release(cell);
	return 0;
}

/* IA-OPEN-33 */
static void handle_alloc__after_a_failed_madvise__works(void **state)
{
	(void)state;
	run_in_child(handle_after_madvise_failed);
}

static int objects_without_fork_handlers(void)
{
	static char object;

	atfork_fails = true;
	return core_slab_alloc(64) || core_handle_alloc(NULL, NULL, &object);
}

/* GEN-35: what a child could find inconsistent is not created. */
static void alloc__no_fork_handlers__refused(void **state)
{
	(void)state;
	if (CORE_SLAB_USES_MALLOC)
		skip();
	run_in_child(objects_without_fork_handlers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handle_alloc__after_a_failed_madvise__works),
		cmocka_unit_test(alloc__no_fork_handlers__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
