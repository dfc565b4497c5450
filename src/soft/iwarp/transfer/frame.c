// SPDX-License-Identifier: BSD-2-Clause
/* Building FPDUs, and giving them to TCP (frame.h). */
#include "soft/iwarp/transfer/frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "core/transport.h"
#include "shared/bytes.h"
#include "soft/copy.h"
#include "soft/iwarp/transfer/access.h"
#include "soft/iwarp/wire/crc.h"
#include "soft/pins.h"

#define EMSS_LEAST 536u

bool iw_frame_has_room(struct iw_conn *conn, uint32_t payload)
{
	struct iw_buffer *out = &conn->stream.tx.out;
	uint32_t need = payload + IW_FRAME_SMALL;

	if (iw_frame_is_direct(conn))
		return false;
	if (out->start == out->end)
		out->start = out->end = 0;
	if (need <= out->size - out->end)
		return true;
	if (need > out->size - iw_buffer_count(out))
		return false;
	memmove(out->data, out->data + out->start, iw_buffer_count(out));
	out->end -= out->start;
	out->start = 0;
	return true;
}

/* MPA-55 to -58 */
uint32_t iw_frame_mulpdu(const struct iw_conn *conn)
{
	uint32_t emss;

	if (conn->is_own_peer)
		return IW_ULPDU_MAX;
	emss = iw_socket_mss(conn->fd);
	return iw_fpdu_mulpdu(emss < EMSS_LEAST ? EMSS_LEAST : emss);
}

uint32_t iw_frame_most(const struct iw_conn *conn, uint32_t head)
{
	return (conn->stream.tx.mulpdu - head) & ~3u;
}

uint8_t *iw_frame_begin(struct iw_conn *conn, const struct iw_ddp *ddp, uint32_t payload)
{
	struct iw_buffer *out = &conn->stream.tx.out;
	uint8_t *at = out->data + out->end;
	uint32_t head = iw_ddp_put(ddp, at + IW_FPDU_HEAD);

	be_put16(at, (uint16_t)(head + payload));
	return at + IW_FPDU_HEAD + head;
}

void iw_frame_end(struct iw_conn *conn, const struct iw_ddp *ddp, uint32_t payload)
{
	struct iw_tx *tx = &conn->stream.tx;
	uint8_t *at = tx->out.data + tx->out.end;
	uint32_t ulpdu = iw_ddp_size(ddp) + payload;
	uint32_t body = IW_FPDU_HEAD + ulpdu + iw_fpdu_pad(ulpdu);

	memset(at + IW_FPDU_HEAD + ulpdu, 0, iw_fpdu_pad(ulpdu) + IW_FPDU_CRC);
	if (conn->has_crc)
		iw_crc_put(iw_crc32c(0, at, body), at + body);
	tx->out.end += body + IW_FPDU_CRC;
	tx->position += body + IW_FPDU_CRC;
}

void iw_frame_put_empty(struct iw_conn *conn, const struct iw_ddp *ddp)
{
	(void)iw_frame_begin(conn, ddp, 0);
	iw_frame_end(conn, ddp, 0);
}

void iw_frame_put_word(struct iw_conn *conn, uint32_t stag, uint64_t word)
{
	const struct iw_ddp ddp = {.is_tagged = true,
				   .is_last = true,
				   .opcode = IW_OP_WRITE,
				   .stag = stag,
				   .offset = word};

	iw_frame_put_empty(conn, &ddp);
}

/* Continues a CRC over a payload that is not copied; -EFAULT. */
static int crc_of_payload(struct core_ep *ep, const struct core_req *req, uint64_t offset,
			  uint32_t len, uint32_t *crc)
{
	struct soft_pins pins;
	int rc;

	if (soft_pin(ep, req->iov, req->segments, offset, len, CORE_MEM_SOURCE, &pins) < 0)
		return -EFAULT;
	rc = iw_checksum_pins(&pins, len, crc);
	soft_unpin(&pins);
	return rc;
}

bool iw_frame_can_append(const struct iw_conn *conn, const struct core_req *req)
{
	const struct iw_direct *direct = &conn->stream.tx.direct;

	return iw_frame_is_direct(conn) && direct->sequence == req->sequence &&
	       direct->count < IW_FRAMES;
}

