// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reserved service points: dat_rsp_create, dat_rsp_free, dat_rsp_query. The endpoint becomes
 * RESERVED before the service point listens, because a request may arrive at once.
 */
#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/conn/sp.h"
#include "core/ep/ep_state.h"

/* Reserves the endpoint. Its lock is not held at return. */
static DAT_RETURN rsp_reserve(struct core_ia *ia, DAT_EP_HANDLE ep_handle, struct core_ref *ref_out)
{
	struct core_ep *ep = core_handle_lock_in(ep_handle, DAT_HANDLE_TYPE_EP, ia);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return core_bad_handle(CORE_ARG(rsp_create, 3, ep_handle), DAT_INVALID_HANDLE_EP,
				       ep_handle);
	*ref_out = core_handle_ref(ep->cell);
	if (core_ep_check_call(ep, CORE_CALL_RESERVE) != CORE_EP_OK)
		ret = core_ep_bad_state(ep);
	else
		(void)core_ep_move(ep, CORE_EP_RESERVE);
	core_ep_leave(ep);
	return ret;
}

/* Checks handles and parameters before anything changes. */
static DAT_RETURN rsp_check(struct core_ia *ia, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep_handle,
			    DAT_EVD_HANDLE evd_handle, const DAT_RSP_HANDLE *rsp_handle)
{
	struct core_ep *ep;

	if (ep_handle != DAT_HANDLE_NULL) {
		ep = core_handle_lock(ep_handle, DAT_HANDLE_TYPE_EP);
		if (!ep)
			return core_bad_handle(CORE_ARG(rsp_create, 3, ep_handle),
					       DAT_INVALID_HANDLE_EP, ep_handle);
		core_ep_leave(ep);
	}
	if (!core_evd_suits(evd_handle, ia, DAT_EVD_CR_FLAG))
		return core_bad_handle(CORE_ARG(rsp_create, 4, evd_handle),
				       DAT_INVALID_HANDLE_EVD_CR, evd_handle);
	if (!qual)
		return core_bad_arg(CORE_ARG(rsp_create, 2, conn_qual), "0");
	return rsp_handle ? DAT_SUCCESS : core_bad_null(CORE_ARG(rsp_create, 5, rsp_handle));
}

static DAT_RETURN rsp_new(struct core_ia *ia, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep_handle,
			  DAT_EVD_HANDLE evd_handle, struct core_sp **sp_out)
{
	struct core_sp_args args = {.evd_name = CORE_ARG(rsp_create, 4, evd_handle),
				    .qual = qual,
				    .is_rsp = true,
				    .ep_handle = ep_handle};
	DAT_RETURN ret = DAT_SUCCESS;

	if (ep_handle != DAT_HANDLE_NULL)
		ret = rsp_reserve(ia, ep_handle, &args.ep);
	if (ret != DAT_SUCCESS)
		return ret;
	ret = core_sp_new(ia, evd_handle, &args, sp_out);
	if (ret != DAT_SUCCESS && ep_handle != DAT_HANDLE_NULL)
		core_sp_unreserve(args.ep);
	return ret;
}

DAT_RETURN core_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			   DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			   DAT_RSP_HANDLE *rsp_handle)
{
	CORE_NO_CANCELLATION;
	struct core_ia *ia = core_ia_enter(ia_handle);
	struct core_sp *sp = NULL;
	DAT_RETURN ret;

	if (!ia)
		return core_bad_handle(CORE_ARG(rsp_create, 1, ia_handle), DAT_INVALID_HANDLE_IA,
				       ia_handle);
	ret = rsp_check(ia, conn_qual, ep_handle, evd_handle, rsp_handle);
	if (ret == DAT_SUCCESS)
		ret = rsp_new(ia, conn_qual, ep_handle, evd_handle, &sp);
	if (ret == DAT_SUCCESS)
		*rsp_handle = sp->cell;
	core_ia_leave(ia);
	return ret;
}

DAT_RETURN core_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	CORE_NO_CANCELLATION;

	return core_sp_free(CORE_ARG(rsp_free, 1, rsp_handle), rsp_handle, DAT_HANDLE_TYPE_RSP,
			    DAT_INVALID_HANDLE_RSP);
}

DAT_RETURN core_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param)
{
	CORE_NO_CANCELLATION;
	struct core_sp *sp = core_handle_lock(rsp_handle, DAT_HANDLE_TYPE_RSP);
	DAT_RETURN ret;

	if (!sp)
		return core_bad_handle(CORE_ARG(rsp_query, 1, rsp_handle), DAT_INVALID_HANDLE_RSP,
				       rsp_handle);
	ret = core_check_query(CORE_ARG(rsp_query, 2, rsp_param_mask), mask, DAT_RSP_FIELD_ALL,
			       CORE_ARG(rsp_query, 3, rsp_param), param);
	if (ret == DAT_SUCCESS) {
		param->ia_handle = sp->ia->cell;
		param->conn_qual = sp->conn_qual;
		param->evd_handle = sp->evd->cell;
		param->ep_handle = sp->ep_handle;
	}
	core_handle_unlock(sp->cell);
	return ret;
}
