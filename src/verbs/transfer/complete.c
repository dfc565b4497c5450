// SPDX-License-Identifier: BSD-2-Clause
/* The slow path of completions, with the endpoint locked. */
#include "verbs/transfer/complete.h"

#include <arpa/inet.h>

#include "core/base/handle.h"
#include "core/ep/bind.h"
#include "core/mem/mem.h"
#include "core/mem/pz.h"
#include "core/mem/rmr.h"
#include "core/srq/srq.h"
#include "core/transport.h"
#include "verbs/device/device.h"
#include "verbs/device/mem.h"
#include "verbs/transfer/bind.h"
#include "verbs/transfer/post.h"
#include "verbs/transfer/queue.h"

/* --- status --- */

DAT_DTO_COMPLETION_STATUS vrb_status(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return DAT_DTO_SUCCESS;
	case IBV_WC_WR_FLUSH_ERR:
		return DAT_DTO_ERR_FLUSHED;
	case IBV_WC_LOC_LEN_ERR:
		return DAT_DTO_ERR_LOCAL_LENGTH;
	case IBV_WC_LOC_QP_OP_ERR:
	case IBV_WC_LOC_EEC_OP_ERR:
	case IBV_WC_LOC_RDD_VIOL_ERR:
	case IBV_WC_INV_EECN_ERR:
	case IBV_WC_INV_EEC_STATE_ERR:
		return DAT_DTO_ERR_LOCAL_EP;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	case IBV_WC_MW_BIND_ERR:
		return DAT_RMR_OPERATION_FAILED;
	case IBV_WC_BAD_RESP_ERR:
		return DAT_DTO_ERR_BAD_RESPONSE;
	case IBV_WC_REM_ACCESS_ERR:
		return DAT_DTO_ERR_REMOTE_ACCESS;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_INV_RD_REQ_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return DAT_DTO_ERR_REMOTE_RESPONDER;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return DAT_DTO_ERR_RECEIVER_NOT_READY;
	default: /* RETRY_EXC, FATAL, RESP_TIMEOUT, GENERAL, and values that are not defined yet */
		return DAT_DTO_ERR_TRANSPORT;
	}
}

/* Are the segments still valid, as they were when the call checked them? */
static bool segments_are_valid(struct core_ia *ia, const DAT_LMR_TRIPLET *iov, uint32_t count,
			       const struct core_pz *pz, enum core_mem_use use)
{
	for (uint32_t i = 0; i < count; i++) {
		struct core_lmr *lmr = core_mem_get(ia->mem, &iov[i], pz, use);

		if (!lmr)
			return false;
		core_mem_put(lmr);
	}
	return true;
}

/*
 * Some devices (rxe) report every fault of a work request as a "local queue pair operation error".
 * The core can check whether the memory is the cause. If it is not, a Receive was too small.
 */
static bool is_unspecific(enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_GENERAL_ERR ||
	       status == IBV_WC_FATAL_ERR;
}

/* The status of a failed request. */
static DAT_DTO_COMPLETION_STATUS request_status(struct core_ep *ep, const struct core_req *req,
						enum ibv_wc_status status)
{
	bool is_read = core_op_is_read(req->op);

	if (is_unspecific(status) &&
	    !segments_are_valid(ep->ia, req->iov, req->segments, ep->pz,
				is_read ? CORE_MEM_TARGET : CORE_MEM_SOURCE))
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	if (is_unspecific(status) && !vrb_device_is_up(vrb_adapter_of(ep->ia)))
		return DAT_DTO_ERR_TRANSPORT; /* rxe reports this also when there is no route */
	return vrb_status(status);
}

/*
 * Was the request flushed rather than carried out with an error? When the peer has closed the
 * stream and the connection manager has not reported it yet, TCP accepts nothing more and siw fails
 * the request. A moment later siw would flush the same request.
 */
static bool is_flush(struct vrb_conn *conn, struct core_ep *ep, const struct core_req *req,
		     enum ibv_wc_status status)
{
	return status == IBV_WC_WR_FLUSH_ERR ||
	       (conn->adapter->is_siw && status == IBV_WC_LOC_QP_OP_ERR &&
		request_status(ep, req, status) != DAT_DTO_ERR_LOCAL_PROTECTION);
}

