// SPDX-License-Identifier: BSD-2-Clause
/*
 * The general path of work requests and their completions; fast.c does the plain ones. The device's
 * send queue shadows the endpoint's request queue: requests go down in order as far as there is
 * room and no bind is in the way. A suppressed request asks for no completion while one is due
 * anyway; when the last one that is due has come and others were posted behind it, a marker (a
 * Write of length 0) finds out about those. Everything here is called with the endpoint locked.
 *
 * What a device's library does for a post or a poll may be a system call, and that a cancellation
 * point. The slots of the data path and of the polls (cq.c) switch cancellation off.
 */
#include <errno.h>
#include <string.h>

#include <arpa/inet.h>

#include "core/base/cancel.h"
#include "core/base/log.h"
#include "core/mem/rmr.h"
#include "verbs/verbs.h"
#include "verbs/work.h"

#define BATCH 8u /* work requests that one doorbell starts */
#define RECV_BATCH 16u
/* Immediate data of a Send that asks for a notification. */
#define SOLICITED_IMM 0x6f445357u

/* --- building --- */

struct batch {
	struct ibv_send_wr wr[BATCH];
	struct ibv_sge sge[BATCH][VRB_SEGMENTS_MAX];
	uint32_t count;
};

static struct ibv_send_wr *batch_add(struct batch *batch)
{
	struct ibv_send_wr *wr = &batch->wr[batch->count];

	memset(wr, 0, sizeof(*wr));
	wr->sg_list = batch->sge[batch->count];
	if (batch->count)
		wr[-1].next = wr;
	batch->count++;
	return wr;
}

/* The connection fails here; what was not posted is flushed by the core. */
void vrb_refused(struct vrb_conn *conn, struct core_ep *ep, int rc)
{
	core_log(CORE_LOG_CONN, "queue pair %u: post refused: error %d", conn->qp->qp_num, rc);
	/* nothing will tell about those: what was posted is taken as seen */
	conn->sq_seen = vrb_sq_posted(conn);
	vrb_conn_flushed(conn, ep);
}

static bool batch_send(struct vrb_conn *conn, struct core_ep *ep, struct batch *batch)
{
	struct ibv_send_wr *bad = NULL;
	int rc;

	if (!batch->count)
		return true;
	batch->count = 0;
	rc = conn->adapter->is_siw ? vrb_siw_post(conn, batch->wr, &bad)
				   : ibv_post_send(conn->qp, batch->wr, &bad);
	if (rc)
		vrb_refused(conn, ep, rc);
	return !rc;
}

/* iWARP answers no Write: is it followed by a read of nothing that proves it? */
static bool needs_proof(const struct vrb_conn *conn, const struct core_req *req)
{
	return conn->adapter->is_iwarp && req->op == CORE_OP_RDMA_WRITE && req->len &&
	       !(req->flags & DAT_COMPLETION_SUPPRESS_FLAG);
}

static bool is_reading(const struct vrb_conn *conn, const struct core_req *req)
{
	return req->op == CORE_OP_RDMA_READ || needs_proof(conn, req);
}

static uint32_t device_flags(const struct vrb_conn *conn, const struct core_req *req,
			     bool is_signalled)
{
	uint32_t flags = is_signalled ? IBV_SEND_SIGNALED : 0;

	if ((req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) && !conn->adapter->is_siw)
		flags |= IBV_SEND_FENCE; /* else: waits_for_reads */
	if (req->flags && req->op == CORE_OP_SEND &&
	    (req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG))
		flags |= IBV_SEND_SOLICITED;
	/*
	 * A post copies inline data, but a fenced request must carry what the RDMA Reads before it
	 * bring (DTO-30). Only siw's reads are counted, and a fence is hardly ever for nothing.
	 */
	if (req->op != CORE_OP_RDMA_READ && req->len &&
	    !(req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) &&
	    req->len <= conn->adapter->limits.inline_max)
		flags |= IBV_SEND_INLINE;
	return flags;
}

