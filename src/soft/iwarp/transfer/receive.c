// SPDX-License-Identifier: BSD-2-Clause
/*
 * Payloads that are read from the socket straight into their target.
 *
 * A peer of ours announces a long message (IW_STAG_LONG): so many of its segments have the size of
 * the first. Messages are not interleaved, so it is known where the payloads of the next segments
 * go before their headers come, and one system call reads several:
 *
 *   rest of the payload | tail, header | payload | tail, header | payload | tail, what follows
 *   to the target       | rx.in        | target  | rx.in        | target  | rx.in
 *
 * Each header must then be the expected one. A peer that gives up sends a Terminate instead, whose
 * bytes may remain in the target of the message that has failed.
 */
#include "soft/iwarp/transfer/receive.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "core/transport.h"
#include "shared/bytes.h"
#include "soft/copy.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/checksum.h"
#include "soft/iwarp/transfer/rx.h"
#include "soft/iwarp/transfer/segment.h"
#include "soft/iwarp/transfer/socket.h"
#include "soft/iwarp/transfer/target.h"
#include "soft/iwarp/wire/crc.h"

#define LAST_WORD 8u
#define AHEAD_MAX 3u /* with the first, 256 KiB in one system call */

/* What one system call reads. */
struct reading {
	struct iw_target target;
	uint32_t rest;	/* bytes of the segment that is open */
	uint32_t ahead; /* segments behind it, all of its size */
	uint32_t gap;	/* bytes between two payloads */
	bool is_more;	/* one more of them follows */
};

/* --- what is known --- */

static uint64_t position(const struct iw_ddp *ddp)
{
	return ddp->is_tagged ? ddp->offset : ddp->mo;
}

