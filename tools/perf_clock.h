// SPDX-License-Identifier: BSD-2-Clause
/*
 * A clock that is cheap enough to be read once per round trip of a few hundred nanoseconds: the
 * time stamp counter if its rate is constant, else the monotonic clock.
 */
#ifndef TOOLS_PERF_CLOCK_H
#define TOOLS_PERF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common.h"

#if defined(__x86_64__)
extern bool perf_clock_is_counter;

static inline uint64_t perf_clock_ticks(void)
{
	return perf_clock_is_counter ? __builtin_ia32_rdtsc() : tool_now_ns();
}
#else
static inline uint64_t perf_clock_ticks(void)
{
	return tool_now_ns();
}
#endif

/* Call this once and early: the rate becomes more exact with time. */
void perf_clock_start(void);
/* Nanoseconds per tick. */
double perf_clock_period_ns(void);

#endif
