// SPDX-License-Identifier: BSD-2-Clause
/* The table of registered memory (mem.h). models/pins.pml models core_mem_revoke(). */
#include "core/mem/cache.h"
#include "core/mem/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/base/status.h"
#include "core/mem/pz.h"

#define MEM_GENERATION_MASK ((1u << (32 - CORE_MEM_INDEX_BITS)) - 1)

struct core_lmr core_mem_none;

struct core_mem *core_mem_new(void)
{
	struct core_mem *mem = calloc(1, sizeof(*mem));

	if (mem)
		core_lock_init(&mem->lock);
	return mem;
}

void core_mem_delete(struct core_mem *mem)
{
	for (uint32_t i = 0; i < CORE_MEM_MAX / CORE_MEM_CHUNK; i++)
		free(atomic_load_explicit(&mem->chunks[i], memory_order_relaxed));
	core_lock_destroy(&mem->lock);
	free(mem);
}

static void mem_push_locked(struct core_mem *mem, struct core_lmr *lmr)
{
	lmr->next_free = 0;
	if (mem->free_last)
		core_mem_slot(mem, mem->free_last - 1)->next_free = lmr->index + 1;
	else
		mem->free_first = lmr->index + 1;
	mem->free_last = lmr->index + 1;
	mem->free_count++;
}

/* Allocates another chunk of slots. Generations start at random values, so that a key of another
 * process is unlikely to be valid here. */
static bool mem_grow_locked(struct core_mem *mem)
{
	struct core_lmr *chunk;
	uint32_t seed = 0;

	if (mem->slots == CORE_MEM_MAX)
		return false;
	chunk = calloc(CORE_MEM_CHUNK, sizeof(*chunk));
	if (!chunk)
		return false;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint32_t)(uintptr_t)chunk;
	/* release: see core_mem_slot */
	atomic_store_explicit(&mem->chunks[mem->slots / CORE_MEM_CHUNK], chunk,
			      memory_order_release);
	for (uint32_t i = 0; i < CORE_MEM_CHUNK; i++) {
		chunk[i].index = mem->slots + i;
		chunk[i].generation = (seed + i * 7919u) & MEM_GENERATION_MASK;
		mem_push_locked(mem, &chunk[i]);
	}
	mem->slots += CORE_MEM_CHUNK;
	return true;
}

struct core_lmr *core_mem_alloc(struct core_mem *mem)
{
	struct core_lmr *lmr = NULL;

	core_lock_acquire(&mem->lock);
	if (mem->free_count <= CORE_MEM_QUARANTINE)
		(void)mem_grow_locked(mem);
	if (mem->free_first) {
		lmr = core_mem_slot(mem, mem->free_first - 1);
		mem->free_first = lmr->next_free;
		if (!mem->free_first)
			mem->free_last = 0;
		mem->free_count--;
	}
	core_lock_release(&mem->lock);
	return lmr;
}

/* The next name of the slot, with that key, or 0 for none. No other thread may change it. */
static uint64_t next_name(struct core_lmr *lmr, uint32_t key)
{
	uint32_t changes = atomic_load_explicit(&lmr->changes, memory_order_relaxed);

	return (uint64_t)(changes + 1) << 32 | key;
}

uint32_t core_mem_publish(struct core_mem *mem, struct core_lmr *lmr)
{
	uint32_t key;

	(void)mem;
	lmr->generation = (lmr->generation + 1) & MEM_GENERATION_MASK;
	if (!lmr->generation && !lmr->index) /* 0 is not a key */
		lmr->generation = 1;
	key = lmr->generation << CORE_MEM_INDEX_BITS | lmr->index;
	core_pins_begin(&lmr->pinned);
	/* release: pairs with the load in core_mem_pin, else a user could see old bounds */
	atomic_store_explicit(&lmr->name, next_name(lmr, key), memory_order_release);
	return key;
}

void core_mem_renew(struct core_lmr *lmr)
{
	uint32_t key = atomic_load_explicit(&lmr->key, memory_order_relaxed);

	/* as if the key had gone and come. release: a reader of the new name sees the new local
	 * keys */
	atomic_store_explicit(&lmr->name, next_name(lmr, key) + (UINT64_C(1) << 32),
			      memory_order_release);
}

void core_mem_revoke(struct core_mem *mem, struct core_lmr *lmr)
{
	(void)mem;
	/* sequentially consistent: with the fence in core_pins_wait, the other half of the store of
	 * the pin and the load of the key in core_mem_pin */
	atomic_store(&lmr->name, next_name(lmr, 0));
	core_pins_wait(&lmr->pinned);
}

void core_mem_free(struct core_mem *mem, struct core_lmr *lmr)
{
	core_lock_acquire(&mem->lock);
	mem_push_locked(mem, lmr);
	core_lock_release(&mem->lock);
}

