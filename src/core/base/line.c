// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory that begins at a cache line (line.h). It comes from calloc, which does not touch the pages
 * of a large object; aligned_alloc would leave the zeroing to us. The address that calloc returned
 * is stored in front of the object.
 */
#include "core/base/line.h"

#include <stdint.h>
#include <stdlib.h>

void *core_line_alloc(size_t count, size_t size)
{
	const size_t extra = sizeof(void *) + CORE_LINE - 1;
	unsigned char *start, *p;
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes) ||
	    __builtin_add_overflow(bytes, extra, &bytes))
		return NULL;
	start = calloc(1, bytes);
	if (!start)
		return NULL;
	p = start + extra - ((uintptr_t)start + extra) % CORE_LINE;
	((void **)(void *)p)[-1] = start;
	return p;
}

void core_line_free(void *p)
{
	if (p)
		free(((void **)p)[-1]);
}
