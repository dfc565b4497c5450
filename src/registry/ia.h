// SPDX-License-Identifier: BSD-2-Clause
/*
 * Open interface adapters. Consumers know an instance by a small integer, the provider by its own
 * pointer; this table translates both ways. Numbers count upward and are used again only after all
 * others had their turn (GEN-16).
 */
#ifndef REGISTRY_IA_H
#define REGISTRY_IA_H

#include "handle.h"

#include <stdatomic.h>

/* What a consumer's number stands for; written under the registry's lock. */
struct registry_ia_slot {
	DAT_IA_HANDLE _Atomic handle;	      /* the provider's; NULL: no such instance */
	const DAT_PROVIDER *_Atomic provider; /* set before the handle, never cleared */
};

extern struct registry_ia_slot registry_ia_slots[REGISTRY_SMALL_INTEGERS];

/* The provider's handle of a consumer's instance and its table, or NULL: refuse the handle. */
static inline DAT_IA_HANDLE registry_ia_handle(DAT_IA_HANDLE ia_handle,
					       const DAT_PROVIDER **provider_out)
{
	uintptr_t number = (uintptr_t)ia_handle;
	DAT_IA_HANDLE handle;

	if (number >= REGISTRY_SMALL_INTEGERS)
		return DAT_HANDLE_NULL;
	/* Pairs with the release in slot_open; else the table of an earlier instance is read. */
	handle = atomic_load_explicit(&registry_ia_slots[number].handle, memory_order_acquire);
	*provider_out =
		atomic_load_explicit(&registry_ia_slots[number].provider, memory_order_relaxed);
	return handle;
}

/* As above for a handle of any type (dat_get_handle_type and the context calls). */
static inline DAT_HANDLE registry_any_handle(DAT_HANDLE handle, const DAT_PROVIDER **provider_out)
{
	if ((uintptr_t)handle < REGISTRY_SMALL_INTEGERS)
		return registry_ia_handle(handle, provider_out);
	*provider_out = registry_handle_provider(handle);
	return *provider_out ? handle : DAT_HANDLE_NULL;
}

/*
 * The consumer's handle for a provider's, or DAT_HANDLE_NULL if it names no open instance. Every
 * ia_handle that a query fills in passes through here (GEN-24).
 */
DAT_IA_HANDLE registry_ia_consumer_handle(DAT_HANDLE provider_handle);

/* In a forked child: no instance of the parent is open. */
void registry_ia_forget_all(void);

#endif
