// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the handle arena of a provider's library when the provider registers. A library with an
 * arena is OpenDAT's own. It stays in memory and its arena stays known until the process ends, so
 * that stale handles can always be refused (IA-CLOSE-21).
 */
#include "handle.h"
#include "linked.h"
#include "sync.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

struct registry_handle_space registry_handle_space;

static int arena_publish(const struct opendat_handle_arena *arena);

static bool provider_place_get(const DAT_PROVIDER *provider, Dl_info *place_out)
{
	/* -pedantic accepts no cast of a function pointer to a data pointer. */
	union {
		DAT_IA_OPEN_FUNC function;
		void *address;
	} code = {.function = provider->ia_open_func};

	return code.address && dladdr(code.address, place_out) != 0;
}

void *registry_handle_library_get(const DAT_PROVIDER *provider)
{
	Dl_info place;

	if (registry_linked_of(provider) || !provider_place_get(provider, &place))
		return NULL;
	return dlopen(place.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

const void *registry_handle_library_base(void *library)
{
	struct link_map *map;
	Dl_info place;

	if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || dladdr(map->l_ld, &place) == 0)
		return NULL;
	return place.dli_fbase;
}

/* The symbol must be in the library itself; dlsym also searches its dependencies. */
static const struct opendat_handle_arena *arena_find(void *library, const Dl_info *place)
{
	const struct opendat_handle_arena *arena;
	Dl_info found;

	arena = dlsym(library ? library : RTLD_DEFAULT, OPENDAT_HANDLE_ARENA_SYMBOL);
	if (!arena || !dladdr(arena, &found) || found.dli_fbase != place->dli_fbase)
		return NULL;
	if (arena->magic != OPENDAT_HANDLE_ARENA_MAGIC || arena->cell_size == 0 ||
	    (arena->cell_size & (arena->cell_size - 1)) != 0)
		return NULL;
	return arena;
}

static size_t arena_bytes(const struct opendat_handle_arena *arena)
{
	/* Pairs with the provider's release; the cells up to there can be read. */
	return __atomic_load_n(&arena->size, __ATOMIC_ACQUIRE);
}

/* Returns the arena that contains the handle, or NULL. */
static const struct opendat_handle_arena *arena_of(DAT_HANDLE handle)
{
	/* Pairs with the release in arena_publish; else an entry is read before it is stored. */
	unsigned int count =
		atomic_load_explicit(&registry_handle_space.arena_count, memory_order_acquire);
	unsigned int i;

	for (i = 0; i < count; i++) {
		const struct opendat_handle_arena *arena = registry_handle_space.arenas[i];
		/* Pairs with the provider's release of base; else size is read before it is set. */
		uintptr_t base = __atomic_load_n(&arena->base, __ATOMIC_ACQUIRE);

		if (base != 0 && (uintptr_t)handle - base < arena_bytes(arena))
			return arena;
	}
	return NULL;
}

/* The provider must have an arena, because other providers use `extension` as they like. */
const struct opendat_extension *registry_handle_extension(DAT_HANDLE handle,
							  const DAT_PROVIDER *provider)
{
	const struct opendat_extension *extension = provider->extension;

	if (!arena_of(handle) || !extension || extension->magic != REGISTRY_EXTENSION_MAGIC ||
	    extension->size < OPENDAT_EXTENSION_FIRST)
		return NULL;
	return extension;
}

void registry_handle_set_first_locked(DAT_HANDLE handle)
{
	const struct opendat_handle_arena *arena = arena_of(handle);
	struct registry_handle_space *space = &registry_handle_space;

	/* Relaxed: only first_follow stores beside this, and only once it is not 0. */
	if (__atomic_load_n(&space->cells, __ATOMIC_RELAXED) || !arena ||
	    arena->cell_size != 1u << OPENDAT_CELL_SHIFT)
		return;
	space->base = arena->base;
	/* after the base, for a thread that checks a value which is no handle */
	__atomic_store_n(&space->cells, arena_bytes(arena) / arena->cell_size, __ATOMIC_RELEASE);
}

/* A handle was found in that arena, and maybe not by the fast path: the arena may have grown. */
static void first_follow(const struct opendat_handle_arena *arena)
{
	struct registry_handle_space *space = &registry_handle_space;

	/* Pairs with the release in registry_handle_set_first_locked. */
	if (__atomic_load_n(&space->cells, __ATOMIC_ACQUIRE) && space->base == arena->base)
		__atomic_store_n(&space->cells, arena_bytes(arena) / arena->cell_size,
				 __ATOMIC_RELEASE);
}

const DAT_PROVIDER *registry_handle_provider(DAT_HANDLE handle)
{
	const struct opendat_handle_arena *arena = arena_of(handle);
	uintptr_t value = (uintptr_t)handle;

	if (arena) {
		const DAT_PROVIDER *provider;

		first_follow(arena);
		if ((value - arena->base) & (arena->cell_size - 1))
			return NULL;
		provider = registry_handle_first_word(handle);
		return provider && registry_handle_is_front(provider) ? provider : NULL;
	}
	/* Relaxed: a foreign handle is created only after its registration was counted. */
	if (atomic_load_explicit(&registry_handle_space.foreign_count, memory_order_relaxed) == 0 ||
	    value < REGISTRY_SMALL_INTEGERS || value % sizeof(void *) != 0)
		return NULL;
	return registry_handle_first_word(handle);
}

int registry_handle_learn(const DAT_PROVIDER *provider, struct registry_origin *origin_out)
{
	const struct opendat_linked *linked = registry_linked_of(provider);
	const struct opendat_handle_arena *arena = NULL;
	void *library;
	Dl_info place;
	int ret = 0;

	if (linked) {
		*origin_out = (struct registry_origin){.base = linked};
		return arena_publish(linked->arena);
	}
	*origin_out = (struct registry_origin){.is_foreign = true};
	if (!provider_place_get(provider, &place))
		return 0;
	origin_out->base = place.dli_fbase;
	library = dlopen(place.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	arena = arena_find(library, &place);
	if (arena) {
		origin_out->is_foreign = false;
		ret = arena_publish(arena);
		if (ret == 0 && library) {
			void *pinned =
				dlopen(place.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);

			if (pinned)
				dlclose(pinned);
		}
	}
	if (library)
		dlclose(library);
	return ret;
}

static int arena_publish(const struct opendat_handle_arena *arena)
{
	struct registry_handle_space *space = &registry_handle_space;
	unsigned int count, i;
	int ret = 0;

	registry_lock();
	count = atomic_load_explicit(&space->arena_count, memory_order_relaxed);
	for (i = 0; i < count; i++)
		if (space->arenas[i] == arena)
			goto unlock;
	if (count == REGISTRY_ARENAS_MAX) {
		ret = -ENOSPC;
		goto unlock;
	}
	space->arenas[count] = arena;
	/* Pairs with the acquire in arena_of. */
	atomic_store_explicit(&space->arena_count, count + 1, memory_order_release);
unlock:
	registry_unlock();
	return ret;
}
