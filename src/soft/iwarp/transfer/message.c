// SPDX-License-Identifier: BSD-2-Clause
/*
 * The order of messages in queue 0, and messages that wait for a Receive. Their segments are kept
 * in the spill space, so that what follows them in the stream (RDMA Writes, Read Responses,
 * Terminate) is not held up (DTO-117). When the space is full the socket is not read, and the TCP
 * window closes (DDP-17).
 */
#include <string.h>

#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/segment.h"

iw_error iw_message_check(const struct iw_conn *conn, const struct iw_segment *segment)
{
	const struct iw_rx *rx = &conn->stream.rx;
	const struct iw_ddp *ddp = &segment->ddp;

	if (ddp->msn != rx->msn[IW_QUEUE_SEND])
		return IW_ERROR(1, 2, 3);
	if (rx->arrival.is_begun && ddp->opcode != rx->arrival.opcode)
		return IW_ERROR(0, 2, 6);
	if (ddp->mo != (rx->arrival.is_begun ? rx->arrival.offset : 0))
		return IW_ERROR(1, 2, 4);
	if (segment->size > UINT32_MAX - ddp->mo)
		return IW_ERROR(1, 2, 5);
	return IW_NO_ERROR;
}

void iw_message_advance(struct iw_conn *conn, const struct iw_segment *segment)
{
	struct iw_rx *rx = &conn->stream.rx;
	struct iw_arrival *arrival = &rx->arrival;

	if (segment->ddp.is_last) {
		arrival->is_begun = false;
		rx->msn[IW_QUEUE_SEND]++;
		return;
	}
	arrival->is_begun = true;
	arrival->opcode = segment->ddp.opcode;
	arrival->offset = segment->ddp.mo + segment->size;
}

bool iw_message_is_waiting(const struct iw_conn *conn)
{
	return conn->stream.rx.spill.records != 0;
}

/* What a segment takes in the spill space: its description, then its payload. */
static uint32_t record_size(const struct iw_segment *segment)
{
	return ((uint32_t)sizeof(*segment) + segment->size + 7u) & ~7u;
}

/* Room for a record; NULL: the space is full, or there is no memory for it. */
static uint8_t *add_record(struct iw_conn *conn, uint32_t size)
{
	struct iw_spill *spill = &conn->stream.rx.spill;

	return iw_spill_open(spill) ? iw_spill_add(spill, size) : NULL;
}

/* Starts the limit of DTO-106, if there is one. */
static void start_waiting(struct iw_conn *conn)
{
	uint64_t limit_ns = conn->engine->settings.rnr_timeout_ms * UINT64_C(1000000);
	struct iw_rx *rx = &conn->stream.rx;

	if (rx->is_waiting)
		return;
	rx->is_waiting = true;
	if (!limit_ns)
		return;
	rx->waiting_ns = core_now_ns() + limit_ns;
	iw_conn_lower_deadline(conn, rx->waiting_ns);
}

void iw_message_end_waiting(struct iw_conn *conn)
{
	conn->stream.rx.is_waiting = false;
	conn->stream.rx.waiting_ns = 0;
}

enum iw_take iw_message_keep(struct iw_conn *conn, const struct iw_segment *segment,
			     const uint8_t *payload)
{
	uint8_t *at;

	start_waiting(conn);
	at = add_record(conn, record_size(segment));
	if (!at) {
		conn->stream.rx.is_blocked = true;
		return IW_WAIT;
	}
	memcpy(at, segment, sizeof(*segment));
	memcpy(at + sizeof(*segment), payload, segment->size);
	return IW_TAKEN;
}

void iw_message_end_of_stream(struct iw_conn *conn)
{
	struct iw_rx *rx = &conn->stream.rx;

	if (conn->is_own_peer || (!iw_message_is_waiting(conn) && !rx->is_blocked)) {
		iw_conn_close(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	} else if (!rx->end_ns) {
		rx->end_ns =
			core_now_ns() + conn->engine->settings.peer_timeout_ms * UINT64_C(1000000);
		iw_conn_lower_deadline(conn, rx->end_ns);
	}
}

/* Is the time over that a message may wait? */
static bool is_too_late(struct iw_conn *conn)
{
	const struct iw_rx *rx = &conn->stream.rx;

	if (!rx->waiting_ns)
		return false;
	if (core_now_ns() >= rx->waiting_ns)
		return true;
	iw_conn_lower_deadline(conn, rx->waiting_ns);
	return false;
}

static enum iw_take deliver_one(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_spill *spill = &conn->stream.rx.spill;
	const uint8_t *at = iw_spill_first(spill);
	struct iw_segment segment;
	enum iw_take take;

	memcpy(&segment, at, sizeof(segment));
	take = iw_segment_take(conn, ep, &segment, at + sizeof(segment));
	if (take == IW_WAIT)
		start_waiting(conn);
	if (take == IW_WAIT && is_too_late(conn)) {
		iw_answer_error(conn, IW_ERROR(1, 2, 2), &segment.offender);
		return IW_ENDED;
	}
	if (take == IW_TAKEN)
		iw_spill_remove(spill, record_size(&segment));
	return take;
}

int iw_message_deliver(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_rx *rx = &conn->stream.rx;
	int handled = 0;

	if (!iw_message_is_waiting(conn))
		rx->is_blocked = false; /* there was no memory for the spill space */
	while (iw_message_is_waiting(conn) && iw_conn_state(conn) == IW_ESTABLISHED) {
		if (deliver_one(conn, ep) != IW_TAKEN)
			return handled;
		handled++;
		iw_message_end_waiting(conn);
		rx->is_blocked = false;
	}
	return handled;
}
