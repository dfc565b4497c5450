// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared receive queues: the calls check the handle that they are dispatched by, and hand over to
 * its provider, which checks everything else.
 */
#include "ia.h"

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *srq_attr,
			  DAT_SRQ_HANDLE *srq_handle)
{
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE ia = registry_ia_handle(ia_handle, &provider);

	if (!ia)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return provider->srq_create_func(ia, pz_handle, srq_attr, srq_handle);
}

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
			 DAT_SRQ_PARAM *srq_param)
{
	const DAT_PROVIDER *provider = registry_handle_provider(srq_handle);
	DAT_RETURN ret;

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	ret = provider->srq_query_func(srq_handle, srq_param_mask, srq_param);
	if (ret == DAT_SUCCESS && srq_param && (srq_param_mask & DAT_SRQ_FIELD_IA_HANDLE))
		srq_param->ia_handle = registry_ia_consumer_handle(srq_param->ia_handle);
	return ret;
}

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto)
{
	const DAT_PROVIDER *provider = registry_handle_provider(srq_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	return provider->srq_resize_func(srq_handle, srq_max_recv_dto);
}

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark)
{
	const DAT_PROVIDER *provider = registry_handle_provider(srq_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	return provider->srq_set_lw_func(srq_handle, low_watermark);
}

__attribute__((noinline)) static DAT_RETURN srq_post_recv_any(DAT_SRQ_HANDLE srq_handle,
							      DAT_COUNT num_segments,
							      DAT_LMR_TRIPLET *local_iov,
							      DAT_DTO_COOKIE user_cookie)
{
	const DAT_PROVIDER *provider = registry_handle_provider(srq_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	return provider->srq_post_recv_func(srq_handle, num_segments, local_iov, user_cookie);
}

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
			     DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie)
{
	const DAT_PROVIDER *provider = registry_handle_usual(srq_handle);

	if (!provider)
		return srq_post_recv_any(srq_handle, num_segments, local_iov, user_cookie);
	return provider->srq_post_recv_func(srq_handle, num_segments, local_iov, user_cookie);
}

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle)
{
	const DAT_PROVIDER *provider = registry_handle_provider(srq_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	return provider->srq_free_func(srq_handle);
}
