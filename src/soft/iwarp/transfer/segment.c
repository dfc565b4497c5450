// SPDX-License-Identifier: BSD-2-Clause
/* Placing the payload of one segment (segment.h). */
#include "soft/iwarp/transfer/segment.h"

#include "core/mem/pz.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/target.h"
#include "soft/iwarp/transfer/tx.h"
#include "soft/key.h"
#include "soft/soft.h"

static bool is_solicited(const struct iw_ddp *ddp)
{
	return ddp->opcode == IW_OP_SEND_SOLICITED || ddp->opcode == IW_OP_SEND_BOTH;
}

void iw_segment_fail_receive(struct iw_conn *conn, struct core_ep *ep,
			     DAT_DTO_COMPLETION_STATUS status)
{
	struct iw_filling *filling = &conn->stream.rx.filling;

	if (filling->is_begun) {
		filling->is_begun = false;
		core_recv_done(ep, status, 0, false);
	}
}

void iw_segment_fail_filling(struct iw_conn *conn, struct core_ep *ep,
			     DAT_DTO_COMPLETION_STATUS status)
{
	const struct iw_read *read = iw_oldest_read(conn);

	iw_segment_fail_receive(conn, ep, status);
	if (read && read->kind == IW_READ_CONSUMER && read->taken)
		core_req_done(ep, core_req_at(&ep->req, read->sequence), status, 0);
}

/* Refuses a segment: the status for what it fills here, and a Terminate. */
static enum iw_take refuse(struct iw_conn *conn, struct core_ep *ep,
			   const struct iw_segment *segment, iw_error error,
			   DAT_DTO_COMPLETION_STATUS status)
{
	const struct iw_read *read = iw_oldest_read(conn);

	if (iw_segment_is_send(segment))
		iw_segment_fail_receive(conn, ep, status);
	if (segment->ddp.opcode == IW_OP_READ_RESPONSE && read && read->kind == IW_READ_CONSUMER)
		core_req_done(ep, core_req_at(&ep->req, read->sequence), status, 0);
	iw_answer_error(conn, error, &segment->offender);
	return IW_ENDED;
}

/* --- begin --- */

/* TERM-25, RDMAP-24: a Response continues the oldest Read exactly where it stands. */
static iw_error check_response(struct iw_conn *conn, const struct iw_segment *segment)
{
	const struct iw_read *read = iw_oldest_read(conn);

	if (!read || segment->ddp.stag != read->stag)
		return IW_ERROR(1, 1, 0);
	if (segment->ddp.offset != read->taken || segment->size > read->size - read->taken ||
	    segment->ddp.is_last != (segment->size == read->size - read->taken))
		return IW_ERROR(1, 1, 1);
	return IW_NO_ERROR;
}

static enum iw_take begin_send(struct iw_conn *conn, struct core_ep *ep,
			       const struct iw_segment *segment)
{
	struct iw_filling *filling = &conn->stream.rx.filling;
	const struct core_wqe *receive = core_recv_next(ep);

	if (!receive)
		return IW_WAIT;
	if (!filling->is_begun)
		*filling = (struct iw_filling){.is_begun = true};
	/* DTO-79; neither value can wrap */
	if (segment->size > receive->len - filling->offset)
		return refuse(conn, ep, segment, IW_ERROR(1, 2, 5), DAT_DTO_ERR_LOCAL_LENGTH);
	return IW_TAKEN;
}

enum iw_take iw_segment_begin(struct iw_conn *conn, struct core_ep *ep,
			      const struct iw_segment *segment)
{
	iw_error error = IW_NO_ERROR;

	if (iw_segment_is_send(segment))
		return begin_send(conn, ep, segment);
	if (segment->ddp.opcode == IW_OP_READ_RESPONSE) {
		error = check_response(conn, segment);
	} else if (segment->size) {
		error = iw_key_begin(conn, ep, segment->ddp.stag, true, segment->ddp.offset,
				     segment->size);
		iw_key_end(conn);
	}
	if (error == IW_NO_ERROR)
		return IW_TAKEN;
	return refuse(conn, ep, segment, error, DAT_DTO_ERR_BAD_RESPONSE);
}

/* --- bytes --- */

/* The last byte of a Receive is not that of such a segment: a consumer may poll it (COMPAT-46). */
static bool continues_send(const struct iw_conn *conn, struct core_ep *ep,
			   const struct iw_segment *segment)
{
	const struct iw_filling *filling = &conn->stream.rx.filling;

	return filling->is_begun && segment->size < core_recv_next(ep)->len - filling->offset;
}

static bool continues_response(struct iw_conn *conn, const struct iw_segment *segment)
{
	return check_response(conn, segment) == IW_NO_ERROR && iw_oldest_read(conn)->taken;
}

