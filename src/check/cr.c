// SPDX-License-Identifier: BSD-2-Clause
/* Connection requests. Their objects are made when the event is taken (evd.c). */
#include "check/ep.h"
#include "check/limits.h"
#include "check/object.h"

/* The endpoint that comes with the request: the program's of an RSP, or one of the provider. */
static DAT_EP_HANDLE endpoint_of(struct check_object *cr, DAT_EP_HANDLE inner)
{
	struct check_object *ep = check_outer_object(inner);

	if (!inner || (ep && !ep->is_dead))
		return ep;
	ep = check_ep_make("dat_cr_query", cr->ia, inner);
	if (!ep)
		return inner;
	check_lock();
	cr->life->cr.ep = ep;
	check_unlock();
	return ep;
}

DAT_RETURN check_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
			  DAT_CR_PARAM *cr_param)
{
	struct check_call call;
	struct check_object *cr =
		check_begin(&call, CHECK_CALL_cr_query, cr_handle, DAT_HANDLE_TYPE_CR);
	DAT_RETURN ret = dat_cr_query(check_inner(cr_handle), cr_param_mask, cr_param);

	if (ret == DAT_SUCCESS && cr && (cr_param_mask & DAT_CR_FIELD_LOCAL_EP_HANDLE))
		cr_param->local_ep_handle = endpoint_of(cr, cr_param->local_ep_handle);
	return check_end(&call, ret);
}

static void note_accept_locked(struct check_object *ep, DAT_RETURN result)
{
	check_step_locked(ep, "dat_cr_accept", result);
	if (result == DAT_SUCCESS && ep->type == DAT_HANDLE_TYPE_EP)
		ep->life->ep.flow.is_passive = true;
}

DAT_RETURN check_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			   DAT_COUNT private_data_size, const DAT_PVOID private_data)
{
	struct check_call call;
	struct check_object *ep = check_find(ep_handle);
	DAT_RETURN ret;

	check_begin(&call, CHECK_CALL_cr_accept, cr_handle, DAT_HANDLE_TYPE_CR);
	check_limit(&call, call.object, CHECK_LIMIT_PRIVATE_DATA, "private_data_size",
		    private_data_size);
	ret = dat_cr_accept(check_inner(cr_handle), check_inner(ep_handle), private_data_size,
			    private_data);
	if (ep) {
		check_lock();
		if (!ep->is_dead)
			note_accept_locked(ep, ret);
		check_unlock();
	}
	return check_end_free(&call, ret);
}

DAT_RETURN check_cr_reject(DAT_CR_HANDLE cr_handle)
{
	struct check_call call;
	struct check_object *cr =
		check_begin(&call, CHECK_CALL_cr_reject, cr_handle, DAT_HANDLE_TYPE_CR);
	DAT_RETURN ret = dat_cr_reject(check_inner(cr_handle));

	/* an endpoint that the provider has made vanishes with its request */
	if (ret == DAT_SUCCESS && cr && cr->life->cr.ep)
		check_ep_kill(cr->life->cr.ep);
	return check_end_free(&call, ret);
}

DAT_RETURN check_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_cr_handoff, cr_handle, DAT_HANDLE_TYPE_CR);
	return check_end_free(&call, dat_cr_handoff(check_inner(cr_handle), handoff));
}
