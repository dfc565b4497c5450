// SPDX-License-Identifier: BSD-2-Clause
/* The region of the last post, remembered so that the next one need not look it up. */
#ifndef CORE_KNOWN_H
#define CORE_KNOWN_H

#include "core/mem/mem.h"

/*
 * The region that a segment was in, for whoever is likely to ask for the same again: a copy of what
 * is constant while its key is live. Its zone and privileges were good for him when it was noted,
 * and have to be asked for again when that may have changed.
 */
struct core_known {
	struct core_lmr *lmr; /* slots are never unmapped: it may be gone by now, or another */
	DAT_VADDR address;    /* of the region, or of a part of it */
	DAT_VLEN length;      /* 0: nothing is known */
	DAT_VLEN most;	      /* bytes of a segment, if that has a limit, for who knows it */
	uint64_t use;	      /* its name without the key, */
	uint32_t key;	      /* the key, */
	uint32_t local_key;   /* and the transport's: local_keys[0] */
};

#define CORE_KNOWN_NONE ((struct core_known){.lmr = &core_mem_none})

/* Of no key. */
extern struct core_lmr core_mem_none;

/* Notes the region of a segment that core_mem_check finds good. */
static inline void core_mem_know(struct core_mem *mem, uint32_t key, struct core_known *known)
{
	struct core_lmr *lmr = core_mem_slot(mem, key);
	uint64_t name = atomic_load_explicit(&lmr->name, memory_order_acquire);

	known->lmr = lmr;
	known->use = name - key;
	known->key = key;
	/* as in core_mem_look */
	known->address = __atomic_load_n(&lmr->address, __ATOMIC_ACQUIRE);
	known->length = __atomic_load_n(&lmr->length, __ATOMIC_ACQUIRE);
	known->local_key = __atomic_load_n(&lmr->local_keys[0], __ATOMIC_ACQUIRE);
	if ((uint32_t)name != key || atomic_load_explicit(&lmr->name, memory_order_relaxed) != name)
		*known = CORE_KNOWN_NONE; /* it is gone already */
}

/* Forgets all but that much around an address in it. */
void core_mem_know_around(struct core_known *known, DAT_VADDR address, DAT_VLEN most);

/*
 * Is the segment one that core_mem_check finds good, in that region, and not empty? So the table is
 * not asked.
 */
CORE_INLINE bool core_mem_is_known(const struct core_known *known, const DAT_LMR_TRIPLET *segment)
{
	DAT_VLEN last; /* the offset of the last byte */

	/* one comparison: is it that region, and live? */
	if (!core_is_same_64(&known->lmr->name, known->use | segment->lmr_context))
		return false;
	/* an empty segment ends before it begins, and what is below the region behind the top */
	return !__builtin_add_overflow(segment->virtual_address - known->address,
				       segment->segment_length - 1, &last) &&
	       last < known->length;
}

#endif
