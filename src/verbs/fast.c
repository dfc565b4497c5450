// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path: a Send, an RDMA Write or a Receive of one segment from the region of the one
 * before goes down as one work request that asks for its completion, and a good completion of the
 * oldest request, or of the oldest Receive, is handed on. It is entered while the endpoint has no
 * reason against it (vrb_review): the connection stands, the send queue has nothing but requests
 * whose completions come in their order, and all Receives are in the device. It keeps the counters
 * that the general path (post.c, cq.c) keeps. What it declines is as it was, and the general path
 * goes on from there.
 *
 * No post and no poll of such a device is a system call, so cancellation stays as the consumer has
 * it (post.c).
 */
#include "core/cancel.h"
#include "core/ep_fast.h"
#include "verbs/verbs.h"
#include "verbs/work.h"

/* --- posts --- */

void vrb_fast_prepare(struct vrb_conn *conn)
{
	conn->fast_wr = (struct ibv_send_wr){.wr_id = vrb_work_id(VRB_WORK_REQUEST, conn->key, 0),
					     .sg_list = &conn->fast_sge,
					     .num_sge = 1};
	conn->fast_recv_wr = (struct ibv_recv_wr){.wr_id = vrb_work_id(VRB_WORK_RECV, conn->key, 0),
						  .sg_list = &conn->fast_recv_sge,
						  .num_sge = 1};
}

/* The value of a work request's number. */
CORE_INLINE void set_value(uint64_t *wr_id, uint32_t value)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half is the first");
	memcpy(wr_id, &value, sizeof(value));
}

/* Member by member: joined, the stores take more instructions. */
CORE_INLINE void set_segment(struct ibv_sge *sge, const DAT_LMR_TRIPLET *segment, uint32_t key)
{
	sge->addr = segment->virtual_address;
	__atomic_store_n(&sge->length, (uint32_t)segment->segment_length, __ATOMIC_RELAXED);
	__atomic_store_n(&sge->lkey, key, __ATOMIC_RELAXED);
}

__attribute__((noinline, cold)) static void
refused(struct core_ep *ep, int rc, void (*fail)(struct vrb_conn *, struct core_ep *, int))
{
	int state = core_cancel_off();

	fail(vrb_conn_of(ep), ep, rc);
	vrb_review(ep);
	core_cancel_restore(state);
}

bool vrb_post_fast(struct core_ep *ep, struct core_req *req)
{
	struct vrb_conn *conn = vrb_conn_of(ep);
	struct vrb_adapter *adapter = conn->adapter;
	struct ibv_send_wr *wr = &conn->fast_wr, *bad;
	int rc;

	if (req->flags)
		return false;
	/* max_message_size and max_rdma_size fit */
	set_segment(&conn->fast_sge, req->iov, ep->known_source.local_key);
	set_value(&wr->wr_id, (uint32_t)req->sequence);
	wr->opcode = IBV_WR_SEND;
	if (req->op == CORE_OP_RDMA_WRITE) {
		wr->opcode = IBV_WR_RDMA_WRITE;
		wr->wr.rdma.remote_addr = req->remote.target_address;
		wr->wr.rdma.rkey = req->remote.rmr_context;
	}
	/* not fenced: DTO-30 is about those that are (post.c) */
	wr->send_flags = req->len <= adapter->limits.inline_max
				 ? IBV_SEND_SIGNALED | IBV_SEND_INLINE
				 : IBV_SEND_SIGNALED;
	vrb_show(&adapter->has_posted);
	vrb_note_extra(req, conn->extra);
	conn->post_next++;
	rc = ibv_post_send(conn->qp, wr, &bad);
	if (__builtin_expect(rc, 0))
		refused(ep, rc, vrb_refused);
	return true;
}

__attribute__((noinline, cold)) static void recv_refused(struct vrb_conn *conn, struct core_ep *ep,
							 int rc)
{
	conn->recv_extra--;
	vrb_recv_refused(conn, ep, rc);
}

bool vrb_recv_fast(struct core_ep *ep, const struct core_wqe *wqe)
{
	struct vrb_conn *conn = vrb_conn_of(ep);
	struct ibv_recv_wr *bad;
	int rc;

	if (wqe->len > VRB_SEGMENT_MAX)
		return false;
	set_segment(&conn->fast_recv_sge, wqe->iov, ep->known_target.local_key);
	set_value(&conn->fast_recv_wr.wr_id, vrb_recv_place(&ep->recv, wqe));
	conn->recv_next++;
	rc = ibv_post_recv(conn->qp, &conn->fast_recv_wr, &bad);
	if (__builtin_expect(rc, 0))
		refused(ep, rc, recv_refused);
	return true;
}

