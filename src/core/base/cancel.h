// SPDX-License-Identifier: BSD-2-Clause
/*
 * Cancellation of threads. Most calls of the provider table run with it off (shield.c). Switching
 * it off and on costs as much as the rest of a post, so the calls of the data path leave it as it
 * is, and whatever on that path may be a cancellation point (most system calls are) is put between
 * these two. What they call may be between them already.
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
