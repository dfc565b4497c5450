// SPDX-License-Identifier: BSD-2-Clause
/*
 * The endpoint's queues, and the completion of requests and Receives for all transports. Completion
 * flags decide whether an event is raised and whether it notifies. All functions are called with
 * the endpoint locked.
 */
#include "core/ep/ep_queue.h"
#include "core/ep/ep_state.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/log.h"
#include "core/base/probe.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/ep/bind.h"
#include "core/ep/ep.h"
#include "core/ep/ep_fast.h"
#include "core/event/evd_queue.h"
#include "core/srq/srq.h"
#include "shared/names.h"

static const struct core_ref no_srq;

/* --- memory --- */

static int queue_max(int a, int b)
{
	return a > b ? a : b;
}

static bool req_queue_alloc(struct core_req_queue *queue, const DAT_EP_ATTR *attr)
{
	uint32_t slots = core_queue_slots(attr->max_request_dtos);

	memset(queue, 0, sizeof(*queue));
	queue->capacity = (uint32_t)attr->max_request_dtos;
	queue->mask = slots - 1;
	queue->iov_max =
		(uint32_t)queue_max(queue_max(attr->max_request_iov, attr->max_rdma_read_iov),
				    attr->max_rdma_write_iov);
	if (!queue->capacity)
		return true;
	queue->slots = core_line_alloc(slots, sizeof(*queue->slots));
	if (queue->iov_max > 1)
		queue->iov = calloc((size_t)slots * queue->iov_max, sizeof(*queue->iov));
	if (queue->slots && (queue->iov || queue->iov_max <= 1))
		return true;
	core_line_free(queue->slots);
	free(queue->iov);
	return false;
}

void core_ep_free_queues(struct core_ep *ep)
{
	core_line_free(ep->req.slots);
	free(ep->req.iov);
	core_recv_queue_free(&ep->recv);
}

/* Receives may be outstanding; requests cannot in the states in which this is called. */
DAT_RETURN core_ep_size_queues(struct core_ep *ep, const DAT_EP_ATTR *attr)
{
	struct core_recv_queue recv;
	struct core_req_queue req;
	uint64_t posted = ep->recv.tail - ep->recv.head;
	/* posted Receives keep their segments, even if fewer are allowed now */
	DAT_COUNT iov_max = queue_max(attr->max_recv_iov, posted ? (int)ep->recv.iov_max : 0);
	DAT_COUNT capacity = ep->srq ? 0 : attr->max_recv_dtos;

	if (!req_queue_alloc(&req, attr))
		return core_no_resources(DAT_RESOURCE_MEMORY);
	if (!core_recv_queue_alloc(&recv, capacity, iov_max)) {
		core_line_free(req.slots);
		free(req.iov);
		return core_no_resources(DAT_RESOURCE_MEMORY);
	}
	if (posted)
		core_recv_queue_move(&recv, &ep->recv);
	ep->counts.old_requests += ep->req.tail;
	ep->counts.old_recvs += ep->recv.head;
	core_ep_free_queues(ep);
	ep->req = req;
	ep->recv = recv;
	return DAT_SUCCESS;
}

/* --- requests --- */

static void bind_raise(struct core_ep *ep, const struct core_req *req,
		       DAT_DTO_COMPLETION_STATUS status, bool is_notifying)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind;
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	event.event_number = DAT_RMR_BIND_COMPLETION_EVENT;
	bind = &event.event_data.rmr_completion_event_data;
	bind->rmr_handle = req->bound_rmr.cell;
	bind->user_cookie = req->cookie;
	bind->status = status;
	core_evd_post(ep->request_evd, &event, is_notifying);
}

