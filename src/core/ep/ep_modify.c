// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_modify. The call builds the modified parameters, checks all of them, and only then
 * replaces the protection zone, EVDs, attributes and queues. A refused call changes nothing.
 */
#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/ep/ep.h"
#include "core/ep/ep_attr.h"
#include "core/ep/ep_queue.h"
#include "core/ep/ep_state.h"
#include "core/ep/ep_stream.h"
#include "core/mem/pz.h"
#include "core/srq/srq.h"

#define MODIFY_NEVER                                                                               \
	(DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR |      \
	 DAT_EP_FIELD_LOCAL_PORT_QUAL | DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR |                       \
	 DAT_EP_FIELD_REMOTE_PORT_QUAL | DAT_EP_FIELD_SRQ_HANDLE)
#define MODIFY_NAMED                                                                               \
	(DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR | DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR |  \
	 DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR | DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR)

/* The watermark that an attribute sets. EP-CRSRQ-30: 0 also means no watermark. */
static DAT_COUNT watermark(DAT_COUNT attribute)
{
	return attribute ? attribute : DAT_WATERMARK_INFINITE;
}

/* The modified parameters. */
struct ep_change {
	DAT_EP_PARAM_MASK mask;
	struct core_ep_args args; /* the handles after the change */
	DAT_EP_ATTR attr;
};

