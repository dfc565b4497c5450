// SPDX-License-Identifier: BSD-2-Clause
/*
 * Requests of the consumer become messages (tx.h), and what completes them: a peer of ours has
 * counted them (DTO-116); TCP has taken the bytes of a Send to a foreign peer (RDMAP-32), which has
 * proven that a Write is placed (COMPAT-41); the Response to a Read is placed.
 */
#include "soft/iwarp/transfer/tx.h"

#include <errno.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/transport.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/extended.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/key.h"
#include "soft/pins.h"

#define BIND_RETRY_NS 1000000u
#define FIRST_WAIT_NS UINT64_C(1000000000)

enum tx_step {
	TX_QUEUED, /* a part was queued: go on */
	TX_WAIT,   /* nothing can be queued now; a later event goes on */
	TX_FULL,   /* there is no room before TCP has taken some */
	TX_FAILED, /* the request failed, and so did the connection */
};

/* --- what completes a request to a foreign peer --- */

bool iw_has_proofs(const struct iw_conn *conn)
{
	return conn->engine->settings.write_proof != CORE_PROOF_OFF && conn->ord > 0;
}

/* Does the completion of that request wait for a proof? */
static bool wants_proof(const struct iw_conn *conn, const struct core_req *req)
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

/* Completes requests whose last byte TCP has taken. */
static void complete_sent(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;

	for (tx->unsent = later(tx->unsent, ep->req.head); tx->unsent < tx->next; tx->unsent++) {
		struct core_req *req = core_req_at(&ep->req, tx->unsent);

		if (req->transport.word[0] != IW_REQ_WAIT_SENT)
			continue; /* Reads and binds wait for something else */
		if (tx->sent < req->transport.word[1])
			return;
		if (wants_proof(conn, req) && req->sequence >= tx->proven)
			req->transport.word[0] = IW_REQ_WAIT_PROOF;
		else
			finish(ep, req);
	}
}