static void set_opcode(const struct vrb_conn *conn, const struct core_req *req,
		       struct ibv_send_wr *wr)
{
	switch (req->op) {
	case CORE_OP_RDMA_WRITE:
		wr->opcode = IBV_WR_RDMA_WRITE;
		break;
	case CORE_OP_RDMA_READ:
		wr->opcode = IBV_WR_RDMA_READ;
		break;
	default:
		wr->opcode = IBV_WR_SEND;
		/* a completion does not show the solicited bit, but it shows immediate data */
		if ((req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) && conn->is_ours &&
		    !conn->adapter->is_iwarp) {
			wr->opcode = IBV_WR_SEND_WITH_IMM;
			wr->imm_data = htonl(SOLICITED_IMM);
		}
		return;
	}
	wr->wr.rdma.remote_addr = req->remote.target_address;
	wr->wr.rdma.rkey = req->remote.rmr_context;
}

/*
 * A read of nothing behind a Write: iWARP answers no Write, but that read (COMPAT-41). siw breaks
 * the connection when a read of nothing has to wait for what it is sending: there it is the first
 * byte that was written, which siw lets be read whatever the privileges are (docs/verbs.md).
 */
static void add_proof(struct vrb_conn *conn, const struct core_req *req, struct batch *batch)
{
	const struct ibv_send_wr *write = &batch->wr[batch->count - 1];
	struct ibv_send_wr *wr = batch_add(batch);

	wr->wr_id = vrb_work_id(VRB_WORK_REQUEST, conn->key, req->sequence);
	wr->opcode = IBV_WR_RDMA_READ;
	wr->send_flags = IBV_SEND_SIGNALED;
	wr->wr.rdma = write->wr.rdma;
	wr->num_sge = 1;
	if (conn->scratch_mr) {
		wr->sg_list[0] = (struct ibv_sge){.addr = (uintptr_t)&conn->scratch,
						  .length = sizeof(conn->scratch),
						  .lkey = conn->scratch_mr->lkey};
		return;
	}
	wr->sg_list[0] = write->sg_list[0];
	wr->sg_list[0].length = 0;
}

/*
 * Is a completion to come of anything in the send queue? Requests are, from the oldest that is not
 * done to the next to post; one among them that is done is held up by one that has a completion.
 */
static bool is_one_due(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return conn->post_next - ep->req.head != conn->silent || conn->has_marker ||
	       conn->retiring || conn->binds_out;
}

/* Does the request ask the device for a completion? */
static bool is_signalled_now(const struct vrb_conn *conn, const struct core_ep *ep,
			     const struct core_req *req)
{
	return req->op == CORE_OP_RDMA_READ || !(req->flags & DAT_COMPLETION_SUPPRESS_FLAG) ||
	       !is_one_due(conn, ep) ||
	       vrb_sq_posted(conn) - vrb_sq_done(conn, ep) >= conn->sq_size / 2;
}

/* Notes that the request was posted, as one work request or with a proof. */
static void note_posted(struct vrb_conn *conn, struct core_req *req, bool is_signalled,
			bool has_proof)
{
	conn->post_next++;
	conn->extra += has_proof;
	conn->silent += !is_signalled;
	conn->reads_now += conn->adapter->is_siw && is_reading(conn, req);
	vrb_note_extra(req, conn->extra);
	vrb_note_silent(req, !is_signalled);
}

/* False: a local segment is no longer good, and nothing was done. */
static bool add_request(struct vrb_conn *conn, struct core_ep *ep, struct core_req *req,
			struct batch *batch)
{
	bool is_read = req->op == CORE_OP_RDMA_READ;
	bool has_proof = needs_proof(conn, req);
	bool is_signalled = is_signalled_now(conn, ep, req);
	struct ibv_send_wr *wr = batch_add(batch);

