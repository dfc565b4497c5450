// SPDX-License-Identifier: BSD-2-Clause
/*
 * Builds the static registry from dat.conf and lists it. The serializer is held while the entries
 * of the file are read. One store publishes the finished list, which is constant from then on and
 * needs no lock. A built-in entry is added when a consumer first opens it.
 */
#include "catalog.h"
#include "builtin.h"
#include "conf.h"
#include "dynamic.h"
#include "log.h"
#include "refuse.h"
#include "sync.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct catalog {
	struct registry_entry *first;
	struct registry_entry **end; /* the next entry is linked here */
	int usable_count;
	bool has_builtins; /* the built-in adapters exist: DAT_OVERRIDE is not set (CONF-44) */
	bool is_missing;   /* DAT_OVERRIDE names a file that cannot be read (CONF-04) */
};

/* NULL until the file has been read, then constant. */
static const struct catalog *_Atomic catalog;

/* Guarded by the registry's lock. Entries are only added, at the front. */
static struct registry_entry *builtins;

static struct catalog *catalog_build(void);
static const struct catalog *catalog_get(void);
static struct registry_entry *entry_make(const char *name, const char *library,
					 const char *instance_data);

DAT_RETURN registry_catalog_load(void)
{
	struct catalog *built;
	DAT_RETURN ret = DAT_SUCCESS;

	if (catalog_get())
		return DAT_SUCCESS;
	registry_serializer_enter();
	if (!catalog_get()) {
		built = catalog_build();
		if (!built)
			ret = registry_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
		/* Pairs with the acquire in catalog_get. */
		atomic_store_explicit(&catalog, built, memory_order_release);
	}
	registry_serializer_exit();
	return ret;
}

struct registry_entry *registry_catalog_first(void)
{
	return catalog_get()->first;
}

bool registry_entry_is_usable(const struct registry_entry *entry)
{
	return entry->info.dapl_version_major == DAT_VERSION_MAJOR;
}

static const struct catalog *catalog_get(void)
{
	/* Pairs with the release in registry_catalog_load; else an unfinished list is read. */
	return atomic_load_explicit(&catalog, memory_order_acquire);
}

/* ---- the list that consumers see ---- */

static int entries_copy(DAT_PROVIDER_INFO *list[], int max)
{
	const struct registry_entry *entry;
	int count = 0;

	for (entry = registry_catalog_first(); entry; entry = entry->next) {
		if (!registry_entry_is_usable(entry))
			continue;
		if (count < max)
			*list[count] = entry->info;
		count++;
	}
	return count;
}

static void builtin_info_set(DAT_PROVIDER_INFO *info, const char *name)
{
	memset(info, 0, sizeof(*info));
	memcpy(info->ia_name, name, strlen(name) + 1);
	info->dapl_version_major = DAT_VERSION_MAJOR;
	info->dapl_version_minor = DAT_VERSION_MINOR;
	info->is_thread_safe = DAT_TRUE;
}

/* Is one of the first `count` pointers NULL? */
static bool has_null_slot(DAT_PROVIDER_INFO *const list[], int count)
{
	while (count-- > 0)
		if (!list[count])
			return true;
	return false;
}

DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT *entries_returned,
				       DAT_PROVIDER_INFO **dat_provider_list)
{
	struct registry_builtin *shown = NULL;
	int count, filled, i;
	DAT_RETURN ret;

	if (!entries_returned)
		return registry_bad_arg("dat_registry_list_providers", 2, "entries_returned",
					"NULL");
	*entries_returned = 0;
	ret = registry_catalog_load();
	if (ret != DAT_SUCCESS)
		return ret;
	if (catalog_get()->is_missing)
		return registry_error(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	count = catalog_get()->usable_count;
	if (count == 0 && catalog_get()->has_builtins) {
		shown = calloc(REGISTRY_BUILTIN_LISTED_MAX, sizeof(*shown));
		if (!shown)
			return registry_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
		count = registry_builtin_list(shown);
	}
	*entries_returned = count;
	filled = max_to_return < count ? max_to_return : count;
	if (max_to_return <= 0)
		ret = registry_bad_arg("dat_registry_list_providers", 1, "max_to_return",
				       "%d is not positive", (int)max_to_return);
	else if (!dat_provider_list || has_null_slot(dat_provider_list, filled))
		ret = registry_bad_arg("dat_registry_list_providers", 3, "dat_provider_list",
				       "NULL, or one of its first %d pointers is", filled);
	else if (shown)
		for (i = 0; i < filled; i++)
			builtin_info_set(dat_provider_list[i], shown[i].name);
	else
		entries_copy(dat_provider_list, filled);
	if (ret == DAT_SUCCESS && !REGISTRY_LIST_MUST_FIT)
		*entries_returned = filled;
	else if (ret == DAT_SUCCESS && filled < count)
		ret = registry_bad_arg("dat_registry_list_providers", 1, "max_to_return",
				       "%d is less than the %d adapters", (int)max_to_return,
				       count);
	free(shown);
	return ret;
}

/* ---- the entries of the file ---- */

void registry_library_free(struct registry_library *library)
{
	if (!library)
		return;
	free(library->path);
	free(library->instance_data);
	free(library);
}

struct registry_library *registry_library_make(const char *path, const char *instance_data)
{
	struct registry_library *library = calloc(1, sizeof(*library));

	if (!library)
		return NULL;
	library->path = strdup(path);
	library->instance_data = strdup(instance_data);
	if (library->path && library->instance_data)
		return library;
	registry_library_free(library);
	return NULL;
}

static void entry_free(struct registry_entry *entry)
{
	struct registry_library *library;

	while ((library = entry->libraries) != NULL) {
		entry->libraries = library->next;
		registry_library_free(library);
	}
	free(entry);
}

static struct registry_entry *entry_make(const char *name, const char *library,
					 const char *instance_data)
{
	struct registry_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->libraries = registry_library_make(library, instance_data);
	if (!entry->libraries) {
		entry_free(entry);
		return NULL;
	}
	memcpy(entry->info.ia_name, name, strlen(name) + 1);
	return entry;
}

/* Finds the entry that differs in its library only: both lines make one entry (CONF-31). */
static struct registry_entry *twin_find(const struct catalog *built,
					const struct registry_entry *entry)
{
	struct registry_entry *other;

	for (other = built->first; other; other = other->next)
		if (registry_key_is_equal(&other->info, &entry->info))
			return other;
	return NULL;
}

static int conf_entry_take(void *context, const struct registry_conf_entry *line)
{
	struct registry_entry *entry, *twin;
	struct catalog *built = context;
	struct registry_library **link;

	if (!line->is_default)
		return 0;
	entry = entry_make(line->name, line->library, line->instance_data);
	if (!entry)
		return -ENOMEM;
	entry->info.dapl_version_major = line->version_major;
	entry->info.dapl_version_minor = line->version_minor;
	entry->info.is_thread_safe = line->is_thread_safe ? DAT_TRUE : DAT_FALSE;
	twin = twin_find(built, entry);
	if (twin) {
		for (link = &twin->libraries; *link; link = &(*link)->next)
			;
		*link = entry->libraries;
		entry->libraries = NULL;
		entry_free(entry);
		return 0;
	}
	*built->end = entry;
	built->end = &entry->next;
	built->usable_count += registry_entry_is_usable(entry);
	return 0;
}

struct conf_report {
	struct catalog *catalog;
	const char *path;
};

static int conf_report_entry(void *context, const struct registry_conf_entry *line)
{
	return conf_entry_take(((struct conf_report *)context)->catalog, line);
}

static void conf_report_skipped(void *context, unsigned int line, const char *reason)
{
	registry_log(REGISTRY_LOG_CONF | REGISTRY_LOG_WARNING, "%s:%u: line skipped: %s",
		     ((struct conf_report *)context)->path, line, reason);
}

static void catalog_free(struct catalog *built)
{
	struct registry_entry *entry;

	while ((entry = built->first) != NULL) {
		built->first = entry->next;
		entry_free(entry);
	}
	free(built);
}

static struct catalog *catalog_build(void)
{
	static const struct registry_conf_ops ops = {
		.entry = conf_report_entry,
		.skipped = conf_report_skipped,
	};
	struct catalog *built = calloc(1, sizeof(*built));
	struct registry_conf_file file;
	int ret;

	if (!built)
		return NULL;
	built->end = &built->first;
	ret = registry_conf_load(&file);
	built->has_builtins = !file.is_override;
	if (ret == 0) {
		struct conf_report report = {.catalog = built, .path = file.path};

		registry_log(REGISTRY_LOG_CONF, "registry file: %s",
			     file.path ? file.path : "none");
		ret = registry_conf_parse(file.text, file.len, &ops, &report);
	} else if (!registry_conf_is_shortage(ret)) {
		registry_log(REGISTRY_LOG_CONF | REGISTRY_LOG_ERROR, "%s: cannot be read: %s",
			     file.path, ret == -ESPIPE ? "not a regular file" : strerror(-ret));
		built->is_missing = true;
		ret = 0;
	}
	registry_conf_unload(&file);
	if (ret != 0) {
		catalog_free(built);
		return NULL;
	}
	return built;
}

/* ---- built-in entries ---- */

static bool file_defines(const char *name)
{
	const struct registry_entry *entry;

	for (entry = registry_catalog_first(); entry; entry = entry->next)
		if (registry_entry_is_usable(entry) && strcmp(entry->info.ia_name, name) == 0)
			return true;
	return false;
}

static struct registry_entry *builtin_find_locked(const char *name)
{
	struct registry_entry *entry;

	for (entry = builtins; entry; entry = entry->next)
		if (strcmp(entry->info.ia_name, name) == 0)
			return entry;
	return NULL;
}

struct registry_entry *registry_catalog_builtin_get(const char *name)
{
	struct registry_entry *entry, *made = NULL;
	struct registry_builtin *builtin;

	/* DAT_OVERRIDE takes away adapters, and the provider that checks is none of its own */
	if ((!catalog_get()->has_builtins && !registry_builtin_is_check(name)) ||
	    file_defines(name))
		return NULL;
	registry_lock();
	entry = builtin_find_locked(name);
	registry_unlock();
	if (entry)
		return entry;
	builtin = malloc(sizeof(*builtin));
	if (builtin && registry_builtin_find(name, builtin))
		made = entry_make(name, builtin->library, builtin->data);
	free(builtin);
	if (!made)
		return NULL;
	builtin_info_set(&made->info, name);
	made->is_builtin = true;
	registry_lock();
	entry = builtin_find_locked(name);
	if (!entry) {
		entry = made;
		made->next = builtins;
		builtins = made;
		made = NULL;
	}
	registry_unlock();
	if (made)
		entry_free(made);
	return entry;
}

void registry_catalog_explain(const char *name)
{
	if (catalog_get()->has_builtins)
		registry_builtin_explain(name);
	else if (!catalog_get()->is_missing)
		registry_log(
			REGISTRY_LOG_ERROR,
			"%s: the file that DAT_OVERRIDE names has no such line, and there are no "
			"built-in adapters then",
			name);
}
