// SPDX-License-Identifier: BSD-2-Clause
/* What the peer is owed (answer.h). */
#include "soft/iwarp/transfer/answer.h"

#include <errno.h>
#include <string.h>

#include "core/base/log.h"
#include "core/transport.h"
#include "shared/bytes.h"
#include "soft/copy.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/access.h"
#include "soft/iwarp/transfer/tx.h"

#define UNTOLD_MAX 16u /* of either kind, that a poll leaves to the next one */
/*
 * After so many polls in a row that found nothing, counts are sent. A consumer that polls two EVDs
 * until both are empty may make two such polls after the message, and answers afterwards.
 */
#define VAIN_POLLS 3u
#define RESPONSE_MAX (16u * 1024u) /* payload of one segment, which is copied */

/* --- errors --- */

void iw_answer_error(struct iw_conn *conn, iw_error error, const struct iw_offender *offender)
{
	static const struct iw_offender none = {.ulpdu = 0};
	struct iw_tx *tx = &conn->stream.tx;

	if (iw_conn_state(conn) >= IW_CLOSING)
		return;
	core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
		 "%s: the TCP connection ends with a Terminate: %s (0x%04x)",
		 iw_conn_name(conn).text, iw_error_text(error), (unsigned int)error);
	tx->error = error;
	tx->offender = offender ? *offender : none;
	tx->is_over = true;
	iw_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
}

/* --- RDMA Reads of the peer --- */

/* May the peer ask for one more (MPA-39)? */
static bool can_serve(const struct iw_conn *conn)
{
	const struct iw_tx *tx = &conn->stream.tx;

	return tx->served_count < conn->ird && tx->served_count < IW_READS;
}

static struct iw_served *add_served(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;

	return &tx->served[(tx->served_first + tx->served_count++) % IW_READS];
}

static void remove_served(struct iw_tx *tx)
{
	tx->served_first = (tx->served_first + 1) % IW_READS;
	tx->served_count--;
}

iw_error iw_answer_take_request(struct iw_conn *conn, struct core_ep *ep,
				const struct iw_read_request *request,
				const struct iw_offender *offender)
{
	iw_error error;

	if (!can_serve(conn))
		return IW_ERROR(1, 2, 2);
	if (request->size) {
		error = iw_key_begin(conn, ep, request->source_stag, SOFT_RIGHT_REMOTE_READ,
				     request->source_offset, request->size);
		iw_key_end(conn);
		if (error != IW_NO_ERROR)
			return error;
	}
	*add_served(conn) = (struct iw_served){.request = *request, .offender = *offender};
	return IW_NO_ERROR;
}

/* --- atomic operations of the peer --- */

/* Carries it out; later calls do nothing. */
static iw_error run_atomic(struct iw_conn *conn, struct core_ep *ep, struct iw_served *served)
{
	const struct iw_atomic *atomic = &served->atomic;
	iw_error error;

	if (served->is_done)
		return IW_NO_ERROR;
	error = iw_key_begin(conn, ep, atomic->stag, SOFT_RIGHT_REMOTE_ATOMIC, atomic->offset,
			     sizeof(uint64_t));
	if (error == IW_NO_ERROR && atomic->offset % sizeof(uint64_t))
		error = IW_ERROR(0, 1, 1); /* D2-TCP-19 */
	if (error == IW_NO_ERROR && soft_atomic((void *)(uintptr_t)atomic->offset,
						atomic->is_swap ? &atomic->compare : NULL,
						atomic->operand, &served->before) < 0)
		error = IW_ERROR(0, 0, 0);
	iw_key_end(conn);
	served->is_done = error == IW_NO_ERROR;
	return error;
}

iw_error iw_answer_take_atomic(struct iw_conn *conn, struct core_ep *ep,
			       const struct iw_atomic *atomic, const struct iw_offender *offender)
{
	bool is_first = !conn->stream.tx.served_count;
	struct iw_served *served;

	if (!can_serve(conn))
		return IW_ERROR(1, 2, 2);
	served = add_served(conn);
	*served = (struct iw_served){.is_atomic = true, .atomic = *atomic, .offender = *offender};
	/* now, before what follows it, unless a Read before it has to be answered (D2-ATOM-15) */
	return is_first ? run_atomic(conn, ep, served) : IW_NO_ERROR;
}

static int put_atomic_response(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_served *served = &tx->served[tx->served_first];
	const struct iw_ddp ddp = {.is_last = true,
				   .opcode = IW_OP_ATOMIC_RESPONSE,
				   .queue = IW_QUEUE_ATOMIC,
				   .msn = tx->msn[IW_QUEUE_ATOMIC]};
	iw_error error;
	uint8_t *to;

	if (!iw_frame_has_room(conn, IW_ATOMIC_RESPONSE_SIZE))
		return -EAGAIN;
	error = run_atomic(conn, ep, served);
	if (error != IW_NO_ERROR) {
		iw_answer_error(conn, error, &served->offender);
		return -EACCES;
	}
	to = iw_frame_begin(conn, &ddp, IW_ATOMIC_RESPONSE_SIZE);
	be_put32(to, served->atomic.id);
	be_put64(to + 4, served->before);
	iw_frame_end(conn, &ddp, IW_ATOMIC_RESPONSE_SIZE);
	tx->msn[IW_QUEUE_ATOMIC]++;
	remove_served(tx);
	return 1;
}

