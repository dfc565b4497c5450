// SPDX-License-Identifier: BSD-2-Clause
/*
 * Protection zones: the calls check the handle that they are dispatched by, and hand over to its
 * provider, which checks everything else.
 */
#include "ia.h"

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE ia = registry_ia_handle(ia_handle, &provider);

	if (!ia)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return provider->pz_create_func(ia, pz_handle);
}

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
			DAT_PZ_PARAM *pz_param)
{
	const DAT_PROVIDER *provider = registry_handle_provider(pz_handle);
	DAT_RETURN ret;

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	ret = provider->pz_query_func(pz_handle, pz_param_mask, pz_param);
	if (ret == DAT_SUCCESS && pz_param && (pz_param_mask & DAT_PZ_FIELD_IA_HANDLE))
		pz_param->ia_handle = registry_ia_consumer_handle(pz_param->ia_handle);
	return ret;
}

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle)
{
	const DAT_PROVIDER *provider = registry_handle_provider(pz_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	return provider->pz_free_func(pz_handle);
}
