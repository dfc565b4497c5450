// SPDX-License-Identifier: BSD-2-Clause
/*
 * The range of addresses that holds every handle a provider library of OpenDAT issues. Such a
 * library exports one variable of this type, so that the registry can tell its handles from
 * garbage by arithmetic. The layout is shared with the provider core and never changes.
 */
#ifndef REGISTRY_ARENA_H
#define REGISTRY_ARENA_H

#include <stddef.h>
#include <stdint.h>

#define OPENDAT_HANDLE_ARENA_MAGIC 0x0da7a4e4u
#define OPENDAT_HANDLE_ARENA_SYMBOL "opendat_handle_arena"

/*
 * base and size are 0 until the library is first used, and constant from then on; size is stored
 * before base. Each cell in the range can be read at any time: its first word is the provider
 * table of the object in it, or NULL.
 */
struct opendat_handle_arena {
	uint32_t magic;
	uint32_t cell_size; /* bytes, a power of two */
	uintptr_t base;
	size_t size; /* bytes */
};

_Static_assert(sizeof(struct opendat_handle_arena) == 24, "shared layout");

#endif
