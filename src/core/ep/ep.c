// SPDX-License-Identifier: BSD-2-Clause
/* Endpoints: creation, destruction and queries. */
#include "core/ep/ep.h"
#include "core/ep/ep_attr.h"
#include "core/ep/ep_queue.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/ep/ep_state.h"
#include "core/ep/ep_stream.h"
#include "core/event/evd.h"
#include "core/mem/pz.h"
#include "core/srq/srq.h"

/* --- creation --- */

static bool ep_has_recv(const struct core_ep_args *args)
{
	return args->recv_evd != DAT_HANDLE_NULL || args->is_provider_made;
}

static bool ep_has_request(const struct core_ep_args *args)
{
	return args->request_evd != DAT_HANDLE_NULL || args->is_provider_made;
}

/* The attributes that the endpoint gets if ep_check_args() accepts them. */
static void ep_take_attr(struct core_ia *ia, const struct core_ep_args *args, DAT_EP_ATTR *attr_out)
{
	if (!args->attr) {
		core_ep_attr_defaults(ia, ep_has_recv(args), ep_has_request(args), attr_out);
		return;
	}
	*attr_out = *args->attr;
	core_ep_attr_fill(ia, attr_out);
	if (!args->has_srq)
		attr_out->srq_soft_hw = DAT_HW_DEFAULT; /* EP-CREATE-81 */
	attr_out->ep_transport_specific = NULL;
	attr_out->ep_provider_specific = NULL;
}

static DAT_RETURN ep_check_args(struct core_ia *ia, const struct core_ep_args *args)
{
	const struct core_arg *name = args->names ? &args->names->attr : NULL;
	DAT_RETURN ret;

	if (args->needs_attr && !args->attr)
		return core_bad_null(name);
	if (args->has_no_result)
		return core_bad_null(&args->names->result);
	if (!args->attr)
		return DAT_SUCCESS;
	ret = core_ep_attr_check(ia, args->attr, args->has_srq, name);
	if (ret != DAT_SUCCESS)
		return ret;
	if (args->has_srq)
		return core_ep_attr_check_requests(args->attr, ep_has_request(args), name);
	return core_ep_attr_check_pairs(args->attr, ep_has_recv(args), ep_has_request(args), name);
}

static void ep_delete(struct core_ep *ep)
{
	core_ep_free_queues(ep);
	free(ep->srq_user.taken.iov);
	free(ep->private_data);
	free(ep->counted_before);
	core_line_free(ep);
}

/* EP-CRSRQ-30: with an SRQ, two attributes set the watermarks; 0 also means no watermark. */
static void ep_start_watermarks(struct core_ep *ep)
{
	DAT_COUNT soft =
		ep->srq && ep->attr.srq_soft_hw ? ep->attr.srq_soft_hw : DAT_WATERMARK_INFINITE;
	DAT_COUNT hard =
		ep->srq && ep->attr.max_recv_dtos ? ep->attr.max_recv_dtos : DAT_WATERMARK_INFINITE;

	core_ep_set_soft_watermark(ep, soft);
	ep->hard_watermark = hard;
}

/* Allocates the endpoint, its queues and its cell. The handle is not valid yet. */
static struct core_ep *ep_alloc(struct core_ia *ia, const struct core_ep_args *args,
				struct core_srq *srq, const DAT_EP_ATTR *attr)
{
	struct core_ep *ep = core_line_alloc(1, sizeof(*ep) + transport_this->ep_size);

	if (!ep)
		return NULL;
	ep->ia = ia;
	ep->attr = *attr;
	ep->is_provider_made = args->is_provider_made;
	ep->takes = (uint8_t)ia->adapter->front->takes;
	ep->srq = srq;
	ep->cached_source = CORE_MEM_CACHE_EMPTY;
	ep->cached_target = CORE_MEM_CACHE_EMPTY;
	core_ep_start(ep);
	ep_start_watermarks(ep);
	if (srq) {
		ep->srq_user.taken.iov = calloc(srq->iov_max, sizeof(*ep->srq_user.taken.iov));
		if (!ep->srq_user.taken.iov)
			goto delete_ep;
	}
	ep->private_data = malloc(CORE_PRIVATE_MAX);
	if (!ep->private_data || core_ep_size_queues(ep, attr) != DAT_SUCCESS)
		goto delete_ep;
	ep->cell = core_handle_alloc(&ia->adapter->provider, ia, ep);
	ep->srq_user.cell = ep->cell;
	if (ep->cell)
		return ep;
delete_ep:
	ep_delete(ep);
	return NULL;
}

