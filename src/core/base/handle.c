// SPDX-License-Identifier: BSD-2-Clause
/*
 * The arena of handle cells: one reserved address range. Its first part can be accessed; it grows
 * by a chunk when all cells in it were used. What is behind takes no memory, even if the program
 * locks all that it has. Cells are allocated in address order. Freed cells go to a FIFO and are
 * reused only when more than CORE_CELL_QUARANTINE cells are free or the range is exhausted, so that
 * a stale handle value is not reissued soon (GEN-16).
 */
#include "core/base/handle.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "core/base/space.h"
#include "shared/names.h"

#define ARENA_MAX ((size_t)CORE_CELL_SIZE << 21) /* bytes */
#define ARENA_MIN ((size_t)CORE_CELL_SIZE << 14)
/* Where the address space is limited, the range takes that part of it. */
#define ARENA_SHARE 64u
/* It takes no more than ARENA_MIN if less than that is left for other things. */
#define ARENA_LEFT ((size_t)64 << 20)

struct opendat_handle_arena opendat_handle_arena = {OPENDAT_HANDLE_ARENA_MAGIC, CORE_CELL_SIZE, 0,
						    0};

struct core_cells core_cells;

/* All guarded by the lock; rank 9. */
static struct {
	struct core_lock lock;
	struct core_space space; /* the range; size 0: not reserved yet */
	uint32_t free_count;
	struct core_handle *free_first; /* the oldest of the free cells */
	struct core_handle *free_last;
} arena = {.lock = CORE_LOCK_INIT};

/*
 * The thread that holds the lock for a fork. Fork handlers of the consumer run in it and may free
 * handles.
 */
static _Atomic uintptr_t arena_forking;

static void arena_lock(void)
{
	if (!core_lock_is_self(&arena_forking))
		core_lock_acquire(&arena.lock);
}

static void arena_unlock(void)
{
	if (!core_lock_is_self(&arena_forking))
		core_lock_release(&arena.lock);
}

static pthread_once_t arena_once = PTHREAD_ONCE_INIT;
static bool arena_has_fork_handlers; /* set once, by arena_listen_to_forks */

/*
 * Takes the mutex even if the lock is biased to this thread. Otherwise another thread could hold
 * the mutex at the fork while it waits for us to leave the lock, and the mutex would stay locked in
 * the child, where that thread does not exist.
 */
static void arena_fork_prepare(void)
{
	core_lock_acquire_shared(&arena.lock);
	atomic_store_explicit(&arena_forking, core_lock_self(), memory_order_relaxed);
}

static void arena_fork_parent(void)
{
	atomic_store_explicit(&arena_forking, 0, memory_order_relaxed);
	core_lock_release(&arena.lock);
}

/*
 * The kernel has zeroed the range. Cells that the parent had allocated are not reused, so that its
 * handles stay invalid in the child.
 */
static void arena_fork_child(void)
{
	arena.free_first = NULL;
	arena.free_last = NULL;
	arena.free_count = 0;
	arena_fork_parent(); /* arena_fork_prepare took the lock */
}

static void arena_listen_to_forks(void)
{
	arena_has_fork_handlers =
		!pthread_atfork(arena_fork_prepare, arena_fork_parent, arena_fork_child);
}

/* How much of the address space the range takes if there is enough. */
static size_t arena_size(void)
{
	struct rlimit limit;
	size_t size;

	if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur / ARENA_SHARE >= ARENA_MAX)
		return ARENA_MAX;
	size = (size_t)limit.rlim_cur / ARENA_SHARE / CORE_SPACE_CHUNK * CORE_SPACE_CHUNK;
	return size < ARENA_MIN ? ARENA_MIN : size;
}

/*
 * Reserves the range, with access to none of it. An adapter that opens with a small range must not
 * fail with a large one, so that leaves room for the rest of the adapter.
 */
static int arena_reserve(struct core_space *space)
{
	size_t size = arena_size();
	int rc = core_space_map(space, size + ARENA_LEFT, PROT_NONE, -1);

	if (rc)
		return core_space_map(space, ARENA_MIN, PROT_NONE, -1);
	core_space_cut(space, size);
	return 0;
}

