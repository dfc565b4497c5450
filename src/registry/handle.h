// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks a handle before it is dereferenced (GEN-14 to GEN-17, GEN-33). The check is on the data
 * path, so it takes no lock and needs a few comparisons: a handle of OpenDAT's providers is an
 * address in the arena of its library. The fast path compares with the first arena only; the slow
 * path tries them all. A foreign library is one without an arena. Its handles cannot be
 * distinguished from garbage, so while one is registered any aligned address is dereferenced.
 */
#ifndef REGISTRY_HANDLE_H
#define REGISTRY_HANDLE_H

#include "api.h"
#include "shared/opendat.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Values below this are not addresses. The consumer's handles of instances are below it. */
#define REGISTRY_SMALL_INTEGERS 0x10000u

/* OpenDAT has two provider libraries with one arena each; the tests load more. */
#define REGISTRY_ARENAS_MAX 16

struct registry_handle_space {
	/*
	 * The first arena, that of the first instance opened. The base is written once, before the
	 * consumer gets the handle of that instance. The number of cells follows the growth of the
	 * arena, when a handle is found behind it. 0: no first arena yet.
	 */
	uintptr_t base;
	uintptr_t cells;
	/* Entries below arena_count are constant. Stored with release after the entry. */
	atomic_uint arena_count;
	const struct opendat_handle_arena *arenas[REGISTRY_ARENAS_MAX];
	/* The number of registrations by foreign libraries. */
	atomic_uint foreign_count;
};

extern struct registry_handle_space registry_handle_space;

/* The library that a provider's code is in. */
struct registry_origin {
	const void *base; /* its load address, or the linked provider; NULL: unknown */
	bool is_foreign;  /* it has no arena */
};

/*
 * Adds the arena of a provider's library, for the life of the process. The caller counts a foreign
 * provider in registry_handle_space.foreign_count when it lists it. Returns -ENOSPC if there are
 * too many libraries. Takes the registry's lock.
 */
int registry_handle_learn(const DAT_PROVIDER *provider, struct registry_origin *origin_out);

/* Takes a reference to the library of a provider's code. NULL: the code is in the program. */
void *registry_handle_library_get(const DAT_PROVIDER *provider);

/* The load address of an open library, comparable with registry_origin.base. */
const void *registry_handle_library_base(void *library);

static inline const DAT_PROVIDER *registry_handle_first_word(DAT_HANDLE handle)
{
	/* Relaxed: the provider checks the object under its own lock before it uses it. */
	return __atomic_load_n((const DAT_PROVIDER *const *)handle, __ATOMIC_RELAXED);
}

/* Compares with the number of cells by a relaxed load: an older one leads to the slow path. */
static inline bool registry_handle_is_below(uintptr_t number)
{
#ifdef __x86_64__
	bool is;

	/* one instruction; a compiler would load the number into a register first */
	__asm__("cmpq %1, %2" : "=@ccb"(is) : "m"(registry_handle_space.cells), "r"(number));
	return is;
#else
	return number < __atomic_load_n(&registry_handle_space.cells, __ATOMIC_RELAXED);
#endif
}

/* Is the table of one of our providers that of this front? Tables of tests have no extension. */
static inline bool registry_handle_is_front(const DAT_PROVIDER *provider)
{
	const struct opendat_extension *extension = provider->extension;

	return !extension || extension->magic == REGISTRY_EXTENSION_MAGIC;
}

/*
 * The provider table of a handle in the first arena. NULL otherwise: the slow path follows, with
 * registry_handle_provider.
 */
static inline const DAT_PROVIDER *registry_handle_provider_fast(DAT_HANDLE handle)
{
	uintptr_t offset = (uintptr_t)handle - registry_handle_space.base;
	unsigned int shift = OPENDAT_CELL_SHIFT;
	const DAT_PROVIDER *provider;

	/* the rotation makes an address below the arena, or inside a cell, a huge number */
	offset = offset >> shift | offset << (8 * sizeof(offset) - shift);
	if (!registry_handle_is_below(offset))
		return NULL;
	provider = registry_handle_first_word(handle);
	return provider && registry_handle_is_front(provider) ? provider : NULL; /* D2-COEX-04 */
}

/* Makes the arena of that handle the first arena, unless there is one. */
void registry_handle_set_first_locked(DAT_HANDLE handle);

/* The extension of the provider table. NULL: a foreign provider, or one too old to have it. */
const struct opendat_extension *registry_handle_extension(DAT_HANDLE handle,
							  const DAT_PROVIDER *provider);

/* The provider table of a handle. NULL: the handle is invalid. */
const DAT_PROVIDER *registry_handle_provider(DAT_HANDLE handle);

#endif
