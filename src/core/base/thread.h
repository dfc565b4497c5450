// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes the threads of the library. They block all signals (GEN-36): signals belong to the
 * consumer.
 */
#ifndef CORE_THREAD_H
#define CORE_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Policy and priority of a thread, as sched_setscheduler(2) takes them. */
struct core_sched {
	int policy; /* negative: unknown */
	int priority;
};

struct core_thread_form {
	const char *name;  /* at most 15 characters */
	size_t stack_size; /* 0: the default of the process */
	bool is_detached;
	struct core_sched sched; /* as far as the kernel permits */
	const cpu_set_t *cpus;	 /* NULL or empty: the processors of the caller */
};

/*
 * The policy of the calling thread. For a real-time policy the priority is one step above that of
 * the thread, if there is a higher one: a thread that polls without end leaves its processor to
 * no other thread of the same priority (GEN-39).
 */
struct core_sched core_sched_above_caller(void);

/*
 * Starts a thread, and returns when it has taken its policy and its processors: 0, or -errno.
 * -ENODEV: the kernel lets it run on none of the processors.
 */
int core_thread_create(pthread_t *thread, const struct core_thread_form *form, void *(*run)(void *),
		       void *argument);

#endif
