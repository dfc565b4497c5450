// SPDX-License-Identifier: BSD-2-Clause
/* The slow path of completions. Everything here is called with the endpoint locked. */
#include "verbs/completion.h"

#include <arpa/inet.h>

#include "core/base/handle.h"
#include "core/transport.h"
#include "core/mem/rmr.h"
#include "core/srq/srq.h"
#include "verbs/iwarp.h"
#include "verbs/post.h"
#include "verbs/setup.h"
#include "verbs/srq.h"
#include "verbs/window.h"
#include "verbs/work.h"

/*
 * Completes the unsignalled requests before a position. Everything there is done. Signalled
 * requests wait for their own completions: an iWARP device may finish a Read later than a request
 * behind it.
 */
static void reap_before(struct vrb_conn *conn, struct core_ep *ep, uint64_t position)
{
	for (uint64_t i = ep->req.head; i < conn->post_next; i++) {
		struct core_req *req = core_req_at(&ep->req, i);

		if (vrb_end(req) > position)
			return;
		if (req->is_done || !vrb_is_unsignalled(req))
			continue;
		conn->unsignalled--;
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
	if (position > conn->sq_seen)
		conn->sq_seen = position;
}

/* Returns the request of a completion, and counts the completion. */
static struct core_req *request_of(struct vrb_conn *conn, struct core_ep *ep,
				   const struct ibv_wc *wc)
{
	struct core_req *req = core_req_at(&ep->req, sequence_of(ep, wc->wr_id));

	note_seen(conn, work_end(req));
	if (req->op == CORE_OP_BIND)
		conn->binds_out--;
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
	if (conn->post_next != ep->req.tail || conn->is_graceful)
		vrb_post_requests(conn, ep);
}

static void marker_completed(struct vrb_conn *conn, struct core_ep *ep)
{
	conn->has_marker = false;
	note_seen(conn, conn->marker_posted);
	reap_before(conn, ep, conn->marker_posted);
	send_queue_advanced(conn, ep);
}

static void send_completed(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	struct core_req *req = request_of(conn, ep, wc);

	if (conn->reads_now && vrb_starts_read(conn, req))
		conn->reads_now--;
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

	note_seen(conn, conn->retire_end);
	vrb_window_retired(conn, is_good);
	send_queue_advanced(conn, ep);
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		vrb_conn_flushed(conn, ep);
	else if (!is_good && conn->state == VRB_ESTABLISHED)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
}

static void marker_failed(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	note_seen(conn, conn->marker_posted);
	if (wc->status == IBV_WC_WR_FLUSH_ERR || conn->adapter->is_siw)
		vrb_conn_flushed(conn, ep);
	else if (conn->state == VRB_ESTABLISHED)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
}

static void send_failed(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	struct core_req *req = request_of(conn, ep, wc);

	if (vrb_is_flush(conn, ep, req, wc->status)) { /* the core flushes the requests, in order */
		vrb_conn_flushed(conn, ep);
		return;
	}
	reap_before(conn, ep, work_end(req) - 1);
	if (req->op == CORE_OP_BIND) /* it may not have had its turn yet */
		vrb_bind_note_end(conn, ep, req, work_end(req));
	if (req->sequence == ep->req.head)
		conn->is_binding = false;
	if (!req->is_done)
		vrb_req_done(conn, ep, req, vrb_request_status(ep, req, wc->status), 0);
	if (conn->state == VRB_ESTABLISHED)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
	else if (conn->state == VRB_CLOSING)
		conn->why = DAT_CONNECTION_EVENT_BROKEN;
}

/* Does the message notify? The Sends of a foreign peer and the completions of iWARP do not show
 * whether the sender asked for it, so all of those notify. */
static bool is_solicited(const struct vrb_conn *conn, const struct ibv_wc *wc)
{
	if (!conn->is_opendat || conn->adapter->is_iwarp)
		return true;
	return (wc->wc_flags & IBV_WC_WITH_IMM) && wc->imm_data == htonl(VRB_SOLICITED_IMM);
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
		conn->recv_extra -= !ep->srq;
		vrb_conn_flushed(conn, ep);
		return;
	}
	conn->confirm_retries = 0;
	wqe = core_recv_next(ep);
	if (!wqe) {
		conn->recv_extra -= !ep->srq; /* the Receive of vrb_post_last_recv */
		return;
	}
	if (vrb_is_message(wc)) {
		core_recv_done(ep, DAT_DTO_SUCCESS, wc->byte_len, is_solicited(conn, wc));
		return;
	}
	core_recv_done(ep, vrb_recv_status(ep, wqe, wc->status), 0, true);
	if (conn->state == VRB_ESTABLISHED) {
		vrb_post_last_recv(conn, ep);
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
	} else if (conn->state == VRB_CLOSING) {
		conn->why = DAT_CONNECTION_EVENT_BROKEN;
	}
}

/*
 * Keeps the completion of a message that arrived before the connection was established, and drops
 * any other that comes before or after the connection. False: the completion belongs to the
 * connection.
 */
static bool is_outside_connection(struct vrb_conn *conn, struct core_ep *ep,
				  const struct ibv_wc *wc)
{
	bool is_recv = vrb_work_of(wc) == VRB_WORK_RECV;

	if (conn->state == VRB_ESTABLISHED || conn->state == VRB_CLOSING)
		return false;
	if (conn->state == VRB_CONNECTING && is_recv && wc->status == IBV_WC_SUCCESS &&
	    conn->early_count < conn->early_room) {
		conn->early[conn->early_count++] = *wc;
		return true;
	}
	if (is_recv && ep->srq)
		core_srq_discard(core_handle_ref(ep->srq->cell), (uint32_t)wc->wr_id);
	else if (is_recv)
		conn->recv_extra--;
	return true;
}

void vrb_completion(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	enum vrb_work work = vrb_work_of(wc);

	if (work == VRB_WORK_RECV && conn->is_unconfirmed) {
		conn->recv_extra--;
		vrb_confirm_received(conn, ep, wc);
		return;
	}
	/* the first message may overtake the confirmation (CR-ACCEPT-24) */
	if (conn->state == VRB_ACCEPTED && wc->status == IBV_WC_SUCCESS)
		vrb_conn_established(conn, ep);
	if (is_outside_connection(conn, ep, wc))
		return;
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

void vrb_completions_early(struct vrb_conn *conn, struct core_ep *ep)
{
	uint32_t count = conn->early_count;

	conn->early_count = 0;
	for (uint32_t i = 0; i < count; i++)
		vrb_completion(conn, ep, &conn->early[i]);
}

void vrb_completions_drop_early(struct vrb_conn *conn)
{
	struct core_ref srq;

	for (uint32_t i = 0; i < conn->early_count; i++)
		if (vrb_srq_by_key(conn->adapter, vrb_work_key(&conn->early[i]), &srq))
			core_srq_discard(srq, (uint32_t)conn->early[i].wr_id);
	conn->early_count = 0;
}