/* A failure is not final: the next allocation tries again. */
static void arena_create_locked(void)
{
	struct core_space space;

	if (arena_reserve(&space))
		return;
	if (madvise(space.at, space.size, MADV_WIPEONFORK)) { /* GEN-35 */
		core_space_unmap(&space);
		return;
	}
	/* else a few handles would use 2 MiB */
	(void)madvise(space.at, space.size, MADV_NOHUGEPAGE);
	arena.space = space;
}

/* Opens the next chunk of the range. False: there is none, or no memory for it now. */
static bool arena_grow_locked(void)
{
	size_t size = opendat_handle_arena.size;

	if (!arena.space.size)
		arena_create_locked();
	if (size == arena.space.size ||
	    mprotect(arena.space.at + size, CORE_SPACE_CHUNK, PROT_READ | PROT_WRITE))
		return false;
	core_space_use(&arena.space, size);
	size += CORE_SPACE_CHUNK;
	/* release: pairs with the acquire loads in libdat; the chunk can be read before */
	__atomic_store_n(&opendat_handle_arena.size, size, __ATOMIC_RELEASE);
	if (!opendat_handle_arena.base) {
		atomic_store_explicit(&core_cells.base, (uintptr_t)arena.space.at,
				      memory_order_relaxed);
		/* release: likewise, else size is read as 0 */
		__atomic_store_n(&opendat_handle_arena.base, (uintptr_t)arena.space.at,
				 __ATOMIC_RELEASE);
	}
	/* release: pairs with the acquire in core_handle_is_cell */
	atomic_store_explicit(&core_cells.cells, size / CORE_CELL_SIZE, memory_order_release);
	return true;
}

/* Is there a cell that was never used? */
static bool arena_has_unused_locked(void)
{
	return core_cells.used < atomic_load_explicit(&core_cells.cells, memory_order_relaxed) ||
	       arena_grow_locked();
}

static struct core_handle *arena_alloc_locked(void)
{
	struct core_handle *cell = arena.free_first;

	if (arena.free_count <= CORE_CELL_QUARANTINE && arena_has_unused_locked()) {
		cell = (struct core_handle *)(opendat_handle_arena.base +
					      (size_t)core_cells.used++ * CORE_CELL_SIZE);
		core_lock_init(&cell->lock);
		return cell;
	}
	if (!cell)
		return NULL;
	arena.free_first = cell->next;
	if (!arena.free_first)
		arena.free_last = NULL;
	arena.free_count--;
	return cell;
}

struct core_handle *core_handle_alloc(const DAT_PROVIDER *provider, struct core_ia *ia,
				      void *object)
{
	struct core_handle *cell;

	pthread_once(&arena_once, arena_listen_to_forks);
	if (!arena_has_fork_handlers)
		return NULL;
	arena_lock();
	cell = arena_alloc_locked();
	arena_unlock();
	if (!cell)
		return NULL;
	core_lock_acquire(&cell->lock); /* a user of a stale handle may hold it */
	cell->generation++;
	cell->object = object;
	cell->ia = ia;
	cell->slow_reasons = 0;
	cell->context.as_64 = 0;
	cell->next = NULL;
	cell->prev = NULL;
	core_lock_release(&cell->lock);
	/*
	 * relaxed: libdat only tests it for NULL. The consumer's own synchronization, by which a
	 * thread gets the handle, orders the rest.
	 */
	__atomic_store_n(&cell->provider, provider, __ATOMIC_RELAXED);
	return cell;
}

void core_handle_publish(struct core_handle *cell, DAT_HANDLE_TYPE type)
{
	/* release: pairs with the lock-free acquire load of the tag in core_handle_lock_shared */
	atomic_store_explicit(&cell->tag, CORE_TAG(type), memory_order_release);
}

void core_handle_kill_locked(struct core_handle *cell)
{
	atomic_store_explicit(&cell->tag, 0, memory_order_release);
}

void core_handle_doom(struct core_handle *cell)
{
	uint16_t tag = atomic_load(&cell->tag);

	/* a concurrent free overwrites the tag with 0 and completes */
	while (tag &&
	       !atomic_compare_exchange_weak(&cell->tag, &tag, (uint16_t)(tag | CORE_TAG_DOOMED)))
		;
}