/* --- Responses --- */

/* Copies the bytes of a segment of a Response. */
static iw_error fetch(struct iw_conn *conn, struct core_ep *ep,
		      const struct iw_read_request *request, uint32_t offset, uint8_t *to,
		      uint32_t len)
{
	uint64_t address = request->source_offset + offset;
	iw_error error =
		iw_key_begin(conn, ep, request->source_stag, SOFT_RIGHT_REMOTE_READ, address, len);

	if (error == IW_NO_ERROR &&
	    soft_copy_from_consumer(to, (const void *)(uintptr_t)address, len) < 0)
		error = IW_ERROR(0, 0, 0);
	iw_key_end(conn);
	return error;
}

static int put_response(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_served *served = &tx->served[tx->served_first];
	uint32_t left = served->request.size - served->offset;
	uint32_t len = iw_frame_most(conn, IW_TAGGED_HEAD);
	struct iw_ddp ddp = {.is_tagged = true,
			     .opcode = IW_OP_READ_RESPONSE,
			     .stag = served->request.sink_stag,
			     .offset = served->request.sink_offset + served->offset};
	iw_error error;
	uint8_t *to;

	if (len > RESPONSE_MAX)
		len = RESPONSE_MAX;
	if (len > left)
		len = left;
	if (!iw_frame_has_room(conn, len))
		return -EAGAIN;
	ddp.is_last = len == left;
	to = iw_frame_begin(conn, &ddp, len);
	error = len ? fetch(conn, ep, &served->request, served->offset, to, len) : IW_NO_ERROR;
	if (error != IW_NO_ERROR) {
		iw_answer_error(conn, error, &served->offender);
		return -EACCES;
	}
	iw_frame_end(conn, &ddp, len);
	served->offset += len;
	*budget -= len < *budget ? len : *budget;
	tx->under_way = ddp.is_last ? IW_NO_MESSAGE : IW_IN_RESPONSE;
	if (ddp.is_last)
		remove_served(tx);
	return 1;
}

/* --- all of it --- */

static bool are_told(const struct iw_rx *rx)
{
	return rx->done.sends == rx->told.sends && rx->done.writes == rx->told.writes;
}

/* Once for each message that waits. */
static bool is_drain_due(const struct iw_conn *conn)
{
	const struct iw_rx *rx = &conn->stream.rx;

	return conn->is_draining && iw_message_is_waiting(conn) &&
	       !(rx->has_told_drain && rx->drain_told == rx->done.sends);
}

bool iw_counts_are_due(const struct iw_conn *conn)
{
	return conn->is_own_peer && (!are_told(&conn->stream.rx) || is_drain_due(conn));
}

bool iw_counts_may_wait(struct iw_conn *conn)
{
	struct iw_rx *rx = &conn->stream.rx;
	bool is_moving = rx->done.sends != rx->seen.sends || rx->done.writes != rx->seen.writes;

	rx->seen = rx->done;
	rx->vain_polls = is_moving ? 0 : rx->vain_polls + 1;
	return !conn->is_draining && rx->vain_polls < VAIN_POLLS &&
	       rx->done.sends - rx->told.sends < UNTOLD_MAX &&
	       rx->done.writes - rx->told.writes < UNTOLD_MAX;
}

static void put_counts(struct iw_conn *conn)
{
	struct iw_rx *rx = &conn->stream.rx;

	iw_frame_put_word(conn, IW_STAG_COUNTS, (uint64_t)rx->done.sends << 32 | rx->done.writes);
	rx->told = rx->done;
}

void iw_counts_put(struct iw_conn *conn)
{
	struct iw_rx *rx = &conn->stream.rx;

	if (!are_told(rx))
		put_counts(conn);
	if (is_drain_due(conn)) {
		iw_frame_put_word(conn, IW_STAG_DRAINS, 0);
		rx->has_told_drain = true;
		rx->drain_told = rx->done.sends;
	}
}

int iw_answer_put(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	const struct iw_tx *tx = &conn->stream.tx;

	if (!tx->served_count)
		return 0;
	return tx->served[tx->served_first].is_atomic ? put_atomic_response(conn, ep)
						      : put_response(conn, ep, budget);
}

/* --- the end --- */

static void put_terminate(struct iw_conn *conn)
{
	const struct iw_tx *tx = &conn->stream.tx;
	const struct iw_ddp ddp = {
		.is_last = true, .opcode = IW_OP_TERMINATE, .queue = IW_QUEUE_TERMINATE, .msn = 1};
	uint8_t payload[IW_TERMINATE_MAX];
	uint32_t size = iw_terminate_put(tx->error, &tx->offender, payload);

	memcpy(iw_frame_begin(conn, &ddp, size), payload, size);
	iw_frame_end(conn, &ddp, size);
}

