// SPDX-License-Identifier: BSD-2-Clause
/* Public service points. Each call checks its handle and forwards to the provider (forward.h). */
#include "forward.h"

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			  DAT_PSP_HANDLE *psp_handle)
{
	return REGISTRY_FORWARD_IA(psp_create, ia_handle, conn_qual, evd_handle, psp_flags,
				   psp_handle);
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			      DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			      DAT_PSP_HANDLE *psp_handle)
{
	return REGISTRY_FORWARD_IA(psp_create_any, ia_handle, conn_qual, evd_handle, psp_flags,
				   psp_handle);
}

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
			 DAT_PSP_PARAM *psp_param)
{
	DAT_RETURN ret = REGISTRY_FORWARD(psp_query, DAT_INVALID_HANDLE_PSP, psp_handle,
					  psp_param_mask, psp_param);

	if (ret == DAT_SUCCESS && psp_param && (psp_param_mask & DAT_PSP_FIELD_IA_HANDLE))
		psp_param->ia_handle = registry_ia_consumer_handle(psp_param->ia_handle);
	return ret;
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle)
{
	return REGISTRY_FORWARD(psp_free, DAT_INVALID_HANDLE_PSP, psp_handle);
}
