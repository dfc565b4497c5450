// SPDX-License-Identifier: BSD-2-Clause
/* Requests of the consumer become messages (tx.h). */
#include "soft/iwarp/transfer/tx.h"

#include <errno.h>

#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/key.h"
#include "soft/pins.h"

#define BIND_RETRY_NS 1000000u

enum tx_step {
	TX_QUEUED, /* a part was queued: go on */
	TX_WAIT,   /* nothing can be queued now; a later event goes on */
	TX_FULL,   /* there is no room before TCP has taken some */
	TX_FAILED, /* the request failed, and so did the connection */
};

void iw_tx_fail(struct iw_conn *conn, struct core_ep *ep, struct core_req *req,
		DAT_DTO_COMPLETION_STATUS status)
{
	iw_frame_cut(conn, ep);
	core_req_done(ep, req, status, 0);
	iw_answer_error(conn, IW_ERROR(0, 0, 0), NULL); /* TERM-15 */
}

/* The same for one that is not completely sent. */
static void fail_unsent(struct iw_conn *conn, struct core_ep *ep, struct core_req *req)
{
	iw_complete_sent(conn, ep);
	iw_tx_fail(conn, ep, req, DAT_DTO_ERR_LOCAL_PROTECTION);
}

/* Sends what is queued; false: it stops here. */
static bool flush(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;

	tx->hold.count = 0;
	if (iw_flush(conn, ep) < 0) {
		/* TCP is lost only if an FPDU has begun that cannot be finished: iw_frame_cut */
		fail_unsent(conn, ep, core_req_at(&ep->req, tx->direct.sequence));
		return false;
	}
	iw_complete_sent(conn, ep);
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

struct iw_ddp iw_tx_header(const struct iw_conn *conn, const struct core_req *req)
{
	const struct iw_tx *tx = &conn->stream.tx;
	struct iw_ddp ddp = {.is_tagged = req->op == CORE_OP_RDMA_WRITE};

	if (ddp.is_tagged) {
		ddp.opcode = IW_OP_WRITE;
		ddp.stag = stag_of(conn, req);
		ddp.offset = req->remote.target_address + tx->offset;
		return ddp;
	}
	ddp.opcode =
		req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG ? IW_OP_SEND_SOLICITED : IW_OP_SEND;
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
		rc = soft_gather(to, &pins, NULL);
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
	if (iw_wants_proof(conn, req))
		tx->wants_proof = req->sequence + 1;
	if (req->op == CORE_OP_RDMA_WRITE && req->len) {
		tx->proof_stag = req->remote.rmr_context;
		tx->proof_offset = req->remote.target_address;
	}
}

void iw_tx_end_message(struct iw_conn *conn, struct core_req *req)
{
	struct iw_tx *tx = &conn->stream.tx;
	bool is_send = req->op == CORE_OP_SEND;
	uint32_t number = is_send ? ++tx->queued.sends : ++tx->queued.writes;

	tx->msn[IW_QUEUE_SEND] += is_send;
	if (tx->offset < req->len)
		return; /* a long Write is several messages */
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

	return req->op == CORE_OP_SEND || left < most ? left : most;
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
	tx->is_in_request = !ddp.is_last;
	tx->offset += len;
	*budget -= len < *budget ? len : *budget;
	if (ddp.is_last)
		iw_tx_end_message(conn, req);
	return TX_QUEUED;
}

/* --- RDMA Reads --- */

bool iw_tx_can_read(const struct iw_conn *conn)
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

	if (tx->consumer_reads >= conn->read_max || !iw_tx_can_read(conn))
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
	case CORE_OP_RDMA_WRITE:
		return put_segment(conn, ep, req, budget);
	case CORE_OP_RDMA_READ:
		return put_read(conn, req);
	case CORE_OP_BIND:
		return run_bind(conn, ep, req);
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
	if (!iw_tx_can_read(conn))
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

	return !tx->is_in_request && !tx->is_in_response && iw_frame_has_room(conn, 0);
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
	if (!tx->is_in_request && (tx->is_in_response || tx->is_response_next)) {
		rc = iw_answer_put(conn, ep, budget);
		if (rc < 0)
			return rc == -EAGAIN ? TX_FULL : TX_FAILED;
		tx->is_response_next = tx->is_in_response;
		if (rc)
			return TX_QUEUED;
	}
	step = put_request(conn, ep, budget);
	tx->is_response_next = !tx->is_in_request;
	if (step != TX_WAIT || tx->is_in_request)
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

/* Is little enough queued that it may wait for more? */
static bool is_small(const struct iw_conn *conn)
{
	uint32_t bytes = iw_buffer_count(&conn->stream.tx.out);

	return bytes && bytes < IW_HOLD_BYTES && !iw_frame_is_direct(conn);
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
		iw_stream_wait_for_first(conn);
		return 0;
	}
	if (tx->next < ep->req.tail || tx->served_count)
		iw_stream_update_mulpdu(conn);
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
			tx->hold.count++;
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
