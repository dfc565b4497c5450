// SPDX-License-Identifier: BSD-2-Clause
/*
 * The slow path of posts: requests, and the Receives of the endpoint, in order. Requests are posted
 * as long as the device's send queue has room and no bind is in the way. A suppressed request is
 * posted unsignalled if a signalled work request is outstanding and the queue is less than half
 * full. When no signalled one is outstanding and unsignalled requests are left, a marker (an RDMA
 * Write of length 0) is posted: its completion shows that they are done.
 *
 * On some devices a post or a poll makes a system call, which may be a cancellation point. The
 * entry points of the data path and of the polls (engine/poll.c) disable cancellation.
 */
#include "verbs/transfer/post.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "core/base/cancel.h"
#include "core/base/log.h"
#include "core/transport.h"
#include "verbs/device/adapter.h"
#include "verbs/device/mem.h"
#include "verbs/device/tuning.h"
#include "verbs/transfer/bind.h"
#include "verbs/transfer/queue.h"

/* --- batches --- */

struct batch {
	struct ibv_send_wr wr[VRB_BATCH];
	struct ibv_sge sge[VRB_BATCH][VRB_SEGMENTS_MAX];
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

/* --- siw --- */

/* Is a SIGPIPE pending that the consumer has blocked? Then it belongs to the consumer. */
static bool has_pipe_waiting(const sigset_t *blocked)
{
	sigset_t pending;

	return sigismember(blocked, SIGPIPE) && !sigpending(&pending) &&
	       sigismember(&pending, SIGPIPE);
}

/*
 * Does the program ignore SIGPIPE, so that it need not be blocked? Finding out takes a system call.
 */
static bool is_pipe_ignored(struct vrb_conn *conn)
{
	struct sigaction now;

	if (conn->siw.pipe_posts) {
		conn->siw.pipe_posts--; /* it was not ignored a few posts ago */
		return false;
	}
	if (!sigaction(SIGPIPE, NULL, &now) && now.sa_handler == SIG_IGN)
		return true;
	conn->siw.pipe_posts = VRB_PIPE_CHECK_AFTER;
	return false;
}

/* siw sends within the call. A send to a peer that has closed the stream raises SIGPIPE in the
 * thread, so the signal is blocked and discarded. */
static int siw_post(struct vrb_conn *conn, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct timespec at_once = {0};
	sigset_t pipe, before;
	bool was_waiting;
	int rc;

	if (is_pipe_ignored(conn))
		return ibv_post_send(conn->qp, wr, bad);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	was_waiting = has_pipe_waiting(&before);
	rc = ibv_post_send(conn->qp, wr, bad);
	if (!was_waiting)
		(void)sigtimedwait(&pipe, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* --- sending a batch --- */

void vrb_send_refused(struct vrb_conn *conn, struct core_ep *ep, int rc)
{
	core_log(CORE_LOG_CONN, "queue pair %u: post refused: %s", conn->qp->qp_num, strerror(rc));
	/* no completion will follow for these work requests, so they count as seen */
	conn->sq.seen = vrb_sq_posted(conn);
	vrb_conn_flushed(conn, ep);
}

static bool batch_send(struct vrb_conn *conn, struct core_ep *ep, struct batch *batch)
{
	struct ibv_send_wr *bad = NULL;
	int rc;

	if (!batch->count)
		return true;
	batch->count = 0;
	rc = conn->adapter->is_siw ? siw_post(conn, batch->wr, &bad)
				   : ibv_post_send(conn->qp, batch->wr, &bad);
	if (rc)
		vrb_send_refused(conn, ep, rc);
	return !rc;
}

/* --- building --- */

/* Is an RDMA Read posted after this Write to verify it? iWARP does not acknowledge a Write. */
static bool needs_verification(const struct vrb_conn *conn, const struct core_req *req)
{
	return conn->adapter->is_iwarp && req->op == CORE_OP_RDMA_WRITE && req->len &&
	       !(req->flags & DAT_COMPLETION_SUPPRESS_FLAG);
}

bool vrb_starts_read(const struct vrb_conn *conn, const struct core_req *req)
{
	return req->op == CORE_OP_RDMA_READ || needs_verification(conn, req);
}

static uint32_t device_flags(const struct vrb_conn *conn, const struct core_req *req,
			     bool is_signalled, bool is_own)
{
	uint32_t flags = is_signalled ? IBV_SEND_SIGNALED : 0;

	if ((req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) && !conn->adapter->is_siw)
		flags |= IBV_SEND_FENCE; /* siw: waits_for_reads delays it */
	if (req->flags && core_op_takes_receive(req->op) &&
	    (req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG))
		flags |= IBV_SEND_SOLICITED;
	/*
	 * A post copies inline data at once, but a fenced request must send what the RDMA Reads
	 * before it fetch (DTO-30). So no fenced request is inline. The provider counts Reads on
	 * siw only, and consumers rarely fence without one, so a test for outstanding Reads would
	 * gain little. Nor is a request inline that had to wait: the consumer may free its region
	 * meanwhile. The device checks the key of the region, a copy does not.
	 */
	if (is_own && !core_op_is_read(req->op) && req->len &&
	    !(req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) &&
	    req->len <= conn->adapter->limits.inline_max)
		flags |= IBV_SEND_INLINE;
	return flags;
}

static void set_atomic(struct core_req *req, struct ibv_send_wr *wr)
{
	bool is_swap = req->op == CORE_OP_COMPARE_SWAP;

	wr->opcode = is_swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr->wr.atomic.remote_addr = req->remote.target_address;
	wr->wr.atomic.rkey = req->remote.rmr_context;
	wr->wr.atomic.compare_add = is_swap ? req->compare : *core_req_operand(req);
	wr->wr.atomic.swap = is_swap ? *core_req_operand(req) : 0;
}

/*
 * A completion does not show the solicited bit, but it shows immediate data. A key that equals
 * VRB_SOLICITED_IMM travels as 0, which is none, so the peer breaks the connection.
 */
static void set_send(const struct vrb_conn *conn, const struct core_req *req,
		     struct ibv_send_wr *wr)
{
	uint32_t key = req->remote.rmr_context;

	wr->opcode = IBV_WR_SEND_WITH_IMM;
	if (req->op == CORE_OP_SEND_INVALIDATE)
		wr->imm_data = htonl(key == VRB_SOLICITED_IMM ? 0 : key);
	else if ((req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) && conn->is_opendat &&
		 !conn->adapter->is_iwarp)
		wr->imm_data = htonl(VRB_SOLICITED_IMM);
	else
		wr->opcode = IBV_WR_SEND;
}

static void set_opcode(const struct vrb_conn *conn, struct core_req *req, struct ibv_send_wr *wr)
{
	switch (req->op) {
	case CORE_OP_FETCH_ADD:
	case CORE_OP_COMPARE_SWAP:
		set_atomic(req, wr);
		return;
	case CORE_OP_WRITE_IMMEDIATE:
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr->imm_data = htonl(*core_req_immediate(req));
		break;
	case CORE_OP_RDMA_WRITE:
		wr->opcode = IBV_WR_RDMA_WRITE;
		break;
	case CORE_OP_RDMA_READ:
		wr->opcode = IBV_WR_RDMA_READ;
		break;
	default:
		set_send(conn, req, wr);
		return;
	}
	wr->wr.rdma.remote_addr = req->remote.target_address;
	wr->wr.rdma.rkey = req->remote.rmr_context;
}

/*
 * Adds an RDMA Read of length 0 after a Write. iWARP answers the Read but not the Write, so the
 * Read's completion shows that the Write was placed (COMPAT-41). siw breaks the connection if a
 * Read of length 0 has to wait. So on siw the Read fetches the first byte that was written, which
 * siw allows whatever the privileges are (docs/verbs.md).
 */
static void add_verification(struct vrb_conn *conn, const struct core_req *req, struct batch *batch)
{
	const struct ibv_send_wr *write = &batch->wr[batch->count - 1];
	struct ibv_send_wr *wr = batch_add(batch);

	wr->wr_id = vrb_work_id(VRB_WORK_REQUEST, conn->key, req->sequence);
	wr->opcode = IBV_WR_RDMA_READ;
	wr->send_flags = IBV_SEND_SIGNALED;
	wr->wr.rdma = write->wr.rdma;
	wr->num_sge = 1;
	if (conn->siw.scratch_mr) {
		wr->sg_list[0] = (struct ibv_sge){.addr = (uintptr_t)&conn->siw.scratch,
						  .length = sizeof(conn->siw.scratch),
						  .lkey = conn->siw.scratch_mr->lkey};
		return;
	}
	wr->sg_list[0] = write->sg_list[0];
	wr->sg_list[0].length = 0;
}

/*
 * Is a signalled work request outstanding? Every posted request that is not done will complete,
 * unless it is unsignalled. The send queue holds a done request only behind a signalled one that is
 * not done.
 */
static bool is_completion_due(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return conn->sq.next - ep->req.head != conn->sq.unsignalled || conn->marker.is_out ||
	       conn->binds.retiring || conn->binds.out;
}

static bool must_signal(const struct vrb_conn *conn, const struct core_ep *ep,
			const struct core_req *req)
{
	return core_op_is_read(req->op) || !(req->flags & DAT_COMPLETION_SUPPRESS_FLAG) ||
	       !is_completion_due(conn, ep) ||
	       vrb_sq_posted(conn) - vrb_sq_done(conn, ep) >= conn->sq.size / 2;
}

static void note_posted(struct vrb_conn *conn, struct core_req *req, bool is_signalled,
			bool has_verification)
{
	conn->sq.next++;
	conn->sq.extra += has_verification;
	conn->sq.unsignalled += !is_signalled;
	conn->sq.reads_now += conn->adapter->is_siw && vrb_starts_read(conn, req);
	vrb_note_extra(req, conn->sq.extra);
	vrb_note_unsignalled(req, !is_signalled);
}

/*
 * Adds the work requests of a request. is_own: the call that posts the request is under way. False:
 * the region of a local segment is gone, and nothing was added.
 */
static bool add_request(struct vrb_conn *conn, struct core_ep *ep, struct core_req *req,
			bool is_own, struct batch *batch)
{
	bool is_read = core_op_is_read(req->op);
	bool has_verification = needs_verification(conn, req);
	bool is_signalled = must_signal(conn, ep, req);
	struct ibv_send_wr *wr = batch_add(batch);

	if (!vrb_segments(ep->ia, req->iov, req->segments, is_read, wr->sg_list)) {
		batch->count--;
		if (batch->count)
			wr[-1].next = NULL;
		return false;
	}
	wr->num_sge = (int)req->segments;
	if (is_read && !req->segments && conn->adapter->is_iwarp) {
		/* iWARP libraries require a segment, even an empty one */
		memset(wr->sg_list, 0, sizeof(*wr->sg_list));
		wr->num_sge = 1;
	}
	wr->wr_id = vrb_work_id(has_verification ? VRB_WORK_PART : VRB_WORK_REQUEST, conn->key,
				req->sequence);
	wr->send_flags = device_flags(conn, req, is_signalled && !has_verification, is_own);
	set_opcode(conn, req, wr);
	if (has_verification)
		add_verification(conn, req, batch);
	note_posted(conn, req, is_signalled, has_verification);
	return true;
}

/* --- posting --- */

static bool has_room(const struct vrb_conn *conn, const struct core_ep *ep,
		     const struct core_req *req)
{
	return vrb_has_room(conn, ep, needs_verification(conn, req) ? 2 : 1);
}

/*
 * Must the request wait for RDMA Reads? siw stops its whole send queue at such a request, and with
 * it its answers to the peer's Reads. Two sides that do so wait for each other for ever. siw also
 * breaks the connection at a Read that is fenced (docs/verbs.md). So the provider itself delays
 * such requests.
 */
static bool waits_for_reads(const struct vrb_conn *conn, const struct core_req *req)
{
	uint32_t most = conn->read_out ? conn->read_out : 1;

	if (!conn->sq.reads_now)
		return false;
	return (req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) ||
	       (conn->sq.reads_now >= most && vrb_starts_read(conn, req));
}

void vrb_post_needed_marker(struct vrb_conn *conn, struct core_ep *ep)
{
	if (conn->sq.unsignalled && !is_completion_due(conn, ep) && !conn->binds.is_running)
		vrb_post_marker(conn, ep, IBV_WR_RDMA_WRITE);
}

/* A local segment of the next request is invalid. The requests before it are posted first, because
 * their failures must be reported first. */
static void fail_request(struct vrb_conn *conn, struct core_ep *ep, struct core_req *req,
			 struct batch *batch)
{
	conn->sq.next++;
	conn->sq.extra--; /* it needs no work request */
	vrb_note_extra(req, conn->sq.extra);
	if (!batch_send(conn, ep, batch))
		return;
	vrb_req_done(conn, ep, req, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* own: the request whose call is under way, or NULL. */
static void post_requests(struct vrb_conn *conn, struct core_ep *ep, const struct core_req *own)
{
	struct batch batch;

	batch.count = 0;
	if (conn->binds.is_running) {
		vrb_bind_continue(conn, ep);
		vrb_post_needed_marker(conn, ep);
	}
	while (conn->state == VRB_ESTABLISHED && conn->sq.next != ep->req.tail) {
		struct core_req *req = core_req_at(&ep->req, conn->sq.next);

		if (req->op == CORE_OP_BIND) {
			if (!batch_send(conn, ep, &batch) || !vrb_bind_begin(conn, ep, req))
				break;
			continue;
		}
		if (!has_room(conn, ep, req) || waits_for_reads(conn, req))
			break;
		if (batch.count > VRB_BATCH - 2 && !batch_send(conn, ep, &batch))
			return;
		if (!add_request(conn, ep, req, req == own, &batch)) {
			fail_request(conn, ep, req, &batch);
			return;
		}
	}
	(void)batch_send(conn, ep, &batch);
	if (conn->state == VRB_ESTABLISHED && conn->end.is_graceful && ep->req.head == ep->req.tail)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

void vrb_post_requests(struct vrb_conn *conn, struct core_ep *ep)
{
	post_requests(conn, ep, NULL);
}

void vrb_post_request(struct core_ep *ep, struct core_req *req)
{
	struct vrb_conn *conn = vrb_conn_of(ep);
	int state;

	if (!conn)
		return;
	vrb_note_activity(&conn->adapter->has_posted);
	state = core_cancel_off();
	post_requests(conn, ep, req); /* those that wait before it, too */
	vrb_update_slow_reasons(ep);
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
	conn->sq.extra++;
	conn->marker.is_out = true;
	conn->marker.posted = vrb_sq_posted(conn);
	conn->marker.next = conn->sq.next;
	(void)batch_send(conn, ep, &batch);
}

/* --- Receives --- */

void vrb_recv_refused(struct vrb_conn *conn, struct core_ep *ep, int rc)
{
	core_log(CORE_LOG_CONN, "queue pair %u: Receive refused: %s", conn->qp->qp_num,
		 strerror(rc));
	if (conn->state == VRB_ESTABLISHED)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
}

void vrb_post_recvs(struct vrb_conn *conn, struct core_ep *ep)
{
	struct ibv_sge sge[VRB_RECV_BATCH][VRB_SEGMENTS_MAX];
	struct ibv_recv_wr wr[VRB_RECV_BATCH], *bad;
	uint32_t count;
	int rc;

	if (ep->srq || !conn->rq.is_open)
		return;
	while (conn->rq.next != ep->recv.tail) {
		for (count = 0; count < VRB_RECV_BATCH && conn->rq.next != ep->recv.tail; count++) {
			const struct core_wqe *wqe = &ep->recv.slots[conn->rq.next & ep->recv.mask];

			wr[count] = (struct ibv_recv_wr){
				.wr_id = vrb_work_id(VRB_WORK_RECV, conn->key, conn->rq.next),
				.sg_list = sge[count],
				.num_sge = vrb_recv_segments(ep->ia, wqe, sge[count]),
			};
			if (count)
				wr[count - 1].next = &wr[count];
			conn->rq.next++;
		}
		rc = ibv_post_recv(conn->qp, wr, &bad);
		if (!rc)
			continue;
		for (const struct ibv_recv_wr *i = bad; i; i = i->next)
			conn->rq.extra--;
		vrb_recv_refused(conn, ep, rc);
		return;
	}
}

void vrb_post_recv(struct core_ep *ep)
{
	struct vrb_conn *conn = vrb_conn_of(ep);
	int state;

	if (!conn)
		return;
	state = core_cancel_off();
	vrb_post_recvs(conn, ep);
	vrb_update_slow_reasons(ep);
	core_cancel_restore(state);
}

void vrb_post_last_recv(struct vrb_conn *conn, const struct core_ep *ep)
{
	struct ibv_recv_wr *bad, wr = {.wr_id = vrb_work_id(VRB_WORK_RECV, conn->key, 0)};

	if (!ep->srq && !vrb_recv_out(conn, ep) && !conn->adapter->is_iwarp &&
	    !ibv_post_recv(conn->qp, &wr, &bad))
		conn->rq.extra++;
}
