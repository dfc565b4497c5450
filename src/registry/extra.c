// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operations that DAT 1.2 lacks, and what their completions tell. A provider of an earlier version
 * has none of them.
 */
#include "forward.h"

/* The provider's calls. NULL: *ret_out says why there are none. */
static const struct opendat_extension *extra_of(const char *call, const char *name,
						DAT_HANDLE handle, DAT_RETURN_SUBTYPE subtype,
						DAT_RETURN *ret_out)
{
	const DAT_PROVIDER *provider = registry_handle_provider(handle);
	const struct opendat_extension *extension;

	if (!provider) {
		*ret_out = registry_bad_handle(call, name, handle, subtype);
		return NULL;
	}
	extension = registry_handle_extension(handle, provider);
	if (extension && OPENDAT_EXTENSION_HAS(extension, dto_data_func))
		return extension;
	*ret_out = registry_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return NULL;
}

static const struct opendat_extension *extra_of_ep(const char *call, DAT_EP_HANDLE ep_handle,
						   DAT_RETURN *ret_out)
{
	return extra_of(call, "ep_handle", ep_handle, DAT_INVALID_HANDLE_EP, ret_out);
}

DAT_RETURN dat_opendat_ep_take_immediate(DAT_EP_HANDLE ep_handle)
{
	DAT_RETURN ret;
	const struct opendat_extension *extra = extra_of_ep(__func__, ep_handle, &ret);

	return extra ? extra->take_immediate_func(ep_handle) : ret;
}

DAT_RETURN dat_opendat_ep_post_rdma_write_immed(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
						const DAT_LMR_TRIPLET *local_iov,
						DAT_DTO_COOKIE user_cookie,
						const DAT_RMR_TRIPLET *remote_iov,
						DAT_UINT32 immediate_data,
						DAT_COMPLETION_FLAGS completion_flags)
{
	DAT_RETURN ret;
	const struct opendat_extension *extra = extra_of_ep(__func__, ep_handle, &ret);

	return extra ? extra->write_immediate_func(ep_handle, num_segments, local_iov, user_cookie,
						   remote_iov, immediate_data, completion_flags)
		     : ret;
}

DAT_RETURN dat_opendat_ep_post_fetch_and_add(DAT_EP_HANDLE ep_handle, DAT_UINT64 add_value,
					     const DAT_LMR_TRIPLET *local_iov,
					     DAT_DTO_COOKIE user_cookie,
					     const DAT_RMR_TRIPLET *remote_iov,
					     DAT_COMPLETION_FLAGS completion_flags)
{
	DAT_RETURN ret;
	const struct opendat_extension *extra = extra_of_ep(__func__, ep_handle, &ret);

	return extra ? extra->fetch_add_func(ep_handle, add_value, local_iov, user_cookie,
					     remote_iov, completion_flags)
		     : ret;
}

DAT_RETURN dat_opendat_ep_post_cmp_and_swap(DAT_EP_HANDLE ep_handle, DAT_UINT64 compare_value,
					    DAT_UINT64 swap_value, const DAT_LMR_TRIPLET *local_iov,
					    DAT_DTO_COOKIE user_cookie,
					    const DAT_RMR_TRIPLET *remote_iov,
					    DAT_COMPLETION_FLAGS completion_flags)
{
	DAT_RETURN ret;
	const struct opendat_extension *extra = extra_of_ep(__func__, ep_handle, &ret);

	return extra ? extra->compare_swap_func(ep_handle, compare_value, swap_value, local_iov,
						user_cookie, remote_iov, completion_flags)
		     : ret;
}

DAT_RETURN dat_opendat_ep_post_send_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					       const DAT_LMR_TRIPLET *local_iov,
					       DAT_DTO_COOKIE user_cookie,
					       DAT_COMPLETION_FLAGS completion_flags,
					       DAT_RMR_CONTEXT rmr_context)
{
	DAT_RETURN ret;
	const struct opendat_extension *extra = extra_of_ep(__func__, ep_handle, &ret);

	return extra ? extra->send_invalidate_func(ep_handle, num_segments, local_iov, user_cookie,
						   completion_flags, rmr_context)
		     : ret;
}

DAT_RETURN dat_opendat_dto_data(const DAT_EVENT *event, DAT_OPENDAT_DTO_DATA *data)
{
	const struct opendat_extension *extra;
	DAT_RETURN ret;

	if (!event)
		return registry_bad_arg(__func__, 1, "event", "NULL");
	extra = extra_of(__func__, "event->evd_handle", event->evd_handle, DAT_NO_SUBTYPE, &ret);
	return extra ? extra->dto_data_func(event, data) : ret;
}