static void req_raise(struct core_ep *ep, const struct core_req *req,
		      DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len)
{
	bool is_good = status == DAT_DTO_SUCCESS;
	/* DTO-22: a failure always notifies */
	bool is_notifying = !is_good || !(req->flags & DAT_COMPLETION_UNSIGNALLED_FLAG);

	if (!ep->request_evd || (is_good && (req->flags & DAT_COMPLETION_SUPPRESS_FLAG)))
		return;
	if (req->op == CORE_OP_BIND)
		bind_raise(ep, req, status, is_notifying);
	else
		core_evd_post_dto(ep->request_evd, ep->cell, CORE_DONE(req->op), req->cookie,
				  status, len, is_notifying, no_srq);
}

struct core_ep *core_ep_drive(struct core_ep *ep)
{
	struct core_ref ref = core_handle_ref(ep->cell);
	struct core_ia *ia = core_ia_enter(ep->ia->cell); /* keeps the instance alive */

	if (!ia)
		return ep;
	core_handle_unlock(ref.cell);
	(void)transport_this->progress(ia);
	core_ia_leave(ia);
	ep = core_handle_lock_ref(ref, DAT_HANDLE_TYPE_EP);
	if (ep)
		transport_this->progress_ep(ep);
	return ep;
}

/* From now on no request succeeds. */
static void ep_break(struct core_ep *ep)
{
	ep->is_breaking = true;
	core_ep_update_slow_reasons(ep);
}

/* The first failure explains why the connection ends. */
CORE_COLD static void req_log_failed(const struct core_ep *ep, const struct core_req *req)
{
	static const char *const kinds[] = {
		[CORE_OP_SEND] = "Send",
		[CORE_OP_RDMA_READ] = "RDMA Read",
		[CORE_OP_RDMA_WRITE] = "RDMA Write",
		[CORE_OP_BIND] = "bind",
		[CORE_OP_WRITE_IMMEDIATE] = "RDMA Write with immediate data",
		[CORE_OP_FETCH_ADD] = "fetch-and-add",
		[CORE_OP_COMPARE_SWAP] = "compare-and-swap",
		[CORE_OP_SEND_INVALIDATE] = "Send with Invalidate",
	};

	core_log(CORE_LOG_ERROR, "%s: %s failed: %s",
		 core_object_name(ep->cell, DAT_HANDLE_TYPE_EP).text, kinds[req->op],
		 opendat_dto_status_name(req->status));
}

static void count_failure(struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status)
{
	if (status == DAT_DTO_ERR_FLUSHED)
		ep->counts.flushed++;
	else
		ep->counts.failed++;
}

/* Raises the completions of done requests in posting order, up to the first that is not done. */
static void req_raise_done(struct core_ep *ep)
{
	struct core_req_queue *queue = &ep->req;

	while (queue->head != queue->tail) {
		struct core_req *req = core_req_at(queue, queue->head);

		if (!req->is_done)
			return;
		if (ep->is_breaking && req->status == DAT_DTO_SUCCESS)
			req->status = DAT_DTO_ERR_FLUSHED; /* DTO-48 */
		if (req->status != DAT_DTO_SUCCESS) {
			count_failure(ep, req->status);
			if (!ep->is_breaking)
				req_log_failed(ep, req);
			ep_break(ep);
		}
		if (req->op == CORE_OP_BIND && req->binding) /* RMR-BIND-39: it was flushed */
			core_bind_drop(ep, req);
		req->is_done = false;
		queue->done--;
		queue->head++; /* DTO-114: free the slot before the event is visible */
		CORE_PROBE4(request_done, ep->cell, req->cookie.as_64, req->done_len, req->status);
		req_raise(ep, req, req->status, req->done_len);
	}
}

void core_req_done(struct core_ep *ep, struct core_req *req, DAT_DTO_COMPLETION_STATUS status,
		   DAT_VLEN len)
{
	assert(!req->is_done);
	req->is_done = true;
	ep->req.done++;
	req->status = status;
	req->done_len = len;
	req_raise_done(ep);
}