/* The status of a failed Receive. */
static DAT_DTO_COMPLETION_STATUS recv_status(struct core_ep *ep, const struct core_wqe *wqe,
					     const struct ibv_wc *wc)
{
	if (vrb_is_message(wc)) /* the key that it kills is none */
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	if (is_unspecific(wc->status) &&
	    !segments_are_valid(ep->ia, wqe->iov, wqe->segments, core_recv_pz(ep), CORE_MEM_TARGET))
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	if (wc->status == IBV_WC_SUCCESS) /* immediate data that the endpoint does not take */
		return DAT_DTO_ERR_BAD_RESPONSE;
	return wc->status == IBV_WC_LOC_QP_OP_ERR ? DAT_DTO_ERR_LOCAL_LENGTH
						  : vrb_status(wc->status);
}

/* --- requests --- */

/*
 * Completes the unsignalled requests before a position. Everything there is done. Signalled
 * requests wait for their own completions: an iWARP device may finish a Read later than a request
 * after it.
 */
static void reap_before(struct vrb_conn *conn, struct core_ep *ep, uint64_t position)
{
	for (uint64_t i = ep->req.head; i < conn->sq.next; i++) {
		struct core_req *req = core_req_at(&ep->req, i);

		if (vrb_end(req) > position)
			return;
		if (req->is_done || !vrb_is_unsignalled(req))
			continue;
		conn->sq.unsignalled--;
		vrb_req_done(conn, ep, req, DAT_DTO_SUCCESS, req->len);
	}
}

/* The sequence of the request whose low half is in the ID of its work request. */
static uint64_t sequence_of(const struct core_ep *ep, uint64_t wr_id)
{
	return ep->req.head + (uint32_t)((uint32_t)wr_id - (uint32_t)ep->req.head);
}

/* The position behind the request's work request. */
static uint64_t work_end(const struct core_req *req)
{
	return req->op == CORE_OP_BIND ? vrb_bind_end(req) : vrb_end(req);
}

static void note_seen(struct vrb_conn *conn, uint64_t position)
{
	if (position > conn->sq.seen)
		conn->sq.seen = position;
}

/* Returns the request of a completion, and counts the completion. */
static struct core_req *request_of(struct vrb_conn *conn, struct core_ep *ep,
				   const struct ibv_wc *wc)
{
	struct core_req *req = core_req_at(&ep->req, sequence_of(ep, wc->wr_id));

	note_seen(conn, work_end(req));
	if (req->op == CORE_OP_BIND)
		conn->binds.out--;
	return req;
}

/* Work requests have left the send queue: continues what waited for that. */
static void send_queue_advanced(struct vrb_conn *conn, struct core_ep *ep)
{
	vrb_bind_continue(conn, ep);
	vrb_free_marker(conn, ep);
	if (conn->state != VRB_ESTABLISHED)
		return;
	vrb_post_needed_marker(conn, ep);
	if (conn->sq.next != ep->req.tail || conn->end.is_graceful)
		vrb_post_requests(conn, ep);
}

static void marker_completed(struct vrb_conn *conn, struct core_ep *ep)
{
	conn->marker.is_out = false;
	note_seen(conn, conn->marker.posted);
	reap_before(conn, ep, conn->marker.posted);
	send_queue_advanced(conn, ep);
}

static void send_completed(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	struct core_req *req = request_of(conn, ep, wc);

	if (conn->sq.reads_now && vrb_starts_read(conn, req))
		conn->sq.reads_now--;
	if (req->op == CORE_OP_BIND) /* the request itself is done when it has its turn */
		vrb_window_bound(req->binding->key);
	reap_before(conn, ep, work_end(req));
	if (req->op != CORE_OP_BIND)
		vrb_req_done(conn, ep, req, DAT_DTO_SUCCESS, req->len);
	send_queue_advanced(conn, ep);
}

/* The second work request of a bind has completed. It unbinds the old window. If it has failed,
 * vrb_rmr_key_revoke destroys the window instead. */
static void unbind_completed(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	bool is_good = wc->status == IBV_WC_SUCCESS;

	note_seen(conn, conn->binds.retire_end);
	vrb_window_retired(conn, is_good);
	send_queue_advanced(conn, ep);
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		vrb_conn_flushed(conn, ep);
	else if (!is_good && conn->state == VRB_ESTABLISHED)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
}

static void marker_failed(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	note_seen(conn, conn->marker.posted);
	if (wc->status == IBV_WC_WR_FLUSH_ERR || conn->adapter->is_siw)
		vrb_conn_flushed(conn, ep);
	else if (conn->state == VRB_ESTABLISHED)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
}

