// SPDX-License-Identifier: BSD-2-Clause
/*
 * A mapping of our own of registered memory. What the consumer does to its mapping (unmap it,
 * protect it) cannot make a copy through ours fault, so it needs no system call (LMR-USE-14). It is
 * had for memory files that are sealed against shrinking, like the mappings that peers make; other
 * memory is copied by the kernel.
 */
#ifndef SOFT_ALIAS_H
#define SOFT_ALIAS_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/mem.h"
#include "soft/region.h"

/* core_lmr.transport */
struct soft_lmr {
	_Atomic uint32_t uses;	   /* copies by the kernel so far, while there is no answer */
	_Atomic(uint8_t *) base;   /* of the region in our mapping; NULL: none (yet) */
	struct soft_region region; /* the service thread's, then constant */
};

/* Where the byte at that address of the pinned region is in our mapping; NULL: there is none. */
static inline uint8_t *soft_alias(const struct core_lmr *lmr, const void *address)
{
	const struct soft_lmr *mine = lmr->transport;
	/* acquire: the mapping is there */
	uint8_t *base = mine ? atomic_load_explicit(&mine->base, memory_order_acquire) : NULL;

	return base ? base + ((uintptr_t)address - lmr->address) : NULL;
}

/* Counts a copy that could not use one. True once: it is worth making now. */
bool soft_alias_is_worth(const struct core_lmr *lmr, uint32_t uses);
/* Makes it, if there can be one. The region is pinned; one caller per region. */
void soft_alias_make(struct core_lmr *lmr);
/* Nobody uses the region any more. */
void soft_alias_drop(struct core_lmr *lmr);

#endif
