// SPDX-License-Identifier: BSD-2-Clause
/* The clock of the library, which the test may stop. Linked with --wrap=clock_gettime. */
#ifndef TESTS_FROZEN_CLOCK_H
#define TESTS_FROZEN_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/base/clock.h"

static _Atomic uint64_t frozen_ns; /* it stands still at that time; 0: it does not */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t ns = clock == CLOCK_MONOTONIC ? atomic_load(&frozen_ns) : 0;

	if (!ns)
		return __real_clock_gettime(clock, now);
	*now = core_timespec(ns);
	return 0;
}

#endif
