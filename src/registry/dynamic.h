// SPDX-License-Identifier: BSD-2-Clause
/*
 * The dynamic registry: the adapters that provider libraries have registered in this process, by
 * dat_registry_add_provider. A registration is known by name, version and thread safety together
 * (REG-ADD-04), its key. All functions but registry_dynamic_forget_users need the registry's lock.
 */
#ifndef REGISTRY_DYNAMIC_H
#define REGISTRY_DYNAMIC_H

#include "handle.h"

#include <stdbool.h>

/* Guarded by the registry's lock. Lives while it is listed; it is not unlisted while in use. */
struct registry_registration {
	DAT_PROVIDER_INFO key;
	const DAT_PROVIDER *provider;
	unsigned int users; /* instances open or being opened */
	struct registry_origin origin;
	bool is_retiring; /* dat_provider_fini is about to run: no new users */
	struct registry_registration *next;
};

/* The first of the list. */
struct registry_registration *registry_dynamic_first_locked(void);

struct registry_registration *registry_dynamic_find_locked(const DAT_PROVIDER_INFO *key);

/* Take it off the list and free it. It has no users. */
void registry_dynamic_remove_locked(struct registry_registration *registration);

/* In a forked child, where no instance is open. */
void registry_dynamic_forget_users(void);

bool registry_key_is_equal(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b);

#endif
