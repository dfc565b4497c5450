// SPDX-License-Identifier: BSD-2-Clause
/*
 * Consumer notification objects. Each call checks its handle and forwards to the provider
 * (forward.h).
 */
#include "forward.h"

DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			  DAT_CNO_HANDLE *cno_handle)
{
	return REGISTRY_FORWARD_IA(cno_create, ia_handle, agent, cno_handle);
}

DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	return REGISTRY_FORWARD(cno_modify_agent, DAT_INVALID_HANDLE_CNO, cno_handle, agent);
}

DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK cno_param_mask,
			 DAT_CNO_PARAM *cno_param)
{
	DAT_RETURN ret = REGISTRY_FORWARD(cno_query, DAT_INVALID_HANDLE_CNO, cno_handle,
					  cno_param_mask, cno_param);

	if (ret == DAT_SUCCESS && cno_param &&
	    (cno_param_mask == DAT_CNO_FIELD_ALL || (cno_param_mask & DAT_CNO_FIELD_IA_HANDLE)))
		cno_param->ia_handle = registry_ia_consumer_handle(cno_param->ia_handle);
	return ret;
}

DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle)
{
	DAT_RETURN ret =
		REGISTRY_FORWARD(cno_wait, DAT_INVALID_HANDLE_CNO, cno_handle, timeout, evd_handle);

	/* Without a class bit, as in dat_evd_dequeue (GEN-07). */
	if (DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY)
		return DAT_QUEUE_EMPTY;
	return ret;
}

DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno_handle)
{
	return REGISTRY_FORWARD(cno_free, DAT_INVALID_HANDLE_CNO, cno_handle);
}

DAT_RETURN dat_opendat_cno_fd(DAT_CNO_HANDLE cno_handle, int *fd)
{
	const DAT_PROVIDER *provider = registry_handle_provider(cno_handle);
	const struct opendat_extension *extension;

	if (!provider)
		return registry_bad_handle("dat_opendat_cno_fd", "cno_handle", cno_handle,
					   DAT_INVALID_HANDLE_CNO);
	extension = registry_handle_extension(cno_handle, provider);
	if (!extension)
		return registry_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return extension->cno_fd_func(cno_handle, fd);
}
