// SPDX-License-Identifier: BSD-2-Clause
/*
 * The bytes that arrive become FPDUs, and these are carried out (rx.h). Most are carried out when
 * all of the FPDU is there and its CRC is good (MPA-52). Where no CRC is used, the payload of a
 * large one is placed as it comes, straight from the socket.
 */
#include "soft/iwarp/transfer/rx.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "core/transport.h"
#include "shared/bytes.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/extended.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/segment.h"
#include "soft/iwarp/transfer/access.h"
#include "soft/iwarp/transfer/tx.h"
#include "soft/iwarp/wire/crc.h"
#include "soft/iwarp/wire/formats.h"

#define PIECES_MIN 4096u /* payloads from that size on are placed as they come */
#define FPDU_COST 512u	 /* of the budget, so that the smallest FPDUs end a pass, too (IWCM-46) */

enum rx_step {
	RX_TAKEN, /* something was carried out: go on */
	RX_NEED,  /* more bytes are needed */
	RX_FIRST, /* ACCEPTED: a valid FPDU is there, and is left in the buffer */
	RX_WAIT,  /* a message waits for a Receive, and there is no space to keep it */
	RX_ENDED, /* the connection ends */
};

/* --- bytes of the socket --- */

/* Makes room at the end of the buffer. */
static void compact(struct iw_buffer *in)
{
	if (in->start == in->end) {
		in->start = in->end = 0;
	} else if (in->end == in->size) {
		memmove(in->data, in->data + in->start, iw_buffer_count(in));
		in->end -= in->start;
		in->start = 0;
	}
}

ssize_t iw_rx_read(struct iw_conn *conn)
{
	struct iw_rx *rx = &conn->stream.rx;
	struct iw_buffer *in = &rx->in;
	ssize_t count;

	compact(in);
	count = iw_socket_recv(conn->fd, in->data + in->end, in->size - in->end, MSG_DONTWAIT);
	if (count > 0)
		in->end += (uint32_t)count;
	rx->is_dry = in->end < in->size;
	return count < 0 ? -errno : count;
}

static ssize_t receive(struct iw_conn *conn, struct core_ep *ep)
{
	const struct iw_rx *rx = &conn->stream.rx;

	if (rx->is_open && !iw_buffer_count(&rx->in) && iw_receive_direct(&rx->segment))
		return iw_receive(conn, ep);
	return iw_rx_read(conn);
}

/* The peer has ended its direction of the stream. */
static void end_of_stream(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_rx *rx = &conn->stream.rx;

	if (iw_conn_state(conn) == IW_ACCEPTED) {
		conn->is_lost = true; /* the set-up has failed */
		return;
	}
	if (iw_conn_is_reset(conn) || rx->is_open || iw_buffer_count(&rx->in)) {
		/* IWCM-31: within an FPDU */
		iw_segment_fail_filling(conn, ep, DAT_DTO_ERR_TRANSPORT);
		iw_complete_lost(conn, ep, DAT_DTO_ERR_TRANSPORT);
		iw_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
		return;
	}
	iw_message_end_of_stream(conn);
}

/* --- one FPDU --- */

static enum rx_step fail(struct iw_conn *conn, iw_error error, const struct iw_offender *offender)
{
	iw_answer_error(conn, error, offender);
	return RX_ENDED;
}

/* A CRC is wrong (TERM-30). */
static enum rx_step fail_crc(struct iw_conn *conn, struct core_ep *ep)
{
	iw_segment_fail_filling(conn, ep, DAT_DTO_ERR_TRANSPORT);
	return fail(conn, IW_ERROR(2, 0, 2), NULL);
}

bool iw_rx_is_crc_good(const struct iw_conn *conn, const uint8_t *at, uint32_t size)
{
	const uint32_t body = size - IW_FPDU_CRC;

	return !conn->has_crc || iw_crc32c(0, at, body) == iw_crc_get(at + body);
}

static void note_fpdu(struct iw_conn *conn)
{
	conn->stream.rx.is_any = true;
	conn->stream.tx.may_send = true;
}

/* DDP-13 comes before the rules about the Read Request itself. */
static iw_error check_read_request(const struct iw_rx *rx, const struct iw_segment *segment)
{
	if (segment->ddp.msn != rx->msn[IW_QUEUE_READ])
		return IW_ERROR(1, 2, 3);
	return iw_read_request_check(&segment->ddp, segment->offender.ulpdu);
}

