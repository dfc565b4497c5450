// SPDX-License-Identifier: BSD-2-Clause
/* Connection requests. Each call checks its handle and forwards to the provider (forward.h). */
#include "forward.h"

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
			DAT_CR_PARAM *cr_param)
{
	return REGISTRY_FORWARD(cr_query, DAT_INVALID_HANDLE_CR, cr_handle, cr_param_mask,
				cr_param);
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			 DAT_COUNT private_data_size, const DAT_PVOID private_data)
{
	return REGISTRY_FORWARD(cr_accept, DAT_INVALID_HANDLE_CR, cr_handle, ep_handle,
				private_data_size, private_data);
}

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff)
{
	return REGISTRY_FORWARD(cr_handoff, DAT_INVALID_HANDLE_CR, cr_handle, handoff);
}

DAT_RETURN dat_opendat_peer(DAT_HANDLE handle, DAT_OPENDAT_PEER *peer)
{
	const DAT_PROVIDER *provider = registry_handle_provider(handle);
	const struct opendat_extension *extension;

	if (!provider)
		return registry_bad_handle("dat_opendat_peer", "handle", handle,
					   DAT_INVALID_HANDLE1);
	extension = registry_handle_extension(handle, provider);
	if (!extension || !OPENDAT_EXTENSION_HAS(extension, peer_func))
		return registry_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return extension->peer_func(handle, peer);
}