/* A request that is not completely sent fails: its status, then the end of the connection. */
static void fail_unsent(struct iw_conn *conn, struct core_ep *ep, struct core_req *req)
{
	complete_sent(conn, ep);
	iw_frame_cut(conn, ep);
	core_req_done(ep, req, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	iw_answer_error(conn, IW_ERROR(0, 0, 0), NULL); /* TERM-15 */
}

/* Sends what is queued; false: it stops here. */
static bool flush(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;

	tx->held = 0;
	if (iw_flush(conn, ep) < 0) {
		/* TCP is lost only if an FPDU has begun that cannot be finished: iw_frame_cut */
		fail_unsent(conn, ep, core_req_at(&ep->req, tx->direct.sequence));
		return false;
	}
	complete_sent(conn, ep);
	return !tx->is_blocked && !conn->is_lost;
}

/* --- Sends and RDMA Writes --- */

/* A Write of length 0 may name anything; a peer of ours must not take it for one of ours. */
static uint32_t stag_of(const struct iw_conn *conn, const struct core_req *req)
{
	uint32_t stag = req->remote.rmr_context;

	if (conn->is_own_peer && !req->len && stag >= IW_STAG_RTR && stag <= IW_STAG_DRAINS)
		return IW_STAG_NONE;
	return stag;
}

static uint8_t send_opcode(const struct core_req *req)
{
	bool is_solicited = req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG;

	if (req->op == CORE_OP_SEND_INVALIDATE)
		return is_solicited ? IW_OP_SEND_BOTH : IW_OP_SEND_INVALIDATE;
	return is_solicited ? IW_OP_SEND_SOLICITED : IW_OP_SEND;
}

struct iw_ddp iw_tx_header(const struct iw_conn *conn, const struct core_req *req)
{
	const struct iw_tx *tx = &conn->stream.tx;
	struct iw_ddp ddp = {.is_tagged = core_op_is_write(req->op)};

	if (ddp.is_tagged) {
		ddp.opcode = IW_OP_WRITE;
		ddp.stag = stag_of(conn, req);
		ddp.offset = req->remote.target_address + tx->offset;
		return ddp;
	}
	ddp.opcode = send_opcode(req);
	if (req->op == CORE_OP_SEND_INVALIDATE)
		ddp.invalidate = req->remote.rmr_context;
	ddp.queue = IW_QUEUE_SEND;
	ddp.msn = tx->msn[IW_QUEUE_SEND];
	ddp.mo = (uint32_t)tx->offset;
	return ddp;
}

/* Copies a payload behind its header; -EFAULT. */
static int put_copied(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req,
		      const struct iw_ddp *ddp, uint32_t len)
{
	uint64_t offset = conn->stream.tx.offset;
	uint8_t *to = iw_frame_begin(conn, ddp, len);
	struct soft_pins pins;
	int rc = 0;

	if (len) {
		if (soft_pin(ep, req->iov, req->segments, offset, len, CORE_MEM_SOURCE, &pins) < 0)
			return -EFAULT;
		rc = soft_gather(to, &pins);
		soft_unpin(&pins);
	}
	if (!rc)
		iw_frame_end(conn, ddp, len);
	return rc;
}

/* What the completion of a request to a foreign peer waits for. */
static void wait_for_foreign(struct iw_conn *conn, struct core_req *req)
{
	struct iw_tx *tx = &conn->stream.tx;

	req->transport.word[0] = IW_REQ_WAIT_SENT;
	req->transport.word[1] = tx->position;
	if (wants_proof(conn, req))
		tx->wants_proof = req->sequence + 1;
	if (req->op == CORE_OP_RDMA_WRITE && req->len) {
		tx->proof_stag = req->remote.rmr_context;
		tx->proof_offset = req->remote.target_address;
	}
}

void iw_tx_end_message(struct iw_conn *conn, struct core_req *req)
{
	struct iw_tx *tx = &conn->stream.tx;
	bool is_send = core_op_is_send(req->op);
	uint32_t number = is_send ? ++tx->queued.sends : ++tx->queued.writes;

	tx->msn[IW_QUEUE_SEND] += is_send;
	/* a long Write is several messages, and the last may be the immediate data */
	if (tx->offset < req->len || req->op == CORE_OP_WRITE_IMMEDIATE)
		return;
	if (conn->is_own_peer) {
		req->transport.word[0] = IW_REQ_WAIT_COUNT;
		req->transport.word[1] = number;
	} else {
		wait_for_foreign(conn, req);
	}
	tx->offset = 0;
	tx->next++;
}

/* How much of the message that is under way is left. */
static uint64_t message_left(const struct iw_tx *tx, const struct core_req *req)
{
	uint64_t left = req->len - tx->offset;
	uint64_t most = IW_RDMA_MAX - tx->offset % IW_RDMA_MAX;

	return core_op_is_send(req->op) || left < most ? left : most;
}

/* Queues the next segment of a Send or RDMA Write. */
static enum tx_step put_segment(struct iw_conn *conn, struct core_ep *ep, struct core_req *req,
				uint64_t *budget)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_ddp ddp = iw_tx_header(conn, req);
	uint32_t most = iw_frame_most(conn, iw_ddp_size(&ddp));
	uint64_t left = message_left(tx, req);
	uint32_t len = left < most ? (uint32_t)left : most;
	bool is_more = iw_frame_can_append(conn, req);
	bool is_direct = is_more || len >= IW_DIRECT_MIN;
	int rc;

	if (!is_more && !iw_frame_has_room(conn, is_direct ? 0 : len))
		return TX_FULL;
	ddp.is_last = len == left;
	rc = is_direct ? iw_frame_direct(conn, ep, req, &ddp, tx->offset, len)
		       : put_copied(conn, ep, req, &ddp, len);
	if (rc < 0) {
		/* those before it must not fail because they have waited */
		if (!iw_frame_is_direct(conn))
			(void)flush(conn, ep);
		fail_unsent(conn, ep, req);
		return TX_FAILED;
	}
	/* immediate data follow their Write directly (D2-TCP-07) */
	tx->under_way =
		ddp.is_last && req->op != CORE_OP_WRITE_IMMEDIATE ? IW_NO_MESSAGE : IW_IN_REQUEST;
	tx->offset += len;
	*budget -= len < *budget ? len : *budget;
	if (ddp.is_last)
		iw_tx_end_message(conn, req);
	return TX_QUEUED;
}

/* --- RDMA Reads --- */

/* Is a Read Request more allowed? */
static bool can_read(const struct iw_conn *conn)
{
	return conn->stream.tx.read_count < conn->ord;
}

/*
 * A sink STag that the peer cannot guess from earlier ones is not needed: a Response is taken for
 * the oldest Read only, and only where that Read stands. It must not be a key of ours, which would
 * let the peer write there: no key has the index 0.
 */
