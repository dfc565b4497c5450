// SPDX-License-Identifier: BSD-2-Clause
/* Asymmetric fences: the membarrier system call (fence.h). */
#include "core/base/fence.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/cancel.h"

/* Indexed by scope. A forked child inherits the registrations, so these stay valid in it. */
static _Atomic bool is_supported[2];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const int register_commands[2] = {
	MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
	MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
};
static const int barrier_commands[2] = {
	MEMBARRIER_CMD_PRIVATE_EXPEDITED,
	MEMBARRIER_CMD_GLOBAL_EXPEDITED,
};

static bool membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

static void fence_register(void)
{
	for (int scope = 0; scope < 2; scope++) {
		/* relaxed: see core_fence_is_supported */
		atomic_store_explicit(&is_supported[scope], membarrier(register_commands[scope]),
				      memory_order_relaxed);
	}
}

bool core_fence_is_supported(enum core_fence_scope scope)
{
	pthread_once(&once, fence_register);
	/*
	 * relaxed: this flag orders nothing. A thread that still acts on an old `true` has
	 * announced its light fences. So the other side calls core_fence_heavy, which sleeps if
	 * membarrier fails.
	 */
	return atomic_load_explicit(&is_supported[scope], memory_order_relaxed);
}

void core_fence_heavy(enum core_fence_scope scope)
{
	const struct timespec fallback = {0, CORE_FENCE_SLEEP_NS};
	int state;

	if (membarrier(barrier_commands[scope]))
		return;
	/* fails if this process never called core_fence_is_supported, or if a sandbox forbids it */
	if (membarrier(register_commands[scope]) && membarrier(barrier_commands[scope]))
		return;
	atomic_store_explicit(&is_supported[scope], false, memory_order_relaxed);
	/* a sleep is a cancellation point */
	state = core_cancel_off();
	clock_nanosleep(CLOCK_MONOTONIC, 0, &fallback, NULL);
	core_cancel_restore(state);
	atomic_thread_fence(memory_order_seq_cst);
}