void iw_receive_announced(struct iw_rx *rx, uint64_t count)
{
	rx->announced = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

void iw_receive_note(struct iw_rx *rx, const struct iw_segment *segment)
{
	if (segment->ddp.is_last || segment->ddp.opcode == IW_OP_READ_RESPONSE) {
		rx->known_end = 0;
	} else if (rx->announced) {
		rx->known_end = position(&segment->ddp) + (uint64_t)rx->announced * segment->size;
		rx->announced = 0;
	}
}

/* How many segments of the same size follow the one that is open. A peer may lie: any number may
 * come out, and begin_ahead and open_next check what it is used for. */
static uint64_t known_ahead(const struct iw_rx *rx)
{
	uint64_t left = rx->known_end - position(&rx->segment.ddp);

	return rx->known_end && left >= rx->segment.size ? left / rx->segment.size - 1 : 0;
}

/* --- what to read --- */

uint32_t iw_receive_direct(const struct iw_segment *segment)
{
	uint32_t left = segment->size - segment->placed;

	if (!segment->ddp.is_last)
		return left;
	return left > LAST_WORD ? left - LAST_WORD : 0;
}

/* Is the target of all these segments valid, and one piece? The last byte of a Receive, which a
 * consumer may poll (COMPAT-46), is that of another segment. */
static bool begin_ahead(struct iw_conn *conn, struct core_ep *ep, struct reading *reading)
{
	const struct iw_rx *rx = &conn->stream.rx;
	const struct iw_segment *segment = &rx->segment;
	const uint32_t total = reading->rest + reading->ahead * segment->size;
	struct iw_target *target = &reading->target;

	if (iw_segment_is_send(segment) && total >= core_recv_next(ep)->len - rx->filling.offset)
		return false;
	if (iw_target_begin(conn, ep, segment, total, target) == IW_NO_ERROR &&
	    (target->has_key || target->pins.count == 1))
		return true;
	iw_target_end(conn, target);
	return false;
}

/* Finds the memory to read to: IW_NO_ERROR, or the error. */
static iw_error begin(struct iw_conn *conn, struct core_ep *ep, struct reading *reading)
{
	const struct iw_rx *rx = &conn->stream.rx;
	const uint64_t known = known_ahead(rx);

	reading->rest = iw_receive_direct(&rx->segment);
	reading->ahead = known < AHEAD_MAX ? (uint32_t)known : AHEAD_MAX;
	reading->gap = rx->tail + IW_FPDU_HEAD + iw_ddp_size(&rx->segment.ddp);
	reading->is_more = known > reading->ahead;
	if (reading->ahead && begin_ahead(conn, ep, reading))
		return IW_NO_ERROR;
	reading->ahead = 0;
	reading->is_more = false;
	return iw_target_begin(conn, ep, &rx->segment, reading->rest, &reading->target);
}

static uint8_t *payload_at(const struct iw_rx *rx, const struct reading *reading, uint32_t number)
{
	return (uint8_t *)reading->target.pins.iov[0].iov_base + reading->rest +
	       number * rx->segment.size;
}

/* Fills the list and returns its length. */
static size_t list_parts(const struct iw_rx *rx, const struct reading *reading, struct iovec *iov)
{
	const struct iw_target *target = &reading->target;
	const uint32_t used = reading->ahead * reading->gap;
	size_t count = 0;
	uint32_t i;

	for (i = 0; i < (target->has_key ? 1 : target->pins.count); i++)
		iov[count++] = target->pins.iov[i];
	if (reading->ahead)
		iov[0].iov_len = reading->rest;
	for (i = 0; i < reading->ahead; i++) {
		iov[count++] = (struct iovec){rx->in.data + i * reading->gap, reading->gap};
		iov[count++] = (struct iovec){payload_at(rx, reading, i), rx->segment.size};
	}
	iov[count++] = (struct iovec){rx->in.data + used,
				      reading->is_more ? reading->gap : rx->in.size - used};
	return count;
}

/* --- reading --- */

static ssize_t receive_message(int fd, struct msghdr *message)
{
	ssize_t count = iw_socket_recvmsg(fd, message, MSG_DONTWAIT);

	return count < 0 ? -errno : count;
}

/* --- what has come --- */

/* These bytes of the open segment are placed. With the CRC on they are one piece. */
static int placed(struct iw_conn *conn, const uint8_t *at, uint32_t count)
{
	struct iw_rx *rx = &conn->stream.rx;

	iw_target_advance(conn, &rx->segment, count);
	return conn->has_crc ? iw_checksum(at, count, &rx->crc) : 0;
}

/* The segment that is expected behind the open one. */
static struct iw_segment expected(const struct iw_segment *segment)
{
	struct iw_segment next = *segment;

	next.placed = 0;
	if (next.ddp.is_tagged)
		next.ddp.offset += next.size;
	else
		next.ddp.mo += next.size;
	return next;
}

/* Opens the next segment if the header at `at` is the expected one. */
static bool open_next(struct iw_conn *conn, const uint8_t *at)
{
	struct iw_rx *rx = &conn->stream.rx;
	struct iw_segment next = expected(&rx->segment);
	uint8_t head[IW_FPDU_HEAD + IW_UNTAGGED_HEAD];
	uint32_t size = IW_FPDU_HEAD + iw_ddp_put(&next.ddp, head + IW_FPDU_HEAD);

	be_put16(head, next.offender.ulpdu);
	if (memcmp(at, head, size) != 0)
		return false;
	if (iw_segment_is_send(&next)) {
		if (iw_message_check(conn, &next) != IW_NO_ERROR)
			return false;
		iw_message_advance(conn, &next);
	}
	memcpy(next.offender.head, at + IW_FPDU_HEAD, size - IW_FPDU_HEAD);
	rx->segment = next;
	if (conn->has_crc)
		rx->crc = iw_crc32c(0, at, size);
	return true;
}

/* The peer has broken its word, or the header is damaged. */
static int refuse_stream(struct iw_conn *conn, struct core_ep *ep)
{
	if (conn->has_crc) {
		iw_rx_fail_crc(conn, ep);
		return -EPROTO;
	}
	iw_segment_fail_receive(conn, ep, DAT_DTO_ERR_BAD_RESPONSE);
	iw_answer_error(conn, IW_ERROR(1, 0, 0), &conn->stream.rx.segment.offender);
	return -EPROTO;
}

/*
 * Another header has come than the expected one, in gap `number`. Puts it and what follows in order
 * in rx.in. Only a Terminate is honest, and nothing follows that.
 */
static int put_back(struct iw_conn *conn, struct core_ep *ep, const struct reading *reading,
		    uint32_t number, uint32_t left)
{
	struct iw_rx *rx = &conn->stream.rx;
	const uint32_t start = number * reading->gap;
	const uint32_t behind = left - reading->gap;
	int rc;

	if (behind > rx->segment.size || start + left > rx->in.size)
		return refuse_stream(conn, ep);
	rc = soft_copy_from_consumer(rx->in.data + start + reading->gap,
				     payload_at(rx, reading, number), behind, NULL);
	if (rc < 0)
		return rc;
	rx->known_end = 0;
	rx->in.start = start;
	rx->in.end = start + left;
	return 0;
}

/* `count` bytes have come: 0, -EPROTO, or another -errno: the memory cannot be accessed. */
static int take(struct iw_conn *conn, struct core_ep *ep, const struct reading *reading,
		uint32_t count)
{
	struct iw_rx *rx = &conn->stream.rx;
	uint32_t part = count < reading->rest ? count : reading->rest;
	uint32_t left = count - part;
	uint32_t i;
	int rc = placed(conn, reading->target.pins.iov[0].iov_base, part);

	for (i = 0; !rc && i < reading->ahead && left >= reading->gap; i++) {
		const uint8_t *at = rx->in.data + i * reading->gap;

		if (!iw_rx_is_tail_good(conn, at)) {
			iw_rx_fail_crc(conn, ep);
			return -EPROTO;
		}
		if (!open_next(conn, at + rx->tail))
			return put_back(conn, ep, reading, i, left);
		left -= reading->gap;
		part = left < rx->segment.size ? left : rx->segment.size;
		rc = placed(conn, payload_at(rx, reading, i), part);
		left -= part;
	}
	rx->in.start = i * reading->gap;
	rx->in.end = rx->in.start + left;
	return rc;
}

static size_t size_of(const struct iovec *iov, size_t count)
{
	size_t size = 0;

	while (count)
		size += iov[--count].iov_len;
	return size;
}

ssize_t iw_receive(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_rx *rx = &conn->stream.rx;
	struct iovec iov[SOFT_IOV_MAX + 1];
	struct msghdr message = {.msg_iov = iov};
	struct reading reading;
	iw_error error = begin(conn, ep, &reading);
	ssize_t count = 0;
	int rc = 0;

	if (error == IW_NO_ERROR) {
		message.msg_iovlen = list_parts(rx, &reading, iov);
		count = receive_message(conn->fd, &message);
		rx->is_dry = count < (ssize_t)size_of(iov, message.msg_iovlen);
		rx->in.start = rx->in.end = 0;
		if (count > 0)
			rc = take(conn, ep, &reading, (uint32_t)count);
	}
	iw_target_end(conn, &reading.target);
	if (count == -EFAULT || (rc < 0 && rc != -EPROTO))
		error = IW_ERROR(1, 0, 0);
	if (error == IW_NO_ERROR)
		return rc < 0 ? rc : count;
	(void)iw_segment_refuse_target(conn, ep, &rx->segment, error);
	return -EPROTO;
}