	if (!vrb_segments(ep->ia, req->iov, req->segments, is_read, wr->sg_list)) {
		batch->count--;
		if (batch->count)
			wr[-1].next = NULL;
		return false;
	}
	wr->num_sge = (int)req->segments;
	if (is_read && !req->segments && conn->adapter->is_iwarp) {
		memset(wr->sg_list, 0, sizeof(*wr->sg_list)); /* it wants one, be it empty */
		wr->num_sge = 1;
	}
	wr->wr_id =
		vrb_work_id(has_proof ? VRB_WORK_PART : VRB_WORK_REQUEST, conn->key, req->sequence);
	wr->send_flags = device_flags(conn, req, is_signalled && !has_proof);
	set_opcode(conn, req, wr);
	if (has_proof)
		add_proof(conn, req, batch);
	note_posted(conn, req, is_signalled, has_proof);
	return true;
}

/* --- requests down --- */

/* The head of the endpoint's queue was there, and may have passed requests since. */
static void follow_head(struct vrb_conn *conn, struct core_ep *ep, uint64_t before)
{
	if (ep->req.head != before)
		conn->extra_done = vrb_noted_extra(core_req_at(&ep->req, ep->req.head - 1));
}

static void req_done(struct vrb_conn *conn, struct core_ep *ep, struct core_req *req,
		     DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len)
{
	uint64_t before = ep->req.head;

	core_req_done(ep, req, status, len);
	follow_head(conn, ep, before);
}

/* The place of a marker that is done is free when everything before it is done, too. */
static void free_marker(struct vrb_conn *conn, const struct core_ep *ep)
{
	if (!conn->has_marker && conn->marker_posted > vrb_sq_done(conn, ep) &&
	    ep->req.head >= conn->marker_next)
		conn->extra_done = conn->marker_posted - ep->req.head;
}

static bool has_room(const struct vrb_conn *conn, const struct core_ep *ep,
		     const struct core_req *req)
{
	return vrb_has_room(conn, ep, needs_proof(conn, req) ? 2 : 1);
}

/*
 * siw stops its whole send queue at a request that has to wait for reads, and with it its answers
 * to the peer's reads: two sides that stop so stop for ever. And it breaks the connection at a read
 * that is fenced (docs/verbs.md). There a request is posted when it needs not wait any more.
 */
static bool waits_for_reads(const struct vrb_conn *conn, const struct core_req *req)
{
	uint32_t most = conn->read_out ? conn->read_out : 1;

	if (!conn->reads_now)
		return false;
	return (req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) ||
	       (conn->reads_now >= most && is_reading(conn, req));
}

/* A bind's own work request was posted with the call. 0: it needed none. */
static uint64_t bind_end(const struct core_req *req)
{
	return req->binding && req->binding->key ? vrb_window_end(req->binding->key) : 0;
}

static bool bind_is_ready(const struct core_req *req)
{
	return !req->binding->key || vrb_window_is_ready(req->binding->key);
}

/*
 * The bind, the oldest request, ends at that position, or where everything is done already: its
 * work request may lie in front of what it follows. It has its turn with this, or had it.
 */
static void note_bind(const struct vrb_conn *conn, const struct core_ep *ep, struct core_req *req,
		      uint64_t end)
{
	uint64_t done = vrb_sq_done(conn, ep);

	vrb_note_extra(req, (end > done ? end : done) - (req->sequence + 1));
}

/* The oldest request is a bind, and something about it may have changed. */
static enum core_bind bind_run(struct vrb_conn *conn, struct core_ep *ep)
{
	struct core_req *req = core_req_at(&ep->req, ep->req.head);
	uint64_t before = ep->req.head;
	enum core_bind result = core_bind_run(ep, req, bind_is_ready(req));

	follow_head(conn, ep, before);
	vrb_window_blocked(conn, result == CORE_BIND_BLOCKED);
	if (result == CORE_BIND_BLOCKED && conn->state == VRB_ESTABLISHED)
		vrb_conn_at(conn, vrb_now_ns() + VRB_NS_PER_MS); /* if nobody polls */
	if (result != CORE_BIND_DONE && conn->retiring)
		note_bind(conn, ep, req, conn->retire_end);
	return result;
}

/* One that was begun. */
static void bind_go_on(struct vrb_conn *conn, struct core_ep *ep)
{
	if (conn->is_binding && bind_is_ready(core_req_at(&ep->req, ep->req.head)))
		conn->is_binding = bind_run(conn, ep) != CORE_BIND_DONE;
}