static uint32_t next_stag(uint32_t stag)
{
	stag = (stag & ~(SOFT_KEY_MAX - 1)) + SOFT_KEY_MAX;
	return stag ? stag : SOFT_KEY_MAX;
}

struct iw_read *iw_tx_add_read(struct iw_tx *tx, enum iw_read_kind kind, uint64_t sequence)
{
	uint32_t at = (tx->read_first + tx->read_count++) % IW_READS;
	struct iw_read *read = &tx->read[at];

	tx->stag = next_stag(tx->stag);
	*read = (struct iw_read){.kind = kind, .stag = tx->stag, .sequence = sequence};
	return read;
}

static void put_read_request(struct iw_conn *conn, const struct iw_read_request *request)
{
	struct iw_tx *tx = &conn->stream.tx;
	const struct iw_ddp ddp = {.is_last = true,
				   .opcode = IW_OP_READ_REQUEST,
				   .queue = IW_QUEUE_READ,
				   .msn = tx->msn[IW_QUEUE_READ]++};

	iw_read_request_put(request, iw_frame_begin(conn, &ddp, IW_READ_REQUEST_SIZE));
	iw_frame_end(conn, &ddp, IW_READ_REQUEST_SIZE);
}

void iw_tx_put_empty_read(struct iw_conn *conn, const struct iw_read *read)
{
	const struct iw_read_request request = {.sink_stag = read->stag};

	put_read_request(conn, &request);
}

/* A proof of a foreign peer: no bytes, or one that the Write has written (RDMAP-36). */
static void put_proof(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_read *read = iw_tx_add_read(tx, IW_READ_PROOF, tx->next);
	struct iw_read_request request = {.sink_stag = read->stag};

	if (conn->engine->settings.write_proof == CORE_PROOF_BYTE && tx->proof_stag) {
		read->size = request.size = 1;
		request.source_stag = tx->proof_stag;
		request.source_offset = tx->proof_offset;
	}
	put_read_request(conn, &request);
}

static enum tx_step put_read(struct iw_conn *conn, struct core_req *req)
{
	struct iw_tx *tx = &conn->stream.tx;
	uint64_t left = req->len - tx->offset;
	struct iw_read_request request;
	struct iw_read *read;

	if (tx->consumer_reads >= conn->read_max || !can_read(conn))
		return TX_WAIT;
	if (!iw_frame_has_room(conn, IW_READ_REQUEST_SIZE))
		return TX_FULL;
	read = iw_tx_add_read(tx, IW_READ_CONSUMER, req->sequence);
	read->offset = tx->offset;
	read->size = left < IW_RDMA_MAX ? (uint32_t)left : IW_RDMA_MAX;
	tx->consumer_reads++;
	request = (struct iw_read_request){
		.sink_stag = read->stag,
		.sink_offset = 0,
		.size = read->size,
		.source_stag = req->remote.rmr_context,
		.source_offset = req->remote.target_address + tx->offset,
	};
	put_read_request(conn, &request);
	req->transport.word[0] = IW_REQ_WAIT_DATA;
	tx->offset += read->size;
	if (tx->offset < req->len)
		return TX_QUEUED;
	/* its Response proves all Writes before it */
	tx->asked = req->sequence;
	tx->offset = 0;
	tx->next++;
	return TX_QUEUED;
}

/* --- any request --- */

static enum tx_step run_bind(struct iw_conn *conn, struct core_ep *ep, struct core_req *req)
{
	if (req->sequence != ep->req.head)
		return TX_WAIT; /* for the end of an earlier request, which causes a pass */
	req->transport.word[0] = IW_REQ_FINISHED;
	if (core_bind_run(ep, req, true) == CORE_BIND_DONE) {
		conn->stream.tx.next++;
		return TX_QUEUED;
	}
	/* a thread places bytes through the old key, which ends by itself */
	iw_conn_lower_deadline(conn, core_now_ns() + BIND_RETRY_NS);
	return TX_WAIT;
}

static enum tx_step queued_if(bool has_room)
{
	return has_room ? TX_QUEUED : TX_FULL;
}

