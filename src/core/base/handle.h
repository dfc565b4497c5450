// SPDX-License-Identifier: BSD-2-Clause
/*
 * Handles. Every object that a consumer can name has a cell in one reserved address range, and
 * the cell's address is the handle. Cells are never unmapped, so that a stale, foreign or random
 * handle can be looked at safely: a range compare, an alignment test and the cell's tag decide.
 * The cell also holds the object's lock: a call locks the cell, checks the tag again and then owns
 * the object; freeing makes the tag dead under the same lock. The range is wiped in a forked child,
 * which therefore refuses all inherited handles without any check on the data path.
 */
#ifndef CORE_HANDLE_H
#define CORE_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dat/udat.h>
#include <dat/dat_registry.h>

#include "core/base/lock.h"
#include "shared/opendat.h"

struct core_ia;

#define CORE_CELL_SIZE (1u << OPENDAT_CELL_SHIFT)

/* Tags of live cells: handle type + 1. A free or dead cell has tag 0. */
#define CORE_TAG(type) ((uint8_t)((uint32_t)(type) + 1u))
/* Added to the tag of what dat_ia_close is about to destroy: refused to everybody else. */
#define CORE_TAG_DOOMED 0x8000u

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "which half is the upper");

struct core_handle {
	const DAT_PROVIDER *provider; /* first word, read by compiled consumers; never cleared */
	union {
		struct {
			_Atomic uint16_t tag;  /* guarded by lock; read without it only as a hint */
			uint16_t slow_reasons; /* guarded by lock: reasons against the fast path of
						* the object's calls; bits of its type (ep.h, evd.h)
						*/
		};
		_Atomic uint32_t state; /* the tag, and slow_reasons in the upper half */
	};
	uint32_t generation;	  /* guarded by lock; counts the uses of this cell */
	void *object;		  /* guarded by lock; valid while tag is not 0 */
	struct core_ia *ia;	  /* set at creation */
	struct core_lock lock;	  /* the object's lock */
	DAT_CONTEXT context;	  /* guarded by lock */
	struct core_handle *next; /* the IA's list of objects of this type (IA lock), */
	union {
		struct core_handle *prev;	/* or the free list (arena lock) */
		DAT_IA_HANDLE _Atomic consumer; /* of an IA: what consumers call it */
	};
};

_Static_assert(sizeof(struct core_handle) <= CORE_CELL_SIZE, "a handle fits its cell");

/* A reference to an object that may be gone when it is used; compare core_handle_lock_ref(). */
struct core_ref {
	struct core_handle *cell;
	uint32_t generation;
};

/* Takes a free cell (tag 0, object set, not yet visible as live). NULL: no memory. */
struct core_handle *core_handle_alloc(const DAT_PROVIDER *provider, struct core_ia *ia,
				      void *object);

/* Makes the cell live with the given type. The handle may be given to the consumer after it. */
void core_handle_publish(struct core_handle *cell, DAT_HANDLE_TYPE type);

/* Marks a live cell dead. Lock held. No later call finds the object through its handle. */
void core_handle_kill_locked(struct core_handle *cell);

/* Refuses a live handle from now on, without its lock; its object is destroyed later (ia_close.c).
 */
void core_handle_doom(struct core_handle *cell);

/* The object of a doomed cell, locked; NULL when another thread is freeing it. */
void *core_handle_lock_doomed(struct core_handle *cell);

/* Gives a dead or never published cell back. Not reissued for the next 1,000 creations. */
void core_handle_release(struct core_handle *cell);

/*
 * Exported; libdat.so.1 looks it up by name. base is stored last, with release. Protected, because
 * two provider libraries in one process each have their own.
 */
__attribute__((visibility("protected"))) extern struct opendat_handle_arena opendat_handle_arena;

/* The same for this library: constant once `cells`, which is stored last, is not 0. */
struct core_cells {
	_Atomic uintptr_t cells;
	_Atomic uintptr_t base;
};

__attribute__((visibility("hidden"))) extern struct core_cells core_cells;

