// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory for objects that threads of the library make or free. The C library gives a thread that
 * calls malloc or free an arena of its own, 64 MiB of the process's address space, for a few
 * objects of a kilobyte. Here all threads share blocks that are as large as what lies in them.
 *
 * Objects of one size share a list of free ones, which is never given back to the system: it is as
 * long as the most that were alive at a time.
 */
#ifndef CORE_SLAB_H
#define CORE_SLAB_H

#include <stddef.h>

/* Under the address sanitizer each object is malloc's, which knows what was freed. */
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

#define CORE_SLAB_ALIGN 64u /* what is returned is aligned to */

/* Zeroed; NULL: there is no memory. */
void *core_slab_alloc(size_t size);
/* p may be NULL; size as it was allocated with. */
void core_slab_free(void *p, size_t size);

#endif
