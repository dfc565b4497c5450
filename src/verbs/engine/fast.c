// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path. It posts a Send, an RDMA Write or a Receive with one segment, from the same region
 * as the one before, as one signalled work request. It takes a successful completion of the oldest
 * request or of the oldest Receive. An endpoint uses it while it has no slow reason
 * (vrb_update_slow_reasons): it is connected, its send queue holds only signalled requests that
 * complete in order, and all its Receives are posted. The fast path and the slow path
 * keep the same counters. A fast path that declines has changed nothing, and the slow
 * path handles the call.
 *
 * With such a device no post and no poll makes a system call, so the fast path does not disable
 * cancellation (transfer/post.c).
 */
#include <stdatomic.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "core/base/cancel.h"
#include "core/base/handle.h"
#include "core/base/instance.h"
#include "core/ep/ep.h"
#include "core/ep/ep_fast.h"
#include "verbs/device/adapter.h"
#include "verbs/device/cq.h"
#include "verbs/device/tuning.h"
#include "verbs/transfer/conn.h"
#include "verbs/transfer/post.h"
#include "verbs/transfer/queue.h"

/* --- posts --- */

#define TRANSPORT_FAST_FLAGS DAT_COMPLETION_DEFAULT_FLAG

/* Sets the low half of a work request's ID. */
CORE_INLINE void set_value(uint64_t *wr_id, uint32_t value)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half is the first");
	memcpy(wr_id, &value, sizeof(value));
}

/* Volatile: if the compiler joins the stores, they take more instructions. */
CORE_INLINE void set_segment(volatile struct ibv_sge *sge, const DAT_LMR_TRIPLET *segment,
			     uint32_t key)
{
	sge->addr = segment->virtual_address;
	sge->length = (uint32_t)segment->segment_length;
	sge->lkey = key;
}

/* A branch takes fewer instructions than calculating the flags. */
CORE_INLINE void set_flags(volatile struct ibv_send_wr *wr, bool is_inline)
{
	if (__builtin_expect(is_inline, true))
		wr->send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	else
		wr->send_flags = IBV_SEND_SIGNALED;
}

__attribute__((noinline, cold)) static void
fail_post(struct core_handle *cell, int rc, void (*fail)(struct vrb_conn *, struct core_ep *, int))
{
	struct core_ep *ep = cell->object;
	int state = core_cancel_off();

	fail(vrb_conn_of(ep), ep, rc);
	vrb_update_slow_reasons(ep);
	core_cancel_restore(state);
}

static inline bool transport_post_fast(struct core_handle *cell, struct core_ep *ep,
				       const struct core_fast_post *post)
{
	struct vrb_conn *conn = vrb_conn_of(ep);
	struct ibv_send_wr *wr =
		post->op == CORE_OP_RDMA_WRITE ? &conn->fast.write_wr : &conn->fast.send_wr;
	int rc;

	if (post->op == CORE_OP_RDMA_READ)
		return false; /* the key of its local region is another one (vrb_segments) */
	set_value(&wr->wr_id, (uint32_t)post->number);
	if (post->op == CORE_OP_RDMA_WRITE) {
		wr->wr.rdma.remote_addr = post->remote.target_address;
		wr->wr.rdma.rkey = post->remote.rmr_context;
	}
	/* max_message_size and max_rdma_size fit into 32 bits */
	set_segment(&conn->fast.sge, &post->segment, ep->cached_source.local_key);
	vrb_note_extra(post->req, conn->sq.extra);
	set_flags(wr, post->segment.segment_length <= conn->inline_max);
	vrb_note_activity(&conn->adapter->has_posted);
	conn->sq.next++;
	rc = ibv_post_send(conn->qp, wr, &conn->fast.bad);
	if (__builtin_expect(rc, 0))
		fail_post(cell, rc, vrb_send_refused);
	return true;
}

__attribute__((noinline, cold)) static void recv_refused(struct vrb_conn *conn, struct core_ep *ep,
							 int rc)
{
	conn->rq.extra--;
	vrb_recv_refused(conn, ep, rc);
}

static inline bool transport_recv_fast(struct core_handle *cell, struct core_ep *ep,
				       const struct core_fast_post *post)
{
	struct vrb_conn *conn = vrb_conn_of(ep);
	int rc;

	set_value(&conn->fast.recv_wr.wr_id, (uint32_t)post->number);
	set_segment(&conn->fast.recv_sge, &post->segment, ep->cached_target.local_key);
	conn->rq.next++;
	rc = ibv_post_recv(conn->qp, &conn->fast.recv_wr, &conn->fast.recv_bad);
	if (__builtin_expect(rc, 0))
		fail_post(cell, rc, recv_refused);
	return true;
}

/* --- completions --- */

/* Is it a successful completion of the oldest request? No other request can complete now, see
 * needs_slow_queue() in transfer/conn.c. */
CORE_INLINE bool is_request_done(const struct core_ep *ep, const struct vrb_conn *conn,
				 const struct ibv_wc *wc)
{
	return vrb_name_of(&wc->wr_id) == vrb_name_of(&conn->fast.send_wr.wr_id) &&
	       wc->status == IBV_WC_SUCCESS && (uint32_t)wc->wr_id == (uint32_t)ep->req.head;
}