/* Makes the transport's object and the handle. The caller has counted the use of other objects. */
static DAT_RETURN ep_finish(struct core_ep *ep)
{
	struct core_ia *ia = ep->ia;
	DAT_RETURN ret = core_status_from_errno(transport_this->ep_create(ep));

	if (ret != DAT_SUCCESS)
		return ret;
	core_ep_update_slow_reasons(ep);
	core_handle_set_slow(ep->cell, CORE_EP_SLOW_CONN);
	if (ep->is_provider_made)
		core_ia_count_tentative(ia, 1);
	ret = core_ia_add(ia, ep->cell, DAT_HANDLE_TYPE_EP);
	if (ret == DAT_SUCCESS)
		return ret;
	if (ep->is_provider_made)
		core_ia_count_tentative(ia, -1);
	transport_this->ep_detach(ep);
	transport_this->ep_destroy(ep);
	return ret;
}

/* The objects that an endpoint uses. Each counts its users. */
struct ep_uses {
	struct core_pz *pz;
	struct core_srq *srq;
	struct core_ep_streams streams;
};

static void ep_unuse(const struct ep_uses *uses, const DAT_EP_ATTR *attr)
{
	core_ep_streams_detach(&uses->streams, attr);
	if (uses->srq)
		core_srq_unuse(uses->srq);
	if (uses->pz)
		core_pz_unuse(uses->pz);
}

static DAT_RETURN ep_use(struct core_ia *ia, const struct core_ep_args *args,
			 const DAT_EP_ATTR *attr, struct ep_uses *uses)
{
	DAT_RETURN ret = DAT_SUCCESS;

	memset(uses, 0, sizeof(*uses));
	if (args->pz != DAT_HANDLE_NULL) {
		uses->pz = core_pz_use(args->pz, ia);
		if (!uses->pz)
			return core_bad_handle(&args->names->pz, DAT_INVALID_HANDLE_PZ, args->pz);
	}
	if (args->has_srq)
		ret = core_srq_use(args->srq, ia, &uses->srq);
	if (ret == DAT_SUCCESS && uses->srq && uses->pz && uses->srq->pz != uses->pz &&
	    !ia->provider_attr.srq_ep_pz_difference_supported)
		ret = core_bad_arg(&args->names->pz, "%s is not that of the SRQ",
				   core_handle_name(args->pz).text); /* EP-CRSRQ-18 */
	if (ret == DAT_SUCCESS)
		ret = core_ep_streams_attach(ia, args, attr, NULL, &uses->streams);
	if (ret != DAT_SUCCESS)
		ep_unuse(uses, attr);
	return ret;
}

DAT_RETURN core_ep_new(struct core_ia *ia, const struct core_ep_args *args, struct core_ep **ep_out)
{
	struct ep_uses uses;
	struct core_ep *ep;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	ep_take_attr(ia, args, &attr);
	ret = ep_use(ia, args, &attr, &uses);
	if (ret != DAT_SUCCESS)
		return ret;
	ret = ep_check_args(ia, args); /* GEN-19: handles are checked before parameters */
	if (ret != DAT_SUCCESS)
		goto unuse;
	ret = core_no_resources(DAT_RESOURCE_MEMORY);
	ep = ep_alloc(ia, args, uses.srq, &attr);
	if (!ep)
		goto unuse;
	ep->pz = uses.pz;
	ep->recv_evd = uses.streams.recv;
	ep->request_evd = uses.streams.request;
	ep->connect_evd = uses.streams.connect;
	ret = ep_finish(ep);
	if (ret != DAT_SUCCESS)
		goto release_cell;
	*ep_out = ep;
	return DAT_SUCCESS;

release_cell:
	core_handle_release(ep->cell);
	ep_delete(ep);
unuse:
	ep_unuse(&uses, &attr);
	return ret;
}

static DAT_RETURN ep_bad_ia(const char *call, DAT_IA_HANDLE handle)
{
	const struct core_arg arg = {call, "ia_handle", 1};

	return core_bad_handle(&arg, DAT_INVALID_HANDLE_IA, handle);
}

