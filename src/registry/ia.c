// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ia_openv, dat_ia_close, dat_ia_query, and the list of open instances. The list records which
 * instances exist; the provider knows their state. No lock is held while the provider opens or
 * closes an instance.
 */
#include "ia.h"
#include "check.h"
#include "extend.h"
#include "forward.h"
#include "loader.h"
#include "log.h"
#include "other.h"
#include "sync.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RO_AWARE_PREFIX "RO_AWARE_"

enum closing { CLOSING_NOT, CLOSING_GRACEFUL, CLOSING_ABRUPT };

/* An open instance. Guarded by the registry's lock, except members set at creation. */
struct instance {
	unsigned int number;	 /* set at creation: the consumer's handle */
	struct registry_use use; /* set at creation */
	DAT_IA_HANDLE handle;	 /* the provider's; DAT_HANDLE_NULL until it is open */
	enum closing closing;
	pthread_t closer;
	struct instance *next;
};

struct registry_ia_slot registry_ia_slots[REGISTRY_SMALL_INTEGERS];

/* Guarded by the registry's lock. */
static struct instance *instances;
static struct instance *inherited; /* the parent's at the fork; unused in this process */
static unsigned int last_number;

static DAT_RETURN request_check(const char *name, DAT_EVD_HANDLE *async_evd_handle,
				DAT_IA_HANDLE *ia_handle);
static DAT_RETURN instance_open(const struct registry_request *request, DAT_COUNT qlen,
				DAT_EVD_HANDLE *async_evd_handle, DAT_IA_HANDLE *ia_handle);

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR provider, DAT_COUNT asynch_evd_min_qlen,
			DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle,
			DAT_UINT32 dat_major, DAT_UINT32 dat_minor, DAT_BOOLEAN thread_safety)
{
	struct registry_request request = {
		.name = provider,
		.version_major = dat_major,
		.version_minor = dat_minor,
		.is_thread_safe = thread_safety,
	};
	struct registry_check_name check;
	DAT_RETURN ret;

	if (ia_handle)
		*ia_handle = DAT_HANDLE_NULL;
	ret = request_check(provider, asynch_evd_handle, ia_handle);
	if (ret == DAT_SUCCESS) {
		if (strncmp(provider, RO_AWARE_PREFIX, strlen(RO_AWARE_PREFIX)) == 0)
			request.name += strlen(RO_AWARE_PREFIX);
		registry_check_begin(&request, &check);
		ret = instance_open(&request, asynch_evd_min_qlen, asynch_evd_handle, ia_handle);
		registry_check_end();
	}
	if (ret != DAT_SUCCESS && provider)
		registry_log(REGISTRY_LOG_IA | REGISTRY_LOG_ERROR, "%.*s: not opened: %s",
			     DAT_NAME_MAX_LENGTH, provider, registry_code_text(ret).text);
	return ret;
}

