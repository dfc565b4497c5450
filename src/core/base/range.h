// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel says about a range of this process's address space, without touching it. */
#ifndef CORE_RANGE_H
#define CORE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Mapped throughout? One system call, however many pages and other mappings there are. */
bool core_range_is_mapped(const void *start, uint64_t len);
/* Entirely inside mappings that may be written to? Opens a file: not for every registration. */
bool core_range_is_writable(const void *start, uint64_t len);
/* Entirely inside mappings that were made shared (MAP_SHARED)? */
bool core_range_is_shared(const void *start, uint64_t len);

#endif
