// SPDX-License-Identifier: BSD-2-Clause
/* Queries about a range of this process's address space. They do not touch the memory. */
#ifndef CORE_RANGE_H
#define CORE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Is the whole range mapped? One system call, whatever the number of pages and mappings. */
bool core_range_is_mapped(const void *start, uint64_t len);
/* Is the whole range writable? Opens a file: too slow for every registration. */
bool core_range_is_writable(const void *start, uint64_t len);
/* Is the whole range in MAP_SHARED mappings? */
bool core_range_is_shared(const void *start, uint64_t len);

#endif