static DAT_RETURN ep_create(DAT_IA_HANDLE ia_handle, const struct core_ep_args *args,
			    DAT_EP_HANDLE *ep_handle)
{
	struct core_ia *ia = core_ia_enter(ia_handle);
	struct core_ep *ep = NULL;
	DAT_RETURN ret;

	if (!ia)
		return ep_bad_ia(args->names->attr.call, ia_handle);
	if (args->has_srq && !ia->provider_attr.srq_supported) /* EP-CRSRQ-46 */
		ret = core_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	else
		ret = core_ep_new(ia, args, &ep);
	if (ret == DAT_SUCCESS)
		*ep_handle = ep->cell;
	core_ia_leave(ia);
	return ret;
}

#define EP_CREATE_NAMES(call, attr_number, result_number)                                          \
	{                                                                                          \
		.pz = CORE_ARG_INIT(call, 2, pz_handle),                                           \
		.recv_evd = CORE_ARG_INIT(call, 3, recv_evd_handle),                               \
		.request_evd = CORE_ARG_INIT(call, 4, request_evd_handle),                         \
		.connect_evd = CORE_ARG_INIT(call, 5, connect_evd_handle),                         \
		.attr = CORE_ARG_INIT(call, attr_number, ep_attributes),                           \
		.result = CORE_ARG_INIT(call, result_number, ep_handle),                           \
	}

DAT_RETURN core_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				   DAT_EVD_HANDLE recv_evd_handle,
				   DAT_EVD_HANDLE request_evd_handle,
				   DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
				   const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	CORE_NO_CANCELLATION;
	static const struct core_ep_names names = EP_CREATE_NAMES(ep_create_with_srq, 7, 8);
	const struct core_ep_args args = {.pz = pz_handle,
					  .recv_evd = recv_evd_handle,
					  .request_evd = request_evd_handle,
					  .connect_evd = connect_evd_handle,
					  .srq = srq_handle,
					  .has_srq = true,
					  .attr = ep_attributes,
					  .needs_attr = true,
					  .has_no_result = !ep_handle,
					  .names = &names};

	return ep_create(ia_handle, &args, ep_handle);
}

DAT_RETURN core_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			  DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
			  DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes,
			  DAT_EP_HANDLE *ep_handle)
{
	CORE_NO_CANCELLATION;
	static const struct core_ep_names names = EP_CREATE_NAMES(ep_create, 6, 7);
	const struct core_ep_args args = {.pz = pz_handle,
					  .recv_evd = recv_evd_handle,
					  .request_evd = request_evd_handle,
					  .connect_evd = connect_evd_handle,
					  .attr = ep_attributes,
					  .has_no_result = !ep_handle,
					  .names = &names};

	return ep_create(ia_handle, &args, ep_handle);
}

/* --- destruction --- */

void core_ep_destroy_locked(struct core_ep *ep)
{
	const struct ep_uses uses = {
		ep->pz, ep->srq, {ep->recv_evd, ep->request_evd, ep->connect_evd}};
	const DAT_EP_ATTR attr = ep->attr;
	bool is_tentative = ep->state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
	struct core_handle *cell = ep->cell;
	struct core_ia *ia = ep->ia;

	core_handle_kill_locked(cell);
	transport_this->ep_detach(ep);
	if (ep->srq)
		core_srq_cancel_wait(ep->srq, &ep->srq_user);
	core_handle_unlock(cell);
	transport_this->ep_destroy(ep);
	core_ep_drop_binds(ep);
	if (ep->srq_user.has_taken) /* EP-FREE-26 */
		core_srq_return_one(ep->srq);
	ep_delete(ep);
	ep_unuse(&uses, &attr);
	if (is_tentative)
		core_ia_count_tentative(ia, -1);
	core_ia_remove(ia, cell, DAT_HANDLE_TYPE_EP);
	core_handle_release(cell);
}