/* The next request to post is a bind. False: it has to wait, and with it those behind. */
static bool bind_begin(struct vrb_conn *conn, struct core_ep *ep, struct core_req *req)
{
	enum core_bind result;

	if (req->sequence != ep->req.head)
		return false; /* asked again when those before it are done */
	note_bind(conn, ep, req, bind_end(req));
	result = bind_run(conn, ep);
	if (result == CORE_BIND_BLOCKED)
		return false;
	conn->is_binding = result == CORE_BIND_ORDERED;
	conn->post_next++;
	conn->extra--; /* a window's bind was counted when it was posted */
	return true;
}

/* What asks for no completion, and has none behind it that is due, is found out about. */
static void mark(struct vrb_conn *conn, struct core_ep *ep)
{
	if (conn->silent && !is_one_due(conn, ep) && !conn->is_binding)
		vrb_post_marker(conn, ep, IBV_WR_RDMA_WRITE);
}

/*
 * A local segment of the next request is no longer good. Those before it go their way: their end
 * decides what is reported first.
 */
static void post_bad(struct vrb_conn *conn, struct core_ep *ep, struct core_req *req,
		     struct batch *batch)
{
	conn->post_next++;
	conn->extra--; /* it is no work request */
	vrb_note_extra(req, conn->extra);
	if (!batch_send(conn, ep, batch))
		return;
	req_done(conn, ep, req, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
}

void vrb_post_send(struct vrb_conn *conn, struct core_ep *ep)
{
	struct batch batch;

	batch.count = 0;
	if (conn->is_binding) {
		bind_go_on(conn, ep);
		mark(conn, ep);
	}
	while (conn->state == VRB_ESTABLISHED && conn->post_next != ep->req.tail) {
		struct core_req *req = core_req_at(&ep->req, conn->post_next);

		if (req->op == CORE_OP_BIND) {
			if (!batch_send(conn, ep, &batch) || !bind_begin(conn, ep, req))
				break;
			continue;
		}
		if (!has_room(conn, ep, req) || waits_for_reads(conn, req))
			break;
		if (batch.count > BATCH - 2 && !batch_send(conn, ep, &batch))
			return;
		if (!add_request(conn, ep, req, &batch)) {
			post_bad(conn, ep, req, &batch);
			return;
		}
	}
	(void)batch_send(conn, ep, &batch);
	if (conn->state == VRB_ESTABLISHED && conn->is_graceful && ep->req.head == ep->req.tail)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

void vrb_post_request(struct core_ep *ep, struct core_req *req)
{
	struct vrb_conn *conn = vrb_conn_of(ep);
	int state;

	(void)req; /* with those before it that wait */
	if (!conn)
		return;
	vrb_show(&conn->adapter->has_posted);
	state = core_cancel_off();
	vrb_post_send(conn, ep);
	vrb_review(ep);
	core_cancel_restore(state);
}

void vrb_post_marker(struct vrb_conn *conn, struct core_ep *ep, enum ibv_wr_opcode opcode)
{
	struct batch batch;
	struct ibv_send_wr *wr;

	batch.count = 0;
	wr = batch_add(&batch);
	wr->wr_id = vrb_work_id(VRB_WORK_MARKER, conn->key, VRB_MARKER_PLAIN);
	wr->opcode = opcode;
	wr->send_flags = IBV_SEND_SIGNALED;
	conn->extra++;
	conn->has_marker = true;
	conn->marker_posted = vrb_sq_posted(conn);
	conn->marker_next = conn->post_next;
	(void)batch_send(conn, ep, &batch);
}

/* --- Receives down --- */

void vrb_recv_refused(struct vrb_conn *conn, struct core_ep *ep, int rc)
{
	core_log(CORE_LOG_CONN, "queue pair %u: Receive refused: error %d", conn->qp->qp_num, rc);
	if (conn->state == VRB_ESTABLISHED)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
}

void vrb_post_recv(struct vrb_conn *conn, struct core_ep *ep)
{
	struct ibv_sge sge[RECV_BATCH][VRB_SEGMENTS_MAX];
	struct ibv_recv_wr wr[RECV_BATCH], *bad;
	uint32_t count;
	int rc;

	if (ep->srq || !conn->is_receiving)
		return;
	while (conn->recv_next != ep->recv.tail) {
		for (count = 0; count < RECV_BATCH && conn->recv_next != ep->recv.tail; count++) {
			const struct core_wqe *wqe =
				&ep->recv.slots[conn->recv_next & ep->recv.mask];

			wr[count] = (struct ibv_recv_wr){
				.wr_id = vrb_work_id(VRB_WORK_RECV, conn->key, conn->recv_next),
				.sg_list = sge[count],
				.num_sge = vrb_recv_segments(ep->ia, wqe, sge[count]),
			};
			if (count)
				wr[count - 1].next = &wr[count];
			conn->recv_next++;
		}
		rc = ibv_post_recv(conn->qp, wr, &bad);
		if (!rc)
			continue;
		for (const struct ibv_recv_wr *i = bad; i; i = i->next)
			conn->recv_extra--;
		vrb_recv_refused(conn, ep, rc);
		return;
	}
}

void vrb_posted_recv(struct core_ep *ep)
{
	struct vrb_conn *conn = vrb_conn_of(ep);
	int state;

	if (!conn)
		return;
	state = core_cancel_off();
	vrb_post_recv(conn, ep);
	vrb_review(ep);
	core_cancel_restore(state);
}

/* --- completions --- */

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
	default: /* RETRY_EXC, FATAL, RESP_TIMEOUT, GENERAL and what is still to be invented */
		return DAT_DTO_ERR_TRANSPORT;
	}
}

