// SPDX-License-Identifier: BSD-2-Clause
/* The calls that only DAT 2.0 has, and those that have other parameters in DAT 1.2 (calls_1.c). */
#include "catalog.h"
#include "forward.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size,
			 const DAT_PVOID private_data)
{
	return REGISTRY_FORWARD(cr_reject, DAT_INVALID_HANDLE_CR, cr_handle, private_data_size,
				private_data);
}

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			  DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
			  DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			  DAT_VA_TYPE va_type, DAT_LMR_HANDLE *lmr_handle,
			  DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context,
			  DAT_VLEN *registered_length, DAT_VADDR *registered_address)
{
	return REGISTRY_FORWARD_IA(lmr_create, ia_handle, mem_type, region_description, length,
				   pz_handle, privileges, va_type, lmr_handle, lmr_context,
				   rmr_context, registered_length, registered_address);
}

DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	return REGISTRY_FORWARD(rmr_create_for_ep, DAT_INVALID_HANDLE_PZ, pz_handle, rmr_handle);
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
			const DAT_LMR_TRIPLET *lmr_triplet, DAT_MEM_PRIV_FLAGS mem_priv,
			DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie,
			DAT_COMPLETION_FLAGS completion_flags, DAT_RMR_CONTEXT *context)
{
	return REGISTRY_FORWARD(rmr_bind, DAT_INVALID_HANDLE_RMR, rmr_handle, lmr_handle,
				lmr_triplet, mem_priv, va_type, ep_handle, user_cookie,
				completion_flags, context);
}

/* ---- endpoints ---- */

DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
				 DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
				 const DAT_PVOID private_data)
{
	return REGISTRY_FORWARD(ep_common_connect, DAT_INVALID_HANDLE_EP, ep_handle,
				remote_ia_address, timeout, private_data_size, private_data);
}

DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
					    DAT_COMPLETION_FLAGS completion_flags,
					    DAT_BOOLEAN invalidate_flag,
					    DAT_RMR_CONTEXT rmr_context)
{
	return REGISTRY_FORWARD(ep_post_send_with_invalidate, DAT_INVALID_HANDLE_EP, ep_handle,
				num_segments, local_iov, user_cookie, completion_flags,
				invalidate_flag, rmr_context);
}

DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET *local_iov,
					DAT_DTO_COOKIE user_cookie,
					const DAT_RMR_TRIPLET *remote_iov,
					DAT_COMPLETION_FLAGS completion_flags)
{
	return REGISTRY_FORWARD(ep_post_rdma_read_to_rmr, DAT_INVALID_HANDLE_EP, ep_handle,
				local_iov, user_cookie, remote_iov, completion_flags);
}

/* ---- common service points ---- */

DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *communicator,
			  DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd_handle,
			  DAT_CSP_HANDLE *csp_handle)
{
	return REGISTRY_FORWARD_IA(csp_create, ia_handle, communicator, address, evd_handle,
				   csp_handle);
}

DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK csp_param_mask,
			 DAT_CSP_PARAM *csp_param)
{
	DAT_RETURN ret = REGISTRY_FORWARD(csp_query, DAT_INVALID_HANDLE_CSP, csp_handle,
					  csp_param_mask, csp_param);

	if (ret == DAT_SUCCESS && csp_param && (csp_param_mask & DAT_CSP_FIELD_IA_HANDLE))
		csp_param->ia_handle = registry_ia_consumer_handle(csp_param->ia_handle);
	return ret;
}

DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp_handle)
{
	return REGISTRY_FORWARD(csp_free, DAT_INVALID_HANDLE_CSP, csp_handle);
}

/* ---- consumer notification objects ---- */

DAT_RETURN dat_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *file_descriptor,
			     DAT_CNO_HANDLE *cno_handle)
{
	return REGISTRY_FORWARD_IA(cno_fd_create, ia_handle, file_descriptor, cno_handle);
}

DAT_RETURN dat_cno_trigger(DAT_CNO_HANDLE cno_handle, DAT_EVD_HANDLE *evd_handle)
{
	return REGISTRY_FORWARD(cno_trigger, DAT_INVALID_HANDLE_CNO, cno_handle, evd_handle);
}

/* ---- high availability ---- */

/* Stores the interface of an adapter, "" if it is that of an entry of dat.conf. */
static DAT_RETURN netdev_get(unsigned int number, const char *argument, const char *name,
			     char netdev_out[IFNAMSIZ])
{
	DAT_RETURN ret = registry_catalog_load();
	struct registry_entry *entry;

	if (!name)
		return registry_bad_arg("dat_registry_providers_related", number, argument, "NULL");
	if (ret != DAT_SUCCESS)
		return ret;
	netdev_out[0] = '\0';
	for (entry = registry_catalog_first(); entry; entry = entry->next)
		if (registry_entry_is_usable(entry) && strcmp(entry->info.ia_name, name) == 0)
			return DAT_SUCCESS;
	entry = registry_catalog_builtin_get(name);
	if (!entry)
		return registry_error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	snprintf(netdev_out, IFNAMSIZ, "%s", entry->libraries->instance_data);
	return DAT_SUCCESS;
}

/* Adapters without an entry in dat.conf are ours. Nobody knows about others (D2-HA-01). */
DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR name1, const DAT_NAME_PTR name2,
					  DAT_HA_RELATIONSHIP *relationship)
{
	char first[IFNAMSIZ], second[IFNAMSIZ];
	DAT_RETURN ret = netdev_get(1, "name1", name1, first);

	if (ret == DAT_SUCCESS)
		ret = netdev_get(2, "name2", name2, second);
	if (ret == DAT_SUCCESS && !relationship)
		ret = registry_bad_arg("dat_registry_providers_related", 3, "relationship", "NULL");
	if (ret != DAT_SUCCESS)
		return ret;
	if (!first[0] || !second[0])
		*relationship = DAT_HA_UNKNOWN;
	else
		*relationship = strcmp(first, second) == 0 ? DAT_HA_TRUE : DAT_HA_FALSE;
	return DAT_SUCCESS;
}
