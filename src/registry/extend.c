// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_extension_op. The registry carries out no operation itself. It looks for the provider by the
 * handle or, for an operation that opens, by the name in the first argument; a provider that was
 * opened so is released by the operation that closes.
 */
#include "extend.h"
#include "forward.h"
#include "loader.h"
#include "sync.h"

#include <stdlib.h>
#include <string.h>

/* What an operation has opened. */
struct query {
	DAT_HANDLE handle; /* the provider's; set at creation, and the same for the consumer */
	struct registry_use use;
	struct query *next;
};

/* Guarded by the registry's lock. */
static struct query *queries;

void registry_extension_learn(struct registry_registration *registration, DAT_IA_HANDLE ia_handle)
{
	DAT_IA_ATTR attr = {.extension_supported = DAT_EXTENSION_NONE};

	if (!registration->origin.is_foreign || !registration->provider->ia_query_func)
		return;
	(void)registration->provider->ia_query_func(ia_handle, NULL, DAT_IA_FIELD_ALL, &attr, 0,
						    NULL);
	registry_lock();
	registration->has_no_extensions = attr.extension_supported == DAT_EXTENSION_NONE;
	registry_unlock();
}

static bool has_extensions(const DAT_PROVIDER *provider)
{
	const struct registry_registration *registration;
	bool has = true;

	/* Relaxed: only a foreign handle, which is newer than the count, needs more. */
	if (!provider->handle_extendedop_func ||
	    atomic_load_explicit(&registry_handle_space.foreign_count, memory_order_relaxed) == 0)
		return provider->handle_extendedop_func;
	registry_lock();
	registration = registry_dynamic_first_locked();
	for (; registration; registration = registration->next)
		if (registration->provider == provider && registration->has_no_extensions)
			has = false;
	registry_unlock();
	return has;
}

/* ---- operations that open and close ---- */

static DAT_RETURN use_get(const char *name, struct registry_use *use_out)
{
	struct registry_request request = {
		.name = name,
		.version_major = DAT_VERSION_MAJOR,
		.version_minor = DAT_VERSION_MINOR,
		.is_thread_safe = DAT_TRUE,
	};
	DAT_RETURN ret = registry_use_get(&request, use_out);

	if (DAT_GET_TYPE(ret) != DAT_PROVIDER_NOT_FOUND)
		return ret;
	request.is_thread_safe = DAT_FALSE;
	return registry_use_get(&request, use_out);
}

/* `args` begins behind the name. The first of them is where the provider stores the handle. */
static DAT_RETURN query_open(const char *name, DAT_EXTENDED_OP operation, va_list args)
{
	struct query *query = calloc(1, sizeof(*query));
	const DAT_PROVIDER *provider;
	DAT_HANDLE *handle_out;
	va_list copy;
	DAT_RETURN ret;

	if (!query)
		return registry_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	va_copy(copy, args);
	handle_out = va_arg(copy, DAT_HANDLE *);
	va_end(copy);
	ret = use_get(name, &query->use);
	if (ret != DAT_SUCCESS)
		goto free_query;
	provider = query->use.registration->provider;
	ret = provider->handle_extendedop_func
		      ? provider->handle_extendedop_func((DAT_HANDLE)(uintptr_t)name, operation,
							 args)
		      : registry_error((DAT_RETURN_TYPE)DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	if (ret != DAT_SUCCESS)
		goto put_use;
	query->handle = *handle_out;
	registry_lock();
	query->next = queries;
	queries = query;
	registry_unlock();
	return DAT_SUCCESS;
put_use:
	registry_use_put(&query->use);
free_query:
	free(query);
	return ret;
}

static struct query *query_take(DAT_HANDLE handle)
{
	struct query **link = &queries, *query;

	registry_lock();
	while (*link && (*link)->handle != handle)
		link = &(*link)->next;
	query = *link;
	if (query)
		*link = query->next;
	registry_unlock();
	return query;
}

/* Calls the slot with an empty list. */
static DAT_RETURN slot_call(const DAT_PROVIDER *provider, DAT_HANDLE handle,
			    DAT_EXTENDED_OP operation, ...)
{
	va_list none;
	DAT_RETURN ret;

	va_start(none, operation);
	ret = provider->handle_extendedop_func(handle, operation, none);
	va_end(none);
	return ret;
}

static DAT_RETURN query_close(DAT_HANDLE handle, DAT_EXTENDED_OP operation)
{
	struct query *query = query_take(handle);
	DAT_RETURN ret;

	if (!query)
		return registry_bad_handle("dat_extension_op", "handle", handle,
					   DAT_INVALID_HANDLE_IA);
	ret = slot_call(query->use.registration->provider, handle, operation);
	registry_use_put(&query->use);
	free(query);
	return ret;
}

/* ---- the call ---- */

static DAT_RETURN operation_forward(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list args)
{
	const DAT_PROVIDER *provider;
	DAT_HANDLE own = registry_any_handle(handle, &provider);

	if (!own)
		return registry_bad_handle("dat_extension_op", "handle", handle,
					   DAT_INVALID_HANDLE1);
	if (!has_extensions(provider))
		return registry_error((DAT_RETURN_TYPE)DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	return provider->handle_extendedop_func(own, operation, args);
}

static DAT_RETURN operation_open(DAT_EXTENDED_OP operation, va_list args)
{
	const char *name = va_arg(args, const char *);

	/* The arguments are counted without the handle and the operation (D2-QRY-06). */
	if (!name)
		return registry_bad_arg("dat_extension_op", 1, "name", "NULL");
	if (strnlen(name, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH)
		return registry_bad_arg("dat_extension_op", 1, "name", "longer than %d characters",
					DAT_NAME_MAX_LENGTH - 1);
	return query_open(name, operation, args);
}

DAT_RETURN dat_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, ...)
{
	va_list args;
	DAT_RETURN ret;

	va_start(args, operation);
	if (operation == DAT_OPEN_EXTENSION_BASE)
		ret = operation_open(operation, args);
	else if (operation == DAT_CLOSE_EXTENSION_BASE)
		ret = query_close(handle, operation);
	else if (operation & (DAT_OPEN_EXTENSION_BASE | DAT_CLOSE_EXTENSION_BASE))
		ret = registry_error((DAT_RETURN_TYPE)DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	else
		ret = operation_forward(handle, operation, args);
	va_end(args);
	return ret;
}
