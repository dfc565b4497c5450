// SPDX-License-Identifier: BSD-2-Clause
/*
 * Public service points: the calls check the handle that they are dispatched by, and hand over to
 * its provider, which checks everything else.
 */
#include "ia.h"

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			  DAT_PSP_HANDLE *psp_handle)
{
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE ia = registry_ia_handle(ia_handle, &provider);

	if (!ia)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return provider->psp_create_func(ia, conn_qual, evd_handle, psp_flags, psp_handle);
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			      DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			      DAT_PSP_HANDLE *psp_handle)
{
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE ia = registry_ia_handle(ia_handle, &provider);

	if (!ia)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return provider->psp_create_any_func(ia, conn_qual, evd_handle, psp_flags, psp_handle);
}

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
			 DAT_PSP_PARAM *psp_param)
{
	const DAT_PROVIDER *provider = registry_handle_provider(psp_handle);
	DAT_RETURN ret;

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	ret = provider->psp_query_func(psp_handle, psp_param_mask, psp_param);
	if (ret == DAT_SUCCESS && psp_param && (psp_param_mask & DAT_PSP_FIELD_IA_HANDLE))
		psp_param->ia_handle = registry_ia_consumer_handle(psp_param->ia_handle);
	return ret;
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle)
{
	const DAT_PROVIDER *provider = registry_handle_provider(psp_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	return provider->psp_free_func(psp_handle);
}