static enum rx_step take_read_request(struct iw_conn *conn, struct core_ep *ep,
				      struct iw_segment *segment, const uint8_t *payload)
{
	struct iw_rx *rx = &conn->stream.rx;
	iw_error error = check_read_request(rx, segment);
	struct iw_read_request request;

	if (error == IW_NO_ERROR) {
		memcpy(segment->offender.request, payload, IW_READ_REQUEST_SIZE);
		segment->offender.has_request = true;
		iw_read_request_get(payload, &request);
		error = iw_answer_take_request(conn, ep, &request, &segment->offender);
	}
	if (error != IW_NO_ERROR)
		return fail(conn, error, &segment->offender);
	rx->msn[IW_QUEUE_READ]++;
	return RX_TAKEN;
}

/* D2-TCP-13: in one order with Read Requests. */
static enum rx_step take_atomic_request(struct iw_conn *conn, struct core_ep *ep,
					const struct iw_segment *segment, const uint8_t *payload)
{
	struct iw_rx *rx = &conn->stream.rx;
	struct iw_atomic atomic;
	iw_error error = IW_ERROR(1, 2, 3);

	if (segment->ddp.msn == rx->msn[IW_QUEUE_READ])
		error = iw_whole_check(&segment->ddp, segment->size, IW_ATOMIC_REQUEST_SIZE);
	if (error == IW_NO_ERROR)
		error = iw_atomic_get(payload, &atomic)
				? iw_answer_take_atomic(conn, ep, &atomic, &segment->offender)
				: IW_ERROR(0, 2, 6);
	if (error != IW_NO_ERROR)
		return fail(conn, error, &segment->offender);
	rx->msn[IW_QUEUE_READ]++;
	return RX_TAKEN;
}

static enum rx_step take_terminate(struct iw_conn *conn, struct core_ep *ep,
				   const struct iw_segment *segment, const uint8_t *payload)
{
	const struct iw_ddp *ddp = &segment->ddp;
	struct iw_terminate terminate;

	if (!iw_terminate_get(payload, segment->size, &terminate) || ddp->msn != 1 || ddp->mo ||
	    !ddp->is_last || !iw_error_is_known(terminate.error)) /* TERM-13 */
		terminate = (struct iw_terminate){.error = IW_ERROR(0, 0, 0)};
	iw_answer_terminated(conn, ep, &terminate);
	return RX_ENDED;
}

/* Is it a message between two of ours (tx.h), and no RDMA Write? */
static bool is_special(const struct iw_conn *conn, const struct iw_segment *segment)
{
	return conn->is_own_peer && segment->ddp.opcode == IW_OP_WRITE && !segment->size &&
	       segment->ddp.stag >= IW_STAG_RTR && segment->ddp.stag <= IW_STAG_DRAINS;
}

static enum rx_step take_special(struct iw_conn *conn, struct core_ep *ep,
				 const struct iw_segment *segment)
{
	iw_error error = IW_NO_ERROR;

	if (segment->ddp.stag == IW_STAG_COUNTS)
		error = iw_complete_counted(conn, ep, segment->ddp.offset);
	else if (segment->ddp.stag == IW_STAG_DRAINS)
		conn->stream.tx.peer_drains = true;
	return error == IW_NO_ERROR ? RX_TAKEN : fail(conn, error, &segment->offender);
}

static enum rx_step step_of(enum iw_take take)
{
	return take == IW_TAKEN ? RX_TAKEN : take == IW_WAIT ? RX_WAIT : RX_ENDED;
}

/* MPA-35: the form B of the ready-to-receive message takes no Receive. */
static bool is_rtr_send(const struct iw_conn *conn, const struct iw_segment *segment, bool is_first)
{
	return is_first && !conn->is_active && conn->rtr == IW_RTR_SEND && !segment->size &&
	       segment->ddp.is_last;
}

static enum rx_step take_send(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment,
			      const uint8_t *payload, bool is_first)
{
	iw_error error = iw_message_check(conn, segment);
	enum rx_step step = RX_WAIT;

	if (error != IW_NO_ERROR) {
		iw_segment_fail_receive(conn, ep, DAT_DTO_ERR_BAD_RESPONSE);
		return fail(conn, error, &segment->offender);
	}
	if (is_rtr_send(conn, segment, is_first))
		step = RX_TAKEN;
	else if (!iw_message_is_waiting(conn))
		step = step_of(iw_segment_take(conn, ep, segment, payload));
	if (step == RX_WAIT)
		step = step_of(iw_message_keep(conn, segment, payload));
	else if (step == RX_TAKEN)
		iw_message_end_waiting(conn); /* if there was no memory to keep it before */
	if (step == RX_TAKEN)
		iw_message_advance(conn, segment);
	return step;
}

