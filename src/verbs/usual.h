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

#include "core/ep_fast.h"
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

/* What a completion of the connection's queue pair means. */
CORE_INLINE void vrb_completion(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	vrb_completion_any(conn, ep, wc);
}

#endif
