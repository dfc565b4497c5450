// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loads and unloads provider libraries. Every call into a library is made with the serializer held,
 * so that concurrent opens call dat_provider_init once, and never while dat_provider_fini runs. The
 * registry's lock is held only while a list is read or changed.
 */
#include "loader.h"
#include "builtin.h"
#include "conf.h"
#include "handle.h"
#include "linked.h"
#include "log.h"
#include "other.h"
#include "sync.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much of a request a candidate matches. The best match decides the error code. */
enum match {
	MATCH_NONE,
	MATCH_NAME,
	MATCH_MAJOR,
	MATCH_THREAD_SAFETY,
	MATCH_ALL,
};

struct choice {
	enum match match; /* the best so far */
	DAT_PROVIDER_INFO key;
	struct registry_entry *entry; /* with that key, or NULL */
};

static struct registry_registration *user_add(const DAT_PROVIDER_INFO *key);
static int entry_load(struct registry_entry *entry);
static void entry_retire(struct registry_entry *entry);

/* ---- choice of an entry ---- */

static void candidate_compare(struct choice *choice, const struct registry_request *request,
			      const DAT_PROVIDER_INFO *info, struct registry_entry *entry)
{
	enum match match = MATCH_NAME;

	if (strcmp(info->ia_name, request->name) != 0)
		return;
	if (info->dapl_version_major == request->version_major &&
	    (!entry || registry_entry_is_usable(entry)))
		match = MATCH_MAJOR;
	if (match == MATCH_MAJOR &&
	    (!info->is_thread_safe == !request->is_thread_safe || (entry && entry->is_builtin)))
		match = MATCH_THREAD_SAFETY;
	if (match == MATCH_THREAD_SAFETY && info->dapl_version_minor >= request->version_minor)
		match = MATCH_ALL;
	/* The smallest sufficient minor version, so an exact match if there is one (IA-OPEN-28). */
	if (match > choice->match ||
	    (match == MATCH_ALL && info->dapl_version_minor < choice->key.dapl_version_minor)) {
		choice->match = match;
		choice->key = *info;
		choice->entry = entry;
	}
}