static void change_take_attr(DAT_EP_PARAM_MASK mask, const DAT_EP_ATTR *from, DAT_EP_ATTR *to)
{
#define TAKE(bit, member)                                                                          \
	do {                                                                                       \
		if (mask & DAT_EP_FIELD_EP_ATTR_##bit)                                             \
			to->member = from->member;                                                 \
	} while (0)
	TAKE(SERVICE_TYPE, service_type);
	TAKE(MAX_MESSAGE_SIZE, max_message_size);
	TAKE(MAX_RDMA_SIZE, max_rdma_size);
	TAKE(QOS, qos);
	TAKE(RECV_COMPLETION_FLAGS, recv_completion_flags);
	TAKE(REQUEST_COMPLETION_FLAGS, request_completion_flags);
	TAKE(SRQ_SOFT_HW, srq_soft_hw);
	TAKE(MAX_RECV_DTOS, max_recv_dtos);
	TAKE(MAX_REQUEST_DTOS, max_request_dtos);
	TAKE(MAX_RECV_IOV, max_recv_iov);
	TAKE(MAX_REQUEST_IOV, max_request_iov);
	TAKE(MAX_RDMA_READ_IN, max_rdma_read_in);
	TAKE(MAX_RDMA_READ_OUT, max_rdma_read_out);
	TAKE(MAX_RDMA_READ_IOV, max_rdma_read_iov);
	TAKE(MAX_RDMA_WRITE_IOV, max_rdma_write_iov);
	TAKE(NUM_TRANSPORT_ATTR, ep_transport_specific_count);
	TAKE(NUM_PROVIDER_ATTR, ep_provider_specific_count);
#undef TAKE
}

#define MEMBER(member)                                                                             \
	{                                                                                          \
		"dat_ep_modify", "ep_param: " #member, 3                                           \
	}

static const struct core_ep_names modify_names = {
	.pz = MEMBER(pz_handle),
	.recv_evd = MEMBER(recv_evd_handle),
	.request_evd = MEMBER(request_evd_handle),
	.connect_evd = MEMBER(connect_evd_handle),
	.attr = CORE_ARG_INIT(ep_modify, 3, ep_param),
};

static void change_init(struct ep_change *change, const struct core_ep *ep, DAT_EP_PARAM_MASK mask,
			const DAT_EP_PARAM *param)
{
	struct core_ep_args *args = &change->args;

	memset(change, 0, sizeof(*change));
	change->mask = mask;
	args->names = &modify_names;
	args->pz = ep->pz ? ep->pz->cell : DAT_HANDLE_NULL;
	args->recv_evd = ep->recv_evd ? ep->recv_evd->cell : DAT_HANDLE_NULL;
	args->request_evd = ep->request_evd ? ep->request_evd->cell : DAT_HANDLE_NULL;
	args->connect_evd = ep->connect_evd ? ep->connect_evd->cell : DAT_HANDLE_NULL;
	if (mask & DAT_EP_FIELD_PZ_HANDLE)
		args->pz = param->pz_handle;
	if (mask & DAT_EP_FIELD_RECV_EVD_HANDLE)
		args->recv_evd = param->recv_evd_handle;
	if (mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE)
		args->request_evd = param->request_evd_handle;
	if (mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE)
		args->connect_evd = param->connect_evd_handle;
	change->attr = ep->attr;
	change_take_attr(mask, &param->ep_attr, &change->attr);
}

/* Does the change set a high watermark? */
static bool change_has_watermark(const struct ep_change *change)
{
	return ((change->mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW) &&
		watermark(change->attr.srq_soft_hw) != DAT_WATERMARK_INFINITE) ||
	       ((change->mask & DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS) &&
		watermark(change->attr.max_recv_dtos) != DAT_WATERMARK_INFINITE);
}

static DAT_RETURN change_check_values(const struct ep_change *change, const struct core_ep *ep)
{
	uint64_t posted = ep->recv.tail - ep->recv.head;
	DAT_RETURN ret;

	if ((change->mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW) && !ep->srq)
		return core_bad_arg(&modify_names.attr,
				    "srq_soft_hw of an endpoint without an SRQ"); /* EP-MODIFY-35 */
	ret = core_ep_attr_check(ep->ia, &change->attr, ep->srq, &modify_names.attr);
	if (ret != DAT_SUCCESS)
		return core_error(DAT_INVALID_PARAMETER,
				  DAT_INVALID_ARG3); /* EP-MODIFY-42: also for an unsupported QoS */
	if (ep->srq) {
		/* EP-WMARK-19: the device does not report how many buffers an endpoint holds */
		if (ep->srq->transport && change_has_watermark(change))
			return core_unsupported(&modify_names.attr,
						"the device has no high watermarks");
		return core_ep_attr_check_requests(&change->attr,
						   change->args.request_evd != DAT_HANDLE_NULL,
						   &modify_names.attr);
	} else if (!ep->is_provider_made) {
		ret = core_ep_attr_check_pairs(
			&change->attr, change->args.recv_evd != DAT_HANDLE_NULL,
			change->args.request_evd != DAT_HANDLE_NULL, &modify_names.attr);
		if (ret != DAT_SUCCESS)
			return ret;
	}
	if ((uint64_t)change->attr.max_recv_dtos < posted)
		return core_bad_arg(&modify_names.attr,
				    "max_recv_dtos %d is less than the %u that are posted",
				    (int)change->attr.max_recv_dtos, (unsigned int)posted);
	return DAT_SUCCESS;
}

static DAT_RETURN change_check_state(const struct ep_change *change, const struct core_ep *ep)
{
	DAT_EP_PARAM_MASK mask = change->mask;
	bool is_bad;

	is_bad = (mask & DAT_EP_FIELD_PZ_HANDLE) &&
		 core_ep_check_call(ep, CORE_CALL_MODIFY_PZ) != CORE_EP_OK;
	is_bad = is_bad || ((mask & MODIFY_NAMED) &&
			    core_ep_check_call(ep, CORE_CALL_MODIFY_NAMED) != CORE_EP_OK);
	is_bad = is_bad || ((mask & ~(DAT_EP_PARAM_MASK)(DAT_EP_FIELD_PZ_HANDLE | MODIFY_NAMED)) &&
			    core_ep_check_call(ep, CORE_CALL_MODIFY) != CORE_EP_OK);
	if (is_bad)
		return core_ep_bad_state(ep);
	if ((mask & DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS) && ep->recv.head != ep->recv.tail)
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_RECV);
	return DAT_SUCCESS;
}

static bool change_moves_queues(const struct core_ep *ep, const DAT_EP_ATTR *attr)
{
	return (!ep->srq && attr->max_recv_dtos != ep->attr.max_recv_dtos) ||
	       attr->max_request_dtos != ep->attr.max_request_dtos ||
	       attr->max_recv_iov != ep->attr.max_recv_iov ||
	       attr->max_request_iov != ep->attr.max_request_iov ||
	       attr->max_rdma_read_iov != ep->attr.max_rdma_read_iov ||
	       attr->max_rdma_write_iov != ep->attr.max_rdma_write_iov;
}

