// SPDX-License-Identifier: BSD-2-Clause
/* Bytes that end where memory ends, so that a parser that reads too far crashes. */
#ifndef SOFT_IWARP_EDGE_H
#define SOFT_IWARP_EDGE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EDGE_PAGES 17 /* 64 KiB and a page, with pages of 4 KiB */

/* A copy of the bytes, valid until the next call. */
static inline uint8_t *edge_copy(const void *bytes, size_t size)
{
	static uint8_t *end;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!end) {
		uint8_t *start = mmap(NULL, (EDGE_PAGES + 1) * page, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (start == MAP_FAILED || mprotect(start + EDGE_PAGES * page, page, PROT_NONE))
			abort();
		end = start + EDGE_PAGES * page;
	}
	if (size > EDGE_PAGES * page)
		abort();
	if (size)
		memcpy(end - size, bytes, size);
	return end - size;
}

#endif
