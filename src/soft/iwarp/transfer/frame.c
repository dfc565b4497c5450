// SPDX-License-Identifier: BSD-2-Clause
/* Building FPDUs, and giving them to TCP (frame.h). */
#include "soft/iwarp/transfer/frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "core/transport.h"
#include "shared/bytes.h"
#include "soft/copy.h"
#include "soft/iwarp/transfer/alive.h"
#include "soft/iwarp/wire/crc.h"
#include "soft/pins.h"

#define CRC_PIECE 4096u

bool iw_frame_has_room(struct iw_conn *conn, uint32_t payload)
{
	struct iw_buffer *out = &conn->stream.tx.out;
	uint32_t need = payload + IW_FRAME_SMALL;

	if (conn->stream.tx.direct.is_active)
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
	tx->queued += body + IW_FPDU_CRC;
}

void iw_frame_put_empty(struct iw_conn *conn, const struct iw_ddp *ddp)
{
	(void)iw_frame_begin(conn, ddp, 0);
	iw_frame_end(conn, ddp, 0);
}

/* Continues a CRC over pinned memory of the consumer; -EFAULT. */
static int crc_of_pins(const struct soft_pins *pins, uint32_t *crc)
{
	uint8_t piece[CRC_PIECE];
	uint32_t i;

	for (i = 0; i < pins->count; i++) {
		const uint8_t *at = pins->iov[i].iov_base;
		size_t left = pins->iov[i].iov_len;

		while (left) {
			size_t part = left < sizeof(piece) ? left : sizeof(piece);

			if (soft_copy_from_consumer(piece, at, part) < 0)
				return -EFAULT;
			*crc = iw_crc32c(*crc, piece, part);
			at += part;
			left -= part;
		}
	}
	return 0;
}

/* Pad and CRC behind a payload that is not copied. */
static int put_tail(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req,
		    const struct iw_ddp *ddp, uint64_t offset, uint32_t len)
{
	struct iw_direct *direct = &conn->stream.tx.direct;
	const uint8_t *at = conn->stream.tx.out.data + conn->stream.tx.out.end;
	uint32_t pad = iw_fpdu_pad(iw_ddp_size(ddp) + len);
	struct soft_pins pins;
	uint32_t crc;
	int rc;

	memset(direct->tail, 0, sizeof(direct->tail));
	direct->tail_size = pad + IW_FPDU_CRC;
	if (!conn->has_crc)
		return 0;
	crc = iw_crc32c(0, at, IW_FPDU_HEAD + iw_ddp_size(ddp));
	if (soft_pin(ep, req->iov, req->segments, offset, len, CORE_MEM_SOURCE, &pins) < 0)
		return -EFAULT;
	rc = crc_of_pins(&pins, &crc);
	soft_unpin(&pins);
	crc = iw_crc32c(crc, direct->tail, pad);
	iw_crc_put(crc, direct->tail + pad);
	return rc;
}

int iw_frame_direct(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req,
		    const struct iw_ddp *ddp, uint64_t offset, uint32_t len)
{
	struct iw_tx *tx = &conn->stream.tx;

	(void)iw_frame_begin(conn, ddp, len);
	if (put_tail(conn, ep, req, ddp, offset, len) < 0)
		return -EFAULT;
	tx->out.end += IW_FPDU_HEAD + iw_ddp_size(ddp);
	tx->direct.is_active = true;
	tx->direct.sequence = req->sequence;
	tx->direct.offset = offset;
	tx->direct.left = len;
	tx->direct.tail_sent = 0;
	tx->queued += IW_FPDU_HEAD + iw_ddp_size(ddp) + len + tx->direct.tail_size;
	return 0;
}

/* --- sending --- */

/* Takes `count` bytes that TCP has accepted off what waits. */
static void took(struct iw_tx *tx, size_t count)
{
	struct iw_direct *direct = &tx->direct;
	size_t part = iw_buffer_count(&tx->out);

	tx->sent += count;
	if (part > count)
		part = count;
	tx->out.start += (uint32_t)part;
	count -= part;
	part = direct->left < count ? direct->left : count;
	direct->left -= (uint32_t)part;
	direct->offset += part;
	count -= part;
	direct->tail_sent += (uint32_t)count;
	if (direct->is_active && !direct->left && direct->tail_sent == direct->tail_size)
		direct->is_active = false;
}

