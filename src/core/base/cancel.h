// SPDX-License-Identifier: BSD-2-Clause
/*
 * Thread cancellation. Most calls of the provider table run with cancellation disabled (shield.c).
 * The calls of the data path do not: disabling and enabling it would double the cost of a post.
 * Code on the data path that may reach a cancellation point, which most system calls are, brackets
 * it with these two functions. They nest.
 */
#ifndef CORE_CANCEL_H
#define CORE_CANCEL_H

#include <pthread.h>

static inline int core_cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void core_cancel_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

#endif