/* Is it a message in the oldest Receive? One with immediate data may kill a key. */
CORE_INLINE bool is_recv_done(const struct core_ep *ep, const struct vrb_conn *conn,
			      const struct ibv_wc *wc)
{
	return vrb_name_of(&wc->wr_id) == vrb_name_of(&conn->fast.recv_wr.wr_id) &&
	       vrb_is_message(wc) && !(wc->wc_flags & IBV_WC_WITH_IMM) &&
	       (uint32_t)wc->wr_id == (uint32_t)ep->recv.head;
}

/*
 * Delivers a completion that does not go directly to the caller: to the queue of its EVD, or to the
 * slow path. The caller has locked the EVD `locked` and the endpoint. This function unlocks the
 * endpoint.
 */
__attribute__((noinline)) static bool take_queued(struct core_handle *cell, const struct ibv_wc *wc,
						  struct core_handle *locked)
{
	struct core_dequeue dequeue = {.cell = locked, .is_filled = true};
	struct core_ep *ep = cell->object;
	const struct vrb_conn *conn = vrb_conn_of(ep);
	bool is_taken = false;

	if (is_request_done(ep, conn, wc))
		is_taken =
			core_req_done_fast(cell, ep, core_req_at(&ep->req, ep->req.head), &dequeue);
	else if (is_recv_done(ep, conn, wc))
		is_taken =
			core_recv_done_fast(cell, ep, core_recv_oldest(ep), wc->byte_len, &dequeue);
	core_lock_leave(&cell->lock);
	return is_taken;
}

/* False: the completion is for the slow path, and nothing was changed. */
CORE_INLINE bool take_completion(const struct vrb_cq *cq, const struct ibv_wc *wc,
				 struct core_dequeue *dequeue)
{
	uint32_t index = vrb_name_of(&wc->wr_id) & VRB_KEY_INDEX_MASK;
	/*
	 * relaxed: see ep_enter_by_key in engine/poll.c. Not NULL: the slot was taken before the ID
	 * was used
	 */
	struct core_handle *cell = atomic_load_explicit(&cq->ep_cells[index], memory_order_relaxed);
	const struct vrb_conn *conn;
	struct core_ep *ep;

	ep = core_handle_enter_fast(cell, DAT_HANDLE_TYPE_EP);
	if (__builtin_expect(!ep, false))
		return false;
	conn = vrb_conn_of(ep); /* not NULL: an endpoint without one has a slow reason */
	if (__builtin_expect(conn->cq != cq, false)) {
		core_lock_leave(&cell->lock);
		return false;
	}
	/* a Receive first: it takes more instructions, and a request one more comparison */
	if (__builtin_expect(is_recv_done(ep, conn, wc) && core_recv_is_direct(ep, dequeue), true))
		(void)core_recv_done_fast(cell, ep, core_recv_oldest(ep), wc->byte_len, dequeue);
	else if (is_request_done(ep, conn, wc) && core_req_is_direct(ep, dequeue))
		(void)core_req_done_fast(cell, ep, core_req_at(&ep->req, ep->req.head), dequeue);
	else
		return take_queued(cell, wc, dequeue->cell);
	core_lock_leave(&cell->lock);
	return true;
}

/* The device has no completion. Relaxed: see vrb_progress. */
CORE_INLINE enum transport_poll none_found(const struct vrb_adapter *adapter)
{
	return atomic_load_explicit(&adapter->blocked, memory_order_relaxed) ? TRANSPORT_POLL_SLOW
									     : TRANSPORT_POLL_EMPTY;
}

/* The caller owns the queue. Completions that were polled and not taken stay for the next owner. */
CORE_INLINE enum transport_poll take_next(struct vrb_cq *cq, struct core_dequeue *dequeue)
{
	if (__builtin_expect(!cq->kept_count, true) && __builtin_expect(!vrb_cq_fill(cq), false))
		return none_found(cq->adapter);
	do {
		if (!take_completion(cq, cq->kept, dequeue))
			return TRANSPORT_POLL_SLOW;
		cq->kept++;
		cq->kept_count--;
		if (__builtin_expect(dequeue->is_filled, true))
			return TRANSPORT_POLL_FOUND;
	} while (cq->kept_count);
	/* all were for other EVDs; after a full batch the device probably has more */
	return cq->kept == cq->wc + VRB_POLL_BATCH ? TRANSPORT_POLL_SLOW : TRANSPORT_POLL_EMPTY;
}

static inline enum transport_poll transport_poll(struct core_handle *cell, DAT_EVENT *event)
{
	struct core_dequeue dequeue = {.cell = cell, .event = event};
	const struct core_ia *ia = ((const struct core_evd *)cell->object)->ia;
	enum transport_poll found;
	struct vrb_cq *cq;

	/* a sleeping thread must not wait for completions that this poll would keep. A thread that
	 * goes to sleep later polls first */
	if (__builtin_expect(!core_ia_can_poll_fast(ia), false))
		return TRANSPORT_POLL_SLOW;
	/* acquire: see vrb_cq_first */
	cq = atomic_load_explicit(&vrb_adapter_of(ia)->fast_cq, memory_order_acquire);
	vrb_note_activity(&cq->has_polled);
	/* the owner dispatches its completions as soon as this EVD is unlocked */
	if (__builtin_expect(!vrb_cq_own(cq), false))
		return TRANSPORT_POLL_EMPTY;
	found = take_next(cq, &dequeue);
	vrb_cq_disown(cq);
	return found;
}

#include "core/ep/data_path.h"
