// SPDX-License-Identifier: BSD-2-Clause
/* The clock of all deadlines, CLOCK_MONOTONIC in nanoseconds, and short waits. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "core/base/tuning.h"

static inline uint64_t core_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* A time of this clock, for calls that wait until it. */
static inline struct timespec core_timespec(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / UINT64_C(1000000000)),
				 (long)(ns % UINT64_C(1000000000))};
}

/* Lets others run, or sleeps if the caller has waited for long. *turns is 0 at first. */
static inline void core_wait_turn(unsigned int *turns)
{
	const struct timespec pause = {0, CORE_WAIT_SLEEP_NS};

	if (++*turns < CORE_WAIT_YIELDS)
		sched_yield();
	else
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

#endif
