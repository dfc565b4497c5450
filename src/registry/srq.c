// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues. Each call checks its handle and forwards to the provider (forward.h). */
#include "forward.h"

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *srq_attr,
			  DAT_SRQ_HANDLE *srq_handle)
{
	return REGISTRY_FORWARD_IA(srq_create, ia_handle, pz_handle, srq_attr, srq_handle);
}

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
			 DAT_SRQ_PARAM *srq_param)
{
	DAT_RETURN ret = REGISTRY_FORWARD(srq_query, DAT_INVALID_HANDLE_SRQ, srq_handle,
					  srq_param_mask, srq_param);

	if (ret == DAT_SUCCESS && srq_param && (srq_param_mask & DAT_SRQ_FIELD_IA_HANDLE))
		srq_param->ia_handle = registry_ia_consumer_handle(srq_param->ia_handle);
	return ret;
}

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto)
{
	return REGISTRY_FORWARD(srq_resize, DAT_INVALID_HANDLE_SRQ, srq_handle, srq_max_recv_dto);
}

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark)
{
	return REGISTRY_FORWARD(srq_set_lw, DAT_INVALID_HANDLE_SRQ, srq_handle, low_watermark);
}

REGISTRY_FORWARD_FAST(srq_post_recv, DAT_INVALID_HANDLE_SRQ, srq_handle,
		      (DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
		       DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie),
		      (srq_handle, num_segments, local_iov, user_cookie))

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle)
{
	return REGISTRY_FORWARD(srq_free, DAT_INVALID_HANDLE_SRQ, srq_handle);
}