bool iw_segment_continues(struct iw_conn *conn, struct core_ep *ep,
			  const struct iw_segment *segment)
{
	struct iw_target target;
	bool continues, is_one_piece;

	if (segment->ddp.opcode == IW_OP_READ_RESPONSE)
		continues = continues_response(conn, segment);
	else
		continues = iw_segment_is_send(segment) && continues_send(conn, ep, segment);
	if (!continues)
		return false;
	is_one_piece = iw_target_begin(conn, ep, segment, segment->size, &target) == IW_NO_ERROR &&
		       target.pins.count == 1;
	iw_target_end(conn, &target);
	return is_one_piece;
}

/* Is it the byte that proves a Write (RDMAP-36)? Nobody wants its value. */
static bool is_proof(struct iw_conn *conn, const struct iw_segment *segment)
{
	return segment->ddp.opcode == IW_OP_READ_RESPONSE &&
	       iw_oldest_read(conn)->kind != IW_READ_CONSUMER;
}

enum iw_take iw_segment_refuse_target(struct iw_conn *conn, struct core_ep *ep,
				      const struct iw_segment *segment, iw_error error)
{
	return refuse(conn, ep, segment, error, DAT_DTO_ERR_LOCAL_PROTECTION);
}

enum iw_take iw_segment_put(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment,
			    const uint8_t *bytes, uint32_t count)
{
	struct iw_target target;
	iw_error error;
	int rc = 0;

	if (!count)
		return IW_TAKEN;
	if (is_proof(conn, segment)) {
		iw_target_advance(conn, segment, count);
		return IW_TAKEN;
	}
	error = iw_target_begin(conn, ep, segment, count, &target);
	if (error == IW_NO_ERROR && target.has_key)
		rc = soft_copy_to_consumer(target.pins.iov[0].iov_base, bytes, count);
	else if (error == IW_NO_ERROR)
		rc = soft_scatter(&target.pins, bytes);
	iw_target_end(conn, &target);
	if (rc < 0)
		error = IW_ERROR(1, 0, 0);
	if (error != IW_NO_ERROR)
		return iw_segment_refuse_target(conn, ep, segment, error);
	iw_target_advance(conn, segment, count);
	return IW_TAKEN;
}

/* --- end --- */

/*
 * RDMAP-13: ends remote access by a key of ours on behalf of the peer. The region itself stays, and
 * so does its use for our own messages.
 */
static bool invalidate(struct iw_conn *conn, const struct core_ep *ep, uint32_t key)
{
	struct soft_keys *keys = conn->engine->adapter->keys;
	const struct soft_key_entry *entry = &soft_keys_entries(keys)[soft_key_index(key)];
	bool is_found;

	/* while the key is announced nobody else releases it */
	iw_key_announce(conn, key);
	is_found =
		!soft_key_check(soft_keys_entries(keys), key, 0, ep->pz->id, entry->address, 0) &&
		soft_key_is_remote(entry);
	if (is_found)
		soft_keys_end_remote(keys, key);
	iw_key_end(conn);
	return is_found;
}

static enum iw_take end_send(struct iw_conn *conn, struct core_ep *ep,
			     const struct iw_segment *segment)
{
	struct iw_filling *filling = &conn->stream.rx.filling;
	const struct iw_ddp *ddp = &segment->ddp;

	if (!ddp->is_last)
		return IW_TAKEN;
	if ((ddp->opcode == IW_OP_SEND_INVALIDATE || ddp->opcode == IW_OP_SEND_BOTH) &&
	    !invalidate(conn, ep, ddp->invalidate))
		return refuse(conn, ep, segment, IW_ERROR(0, 2, 9), DAT_DTO_ERR_LOCAL_PROTECTION);
	filling->is_begun = false;
	core_recv_done(ep, DAT_DTO_SUCCESS, filling->offset, is_solicited(ddp));
	conn->stream.rx.done.sends++;
	return IW_TAKEN;
}

enum iw_take iw_segment_end(struct iw_conn *conn, struct core_ep *ep,
			    const struct iw_segment *segment)
{
	if (iw_segment_is_send(segment))
		return end_send(conn, ep, segment);
	if (segment->ddp.opcode == IW_OP_WRITE)
		conn->stream.rx.done.writes += segment->ddp.is_last;
	else if (segment->ddp.is_last)
		iw_complete_read(conn, ep);
	return IW_TAKEN;
}

enum iw_take iw_segment_take(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment,
			     const uint8_t *payload)
{
	enum iw_take take = iw_segment_begin(conn, ep, segment);

	if (take == IW_TAKEN)
		take = iw_segment_put(conn, ep, segment, payload, segment->size);
	if (take == IW_TAKEN)
		take = iw_segment_end(conn, ep, segment);
	return take;
}