static void req_flush(struct core_ep *ep)
{
	for (uint64_t i = ep->req.head; i != ep->req.tail; i++) {
		struct core_req *req = core_req_at(&ep->req, i);

		if (req->is_done)
			continue;
		req->is_done = true;
		ep->req.done++;
		req->status = DAT_DTO_ERR_FLUSHED;
		req->done_len = 0;
	}
	req_raise_done(ep);
}

/* --- Receives --- */

uint32_t core_ep_recv_count(const struct core_ep *ep)
{
	return ep->srq ? ep->srq_user.has_taken : (uint32_t)(ep->recv.tail - ep->recv.head);
}

const struct core_wqe *core_recv_next(struct core_ep *ep)
{
	if (!ep->srq) {
		if (ep->recv.head == ep->recv.tail)
			return NULL;
		return &ep->recv.slots[ep->recv.head & ep->recv.mask];
	}
	if (!ep->srq_user.has_taken &&
	    (!core_srq_take(ep->srq, &ep->srq_user) || !core_ep_check_watermarks(ep)))
		return NULL;
	return &ep->srq_user.taken;
}

void core_srq_filled(struct core_ep *ep, uint32_t index)
{
	core_srq_fill(ep->srq, &ep->srq_user, index);
}

struct core_pz *core_recv_pz(const struct core_ep *ep)
{
	return ep->srq ? ep->srq->pz : ep->pz;
}

static void count_recv_failure(struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status)
{
	ep->counts.recv_failures++;
	count_failure(ep, status);
}

/* Removes the Receive from the endpoint. An SRQ entry stays occupied until the event is taken. */
static void recv_raise(struct core_ep *ep, struct core_done done, DAT_DTO_COOKIE cookie,
		       DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len, bool is_notifying)
{
	struct core_ref srq = no_srq;

	CORE_PROBE4(recv_done, ep->cell, cookie.as_64, len, status);
	if (status == DAT_DTO_SUCCESS)
		ep->counts.recv_bytes += len;
	else
		count_recv_failure(ep, status);
	if (!ep->srq) {
		ep->recv.head++;
	} else {
		ep->counts.srq_recvs++;
		ep->srq_user.has_taken = false;
		srq = core_handle_ref(ep->srq->cell);
	}
	if (ep->recv_evd)
		core_evd_post_dto(ep->recv_evd, ep->cell, done, cookie, status, len, is_notifying,
				  srq);
	else if (ep->srq)
		core_srq_return_one(ep->srq);
}