static void send_failed(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	struct core_req *req = request_of(conn, ep, wc);

	if (is_flush(conn, ep, req, wc->status)) { /* the core flushes the requests, in order */
		vrb_conn_flushed(conn, ep);
		return;
	}
	reap_before(conn, ep, work_end(req) - 1);
	if (req->op == CORE_OP_BIND) /* it may not have had its turn yet */
		vrb_bind_note_end(conn, ep, req, work_end(req));
	if (req->sequence == ep->req.head)
		conn->binds.is_running = false;
	if (!req->is_done)
		vrb_req_done(conn, ep, req, request_status(ep, req, wc->status), 0);
	if (conn->state == VRB_ESTABLISHED)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
	else if (conn->state == VRB_CLOSING)
		conn->end.why = DAT_CONNECTION_EVENT_BROKEN;
}

/* --- Receives --- */

/* Does the message notify? The Sends of a foreign peer and the completions of iWARP do not show
 * whether the sender asked for it, so all of those notify. */
static bool is_solicited(const struct vrb_conn *conn, const struct ibv_wc *wc)
{
	if (!conn->is_opendat || conn->adapter->is_iwarp)
		return true;
	return (wc->wc_flags & IBV_WC_WITH_IMM) && wc->imm_data == htonl(VRB_SOLICITED_IMM);
}

/* The immediate data of an RDMA Write. */
static bool is_immediate(const struct vrb_conn *conn, const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
	       (conn->takes & TRANSPORT_TAKES_IMMEDIATE);
}

/* Does the message name a key of ours that dies? Our own peers send other immediate data to ask for
 * a notification only. */
static bool is_kill(const struct vrb_conn *conn, const struct ibv_wc *wc)
{
	return vrb_is_message(wc) && (wc->wc_flags & IBV_WC_WITH_IMM) &&
	       wc->imm_data != htonl(VRB_SOLICITED_IMM) && conn->is_opendat &&
	       (conn->takes & TRANSPORT_TAKES_INVALIDATE);
}

/*
 * Ends remote access by a key, on behalf of the peer. A window that a bind is unbinding already is
 * as good as unbound, so it cannot be killed.
 */
static bool kill_key(struct core_ep *ep, uint32_t key)
{
	enum core_kill kill = core_bind_kill(ep, key);

	return kill == CORE_KILL_NONE ? vrb_lmr_kill(ep->ia, ep->pz, key) : kill == CORE_KILL_DONE;
}

/* Completes a successful Receive. False: it has failed. */
static bool recv_succeeded(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	uint32_t value = ntohl(wc->imm_data);

	/* the completion does not show whether immediate data asked for a notification */
	if (is_kill(conn, wc)) {
		if (!kill_key(ep, value))
			return false;
		core_recv_done_invalidate(ep, value, wc->byte_len, true);
	} else if (vrb_is_message(wc)) {
		core_recv_done(ep, DAT_DTO_SUCCESS, wc->byte_len, is_solicited(conn, wc));
	} else if (is_immediate(conn, wc)) {
		core_recv_done_immediate(ep, value, wc->byte_len, true);
	} else {
		return false;
	}
	return true;
}

static void recv_completed(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	const struct core_wqe *wqe;

	if (ep->srq) {
		core_srq_filled(ep, (uint32_t)wc->wr_id);
		if (wc->status == IBV_WC_WR_FLUSH_ERR) /* SRQ-USE-05 */
			core_recv_done(ep, DAT_DTO_ERR_FLUSHED, 0, true);
	}
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		conn->rq.extra -= !ep->srq;
		vrb_conn_flushed(conn, ep);
		return;
	}
	conn->setup.confirm_retries = 0;
	wqe = core_recv_next(ep);
	if (!wqe) {
		conn->rq.extra -= !ep->srq; /* the Receive of vrb_post_last_recv */
		return;
	}
	if (recv_succeeded(conn, ep, wc))
		return;
	core_recv_done(ep, recv_status(ep, wqe, wc), 0, true);
	if (conn->state == VRB_ESTABLISHED) {
		vrb_post_last_recv(conn, ep);
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
	} else if (conn->state == VRB_CLOSING) {
		conn->end.why = DAT_CONNECTION_EVENT_BROKEN;
	}
}

void vrb_completion(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	enum vrb_work work = vrb_work_of(wc);

	if (work == VRB_WORK_RECV)
		recv_completed(conn, ep, wc);
	else if (work == VRB_WORK_MARKER && (uint32_t)wc->wr_id == VRB_MARKER_RETIRED)
		unbind_completed(conn, ep, wc);
	else if (work == VRB_WORK_MARKER && wc->status != IBV_WC_SUCCESS)
		marker_failed(conn, ep, wc);
	else if (work == VRB_WORK_MARKER)
		marker_completed(conn, ep);
	else if (wc->status != IBV_WC_SUCCESS)
		send_failed(conn, ep, wc);
	else if (work != VRB_WORK_PART)
		send_completed(conn, ep, wc);
}