/* Are the segments still what the posting call has checked? */
static bool are_good(struct core_ia *ia, const DAT_LMR_TRIPLET *iov, uint32_t count,
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
 * "Local queue pair operation error" says little, and some devices (rxe) report every fault of a
 * work request with it. The core knows whether the memory is to blame; if it is not, a Receive was
 * too small.
 */
static bool says_little(enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_GENERAL_ERR ||
	       status == IBV_WC_FATAL_ERR;
}

static DAT_DTO_COMPLETION_STATUS request_status(struct core_ep *ep, const struct core_req *req,
						enum ibv_wc_status status)
{
	bool is_read = req->op == CORE_OP_RDMA_READ;

	if (says_little(status) && !are_good(ep->ia, req->iov, req->segments, ep->pz,
					     is_read ? CORE_MEM_TARGET : CORE_MEM_SOURCE))
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	if (says_little(status) && !vrb_device_is_up(vrb_adapter_of(ep->ia)))
		return DAT_DTO_ERR_TRANSPORT; /* rxe says that also when it finds no way */
	return vrb_status(status);
}

/*
 * siw fails a request with that when TCP takes nothing any more, because the peer has ended the
 * stream and the connection manager has not said so yet: a flush, as it is a moment later.
 */
static bool is_flush(struct vrb_conn *conn, struct core_ep *ep, const struct core_req *req,
		     enum ibv_wc_status status)
{
	return status == IBV_WC_WR_FLUSH_ERR ||
	       (conn->adapter->is_siw && status == IBV_WC_LOC_QP_OP_ERR &&
		request_status(ep, req, status) != DAT_DTO_ERR_LOCAL_PROTECTION);
}

static DAT_DTO_COMPLETION_STATUS recv_status(struct core_ep *ep, const struct core_wqe *wqe,
					     enum ibv_wc_status status)
{
	if (says_little(status) &&
	    !are_good(ep->ia, wqe->iov, wqe->segments, core_recv_pz(ep), CORE_MEM_TARGET))
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	if (status == IBV_WC_SUCCESS) /* but it was no message */
		return DAT_DTO_ERR_BAD_RESPONSE;
	return status == IBV_WC_LOC_QP_OP_ERR ? DAT_DTO_ERR_LOCAL_LENGTH : vrb_status(status);
}

/*
 * Everything before that position is done. What asked for a completion waits for it: an iWARP
 * device may finish a read later than what was posted behind it.
 */
static void reap_before(struct vrb_conn *conn, struct core_ep *ep, uint64_t position)
{
	for (uint64_t i = ep->req.head; i < conn->post_next; i++) {
		struct core_req *req = core_req_at(&ep->req, i);

		if (vrb_end(req) > position)
			return;
		if (req->is_done || !vrb_is_silent(req))
			continue;
		conn->silent--;
		req_done(conn, ep, req, DAT_DTO_SUCCESS, req->len);
	}
}

/* What the endpoint's queue calls by that low half of its sequence. */
static uint64_t sequence_of(const struct core_ep *ep, uint64_t wr_id)
{
	return ep->req.head + (uint32_t)((uint32_t)wr_id - (uint32_t)ep->req.head);
}

/* The position behind the work request of the request. */
static uint64_t work_end(const struct core_req *req)
{
	return req->op == CORE_OP_BIND ? bind_end(req) : vrb_end(req);
}

static void note_seen(struct vrb_conn *conn, uint64_t position)
{
	if (position > conn->sq_seen)
		conn->sq_seen = position;
}

/* The request whose completion came. */
static struct core_req *seen_request(struct vrb_conn *conn, struct core_ep *ep,
				     const struct ibv_wc *wc)
{
	struct core_req *req = core_req_at(&ep->req, sequence_of(ep, wc->wr_id));

	note_seen(conn, work_end(req));
	if (req->op == CORE_OP_BIND)
		conn->binds_out--;
	return req;
}

/* Something left the send queue. */
static void went_on(struct vrb_conn *conn, struct core_ep *ep)
{
	bind_go_on(conn, ep);
	free_marker(conn, ep);
	if (conn->state != VRB_ESTABLISHED)
		return;
	mark(conn, ep);
	if (conn->post_next != ep->req.tail || conn->is_graceful)
		vrb_post_send(conn, ep);
}

static void marker_done(struct vrb_conn *conn, struct core_ep *ep)
{
	conn->has_marker = false;
	note_seen(conn, conn->marker_posted);
	reap_before(conn, ep, conn->marker_posted);
	went_on(conn, ep);
}

static void send_done(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	struct core_req *req = seen_request(conn, ep, wc);

	if (conn->reads_now && is_reading(conn, req))
		conn->reads_now--;
	if (req->op == CORE_OP_BIND) /* it is done when it has its turn */
		vrb_window_bound(req->binding->key);
	reap_before(conn, ep, work_end(req));
	if (req->op != CORE_OP_BIND)
		req_done(conn, ep, req, DAT_DTO_SUCCESS, req->len);
	went_on(conn, ep);
}

/* A bind's second work request is over; if it failed the device's own call does what it should. */
static void retired(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	bool is_good = wc->status == IBV_WC_SUCCESS;

	note_seen(conn, conn->retire_end);
	vrb_window_retired(conn, is_good);
	went_on(conn, ep);
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
	struct core_req *req = seen_request(conn, ep, wc);

	if (is_flush(conn, ep, req, wc->status)) { /* the core flushes, in its order */
		vrb_conn_flushed(conn, ep);
		return;
	}
	reap_before(conn, ep, work_end(req) - 1);
	if (req->op == CORE_OP_BIND) /* it may not have had its turn */
		note_bind(conn, ep, req, work_end(req));
	if (req->sequence == ep->req.head)
		conn->is_binding = false;
	if (!req->is_done)
		req_done(conn, ep, req, request_status(ep, req, wc->status), 0);
	if (conn->state == VRB_ESTABLISHED)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
	else if (conn->state == VRB_CLOSING)
		conn->why = DAT_CONNECTION_EVENT_BROKEN;
}

/*
 * Where a Receive has failed and none is left, one of our own shows by its flush that the device
 * has answered the peer (vrb_conn_close). The place of the failed one is free.
 */
static void post_last_recv(struct vrb_conn *conn, const struct core_ep *ep)
{
	struct ibv_recv_wr *bad, wr = {.wr_id = vrb_work_id(VRB_WORK_RECV, conn->key, 0)};

	if (!ep->srq && !vrb_recv_out(conn, ep) && !conn->adapter->is_iwarp &&
	    !ibv_post_recv(conn->qp, &wr, &bad))
		conn->recv_extra++;
}

/* A peer whose Sends do not show the wish for a notification gets one each time. */
static bool is_solicited(const struct vrb_conn *conn, const struct ibv_wc *wc)
{
	if (!conn->is_ours || conn->adapter->is_iwarp)
		return true;
	return (wc->wc_flags & IBV_WC_WITH_IMM) && wc->imm_data == htonl(SOLICITED_IMM);
}

static void recv_done(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	const struct core_wqe *wqe;

	if (ep->srq) {
		core_srq_taken(ep, (uint32_t)wc->wr_id);
		if (wc->status == IBV_WC_WR_FLUSH_ERR) /* SRQ-USE-05 */
			core_recv_done(ep, DAT_DTO_ERR_FLUSHED, 0, true);
	}
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		conn->recv_extra -= !ep->srq;
		vrb_conn_flushed(conn, ep);
		return;
	}
	conn->nudges = 0;
	wqe = core_recv_next(ep);
	if (!wqe) {
		conn->recv_extra -= !ep->srq; /* post_last_recv */
		return;
	}
	if (vrb_is_message(wc)) {
		core_recv_done(ep, DAT_DTO_SUCCESS, wc->byte_len, is_solicited(conn, wc));
		return;
	}
	core_recv_done(ep, recv_status(ep, wqe, wc->status), 0, true);
	if (conn->state == VRB_ESTABLISHED) {
		post_last_recv(conn, ep);
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
	} else if (conn->state == VRB_CLOSING) {
		conn->why = DAT_CONNECTION_EVENT_BROKEN;
	}
}

