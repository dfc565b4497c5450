// SPDX-License-Identifier: BSD-2-Clause
/* Protection zones. Each call checks its handle and forwards to the provider (forward.h). */
#include "forward.h"

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	return REGISTRY_FORWARD_IA(pz_create, ia_handle, pz_handle);
}

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
			DAT_PZ_PARAM *pz_param)
{
	DAT_RETURN ret = REGISTRY_FORWARD(pz_query, DAT_INVALID_HANDLE_PZ, pz_handle, pz_param_mask,
					  pz_param);

	if (ret == DAT_SUCCESS && pz_param && (pz_param_mask & DAT_PZ_FIELD_IA_HANDLE))
		pz_param->ia_handle = registry_ia_consumer_handle(pz_param->ia_handle);
	return ret;
}

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle)
{
	return REGISTRY_FORWARD(pz_free, DAT_INVALID_HANDLE_PZ, pz_handle);
}
