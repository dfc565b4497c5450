// SPDX-License-Identifier: BSD-2-Clause
/*
 * Local memory regions: the calls check the handle that they are dispatched by, and hand over to
 * its provider, which checks everything else.
 */
#include "ia.h"

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			  DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
			  DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			  DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			  DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			  DAT_VADDR *registered_address)
{
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE ia = registry_ia_handle(ia_handle, &provider);

	if (!ia)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return provider->lmr_create_func(ia, mem_type, region_description, length, pz_handle,
					 privileges, lmr_handle, lmr_context, rmr_context,
					 registered_length, registered_address);
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
			 DAT_LMR_PARAM *lmr_param)
{
	const DAT_PROVIDER *provider = registry_handle_provider(lmr_handle);
	DAT_RETURN ret;

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	ret = provider->lmr_query_func(lmr_handle, lmr_param_mask, lmr_param);
	if (ret == DAT_SUCCESS && lmr_param && (lmr_param_mask & DAT_LMR_FIELD_IA_HANDLE))
		lmr_param->ia_handle = registry_ia_consumer_handle(lmr_param->ia_handle);
	return ret;
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				  DAT_VLEN num_segments)
{
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE ia = registry_ia_handle(ia_handle, &provider);

	if (!ia)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return provider->lmr_sync_rdma_read_func(ia, local_segments, num_segments);
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				   DAT_VLEN num_segments)
{
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE ia = registry_ia_handle(ia_handle, &provider);

	if (!ia)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return provider->lmr_sync_rdma_write_func(ia, local_segments, num_segments);
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle)
{
	const DAT_PROVIDER *provider = registry_handle_provider(lmr_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	return provider->lmr_free_func(lmr_handle);
}
