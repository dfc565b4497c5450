// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rate of the clock of perf_clock.h. Both clocks are read at the start and again when the
 * period is needed.
 */
#include "perf_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>

#define CPUID_POWER 0x80000007u
#define CPUID_POWER_INVARIANT_TSC (1u << 8)
#define PERF_CLOCK_BASE_NS 20000000u

bool perf_clock_is_counter;
static uint64_t start_ns;
static uint64_t start_ticks;

void perf_clock_start(void)
{
	unsigned a, b, c, d;

	perf_clock_is_counter =
		__get_cpuid(CPUID_POWER, &a, &b, &c, &d) && (d & CPUID_POWER_INVARIANT_TSC);
	start_ns = tool_now_ns();
	start_ticks = perf_clock_ticks();
}

double perf_clock_period_ns(void)
{
	if (!perf_clock_is_counter)
		return 1.0;
	/* a reading takes up to 0.1 us, which is an error of 10 ppm over 20 ms */
	while (tool_now_ns() - start_ns < PERF_CLOCK_BASE_NS)
		continue;
	return (double)(tool_now_ns() - start_ns) / (double)(perf_clock_ticks() - start_ticks);
}
#else
void perf_clock_start(void)
{
}

double perf_clock_period_ns(void)
{
	return 1.0;
}
#endif
