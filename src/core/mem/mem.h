// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of registered memory of one adapter instance. An lmr_context is a 32-bit key of this
 * table: an index and a generation, so that a stale key never finds a new region. Lookups take no
 * lock: a user pins the slot (pins.h), then looks at its key; dat_lmr_free clears the key, then
 * waits for the pins. Who only asks reads the key before and after. Slots are never unmapped while
 * the instance lives.
 *
 * A key alone does not tell one region from another for ever: it comes back after 16,384 uses of
 * its slot. So a slot has a name, too, of 64 bits: its key, and how often that has changed, 32
 * bits. Each use of the slot changes the key twice, so that a name comes back after 2^31 uses; the
 * count is odd while there is a key, so that the name of a free slot never is that of a region.
 */
#ifndef CORE_MEM_H
#define CORE_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dat/udat.h>

#include "core/base/lock.h"
#include "core/base/pins.h"

struct core_handle;
struct core_pz;

#define CORE_MEM_CHUNK 256u	/* slots that are allocated together */
#define CORE_MEM_INDEX_BITS 18u /* of a key; the rest is the generation */
#define CORE_MEM_MAX (1u << CORE_MEM_INDEX_BITS)
#define CORE_MEM_LOCAL_KEYS 2u

struct core_lmr {
	union {
		_Atomic uint64_t name; /* written as one */
		struct {
			_Atomic uint32_t key; /* the live lmr_context, 0 while the slot is free or
					       * going away */
			_Atomic uint32_t changes; /* of `key` */
		};
	};
	struct core_pinned pinned;
	/* written before key is set, constant while it is; by core_mem_describe, because
	 * core_mem_check looks at it without a pin */
	DAT_VADDR address;
	DAT_VLEN length;
	DAT_MEM_PRIV_FLAGS priv; /* as the consumer asked */
	struct core_pz *pz;
	void *transport; /* the transport's side (soft: its key entry; verbs: the MR) */
	uint32_t rkey;	 /* the transport's key of the region, what a peer names it by */
	uint32_t local_keys[CORE_MEM_LOCAL_KEYS]; /* the transport's own, if any, for local use */
	/* guarded by the LMR handle's lock */
	struct core_handle *cell;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION description;
	unsigned char cookie[DAT_LMR_COOKIE_SIZE];
	DAT_RMR_CONTEXT rmr_context; /* rkey, or 0 without remote privileges */
	_Atomic uint32_t bound;	     /* RMRs bound to it */
	/* guarded by the table's lock */
	uint32_t index;
	uint32_t generation;
	uint32_t next_free;
};

struct core_mem {
	struct core_lock
		lock; /* allocation of slots; rank 6, not held together with others of it */
	struct core_lmr *_Atomic chunks[CORE_MEM_MAX / CORE_MEM_CHUNK];
	uint32_t slots;	     /* slots that exist */
	uint32_t free_first; /* oldest free slot (index + 1, 0: none) */
	uint32_t free_last;
	uint32_t free_count;
};

/* What a segment is used for: the local privilege that it needs. */
enum core_mem_use {
	CORE_MEM_SOURCE = DAT_MEM_PRIV_LOCAL_READ_FLAG,
	CORE_MEM_TARGET = DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
};

/* NULL: no memory. */
struct core_mem *core_mem_new(void);
void core_mem_delete(struct core_mem *mem);

/* Takes a slot (key 0); NULL when memory or keys ran out. */
struct core_lmr *core_mem_alloc(struct core_mem *mem);
/* Before that: what the region is. */
void core_mem_describe(struct core_lmr *lmr, DAT_VADDR address, DAT_VLEN length,
		       DAT_MEM_PRIV_FLAGS priv, struct core_pz *pz);
/* Gives the slot a fresh key and makes it live. */
uint32_t core_mem_publish(struct core_mem *mem, struct core_lmr *lmr);
/* Makes the key stale and waits until nobody has the slot pinned (bounded by one copy piece). */
void core_mem_revoke(struct core_mem *mem, struct core_lmr *lmr);
void core_mem_free(struct core_mem *mem, struct core_lmr *lmr);

/* What core_mem_check says, by all its rules one after the other. */
DAT_RETURN core_mem_verdict(struct core_mem *mem, const DAT_LMR_TRIPLET *segment,
			    const struct core_pz *pz, enum core_mem_use use);

/* Is the segment inside a live region, whatever its privileges and zone? Length 0: yes. */
bool core_mem_is_registered(struct core_mem *mem, const DAT_LMR_TRIPLET *segment);

/*
 * The same check when the segment is used, by whatever thread: on success the region is pinned and
 * dat_lmr_free waits until core_mem_put(). Keep it pinned for one bounded piece of copying only.
 * NULL: the segment is no longer good (DAT_DTO_ERR_LOCAL_PROTECTION).
 */
struct core_lmr *core_mem_get(struct core_mem *mem, const DAT_LMR_TRIPLET *segment,
			      const struct core_pz *pz, enum core_mem_use use);

