// SPDX-License-Identifier: BSD-2-Clause
/*
 * The way of nearly every completion, compiled into whoever polls: it was good, and is of the
 * oldest request or of a Receive of a connection that stands. All others go by vrb_completion_any
 * (post.c). The endpoint is locked.
 */
#ifndef VERBS_USUAL_H
#define VERBS_USUAL_H

#include <stddef.h>
#include <string.h>

#include <arpa/inet.h>

#include "core/ep_done.h"
#include "verbs/verbs.h"

/* Immediate data of a Send that asks for a notification. */
#define VRB_SOLICITED_IMM 0x6f445357u

/* How a request lies in the device's queue; kept in core_req.transport. */
struct vrb_shadow {
	bool is_signalled;
	uint64_t end; /* sq_posted behind it; 0: not posted */
};

_Static_assert(sizeof(((struct core_req *)0)->transport) >= 2 * sizeof(uint64_t), "room for both");

static inline struct vrb_shadow vrb_shadow_get(const struct core_req *req)
{
	return (struct vrb_shadow){req->transport.word[0] != 0, req->transport.word[1]};
}

static inline void vrb_shadow_set(struct core_req *req, bool is_signalled, uint64_t end)
{
	req->transport.word[0] = is_signalled;
	req->transport.word[1] = end;
}

/* iWARP answers no Write: is it followed by a read of nothing that proves it (post.c)? */
static inline bool vrb_needs_proof(const struct vrb_conn *conn, const struct core_req *req)
{
	return conn->adapter->is_iwarp && req->op == CORE_OP_RDMA_WRITE && req->len &&
	       !(req->flags & DAT_COMPLETION_SUPPRESS_FLAG);
}

static inline bool vrb_is_reading(const struct vrb_conn *conn, const struct core_req *req)
{
	return req->op == CORE_OP_RDMA_READ || vrb_needs_proof(conn, req);
}

/* What a Receive's number has: where it lies in the endpoint's queue. */
CORE_INLINE uint32_t vrb_recv_place(const struct core_recv_queue *queue, uint64_t sequence)
{
	return ((uint32_t)sequence & queue->mask) * (uint32_t)sizeof(struct core_wqe);
}

CORE_INLINE struct core_wqe *vrb_recv_at(const struct core_recv_queue *queue, uint32_t place)
{
	return (struct core_wqe *)((char *)queue->slots + place);
}

/* It may have been one of the reads that are counted. */
CORE_INLINE void vrb_read_done(struct vrb_conn *conn, const struct core_req *req)
{
	if (conn->reads_now && vrb_is_reading(conn, req))
		conn->reads_now--;
}

CORE_INLINE void vrb_seen(struct vrb_conn *conn, uint64_t end)
{
	if (end > conn->sq_seen)
		conn->sq_seen = end;
}

/*
 * Is the completion that of a message, and good? A foreign peer's RDMA Write with immediate data
 * takes a Receive, too, and its length says nothing of the buffer. Both asked in one go.
 */
CORE_INLINE bool vrb_is_message(const struct ibv_wc *wc)
{
	uint64_t both;

	_Static_assert(offsetof(struct ibv_wc, opcode) ==
			       offsetof(struct ibv_wc, status) + sizeof(uint32_t),
		       "side by side");
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the status is the low half");
	memcpy(&both, (const char *)wc + offsetof(struct ibv_wc, status), sizeof(both));
	return both == ((uint64_t)IBV_WC_RECV << 32 | IBV_WC_SUCCESS);
}

/* A peer whose Sends do not show the wish for a notification gets one each time. */
CORE_INLINE bool vrb_is_solicited(const struct vrb_conn *conn, const struct ibv_wc *wc)
{
	if (!conn->is_ours || conn->adapter->is_iwarp)
		return true;
	return (wc->wc_flags & IBV_WC_WITH_IMM) && wc->imm_data == htonl(VRB_SOLICITED_IMM);
}

/* Something left the send queue, and there is more in it, or to be done. */
void vrb_go_on(struct vrb_conn *conn, struct core_ep *ep);
void vrb_completion_any(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc);

/* The oldest request, whose completion is the next to come. False: it is another one. */
CORE_INLINE bool vrb_oldest_done(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	uint64_t head = ep->req.head;
	struct core_req *req = core_req_at(&ep->req, head);
	uint64_t end = vrb_shadow_get(req).end;

	if ((uint32_t)wc->wr_id != (uint32_t)head || conn->reap_next != head ||
	    !core_req_is_usual(ep, req))
		return false;
	conn->signalled--;
	conn->reap_next = head + 1;
	vrb_seen(conn, end);
	vrb_read_done(conn, req);
	if (end > conn->sq_done)
		conn->sq_done = end;
	core_req_done_usual(ep, req);
	if (conn->reap_next != ep->req.tail || conn->is_graceful)
		vrb_go_on(conn, ep);
	else if (conn->is_direct)
		vrb_express_begin(ep);
	return true;
}

/* A Receive of a connection that stands. */
CORE_INLINE bool vrb_good_recv(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	if (!core_recv_is_usual(ep) || conn->is_unconfirmed || !vrb_is_message(wc))
		return false;
	conn->recv_out--;
	conn->nudges = 0;
	core_recv_done_usual(ep, wc->byte_len, vrb_is_solicited(conn, wc));
	return true;
}

/*
 * A good completion of an endpoint on the express way, which stays on it. An SRQ's have nothing to
 * do with the queues that it is about. False: it is off that way now.
 */
CORE_INLINE bool vrb_express_done(struct vrb_conn *conn, struct core_ep *ep,
				  const struct ibv_wc *wc)
{
	enum vrb_work work = wc->wr_id >> 62;
	struct vrb_express *way = vrb_express_of(ep);
	uint64_t head = ep->req.head;
	struct core_req *req;

	if (wc->status == IBV_WC_SUCCESS && work == VRB_WORK_REQUEST &&
	    (uint32_t)wc->wr_id == (uint32_t)head) {
		req = core_req_at(&ep->req, head);
		way->request_end++;
		ep->req.head = head + 1; /* first: as in core_req_done_usual */
		core_evd_post_dto(ep->request_evd, ep->cell, req->cookie, DAT_DTO_SUCCESS, req->len,
				  true, (struct core_ref){NULL, 0});
		return true;
	}
	if (work == VRB_WORK_RECV && vrb_is_message(wc) && core_recv_is_usual(ep)) {
		way->recv_end++;
		vrb_express_settle_recv(ep);
		core_recv_done_usual(ep, wc->byte_len, vrb_is_solicited(conn, wc));
		return true;
	}
	if (work == VRB_WORK_RECV && vrb_is_message(wc) && ep->srq)
		return false;
	core_ep_express_end(ep);
	return false;
}

/* What a completion of the connection's queue pair means. */
CORE_INLINE void vrb_completion(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	enum vrb_work work = wc->wr_id >> 62;

	if (ep->cell->express && vrb_express_done(conn, ep, wc))
		return;
	if (conn->state == VRB_ESTABLISHED && wc->status == IBV_WC_SUCCESS &&
	    ((work == VRB_WORK_REQUEST && vrb_oldest_done(conn, ep, wc)) ||
	     (work == VRB_WORK_RECV && vrb_good_recv(conn, ep, wc))))
		return;
	vrb_completion_any(conn, ep, wc);
}

#endif
