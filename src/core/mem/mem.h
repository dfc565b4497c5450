// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of registered memory of one adapter instance. An lmr_context is a 32-bit key of this
 * table. It consists of a slot index and a generation, so that a stale key does not find a new
 * region. Lookups take no lock. A user that accesses the memory pins the slot (pins.h), then loads
 * its key; dat_lmr_free clears the key, then waits for the pins. A user that needs only the
 * attributes reads the key before and after them (models/litmus/protocols.py has the orders of
 * both). Slots are not freed while the instance exists.
 *
 * A key does not identify a region forever: it repeats after 16,384 uses of its slot. So a slot
 * also has a 64-bit name: its key, and a 32-bit count of the changes of the key. Each use of the
 * slot changes the key twice, so a name repeats after 2^31 uses. The count is odd while there is a
 * key, so the name of a free slot never equals that of a region.
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

#define CORE_MEM_CHUNK 256u	/* slots per allocation */
#define CORE_MEM_INDEX_BITS 18u /* low bits of a key; the others are the generation */
#define CORE_MEM_MAX (1u << CORE_MEM_INDEX_BITS)
#define CORE_MEM_LOCAL_KEYS 2u

struct core_lmr {
	union {
		_Atomic uint64_t name; /* written as a whole */
		struct {
			_Atomic uint32_t key; /* the live lmr_context; 0 while the slot is free or
					       * being freed */
			_Atomic uint32_t changes; /* number of changes of `key` */
		};
	};
	struct core_pinned pinned;
	/* constant while key is set. Written before that, by core_mem_describe, because
	 * core_mem_check reads them without a pin */
	DAT_VADDR address;
	DAT_VLEN length;
	DAT_MEM_PRIV_FLAGS priv; /* as requested by the consumer */
	struct core_pz *pz;
	void *transport; /* the transport's part (soft: its key entry; verbs: the MR) */
	uint32_t rkey;	 /* the transport's key by which peers access the region */
	uint32_t local_keys[CORE_MEM_LOCAL_KEYS]; /* the transport's keys for local use, if any */
	/* guarded by the LMR handle's lock */
	struct core_handle *cell;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION description;
	unsigned char cookie[DAT_LMR_COOKIE_SIZE];
	DAT_RMR_CONTEXT rmr_context; /* rkey, or 0 without remote privileges */
	_Atomic uint32_t bound;	     /* RMRs bound to it; incremented with that lock held */
	/* guarded by the table's lock */
	uint32_t index;
	uint32_t generation;
	uint32_t next_free;
};

struct core_mem {
	struct core_lock lock; /* guards the allocation of slots; rank 6 */
	struct core_lmr *_Atomic chunks[CORE_MEM_MAX / CORE_MEM_CHUNK];
	uint32_t slots;	     /* slots allocated */
	uint32_t free_first; /* oldest free slot (index + 1, 0: none) */
	uint32_t free_last;
	uint32_t free_count;
};

/* The use of a segment: the local privilege that it requires. */
enum core_mem_use {
	CORE_MEM_SOURCE = DAT_MEM_PRIV_LOCAL_READ_FLAG,
	CORE_MEM_TARGET = DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
};

/* NULL: no memory. */
struct core_mem *core_mem_new(void);
void core_mem_delete(struct core_mem *mem);

/* Allocates a slot, with key 0. NULL: no memory, or no more keys. */
struct core_lmr *core_mem_alloc(struct core_mem *mem);
/* Sets the attributes of the region. Call before core_mem_publish. */
void core_mem_describe(struct core_lmr *lmr, DAT_VADDR address, DAT_VLEN length,
		       DAT_MEM_PRIV_FLAGS priv, struct core_pz *pz);
/* Makes the slot live with a new key, which it returns. */
uint32_t core_mem_publish(struct core_mem *mem, struct core_lmr *lmr);
/* Makes caches of a live region stale, because its local keys have changed. LMR locked. */
void core_mem_renew(struct core_lmr *lmr);
/* Makes the key stale and waits until no thread has the slot pinned: at most one copy piece. */
void core_mem_revoke(struct core_mem *mem, struct core_lmr *lmr);
void core_mem_free(struct core_mem *mem, struct core_lmr *lmr);

/* The slow path of core_mem_check: applies its rules in order and returns the code of the first
 * that fails. */
DAT_RETURN core_mem_check_slow(struct core_mem *mem, const DAT_LMR_TRIPLET *segment,
			       const struct core_pz *pz, enum core_mem_use use);

/* Is the segment inside a live region of any privileges and zone? True for length 0. */
bool core_mem_is_registered(struct core_mem *mem, const DAT_LMR_TRIPLET *segment);

