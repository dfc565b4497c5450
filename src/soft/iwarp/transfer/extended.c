// SPDX-License-Identifier: BSD-2-Clause
/* Immediate data and atomic operations (extended.h). */
#include "soft/iwarp/transfer/extended.h"

#include "core/transport.h"
#include "shared/bytes.h"
#include "soft/iwarp/transfer/access.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/tx.h"
#include "soft/pins.h"

/* --- immediate data --- */

bool iw_immediate_queue(struct iw_conn *conn, struct core_req *req)
{
	struct iw_tx *tx = &conn->stream.tx;
	const struct iw_immediate immediate = {.value = *core_req_immediate(req),
					       .length = (uint32_t)req->len};
	const struct iw_ddp ddp = {.is_last = true,
				   .opcode = req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG
						     ? IW_OP_IMMEDIATE_SOLICITED
						     : IW_OP_IMMEDIATE,
				   .queue = IW_QUEUE_SEND,
				   .msn = tx->msn[IW_QUEUE_SEND]};

	if (!iw_frame_has_room(conn, IW_IMMEDIATE_SIZE))
		return false;
	iw_immediate_put(&immediate, iw_frame_begin(conn, &ddp, IW_IMMEDIATE_SIZE));
	iw_frame_end(conn, &ddp, IW_IMMEDIATE_SIZE);
	tx->msn[IW_QUEUE_SEND]++;
	/* only a peer of ours takes it */
	req->transport.word[0] = IW_REQ_WAIT_COUNT;
	req->transport.word[1] = ++tx->queued.sends;
	tx->under_way = IW_NO_MESSAGE;
	tx->offset = 0;
	tx->next++;
	return true;
}

enum iw_take iw_immediate_take(struct iw_conn *conn, struct core_ep *ep,
			       const struct iw_segment *segment, const uint8_t *payload)
{
	struct iw_immediate immediate;

	if (!core_recv_next(ep))
		return IW_WAIT;
	iw_immediate_get(payload, &immediate);
	core_recv_done_immediate(ep, immediate.value, immediate.length,
				 segment->ddp.opcode == IW_OP_IMMEDIATE_SOLICITED);
	conn->stream.rx.done.sends++;
	return IW_TAKEN;
}

/* --- atomic operations --- */

bool iw_atomic_queue(struct iw_conn *conn, struct core_req *req)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_atomic atomic = {
		.is_swap = req->op == CORE_OP_COMPARE_SWAP,
		.stag = req->remote.rmr_context,
		.offset = req->remote.target_address,
		.operand = *core_req_operand(req),
		.compare = req->op == CORE_OP_COMPARE_SWAP ? req->compare : 0,
	};
	const struct iw_ddp ddp = {.is_last = true,
				   .opcode = IW_OP_ATOMIC_REQUEST,
				   .queue = IW_QUEUE_READ,
				   .msn = tx->msn[IW_QUEUE_READ]};
	struct iw_read *read;

	if (!iw_frame_has_room(conn, IW_ATOMIC_REQUEST_SIZE))
		return false;
	read = iw_tx_add_read(tx, IW_READ_ATOMIC, req->sequence);
	read->msn = ddp.msn;
	read->size = sizeof(uint64_t);
	atomic.id = read->stag;
	iw_atomic_put(&atomic, iw_frame_begin(conn, &ddp, IW_ATOMIC_REQUEST_SIZE));
	iw_frame_end(conn, &ddp, IW_ATOMIC_REQUEST_SIZE);
	tx->msn[IW_QUEUE_READ]++;
	tx->consumer_reads++;
	req->transport.word[0] = IW_REQ_WAIT_DATA;
	tx->next++;
	return true;
}

/* The request gets that status, and the peer a Terminate (D2-TCP-18). */
static enum iw_take refuse_response(struct iw_conn *conn, struct core_ep *ep,
				    const struct iw_segment *segment,
				    DAT_DTO_COMPLETION_STATUS status)
{
	const struct iw_read *read = iw_oldest_read(conn);

	if (read && read->kind == IW_READ_ATOMIC)
		core_req_done(ep, core_req_at(&ep->req, read->sequence), status, 0);
	iw_answer_error(conn, IW_ERROR(1, 1, 0), &segment->offender);
	return IW_ENDED;
}

enum iw_take iw_atomic_take(struct iw_conn *conn, struct core_ep *ep,
			    const struct iw_segment *segment, const uint8_t *payload)
{
	const struct iw_read *read = iw_oldest_read(conn);
	struct soft_pins pins;
	struct core_req *req;
	uint64_t before;
	int rc;

	if (!read || read->kind != IW_READ_ATOMIC ||
	    segment->ddp.msn != conn->stream.rx.msn[IW_QUEUE_ATOMIC] ||
	    iw_whole_check(&segment->ddp, segment->size, IW_ATOMIC_RESPONSE_SIZE) != IW_NO_ERROR ||
	    be_get32(payload) != read->stag)
		return refuse_response(conn, ep, segment, DAT_DTO_ERR_BAD_RESPONSE);
	before = be_get64(payload + 4);
	req = core_req_at(&ep->req, read->sequence);
	rc = soft_pin(ep, req->iov, req->segments, 0, sizeof(before), CORE_MEM_TARGET, &pins);
	if (!rc) {
		rc = soft_scatter(&pins, (const uint8_t *)&before);
		soft_unpin(&pins);
	}
	if (rc < 0)
		return refuse_response(conn, ep, segment, DAT_DTO_ERR_LOCAL_PROTECTION);
	conn->stream.rx.msn[IW_QUEUE_ATOMIC]++;
	iw_complete_read(conn, ep);
	return IW_TAKEN;
}
