// SPDX-License-Identifier: BSD-2-Clause
/*
 * The queues of a connection: the positions of work requests.
 *
 * A position is the number of work requests that were posted before. Most requests of an endpoint
 * take one work request each. So positions are calculated: a request's sequence plus `extra`, the
 * number of work requests posted beyond one for each request. Markers, verifying RDMA Reads, and
 * the work requests that bind and unbind windows increment `extra` when they are posted. A bind
 * needs no work request when it has its turn, because its window was bound before or it needed
 * none, so its turn decrements `extra`. Each request stores the value of `extra` at the time it was
 * posted or had its turn. When the head of the endpoint's queue passes the request, that value
 * becomes `extra_done`.
 */
#ifndef VERBS_QUEUE_H
#define VERBS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/ep/ep_queue.h"
#include "verbs/transfer/conn.h"

/* --- what a posted request stores; 0 before the slow path posts it (core/ep/ep.h) --- */

_Static_assert(sizeof(((struct core_req *)0)->transport) >= 2 * sizeof(uint64_t), "room for both");

/* Stores the value of `extra` after the request. */
CORE_INLINE void vrb_note_extra(struct core_req *req, uint64_t extra)
{
	req->transport.word[0] = extra;
}

CORE_INLINE uint64_t vrb_noted_extra(const struct core_req *req)
{
	return req->transport.word[0];
}

/* Stores whether the request was posted unsignalled. Read for suppressed requests only. */
static inline void vrb_note_unsignalled(struct core_req *req, bool is_unsignalled)
{
	req->transport.word[1] = is_unsignalled;
}

static inline bool vrb_is_unsignalled(const struct core_req *req)
{
	return (req->flags & DAT_COMPLETION_SUPPRESS_FLAG) && req->transport.word[1];
}

/* --- positions --- */

/* The position behind a posted request, or behind a bind that has had its turn. */
static inline uint64_t vrb_end(const struct core_req *req)
{
	return req->sequence + 1 + vrb_noted_extra(req);
}

/* The position behind everything that was posted. */
static inline uint64_t vrb_sq_posted(const struct vrb_conn *conn)
{
	return conn->sq.next + conn->sq.extra;
}

/* The position before which everything is known to be complete and all entries are free. */
static inline uint64_t vrb_sq_done(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return ep->req.head + conn->sq.extra_done;
}

/* Does the send queue have that many free entries? One more is reserved for a marker. */
static inline bool vrb_has_room(const struct vrb_conn *conn, const struct core_ep *ep,
				uint32_t places)
{
	return vrb_sq_posted(conn) - vrb_sq_done(conn, ep) + places < conn->sq.size;
}

/* Updates extra_done if the head of the endpoint's queue, which was `before`, has moved. */
static inline void vrb_follow_head(struct vrb_conn *conn, struct core_ep *ep, uint64_t before)
{
	if (ep->req.head != before)
		conn->sq.extra_done = vrb_noted_extra(core_req_at(&ep->req, ep->req.head - 1));
}

/* Completes a request, then updates extra_done. */
static inline void vrb_req_done(struct vrb_conn *conn, struct core_ep *ep, struct core_req *req,
				DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len)
{
	uint64_t before = ep->req.head;

	core_req_done(ep, req, status, len);
	vrb_follow_head(conn, ep, before);
}

/* Frees the entry of a completed marker when everything before it is done too. */
static inline void vrb_free_marker(struct vrb_conn *conn, const struct core_ep *ep)
{
	if (!conn->marker.is_out && conn->marker.posted > vrb_sq_done(conn, ep) &&
	    ep->req.head >= conn->marker.next)
		conn->sq.extra_done = conn->marker.posted - ep->req.head;
}

/* Receives in the device's queue. */
static inline uint32_t vrb_recv_out(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return (uint32_t)(conn->rq.next - ep->recv.head) + (uint32_t)conn->rq.extra;
}

#endif