/*
 * Checks a segment again when a thread is about to access it, as core_mem_check did, and pins its
 * region. dat_lmr_free waits until core_mem_put(), so the region may be pinned for one bounded
 * piece of a copy only. NULL: the segment is not valid any more (DAT_DTO_ERR_LOCAL_PROTECTION).
 */
struct core_lmr *core_mem_get(struct core_mem *mem, const DAT_LMR_TRIPLET *segment,
			      const struct core_pz *pz, enum core_mem_use use);

/* Pins the live region around the segment, of any privileges and zone. NULL: there is none. */
struct core_lmr *core_mem_get_registered(struct core_mem *mem, const DAT_LMR_TRIPLET *segment);

/* The slot of a key. It may be free, or hold another region. */
static inline struct core_lmr *core_mem_slot(struct core_mem *mem, uint32_t key)
{
	uint32_t index = key & (CORE_MEM_MAX - 1);
	/* acquire: pairs with the release in mem_grow_locked, else the slot could be seen before
	 * it was zeroed */
	struct core_lmr *chunk =
		atomic_load_explicit(&mem->chunks[index / CORE_MEM_CHUNK], memory_order_acquire);

	return chunk ? &chunk[index % CORE_MEM_CHUNK] : NULL;
}

/* Pins the live region of that key. NULL: there is none. */
static inline struct core_lmr *core_mem_pin(struct core_mem *mem, uint32_t key)
{
	struct core_lmr *lmr = key ? core_mem_slot(mem, key) : NULL;

	if (!lmr)
		return NULL;
	core_pin(&lmr->pinned);
	/* sequentially consistent, after the pin: core_mem_revoke clears the key before it loads
	 * the pins. So either this load sees the key cleared, or the revoker sees the pin */
	if (atomic_load(&lmr->key) == key)
		return lmr;
	core_unpin(&lmr->pinned);
	return NULL;
}

static inline bool core_mem_is_inside(DAT_VADDR address, DAT_VLEN length,
				      const DAT_LMR_TRIPLET *segment)
{
	/* an address below the region wraps to an offset above any length */
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

/* The attributes of a region that core_mem_check needs. */
struct core_mem_attr {
	DAT_VADDR address;
	DAT_VLEN length;
	DAT_MEM_PRIV_FLAGS priv;
	struct core_pz *pz;
};

/* Reads the attributes of a live region without pinning it. False: the key is stale. */
static inline bool core_mem_read_attr(struct core_mem *mem, uint32_t key,
				      struct core_mem_attr *attr_out)
{
	struct core_lmr *lmr = key ? core_mem_slot(mem, key) : NULL;

	/* acquire on all loads, and the key again after them: if it is unchanged, all values belong
	 * to this key. Pairs with the release stores in core_mem_describe */
	if (!lmr || atomic_load_explicit(&lmr->key, memory_order_acquire) != key)
		return false;
	attr_out->address = __atomic_load_n(&lmr->address, __ATOMIC_ACQUIRE);
	attr_out->length = __atomic_load_n(&lmr->length, __ATOMIC_ACQUIRE);
	attr_out->priv = __atomic_load_n(&lmr->priv, __ATOMIC_ACQUIRE);
	attr_out->pz = __atomic_load_n(&lmr->pz, __ATOMIC_ACQUIRE);
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
	/* if the key is unchanged, so was the local key: a key is not reused that soon */
	return atomic_load_explicit(&lmr->key, memory_order_relaxed) == key;
}

/* Sets a local key. Call before core_mem_publish, or core_mem_renew afterwards. */
static inline void core_mem_set_local_key(struct core_lmr *lmr, uint32_t which, uint32_t local_key)
{
	/* release: as in core_mem_describe */
	__atomic_store_n(&lmr->local_keys[which], local_key, __ATOMIC_RELEASE);
}

/*
 * Checks a segment that is being posted (LMR-USE-01 to -05, DTO-84 to -87). The zone is not checked
 * if pz is NULL. Segments of length 0 are always valid. Returns DAT_SUCCESS or the code that the
 * posting call returns. Only the successful case is inline.
 */
static inline DAT_RETURN core_mem_check(struct core_mem *mem, const DAT_LMR_TRIPLET *segment,
					const struct core_pz *pz, enum core_mem_use use)
{
	struct core_mem_attr attr;

	if (core_mem_read_attr(mem, segment->lmr_context, &attr) &&
	    core_mem_is_inside(attr.address, attr.length, segment) && (!pz || attr.pz == pz) &&
	    core_mem_is_allowed(attr.priv, use))
		return DAT_SUCCESS;
	return core_mem_check_slow(mem, segment, pz, use);
}

static inline void core_mem_put(struct core_lmr *lmr)
{
	core_unpin(&lmr->pinned);
}

#endif
