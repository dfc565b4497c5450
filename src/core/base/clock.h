// SPDX-License-Identifier: BSD-2-Clause
/* The clock of all deadlines: CLOCK_MONOTONIC, in nanoseconds. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

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

#endif
