// SPDX-License-Identifier: BSD-2-Clause
/* Regions and windows. */
#include "core/mem/mem.h"

#include "core/base/calls.h"
#include "dat2/convert.h"
#include "dat2/front.h"

DAT_RETURN dat2_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			   DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv,
			   uint32_t va_type, DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			   DAT_VADDR *registered_address)
{
	if (va_type == DAT2_VA_TYPE_ZB)
		return core_unsupported(CORE_ARG(lmr_create, 7, va_type), "zero-based addresses");
	if (va_type != DAT2_VA_TYPE_VA)
		return dat2_status(core_bad_arg(CORE_ARG(lmr_create, 7, va_type),
						"%u is no DAT_VA_TYPE", va_type));
	return dat2_status(
		dat2_shift_arg(core_lmr_create(ia, type, region, length, pz, priv, lmr, lmr_context,
					       rmr_context, registered_length, registered_address),
			       7, 1));
}

DAT_RETURN dat2_lmr_query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask, struct dat2_lmr_param *param)
{
	DAT_LMR_PARAM found;
	DAT_LMR_PARAM_MASK core_mask = DAT_LMR_FIELD_ALL;
	DAT_RETURN ret;

	if (mask & ~DAT2_LMR_FIELD_ALL)
		core_mask = mask;
	ret = core_lmr_query(lmr, core_mask, param ? &found : NULL);
	if (ret != DAT_SUCCESS)
		return dat2_status_of_failure(ret);
	param->ia_handle = dat2_consumer_ia(found.ia_handle);
	param->mem_type = found.mem_type;
	param->region_desc = found.region_desc;
	param->length = found.length;
	param->pz_handle = found.pz_handle;
	param->mem_priv = found.mem_priv;
	param->va_type = DAT2_VA_TYPE_VA;
	param->lmr_context = found.lmr_context;
	param->rmr_context = found.rmr_context;
	param->registered_size = found.registered_size;
	param->registered_address = found.registered_address;
	return DAT_SUCCESS;
}

typedef DAT_RETURN sync_call(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN count);

static DAT_RETURN sync_all(sync_call *call, DAT_IA_HANDLE ia,
			   const struct dat2_lmr_triplet *segments, DAT_VLEN count)
{
	DAT_LMR_TRIPLET converted;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!count || !segments)
		return dat2_status(call(ia, NULL, count));
	for (DAT_VLEN i = 0; i < count && ret == DAT_SUCCESS; i++) {
		converted = dat2_local(&segments[i]);
		ret = call(ia, &converted, 1);
	}
	return dat2_status(ret);
}

DAT_RETURN dat2_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const struct dat2_lmr_triplet *segments,
				   DAT_VLEN count)
{
	return sync_all(core_lmr_sync_rdma_read, ia, segments, count);
}

DAT_RETURN dat2_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const struct dat2_lmr_triplet *segments,
				    DAT_VLEN count)
{
	return sync_all(core_lmr_sync_rdma_write, ia, segments, count);
}

DAT_RETURN dat2_rmr_query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask, struct dat2_rmr_param *param)
{
	DAT_RMR_PARAM_MASK core_mask = mask & DAT_RMR_FIELD_ALL;
	DAT_RMR_PARAM found;
	DAT_RETURN ret;

	if (mask & ~DAT2_RMR_FIELD_ALL)
		core_mask = mask;
	ret = core_rmr_query(rmr, core_mask, param ? &found : NULL);
	if (ret != DAT_SUCCESS)
		return dat2_status_of_failure(ret);
	param->ia_handle = dat2_consumer_ia(found.ia_handle);
	param->pz_handle = found.pz_handle;
	param->lmr_triplet = (struct dat2_lmr_triplet){
		.virtual_address = found.lmr_triplet.virtual_address,
		.segment_length = dat2_length(found.lmr_triplet.segment_length),
		.lmr_context = found.lmr_triplet.lmr_context,
	};
	param->mem_priv = found.mem_priv;
	param->rmr_context = found.rmr_context;
	param->rmr_scope = DAT2_RMR_SCOPE_PZ;
	param->va_type = DAT2_VA_TYPE_VA;
	return DAT_SUCCESS;
}

/* D2-RMR-02, D2-RMR-03 */
static DAT_RETURN bind_check_lmr(DAT_LMR_HANDLE handle, const struct dat2_lmr_triplet *triplet)
{
	struct core_lmr *lmr = core_handle_lock(handle, DAT_HANDLE_TYPE_LMR);
	bool is_same;

	if (!lmr)
		return core_bad_handle(CORE_ARG(rmr_bind, 2, lmr_handle), DAT_INVALID_HANDLE_LMR,
				       handle);
	is_same = atomic_load(&lmr->key) == triplet->lmr_context;
	core_handle_unlock(lmr->cell);
	return is_same ? DAT_SUCCESS
		       : core_bad_arg(CORE_ARG(rmr_bind, 3, lmr_triplet),
				      "lmr_context is not that of lmr_handle");
}

DAT_RETURN dat2_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr,
			 const struct dat2_lmr_triplet *triplet, DAT_MEM_PRIV_FLAGS priv,
			 uint32_t va_type, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	DAT_LMR_TRIPLET converted;
	DAT_RETURN ret = DAT_SUCCESS;

	if (triplet && triplet->segment_length)
		ret = bind_check_lmr(lmr, triplet);
	if (ret == DAT_SUCCESS && va_type == DAT2_VA_TYPE_ZB)
		return core_unsupported(CORE_ARG(rmr_bind, 5, va_type), "zero-based addresses");
	if (ret == DAT_SUCCESS && va_type != DAT2_VA_TYPE_VA)
		ret = core_bad_arg(CORE_ARG(rmr_bind, 5, va_type), "%u is no DAT_VA_TYPE", va_type);
	if (ret != DAT_SUCCESS)
		return dat2_status(ret);
	if (triplet)
		converted = dat2_local(triplet);
	ret = core_rmr_bind(rmr, triplet ? &converted : NULL, priv, ep, cookie, flags, context);
	/* lmr_handle is before lmr_triplet, and va_type before ep_handle */
	return dat2_status(dat2_shift_arg(dat2_shift_arg(ret, 4, 1), 2, 1));
}
