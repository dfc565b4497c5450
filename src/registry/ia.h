// SPDX-License-Identifier: BSD-2-Clause
/*
 * Open instances of adapters. The consumer's handle of an instance is a small integer, the
 * provider's is a pointer. This part translates between them. A number is reused only after all
 * others have been used (GEN-16).
 */
#ifndef REGISTRY_IA_H
#define REGISTRY_IA_H

#include "handle.h"

#include <stdatomic.h>

/* The instance with that number. Written with the registry's lock held. */
struct registry_ia_slot {
	DAT_IA_HANDLE _Atomic handle;	      /* the provider's; NULL: none is open */
	const DAT_PROVIDER *_Atomic provider; /* set before the handle; never cleared */
};

extern struct registry_ia_slot registry_ia_slots[REGISTRY_SMALL_INTEGERS];

/* Translates a consumer's handle to the provider's and its table. NULL: the handle is invalid. */
static inline DAT_IA_HANDLE registry_ia_handle(DAT_IA_HANDLE ia_handle,
					       const DAT_PROVIDER **provider_out)
{
	uintptr_t number = (uintptr_t)ia_handle;
	DAT_IA_HANDLE handle;

	if (number >= REGISTRY_SMALL_INTEGERS)
		return DAT_HANDLE_NULL;
	/* Pairs with the release in slot_open_locked; else an earlier instance's table is read. */
	handle = atomic_load_explicit(&registry_ia_slots[number].handle, memory_order_acquire);
	*provider_out =
		atomic_load_explicit(&registry_ia_slots[number].provider, memory_order_relaxed);
	return handle;
}

/* As registry_ia_handle, for a handle of any type. */
static inline DAT_HANDLE registry_any_handle(DAT_HANDLE handle, const DAT_PROVIDER **provider_out)
{
	if ((uintptr_t)handle < REGISTRY_SMALL_INTEGERS)
		return registry_ia_handle(handle, provider_out);
	*provider_out = registry_handle_provider(handle);
	return *provider_out ? handle : DAT_HANDLE_NULL;
}

/*
 * Translates a provider's handle to the consumer's. Returns DAT_HANDLE_NULL if no open instance has
 * it. Each call that returns an ia_handle uses this (GEN-24).
 */
DAT_IA_HANDLE registry_ia_consumer_handle(DAT_HANDLE provider_handle);

/* For a forked child, in which no instance is open. The registry's lock is held. */
void registry_ia_forget_all(void);

#endif