/* Carries out an FPDU that is all there. */
static enum rx_step take_whole(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment,
			       const uint8_t *payload)
{
	bool is_first = !conn->stream.rx.is_any;

	if (iw_conn_state(conn) == IW_ACCEPTED) {
		conn->is_lost |= segment->ddp.opcode == IW_OP_TERMINATE; /* TERM-32 */
		return RX_FIRST;
	}
	if (segment->ddp.opcode == IW_OP_TERMINATE)
		return take_terminate(conn, ep, segment, payload);
	note_fpdu(conn);
	switch (segment->ddp.opcode) {
	case IW_OP_READ_REQUEST:
		return take_read_request(conn, ep, segment, payload);
	case IW_OP_ATOMIC_REQUEST:
		return take_atomic_request(conn, ep, segment, payload);
	case IW_OP_ATOMIC_RESPONSE:
		return step_of(iw_atomic_take(conn, ep, segment, payload));
	default:
		break;
	}
	if (is_special(conn, segment))
		return take_special(conn, ep, segment);
	if (segment->ddp.is_tagged)
		return step_of(iw_segment_take(conn, ep, segment, payload));
	return take_send(conn, ep, segment, payload, is_first);
}

/* May the payload be placed as it comes? If so, begins that. */
static enum rx_step open_segment(struct iw_conn *conn, struct core_ep *ep,
				 const struct iw_segment *segment, uint32_t head)
{
	struct iw_rx *rx = &conn->stream.rx;
	enum iw_take take;

	if (conn->has_crc || segment->size < PIECES_MIN ||
	    segment->ddp.opcode == IW_OP_READ_REQUEST || segment->ddp.opcode >= IW_OP_TERMINATE ||
	    iw_conn_state(conn) != IW_ESTABLISHED)
		return RX_NEED;
	if (!segment->ddp.is_tagged &&
	    (iw_message_is_waiting(conn) || iw_message_check(conn, segment) != IW_NO_ERROR ||
	     !core_recv_next(ep)))
		return RX_NEED; /* it is judged, or kept, when all of it is there */
	take = iw_segment_begin(conn, ep, segment);
	if (take != IW_TAKEN)
		return step_of(take);
	if (!segment->ddp.is_tagged)
		iw_message_advance(conn, segment);
	rx->segment = *segment;
	rx->is_open = true;
	rx->tail = iw_fpdu_pad(head + segment->size) + IW_FPDU_CRC;
	rx->in.start += IW_FPDU_HEAD + head;
	return RX_TAKEN;
}

/* Continues the segment whose payload is placed as it comes. */
static enum rx_step continue_segment(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_rx *rx = &conn->stream.rx;
	struct iw_segment *segment = &rx->segment;
	const uint8_t *at = rx->in.data + rx->in.start;
	uint32_t count = iw_buffer_count(&rx->in);
	uint32_t left = segment->size - segment->placed;
	uint32_t part = count < left ? count : left;

	if (iw_segment_put(conn, ep, segment, at, part) != IW_TAKEN)
		return RX_ENDED;
	rx->in.start += part;
	if (count - part < rx->tail)
		return RX_NEED;
	rx->in.start += rx->tail;
	rx->is_open = false;
	note_fpdu(conn);
	return step_of(iw_segment_end(conn, ep, segment));
}

/* MPA-35, MPA-60: an FPDU without ULPDU. */
static enum rx_step take_empty(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_rx *rx = &conn->stream.rx;
	uint32_t size = iw_fpdu_size(0);
	const uint8_t *at = rx->in.data + rx->in.start;

	if (rx->is_any || conn->is_active || conn->rtr != IW_RTR_SEND)
		return fail(conn, IW_ERROR(1, 0, 0), NULL);
	if (iw_buffer_count(&rx->in) < size)
		return RX_NEED;
	if (!iw_rx_is_crc_good(conn, at, size))
		return fail_crc(conn, ep);
	if (iw_conn_state(conn) == IW_ACCEPTED)
		return RX_FIRST;
	rx->in.start += size;
	note_fpdu(conn);
	return RX_TAKEN;
}

/* Is enough there to judge the header? */
static bool is_header_there(const uint8_t *at, uint32_t count)
{
	uint32_t ulpdu = be_get16(at);

	if (count <= IW_FPDU_HEAD)
		return false;
	return ulpdu < iw_ddp_head_size(at[2]) || count >= IW_FPDU_HEAD + iw_ddp_head_size(at[2]);
}

