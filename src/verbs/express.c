// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls of the data path on the express way (core/express.h): a request of one segment from the
 * region of the one before, which asks for its completion, a Receive of that kind, and a dequeue
 * that finds the one completion there is. What is not of that kind goes to the core's call, or the
 * way of all completions (cq.c). Only where neither a post nor a poll is a system call: post.c
 * says why.
 */
#include "core/express.h"

#include <string.h>

#include "core/calls.h"
#include "verbs/usual.h"
#include "verbs/verbs.h"

/* --- beginning and end --- */

/* Is there nothing in the queues that the endpoint's own counters do not tell? */
static bool is_calm(const struct vrb_conn *conn, const struct core_ep *ep)
{
	uint64_t tail = ep->req.tail;

	if (ep->req.head != tail || conn->post_next != tail || conn->reap_next != tail ||
	    conn->sq_done != conn->sq_posted || conn->sq_seen != conn->sq_posted ||
	    conn->signalled || conn->has_marker || conn->is_binding || conn->retiring)
		return false;
	return ep->srq || (conn->is_receiving && conn->recv_next == ep->recv.tail &&
			   conn->recv_out == ep->recv.tail - ep->recv.head);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void express_fill(struct vrb_express *way, struct vrb_conn *conn, const struct core_ep *ep)
{
	way->key = conn->key;
	way->recv_key = (uint32_t)(vrb_work_id(VRB_WORK_RECV, conn->key, 0) >> 32);
	way->sq_base = conn->sq_posted - ep->req.tail;
	way->request_end = ep->req.head + ep->req.capacity;
	way->recv_end = ep->recv.head + ep->recv.capacity;
	way->recv_from = ep->recv.tail;
	way->request_evd = ep->request_evd->cell;
	way->recv_evd = ep->recv_evd ? ep->recv_evd->cell : DAT_HANDLE_NULL;
	way->source = ep->known_source;
	way->target = ep->known_target;
	way->send_most = smaller(ep->attr.max_message_size, way->source.length);
	way->write_most = smaller(ep->ia->attr.max_rdma_size, way->source.length);
	way->recv_most = smaller(VRB_SEGMENT_MAX, way->target.length);
	way->inline_max = conn->adapter->limits.inline_max;
	way->adapter = conn->adapter;
	way->qp = conn->qp;
	way->sge.lkey = way->source.local_key;
	way->wr = (struct ibv_send_wr){.wr_id = vrb_work_id(VRB_WORK_REQUEST, conn->key, 0),
				       .sg_list = &way->sge,
				       .num_sge = 1};
	way->recv_sge.lkey = way->target.local_key;
	way->recv_wr = (struct ibv_recv_wr){
		.wr_id = (uint64_t)way->recv_key << 32, .sg_list = &way->recv_sge, .num_sge = 1};
}

void vrb_express_begin(struct core_ep *ep)
{
	struct vrb_conn *conn = vrb_conn_of(ep);

	if (!conn || !conn->is_direct || conn->state != VRB_ESTABLISHED || conn->is_graceful ||
	    ep->cell->express || ep->req.capacity >= conn->sq_size || !is_calm(conn, ep))
		return;
	if (core_ep_express_begin(ep))
		express_fill(vrb_express_of(ep), conn, ep);
}

/* As if it had been posted by steps (core/dto.c), and down to the device (post.c). */
static void request_settle(struct core_req *req, uint64_t sequence, uint64_t end)
{
	uint32_t key = (uint32_t)req->transport.word[0];

	req->flags = DAT_COMPLETION_DEFAULT_FLAG;
	req->segments = 1;
	req->iov[0] = (DAT_LMR_TRIPLET){.lmr_context = key,
					.virtual_address = req->transport.word[1],
					.segment_length = req->len};
	req->binding = NULL;
	req->sequence = sequence;
	req->is_done = false;
	vrb_shadow_set(req, true, end);
}

/* As if it had been posted by steps; its segment's key and address are there. */
static void recv_settle(struct core_wqe *wqe)
{
	wqe->segments = 1;
	wqe->flags = DAT_COMPLETION_DEFAULT_FLAG;
	wqe->iov[0].segment_length = wqe->len;
}

void vrb_express_settle_recv(struct core_ep *ep)
{
	if (ep->recv.head >= vrb_express_of(ep)->recv_from)
		recv_settle(&ep->recv.slots[ep->recv.head & ep->recv.mask]);
}

void vrb_express_over(struct core_ep *ep)
{
	uint64_t base = vrb_express_of(ep)->sq_base, head = ep->req.head, tail = ep->req.tail;
	uint64_t from = vrb_express_of(ep)->recv_from;
	struct vrb_conn *conn = vrb_conn_of(ep);

	for (uint64_t i = head; i != tail; i++)
		request_settle(core_req_at(&ep->req, i), i, base + i + 1);
	conn->post_next = tail;
	conn->reap_next = head;
	conn->sq_posted = base + tail;
	conn->sq_done = base + head;
	conn->sq_seen = base + head;
	conn->signalled = (uint32_t)(tail - head);
	if (ep->srq)
		return;
	for (uint64_t i = from > ep->recv.head ? from : ep->recv.head; i != ep->recv.tail; i++)
		recv_settle(&ep->recv.slots[i & ep->recv.mask]);
	conn->recv_next = ep->recv.tail;
	conn->recv_out = (uint32_t)(ep->recv.tail - ep->recv.head);
}

/* --- posts --- */

__attribute__((noinline, cold)) static void request_refused(const struct core_handle *cell, int rc)
{
	struct core_ep *ep = cell->object;

	core_ep_express_end(ep);
	vrb_refused(vrb_conn_of(ep), ep, rc);
}

__attribute__((noinline, cold)) static void recv_refused(const struct core_handle *cell, int rc)
{
	struct core_ep *ep = cell->object;

	core_ep_express_end(ep);
	vrb_conn_of(ep)->recv_out--;
	vrb_recv_refused(vrb_conn_of(ep), ep, rc);
}

/* Of a work request's number, whose other half stays the connection's. */
CORE_INLINE void set_low_half(uint64_t *value, uint32_t low)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half is the first");
	memcpy(value, &low, sizeof(low));
}