static enum tx_step put_request(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct core_req *req;

	if (tx->next >= ep->req.tail)
		return TX_WAIT;
	req = core_req_at(&ep->req, tx->next);
	/* DTO-30 */
	if ((req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) && tx->consumer_reads)
		return TX_WAIT;
	switch (req->op) {
	case CORE_OP_SEND:
	case CORE_OP_SEND_INVALIDATE:
	case CORE_OP_RDMA_WRITE:
		return put_segment(conn, ep, req, budget);
	case CORE_OP_RDMA_READ:
		return put_read(conn, req);
	case CORE_OP_BIND:
		return run_bind(conn, ep, req);
	case CORE_OP_WRITE_IMMEDIATE:
		return tx->offset < req->len ? put_segment(conn, ep, req, budget)
					     : queued_if(iw_immediate_queue(conn, req));
	case CORE_OP_FETCH_ADD:
	case CORE_OP_COMPARE_SWAP:
		if (tx->consumer_reads >= conn->read_max || !can_read(conn))
			return TX_WAIT;
		return queued_if(iw_atomic_queue(conn, req));
	}
	return TX_WAIT;
}

/* Do completions wait for a proof, and none is under way? (RDMAP-33, RDMAP-34) */
static bool is_question_due(const struct iw_tx *tx)
{
	return tx->wants_proof > tx->asked && tx->asked <= tx->proven;
}

/* Asks for a proof if one is due. */
static enum tx_step put_question(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;

	if (!is_question_due(tx) || !iw_has_proofs(conn))
		return TX_WAIT;
	if (!can_read(conn))
		return TX_WAIT;
	if (!iw_frame_has_room(conn, IW_READ_REQUEST_SIZE))
		return TX_FULL;
	put_proof(conn);
	tx->asked = tx->next;
	return TX_QUEUED;
}

bool iw_tx_is_idle(const struct iw_tx *tx, const struct core_ep *ep)
{
	return tx->next >= ep->req.tail && !is_question_due(tx) && !tx->served_count;
}

bool iw_tx_has_more(const struct iw_conn *conn, const struct core_ep *ep, uint64_t budget)
{
	return !budget && !conn->stream.tx.is_blocked && !iw_tx_is_idle(&conn->stream.tx, ep);
}

static bool can_put_counts(struct iw_conn *conn)
{
	const struct iw_tx *tx = &conn->stream.tx;

	return tx->under_way == IW_NO_MESSAGE && iw_frame_has_room(conn, 0);
}

/* Queues the next thing: messages are not interleaved (DDP-10), and take turns. */
static enum tx_step put_next(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	struct iw_tx *tx = &conn->stream.tx;
	enum tx_step step = TX_WAIT;
	int rc;

	if (iw_counts_are_due(conn) && can_put_counts(conn)) {
		iw_counts_put(conn);
		return TX_QUEUED;
	}
	if (tx->under_way == IW_IN_RESPONSE ||
	    (tx->under_way == IW_NO_MESSAGE && tx->is_response_next)) {
		rc = iw_answer_put(conn, ep, budget);
		if (rc < 0)
			return rc == -EAGAIN ? TX_FULL : TX_FAILED;
		tx->is_response_next = tx->under_way == IW_IN_RESPONSE;
		if (rc)
			return TX_QUEUED;
	}
	step = put_request(conn, ep, budget);
	tx->is_response_next = tx->under_way != IW_IN_REQUEST;
	if (step != TX_WAIT || tx->under_way == IW_IN_REQUEST)
		return step;
	/* before the Responses, of which there may always be one more */
	step = put_question(conn);
	if (step != TX_WAIT)
		return step;
	rc = iw_answer_put(conn, ep, budget);
	if (rc)
		return rc > 0 ? TX_QUEUED : rc == -EAGAIN ? TX_FULL : TX_FAILED;
	return TX_WAIT;
}

static void update_mulpdu(struct iw_conn *conn)
{
	if (!conn->is_own_peer)
		conn->stream.tx.mulpdu = iw_frame_mulpdu(conn);
}

/* Is little enough queued that it may wait for more? */
static bool is_small(const struct iw_conn *conn)
{
	uint32_t bytes = iw_buffer_count(&conn->stream.tx.out);

	return bytes && bytes < IW_HOLD_BYTES && !iw_frame_is_direct(conn);
}

/*
 * Requests wait for the first FPDU of the initiator (MPA-18). One that waits for ours, too, would
 * leave both silent, so the log gets a line after a second, once.
 */
