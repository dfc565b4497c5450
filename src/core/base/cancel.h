// SPDX-License-Identifier: BSD-2-Clause
/*
 * Cancellation of threads (GEN-26). Most system calls are cancellation points. A thread that is
 * cancelled in one would leave a lock held or an object half destroyed. So each call in
 * CORE_CONTROL_CALLS begins with CORE_NO_CANCELLATION, and a request to cancel takes effect after
 * the call. Disabling cancellation costs as much as the rest of a post. So the calls of the data
 * path and the two calls that wait disable it only around system calls, with core_cancel_off and
 * core_cancel_restore. All of these nest.
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

static inline void core_cancel_leave(const int *state)
{
	core_cancel_restore(*state);
}

/* Declaration that disables cancellation until the end of its block. */
#define CORE_NO_CANCELLATION                                                                       \
	__attribute__((cleanup(core_cancel_leave), unused)) const int core_cancel_state =          \
		core_cancel_off()

#endif
