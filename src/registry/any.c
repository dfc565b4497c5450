// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls that take a handle of any type. An adapter's handle, a small integer, is translated;
 * every other is checked as in the calls of its own type.
 */
#include "ia.h"

DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type)
{
	const DAT_PROVIDER *provider;
	DAT_HANDLE handle = registry_any_handle(dat_handle, &provider);

	if (!handle)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return provider->get_handle_type_func(handle, handle_type);
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context)
{
	const DAT_PROVIDER *provider;
	DAT_HANDLE handle = registry_any_handle(dat_handle, &provider);

	if (!handle)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return provider->get_consumer_context_func(handle, context);
}

DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context)
{
	const DAT_PROVIDER *provider;
	DAT_HANDLE handle = registry_any_handle(dat_handle, &provider);

	if (!handle)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return provider->set_consumer_context_func(handle, context);
}
