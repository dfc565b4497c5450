// SPDX-License-Identifier: BSD-2-Clause
/* What DAT 2.0 has otherwise: the calls that have other parameters there (calls_2.c), and extensions
 * (extend.c). */
#include "extend.h"
#include "forward.h"

void registry_extension_learn(struct registry_registration *registration, DAT_IA_HANDLE ia_handle)
{
	(void)registration;
	(void)ia_handle;
}

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle)
{
	return REGISTRY_FORWARD(cr_reject, DAT_INVALID_HANDLE_CR, cr_handle);
}

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			  DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
			  DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			  DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			  DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			  DAT_VADDR *registered_address)
{
	return REGISTRY_FORWARD_IA(lmr_create, ia_handle, mem_type, region_description, length,
				   pz_handle, privileges, lmr_handle, lmr_context, rmr_context,
				   registered_length, registered_address);
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *lmr_triplet,
			DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle,
			DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
			DAT_RMR_CONTEXT *context)
{
	return REGISTRY_FORWARD(rmr_bind, DAT_INVALID_HANDLE_RMR, rmr_handle, lmr_triplet, mem_priv,
				ep_handle, user_cookie, completion_flags, context);
}
