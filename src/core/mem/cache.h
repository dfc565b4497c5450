// SPDX-License-Identifier: BSD-2-Clause
/* A cache of the region of the last post, which saves the next post the lookup. */
#ifndef CORE_CACHE_H
#define CORE_CACHE_H

#include "core/mem/mem.h"

/*
 * A cached region: a copy of the members that are constant while its key is live. The zone and the
 * privileges of the region were checked when the cache was filled. The owner of the cache must
 * empty it when the result of that check may change.
 */
struct core_mem_cache {
	struct core_lmr *lmr; /* a slot, never unmapped; it may hold another region by now */
	DAT_VADDR address;    /* of the region, or of the cached part of it */
	DAT_VLEN length;      /* 0: the cache is empty */
	DAT_VLEN most;	      /* for the owner of the cache: its limit on the length of a segment */
	uint64_t use;	      /* the name of the slot (mem.h) with the key bits 0 */
	uint32_t key;	      /* the key of the region */
	uint32_t local_key;   /* the transport's local_keys[0] of the region */
};

#define CORE_MEM_CACHE_EMPTY ((struct core_mem_cache){.lmr = &core_mem_none})

/* A slot that never has a key, for an empty cache. */
extern struct core_lmr core_mem_none;

/* Fills the cache with the region of a segment that core_mem_check has accepted. */
static inline void core_mem_cache_fill(struct core_mem *mem, uint32_t key,
				       struct core_mem_cache *known)
{
	struct core_lmr *lmr = core_mem_slot(mem, key);
	uint64_t name = atomic_load_explicit(&lmr->name, memory_order_acquire);

	known->lmr = lmr;
	known->use = name - key;
	known->key = key;
	/* acquire, and the name again after them, as in core_mem_read_attr */
	known->address = __atomic_load_n(&lmr->address, __ATOMIC_ACQUIRE);
	known->length = __atomic_load_n(&lmr->length, __ATOMIC_ACQUIRE);
	known->local_key = __atomic_load_n(&lmr->local_keys[0], __ATOMIC_ACQUIRE);
	if ((uint32_t)name != key || atomic_load_explicit(&lmr->name, memory_order_relaxed) != name)
		*known = CORE_MEM_CACHE_EMPTY; /* the region was freed meanwhile */
}

/* Shrinks the cached range to at most `most` bytes around an address in it. */
void core_mem_cache_shrink(struct core_mem_cache *known, DAT_VADDR address, DAT_VLEN most);

/*
 * Is the segment in the cached region, and not empty? If so, core_mem_check would accept it.
 */
CORE_INLINE bool core_mem_cache_hit(const struct core_mem_cache *known,
				    const DAT_LMR_TRIPLET *segment)
{
	DAT_VLEN last; /* the offset of the last byte */

	/* one comparison checks that the key is the region's and that the region is live */
	if (!core_is_same_64(&known->lmr->name, known->use | segment->lmr_context))
		return false;
	/* unsigned arithmetic rejects an empty segment and an address below the region: both wrap
	 * to a huge offset, or overflow */
	return !__builtin_add_overflow(segment->virtual_address - known->address,
				       segment->segment_length - 1, &last) &&
	       last < known->length;
}

#endif
