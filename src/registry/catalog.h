// SPDX-License-Identifier: BSD-2-Clause
/*
 * The static registry: the entries of dat.conf, read once per process (CONF-39), and the built-in
 * adapters beside them. Entries live as long as the process.
 */
#ifndef REGISTRY_CATALOG_H
#define REGISTRY_CATALOG_H

#include "api.h"

#include <stdbool.h>

/* One library that may serve an entry; constant once listed. */
struct registry_library {
	char *path;
	char *instance_data;
	struct registry_library *next; /* tried after this one (CONF-31) */
};

struct registry_entry {
	/* Constant once listed. */
	DAT_PROVIDER_INFO info; /* also the key of the registration that the entry leads to */
	bool is_builtin;	/* serves either thread safety (CONF-42) */
	struct registry_library *libraries;
	struct registry_entry *next;

	/* Guarded by the serializer. */
	void *handle;			       /* of the library loaded, or NULL */
	const void *base;		       /* where that lies, asked once */
	const struct registry_library *loaded; /* the library behind the handle */
	DAT_PROVIDER_FINI_FUNC fini;
	bool is_initialised; /* dat_provider_init ran, dat_provider_fini did not */
};

/* Read the file if that has not been done. Anything but success: memory is short. */
DAT_RETURN registry_catalog_load(void);

/* The entries of the file, in its order; other major versions too. After registry_catalog_load. */
struct registry_entry *registry_catalog_first(void);

/* The built-in entry of that name, unless the file has its own or replaces them all. NULL: none. */
struct registry_entry *registry_catalog_builtin_get(const char *name);

/* Whether an entry may be listed and opened, and does not merely make its name known (CONF-21). */
bool registry_entry_is_usable(const struct registry_entry *entry);

#endif
