// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the fast paths of all transports share, compiled into them: taking a request slot,
 * completing the oldest request and completing the oldest Receive, each good. core_req_done and
 * core_recv_done (ep_queue.c) complete everything else. The endpoint is locked, and its cell's
 * slow_reasons are 0 but for those of a transport that says so.
 *
 * A completion goes to `dequeue` if a dequeue has found it (evd.h), else, with NULL, into the
 * dispatcher's queue. False: that dispatcher cannot take it now, nothing has changed, and the
 * general path follows.
 */
#ifndef CORE_EP_FAST_H
#define CORE_EP_FAST_H

#include "core/ep/ep.h"
#include "core/event/evd.h"

/* What a transport is told of a post on its fast path, beside its slot (data_path.h). */
struct core_fast_post {
	enum core_op op;	 /* of a request */
	uint64_t number;	 /* of the request, or the Receive, on its endpoint, from 0 */
	DAT_LMR_TRIPLET segment; /* the only one */
	DAT_RMR_TRIPLET remote;	 /* of an RDMA Write; without its length */
};

/* Gives a good completion of the endpoint of that cell to its dispatcher. */
CORE_INLINE bool core_ep_give_dto(struct core_handle *cell, struct core_evd *evd,
				  struct core_dequeue *dequeue, DAT_DTO_COOKIE cookie, DAT_VLEN len)
{
	if (dequeue)
		return core_evd_give_dto(evd, dequeue, cell, cookie, len);
	core_evd_post_dto(evd, cell, cookie, DAT_DTO_SUCCESS, len, true,
			  (struct core_ref){NULL, 0});
	return true;
}

/* Does the request behind the oldest one wait for no more than that one's completion? */
CORE_INLINE bool core_req_is_next_done(struct core_ep *ep)
{
	uint64_t next = ep->req.head + 1;

	return next != ep->req.tail && core_req_at(&ep->req, next)->is_done;
}

/* Does the completion of the oldest request go straight to the caller of that dequeue? */
CORE_INLINE bool core_req_is_asked_for(struct core_ep *ep, const struct core_dequeue *dequeue)
{
	return !(core_req_at(&ep->req, ep->req.head)->flags & DAT_COMPLETION_SUPPRESS_FLAG) &&
	       core_evd_is_asked(ep->request_evd, dequeue);
}

/*
 * The oldest request of the endpoint of that cell, which is no bind, was carried out;
 * core_req_is_next_done() is false.
 */
CORE_INLINE bool core_req_done_fast(struct core_handle *cell, struct core_ep *ep,
				    const struct core_req *req, struct core_dequeue *dequeue)
{
	if (!(req->flags & DAT_COMPLETION_SUPPRESS_FLAG) &&
	    !core_ep_give_dto(cell, ep->request_evd, dequeue, req->cookie, req->len))
		return false;
	/* nobody posts before the endpoint is unlocked: the slot is free by then (DTO-114) */
	ep->req.head++;
	return true;
}

/* Is there a Receive of the endpoint's own? One with an SRQ never has any. */
CORE_INLINE bool core_recv_is_posted(const struct core_ep *ep)
{
	return ep->recv.head != ep->recv.tail;
}

CORE_INLINE const struct core_wqe *core_recv_oldest(const struct core_ep *ep)
{
	return &ep->recv.slots[ep->recv.head & ep->recv.mask];
}

/* Does the completion of a Receive go straight to the caller of that dequeue? */
CORE_INLINE bool core_recv_is_asked_for(const struct core_ep *ep,
					const struct core_dequeue *dequeue)
{
	return core_evd_is_asked(ep->recv_evd, dequeue);
}

/* The oldest Receive of the endpoint of that cell was filled. */
CORE_INLINE bool core_recv_done_fast(struct core_handle *cell, struct core_ep *ep, DAT_VLEN len,
				     struct core_dequeue *dequeue)
{
	if (!core_ep_give_dto(cell, ep->recv_evd, dequeue, core_recv_oldest(ep)->cookie, len))
		return false;
	ep->recv.head++;
	return true;
}

#endif
