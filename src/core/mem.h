// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of registered memory of one adapter instance. An lmr_context is a 32-bit key of this
 * table: an index and a generation, so that a stale key never finds a new region. Lookups take no
 * lock: a user pins the slot, then looks at its key; dat_lmr_free clears the key, then waits for
 * the pins. Who only asks reads the key before and after. Slots are never unmapped while the
 * instance lives.
 */
#ifndef CORE_MEM_H
#define CORE_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dat/udat.h>

#include "core/lock.h"

struct core_handle;
struct core_pz;

#define CORE_MEM_CHUNK 256u	/* slots that are allocated together */
#define CORE_MEM_INDEX_BITS 18u /* of a key; the rest is the generation */
#define CORE_MEM_MAX (1u << CORE_MEM_INDEX_BITS)

struct core_lmr {
	_Atomic uint32_t key;  /* the live lmr_context, 0 while the slot is free or going away */
	_Atomic uint32_t pins; /* users between core_mem_get and core_mem_put */
	/* written before key is set, constant while it is; by core_mem_describe, because
	 * core_mem_check looks at it without a pin */
	DAT_VADDR address;
	DAT_VLEN length;
	DAT_MEM_PRIV_FLAGS priv; /* as the consumer asked */
	struct core_pz *pz;
	void *transport; /* the transport's side (soft: its key entry; verbs: the MR) */
	uint32_t rkey;	 /* the transport's key of the region, what a peer names it by */
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

int core_mem_init(struct core_mem *mem);
void core_mem_fini(struct core_mem *mem);

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

/*
 * Checks a segment that is being posted (LMR-USE-01 to -05, DTO-84 to -87). pz NULL leaves the zone
 * unchecked. Segments of length 0 are always good. Returns DAT_SUCCESS or the code of the posting
 * calls, composed.
 */
DAT_RETURN core_mem_check(struct core_mem *mem, const DAT_LMR_TRIPLET *segment,
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

static inline void core_mem_put(struct core_lmr *lmr)
{
	/* release: pairs with the acquire in core_mem_revoke, else our copy could be seen after it
	 */
	atomic_fetch_sub_explicit(&lmr->pins, 1, memory_order_release);
}

#endif
