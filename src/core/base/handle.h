// SPDX-License-Identifier: BSD-2-Clause
/*
 * Handles. Every object that has a handle has a cell in one reserved address range, and the cell's
 * address is the handle. Cells are never unmapped, so a stale, foreign or random handle is checked
 * safely: by its range, its alignment and the cell's tag. The cell also holds the object's lock. A
 * call locks the cell and checks the tag again; while it holds the lock the object cannot be freed,
 * because freeing clears the tag under the same lock. The kernel zeroes the range in a forked
 * child, so a child rejects all inherited handles without an extra check on the data path.
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
#include "core/base/tuning.h"
#include "shared/opendat.h"

struct core_ia;

#define CORE_CELL_SIZE (1u << OPENDAT_CELL_SHIFT)

/* Tags of live cells: handle type + 1. A free or dead cell has tag 0. */
#define CORE_TAG(type) ((uint8_t)((uint32_t)(type) + 1u))
/* Set in the tag of an object that dat_ia_close is about to destroy: all other calls reject it. */
#define CORE_TAG_DOOMED 0x8000u

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "slow_reasons is the upper half of state");

struct core_handle {
	const DAT_PROVIDER *provider; /* first word, read by compiled consumers; never cleared */
	union {
		struct {
			_Atomic uint16_t tag;  /* guarded by lock; read without it only as a hint */
			uint16_t slow_reasons; /* guarded by lock: reasons why calls on the object
						* must take the slow path; the bits depend on its
						* type (ep.h, evd.h) */
		};
		_Atomic uint32_t state; /* both: slow_reasons is the upper half */
	};
	uint32_t generation;	  /* guarded by lock; counts the objects this cell has held */
	void *object;		  /* guarded by lock; valid while tag is not 0 */
	struct core_ia *ia;	  /* set at creation */
	struct core_lock lock;	  /* the object's lock */
	DAT_CONTEXT context;	  /* guarded by lock */
	struct core_handle *next; /* in the IA's list of objects of its type (IA lock), or */
	union {
		struct core_handle *prev;	/* in the free list (arena lock) */
		DAT_IA_HANDLE _Atomic consumer; /* of an IA: the handle that the consumer has */
	};
};

_Static_assert(sizeof(struct core_handle) <= CORE_CELL_SIZE, "struct core_handle fits a cell");

/* A weak reference: the object may have been freed since. core_handle_lock_ref() checks. */
struct core_ref {
	struct core_handle *cell;
	uint32_t generation;
};

/* Allocates a cell for the object. It is not live yet: its tag is 0. NULL: no memory. */
struct core_handle *core_handle_alloc(const DAT_PROVIDER *provider, struct core_ia *ia,
				      void *object);

/* Makes the cell live with the given type. Only then may the consumer get the handle. */
void core_handle_publish(struct core_handle *cell, DAT_HANDLE_TYPE type);

/* Makes a live handle invalid. Lock held. No later call finds the object through it. */
void core_handle_kill_locked(struct core_handle *cell);

/* Makes a live handle invalid without taking its lock. ia_close.c destroys the object later. */
void core_handle_doom(struct core_handle *cell);

/* Locks a doomed cell and returns its object. NULL: another thread is freeing it. */
void *core_handle_lock_doomed(struct core_handle *cell);

/* Frees a dead or never published cell. At least 1,000 other cells are reused before it. */
void core_handle_release(struct core_handle *cell);

/*
 * Exported: libdat.so.1 looks it up by name. base is stored last, with release. Protected
 * visibility, because each provider library in a process has its own.
 */
__attribute__((visibility("protected"))) extern struct opendat_handle_arena opendat_handle_arena;

/* The arena as this library uses it. `cells` is stored last, and grows; `base` is constant then. */
struct core_cells {
	_Atomic uintptr_t cells;
	_Atomic uintptr_t base;
	uint32_t used; /* cells that were ever allocated, the first ones of the range (arena lock)
			*/
};

__attribute__((visibility("hidden"))) extern struct core_cells core_cells;

/* Is the value the address of a cell? Does not dereference it. */
static inline bool core_handle_is_cell(DAT_HANDLE handle)
{
	/* acquire: pairs with the release in handle.c, else the base is read as 0 */
	uintptr_t cells = atomic_load_explicit(&core_cells.cells, memory_order_acquire);
	uintptr_t base = atomic_load_explicit(&core_cells.base, memory_order_relaxed);
	uintptr_t offset = (uintptr_t)handle - base;
	unsigned int shift = OPENDAT_CELL_SHIFT;

	/* the rotation turns an address below the range, or an unaligned one, into a huge index */
	return (offset >> shift | offset << (8 * sizeof(offset) - shift)) < cells;
}

/* Locks the live object of that type. NULL, nothing locked: the handle is invalid. */
void *core_handle_lock(DAT_HANDLE handle, DAT_HANDLE_TYPE type);

/* core_handle_lock for an object of that instance. */
void *core_handle_lock_in(DAT_HANDLE handle, DAT_HANDLE_TYPE type, const struct core_ia *ia);

/* Locks a live object of any type, which is stored in type_out. */
struct core_handle *core_handle_lock_any(DAT_HANDLE handle, DAT_HANDLE_TYPE *type_out);

/* Locks an object by reference. NULL: it was freed. */
void *core_handle_lock_ref(struct core_ref ref, DAT_HANDLE_TYPE type);

/* core_handle_lock_cell when the cell's lock is not biased to the calling thread. */
void *core_handle_lock_shared(struct core_handle *cell, DAT_HANDLE_TYPE type);

/* core_handle_lock for an address that is known to be a cell. */
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
		__builtin_unreachable(); /* a live cell has an object */
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
 * Enters the fast path: tries to lock the live object of that type and returns it if it has no
 * slow_reasons. NULL, nothing locked: the caller takes the slow path. Never waits, so any lock may
 * be held. The handle must be a cell: libdat has checked it, or the call came through its first
 * word. Leave with core_lock_leave().
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

/*
 * An object as messages name it: its type and its number, for example "ep 3". The number is that of
 * its cell, counted from 1; no other live object of the process has it, whatever its type. An
 * instance is named by the handle that the consumer has.
 */
struct core_name {
	char text[16];
};

/* The number of an object that may be dead already. */
unsigned int core_handle_number(const struct core_handle *cell);
/* The name of the object with that handle; empty: no live one. */
struct core_name core_handle_name(DAT_HANDLE handle);
/* The name of an object that may be dead already. */
struct core_name core_object_name(const struct core_handle *cell, DAT_HANDLE_TYPE type);

/*
 * Sets and clears slow_reasons. The cell is locked, or not yet published. Relaxed: who reads the
 * word without the lock takes it for a hint.
 */
CORE_INLINE void core_handle_set_slow(struct core_handle *cell, uint16_t reasons)
{
	__atomic_store_n(&cell->slow_reasons, (uint16_t)(cell->slow_reasons | reasons),
			 __ATOMIC_RELAXED);
}

CORE_INLINE void core_handle_clear_slow(struct core_handle *cell, uint16_t reasons)
{
	__atomic_store_n(&cell->slow_reasons, (uint16_t)(cell->slow_reasons & ~reasons),
			 __ATOMIC_RELAXED);
}

/* Replaces the reasons in `mask` by `reasons`. */
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