void *core_handle_lock_doomed(struct core_handle *cell)
{
	core_lock_acquire(&cell->lock);
	if (atomic_load(&cell->tag) & CORE_TAG_DOOMED)
		return cell->object;
	core_lock_release(&cell->lock);
	return NULL;
}

void core_handle_release(struct core_handle *cell)
{
	core_lock_acquire(&cell->lock);
	atomic_store_explicit(&cell->tag, 0, memory_order_release);
	cell->object = NULL;
	core_lock_release(&cell->lock);
	arena_lock();
	cell->next = NULL;
	if (arena.free_last)
		arena.free_last->next = cell;
	else
		arena.free_first = cell;
	arena.free_last = cell;
	arena.free_count++;
	arena_unlock();
}

void *core_handle_lock_shared(struct core_handle *cell, DAT_HANDLE_TYPE type)
{
	/* a hint: avoids locking cells that were never used, or that hold another object */
	if (atomic_load_explicit(&cell->tag, memory_order_acquire) != CORE_TAG(type))
		return NULL;
	core_lock_acquire_shared(&cell->lock);
	/* relaxed: the lock orders it */
	if (atomic_load_explicit(&cell->tag, memory_order_relaxed) == CORE_TAG(type))
		return cell->object;
	core_lock_release(&cell->lock);
	return NULL;
}

void *core_handle_lock(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	return core_handle_lock_inline(handle, type);
}

void *core_handle_lock_in(DAT_HANDLE handle, DAT_HANDLE_TYPE type, const struct core_ia *ia)
{
	struct core_handle *cell = (struct core_handle *)handle;
	void *object = core_handle_lock(handle, type);

	if (!object || cell->ia == ia)
		return object;
	core_lock_release(&cell->lock);
	return NULL;
}

struct core_handle *core_handle_lock_any(DAT_HANDLE handle, DAT_HANDLE_TYPE *type_out)
{
	struct core_handle *cell = (struct core_handle *)handle;
	uint32_t tag;

	if (!core_handle_is_cell(handle) || !atomic_load_explicit(&cell->tag, memory_order_acquire))
		return NULL;
	core_lock_acquire(&cell->lock);
	/* relaxed: the lock orders it */
	tag = atomic_load_explicit(&cell->tag, memory_order_relaxed);
	if (tag && !(tag & CORE_TAG_DOOMED)) {
		*type_out = (DAT_HANDLE_TYPE)(tag - 1);
		return cell;
	}
	core_lock_release(&cell->lock);
	return NULL;
}

void *core_handle_lock_ref(struct core_ref ref, DAT_HANDLE_TYPE type)
{
	void *object = core_handle_lock_inline(ref.cell, type);

	if (!object || ref.cell->generation == ref.generation)
		return object;
	core_lock_release(&ref.cell->lock);
	return NULL;
}

unsigned int core_handle_number(const struct core_handle *cell)
{
	uintptr_t offset = (uintptr_t)cell - atomic_load(&core_cells.base);

	return (unsigned int)(offset / CORE_CELL_SIZE) + 1;
}

struct core_name core_object_name(const struct core_handle *cell, DAT_HANDLE_TYPE type)
{
	unsigned int number = core_handle_number(cell);
	struct core_name name;

	if (type == DAT_HANDLE_TYPE_IA && atomic_load(&cell->consumer))
		number = (unsigned int)(uintptr_t)atomic_load(&cell->consumer);
	snprintf(name.text, sizeof(name.text), "%s %u", opendat_object_name(type), number);
	return name;
}

struct core_name core_handle_name(DAT_HANDLE handle)
{
	struct core_handle *cell = (struct core_handle *)handle;
	uint16_t tag = core_handle_is_cell(handle) ? atomic_load(&cell->tag) : 0;

	/* no lock is needed: the object may be freed at any time after */
	tag &= (uint16_t)~CORE_TAG_DOOMED;
	return tag ? core_object_name(cell, (DAT_HANDLE_TYPE)(tag - 1)) : (struct core_name){""};
}
