// SPDX-License-Identifier: BSD-2-Clause
/*
 * Address space for tables that have room for many objects, of which most programs make few. A page
 * takes memory when it is used first.
 *
 * After mlockall(MCL_FUTURE) the kernel fills and locks each new mapping, and RLIMIT_MEMLOCK limits
 * their sum. Such a table would take its whole size, or fail. So its space is not locked. What is
 * used of it is, as far as the limit permits.
 */
#ifndef CORE_SPACE_H
#define CORE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CORE_SPACE_CHUNK 65536u /* a multiple of the size of a page */

struct core_space {
	uint8_t *at;
	size_t size;
	bool is_locked; /* is memory to be locked when it is used? */
};

/*
 * Maps `size` bytes of a shared file, or zeroed private memory (fd -1) without a claim to swap
 * space: 0 or -errno. Sizes are multiples of CORE_SPACE_CHUNK.
 */
int core_space_map(struct core_space *space, size_t size, int prot, int fd);
/* Gives back what is behind the first `size` bytes. */
void core_space_cut(struct core_space *space, size_t size);
void core_space_unmap(struct core_space *space);

/* That chunk is used from now on; it can be accessed. */
void core_space_use(const struct core_space *space, size_t offset);

#endif