void core_mem_describe(struct core_lmr *lmr, DAT_VADDR address, DAT_VLEN length,
		       DAT_MEM_PRIV_FLAGS priv, struct core_pz *pz)
{
	/* release: pairs with the acquire loads in core_mem_read_attr. A reader that sees one of
	 * these values also sees that the old key is stale, else it could take them for those of
	 * the old region */
	__atomic_store_n(&lmr->address, address, __ATOMIC_RELEASE);
	__atomic_store_n(&lmr->length, length, __ATOMIC_RELEASE);
	__atomic_store_n(&lmr->priv, priv, __ATOMIC_RELEASE);
	__atomic_store_n(&lmr->pz, pz, __ATOMIC_RELEASE);
}

void core_mem_cache_shrink(struct core_mem_cache *known, DAT_VADDR address, DAT_VLEN most)
{
	DAT_VLEN before = address - known->address, skip;

	if (known->length <= most)
		return;
	skip = before > most / 2 ? before - most / 2 : 0;
	if (skip > known->length - most)
		skip = known->length - most;
	known->address += skip;
	known->length = most;
}

/* All posting calls have the segments in this parameter. */
static const struct core_arg mem_segment = {"a post", "local_iov", 3};

CORE_COLD static DAT_RETURN mem_outside(const struct core_mem_attr *attr,
					const DAT_LMR_TRIPLET *segment)
{
	return core_bad_arg(&mem_segment,
			    "0x%" PRIx64 " and %" PRIu64
			    " bytes are not inside the region of lmr_context 0x%x, 0x%" PRIx64
			    " and %" PRIu64 " bytes",
			    segment->virtual_address, segment->segment_length, segment->lmr_context,
			    attr->address, attr->length);
}

CORE_COLD static DAT_RETURN mem_violation(const DAT_LMR_TRIPLET *segment, const char *why,
					  DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype)
{
	(void)core_bad_arg(&mem_segment, "lmr_context 0x%x %s", segment->lmr_context, why);
	return core_error(type, subtype);
}

DAT_RETURN core_mem_check_slow(struct core_mem *mem, const DAT_LMR_TRIPLET *segment,
			       const struct core_pz *pz, enum core_mem_use use)
{
	bool is_source = use == CORE_MEM_SOURCE;
	struct core_mem_attr attr;

	if (!segment->segment_length)
		return DAT_SUCCESS;
	if (!core_mem_read_attr(mem, segment->lmr_context, &attr))
		return mem_violation(segment, "is that of no live region", DAT_PRIVILEGES_VIOLATION,
				     is_source ? DAT_PRIVILEGES_READ : DAT_PRIVILEGES_WRITE);
	if (!core_mem_is_inside(attr.address, attr.length, segment))
		return mem_outside(&attr, segment);
	if (pz && attr.pz != pz)
		return mem_violation(segment, "is of another protection zone than the endpoint",
				     DAT_PROTECTION_VIOLATION,
				     is_source ? DAT_PROTECTION_READ : DAT_PROTECTION_WRITE);
	if (!core_mem_is_allowed(attr.priv, use))
		return mem_violation(segment,
				     is_source ? "lacks DAT_MEM_PRIV_LOCAL_READ_FLAG"
					       : "lacks DAT_MEM_PRIV_LOCAL_WRITE_FLAG",
				     DAT_PRIVILEGES_VIOLATION,
				     is_source ? DAT_PRIVILEGES_READ : DAT_PRIVILEGES_WRITE);
	return DAT_SUCCESS;
}

struct core_lmr *core_mem_get(struct core_mem *mem, const DAT_LMR_TRIPLET *segment,
			      const struct core_pz *pz, enum core_mem_use use)
{
	struct core_lmr *lmr = core_mem_pin(mem, segment->lmr_context);

	if (!lmr)
		return NULL;
	if (core_mem_is_inside(lmr->address, lmr->length, segment) && (!pz || lmr->pz == pz) &&
	    core_mem_is_allowed(lmr->priv, use))
		return lmr;
	core_mem_put(lmr);
	return NULL;
}

struct core_lmr *core_mem_get_registered(struct core_mem *mem, const DAT_LMR_TRIPLET *segment)
{
	struct core_lmr *lmr = core_mem_pin(mem, segment->lmr_context);

	if (!lmr || core_mem_is_inside(lmr->address, lmr->length, segment))
		return lmr;
	core_mem_put(lmr);
	return NULL;
}

bool core_mem_is_registered(struct core_mem *mem, const DAT_LMR_TRIPLET *segment)
{
	struct core_lmr *lmr;

	if (!segment->segment_length)
		return true;
	lmr = core_mem_get_registered(mem, segment);
	if (lmr)
		core_mem_put(lmr);
	return lmr;
}
