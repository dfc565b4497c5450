// SPDX-License-Identifier: BSD-2-Clause
/*
 * The bytes of a transfer with --check. They depend on its number and on the offset, so that an old
 * or shifted transfer is detected.
 */
#ifndef TOOLS_PERF_PATTERN_H
#define TOOLS_PERF_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * For functions that poll memory which a thread of the library may be writing, as targets of RDMA
 * do (COMPAT-02, COMPAT-46). The thread sanitizer would report a race.
 */
#if defined(__SANITIZE_THREAD__)
#define PERF_NO_TSAN __attribute__((no_sanitize_thread))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERF_NO_TSAN __attribute__((no_sanitize("thread")))
#endif
#endif
#ifndef PERF_NO_TSAN
#define PERF_NO_TSAN
#endif

/* Has the last byte of a transfer arrived, and so all of it? */
PERF_NO_TSAN static inline bool perf_last_is(const volatile unsigned char *last,
					     unsigned char value)
{
	if (*last != value)
		return false;
	/* read the other bytes after it */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return true;
}

void perf_pattern_fill(unsigned char *data, uint64_t size, uint64_t number);
bool perf_pattern_is(const unsigned char *data, uint64_t size, uint64_t number);

#endif
