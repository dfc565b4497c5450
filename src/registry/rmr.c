// SPDX-License-Identifier: BSD-2-Clause
/* Remote memory regions. Each call checks its handle and forwards to the provider (forward.h). */
#include "forward.h"

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	return REGISTRY_FORWARD(rmr_create, DAT_INVALID_HANDLE_PZ, pz_handle, rmr_handle);
}

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
			 DAT_RMR_PARAM *rmr_param)
{
	DAT_RETURN ret = REGISTRY_FORWARD(rmr_query, DAT_INVALID_HANDLE_RMR, rmr_handle,
					  rmr_param_mask, rmr_param);

	if (ret == DAT_SUCCESS && rmr_param && (rmr_param_mask & DAT_RMR_FIELD_IA_HANDLE))
		rmr_param->ia_handle = registry_ia_consumer_handle(rmr_param->ia_handle);
	return ret;
}

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle)
{
	return REGISTRY_FORWARD(rmr_free, DAT_INVALID_HANDLE_RMR, rmr_handle);
}
