// SPDX-License-Identifier: BSD-2-Clause
/* The calls that take a handle of any type. The handle of an instance, a small integer, is
 * translated to the provider's handle. Any other handle is checked as in the calls of its type. */
#include "forward.h"

DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type)
{
	return REGISTRY_FORWARD_ANY(get_handle_type, dat_handle, handle_type);
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context)
{
	return REGISTRY_FORWARD_ANY(get_consumer_context, dat_handle, context);
}

DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context)
{
	return REGISTRY_FORWARD_ANY(set_consumer_context, dat_handle, context);
}