/* True when the value can be a cell of ours (no access is made to anything else). */
static inline bool core_handle_is_cell(DAT_HANDLE handle)
{
	/* acquire: pairs with the release in arena_create, else the base is read as 0 */
	uintptr_t cells = atomic_load_explicit(&core_cells.cells, memory_order_acquire);
	uintptr_t base = atomic_load_explicit(&core_cells.base, memory_order_relaxed);
	uintptr_t offset = (uintptr_t)handle - base;
	unsigned int shift = OPENDAT_CELL_SHIFT;

	/* rotated: what lies below the range, or is no multiple, becomes a huge number */
	return (offset >> shift | offset << (8 * sizeof(offset) - shift)) < cells;
}

/* The live object of that type, its lock held; NULL (no lock held) when there is none. */
void *core_handle_lock(DAT_HANDLE handle, DAT_HANDLE_TYPE type);

/* As core_handle_lock for any type; the type found is stored. */
struct core_handle *core_handle_lock_any(DAT_HANDLE handle, DAT_HANDLE_TYPE *type_out);

/* As core_handle_lock by reference: NULL when the object of that generation is gone. */
void *core_handle_lock_ref(struct core_ref ref, DAT_HANDLE_TYPE type);

/* core_handle_lock_cell when the cell's lock is not the calling thread's own. */
void *core_handle_lock_shared(struct core_handle *cell, DAT_HANDLE_TYPE type);

/* core_handle_lock for what is known to be a cell of ours. */
CORE_INLINE void *core_handle_lock_cell(struct core_handle *cell, DAT_HANDLE_TYPE type)
{
	void *object;

	if (!core_lock_enter(&cell->lock))
		return core_handle_lock_shared(cell, type);
	/* relaxed: the lock orders it */
	if (atomic_load_explicit(&cell->tag, memory_order_relaxed) != CORE_TAG(type)) {
		core_lock_release(&cell->lock);
		return NULL;
	}
	object = cell->object;
	if (!object)
		__builtin_unreachable(); /* a live cell has one; callers need not ask twice */
	return object;
}

/* core_handle_lock for the data path. */
CORE_INLINE void *core_handle_lock_inline(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	if (!core_handle_is_cell(handle))
		return NULL;
	return core_handle_lock_cell((struct core_handle *)handle, type);
}

/*
 * Enters the fast path: the live object of that type, locked, if nothing is against its fast path.
 * NULL otherwise, or if the lock cannot be had without waiting: nothing is locked, and the general
 * path follows. The handle is one of our cells: libdat has checked it, or its first word has led
 * here. May be called with any lock held. core_lock_leave() ends it.
 */
CORE_INLINE void *core_handle_enter_fast(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	struct core_handle *cell = (struct core_handle *)handle;
	void *object;

	if (__builtin_expect(!core_lock_try(&cell->lock), false))
		return NULL;
	if (__builtin_expect(!core_is_same_32(&cell->state, CORE_TAG(type)), false)) {
		core_lock_leave(&cell->lock);
		return NULL;
	}
	object = cell->object;
	if (!object)
		__builtin_unreachable();
	return object;
}

/* Sets and clears reasons against the fast path. Locked, or not yet published. */
CORE_INLINE void core_handle_set_slow(struct core_handle *cell, uint16_t reasons)
{
	cell->slow_reasons |= reasons;
}

CORE_INLINE void core_handle_clear_slow(struct core_handle *cell, uint16_t reasons)
{
	cell->slow_reasons &= (uint16_t)~reasons;
}

/* Of the reasons of that mask, these hold from now on and no others. */
CORE_INLINE void core_handle_put_slow(struct core_handle *cell, uint16_t mask, uint16_t reasons)
{
	core_handle_clear_slow(cell, mask);
	core_handle_set_slow(cell, reasons);
}

CORE_INLINE void core_handle_unlock(struct core_handle *cell)
{
	core_lock_release(&cell->lock);
}

static inline struct core_ref core_handle_ref(struct core_handle *cell)
{
	return (struct core_ref){cell, cell->generation};
}

#endif