/* One that came before the connection stood, or after its end; false: it is to be done now. */
static bool is_out_of_time(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	bool is_recv = vrb_work_of(wc) == VRB_WORK_RECV;

	if (conn->state == VRB_ESTABLISHED || conn->state == VRB_CLOSING)
		return false;
	if (conn->state == VRB_CALLING && is_recv && wc->status == IBV_WC_SUCCESS &&
	    conn->early_count < conn->early_room) {
		conn->early[conn->early_count++] = *wc;
		return true;
	}
	if (is_recv && ep->srq)
		core_srq_lost(core_handle_ref(ep->srq->cell), (uint32_t)wc->wr_id);
	else if (is_recv)
		conn->recv_extra--;
	return true;
}

void vrb_completion(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	enum vrb_work work = vrb_work_of(wc);

	if (work == VRB_WORK_RECV && conn->is_unconfirmed) {
		conn->recv_extra--;
		vrb_confirm_came(conn, ep, wc);
		return;
	}
	/* the first message overtook the confirmation: CR-ACCEPT-24 */
	if (conn->state == VRB_ACCEPTED && wc->status == IBV_WC_SUCCESS)
		vrb_conn_established(conn, ep);
	if (is_out_of_time(conn, ep, wc))
		return;
	if (work == VRB_WORK_RECV)
		recv_done(conn, ep, wc);
	else if (work == VRB_WORK_MARKER && (uint32_t)wc->wr_id == VRB_MARKER_RETIRED)
		retired(conn, ep, wc);
	else if (work == VRB_WORK_MARKER && wc->status != IBV_WC_SUCCESS)
		marker_failed(conn, ep, wc);
	else if (work == VRB_WORK_MARKER)
		marker_done(conn, ep);
	else if (wc->status != IBV_WC_SUCCESS)
		send_failed(conn, ep, wc);
	else if (work != VRB_WORK_PART)
		send_done(conn, ep, wc);
}

void vrb_completions_early(struct vrb_conn *conn, struct core_ep *ep)
{
	uint32_t count = conn->early_count;

	conn->early_count = 0;
	for (uint32_t i = 0; i < count; i++)
		vrb_completion(conn, ep, &conn->early[i]);
}
