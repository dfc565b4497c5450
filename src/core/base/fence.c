// SPDX-License-Identifier: BSD-2-Clause
/* Fences that the kernel runs on other threads (fence.h). */
#include "core/base/fence.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/cancel.h"

#define NO_BARRIER_NS 20000000

/* By scope; a child inherits the answers. */
static _Atomic bool is_able[2];
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static const int registering[2] = {
	MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
	MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
};
static const int running[2] = {
	MEMBARRIER_CMD_PRIVATE_EXPEDITED,
	MEMBARRIER_CMD_GLOBAL_EXPEDITED,
};

static bool call(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

static void ask(void)
{
	for (int scope = 0; scope < 2; scope++) {
		/* relaxed: see core_fence_can */
		atomic_store_explicit(&is_able[scope], !CORE_UNDER_TSAN && call(registering[scope]),
				      memory_order_relaxed);
	}
}

bool core_fence_can(enum core_fence_scope scope)
{
	pthread_once(&asked, ask);
	/* relaxed: who relies on an older answer has announced it, and is waited for */
	return atomic_load_explicit(&is_able[scope], memory_order_relaxed);
}

void core_fence_everywhere(enum core_fence_scope scope)
{
	const struct timespec long_enough = {0, NO_BARRIER_NS};
	int state;

	if (call(running[scope]))
		return;
	/* one that is called by who never asked, or a sandbox */
	if (call(registering[scope]) && call(running[scope]))
		return;
	atomic_store_explicit(&is_able[scope], false, memory_order_relaxed);
	/* a sleep is a cancellation point */
	state = core_cancel_off();
	clock_nanosleep(CLOCK_MONOTONIC, 0, &long_enough, NULL);
	core_cancel_restore(state);
	atomic_thread_fence(memory_order_seq_cst);
}