/* The region around a segment, pinned, whatever its privileges and zone; NULL: there is none. */
struct core_lmr *core_mem_get_registered(struct core_mem *mem, const DAT_LMR_TRIPLET *segment);

/* The slot that a key names, whatever is in it now. */
static inline struct core_lmr *core_mem_slot(struct core_mem *mem, uint32_t key)
{
	uint32_t index = key & (CORE_MEM_MAX - 1);
	/* acquire: pairs with the release in mem_grow_locked, else the slot's zeroes are not seen
	 */
	struct core_lmr *chunk =
		atomic_load_explicit(&mem->chunks[index / CORE_MEM_CHUNK], memory_order_acquire);

	return chunk ? &chunk[index % CORE_MEM_CHUNK] : NULL;
}

/* The live region of that key, pinned; NULL if there is none. */
static inline struct core_lmr *core_mem_pin(struct core_mem *mem, uint32_t key)
{
	struct core_lmr *lmr = key ? core_mem_slot(mem, key) : NULL;

	if (!lmr)
		return NULL;
	core_pin(&lmr->pinned);
	/* sequentially consistent: behind the pin, as core_mem_revoke clears it before it looks for
	 * pins */
	if (atomic_load(&lmr->key) == key)
		return lmr;
	core_unpin(&lmr->pinned);
	return NULL;
}

static inline bool core_mem_is_inside(DAT_VADDR address, DAT_VLEN length,
				      const DAT_LMR_TRIPLET *segment)
{
	/* below the region it wraps, to more than any length: a region does not wrap */
	DAT_VLEN offset = segment->virtual_address - address;

	return offset <= length && segment->segment_length <= length - offset;
}

/* LOCAL_WRITE includes local read (LMR-CREATE-39). */
static inline bool core_mem_is_allowed(DAT_MEM_PRIV_FLAGS priv, enum core_mem_use use)
{
	if (use == CORE_MEM_SOURCE)
		return priv & (DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	return priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
}

/* What a region allows, as core_mem_check sees it. */
struct core_mem_extent {
	DAT_VADDR address;
	DAT_VLEN length;
	DAT_MEM_PRIV_FLAGS priv;
	struct core_pz *pz;
};

/* Reads a live region without a pin; false: it is not that, or not any more. */
static inline bool core_mem_look(struct core_mem *mem, uint32_t key,
				 struct core_mem_extent *extent_out)
{
	struct core_lmr *lmr = key ? core_mem_slot(mem, key) : NULL;

	/* acquire throughout, and the key once more behind the rest: it all belongs to this key */
	if (!lmr || atomic_load_explicit(&lmr->key, memory_order_acquire) != key)
		return false;
	extent_out->address = __atomic_load_n(&lmr->address, __ATOMIC_ACQUIRE);
	extent_out->length = __atomic_load_n(&lmr->length, __ATOMIC_ACQUIRE);
	extent_out->priv = __atomic_load_n(&lmr->priv, __ATOMIC_ACQUIRE);
	extent_out->pz = __atomic_load_n(&lmr->pz, __ATOMIC_ACQUIRE);
	return atomic_load_explicit(&lmr->key, memory_order_relaxed) == key;
}

/* Reads one of the local keys of a live region without a pin. */
static inline bool core_mem_local_key(struct core_mem *mem, uint32_t key, uint32_t which,
				      uint32_t *local_key_out)
{
	struct core_lmr *lmr = key ? core_mem_slot(mem, key) : NULL;

	if (!lmr || atomic_load_explicit(&lmr->key, memory_order_acquire) != key)
		return false;
	*local_key_out = __atomic_load_n(&lmr->local_keys[which], __ATOMIC_ACQUIRE);
	/* the key may have changed since then, but not come back: who has it now has another */
	return atomic_load_explicit(&lmr->key, memory_order_relaxed) == key;
}

/* Before a region is live. */
static inline void core_mem_set_local_key(struct core_lmr *lmr, uint32_t which, uint32_t local_key)
{
	/* release: as in core_mem_describe */
	__atomic_store_n(&lmr->local_keys[which], local_key, __ATOMIC_RELEASE);
}

/*
 * Checks a segment that is being posted (LMR-USE-01 to -05, DTO-84 to -87). pz NULL leaves the zone
 * unchecked. Segments of length 0 are always good. Returns DAT_SUCCESS or the code of the posting
 * calls, composed. The usual answer is found here.
 */
static inline DAT_RETURN core_mem_check(struct core_mem *mem, const DAT_LMR_TRIPLET *segment,
					const struct core_pz *pz, enum core_mem_use use)
{
	struct core_mem_extent extent;

	if (core_mem_look(mem, segment->lmr_context, &extent) &&
	    core_mem_is_inside(extent.address, extent.length, segment) &&
	    (!pz || extent.pz == pz) && core_mem_is_allowed(extent.priv, use))
		return DAT_SUCCESS;
	return core_mem_verdict(mem, segment, pz, use);
}

static inline void core_mem_put(struct core_lmr *lmr)
{
	core_unpin(&lmr->pinned);
}

#endif