/* False: it is no request of that kind, and nothing was done. */
CORE_INLINE bool request_post(DAT_EP_HANDLE handle, struct core_ep *ep, enum core_op op,
			      const DAT_LMR_TRIPLET *iov, const DAT_RMR_TRIPLET *remote,
			      DAT_DTO_COOKIE cookie)
{
	struct vrb_express *way = vrb_express_of(ep);
	const uint64_t *most = op == CORE_OP_SEND ? &way->send_most : &way->write_most;
	/* relaxed: as in core_event_fill_dto */
	DAT_VADDR address = __atomic_load_n(&iov->virtual_address, __ATOMIC_RELAXED);
	DAT_VLEN len = __atomic_load_n(&iov->segment_length, __ATOMIC_RELAXED);
	uint32_t key = iov->lmr_context;
	uint64_t tail = ep->req.tail;
	struct core_req *req;
	int rc;

	if (tail == way->request_end ||
	    !core_mem_is_known_part(&way->source, key, address, len, most))
		return false;
	if (op == CORE_OP_RDMA_WRITE) {
		if (remote->segment_length < len)
			return false;
		way->wr.wr.rdma.remote_addr = remote->target_address;
		way->wr.wr.rdma.rkey = remote->rmr_context;
	}
	req = core_req_at(&ep->req, tail);
	req->op = op;
	req->len = len;
	req->cookie = cookie;
	/* until request_settle; relaxed: as in core_event_fill_dto */
	__atomic_store_n(&req->transport.word[0], key, __ATOMIC_RELAXED);
	__atomic_store_n(&req->transport.word[1], address, __ATOMIC_RELAXED);
	ep->req.tail = tail + 1;
	way->sge.addr = address;
	way->sge.length = (uint32_t)len; /* max_message_size and max_rdma_size fit */
	set_low_half(&way->wr.wr_id, (uint32_t)tail);
	way->wr.opcode = op == CORE_OP_SEND ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
	way->wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	if (__builtin_expect(len > way->inline_max, false)) {
		__asm__ volatile("" ::: "memory"); /* a jump: hardly ever taken, and no more */
		way->wr.send_flags = IBV_SEND_SIGNALED;
	}
	vrb_show(&way->adapter->has_posted);
	rc = ibv_post_send(way->qp, &way->wr, &way->bad);
	if (__builtin_expect(rc, 0))
		request_refused((struct core_handle *)handle, rc);
	return true;
}

/*
 * The same. An endpoint with an SRQ, or without dispatcher, has no room for any. The Receive's
 * number has its place in the queue.
 */