/* What of RFC 7306 may come (D2-TCP-02). */
static uint32_t agreed_opcodes(const struct iw_conn *conn)
{
	uint32_t opcodes = 0;

	if (!conn->is_own_peer)
		return 0;
	if (conn->takes & TRANSPORT_TAKES_IMMEDIATE)
		opcodes |= IW_OPS_IMMEDIATE;
	if (conn->takes & TRANSPORT_TAKES_ATOMICS)
		opcodes |= 1u << IW_OP_ATOMIC_REQUEST;
	if (conn->peer_takes & TRANSPORT_TAKES_ATOMICS)
		opcodes |= 1u << IW_OP_ATOMIC_RESPONSE;
	return opcodes;
}

static enum rx_step next_fpdu(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_rx *rx = &conn->stream.rx;
	const uint8_t *at = rx->in.data + rx->in.start;
	uint32_t count = iw_buffer_count(&rx->in);
	uint32_t ulpdu = count < IW_FPDU_HEAD ? 0 : be_get16(at);
	uint32_t size = iw_fpdu_size(ulpdu);
	struct iw_segment segment = {.offender.ulpdu = (uint16_t)ulpdu};
	uint32_t head;
	iw_error error;
	enum rx_step step;

	if (count < IW_FPDU_HEAD)
		return RX_NEED;
	if (!ulpdu)
		return take_empty(conn, ep);
	if (!is_header_there(at, count))
		return RX_NEED;
	if (count >= size && !iw_rx_is_crc_good(conn, at, size))
		return fail_crc(conn, ep);
	error = iw_ddp_get_later(at + IW_FPDU_HEAD, ulpdu, agreed_opcodes(conn), &segment.ddp);
	head = iw_ddp_head_size(at[2]);
	if (error != IW_NO_ERROR && conn->has_crc && count < size)
		return RX_NEED; /* the CRC is judged first */
	if (ulpdu >= head)
		memcpy(segment.offender.head, at + IW_FPDU_HEAD, head);
	if (error == IW_ERROR(0, 2, 6)) /* TERM-21 */
		iw_segment_fail_receive(conn, ep, DAT_DTO_ERR_BAD_RESPONSE);
	if (error != IW_NO_ERROR)
		return fail(conn, error, &segment.offender);
	segment.size = ulpdu - head;
	if (count < size)
		return open_segment(conn, ep, &segment, head);
	step = take_whole(conn, ep, &segment, at + IW_FPDU_HEAD + head);
	if (step == RX_TAKEN)
		rx->in.start += size;
	return step;
}

/* --- all of them --- */

static bool is_running(const struct iw_conn *conn)
{
	enum iw_state state = iw_conn_state(conn);

	return state == IW_ACCEPTED || state == IW_ESTABLISHED;
}

void iw_rx_fail_read(struct iw_conn *conn, int error)
{
	if (error != -EAGAIN && error != -EPROTO && !iw_conn_note_shortage(conn, error))
		iw_conn_lose(conn, error);
}

/* Reads the socket. False: there is nothing, the kernel lacks memory, or the stream has ended. */
static bool read_more(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	ssize_t count;

	if (iw_conn_is_short(conn))
		return false;
	count = receive(conn, ep);
	if (count > 0) {
		*budget -= (uint64_t)count < *budget ? (uint64_t)count : *budget;
		return true;
	}
	if (count == -EINTR)
		return true;
	if (!count)
		end_of_stream(conn, ep);
	else
		iw_rx_fail_read(conn, (int)count);
	return false;
}

int iw_rx_run(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	struct iw_rx *rx = &conn->stream.rx;
	bool is_dry = rx->is_fresh && !conn->is_lost;
	int handled = 0;

	rx->is_fresh = false;
	if (rx->is_blocked || iw_message_is_waiting(conn))
		handled = iw_message_deliver(conn, ep);
	if (rx->is_blocked)
		return handled;
	while (*budget && is_running(conn)) {
		enum rx_step step = rx->is_open ? continue_segment(conn, ep) : next_fpdu(conn, ep);

		if (step == RX_TAKEN) {
			*budget -= FPDU_COST < *budget ? FPDU_COST : *budget;
			handled++;
		} else if (step != RX_NEED) {
			return handled + 1;
		} else if (is_dry || !read_more(conn, ep, budget)) {
			return handled;
		} else {
			/* after a hang-up or a failure the end has to be seen */
			is_dry = rx->is_dry && !conn->is_hung_up && !conn->is_lost;
		}
	}
	return handled;
}