/* --- completions --- */

/* A good completion of the oldest request, and of no other. */
CORE_INLINE bool request_done(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc,
			      struct core_dequeue *dequeue)
{
	uint64_t head = ep->req.head;
	const struct core_req *req = core_req_at(&ep->req, head);

	if (wc->status != IBV_WC_SUCCESS || (uint32_t)wc->wr_id != (uint32_t)head ||
	    core_req_is_next_done(ep) || !core_req_done_fast(ep, req, dequeue))
		return false;
	conn->extra_done = vrb_noted_extra(req);
	return true;
}

/* A message in the oldest Receive. */
CORE_INLINE bool recv_done(struct core_ep *ep, const struct ibv_wc *wc,
			   struct core_dequeue *dequeue)
{
	return vrb_is_message(wc) && core_recv_is_posted(ep) &&
	       (uint32_t)wc->wr_id == vrb_recv_place(&ep->recv, core_recv_oldest(ep)) &&
	       core_recv_done_fast(ep, wc->byte_len, dequeue);
}

/* False: the completion is for the general path, and nothing was done. */
CORE_INLINE bool take(struct vrb_adapter *adapter, const struct ibv_wc *wc,
		      struct core_dequeue *dequeue)
{
	uint32_t name = (uint32_t)(wc->wr_id >> 32);
	/* relaxed: as in cq.c */
	struct core_handle *cell = atomic_load_explicit(
		&adapter->ep_cells[name & VRB_KEY_INDEX_MASK], memory_order_relaxed);
	struct vrb_conn *conn;
	struct core_ep *ep;
	bool is_taken = false;

	if (!cell)
		return false;
	ep = core_handle_enter_fast(cell, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return false;
	conn = vrb_conn_of(ep); /* there is one, or there would be a reason */
	if (conn->adapter == adapter) {
		if (name == vrb_work_name(VRB_WORK_RECV, conn->key))
			is_taken = recv_done(ep, wc, dequeue);
		else if (name == conn->key)
			is_taken = request_done(conn, ep, wc, dequeue);
	}
	core_lock_leave(&cell->lock);
	return is_taken;
}

/* There is no completion: relaxed, as in vrb_drive. */
CORE_INLINE enum transport_poll found_none(const struct vrb_adapter *adapter)
{
	return atomic_load_explicit(&adapter->blocked, memory_order_relaxed)
		       ? TRANSPORT_POLL_GENERAL
		       : TRANSPORT_POLL_EMPTY;
}

/* The queue is owned. */
CORE_INLINE enum transport_poll take_kept(struct vrb_adapter *adapter, struct vrb_cq *cq,
					  struct core_dequeue *dequeue)
{
	if (cq->kept == cq->end && !vrb_cq_fill(cq))
		return found_none(adapter);
	do {
		if (!take(adapter, cq->kept, dequeue))
			return TRANSPORT_POLL_GENERAL;
		cq->kept++;
		if (dequeue->is_filled)
			return TRANSPORT_POLL_FOUND;
	} while (cq->kept != cq->end);
	/* all were for other dispatchers; a full batch is hardly all that the device has */
	return cq->end == cq->wc + VRB_POLL_BATCH ? TRANSPORT_POLL_GENERAL : TRANSPORT_POLL_EMPTY;
}

enum transport_poll vrb_poll(struct core_evd *evd, DAT_EVENT *event)
{
	struct core_dequeue dequeue = {.evd = evd, .event = event};
	struct vrb_adapter *adapter = vrb_adapter_of(evd->ia);
	/* acquire: as in cq.c */
	struct vrb_cq *cq = atomic_load_explicit(&adapter->cqs, memory_order_acquire);
	enum transport_poll found;

	/* relaxed: the newest is the first, so that the next ones are seen with it */
	if (atomic_load_explicit(&cq->next, memory_order_relaxed) || adapter->polls_in_kernel)
		return TRANSPORT_POLL_GENERAL;
	vrb_show(&cq->has_polled);
	/* who owns it hands on what there is, as soon as this dispatcher is unlocked */
	if (!vrb_cq_own(cq))
		return TRANSPORT_POLL_EMPTY;
	found = take_kept(adapter, cq, &dequeue);
	vrb_cq_disown(cq);
	return found;
}
