// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reserved service points: the calls check the handle that they are dispatched by, and hand over to
 * its provider, which checks everything else.
 */
#include "ia.h"

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
			  DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE *rsp_handle)
{
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE ia = registry_ia_handle(ia_handle, &provider);

	if (!ia)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return provider->rsp_create_func(ia, conn_qual, ep_handle, evd_handle, rsp_handle);
}

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
			 DAT_RSP_PARAM *rsp_param)
{
	const DAT_PROVIDER *provider = registry_handle_provider(rsp_handle);
	DAT_RETURN ret;

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	ret = provider->rsp_query_func(rsp_handle, rsp_param_mask, rsp_param);
	if (ret == DAT_SUCCESS && rsp_param && (rsp_param_mask & DAT_RSP_FIELD_IA_HANDLE))
		rsp_param->ia_handle = registry_ia_consumer_handle(rsp_param->ia_handle);
	return ret;
}

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	const DAT_PROVIDER *provider = registry_handle_provider(rsp_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	return provider->rsp_free_func(rsp_handle);
}
