// SPDX-License-Identifier: BSD-2-Clause
/* The copies that the tests of soft/copy.h compare, and the memory that they copy. */
#ifndef TESTS_SOFT_COPIES_H
#define TESTS_SOFT_COPIES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "peer.h"
#include "sandbox.h"
#include "soft/copy.h"

#define SPAN 4096u

typedef int (*copy_fn)(void *dst, const void *src, size_t len);

static size_t page;
static _Atomic uint32_t open_gate;

static inline int copy_tail_last(void *dst, const void *src, size_t len)
{
	return soft_copy_gated(&open_gate, dst, src, len);
}

static inline int copy_safe(void *dst, const void *src, size_t len)
{
	return soft_copy_safe(NULL, dst, src, len);
}

static inline int copy_to_self(void *dst, const void *src, size_t len)
{
	struct iovec iov = {(void *)(uintptr_t)src, len};

	return soft_copy_to_process(&open_gate, getpid(), (uintptr_t)dst, &iov, 1, len);
}

static inline int copy_from_self(void *dst, const void *src, size_t len)
{
	struct iovec iov = {dst, len};

	return soft_copy_from_process(getpid(), (uintptr_t)src, &iov, 1, len);
}

static inline int copy_ordered(void *dst, const void *src, size_t len)
{
	soft_copy_ordered(dst, src, len);
	return 0;
}

/*
 * Copies into a vector of several segments, the first of them empty; the last two are not used up.
 */
static inline int copy_to_segments(void *dst, const void *src, size_t len)
{
	uint8_t *to = dst, beyond[8] = {0};
	size_t third = len / 3;
	struct iovec iov[] = {
		{to, 0},     {to, third},    {to + third, third}, {to + 2 * third, len - 2 * third},
		{beyond, 4}, {beyond + 4, 4}};
	int rc = soft_copy_from_process(getpid(), (uintptr_t)src, iov, 6, len);

	return memcmp(beyond, "\0\0\0\0\0\0\0", 8) == 0 ? rc : -EIO;
}

/* Ends in the middle of a segment; the last bytes are in three segments. */
static inline int copy_to_short_segments(void *dst, const void *src, size_t len)
{
	uint8_t *to = dst;
	struct iovec iov[3];

	if (len <= 5)
		return copy_from_self(dst, src, len);
	iov[0] = (struct iovec){to, len - 5};
	iov[1] = (struct iovec){to + len - 5, 3};
	iov[2] = (struct iovec){to + len - 2, 16};
	return soft_copy_from_process(getpid(), (uintptr_t)src, iov, 3, len);
}

/* The same copy by a thread of the library. */
static inline int place_by_library(void *dst, const void *src, size_t len)
{
	int rc;

	soft_is_library_thread = true;
	rc = soft_copy_to_consumer(dst, src, len);
	soft_is_library_thread = false;
	return rc;
}

/* --- another process --- */

struct remote {
	uint8_t *pages; /* guarded_pages(); each process has its own after the fork */
	uint8_t token[16];
};

#endif
