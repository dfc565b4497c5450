// SPDX-License-Identifier: BSD-2-Clause
/*
 * From the name of an adapter to a registration that may be used: chooses the entry that serves a
 * request (IA-OPEN-24 to -28), loads its provider library when it is first needed, and lets it go
 * after the last instance.
 */
#ifndef REGISTRY_LOADER_H
#define REGISTRY_LOADER_H

#include "catalog.h"
#include "dynamic.h"

/* What a consumer asks dat_ia_openv for. */
struct registry_request {
	const char *name;
	DAT_UINT32 version_major;
	DAT_UINT32 version_minor;
	DAT_BOOLEAN is_thread_safe;
};

/* A registration in use by one instance, and what it came from. */
struct registry_use {
	struct registry_registration *registration;
	struct registry_entry *entry; /* NULL: only the process itself registered the name */
	void *library; /* keeps the provider's code in place; NULL: it is in the program */
};

DAT_RETURN registry_use_get(const struct registry_request *request, struct registry_use *use_out);

/* The instance is closed. After the last one dat_provider_fini runs and the library goes. */
void registry_use_put(struct registry_use *use);

#endif
