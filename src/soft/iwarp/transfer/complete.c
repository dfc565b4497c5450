// SPDX-License-Identifier: BSD-2-Clause
/*
 * What completes requests (tx.h): a peer of ours has counted them (DTO-116); TCP has taken the
 * bytes of a Send to a foreign peer (RDMAP-32), which has proven that a Write is placed
 * (COMPAT-41); the Response to a Read is placed.
 */
#include "core/transport.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/tx.h"

bool iw_has_proofs(const struct iw_conn *conn)
{
	return conn->engine->settings.write_proof != CORE_PROOF_OFF && conn->ord > 0;
}

bool iw_wants_proof(const struct iw_conn *conn, const struct core_req *req)
{
	if (req->op != CORE_OP_RDMA_WRITE || (req->flags & DAT_COMPLETION_SUPPRESS_FLAG) ||
	    !iw_has_proofs(conn))
		return false;
	/* it has no byte to be read, and the memory that an older Write went to may be gone */
	return req->len || conn->engine->settings.write_proof != CORE_PROOF_BYTE;
}

static void finish(struct core_ep *ep, struct core_req *req)
{
	req->transport.word[0] = IW_REQ_FINISHED;
	core_req_done(ep, req, DAT_DTO_SUCCESS, req->len);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Completes the request if it is one of the first `count` of its kind; false: it is not. */
static bool finish_counted(struct iw_conn *conn, struct core_ep *ep, struct core_req *req,
			   uint32_t count)
{
	if (req->transport.word[0] == IW_REQ_FINISHED)
		return true; /* it waits for an earlier one of another kind */
	if ((int32_t)(count - (uint32_t)req->transport.word[1]) < 0)
		return false;
	conn->moved += (uint32_t)req->len;
	finish(ep, req);
	return true;
}

/* Can the peer have carried out so much? Of the request whose bytes still wait it cannot. */
static bool is_plausible(const struct iw_conn *conn, struct core_ep *ep,
			 const struct iw_counts *counts)
{
	const struct iw_tx *tx = &conn->stream.tx;
	struct iw_counts most = tx->queued;

	if (iw_frame_is_direct(conn) && tx->direct.sequence < tx->next) {
		most.sends -= core_req_at(&ep->req, tx->direct.sequence)->op == CORE_OP_SEND;
		most.writes -= core_req_at(&ep->req, tx->direct.sequence)->op != CORE_OP_SEND;
	}
	return counts->sends - tx->counted.sends <= most.sends - tx->counted.sends &&
	       counts->writes - tx->counted.writes <= most.writes - tx->counted.writes;
}

iw_error iw_complete_counted(struct iw_conn *conn, struct core_ep *ep, uint64_t word)
{
	const struct iw_counts counts = {.sends = (uint32_t)(word >> 32), .writes = (uint32_t)word};
	struct iw_tx *tx = &conn->stream.tx;
	bool has_sends = counts.sends != tx->counted.sends;
	bool has_writes = counts.writes != tx->counted.writes;
	uint64_t sequence;

	if (!is_plausible(conn, ep, &counts))
		return IW_ERROR(0, 2, 7);
	if (has_sends)
		tx->peer_drains = false;
	tx->counted = counts;
	for (sequence = ep->req.head; sequence < tx->next && (has_sends || has_writes);
	     sequence++) {
		struct core_req *req = core_req_at(&ep->req, sequence);

		if (has_sends && req->op == CORE_OP_SEND)
			has_sends = finish_counted(conn, ep, req, counts.sends);
		else if (has_writes && req->op == CORE_OP_RDMA_WRITE)
			has_writes = finish_counted(conn, ep, req, counts.writes);
	}
	return IW_NO_ERROR;
}

void iw_complete_sent(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;

	for (tx->unsent = later(tx->unsent, ep->req.head); tx->unsent < tx->next; tx->unsent++) {
		struct core_req *req = core_req_at(&ep->req, tx->unsent);

		if (req->transport.word[0] != IW_REQ_WAIT_SENT)
			continue; /* Reads and binds wait for something else */
		if (tx->sent < req->transport.word[1])
			return;
		if (iw_wants_proof(conn, req) && req->sequence >= tx->proven)
			req->transport.word[0] = IW_REQ_WAIT_PROOF;
		else
			finish(ep, req);
	}
}

void iw_complete_proven(struct iw_conn *conn, struct core_ep *ep, uint64_t end)
{
	struct iw_tx *tx = &conn->stream.tx;
	uint64_t sequence;

	/* a peer cannot prove what was not asked for */
	if (end > tx->next)
		end = tx->next;
	for (sequence = later(tx->proven, ep->req.head); sequence < end; sequence++) {
		struct core_req *req = core_req_at(&ep->req, sequence);

		if (req->transport.word[0] == IW_REQ_WAIT_PROOF)
			finish(ep, req);
	}
	tx->proven = later(tx->proven, end);
}

void iw_complete_read(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;
	const struct iw_read read = tx->read[tx->read_first];
	struct core_req *req;

	tx->read_first = (tx->read_first + 1) % IW_READS;
	tx->read_count--;
	if (read.kind == IW_READ_RTR)
		return;
	iw_complete_proven(conn, ep, read.sequence);
	if (read.kind == IW_READ_PROOF)
		return;
	tx->consumer_reads--;
	req = core_req_at(&ep->req, read.sequence);
	if (read.offset + read.size == req->len)
		finish(ep, req);
}

/* --- failures --- */

void iw_complete_lost(struct iw_conn *conn, struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status)
{
	struct iw_tx *tx = &conn->stream.tx;

	tx->is_over = true;
	iw_frame_cut(conn, ep);
	/* the rest is flushed, and all of it if a Read has failed already */
	if (ep->req.head < ep->req.tail && !ep->is_breaking)
		core_req_done(ep, core_req_at(&ep->req, ep->req.head), status, 0);
}

/* The status that the request gets which a Terminate names. */
static DAT_DTO_COMPLETION_STATUS status_of(const struct iw_terminate *terminate)
{
	iw_error error = terminate->error;
	bool is_access = (error & 0xff00) == IW_ERROR(0, 1, 0) ||
			 ((error & 0xff00) == IW_ERROR(1, 1, 0) && (error & 255) <= 3);

	if (error == IW_ERROR(0, 1, 9))
		return DAT_DTO_ERR_REMOTE_RESPONDER;
	if (is_access)
		return DAT_DTO_ERR_REMOTE_ACCESS;
	if (error == IW_ERROR(1, 2, 2))
		return !terminate->has_segment || terminate->segment.queue == IW_QUEUE_SEND
			       ? DAT_DTO_ERR_RECEIVER_NOT_READY
			       : DAT_DTO_ERR_REMOTE_RESPONDER;
	return error >> 12 == 2 ? DAT_DTO_ERR_TRANSPORT : DAT_DTO_ERR_REMOTE_RESPONDER;
}

/* Does a segment of a message of that length begin at that offset? */
static bool is_within(uint64_t offset, uint64_t len)
{
	return offset < len || !offset;
}

/* Is it the request whose segment the Terminate names? `msn`: of the request, if it is a Send. */
static bool is_named(const struct iw_conn *conn, const struct core_req *req,
		     const struct iw_terminate *terminate, uint32_t msn)
{
	const struct iw_tx *tx = &conn->stream.tx;
	const struct iw_ddp *segment = &terminate->segment;
	uint32_t i;

	switch (req->op) {
	case CORE_OP_SEND:
		return !segment->is_tagged && segment->queue == IW_QUEUE_SEND &&
		       segment->msn == msn;
	case CORE_OP_RDMA_WRITE:
		return segment->is_tagged && segment->stag == req->remote.rmr_context &&
		       is_within(segment->offset - req->remote.target_address, req->len);
	case CORE_OP_RDMA_READ:
		if (!terminate->has_request)
			return false;
		for (i = 0; i < tx->read_count; i++) {
			const struct iw_read *read = &tx->read[(tx->read_first + i) % IW_READS];

			if (read->kind == IW_READ_CONSUMER && read->sequence == req->sequence &&
			    read->stag == terminate->request.sink_stag)
				return true;
		}
		return false;
	default:
		return false;
	}
}

/* The request that the Terminate names; NULL: none that is outstanding. */
static struct core_req *find_named(struct iw_conn *conn, struct core_ep *ep,
				   const struct iw_terminate *terminate)
{
	const struct iw_tx *tx = &conn->stream.tx;
	bool has_begun = (tx->is_in_request || tx->offset) && tx->next < ep->req.tail;
	uint32_t msn = tx->msn[IW_QUEUE_SEND];
	uint64_t sequence;

	if (!terminate->has_segment)
		return NULL;
	for (sequence = ep->req.head; sequence < tx->next; sequence++)
		msn -= core_req_at(&ep->req, sequence)->op == CORE_OP_SEND;
	/* of Writes to the same place the peer has refused the first, and what is before it has
	 * succeeded: a later one must not be taken for it */
	for (sequence = ep->req.head; sequence < tx->next + has_begun; sequence++) {
		struct core_req *req = core_req_at(&ep->req, sequence);

		if (!req->is_done && is_named(conn, req, terminate, msn))
			return req;
		msn += req->op == CORE_OP_SEND;
	}
	return NULL;
}

/* Completes what the Terminate shows to be carried out: all before the named request (TERM-11). */
static void complete_before(struct core_ep *ep, uint64_t end)
{
	uint64_t sequence;

	for (sequence = ep->req.head; sequence < end; sequence++) {
		struct core_req *req = core_req_at(&ep->req, sequence);
		uint64_t state = req->transport.word[0];

		if (state == IW_REQ_WAIT_PROOF || state == IW_REQ_WAIT_SENT)
			finish(ep, req);
	}
}

void iw_complete_terminated(struct iw_conn *conn, struct core_ep *ep,
			    const struct iw_terminate *terminate)
{
	struct core_req *req = find_named(conn, ep, terminate);

	conn->stream.tx.is_over = true;
	iw_frame_cut(conn, ep);
	if (req && !conn->is_own_peer) /* a peer of ours has told its counts before */
		complete_before(ep, req->sequence);
	else if (!req && ep->req.head < ep->req.tail)
		req = core_req_at(&ep->req, ep->req.head);
	if (req)
		core_req_done(ep, req, status_of(terminate), 0);
	iw_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
}
