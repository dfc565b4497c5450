// SPDX-License-Identifier: BSD-2-Clause
/*
 * The contract between libdat.so.1 and the provider libraries of OpenDAT, beyond the public
 * headers. A process may load libdat and a provider of different versions, so a layout here never
 * changes. Only src/registry, src/core and their tests include this header.
 */
#ifndef SHARED_OPENDAT_H
#define SHARED_OPENDAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dat/opendat.h>

/* ---- handles ---- */

#define OPENDAT_HANDLE_ARENA_MAGIC 0x0da7a4e4u
#define OPENDAT_HANDLE_ARENA_SYMBOL "opendat_handle_arena"

/*
 * The log2 of the size of a cell: 128 bytes, two cache lines, or 256 where a mutex is larger than
 * on x86-64 (48 bytes on aarch64).
 */
#ifdef __x86_64__
#define OPENDAT_CELL_SHIFT 7u
#else
#define OPENDAT_CELL_SHIFT 8u
#endif

/*
 * The range of addresses that holds every handle a provider library issues. Each such library
 * exports one variable of this type, so that libdat can check a handle by arithmetic before it
 * follows it. base and size are 0 until the library is first used; base is stored after size, with
 * release, and is constant from then on. size grows, and is stored with release. Each cell in the
 * range can be read at any time: its first word is the provider table of the object in it, or NULL.
 */
struct opendat_handle_arena {
	uint32_t magic;
	uint32_t cell_size; /* bytes, a power of two */
	uintptr_t base;
	size_t size; /* bytes */
};

_Static_assert(sizeof(struct opendat_handle_arena) == 8 + 2 * sizeof(void *), "shared layout");

/* ---- provider table ---- */

#define OPENDAT_EXTENSION_MAGIC 0x0da7e87eu   /* of a table of DAT 1.2 */
#define OPENDAT_EXTENSION_2_MAGIC 0x0da7e872u /* of a table of DAT 2.0 */

/* DAT_PROVIDER.extension of our providers points to one of these. Types that differ between the
 * generations are those of the table's. */
struct opendat_extension {
	uint32_t magic;
	uint32_t size; /* of this structure: later versions add members at the end */
	DAT_RETURN (*cno_fd_func)(DAT_CNO_HANDLE cno_handle, int *fd);
	/* Gives the provider the consumer's handle of an instance, for asynchronous events. */
	void (*ia_name_func)(DAT_IA_HANDLE ia_handle, DAT_IA_HANDLE consumer_handle);
	/* Not in the first version, whose size is OPENDAT_EXTENSION_FIRST. */
	DAT_RETURN (*peer_func)(DAT_HANDLE handle, DAT_OPENDAT_PEER *peer);
	DAT_RETURN (*ep_attr_default_func)(DAT_IA_HANDLE ia_handle, DAT_EP_ATTR *ep_attr);
	/* Operations that DAT 2.0 has calls for; NULL in its table. */
	__typeof__(dat_opendat_ep_take_immediate) *take_immediate_func;
	__typeof__(dat_opendat_ep_post_rdma_write_immed) *write_immediate_func;
	__typeof__(dat_opendat_ep_post_fetch_and_add) *fetch_add_func;
	__typeof__(dat_opendat_ep_post_cmp_and_swap) *compare_swap_func;
	__typeof__(dat_opendat_ep_post_send_invalidate) *send_invalidate_func;
	__typeof__(dat_opendat_dto_data) *dto_data_func;
};

#define OPENDAT_EXTENSION_FIRST offsetof(struct opendat_extension, peer_func)
/* Is the member in the version that the provider has? */
#define OPENDAT_EXTENSION_HAS(extension, member)                                                   \
	((extension)->size >=                                                                      \
	 offsetof(struct opendat_extension, member) + sizeof((extension)->member))

/* ---- providers that are linked into the program ---- */

/* A static provider library has one of these for each generation, and a constructor that gives them
 * to the registry, which takes that of its own. */
struct opendat_linked {
	const char *library; /* file name of the shared library that it replaces */
	void (*init)(const DAT_PROVIDER_INFO *info, const char *instance_data);
	void (*fini)(const DAT_PROVIDER_INFO *info);
	const struct opendat_handle_arena *arena;
	const struct opendat_extension *extension; /* its provider tables point to it */
	const struct opendat_linked *next;	   /* libdat's */
};

/* Only in a static libdat. Called by constructors, so before any thread of the program runs. */
void opendat_link_provider(struct opendat_linked *linked);

/* ---- events ---- */

/* Asynchronous errors have the event numbers of this range; no other event does. */
#define OPENDAT_ASYNC_EVENT_FIRST 0x8000u
#define OPENDAT_ASYNC_EVENT_END 0x10000u

static inline bool opendat_event_is_async(DAT_EVENT_NUMBER number)
{
	return number >= OPENDAT_ASYNC_EVENT_FIRST && number < OPENDAT_ASYNC_EVENT_END;
}

#endif
