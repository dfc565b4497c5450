// SPDX-License-Identifier: BSD-2-Clause
/*
 * High watermarks: limits for the Receives that an endpoint holds. Above the soft one an event is
 * raised, once for each time it is set. Above the hard one the connection is broken. An endpoint
 * holds its posted Receives or, with an SRQ, the buffers it has taken.
 */
#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/ep/ep.h"
#include "core/event/async.h"
#include "core/srq/srq.h"

bool core_ep_check_watermarks(struct core_ep *ep)
{
	DAT_COUNT held = (DAT_COUNT)core_ep_recv_count(ep);
	bool is_open =
		ep->state == DAT_EP_STATE_CONNECTED || ep->state == DAT_EP_STATE_DISCONNECT_PENDING;

	if (ep->is_soft_armed && held > ep->soft_watermark) {
		ep->is_soft_armed = false;
		core_ep_update_slow_reasons(ep);
		core_ia_async_event(ep->ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, ep->cell,
				    DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	}
	if (!is_open || ep->hard_watermark == DAT_WATERMARK_INFINITE || held <= ep->hard_watermark)
		return true;
	ep->ia->ops->abort(ep);
	return false;
}

void core_ep_set_soft_watermark(struct core_ep *ep, DAT_COUNT soft)
{
	ep->soft_watermark = soft;
	ep->is_soft_armed = soft != DAT_WATERMARK_INFINITE;
}

DAT_RETURN core_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
				 DAT_COUNT hard_high_watermark)
{
	CORE_NO_CANCELLATION;
	struct core_ep *ep = core_ep_lock_driven(ep_handle);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return core_bad_handle(CORE_ARG(ep_set_watermark, 1, ep_handle),
				       DAT_INVALID_HANDLE_EP, ep_handle);
	if (soft_high_watermark < DAT_WATERMARK_INFINITE) {
		ret = core_bad_arg(CORE_ARG(ep_set_watermark, 2, soft_high_watermark),
				   "%d is negative and not DAT_WATERMARK_INFINITE",
				   (int)soft_high_watermark);
	} else if (hard_high_watermark < DAT_WATERMARK_INFINITE) {
		ret = core_bad_arg(CORE_ARG(ep_set_watermark, 3, hard_high_watermark),
				   "%d is negative and not DAT_WATERMARK_INFINITE",
				   (int)hard_high_watermark);
	} else if (ep->srq && ep->srq->transport &&
		   (soft_high_watermark != DAT_WATERMARK_INFINITE ||
		    hard_high_watermark != DAT_WATERMARK_INFINITE)) {
		/* EP-WMARK-19: the device does not report how many buffers an endpoint holds */
		ret = core_unsupported(CORE_ARG(ep_set_watermark, 2, soft_high_watermark),
				       "the device has no high watermarks");
	} else {
		core_ep_set_soft_watermark(ep, soft_high_watermark);
		ep->hard_watermark = hard_high_watermark;
		ep->attr.srq_soft_hw = soft_high_watermark;
		if (ep->srq)
			ep->attr.max_recv_dtos = hard_high_watermark;
		core_ep_update_slow_reasons(ep);
		(void)core_ep_check_watermarks(ep);
	}
	core_handle_unlock(ep->cell);
	return ret;
}