/* Does a successful Receive notify? */
static bool recv_is_notifying(const struct core_ep *ep, const struct core_wqe *wqe,
			      bool is_solicited)
{
	if (ep->attr.recv_completion_flags == DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return is_solicited;
	return !(wqe->flags & DAT_COMPLETION_UNSIGNALLED_FLAG);
}

static void recv_done(struct core_ep *ep, struct core_done done, DAT_DTO_COMPLETION_STATUS status,
		      DAT_VLEN len, bool is_solicited)
{
	const struct core_wqe *wqe =
		ep->srq ? &ep->srq_user.taken : &ep->recv.slots[ep->recv.head & ep->recv.mask];

	assert(core_ep_recv_count(ep));
	if (status != DAT_DTO_SUCCESS && status != DAT_DTO_ERR_FLUSHED)
		core_log(CORE_LOG_ERROR, "%s: Receive failed: %s",
			 core_object_name(ep->cell, DAT_HANDLE_TYPE_EP).text,
			 opendat_dto_status_name(status));
	recv_raise(ep, done, wqe->cookie, status, len,
		   status != DAT_DTO_SUCCESS || recv_is_notifying(ep, wqe, is_solicited));
}

void core_recv_done(struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len,
		    bool is_solicited)
{
	recv_done(ep, CORE_DONE(CORE_RECEIVED), status, len, is_solicited);
}

void core_recv_done_immediate(struct core_ep *ep, uint32_t value, DAT_VLEN len, bool is_solicited)
{
	const struct core_done done = {CORE_RECEIVED_IMMEDIATE, value};

	ep->counts.recv_immediates++;
	ep->counts.recv_immediate_bytes += len;
	recv_done(ep, done, DAT_DTO_SUCCESS, len, is_solicited);
}

void core_recv_done_invalidate(struct core_ep *ep, uint32_t key, DAT_VLEN len, bool is_solicited)
{
	const struct core_done done = {CORE_RECEIVED_INVALIDATE, key};

	recv_done(ep, done, DAT_DTO_SUCCESS, len, is_solicited);
}

void core_ep_drop_binds(struct core_ep *ep)
{
	for (uint64_t i = ep->req.head; i != ep->req.tail; i++) {
		struct core_req *req = core_req_at(&ep->req, i);

		if (req->op == CORE_OP_BIND && req->binding)
			core_bind_drop(ep, req);
	}
}

void core_ep_flush(struct core_ep *ep)
{
	ep_break(ep);
	req_flush(ep);
	if (ep->srq)
		core_srq_cancel_wait(ep->srq, &ep->srq_user);
	while (core_ep_recv_count(ep))
		core_recv_done(ep, DAT_DTO_ERR_FLUSHED, 0, false);
}

bool core_ep_check_watermarks(struct core_ep *ep)
{
	DAT_COUNT held = (DAT_COUNT)core_ep_recv_count(ep);
	bool is_open =
		ep->state == DAT_EP_STATE_CONNECTED || ep->state == DAT_EP_STATE_DISCONNECT_PENDING;

	if (ep->is_soft_armed && held > ep->soft_watermark) {
		ep->is_soft_armed = false;
		core_ep_update_slow_reasons(ep);
		core_ia_async_event(ep->ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, ep->cell,
				    DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	}
	if (!is_open || ep->hard_watermark == DAT_WATERMARK_INFINITE || held <= ep->hard_watermark)
		return true;
	transport_this->abort(ep);
	return false;
}

void core_ep_set_soft_watermark(struct core_ep *ep, DAT_COUNT soft)
{
	ep->soft_watermark = soft;
	ep->is_soft_armed = soft != DAT_WATERMARK_INFINITE;
}

DAT_RETURN core_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
				 DAT_COUNT hard_high_watermark)
{
	CORE_NO_CANCELLATION;
	struct core_ep *ep = core_ep_lock_driven(ep_handle);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return core_bad_handle(CORE_ARG(ep_set_watermark, 1, ep_handle),
				       DAT_INVALID_HANDLE_EP, ep_handle);
	if (soft_high_watermark < DAT_WATERMARK_INFINITE) {
		ret = core_bad_arg(CORE_ARG(ep_set_watermark, 2, soft_high_watermark),
				   "%d is negative and not DAT_WATERMARK_INFINITE",
				   (int)soft_high_watermark);
	} else if (hard_high_watermark < DAT_WATERMARK_INFINITE) {
		ret = core_bad_arg(CORE_ARG(ep_set_watermark, 3, hard_high_watermark),
				   "%d is negative and not DAT_WATERMARK_INFINITE",
				   (int)hard_high_watermark);
	} else if (ep->srq && ep->srq->transport &&
		   (soft_high_watermark != DAT_WATERMARK_INFINITE ||
		    hard_high_watermark != DAT_WATERMARK_INFINITE)) {
		/* EP-WMARK-19: the device does not report how many buffers an endpoint holds */
		ret = core_unsupported(CORE_ARG(ep_set_watermark, 2, soft_high_watermark),
				       "the device has no high watermarks");
	} else {
		core_ep_set_soft_watermark(ep, soft_high_watermark);
		ep->hard_watermark = hard_high_watermark;
		ep->attr.srq_soft_hw = soft_high_watermark;
		if (ep->srq)
			ep->attr.max_recv_dtos = hard_high_watermark;
		core_ep_update_slow_reasons(ep);
		(void)core_ep_check_watermarks(ep);
	}
	core_handle_unlock(ep->cell);
	return ret;
}