int iw_frame_direct(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req,
		    const struct iw_ddp *ddp, uint64_t offset, uint32_t len)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_direct *direct = &tx->direct;
	uint32_t ulpdu = iw_ddp_size(ddp) + len;
	uint32_t pad = iw_fpdu_pad(ulpdu);
	struct iw_frame *frame;
	uint32_t crc;

	frame = &direct->frame[direct->count];
	*frame = (struct iw_frame){
		.len = len,
		.head_size = (uint8_t)(IW_FPDU_HEAD + iw_ddp_size(ddp)),
		.tail_size = (uint8_t)(pad + IW_FPDU_CRC),
	};
	be_put16(frame->head, (uint16_t)ulpdu);
	(void)iw_ddp_put(ddp, frame->head + IW_FPDU_HEAD);
	if (conn->has_crc) {
		crc = iw_crc32c(0, frame->head, frame->head_size);
		if (crc_of_payload(ep, req, offset, len, &crc) < 0)
			return -EFAULT;
		iw_crc_put(iw_crc32c(crc, frame->tail, pad), frame->tail + pad);
	}
	if (!direct->count++) {
		direct->sequence = req->sequence;
		direct->offset = offset;
	}
	tx->position += iw_fpdu_size(ulpdu);
	return 0;
}

/* --- sending --- */

/* Parts of the stream that one system call sends. */
struct gather {
	struct iovec iov[IW_SEND_IOV];
	size_t count;
	struct soft_pins pins; /* payloads, one after the other */
	uint32_t pin;	       /* where the next payload begins */
	size_t at;
};

static void gather_add(struct gather *gather, const uint8_t *bytes, size_t size)
{
	if (size)
		gather->iov[gather->count++] = (struct iovec){(void *)(uintptr_t)bytes, size};
}

/* Adds the next `left` bytes of the payloads. */
static void gather_payload(struct gather *gather, size_t left)
{
	while (left) {
		const struct iovec *from = &gather->pins.iov[gather->pin];
		size_t part = from->iov_len - gather->at;

		if (part > left)
			part = left;
		gather_add(gather, (const uint8_t *)from->iov_base + gather->at, part);
		left -= part;
		gather->at += part;
		if (gather->at == from->iov_len) {
			gather->at = 0;
			gather->pin++;
		}
	}
}

/* What is left of an FPDU of which TCP has taken so much already. */
struct frame_left {
	uint32_t head;
	uint32_t payload;
	uint32_t tail;
};

/* Takes up to `*done` bytes off a size. */
static uint32_t take_off(uint32_t size, uint32_t *done)
{
	uint32_t part = size < *done ? size : *done;

	*done -= part;
	return size - part;
}

static struct frame_left left_of(const struct iw_frame *frame, uint32_t done)
{
	struct frame_left left;

	left.head = take_off(frame->head_size, &done);
	left.payload = take_off(frame->len, &done);
	left.tail = take_off(frame->tail_size, &done);
	return left;
}

static uint32_t frame_size(const struct iw_frame *frame)
{
	return frame->head_size + frame->len + frame->tail_size;
}

/*
 * Pins what `frames` FPDUs, from the first on, still need of the consumer's memory: 0 or -EFAULT.
 */
static int pin_payloads(struct iw_conn *conn, struct core_ep *ep, uint32_t frames,
			struct soft_pins *pins)
{
	const struct iw_direct *direct = &conn->stream.tx.direct;
	const struct core_req *req = core_req_at(&ep->req, direct->sequence);
	const struct iw_frame *frame = &direct->frame[direct->first];
	uint32_t left = left_of(frame, direct->done).payload;
	uint64_t offset = direct->offset + frame->len - left;
	uint64_t len = left;
	uint32_t i;

	for (i = 1; i < frames; i++)
		len += frame[i].len;
	if (soft_pin(ep, req->iov, req->segments, offset, len, CORE_MEM_SOURCE, pins) < 0)
		return -EFAULT;
	return 0;
}

/* Takes `count` bytes that TCP has accepted off what waits. */
static void took(struct iw_tx *tx, size_t count)
{
	struct iw_direct *direct = &tx->direct;
	size_t part = iw_buffer_count(&tx->out);

	tx->sent += count;
	if (part > count)
		part = count;
	tx->out.start += (uint32_t)part;
	direct->done += (uint32_t)(count - part);
	while (direct->first < direct->count) {
		const struct iw_frame *frame = &direct->frame[direct->first];

		if (direct->done < frame_size(frame))
			return;
		direct->done -= frame_size(frame);
		direct->offset += frame->len;
		direct->first++;
	}
	direct->first = direct->count = 0;
}

