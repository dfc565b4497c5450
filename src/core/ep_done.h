// SPDX-License-Identifier: BSD-2-Clause
/*
 * The usual completions, compiled into the transports: of the oldest request, which was good, and
 * of a Receive that was posted to the endpoint itself. core_req_done and core_recv_done
 * (ep_queue.c) do the same, and all the rest. The endpoint is locked.
 */
#ifndef CORE_EP_DONE_H
#define CORE_EP_DONE_H

#include "core/ep.h"
#include "core/evd.h"

/* Raises what was done before the oldest request, and waited for it. */
void core_req_raise_done(struct core_ep *ep);

/* May the oldest request be ended by core_req_done_usual? An endpoint that the provider has made
 * may lack dispatchers. */
CORE_INLINE bool core_req_is_usual(const struct core_ep *ep, const struct core_req *req)
{
	return req->op != CORE_OP_BIND && !ep->is_breaking && ep->request_evd;
}

/* The oldest request was carried out. */
CORE_INLINE void core_req_done_usual(struct core_ep *ep, struct core_req *req)
{
	uint64_t next = ep->req.head + 1;

	assert(!req->is_done);
	req->is_done = true;
	ep->req.head = next; /* first: the slot is free when the event can be seen (DTO-114) */
	if (!(req->flags & DAT_COMPLETION_SUPPRESS_FLAG))
		core_evd_post_dto(ep->request_evd, ep->cell, req->cookie, DAT_DTO_SUCCESS, req->len,
				  !(req->flags & DAT_COMPLETION_UNSIGNALLED_FLAG),
				  (struct core_ref){NULL, 0});
	if (next != ep->req.tail)
		core_req_raise_done(ep);
}

/* Is a good Receive a notification? */
CORE_INLINE bool core_recv_is_notifying(const struct core_ep *ep, const struct core_wqe *wqe,
					bool is_solicited)
{
	if (ep->attr.recv_completion_flags == DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return is_solicited;
	return !(wqe->flags & DAT_COMPLETION_UNSIGNALLED_FLAG);
}

/* May the next message's Receive be ended by core_recv_done_usual? */
CORE_INLINE bool core_recv_is_usual(const struct core_ep *ep)
{
	return !ep->srq && ep->recv_evd && ep->recv.head != ep->recv.tail;
}

/* The oldest Receive was filled. */
CORE_INLINE void core_recv_done_usual(struct core_ep *ep, DAT_VLEN len, bool is_solicited)
{
	const struct core_wqe *wqe = &ep->recv.slots[ep->recv.head & ep->recv.mask];

	ep->recv.head++;
	core_evd_post_dto(ep->recv_evd, ep->cell, wqe->cookie, DAT_DTO_SUCCESS, len,
			  core_recv_is_notifying(ep, wqe, is_solicited),
			  (struct core_ref){NULL, 0});
}

#endif
