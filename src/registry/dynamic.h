// SPDX-License-Identifier: BSD-2-Clause
/*
 * The dynamic registry: the adapters that dat_registry_add_provider has registered in this process.
 * The key of a registration is its name, version and thread safety together (REG-ADD-04).
 */
#ifndef REGISTRY_DYNAMIC_H
#define REGISTRY_DYNAMIC_H

#include "handle.h"

#include <stdbool.h>

/* Guarded by the registry's lock. Freed when it leaves the list, never while it has users. */
struct registry_registration {
	DAT_PROVIDER_INFO key;
	const DAT_PROVIDER *provider;
	unsigned int users; /* instances that are open or being opened */
	struct registry_origin origin;
	bool has_no_extensions; /* as a foreign provider says of an instance (D2-REG-10) */
	bool is_retiring;	/* dat_provider_fini is about to run: refuses new users */
	struct registry_registration *next;
};

struct registry_registration *registry_dynamic_first_locked(void);

struct registry_registration *registry_dynamic_find_locked(const DAT_PROVIDER_INFO *key);

/* Removes the registration from the list and frees it. It has no users. */
void registry_dynamic_remove_locked(struct registry_registration *registration);

/* For a forked child, in which no instance is open. The registry's lock is held. */
void registry_dynamic_forget_users(void);

bool registry_key_is_equal(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b);

#endif
