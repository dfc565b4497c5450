// SPDX-License-Identifier: BSD-2-Clause
/* Calls on any handle: dat_get_handle_type, dat_get_consumer_context, dat_set_consumer_context. */
#include "core/base/calls.h"
#include "core/base/handle.h"
#include "core/base/status.h"

DAT_RETURN core_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type)
{
	DAT_HANDLE_TYPE type;
	struct core_handle *cell = core_handle_lock_any(dat_handle, &type);

	if (!cell)
		return core_bad_handle(CORE_ARG(get_handle_type, 1, dat_handle),
				       DAT_INVALID_HANDLE1, dat_handle);
	core_handle_unlock(cell);
	if (!handle_type)
		return core_bad_null(CORE_ARG(get_handle_type, 2, handle_type));
	*handle_type = type;
	return DAT_SUCCESS;
}

DAT_RETURN core_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context)
{
	DAT_HANDLE_TYPE type;
	struct core_handle *cell = core_handle_lock_any(dat_handle, &type);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!cell)
		return core_bad_handle(CORE_ARG(get_consumer_context, 1, dat_handle),
				       DAT_INVALID_HANDLE1, dat_handle);
	if (context)
		*context = cell->context;
	else
		ret = core_bad_null(CORE_ARG(get_consumer_context, 2, context));
	core_handle_unlock(cell);
	return ret;
}

DAT_RETURN core_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context)
{
	DAT_HANDLE_TYPE type;
	struct core_handle *cell = core_handle_lock_any(dat_handle, &type);

	if (!cell)
		return core_bad_handle(CORE_ARG(set_consumer_context, 1, dat_handle),
				       DAT_INVALID_HANDLE1, dat_handle);
	cell->context = context;
	core_handle_unlock(cell);
	return DAT_SUCCESS;
}
