// SPDX-License-Identifier: BSD-2-Clause
/*
 * The arena of handle cells. It is one reserved range, readable as a whole (untouched pages cost
 * nothing), whose cells are handed out in order; freed cells wait in a FIFO until at least
 * ARENA_QUARANTINE others are free, so that a stale handle value is not reissued soon (GEN-16).
 */
#include "core/base/handle.h"

#include <sys/mman.h>

#define ARENA_CELLS_MAX (1u << 21)
#define ARENA_CELLS_MIN (1u << 14)
/*
 * The thread sanitizer knows a lock by its address for ever: a cell that served objects of two
 * types, which rank differently, would look like a cycle. There cells are hardly ever used again.
 */
#if defined(__SANITIZE_THREAD__)
#define ARENA_QUARANTINE (1u << 20)
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ARENA_QUARANTINE (1u << 20)
#endif
#endif
#ifndef ARENA_QUARANTINE
#define ARENA_QUARANTINE 1024u
#endif

struct opendat_handle_arena opendat_handle_arena = {OPENDAT_HANDLE_ARENA_MAGIC, CORE_CELL_SIZE, 0,
						    0};

struct core_cells core_cells;

/* All guarded by the lock; rank 9. */
static struct {
	struct core_lock lock;
	uint32_t cells;	      /* cells the range has */
	uint32_t next_unused; /* cells that were handed out at least once */
	uint32_t free_count;
	struct core_handle *free_first; /* the cell that was freed longest ago */
	struct core_handle *free_last;
} arena = {.lock = CORE_LOCK_INIT};

static pthread_once_t arena_once = PTHREAD_ONCE_INIT;

/*
 * By the mutex: a thread that waits for us to come out of a lock of our own would have the mutex
 * meanwhile, and with it in the child, where that thread is not.
 */
static void arena_fork_prepare(void)
{
	core_lock_acquire_shared(&arena.lock);
}

static void arena_fork_parent(void)
{
	core_lock_release(&arena.lock);
}

/* The range was wiped for us. Cells of the parent stay unused, so that its handles stay refused. */
static void arena_fork_child(void)
{
	arena.free_first = NULL;
	arena.free_last = NULL;
	arena.free_count = 0;
	core_lock_release(&arena.lock); /* this thread took it before the fork */
}

static void arena_create(void)
{
	uint32_t cells = ARENA_CELLS_MAX;
	void *base = MAP_FAILED;
	size_t size = 0;

	for (; cells >= ARENA_CELLS_MIN && base == MAP_FAILED; cells /= 2) {
		size = (size_t)cells * CORE_CELL_SIZE;
		base = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	if (base == MAP_FAILED)
		return;
	if (madvise(base, size, MADV_WIPEONFORK) || /* GEN-35 */
	    pthread_atfork(arena_fork_prepare, arena_fork_parent, arena_fork_child)) {
		munmap(base, size);
		return;
	}
	(void)madvise(base, size, MADV_NOHUGEPAGE); /* a few handles shall not cost 2 MiB */
	arena.cells = (uint32_t)(size / CORE_CELL_SIZE);
	atomic_store_explicit(&core_cells.base, (uintptr_t)base, memory_order_relaxed);
	/* release: pairs with the acquire in core_handle_is_cell */
	atomic_store_explicit(&core_cells.cells, arena.cells, memory_order_release);
	opendat_handle_arena.size = size;
	/* release: pairs with the acquire loads in libdat, else size is read as 0 */
	__atomic_store_n(&opendat_handle_arena.base, (uintptr_t)base, __ATOMIC_RELEASE);
}

static struct core_handle *arena_take_locked(void)
{
	struct core_handle *cell = arena.free_first;
	bool has_unused = arena.next_unused < arena.cells;

	if (cell && (arena.free_count > ARENA_QUARANTINE || !has_unused)) {
		arena.free_first = cell->next;
		if (!arena.free_first)
			arena.free_last = NULL;
		arena.free_count--;
		return cell;
	}
	if (!has_unused)
		return NULL;
	cell = (struct core_handle *)(opendat_handle_arena.base +
				      (size_t)arena.next_unused++ * CORE_CELL_SIZE);
	core_lock_init(&cell->lock);
	return cell;
}

struct core_handle *core_handle_alloc(const DAT_PROVIDER *provider, struct core_ia *ia,
				      void *object)
{
	struct core_handle *cell;

	pthread_once(&arena_once, arena_create);
	core_lock_acquire(&arena.lock);
	cell = arena_take_locked();
	core_lock_release(&arena.lock);
	if (!cell)
		return NULL;
	core_lock_acquire(&cell->lock); /* a late user of the old handle may be looking at it */
	cell->generation++;
	cell->object = object;
	cell->ia = ia;
	cell->slow_reasons = 0;
	cell->context.as_64 = 0;
	cell->next = NULL;
	cell->prev = NULL;
	core_lock_release(&cell->lock);
	/* relaxed: libdat only asks whether it is there; the handle itself orders the rest */
	__atomic_store_n(&cell->provider, provider, __ATOMIC_RELAXED);
	return cell;
}

void core_handle_publish(struct core_handle *cell, DAT_HANDLE_TYPE type)
{
	/* release: pairs with the acquire of the lock-free look in core_handle_lock */
	atomic_store_explicit(&cell->tag, CORE_TAG(type), memory_order_release);
}

void core_handle_kill_locked(struct core_handle *cell)
{
	atomic_store_explicit(&cell->tag, 0, memory_order_release);
}

void core_handle_doom(struct core_handle *cell)
{
	uint16_t tag = atomic_load(&cell->tag);

	/* a free that is under way stores 0 over it, and goes on */
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
	core_lock_acquire(&arena.lock);
	cell->next = NULL;
	if (arena.free_last)
		arena.free_last->next = cell;
	else
		arena.free_first = cell;
	arena.free_last = cell;
	arena.free_count++;
	core_lock_release(&arena.lock);
}

void *core_handle_lock_shared(struct core_handle *cell, DAT_HANDLE_TYPE type)
{
	/* a hint, which spares cells that were never used, and the locks of other objects */
	if (atomic_load_explicit(&cell->tag, memory_order_acquire) != CORE_TAG(type))
		return NULL;
	core_lock_acquire_shared(&cell->lock);
	if (atomic_load_explicit(&cell->tag, memory_order_relaxed) == CORE_TAG(type))
		return cell->object; /* relaxed: the lock orders it */
	core_lock_release(&cell->lock);
	return NULL;
}

void *core_handle_lock(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	return core_handle_lock_inline(handle, type);
}

struct core_handle *core_handle_lock_any(DAT_HANDLE handle, DAT_HANDLE_TYPE *type_out)
{
	struct core_handle *cell = (struct core_handle *)handle;
	uint32_t tag;

	if (!core_handle_is_cell(handle) || !atomic_load_explicit(&cell->tag, memory_order_acquire))
		return NULL;
	core_lock_acquire(&cell->lock);
	tag = atomic_load_explicit(&cell->tag, memory_order_relaxed); /* the lock orders it */
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
