// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inline functions that the fast paths of all transports share: they put a request into its slot,
 * and they complete the oldest request, one that is alone, or the oldest Receive with success.
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
#include "core/ep/complete.h"
#include "core/ep/ep.h"
#include "core/event/evd.h"

/* The parameters of a post on the fast path (data_path.h). */
struct core_fast_post {
	uint64_t number;	 /* sequence number of the request, or of the Receive, from 0 */
	DAT_LMR_TRIPLET segment; /* the only segment */
	/* requests only */
	struct core_req *req; /* its slot; not set if TRANSPORT_TAKES_SLOT */
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

/*
 * Puts a posted request into the next slot of the queue, except the remote side of RDMA and what
 * the transport keeps there.
 */
CORE_INLINE struct core_req *core_req_put_local(struct core_ep *ep,
						const struct core_fast_post *post)
{
	struct core_req *req = core_req_take(ep, post->op, post->flags);

	core_req_count(ep, post->op, post->segment.segment_length);
	req->len = post->segment.segment_length;
	req->segments = 1;
	req->iov = &req->first;
	core_put_segment(&req->first, &post->segment);
	req->cookie.as_64 = post->cookie;
	CORE_PROBE4(request_post, ep->cell, post->op, req->cookie.as_64, req->len);
	return req;
}

/* Adds the remote side of RDMA. */
CORE_INLINE void core_req_put_remote(struct core_req *req, const struct core_fast_post *post)
{
	volatile DAT_RMR_TRIPLET *to = &req->remote; /* word by word, too */

	if (post->op == CORE_OP_SEND)
		return;
	to->rmr_context = post->remote.rmr_context;
	to->target_address = post->remote.target_address;
}

/* Both: all but what the transport keeps there. */
CORE_INLINE struct core_req *core_req_put(struct core_ep *ep, const struct core_fast_post *post)
{
	struct core_req *req = core_req_put_local(ep, post);

	core_req_put_remote(req, post);
	return req;
}

/* Delivers a successful completion of the endpoint of that cell to its EVD. */
CORE_INLINE bool core_ep_deliver_dto(struct core_handle *cell, struct core_evd *evd,
				     struct core_dequeue *dequeue, DAT_DTO_COOKIE cookie,
				     DAT_VLEN len)
{
	if (dequeue)
		return core_evd_deliver_dto(evd, dequeue, cell, cookie, len);
	core_evd_post_dto(evd, cell, cookie, DAT_DTO_SUCCESS, len, true,
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
	    !core_ep_deliver_dto(cell, ep->request_evd, dequeue, req->cookie, req->len))
		return false;
	CORE_PROBE4(request_done, cell, req->cookie.as_64, req->len, DAT_DTO_SUCCESS);
	/* DTO-114: the slot is free before the endpoint is unlocked and can be posted to */
	ep->req.head++;
	return true;
}

/*
 * Completes a request with success in its post, without a slot. The caller has checked that no
 * other is outstanding. It is not a bind.
 */
CORE_INLINE void core_req_done_alone(struct core_ep *ep, const struct core_fast_post *post)
{
	DAT_DTO_COOKIE cookie = {.as_64 = post->cookie};
	DAT_VLEN len = post->segment.segment_length;

	ep->req.head = ++ep->req.tail;
	core_req_count(ep, post->op, len);
	CORE_PROBE4(request_post, ep->cell, post->op, post->cookie, len);
	if (!(post->flags & DAT_COMPLETION_SUPPRESS_FLAG))
		(void)core_ep_deliver_dto(ep->cell, ep->request_evd, NULL, cookie, len);
	CORE_PROBE4(request_done, ep->cell, post->cookie, len, DAT_DTO_SUCCESS);
}

/*
 * Fetches the slot into the cache that the next post may use. Slots are used in a ring: with many
 * connections in turn, the next one would not be there.
 */
CORE_INLINE void core_req_prefetch(const struct core_req *next)
{
	__builtin_prefetch(next, 1);
	__builtin_prefetch((const char *)next + CORE_LINE, 1);
}

/* The same for the slot behind that one. (Behind the last one is none; that does no harm.) */
CORE_INLINE void core_req_prefetch_next(const struct core_req *req)
{
	core_req_prefetch(req + 1);
}

/* The same for a Receive, */
CORE_INLINE void core_recv_prefetch_next(const struct core_wqe *wqe)
{
	__builtin_prefetch(wqe + 1, 1);
}

/* and for the one of that number. */
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
	if (!core_ep_deliver_dto(cell, ep->recv_evd, dequeue, wqe->cookie, len))
		return false;
	CORE_PROBE4(recv_done, cell, wqe->cookie.as_64, len, DAT_DTO_SUCCESS);
	core_recv_count_done(ep, len);
	return true;
}

/*
 * The same for a dequeue that has locked the EVD of Receives, whose cell is given, and has no event
 * yet.
 */
CORE_INLINE void core_recv_done_direct(struct core_ep *ep, const struct core_wqe *wqe, DAT_VLEN len,
				       struct core_handle *evd_cell, DAT_EVENT *event)
{
	core_event_fill_dto(event, evd_cell, ep->cell, wqe->cookie, DAT_DTO_SUCCESS, len);
	CORE_PROBE4(recv_done, ep->cell, wqe->cookie.as_64, len, DAT_DTO_SUCCESS);
	core_recv_count_done(ep, len);
}

#endif
