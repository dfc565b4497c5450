// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls of providers: dat_registry_add_provider and dat_registry_remove_provider. Both may be
 * called at any time, even in dat_provider_init and in the constructor of a library. So they take
 * only the registry's lock, and inspect the provider's library before they take it.
 */
#include "dynamic.h"
#include "log.h"
#include "other.h"
#include "refuse.h"
#include "sync.h"

#include <stdlib.h>
#include <string.h>

/* Guarded by the registry's lock. */
static struct registry_registration *registrations;

static bool name_is_valid(const DAT_PROVIDER_INFO *info)
{
	return info->ia_name[0] != '\0' && memchr(info->ia_name, '\0', sizeof(info->ia_name));
}

/* The call of the other registry, if the registration is one for it (D2-REG-19). */
static registry_other_register pass_on(const DAT_PROVIDER_INFO *info, const char *call)
{
	union {
		void *address;
		registry_other_register call;
	} other = {.address = info->dapl_version_major == REGISTRY_OTHER_MAJOR
				      ? registry_other_call(call)
				      : NULL};

	return other.address ? other.call : NULL;
}

DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *provider,
				     const DAT_PROVIDER_INFO *provider_info)
{
	struct registry_registration *registration;
	registry_other_register other;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!provider)
		return registry_bad_arg("dat_registry_add_provider", 1, "provider", "NULL");
	if (!provider_info || !name_is_valid(provider_info))
		return registry_bad_arg("dat_registry_add_provider", 2, "provider_info",
					"NULL, or its ia_name is empty or not terminated");
	other = pass_on(provider_info, "dat_registry_add_provider");
	if (other)
		return other(provider, provider_info);
	registration = calloc(1, sizeof(*registration));
	if (!registration)
		return registry_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	registration->key = *provider_info;
	registration->provider = provider;
	if (registry_handle_learn(provider, &registration->origin) != 0) {
		free(registration);
		return registry_error(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE);
	}
	/* Another table of ours would be called with the wrong types (D2-REG-08). */
	if (!registration->origin.is_foreign && !registry_handle_is_front(provider)) {
		free(registration);
		return registry_bad_arg("dat_registry_add_provider", 1, "provider",
					"the table of another major version of the API");
	}
	registry_lock();
	if (registry_dynamic_find_locked(provider_info)) {
		ret = registry_error(DAT_PROVIDER_ALREADY_REGISTERED, DAT_NO_SUBTYPE);
		goto unlock;
	}
	if (registration->origin.is_foreign)
		atomic_fetch_add(&registry_handle_space.foreign_count, 1);
	registration->next = registrations;
	registrations = registration;
	registration = NULL;
unlock:
	registry_unlock();
	free(registration);
	registry_log(REGISTRY_LOG_IA, "%s: registration %s", provider_info->ia_name,
		     ret == DAT_SUCCESS ? "added" : "refused, already registered");
	return ret;
}

DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *provider,
					const DAT_PROVIDER_INFO *provider_info)
{
	struct registry_registration *registration;
	registry_other_register other;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!provider)
		return registry_bad_arg("dat_registry_remove_provider", 1, "provider", "NULL");
	if (!provider_info || !name_is_valid(provider_info))
		return registry_bad_arg("dat_registry_remove_provider", 2, "provider_info",
					"NULL, or its ia_name is empty or not terminated");
	other = pass_on(provider_info, "dat_registry_remove_provider");
	if (other)
		return other(provider, provider_info);
	registry_lock();
	registration = registry_dynamic_find_locked(provider_info);
	if (!registration)
		ret = registry_bad_arg("dat_registry_remove_provider", 2, "provider_info",
				       "%s is not registered with this version and thread safety",
				       provider_info->ia_name);
	else if (registration->provider != provider)
		ret = registry_bad_arg("dat_registry_remove_provider", 1, "provider",
				       "%s is registered with another table",
				       provider_info->ia_name);
	else if (registration->users != 0)
		ret = registry_error(DAT_PROVIDER_IN_USE, DAT_NO_SUBTYPE);
	else
		registry_dynamic_remove_locked(registration);
	registry_unlock();
	if (ret == DAT_SUCCESS)
		registry_log(REGISTRY_LOG_IA, "%s: registration removed", provider_info->ia_name);
	return ret;
}

struct registry_registration *registry_dynamic_first_locked(void)
{
	return registrations;
}

struct registry_registration *registry_dynamic_find_locked(const DAT_PROVIDER_INFO *key)
{
	struct registry_registration *registration;

	for (registration = registrations; registration; registration = registration->next)
		if (registry_key_is_equal(&registration->key, key))
			return registration;
	return NULL;
}

void registry_dynamic_remove_locked(struct registry_registration *registration)
{
	struct registry_registration **link = &registrations;

	while (*link != registration)
		link = &(*link)->next;
	*link = registration->next;
	if (registration->origin.is_foreign)
		atomic_fetch_sub(&registry_handle_space.foreign_count, 1);
	free(registration);
}

void registry_dynamic_forget_users(void)
{
	struct registry_registration *registration;

	for (registration = registrations; registration; registration = registration->next) {
		registration->users = 0;
		registration->is_retiring = false;
	}
}

bool registry_key_is_equal(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b)
{
	/* Any non-zero value means true. */
	return a->dapl_version_major == b->dapl_version_major &&
	       a->dapl_version_minor == b->dapl_version_minor &&
	       !a->is_thread_safe == !b->is_thread_safe && strcmp(a->ia_name, b->ia_name) == 0;
}
