// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the bytes of a transfer are under --check: they depend on its number and on the offset, so
 * that neither an old transfer nor a shifted one passes.
 */
#ifndef TOOLS_PERF_PATTERN_H
#define TOOLS_PERF_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * For functions that look at memory while a thread of the library may be writing to it, as the
 * targets of RDMA do (COMPAT-02, COMPAT-46). The thread sanitizer knows no order between the two.
 */
#if defined(__SANITIZE_THREAD__)
#define PERF_LOOKS __attribute__((no_sanitize_thread))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERF_LOOKS __attribute__((no_sanitize("thread")))
#endif
#endif
#ifndef PERF_LOOKS
#define PERF_LOOKS
#endif

/* Is the last byte of a transfer there, and so all of it? */
PERF_LOOKS static inline bool perf_last_is(const volatile unsigned char *last, unsigned char value)
{
	if (*last != value)
		return false;
	/* the other bytes are read after it */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return true;
}

void perf_pattern_fill(unsigned char *data, uint64_t size, uint64_t number);
bool perf_pattern_is(const unsigned char *data, uint64_t size, uint64_t number);

#endif