/* One call of sendmsg: 0, or -errno. */
static int send_some(struct iw_conn *conn, struct iovec *iov, size_t count)
{
	struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
	ssize_t sent = sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0)
		return -errno;
	took(&conn->stream.tx, (size_t)sent);
	return 0;
}

/* Sends `out`, and the payload behind it. */
static int send_all(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_direct *direct = &tx->direct;
	struct iovec iov[IW_SEND_IOV];
	struct soft_pins pins = {.count = 0};
	size_t count = 0;
	uint32_t i;
	int rc;

	if (iw_buffer_count(&tx->out))
		iov[count++] =
			(struct iovec){tx->out.data + tx->out.start, iw_buffer_count(&tx->out)};
	if (direct->is_active) {
		const struct core_req *req = core_req_at(&ep->req, direct->sequence);

		if (direct->left && soft_pin(ep, req->iov, req->segments, direct->offset,
					     direct->left, CORE_MEM_SOURCE, &pins) < 0)
			return -EFAULT;
		for (i = 0; i < pins.count; i++)
			iov[count++] = pins.iov[i];
		iov[count++] = (struct iovec){direct->tail + direct->tail_sent,
					      direct->tail_size - direct->tail_sent};
	}
	rc = send_some(conn, iov, count);
	soft_unpin(&pins);
	return rc;
}

static bool has_unsent(const struct iw_tx *tx)
{
	return iw_buffer_count(&tx->out) || tx->direct.is_active;
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
	if (has_unsent(tx))
		iw_alive_sent(conn);
	while (has_unsent(tx) && !tx->is_blocked && !conn->is_lost) {
		int rc = send_all(conn, ep);

		if (rc < 0)
			rc = judge_send(conn, rc);
		if (rc)
			return rc < 0 ? rc : 0;
	}
	return 0;
}

/* --- the end --- */

/* Appends the Terminate to the last bytes of the stream. */
static void append_terminate(struct iw_conn *conn, struct iw_buffer *rest)
{
	struct iw_tx *tx = &conn->stream.tx;
	const struct iw_ddp ddp = {
		.is_last = true, .opcode = IW_OP_TERMINATE, .queue = IW_QUEUE_TERMINATE, .msn = 1};
	uint8_t payload[IW_TERMINATE_MAX];
	uint32_t size = iw_terminate_put(tx->error, &tx->offender, payload);

	tx->out = *rest; /* the caller restores it */
	memcpy(iw_frame_begin(conn, &ddp, size), payload, size);
	iw_frame_end(conn, &ddp, size);
	*rest = tx->out;
}

/* Copies what the FPDU under way still needs of the consumer's memory behind `rest`. */
static void copy_direct(struct iw_conn *conn, struct core_ep *ep, struct iw_buffer *rest)
{
	struct iw_direct *direct = &conn->stream.tx.direct;
	const struct core_req *req = core_req_at(&ep->req, direct->sequence);
	uint32_t tail = direct->tail_size - direct->tail_sent;
	struct soft_pins pins = {.count = 0};

	direct->is_active = false;
	if (direct->left && (soft_pin(ep, req->iov, req->segments, direct->offset, direct->left,
				      CORE_MEM_SOURCE, &pins) < 0 ||
			     soft_gather(rest->data, &pins) < 0))
		conn->is_lost = true; /* the FPDU cannot be finished */
	soft_unpin(&pins);
	memcpy(rest->data + direct->left, direct->tail + direct->tail_sent, tail);
	rest->end = direct->left + tail;
}

void iw_frame_detach(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_stream *stream = &conn->stream;
	struct iw_buffer *rest = &stream->rx.in; /* nothing is received any more */
	struct iw_buffer out = stream->tx.out;

	rest->start = rest->end = 0;
	if (stream->tx.direct.is_active)
		copy_direct(conn, ep, rest);
	if (stream->tx.error != IW_NO_ERROR && rest->data)
		append_terminate(conn, rest);
	stream->tx.out = out;
}

/* Sends a buffer; false: not all of it. */
static bool send_buffer(struct iw_conn *conn, struct iw_buffer *buffer)
{
	while (iw_buffer_count(buffer)) {
		ssize_t sent = send(conn->fd, buffer->data + buffer->start, iw_buffer_count(buffer),
				    MSG_NOSIGNAL | MSG_DONTWAIT);

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
