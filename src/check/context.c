// SPDX-License-Identifier: BSD-2-Clause
/* Calls that take a handle of any type. */
#include "check/object.h"

/* check_begin with the type that the handle has. */
static struct check_object *begin_any(struct check_call *call, enum check_call_number number,
				      DAT_HANDLE handle)
{
	struct check_object *object = check_find(handle);

	return check_begin(call, number, handle,
			   object ? (DAT_HANDLE_TYPE)object->type : DAT_HANDLE_TYPE_IA);
}

DAT_RETURN check_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context)
{
	struct check_call call;

	begin_any(&call, CHECK_CALL_set_consumer_context, dat_handle);
	return check_end(&call, dat_set_consumer_context(check_inner(dat_handle), context));
}

DAT_RETURN check_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context)
{
	struct check_call call;

	begin_any(&call, CHECK_CALL_get_consumer_context, dat_handle);
	return check_end(&call, dat_get_consumer_context(check_inner(dat_handle), context));
}

DAT_RETURN check_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type)
{
	struct check_call call;

	begin_any(&call, CHECK_CALL_get_handle_type, dat_handle);
	return check_end(&call, dat_get_handle_type(check_inner(dat_handle), handle_type));
}
