// SPDX-License-Identifier: BSD-2-Clause
/*
 * The static registry: the entries of dat.conf, which a process reads once (CONF-39), and the
 * built-in adapters. Entries are never freed.
 */
#ifndef REGISTRY_CATALOG_H
#define REGISTRY_CATALOG_H

#include "api.h"

#include <stdbool.h>

struct opendat_linked;

/* A library that can serve an entry. Constant once listed. */
struct registry_library {
	char *path;
	char *instance_data;
	struct registry_library *next; /* tried after this one (CONF-31) */
};

struct registry_entry {
	/* Constant once listed. */
	DAT_PROVIDER_INFO info; /* also the key of the entry's registration */
	bool is_builtin;	/* serves both thread safeties (CONF-42) */
	struct registry_library *libraries;
	struct registry_entry *next;

	/* Guarded by the serializer. */
	void *handle;			       /* of the loaded library, or NULL */
	const struct opendat_linked *linked;   /* the provider in the program, or NULL */
	const void *base;		       /* as registry_origin.base */
	const struct registry_library *loaded; /* the library behind the handle */
	DAT_PROVIDER_INIT_FUNC init;	       /* NULL: the library has none */
	DAT_PROVIDER_FINI_FUNC fini;
	bool is_initialised; /* dat_provider_init has run, dat_provider_fini has not */
	struct registry_library *stand_in; /* the last one for a library that is missing, or NULL */
};

/* Reads the file unless that has been done. Fails only when memory is exhausted. */
DAT_RETURN registry_catalog_load(void);

/*
 * The entries of the file in order, those of other major versions included. Call
 * registry_catalog_load first.
 */
struct registry_entry *registry_catalog_first(void);

/*
 * Returns the built-in entry of that name. Returns NULL if there is none, if the file defines the
 * name, or if DAT_OVERRIDE is set.
 */
struct registry_entry *registry_catalog_builtin_get(const char *name);

/* Logs why there is no built-in entry of that name. */
void registry_catalog_explain(const char *name);

/* Allocates a library that no entry lists yet, or returns NULL. */
struct registry_library *registry_library_make(const char *path, const char *instance_data);
void registry_library_free(struct registry_library *library);

/* Can the entry be listed and opened? Others only make their name known (CONF-21). */
bool registry_entry_is_usable(const struct registry_entry *entry);

#endif
