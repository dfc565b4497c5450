// SPDX-License-Identifier: BSD-2-Clause
/*
 * The check that every handle passes before it is followed (GEN-14 to GEN-17, GEN-33). It runs on
 * the data path, so it takes no lock and costs a few comparisons: a handle of ours is known by its
 * place in its library's arena. Calls of the data path compare inline with the usual arena and
 * leave the rest to a twin of theirs, so that they need no frame of their own. Only while a library
 * without an arena is registered, a foreign one, is anything else followed, since its handles
 * cannot be told from garbage.
 */
#ifndef REGISTRY_HANDLE_H
#define REGISTRY_HANDLE_H

#include "api.h"
#include "shared/opendat.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Values below this are no addresses; adapter handles of consumers are among them. */
#define REGISTRY_SMALL_INTEGERS 0x10000u

/* One arena per provider library of ours; there are two of them, and room for what tests load. */
#define REGISTRY_ARENAS_MAX 16

struct registry_handle_space {
	/* The usual arena, that of the first instance: written once, before its handle is given
	 * out, so that whoever has a handle may read it like a constant. cells: 0: none yet. */
	uintptr_t base;
	uintptr_t cells;
	/* Entries below arena_count are constant. Stored with release after the entry. */
	atomic_uint arena_count;
	const struct opendat_handle_arena *arenas[REGISTRY_ARENAS_MAX];
	/* Registrations by libraries without an arena. */
	atomic_uint foreign_count;
};

extern struct registry_handle_space registry_handle_space;

/* Where a provider's code is. */
struct registry_origin {
	const void *base; /* of its library in memory; NULL: not known */
	bool is_foreign;  /* the library has no arena */
};

/*
 * Make the handles of a provider's library known, for ever. Who lists a foreign provider counts it
 * in registry_handle_space.foreign_count. -ENOSPC: too many libraries. Takes the registry's lock.
 */
int registry_handle_learn(const DAT_PROVIDER *provider, struct registry_origin *origin_out);

/* A new reference on the library that a provider's code is in, or NULL if it is the program. */
void *registry_handle_library_get(const DAT_PROVIDER *provider);

/* As registry_origin.base, of a library that is open. */
const void *registry_handle_library_base(void *library);

static inline const DAT_PROVIDER *registry_handle_first_word(DAT_HANDLE handle)
{
	/* Relaxed: the provider checks the object under its own lock before it uses it. */
	return __atomic_load_n((const DAT_PROVIDER *const *)handle, __ATOMIC_RELAXED);
}

/* The table to dispatch through if the handle is of the usual arena; NULL: ask the next one. */
static inline const DAT_PROVIDER *registry_handle_provider_fast(DAT_HANDLE handle)
{
	uintptr_t offset = (uintptr_t)handle - registry_handle_space.base;
	unsigned int shift = OPENDAT_CELL_SHIFT;

	/* rotated: what lies below the arena, or inside a cell, becomes a huge number */
	offset = offset >> shift | offset << (8 * sizeof(offset) - shift);
	return offset < registry_handle_space.cells ? registry_handle_first_word(handle) : NULL;
}

/* Makes the arena of that handle the usual one, if there is none yet. With the registry's lock. */
void registry_handle_settle_locked(DAT_HANDLE handle);

/* What a provider of ours adds to its table; NULL: it is none of ours, or too old. */
const struct opendat_extension *registry_handle_extension(DAT_HANDLE handle,
							  const DAT_PROVIDER *provider);

/* The table to dispatch through, or NULL: refuse the handle. */
const DAT_PROVIDER *registry_handle_provider(DAT_HANDLE handle);

#endif
