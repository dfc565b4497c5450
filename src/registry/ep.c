// SPDX-License-Identifier: BSD-2-Clause
/* Endpoints. Each call checks its handle and forwards to the provider (forward.h). */
#include "forward.h"

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			 DAT_EVD_HANDLE recv_completion_evd_handle,
			 DAT_EVD_HANDLE request_completion_evd_handle,
			 DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes,
			 DAT_EP_HANDLE *ep_handle)
{
	return REGISTRY_FORWARD_IA(ep_create, ia_handle, pz_handle, recv_completion_evd_handle,
				   request_completion_evd_handle, connect_evd_handle, ep_attributes,
				   ep_handle);
}

DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				  DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
				  DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
				  const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	return REGISTRY_FORWARD_IA(ep_create_with_srq, ia_handle, pz_handle, recv_evd_handle,
				   request_evd_handle, connect_evd_handle, srq_handle,
				   ep_attributes, ep_handle);
}

DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			DAT_EP_PARAM *ep_param)
{
	DAT_RETURN ret = REGISTRY_FORWARD(ep_query, DAT_INVALID_HANDLE_EP, ep_handle, ep_param_mask,
					  ep_param);

	if (ret == DAT_SUCCESS && ep_param && (ep_param_mask & DAT_EP_FIELD_IA_HANDLE))
		ep_param->ia_handle = registry_ia_consumer_handle(ep_param->ia_handle);
	return ret;
}

DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			 const DAT_EP_PARAM *ep_param)
{
	return REGISTRY_FORWARD(ep_modify, DAT_INVALID_HANDLE_EP, ep_handle, ep_param_mask,
				ep_param);
}

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
			  DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
			  DAT_COUNT private_data_size, const DAT_PVOID private_data,
			  DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags)
{
	return REGISTRY_FORWARD(ep_connect, DAT_INVALID_HANDLE_EP, ep_handle, remote_ia_address,
				remote_conn_qual, timeout, private_data_size, private_data,
				quality_of_service, connect_flags);
}

DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
			      DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
			      const DAT_PVOID private_data, DAT_QOS quality_of_service)
{
	return REGISTRY_FORWARD(ep_dup_connect, DAT_INVALID_HANDLE_EP, ep_handle, ep_dup_handle,
				timeout, private_data_size, private_data, quality_of_service);
}

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags)
{
	return REGISTRY_FORWARD(ep_disconnect, DAT_INVALID_HANDLE_EP, ep_handle, close_flags);
}

REGISTRY_FORWARD_FAST(ep_post_send, DAT_INVALID_HANDLE_EP, ep_handle,
		      (DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET *local_iov,
		       DAT_DTO_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags),
		      (ep_handle, num_segments, local_iov, user_cookie, completion_flags))

REGISTRY_FORWARD_FAST(ep_post_recv, DAT_INVALID_HANDLE_EP, ep_handle,
		      (DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET *local_iov,
		       DAT_DTO_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags),
		      (ep_handle, num_segments, local_iov, user_cookie, completion_flags))

REGISTRY_FORWARD_FAST(ep_post_rdma_read, DAT_INVALID_HANDLE_EP, ep_handle,
		      (DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET *local_iov,
		       DAT_DTO_COOKIE user_cookie, const DAT_RMR_TRIPLET *remote_iov,
		       DAT_COMPLETION_FLAGS completion_flags),
		      (ep_handle, num_segments, local_iov, user_cookie, remote_iov,
		       completion_flags))

REGISTRY_FORWARD_FAST(ep_post_rdma_write, DAT_INVALID_HANDLE_EP, ep_handle,
		      (DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET *local_iov,
		       DAT_DTO_COOKIE user_cookie, const DAT_RMR_TRIPLET *remote_iov,
		       DAT_COMPLETION_FLAGS completion_flags),
		      (ep_handle, num_segments, local_iov, user_cookie, remote_iov,
		       completion_flags))

DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			     DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	return REGISTRY_FORWARD(ep_get_status, DAT_INVALID_HANDLE_EP, ep_handle, ep_state,
				recv_idle, request_idle);
}

DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
			     DAT_COUNT *bufs_alloc_span)
{
	return REGISTRY_FORWARD(ep_recv_query, DAT_INVALID_HANDLE_EP, ep_handle, nbufs_allocated,
				bufs_alloc_span);
}

DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
				DAT_COUNT hard_high_watermark)
{
	return REGISTRY_FORWARD(ep_set_watermark, DAT_INVALID_HANDLE_EP, ep_handle,
				soft_high_watermark, hard_high_watermark);
}

DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle)
{
	return REGISTRY_FORWARD(ep_reset, DAT_INVALID_HANDLE_EP, ep_handle);
}

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle)
{
	return REGISTRY_FORWARD(ep_free, DAT_INVALID_HANDLE_EP, ep_handle);
}

DAT_RETURN dat_opendat_ep_attr_default(DAT_IA_HANDLE ia_handle, DAT_EP_ATTR *ep_attr)
{
	const DAT_PROVIDER *provider;
	const struct opendat_extension *extension;
	DAT_IA_HANDLE ia = registry_ia_handle(ia_handle, &provider);

	if (!ia)
		return registry_bad_handle("dat_opendat_ep_attr_default", "ia_handle", ia_handle,
					   DAT_INVALID_HANDLE_IA);
	extension = registry_handle_extension(ia, provider);
	if (!extension || !OPENDAT_EXTENSION_HAS(extension, ep_attr_default_func))
		return registry_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return extension->ep_attr_default_func(ia, ep_attr);
}
