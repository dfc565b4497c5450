// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds a registration for the name of an adapter: chooses the entry that serves the request
 * (IA-OPEN-24 to -28), loads its provider library for the first instance, and unloads it after the
 * last one.
 */
#ifndef REGISTRY_LOADER_H
#define REGISTRY_LOADER_H

#include "catalog.h"
#include "dynamic.h"

/* The arguments of dat_ia_openv. */
struct registry_request {
	const char *name;
	DAT_UINT32 version_major;
	DAT_UINT32 version_minor;
	DAT_BOOLEAN is_thread_safe;
};

/* A registration that an instance uses, and its origin. */
struct registry_use {
	struct registry_registration *registration;
	struct registry_entry *entry; /* NULL: the process itself registered the name */
	void *library; /* keeps the provider's code loaded; NULL: it is in the program */
};

/* The name of the registration is another one if DAT_OPENDAT_DEFAULT serves the request (CONF-46). */
DAT_RETURN registry_use_get(const struct registry_request *request, struct registry_use *use_out);

/* Ends the use. After the last one dat_provider_fini runs and the library is unloaded. */
void registry_use_put(struct registry_use *use);

#endif
