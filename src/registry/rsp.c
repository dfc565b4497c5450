// SPDX-License-Identifier: BSD-2-Clause
/* Reserved service points. Each call checks its handle and forwards to the provider (forward.h). */
#include "forward.h"

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
			  DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE *rsp_handle)
{
	return REGISTRY_FORWARD_IA(rsp_create, ia_handle, conn_qual, ep_handle, evd_handle,
				   rsp_handle);
}

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
			 DAT_RSP_PARAM *rsp_param)
{
	DAT_RETURN ret = REGISTRY_FORWARD(rsp_query, DAT_INVALID_HANDLE_RSP, rsp_handle,
					  rsp_param_mask, rsp_param);

	if (ret == DAT_SUCCESS && rsp_param && (rsp_param_mask & DAT_RSP_FIELD_IA_HANDLE))
		rsp_param->ia_handle = registry_ia_consumer_handle(rsp_param->ia_handle);
	return ret;
}

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	return REGISTRY_FORWARD(rsp_free, DAT_INVALID_HANDLE_RSP, rsp_handle);
}