static void wait_for_first(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;
	uint64_t now;

	if (tx->wait_ns == UINT64_MAX)
		return;
	now = core_now_ns();
	if (!tx->wait_ns)
		tx->wait_ns = now + FIRST_WAIT_NS;
	if (now < tx->wait_ns) {
		iw_conn_lower_deadline(conn, tx->wait_ns);
		return;
	}
	tx->wait_ns = UINT64_MAX;
	core_log(CORE_LOG_CONN | CORE_LOG_ERROR | CORE_LOG_WARNING,
		 "%s: requests wait for the first message of the peer, which has connected without "
		 "the peer-to-peer model and has to send first",
		 iw_conn_name(conn).text);
}

int iw_tx_run(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget, bool may_hold)
{
	struct iw_tx *tx = &conn->stream.tx;
	uint64_t head;
	int handled = 0;

	if (tx->is_blocked && !flush(conn, ep))
		return 0;
	if (iw_tx_is_idle(tx, ep) && !iw_frame_has_unsent(conn))
		return 0;
	if (!tx->may_send) {
		wait_for_first(conn);
		return 0;
	}
	if (tx->next < ep->req.tail || tx->served_count)
		update_mulpdu(conn);
	while (!tx->is_over && !conn->is_lost) {
		enum tx_step step = TX_WAIT;

		if (*budget && !iw_tx_is_idle(tx, ep))
			step = put_next(conn, ep, budget);

		if (step == TX_QUEUED) {
			handled++;
			continue;
		}
		if (step == TX_FAILED)
			return handled + 1;
		if (step == TX_WAIT && may_hold && is_small(conn)) {
			tx->held++;
			break;
		}
		may_hold = false; /* the rest of a message that is not small */
		head = ep->req.head;
		if (!flush(conn, ep))
			break;
		/* a bind waits until the requests before it have completed */
		if (step == TX_WAIT && (ep->req.head == head || tx->next >= ep->req.tail))
			break;
		handled++;
	}
	return handled;
}

void iw_tx_tell(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;

	if (!iw_counts_are_due(conn) || !tx->may_send || tx->is_over || conn->is_lost ||
	    tx->is_blocked || !can_put_counts(conn))
		return;
	iw_counts_put(conn);
	(void)flush(conn, ep);
}

/* --- small messages that wait for each other --- */

bool iw_hold_may(const struct iw_conn *conn, const struct core_ep *ep)
{
	uint32_t held = conn->stream.tx.held;

	if (!conn->is_own_peer || ep->req.tail - ep->req.head <= IW_HOLD_AFTER ||
	    core_req_is_full(&ep->req))
		return false;
	return held ? held + 1 < IW_HOLD_POSTS : !core_ep_is_watched(ep);
}

void iw_hold_begin(struct iw_conn *conn)
{
	iw_engine_add_held(conn->engine, conn);
	iw_conn_lower_deadline(conn, core_now_ns() + IW_HOLD_NS);
}

/* --- completions --- */

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
		bool is_send = core_op_is_send(core_req_at(&ep->req, tx->direct.sequence)->op);

		most.sends -= is_send;
		most.writes -= !is_send;
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

		if (has_sends && core_op_takes_receive(req->op))
			has_sends = finish_counted(conn, ep, req, counts.sends);
		else if (has_writes && req->op == CORE_OP_RDMA_WRITE)
			has_writes = finish_counted(conn, ep, req, counts.writes);
	}
	return IW_NO_ERROR;
}

/* A foreign peer has proven that all requests before that sequence are carried out. */
static void complete_proven(struct iw_conn *conn, struct core_ep *ep, uint64_t end)
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
	complete_proven(conn, ep, read.sequence);
	if (read.kind == IW_READ_PROOF)
		return;
	tx->consumer_reads--;
	req = core_req_at(&ep->req, read.sequence);
	if (read.offset + read.size == req->len)
		finish(ep, req);
}

void iw_complete_lost(struct iw_conn *conn, struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status)
{
	struct iw_tx *tx = &conn->stream.tx;

	tx->is_over = true;
	iw_frame_cut(conn, ep);
	/* the rest is flushed, and all of it if a Read has failed already */
	if (ep->req.head < ep->req.tail && !ep->is_breaking)
		core_req_done(ep, core_req_at(&ep->req, ep->req.head), status, 0);
}