CORE_INLINE bool recv_post(DAT_EP_HANDLE handle, struct core_ep *ep, const DAT_LMR_TRIPLET *iov,
			   DAT_DTO_COOKIE cookie)
{
	struct vrb_express *way = vrb_express_of(ep);
	struct core_recv_queue *queue = &ep->recv;
	/* relaxed: as in core_event_fill_dto */
	DAT_VADDR address = __atomic_load_n(&iov->virtual_address, __ATOMIC_RELAXED);
	DAT_VLEN len = __atomic_load_n(&iov->segment_length, __ATOMIC_RELAXED);
	uint32_t key = iov->lmr_context;
	uint64_t tail = queue->tail;
	DAT_LMR_TRIPLET *copy;
	struct core_wqe *wqe;
	uint32_t place;
	int rc;

	if (tail == way->recv_end ||
	    !core_mem_is_known_part(&way->target, key, address, len, &way->recv_most))
		return false;
	place = vrb_recv_place(queue, tail);
	set_low_half(&way->recv_wr.wr_id, place);
	wqe = vrb_recv_at(queue, place);
	wqe->len = len;
	wqe->cookie = cookie;
	copy = wqe->iov;
	copy->lmr_context = key; /* the rest: recv_settle */
	copy->virtual_address = address;
	queue->tail = tail + 1;
	way->recv_sge.addr = address;
	way->recv_sge.length = (uint32_t)len;
	rc = ibv_post_recv(way->qp, &way->recv_wr, &way->bad_recv);
	if (__builtin_expect(rc, 0))
		recv_refused((struct core_handle *)handle, rc);
	return true;
}

/* --- the calls --- */

/* The core's calls, kept out of ours, which would need larger frames. */
__attribute__((noinline, cold)) static DAT_RETURN
send_by_core(DAT_EP_HANDLE handle, DAT_COUNT segments, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	     DAT_COMPLETION_FLAGS flags)
{
	return core_ep_post_send(handle, segments, iov, cookie, flags);
}

__attribute__((noinline, cold)) static DAT_RETURN
write_by_core(DAT_EP_HANDLE handle, DAT_COUNT segments, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	      const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	return core_ep_post_rdma_write(handle, segments, iov, cookie, remote, flags);
}

__attribute__((noinline, cold)) static DAT_RETURN
recv_by_core(DAT_EP_HANDLE handle, DAT_COUNT segments, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	     DAT_COMPLETION_FLAGS flags)
{
	return core_ep_post_recv(handle, segments, iov, cookie, flags);
}

__attribute__((noinline, cold)) static DAT_RETURN dequeue_by_core(DAT_EVD_HANDLE handle,
								  DAT_EVENT *event)
{
	return core_evd_dequeue(handle, event);
}

/* One segment, and no flags, asked for in one go. */
CORE_INLINE bool is_plain(DAT_COUNT segments, DAT_COMPLETION_FLAGS flags)
{
	return (((uint32_t)segments ^ 1u) | (uint32_t)flags) == 0;
}

CORE_INLINE void leave(DAT_HANDLE handle)
{
	core_lock_leave(&((struct core_handle *)handle)->lock);
}