DAT_RETURN core_ep_free(DAT_EP_HANDLE ep_handle)
{
	CORE_NO_CANCELLATION;
	struct core_ep *ep = core_handle_lock(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret;

	if (!ep)
		return core_bad_handle(CORE_ARG(ep_free, 1, ep_handle), DAT_INVALID_HANDLE_EP,
				       ep_handle);
	if (core_ep_check_call(ep, CORE_CALL_FREE) != CORE_EP_OK) {
		ret = core_ep_bad_state(ep);
		core_handle_unlock(ep->cell);
		return ret;
	}
	core_ep_destroy_locked(ep);
	return DAT_SUCCESS;
}

/* --- locking by reference --- */

struct core_ep *core_ep_enter(struct core_ref ref)
{
	return core_handle_lock_ref(ref, DAT_HANDLE_TYPE_EP);
}

void core_ep_leave(struct core_ep *ep)
{
	core_handle_unlock(ep->cell);
}

bool core_ep_is_watched(const struct core_ep *ep)
{
	return (ep->request_evd && core_evd_is_watched(ep->request_evd)) ||
	       (ep->recv_evd && core_evd_is_watched(ep->recv_evd));
}

void core_ep_offer(struct core_ref ref)
{
	struct core_ep *ep = core_ep_enter(ref);

	if (!ep)
		return;
	ep->srq_user.has_asked = false;
	transport_this->post_recv(ep);
	core_srq_end_offer(ep->srq, &ep->srq_user);
	core_ep_leave(ep);
}

/* --- queries --- */

static void ep_fill_param(struct core_ep *ep, DAT_EP_PARAM *param)
{
	param->ia_handle = ep->ia->cell;
	param->ep_state = ep->state;
	param->local_ia_address_ptr = ep->ia->attr.ia_address_ptr;
	param->local_port_qual = ep->local_port;
	param->remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ep->remote_address.sa;
	param->remote_port_qual = ep->remote_port;
	param->pz_handle = ep->pz ? ep->pz->cell : DAT_HANDLE_NULL;
	param->recv_evd_handle = ep->recv_evd ? ep->recv_evd->cell : DAT_HANDLE_NULL;
	param->request_evd_handle = ep->request_evd ? ep->request_evd->cell : DAT_HANDLE_NULL;
	param->connect_evd_handle = ep->connect_evd ? ep->connect_evd->cell : DAT_HANDLE_NULL;
	param->srq_handle = ep->srq ? ep->srq->cell : DAT_HANDLE_NULL;
	param->ep_attr = ep->attr;
}

/* EP-QUERY-04: unknown bits of the mask are ignored. All members are filled in anyway. */
DAT_RETURN core_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param)
{
	CORE_NO_CANCELLATION;
	struct core_ep *ep = core_handle_lock(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = DAT_SUCCESS;

	(void)mask;
	if (!ep)
		return core_bad_handle(CORE_ARG(ep_query, 1, ep_handle), DAT_INVALID_HANDLE_EP,
				       ep_handle);
	if (!param)
		ret = core_bad_null(CORE_ARG(ep_query, 3, ep_param));
	else
		ep_fill_param(ep, param);
	core_handle_unlock(ep->cell);
	return ret;
}

struct core_ep *core_ep_lock_driven(DAT_EP_HANDLE ep_handle)
{
	struct core_ep *ep = core_handle_lock(ep_handle, DAT_HANDLE_TYPE_EP);

	if (ep && (ep->req.head != ep->req.tail || core_ep_recv_count(ep)))
		ep = core_ep_drive(ep);
	return ep;
}

DAT_RETURN core_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			      DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	CORE_NO_CANCELLATION;
	struct core_ep *ep = core_ep_lock_driven(ep_handle);

	if (!ep)
		return core_bad_handle(CORE_ARG(ep_get_status, 1, ep_handle), DAT_INVALID_HANDLE_EP,
				       ep_handle);
	if (ep_state)
		*ep_state = ep->state;
	if (recv_idle)
		*recv_idle = core_ep_recv_count(ep) ? DAT_FALSE : DAT_TRUE;
	if (request_idle)
		*request_idle = ep->req.head == ep->req.tail ? DAT_TRUE : DAT_FALSE;
	core_handle_unlock(ep->cell);
	return DAT_SUCCESS;
}

/* EP-RECVQ-06: Receives complete in order, so the span equals the number of buffers. */
DAT_RETURN core_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
			      DAT_COUNT *bufs_alloc_span)
{
	CORE_NO_CANCELLATION;
	struct core_ep *ep = core_ep_lock_driven(ep_handle);
	DAT_COUNT held;

	if (!ep)
		return core_bad_handle(CORE_ARG(ep_recv_query, 1, ep_handle), DAT_INVALID_HANDLE_EP,
				       ep_handle);
	held = (DAT_COUNT)core_ep_recv_count(ep);
	if (ep->srq && ep->srq->transport)
		held = DAT_VALUE_UNKNOWN; /* EP-RECVQ-14: the device does not report it */
	if (nbufs_allocated)
		*nbufs_allocated = held;
	if (bufs_alloc_span)
		*bufs_alloc_span = held;
	core_handle_unlock(ep->cell);
	return DAT_SUCCESS;
}
