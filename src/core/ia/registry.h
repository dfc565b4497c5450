// SPDX-License-Identifier: BSD-2-Clause
/* The registry that called dat_provider_init or dat_provider_fini. */
#ifndef CORE_REGISTRY_H
#define CORE_REGISTRY_H

#include <dat/udat.h>
#include <dat/dat_registry.h>

struct core_registry {
	/* each is NULL if there is no registry of that generation */
	__typeof__(&dat_registry_add_provider) add;
	__typeof__(&dat_registry_remove_provider) remove;
	/* tells the consumer's handle of an instance, in generations after DAT 1.2 */
	DAT_RETURN (*ia_handle)(unsigned long handle, DAT_IA_HANDLE *consumer_out);
};

/*
 * The registry that is linked into the program together with the provider. Set before any thread of
 * the program runs. A provider library has none, and needs neither libdat.so.1 nor libdat2.so.2,
 * because a machine may have one of them only (D2-REG-05).
 */
extern struct core_registry core_registry_linked;

/*
 * A process may have a registry of each generation, and each exports the same two names; so the
 * registry is that of the library that the call came from (D2-REG-04). If the program itself calls,
 * it is the one that the loader finds for the generation.
 */
void core_registry_find(const void *caller, DAT_UINT32 major, struct core_registry *registry_out);

#endif
