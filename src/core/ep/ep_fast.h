// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inline functions that the fast paths of all transports share: they put a request into its slot,
 * and they complete the oldest request or the oldest Receive with success.
 * core_req_done and core_recv_done (ep_queue.c) complete everything else. The endpoint is locked.
 * Its slow_reasons are 0, unless the transport allows one of its own.
 *
 * If a dequeue found the completion, `dequeue` is that dequeue (evd.h) and may take the event
 * directly. If it is NULL, the event goes into the EVD's queue. A function that returns false has
 * changed nothing, because the EVD cannot take the event now; the caller then takes the slow path.
 */
#ifndef CORE_EP_FAST_H
#define CORE_EP_FAST_H

#include "core/base/probe.h"
#include "core/ep/ep_queue.h"
#include "core/ep/ep.h"
#include "core/event/evd_queue.h"

/* The parameters of a post on the fast path (data_path.h). */
struct core_fast_post {
	uint64_t number;	 /* sequence number of the request, or of the Receive, from 0 */
	DAT_LMR_TRIPLET segment; /* the only segment */
	/* requests only */
	struct core_req *req; /* its slot */
	enum core_op op;
	DAT_COMPLETION_FLAGS flags;
	DAT_UINT64 cookie;
	DAT_RMR_TRIPLET remote; /* RDMA only; the length is not set */
};

/* Stores a segment word by word: a wider copy would wait for the stores of its members. */
CORE_INLINE void core_put_segment(volatile DAT_LMR_TRIPLET *to, const DAT_LMR_TRIPLET *from)
{
	to->lmr_context = from->lmr_context;
	to->virtual_address = from->virtual_address;
	to->segment_length = from->segment_length;
}

/* Puts a posted request into the next slot of the queue: all but what the transport keeps there. */
CORE_INLINE struct core_req *core_req_put(struct core_ep *ep, const struct core_fast_post *post)
{
	struct core_req *req = core_req_take(ep, post->op, post->flags);
	volatile DAT_RMR_TRIPLET *remote = &req->remote; /* word by word, too */

	core_req_count(ep, post->op, post->segment.segment_length);
	req->len = post->segment.segment_length;
	req->segments = 1;
	req->iov = &req->first;
	core_put_segment(&req->first, &post->segment);
	req->cookie.as_64 = post->cookie;
	if (post->op != CORE_OP_SEND) {
		remote->rmr_context = post->remote.rmr_context;
		remote->target_address = post->remote.target_address;
	}
	CORE_PROBE4(request_post, ep->cell, post->op, req->cookie.as_64, req->len);
	return req;
}

/* Delivers a successful completion of the endpoint of that cell to its EVD. */
CORE_INLINE bool core_ep_deliver_dto(struct core_handle *cell, struct core_evd *evd,
				     struct core_dequeue *dequeue, struct core_done done,
				     DAT_DTO_COOKIE cookie, DAT_VLEN len)
{
	if (dequeue)
		return core_evd_deliver_dto(evd, dequeue, cell, done, cookie, len);
	core_evd_post_dto(evd, cell, done, cookie, DAT_DTO_SUCCESS, len, true,
			  (struct core_ref){NULL, 0});
	return true;
}

/* Is the second-oldest request done already, so that it only waits for the oldest one? */
CORE_INLINE bool core_req_is_next_done(struct core_ep *ep)
{
	uint64_t next = ep->req.head + 1;

	return ep->req.done && next != ep->req.tail && core_req_at(&ep->req, next)->is_done;
}

/* Does that dequeue take the completion of the oldest request directly? */
CORE_INLINE bool core_req_is_direct(struct core_ep *ep, const struct core_dequeue *dequeue)
{
	return !(core_req_at(&ep->req, ep->req.head)->flags & DAT_COMPLETION_SUPPRESS_FLAG) &&
	       core_evd_is_direct(ep->request_evd, dequeue);
}

/*
 * Completes the oldest request of the endpoint of that cell with success. The request is not a
 * bind, and core_req_is_next_done() is false.
 */
CORE_INLINE bool core_req_done_fast(struct core_handle *cell, struct core_ep *ep,
				    const struct core_req *req, struct core_dequeue *dequeue)
{
	if (!(req->flags & DAT_COMPLETION_SUPPRESS_FLAG) &&
	    !core_ep_deliver_dto(cell, ep->request_evd, dequeue, CORE_DONE(req->op), req->cookie,
				 req->len))
		return false;
	CORE_PROBE4(request_done, cell, req->cookie.as_64, req->len, DAT_DTO_SUCCESS);
	/* DTO-114: the slot is free before the endpoint is unlocked and can be posted to */
	ep->req.head++;
	return true;
}

/*
 * Fetches the slot behind that one into the cache: the next post may use it. Slots are used in a
 * ring: with many connections in turn, the next one would not be there. (Behind the last one is
 * none; that does no harm.)
 */
CORE_INLINE void core_req_prefetch_next(const struct core_req *req)
{
	__builtin_prefetch(req + 1, 1);
	__builtin_prefetch((const char *)(req + 1) + CORE_LINE, 1);
}

/* Fetches the next slot of the queue of Receives. */
CORE_INLINE void core_recv_prefetch_next(const struct core_wqe *wqe)
{
	__builtin_prefetch(wqe + 1, 1);
}

/* Fetches the slot of the Receive of that number. */
CORE_INLINE void core_recv_prefetch(const struct core_ep *ep, uint64_t number)
{
	__builtin_prefetch(&ep->recv.slots[number & ep->recv.mask], 1);
}

/* Does the endpoint have a posted Receive of its own? Always false if it uses an SRQ. */
CORE_INLINE bool core_recv_is_posted(const struct core_ep *ep)
{
	return ep->recv.head != ep->recv.tail;
}

CORE_INLINE const struct core_wqe *core_recv_oldest(const struct core_ep *ep)
{
	return &ep->recv.slots[ep->recv.head & ep->recv.mask];
}

/* Does that dequeue take the completion of a Receive directly? */
CORE_INLINE bool core_recv_is_direct(const struct core_ep *ep, const struct core_dequeue *dequeue)
{
	return core_evd_is_direct(ep->recv_evd, dequeue);
}

/* The oldest Receive is completed with success. */
CORE_INLINE void core_recv_count_done(struct core_ep *ep, DAT_VLEN len)
{
	ep->counts.recv_bytes += len;
	ep->recv.head++;
}

/* Completes the oldest Receive of the endpoint of that cell, which is `wqe`, with success. */
CORE_INLINE bool core_recv_done_fast(struct core_handle *cell, struct core_ep *ep,
				     const struct core_wqe *wqe, DAT_VLEN len,
				     struct core_dequeue *dequeue)
{
	if (!core_ep_deliver_dto(cell, ep->recv_evd, dequeue, CORE_DONE(CORE_RECEIVED), wqe->cookie,
				 len))
		return false;
	CORE_PROBE4(recv_done, cell, wqe->cookie.as_64, len, DAT_DTO_SUCCESS);
	core_recv_count_done(ep, len);
	return true;
}

#endif