static DAT_RETURN request_check(const char *name, DAT_EVD_HANDLE *async_evd_handle,
				DAT_IA_HANDLE *ia_handle)
{
	/* The length includes the prefix. */
	if (!name)
		return registry_bad_arg("dat_ia_openv", 1, "provider", "NULL");
	if (strnlen(name, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH)
		return registry_bad_arg("dat_ia_openv", 1, "provider", "longer than %d characters",
					DAT_NAME_MAX_LENGTH - 1);
	if (!async_evd_handle)
		return registry_bad_arg("dat_ia_openv", 3, "asynch_evd_handle", "NULL");
	if (!ia_handle)
		return registry_bad_arg("dat_ia_openv", 4, "ia_handle", "NULL");
	return DAT_SUCCESS;
}

static bool number_is_used_locked(unsigned int number)
{
	const struct instance *instance;

	for (instance = instances; instance; instance = instance->next)
		if (instance->number == number)
			return true;
	return false;
}

static void slot_open_locked(const struct instance *instance)
{
	struct registry_ia_slot *slot = &registry_ia_slots[instance->number];

	atomic_store_explicit(&slot->provider, instance->use.registration->provider,
			      memory_order_relaxed);
	/* Pairs with the acquire in registry_ia_handle. */
	atomic_store_explicit(&slot->handle, instance->handle, memory_order_release);
}

static void slot_close_locked(const struct instance *instance)
{
	atomic_store_explicit(&registry_ia_slots[instance->number].handle, DAT_HANDLE_NULL,
			      memory_order_relaxed);
}

/* The next number that no instance has. 0: all are used. */
static unsigned int number_take_locked(void)
{
	unsigned int tried;

	for (tried = 1; tried < REGISTRY_SMALL_INTEGERS; tried++) {
		last_number = last_number % (REGISTRY_SMALL_INTEGERS - 1) + 1;
		if (!number_is_used_locked(last_number))
			return last_number;
	}
	return 0;
}

/* Gives a new instance a free number and adds it to the list. */
static bool instance_list(struct instance *instance)
{
	DAT_IA_HANDLE other;

	/* The other registry is asked without the lock, so it is asked for each number. */
	do {
		registry_lock();
		instance->number = number_take_locked();
		registry_unlock();
	} while (registry_other_ia_handle(instance->number, &other));
	if (instance->number == 0)
		return false;
	registry_lock();
	instance->next = instances;
	instances = instance;
	registry_unlock();
	return true;
}

static void instance_unlist(struct instance *instance)
{
	struct instance **link = &instances;

	registry_lock();
	slot_close_locked(instance);
	/* In a forked child the parent's instances are not on the list. */
	while (*link && *link != instance)
		link = &(*link)->next;
	if (*link)
		*link = instance->next;
	registry_changed_locked();
	registry_unlock();
}

/* Exchanges handles after the provider has opened the instance. */
static void instance_exchange_handles(struct instance *instance, DAT_IA_HANDLE handle)
{
	const struct opendat_extension *extension =
		registry_handle_extension(handle, instance->use.registration->provider);

	if (extension)
		extension->ia_name_func(handle, (DAT_IA_HANDLE)(uintptr_t)instance->number);
	registry_lock();
	instance->handle = handle;
	slot_open_locked(instance);
	if (extension)
		registry_handle_set_first_locked(handle);
	registry_unlock();
}

static DAT_RETURN instance_open(const struct registry_request *request, DAT_COUNT qlen,
				DAT_EVD_HANDLE *async_evd_handle, DAT_IA_HANDLE *ia_handle)
{
	/* The provider writes to copies: a failure does not change the consumer's variables. */
	DAT_EVD_HANDLE evd = *async_evd_handle;
	DAT_IA_HANDLE handle = DAT_HANDLE_NULL;
	struct registry_registration *registration;
	struct instance *instance;
	DAT_RETURN ret;

	instance = calloc(1, sizeof(*instance));
	if (!instance)
		return registry_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ret = registry_use_get(request, &instance->use);
	if (ret != DAT_SUCCESS)
		goto free_instance;
	if (!instance_list(instance)) {
		ret = registry_error(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE);
		goto put_use;
	}
	registration = instance->use.registration;
	ret = registration->provider->ia_open_func((DAT_NAME_PTR)registration->key.ia_name, qlen,
						   &evd, &handle);
	if (ret != DAT_SUCCESS)
		goto unlist;
	instance_exchange_handles(instance, handle);
	registry_extension_learn(instance->use.registration, handle);
	registry_log(REGISTRY_LOG_IA, "%s: opened as %u", request->name, instance->number);
	*async_evd_handle = evd;
	*ia_handle = (DAT_IA_HANDLE)(uintptr_t)instance->number;
	return DAT_SUCCESS;
unlist:
	instance_unlist(instance);
put_use:
	registry_use_put(&instance->use);
free_instance:
	free(instance);
	return ret;
}

/* ---- closing ---- */

static struct instance *instance_find_locked(DAT_IA_HANDLE ia_handle)
{
	struct instance *instance;

	for (instance = instances; instance; instance = instance->next)
		if (instance->handle && instance->number == (uintptr_t)ia_handle)
			return instance;
	return NULL;
}

/*
 * Claims the instance for closing. Returns NULL if it is closed or about to be. The provider may
 * refuse a graceful close that another thread has begun, so this waits for its result. An abrupt
 * close always succeeds. This does not wait for one, because it may call an agent that calls this
 * function (IA-CLOSE-27).
 */
static struct instance *instance_claim(DAT_IA_HANDLE ia_handle, enum closing closing)
{
	struct instance *instance;

	registry_lock();
	instance = instance_find_locked(ia_handle);
	while (instance && instance->closing == CLOSING_GRACEFUL &&
	       !pthread_equal(instance->closer, pthread_self())) {
		registry_wait_locked();
		instance = instance_find_locked(ia_handle);
	}
	if (instance && instance->closing != CLOSING_NOT)
		instance = NULL;
	if (instance) {
		instance->closing = closing;
		instance->closer = pthread_self();
		if (closing == CLOSING_ABRUPT)
			slot_close_locked(instance);
	}
	registry_unlock();
	return instance;
}

/* Reopens the instance after the provider has refused to close it. */
static void instance_unclaim(struct instance *instance)
{
	registry_lock();
	instance->closing = CLOSING_NOT;
	slot_open_locked(instance);
	registry_changed_locked();
	registry_unlock();
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags)
{
	struct instance *instance;
	const DAT_PROVIDER *provider;
	DAT_RETURN ret;

	if (!registry_ia_handle(ia_handle, &provider))
		return registry_bad_handle("dat_ia_close", "ia_handle", ia_handle,
					   DAT_INVALID_HANDLE_IA);
	if (close_flags != DAT_CLOSE_ABRUPT_FLAG && close_flags != DAT_CLOSE_GRACEFUL_FLAG)
		return registry_bad_arg(
			"dat_ia_close", 2, "close_flags",
			"0x%x is neither DAT_CLOSE_GRACEFUL_FLAG nor DAT_CLOSE_ABRUPT_FLAG",
			(unsigned int)close_flags);
	instance =
		instance_claim(ia_handle, close_flags == DAT_CLOSE_GRACEFUL_FLAG ? CLOSING_GRACEFUL
										 : CLOSING_ABRUPT);
	if (!instance)
		return registry_bad_handle("dat_ia_close", "ia_handle", ia_handle,
					   DAT_INVALID_HANDLE_IA);
	ret = provider->ia_close_func(instance->handle, close_flags);
	registry_log(REGISTRY_LOG_IA, "ia %u: close: %s", instance->number,
		     registry_code_text(ret).text);
	if (ret != DAT_SUCCESS) {
		instance_unclaim(instance);
		return ret;
	}
	instance_unlist(instance);
	registry_use_put(&instance->use);
	free(instance);
	return ret;
}

/* ---- queries ---- */

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
			DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr,
			DAT_PROVIDER_ATTR_MASK provider_attr_mask, DAT_PROVIDER_ATTR *provider_attr)
{
	return REGISTRY_FORWARD_IA(ia_query, ia_handle, async_evd_handle, ia_attr_mask, ia_attr,
				   provider_attr_mask, provider_attr);
}