static DAT_RETURN choice_result(const struct registry_request *request, enum match match)
{
	static const char *const causes[] = {
		[MATCH_NONE] = "no line of dat.conf, registration or built-in has this name",
		[MATCH_NAME] = "dat.conf has it for other major versions of the API only",
		[MATCH_MAJOR] = "dat.conf has it for the other thread safety only",
		[MATCH_THREAD_SAFETY] =
			"dat.conf has it for smaller minor versions of the API only",
	};

	if (match != MATCH_ALL)
		registry_log(REGISTRY_LOG_ERROR, "%s: %s", request->name, causes[match]);
	switch (match) {
	case MATCH_NAME:
		return registry_error(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
	case MATCH_MAJOR:
		return registry_error(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND);
	case MATCH_THREAD_SAFETY:
		return registry_error(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND);
	case MATCH_ALL:
		return DAT_SUCCESS;
	case MATCH_NONE:
	default:
		return registry_error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	}
}

/* The error for an adapter that was not found. After a lack of memory or descriptors it reports
 * that lack, because the adapter may exist. */
static DAT_RETURN not_found(int error)
{
	if (error == ENOMEM || error == ENOBUFS)
		return registry_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (error == EMFILE || error == ENFILE)
		return registry_error(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE);
	return registry_error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* Entries of the file come first. Otherwise a registration would hide the entry whose library made
 * it. A built-in entry comes last: it serves requests that nothing else serves. */
static DAT_RETURN entry_choose(const struct registry_request *request, struct choice *choice_out)
{
	struct choice choice = {.match = MATCH_NONE};
	const struct registry_registration *registration;
	struct registry_entry *entry;

	for (entry = registry_catalog_first(); entry; entry = entry->next)
		candidate_compare(&choice, request, &entry->info, entry);
	registry_lock();
	registration = registry_dynamic_first_locked();
	for (; registration; registration = registration->next)
		candidate_compare(&choice, request, &registration->key, NULL);
	registry_unlock();
	errno = 0;
	entry = registry_catalog_builtin_get(request->name);
	if (!entry && choice.match == MATCH_NONE) {
		int error = errno;

		(void)choice_result(request, MATCH_NONE);
		registry_catalog_explain(request->name);
		return not_found(error);
	}
	if (entry)
		candidate_compare(&choice, request, &entry->info, entry);
	if (entry && !choice.entry && registry_key_is_equal(&choice.key, &entry->info))
		choice.entry = entry;
	*choice_out = choice;
	return choice_result(request, choice.match);
}

/* ---- use ---- */

static DAT_RETURN use_find(const struct registry_request *request, struct registry_use *use_out)
{
	struct choice choice = {.match = MATCH_NONE};
	struct registry_use use = {.entry = NULL};
	DAT_RETURN ret;
	int error = 0;

	ret = entry_choose(request, &choice);
	if (ret != DAT_SUCCESS)
		return ret;
	use.entry = choice.entry;
	use.registration = user_add(&choice.key);
	if (!use.registration && use.entry) {
		registry_serializer_enter();
		use.registration = user_add(&choice.key);
		if (!use.registration) {
			error = entry_load(use.entry);
			use.registration = user_add(&choice.key);
		}
		registry_serializer_exit();
	}
	if (!use.registration)
		return not_found(error);
	use.library = registry_handle_library_get(use.registration->provider);
	*use_out = use;
	return DAT_SUCCESS;
}

/* Does nothing define the name, for the version that we have? */
static bool is_undefined(DAT_RETURN ret)
{
	return DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND &&
	       (DAT_GET_SUBTYPE(ret) == DAT_NAME_NOT_REGISTERED ||
		DAT_GET_SUBTYPE(ret) == DAT_MAJOR_NOT_FOUND);
}

DAT_RETURN registry_use_get(const struct registry_request *request, struct registry_use *use_out)
{
	const char *fallback = secure_getenv("DAT_OPENDAT_DEFAULT");
	struct registry_request second = *request;
	DAT_RETURN ret;

	ret = registry_catalog_load();
	if (ret == DAT_SUCCESS)
		ret = use_find(request, use_out);
	if (!fallback || *fallback == '\0' || !is_undefined(ret))
		return ret;
	registry_log(REGISTRY_LOG_ERROR | REGISTRY_LOG_IA, "%s: opens %s, by DAT_OPENDAT_DEFAULT",
		     request->name, fallback);
	second.name = fallback;
	return use_find(&second, use_out);
}

void registry_use_put(struct registry_use *use)
{
	bool is_last;

	registry_lock();
	is_last = --use->registration->users == 0;
	registry_unlock();
	/* From here on the registration may be freed at any time. */
	if (is_last && use->entry) {
		registry_serializer_enter();
		entry_retire(use->entry);
		registry_serializer_exit();
	}
	if (use->library)
		dlclose(use->library);
}

/* Adds a user to the registration with that key. NULL: there is none, or it is retiring. */
static struct registry_registration *user_add(const DAT_PROVIDER_INFO *key)
{
	struct registry_registration *registration;

	registry_lock();
	registration = registry_dynamic_find_locked(key);
	if (registration && registration->is_retiring)
		registration = NULL;
	if (registration)
		registration->users++;
	registry_unlock();
	return registration;
}

/* ---- loading, with the serializer held ---- */

static bool is_registered(const DAT_PROVIDER_INFO *key)
{
	bool found;

	registry_lock();
	found = registry_dynamic_find_locked(key) != NULL;
	registry_unlock();
	return found;
}

/* Is the provider of the entry in memory? */
static bool is_loaded(const struct registry_entry *entry)
{
	return entry->handle || entry->linked;
}

/*
 * Loads the library, unless its provider is linked into the program. Returns 0 or an errno. The
 * member that makes the entry loaded is stored last, as another thread may fork meanwhile: the
 * child then finds the entry either unloaded or complete (GEN-35).
 */
static int library_open(struct registry_entry *entry, const struct registry_library *library)
{
	union {
		void *address;
		DAT_PROVIDER_INIT_FUNC init;
		DAT_PROVIDER_FINI_FUNC fini;
	} init, fini;
	const struct opendat_linked *linked = registry_linked_find(library->path);
	void *handle;

	entry->loaded = library;
	if (linked) {
		entry->base = linked;
		entry->init = linked->init;
		entry->fini = linked->fini;
		__atomic_store_n(&entry->linked, linked, __ATOMIC_RELEASE);
		return 0;
	}
	if (REGISTRY_PUBLISHES_FOREIGN)
		registry_other_publish_self();
	errno = 0;
	handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		int error = errno;

		registry_log(REGISTRY_LOG_LOAD | REGISTRY_LOG_ERROR, "%s: cannot load: %s",
			     entry->info.ia_name, dlerror());
		return error ? error : ENOENT;
	}
	if (REGISTRY_PUBLISHES_FOREIGN && !dlsym(handle, OPENDAT_HANDLE_ARENA_SYMBOL))
		registry_other_publish(library->path);
	entry->base = registry_handle_library_base(handle);
	init.address = dlsym(handle, DAT_PROVIDER_INIT_FUNC_STR);
	fini.address = dlsym(handle, DAT_PROVIDER_FINI_FUNC_STR);
	entry->init = init.address ? init.init : NULL;
	entry->fini = fini.address ? fini.fini : NULL;
	__atomic_store_n(&entry->handle, handle, __ATOMIC_RELEASE);
	return 0;
}

/* Runs dat_provider_init of the loaded library. A library without it may register itself. 0: the
 * adapter is registered. Otherwise the errno that the function left, because it returns nothing. */
static int entry_init(struct registry_entry *entry)
{
	int error = ENOENT;

	if (entry->init) {
		errno = 0;
		entry->init(&entry->info, entry->loaded->instance_data);
		if (errno)
			error = errno;
	} else
		registry_log(REGISTRY_LOG_LOAD | REGISTRY_LOG_ERROR, "%s: no %s in %s",
			     entry->info.ia_name, DAT_PROVIDER_INIT_FUNC_STR, entry->loaded->path);
	entry->is_initialised = is_registered(&entry->info);
	registry_log(entry->is_initialised ? REGISTRY_LOG_LOAD
					   : REGISTRY_LOG_LOAD | REGISTRY_LOG_ERROR,
		     "%s: %s %s", entry->info.ia_name, entry->loaded->path,
		     entry->is_initialised ? "initialised" : "did not register the adapter");
	return entry->is_initialised ? 0 : error;
}

/* Does another entry keep the library of the registration loaded? */
static bool is_kept_by_other_entry(const struct registry_registration *registration,
				   const struct registry_entry *entry)
{
	const struct registry_entry *other;

	for (other = registry_catalog_first(); other; other = other->next)
		if (other != entry && is_loaded(other) && other->is_initialised &&
		    registry_key_is_equal(&other->info, &registration->key))
			return true;
	return false;
}

/*
 * Would a registration point to unmapped memory if the entry's library were unloaded? A library may
 * register several names in one initialisation (REG-ADD-02).
 */
static bool library_is_needed(const struct registry_entry *entry)
{
	const struct registry_registration *registration;
	bool is_needed = false;

	registry_lock();
	registration = registry_dynamic_first_locked();
	for (; registration && !is_needed; registration = registration->next)
		is_needed = registration->origin.base == entry->base &&
			    !is_kept_by_other_entry(registration, entry);
	registry_unlock();
	return is_needed;
}

/* In the opposite order: a child must not find the handle of a library that is gone. */
static void entry_unload(struct registry_entry *entry)
{
	void *handle = entry->handle;

	if (library_is_needed(entry))
		return;
	entry->linked = NULL;
	entry->handle = NULL;
	if (handle) {
		dlclose(handle);
		registry_log(REGISTRY_LOG_LOAD, "%s: %s unloaded", entry->info.ia_name,
			     entry->loaded->path);
	}
	entry->loaded = NULL;
	entry->init = NULL;
	entry->fini = NULL;
}

/* Initialises the provider in the library of the entry, or unloads the library. 0 or an errno. */
static int entry_start(struct registry_entry *entry)
{
	int error = entry_init(entry);

	if (error)
		entry_unload(entry);
	return error;
}

/*
 * The library of ours for the device of a line whose library is missing. The device is the first
 * word of the instance data, or, where these are blank as on Solaris, the name of the adapter.
 * Valid until the next call for the entry. NULL: the setting forbids it, or none has the device.
 */
static const struct registry_library *stand_in_get(struct registry_entry *entry,
						   const struct registry_library *missing)
{
	const char *setting = secure_getenv("DAT_OPENDAT_REPLACE");
	const char *data = missing->instance_data + strspn(missing->instance_data, " \t");
	char device[DAT_NAME_MAX_LENGTH], path[PATH_MAX];

	if (setting && strcmp(setting, "off") == 0)
		return NULL;
	if (*data == '\0')
		data = entry->info.ia_name;
	snprintf(device, sizeof(device), "%.*s", (int)strcspn(data, " \t"), data);
	if (!registry_builtin_library_for(device, path)) {
		registry_log(
			REGISTRY_LOG_LOAD | REGISTRY_LOG_ERROR,
			"%s: nothing to use instead of %s: this host has neither an RDMA device "
			"nor an interface that is up with the name, address or host name %s",
			entry->info.ia_name, missing->path, device);
		return NULL;
	}
	registry_library_free(entry->stand_in);
	entry->stand_in = registry_library_make(path, data);
	if (entry->stand_in)
		registry_log(
			REGISTRY_LOG_LOAD | REGISTRY_LOG_ERROR,
			"%s: uses %s \"%s\" instead of %s (DAT_OPENDAT_REPLACE=off prevents it)",
			entry->info.ia_name, path, data, missing->path);
	return entry->stand_in;
}

/* 0: the adapter is registered. Otherwise the errno of the last library tried. */
static int entry_load(struct registry_entry *entry)
{
	const struct registry_library *library, *missing = NULL;
	int error = ENOENT;

	/* Still loaded, because the provider removed its registration itself (PROV-INIT-05). */
	if (is_loaded(entry)) {
		error = entry_start(entry);
		if (is_loaded(entry))
			return error;
	}
	for (library = entry->libraries; library; library = library->next) {
		error = library_open(entry, library);
		if (error && !missing && !registry_conf_is_shortage(-error) &&
		    registry_conf_is_reference(library->path))
			missing = library;
		if (error)
			continue;
		error = entry_start(entry);
		if (is_loaded(entry))
			return error;
	}
	/* A library that another line names, and that can be loaded, comes first (CONF-45). */
	library = missing ? stand_in_get(entry, missing) : NULL;
	if (library)
		error = library_open(entry, library);
	if (library && !error)
		error = entry_start(entry);
	return error;
}

/* Ends the provider after its last instance, unless another one was opened meanwhile. */
static void entry_retire(struct registry_entry *entry)
{
	struct registry_registration *registration;
	bool is_kept;

	if (!entry->is_initialised)
		return;
	registry_lock();
	registration = registry_dynamic_find_locked(&entry->info);
	/* The process may have replaced the library's registration with its own. */
	is_kept = registration &&
		  (registration->users != 0 || registration->origin.base != entry->base);
	if (registration && !is_kept)
		registration->is_retiring = true;
	registry_unlock();
	if (is_kept)
		return;
	entry->is_initialised = false;
	if (entry->fini)
		entry->fini(&entry->info);
	/* A provider that does not remove its registration: PROV-FINI-07. */
	registry_lock();
	registration = registry_dynamic_find_locked(&entry->info);
	if (registration && registration->users == 0)
		registry_dynamic_remove_locked(registration);
	registry_unlock();
	entry_unload(entry);
}
