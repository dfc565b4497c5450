// SPDX-License-Identifier: BSD-2-Clause
/* Local memory regions. Each call checks its handle and forwards to the provider (forward.h). */
#include "forward.h"

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
			 DAT_LMR_PARAM *lmr_param)
{
	DAT_RETURN ret = REGISTRY_FORWARD(lmr_query, DAT_INVALID_HANDLE_LMR, lmr_handle,
					  lmr_param_mask, lmr_param);

	if (ret == DAT_SUCCESS && lmr_param && (lmr_param_mask & DAT_LMR_FIELD_IA_HANDLE))
		lmr_param->ia_handle = registry_ia_consumer_handle(lmr_param->ia_handle);
	return ret;
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				  DAT_VLEN num_segments)
{
	return REGISTRY_FORWARD_IA(lmr_sync_rdma_read, ia_handle, local_segments, num_segments);
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				   DAT_VLEN num_segments)
{
	return REGISTRY_FORWARD_IA(lmr_sync_rdma_write, ia_handle, local_segments, num_segments);
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle)
{
	return REGISTRY_FORWARD(lmr_free, DAT_INVALID_HANDLE_LMR, lmr_handle);
}