/* A provider's handle is translated to the consumer's where providers rely on that (D2-REG-17). */
static DAT_IA_HANDLE handle_translate(DAT_IA_HANDLE handle)
{
	const DAT_PROVIDER *provider;

	if ((uintptr_t)handle < REGISTRY_SMALL_INTEGERS)
		return registry_ia_handle(handle, &provider);
	return REGISTRY_PROVIDER_TRANSLATES ? registry_ia_consumer_handle(handle) : DAT_HANDLE_NULL;
}

DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p)
{
	DAT_IA_HANDLE ia = handle_translate((DAT_IA_HANDLE)handle);

	/* Not logged: the other registry asks for every number that it is about to use. */
	if (!ia && !registry_other_ia_handle(handle, &ia))
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!ia_handle_p)
		return registry_bad_arg("dats_get_ia_handle", 2, "ia_handle_p", "NULL");
	*ia_handle_p = ia;
	return DAT_SUCCESS;
}

DAT_IA_HANDLE registry_ia_consumer_handle(DAT_HANDLE provider_handle)
{
	DAT_IA_HANDLE consumer = DAT_HANDLE_NULL;
	const struct instance *instance;

	if ((uintptr_t)provider_handle < REGISTRY_SMALL_INTEGERS)
		return REGISTRY_PROVIDER_TRANSLATES ? provider_handle : DAT_HANDLE_NULL;
	registry_lock();
	for (instance = instances; instance; instance = instance->next)
		if (instance->handle == provider_handle)
			consumer = (DAT_IA_HANDLE)(uintptr_t)instance->number;
	registry_unlock();
	return consumer;
}

/*
 * The instances are not freed, because this thread may have forked during a call on one of them.
 * The list `inherited` keeps them reachable for leak checkers.
 */
void registry_ia_forget_all(void)
{
	struct instance **end = &inherited;

	while (*end)
		end = &(*end)->next;
	*end = instances;
	for (; instances; instances = instances->next)
		slot_close_locked(instances);
}
