// SPDX-License-Identifier: BSD-2-Clause
/* When an endpoint is on the express way (express.h). */
#include "core/express.h"

#include "core/transport.h"

bool core_ep_express_begin(struct core_ep *ep)
{
	const DAT_EP_ATTR *attr = &ep->attr;

	assert(ep->req.head == ep->req.tail);
	if (ep->state != DAT_EP_STATE_CONNECTED || ep->is_breaking || !ep->request_evd ||
	    attr->max_request_iov < 1 || attr->max_rdma_write_iov < 1 ||
	    (attr->max_recv_iov < 1 && ep->recv.capacity) || ep->is_soft_armed ||
	    ep->hard_watermark != DAT_WATERMARK_INFINITE || !core_lock_is_tried(&ep->cell->lock))
		return false;
	ep->cell->express = CORE_TAG(DAT_HANDLE_TYPE_EP);
	return true;
}

__attribute__((noinline)) void core_ep_express_over(struct core_ep *ep)
{
	ep->cell->express = 0;
	transport_this->express_over(ep);
}

void core_ia_express_end(struct core_ia *ia)
{
	struct core_handle *cell;

	atomic_store(&ia->express, NULL);
	core_lock_acquire(&ia->cell->lock);
	for (cell = ia->objects[DAT_HANDLE_TYPE_EVD].first; cell; cell = cell->next) {
		core_lock_acquire(&cell->lock);
		cell->express = 0;
		core_lock_release(&cell->lock);
	}
	core_lock_release(&ia->cell->lock);
}