/* Appends to the last bytes of the stream what the peer has still to be told. */
static void append_last_words(struct iw_conn *conn, struct iw_buffer *rest)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_buffer out = tx->out;

	if (!rest->data)
		return;
	tx->out = *rest;
	if (iw_counts_are_due(conn))
		iw_counts_put(conn);
	if (tx->error != IW_NO_ERROR)
		put_terminate(conn);
	*rest = tx->out;
	tx->out = out;
}

void iw_answer_last(struct iw_conn *conn, struct core_ep *ep)
{
	iw_frame_cut(conn, ep);
	append_last_words(conn, &conn->stream.rx.in);
}

/* --- a Terminate of the peer --- */

/* The status that the request gets which a Terminate names. */
static DAT_DTO_COMPLETION_STATUS status_of(const struct iw_terminate *terminate,
					   const struct core_req *req)
{
	iw_error error = terminate->error;
	bool is_access = (error & 0xff00) == IW_ERROR(0, 1, 0) ||
			 ((error & 0xff00) == IW_ERROR(1, 1, 0) && (error & 255) <= 3);

	if (error == IW_ERROR(0, 1, 9) || error == IW_ERROR(0, 2, 9)) /* D2-TCP-05 */
		return req->op == CORE_OP_SEND_INVALIDATE ? DAT_DTO_ERR_REMOTE_ACCESS
							  : DAT_DTO_ERR_REMOTE_RESPONDER;
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

/* Is it a segment of that Write? */
static bool is_written_by(const struct core_req *req, const struct iw_ddp *segment)
{
	return segment->is_tagged && segment->stag == req->remote.rmr_context &&
	       is_within(segment->offset - req->remote.target_address, req->len);
}

/* Is it the request of a Read in flight that has that sink STag, or of an atomic operation in
 * flight whose Request has that number? */
static bool is_asked_by(const struct iw_tx *tx, const struct core_req *req, enum iw_read_kind kind,
			uint32_t which)
{
	uint32_t i;

	for (i = 0; i < tx->read_count; i++) {
		const struct iw_read *read = &tx->read[(tx->read_first + i) % IW_READS];

		if (read->kind == kind && read->sequence == req->sequence &&
		    which == (kind == IW_READ_ATOMIC ? read->msn : read->stag))
			return true;
	}
	return false;
}

/* Is it the request whose segment the Terminate names? `msn`: of the request, if it is a Send. */
static bool is_named(const struct iw_conn *conn, const struct core_req *req,
		     const struct iw_terminate *terminate, uint32_t msn)
{
	const struct iw_tx *tx = &conn->stream.tx;
	const struct iw_ddp *segment = &terminate->segment;
	bool is_message =
		!segment->is_tagged && segment->queue == IW_QUEUE_SEND && segment->msn == msn;

	switch (req->op) {
	case CORE_OP_SEND:
	case CORE_OP_SEND_INVALIDATE:
		return is_message;
	case CORE_OP_RDMA_WRITE:
		return is_written_by(req, segment);
	case CORE_OP_WRITE_IMMEDIATE:
		return is_message || is_written_by(req, segment);
	case CORE_OP_RDMA_READ:
		return terminate->has_request &&
		       is_asked_by(tx, req, IW_READ_CONSUMER, terminate->request.sink_stag);
	case CORE_OP_FETCH_ADD:
	case CORE_OP_COMPARE_SWAP:
		return !segment->is_tagged && segment->opcode == IW_OP_ATOMIC_REQUEST &&
		       is_asked_by(tx, req, IW_READ_ATOMIC, segment->msn);
	default:
		return false;
	}
}

/* The request that the Terminate names; NULL: none that is outstanding. */
static struct core_req *find_named(struct iw_conn *conn, struct core_ep *ep,
				   const struct iw_terminate *terminate)
{
	const struct iw_tx *tx = &conn->stream.tx;
	bool has_begun = (tx->under_way == IW_IN_REQUEST || tx->offset) && tx->next < ep->req.tail;
	uint32_t msn = tx->msn[IW_QUEUE_SEND];
	uint64_t sequence;

	if (!terminate->has_segment)
		return NULL;
	for (sequence = ep->req.head; sequence < tx->next; sequence++)
		msn -= core_op_takes_receive(core_req_at(&ep->req, sequence)->op);
	/* of Writes to the same place the peer has refused the first, and what is before it has
	 * succeeded: a later one must not be taken for it */
	for (sequence = ep->req.head; sequence < tx->next + has_begun; sequence++) {
		struct core_req *req = core_req_at(&ep->req, sequence);

		if (!req->is_done && is_named(conn, req, terminate, msn))
			return req;
		msn += core_op_takes_receive(req->op);
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

		if (state != IW_REQ_WAIT_PROOF && state != IW_REQ_WAIT_SENT)
			continue;
		req->transport.word[0] = IW_REQ_FINISHED;
		core_req_done(ep, req, DAT_DTO_SUCCESS, req->len);
	}
}

void iw_answer_terminated(struct iw_conn *conn, struct core_ep *ep,
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
		core_req_done(ep, req, status_of(terminate, req), 0);
	iw_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
}