static DAT_RETURN vrb_ep_post_send(DAT_EP_HANDLE handle, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct core_ep *ep = core_express_enter(handle, DAT_HANDLE_TYPE_EP);

	if (!ep)
		return send_by_core(handle, segments, iov, cookie, flags);
	if (!is_plain(segments, flags) || !iov) {
		leave(handle);
		return send_by_core(handle, segments, iov, cookie, flags);
	}
	if (!request_post(handle, ep, CORE_OP_SEND, iov, NULL, cookie)) {
		leave(handle);
		return send_by_core(handle, 1, iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	}
	leave(handle);
	return DAT_SUCCESS;
}

static DAT_RETURN vrb_ep_post_rdma_write(DAT_EP_HANDLE handle, DAT_COUNT segments,
					 DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					 const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	struct core_ep *ep = core_express_enter(handle, DAT_HANDLE_TYPE_EP);

	if (!ep)
		return write_by_core(handle, segments, iov, cookie, remote, flags);
	if (!is_plain(segments, flags) || !iov || !remote) {
		leave(handle);
		return write_by_core(handle, segments, iov, cookie, remote, flags);
	}
	if (!request_post(handle, ep, CORE_OP_RDMA_WRITE, iov, remote, cookie)) {
		leave(handle);
		return write_by_core(handle, 1, iov, cookie, remote, DAT_COMPLETION_DEFAULT_FLAG);
	}
	leave(handle);
	return DAT_SUCCESS;
}

static DAT_RETURN vrb_ep_post_recv(DAT_EP_HANDLE handle, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct core_ep *ep = core_express_enter(handle, DAT_HANDLE_TYPE_EP);

	if (!ep)
		return recv_by_core(handle, segments, iov, cookie, flags);
	if (!is_plain(segments, flags) || !iov) {
		leave(handle);
		return recv_by_core(handle, segments, iov, cookie, flags);
	}
	if (!recv_post(handle, ep, iov, cookie)) {
		leave(handle);
		return recv_by_core(handle, 1, iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	}
	leave(handle);
	return DAT_SUCCESS;
}

/* --- completions --- */

/*
 * The completion is of an endpoint on the express way, and for the dispatcher, which is locked: its
 * event goes straight to who asks. False: nothing was done. The endpoint ranks before the
 * dispatcher, but nobody is waited for.
 */
CORE_INLINE bool completion_take(const struct vrb_cq *cq, DAT_EVD_HANDLE evd_handle,
				 const struct ibv_wc *wc, DAT_EVENT *event)
{
	uint32_t key = (uint32_t)(wc->wr_id >> 32);
	struct core_handle *cell = atomic_load_explicit(
		&cq->ep_cells[key & ((1u << VRB_KEY_INDEX_BITS) - 1)], memory_order_relaxed);
	const struct core_req *req;
	const struct core_wqe *wqe;
	struct vrb_express *way;
	struct core_ep *ep;
	uint64_t head;

	ep = core_express_enter(cell, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return false;
	way = vrb_express_of(ep);
	/* whose dispatcher it is is an endpoint of the instance */
	if (__builtin_expect(key == way->recv_key && vrb_is_message(wc) &&
				     way->recv_evd == evd_handle,
			     true)) {
		wqe = vrb_recv_at(&ep->recv, (uint32_t)wc->wr_id);
		ep->recv.head++;
		way->recv_end++;
		core_event_fill_dto(event, evd_handle, cell, wqe->cookie, DAT_DTO_SUCCESS,
				    wc->byte_len);
		leave(cell);
		return true;
	}
	head = ep->req.head;
	if (key == way->key && wc->status == IBV_WC_SUCCESS && way->request_evd == evd_handle &&
	    (uint32_t)wc->wr_id == (uint32_t)head) {
		req = core_req_at(&ep->req, head);
		ep->req.head = head + 1;
		way->request_end++;
		core_event_fill_dto(event, evd_handle, cell, req->cookie, DAT_DTO_SUCCESS,
				    req->len);
		leave(cell);
		return true;
	}
	leave(cell);
	return false;
}

/* There is none, or not only what completion_take takes. Gives the queue and the dispatcher up. */
__attribute__((noinline)) static DAT_RETURN dequeue_others(DAT_EVD_HANDLE handle, struct vrb_cq *cq,
							   int count, DAT_EVENT *event)
{
	struct core_evd *evd = ((struct core_handle *)handle)->object;
	struct vrb_adapter *adapter = vrb_adapter_of(evd->ia);

	/* relaxed: as in vrb_drive_blocked */
	if (count <= 0 && !atomic_load_explicit(&adapter->blocked, memory_order_relaxed)) {
		vrb_cq_disown(cq);
		leave(handle);
		return (DAT_RETURN)DAT_QUEUE_EMPTY; /* bare: GEN-07 */
	}
	core_evd_take_begin_locked(evd, event);
	vrb_cq_dispatch(adapter, cq, cq->wc, count);
	vrb_drive_blocked(adapter);
	return core_evd_take_end(evd, event);
}

static DAT_RETURN vrb_evd_dequeue(DAT_EVD_HANDLE handle, DAT_EVENT *event)
{
	struct core_evd *evd = core_express_enter(handle, DAT_HANDLE_TYPE_EVD);
	struct vrb_cq *cq;
	int count;

	if (!evd)
		return dequeue_by_core(handle, event);
	cq = evd->source;
	if (!event || !vrb_cq_own(cq)) {
		leave(handle);
		return dequeue_by_core(handle, event);
	}
	vrb_show(&cq->has_polled);
	count = ibv_poll_cq(cq->cq, VRB_POLL_BATCH, cq->wc);
	if (count != 1)
		return dequeue_others(handle, cq, count, event);
	if (!completion_take(cq, handle, cq->wc, event))
		return dequeue_others(handle, cq, 1, event);
	vrb_cq_disown(cq);
	leave(handle);
	return DAT_SUCCESS;
}

const struct transport_calls vrb_calls = {
	.ep_post_send = vrb_ep_post_send,
	.ep_post_recv = vrb_ep_post_recv,
	.ep_post_rdma_write = vrb_ep_post_rdma_write,
	.evd_dequeue = vrb_evd_dequeue,
};
