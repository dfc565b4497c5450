// SPDX-License-Identifier: BSD-2-Clause
/*
 * An allocator for objects that the library's own threads create or free. glibc gives each thread
 * that calls malloc an arena of its own, which reserves 64 MiB of address space, for a few objects
 * of a kilobyte. Here all threads share small blocks.
 *
 * Free objects are kept in one list per size and are never returned to the system. A list is never
 * longer than the largest number of objects of that size that existed at once.
 */
#ifndef CORE_SLAB_H
#define CORE_SLAB_H

#include <stddef.h>

/* Under the address sanitizer objects come from malloc, so that it detects use after free. */
#if defined(__SANITIZE_ADDRESS__)
#define CORE_SLAB_USES_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORE_SLAB_USES_MALLOC 1
#endif
#endif
#ifndef CORE_SLAB_USES_MALLOC
#define CORE_SLAB_USES_MALLOC 0
#endif

#define CORE_SLAB_ALIGN 64u /* alignment of all objects */

/* Returns zeroed memory. NULL: no memory. */
void *core_slab_alloc(size_t size);
/* p may be NULL. `size` must be the size passed to core_slab_alloc. */
void core_slab_free(void *p, size_t size);

#endif