/* Sets only the watermarks that the mask selects. dat_ep_set_watermark may have set the other one
 * to 0. Its attribute cannot express that, because there 0 means no watermark. */
static void change_set_watermarks(DAT_EP_PARAM_MASK mask, struct core_ep *ep)
{
	if (!ep->srq)
		return;
	if (mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW)
		core_ep_set_soft_watermark(ep, watermark(ep->attr.srq_soft_hw));
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS)
		ep->hard_watermark = watermark(ep->attr.max_recv_dtos);
}

/* Replaces the zone, the streams and the attributes of the endpoint. */
static void change_install(const struct ep_change *change, struct core_ep *ep, struct core_pz *pz,
			   const struct core_ep_streams *streams)
{
	const struct core_ep_streams before = {ep->recv_evd, ep->request_evd, ep->connect_evd};

	core_ep_streams_detach(&before, &ep->attr);
	if (ep->pz)
		core_pz_unuse(ep->pz);
	ep->pz = pz;
	ep->cached_source = CORE_MEM_CACHE_EMPTY; /* checked for the old zone */
	ep->cached_target = CORE_MEM_CACHE_EMPTY;
	ep->recv_evd = streams->recv;
	ep->request_evd = streams->request;
	ep->connect_evd = streams->connect;
	ep->attr = change->attr;
	core_ep_attr_fill(ep->ia, &ep->attr);
	change_set_watermarks(change->mask, ep);
	core_ep_update_slow_reasons(ep);
}

static DAT_RETURN change_apply(const struct ep_change *change, struct core_ep *ep)
{
	struct core_ep_streams streams;
	struct core_pz *pz = NULL;
	DAT_RETURN ret;

	if (change->args.pz != DAT_HANDLE_NULL) {
		pz = core_pz_use(change->args.pz, ep->ia);
		if (!pz)
			return core_bad_arg(&modify_names.pz, "no live zone of the instance");
	}
	ret = core_ep_streams_attach(ep->ia, &change->args, &change->attr, ep, &streams);
	if (ret != DAT_SUCCESS) {
		/* EP-MODIFY-43: the handles are part of a parameter */
		ret = core_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		goto unuse_pz;
	}
	if (change_moves_queues(ep, &change->attr))
		ret = core_ep_size_queues(ep, &change->attr);
	if (ret != DAT_SUCCESS)
		goto detach_streams;
	change_install(change, ep, pz, &streams);
	return DAT_SUCCESS;

detach_streams:
	core_ep_streams_detach(&streams, &change->attr);
unuse_pz:
	if (pz)
		core_pz_unuse(pz);
	return ret;
}

DAT_RETURN core_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask,
			  const DAT_EP_PARAM *param)
{
	CORE_NO_CANCELLATION;
	struct core_ep *ep = core_handle_lock(ep_handle, DAT_HANDLE_TYPE_EP);
	struct ep_change change;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return core_bad_handle(CORE_ARG(ep_modify, 1, ep_handle), DAT_INVALID_HANDLE_EP,
				       ep_handle);
	if ((mask & ~DAT_EP_FIELD_ALL) || (mask & MODIFY_NEVER))
		ret = core_bad_bits(CORE_ARG(ep_modify, 2, ep_param_mask), mask,
				    DAT_EP_FIELD_ALL & ~MODIFY_NEVER);
	else if (mask && !param)
		ret = core_bad_null(&modify_names.attr);
	else if (mask) {
		change_init(&change, ep, mask, param);
		core_ep_attr_fill(ep->ia, &change.attr);
		ret = change_check_values(&change, ep);
		if (ret == DAT_SUCCESS)
			ret = change_check_state(&change, ep);
		if (ret == DAT_SUCCESS)
			ret = change_apply(&change, ep);
	}
	core_handle_unlock(ep->cell);
	return ret;
}