/* One call of sendmsg: 0, or -errno. */
static int send_some(struct iw_conn *conn, struct iovec *iov, size_t count)
{
	struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
	ssize_t sent = iw_socket_sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0)
		return -errno;
	took(&conn->stream.tx, (size_t)sent);
	return 0;
}

/* Adds the FPDUs that are not copied; their payload is pinned. */
static void gather_frames(const struct iw_direct *direct, struct gather *gather)
{
	uint32_t done = direct->done;
	uint32_t i;

	for (i = direct->first; i < direct->count; i++) {
		const struct iw_frame *frame = &direct->frame[i];
		struct frame_left left = left_of(frame, done);

		gather_add(gather, frame->head + frame->head_size - left.head, left.head);
		gather_payload(gather, left.payload);
		gather_add(gather, frame->tail + frame->tail_size - left.tail, left.tail);
		done = 0;
	}
}

/* Sends `out`, and the FPDUs behind it. */
static int send_all(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct gather gather;
	int rc;

	gather.count = gather.pin = gather.at = gather.pins.count = 0;
	gather_add(&gather, tx->out.data + tx->out.start, iw_buffer_count(&tx->out));
	if (iw_frame_is_direct(conn)) {
		if (pin_payloads(conn, ep, tx->direct.count - tx->direct.first, &gather.pins) < 0)
			return -EFAULT;
		gather_frames(&tx->direct, &gather);
	}
	rc = send_some(conn, gather.iov, gather.count);
	soft_unpin(&gather.pins);
	return rc;
}

/* What the result of a system call on the socket means: 0 try again, 1 stop, -EFAULT. */
static int judge_send(struct iw_conn *conn, int rc)
{
	if (rc == -EINTR)
		return 0;
	if (rc == -EFAULT)
		return rc;
	if (rc == -EAGAIN || iw_conn_note_shortage(conn, rc))
		conn->stream.tx.is_blocked = true;
	else
		iw_conn_lose(conn, rc);
	return 1;
}

int iw_flush(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;

	tx->is_blocked = iw_conn_is_short(conn);
	if (iw_frame_has_unsent(conn))
		iw_alive_sent(conn);
	while (iw_frame_has_unsent(conn) && !tx->is_blocked && !conn->is_lost) {
		int rc = send_all(conn, ep);

		if (rc < 0)
			rc = judge_send(conn, rc);
		if (rc)
			return rc < 0 ? rc : 0;
	}
	return 0;
}

/* --- the end --- */

/* Copies what the FPDU that has begun still needs to `rest`. */
static void copy_direct(struct iw_conn *conn, struct core_ep *ep, struct iw_buffer *rest)
{
	const struct iw_direct *direct = &conn->stream.tx.direct;
	const struct iw_frame *frame = &direct->frame[direct->first];
	struct frame_left left = left_of(frame, direct->done);
	struct soft_pins pins;

	memcpy(rest->data, frame->head + frame->head_size - left.head, left.head);
	if (pin_payloads(conn, ep, 1, &pins) < 0 || soft_gather(rest->data + left.head, &pins) < 0)
		conn->is_lost = true; /* the FPDU cannot be finished */
	soft_unpin(&pins);
	rest->end = left.head + left.payload;
	memcpy(rest->data + rest->end, frame->tail + frame->tail_size - left.tail, left.tail);
	rest->end += left.tail;
}

void iw_frame_cut(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_buffer *rest = &conn->stream.rx.in;

	if (tx->is_cut)
		return;
	tx->is_cut = true;
	rest->start = rest->end = 0;
	if (iw_frame_is_direct(conn) && tx->direct.done && !conn->is_lost)
		copy_direct(conn, ep, rest);
	/* those behind it are not sent: their request has not completed */
	tx->direct.first = tx->direct.count = 0;
}

/* Sends a buffer; false: not all of it. */
static bool send_buffer(struct iw_conn *conn, struct iw_buffer *buffer)
{
	while (iw_buffer_count(buffer)) {
		struct iovec iov = {buffer->data + buffer->start, iw_buffer_count(buffer)};
		struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
		ssize_t sent = iw_socket_sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && judge_send(conn, -errno))
			return false;
		if (sent > 0)
			buffer->start += (uint32_t)sent;
	}
	return true;
}

bool iw_frame_flush_rest(struct iw_conn *conn)
{
	return send_buffer(conn, &conn->stream.tx.out) && send_buffer(conn, &conn->stream.rx.in);
}
