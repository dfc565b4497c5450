// SPDX-License-Identifier: BSD-2-Clause
/* Payloads that are read from the socket straight into their target (receive.h). */
#include "soft/iwarp/transfer/receive.h"

#include <errno.h>
#include <sys/socket.h>

#include "core/transport.h"
#include "soft/iwarp/transfer/checksum.h"
#include "soft/iwarp/transfer/segment.h"
#include "soft/iwarp/transfer/socket.h"
#include "soft/iwarp/transfer/target.h"

#define LAST_WORD 8u
/* Behind a segment that others of its message follow, only its trailer and the header of the next
 * one are read: the payload of that can then be read to its target, too. */
#define NEXT_HEADER 32u

uint32_t iw_receive_direct(const struct iw_segment *segment)
{
	uint32_t left = segment->size - segment->placed;

	if (!segment->ddp.is_last)
		return left;
	return left > LAST_WORD ? left - LAST_WORD : 0;
}

/* The memory that one system call fills; returns the number of entries. */
static size_t list_parts(const struct iw_rx *rx, const struct iw_target *target, struct iovec *iov)
{
	uint32_t ahead = rx->segment.ddp.is_last ? rx->in.size : rx->tail + NEXT_HEADER;
	size_t count = 0;
	uint32_t i;

	for (i = 0; i < (target->has_key ? 1 : target->pins.count); i++)
		iov[count++] = target->pins.iov[i];
	iov[count++] = (struct iovec){rx->in.data, ahead};
	return count;
}

/* `count` bytes have come, the first `most` of which are the segment's. 0, or -EFAULT. */
static int take(struct iw_conn *conn, const struct iw_target *target, uint32_t most, uint32_t count)
{
	struct iw_rx *rx = &conn->stream.rx;
	uint32_t part = count < most ? count : most;

	iw_target_advance(conn, &rx->segment, part);
	rx->in.end = count - part;
	/* with the CRC on the target is one piece (rx.c) */
	return conn->has_crc ? iw_checksum(target->pins.iov[0].iov_base, part, &rx->crc) : 0;
}

ssize_t iw_receive(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_rx *rx = &conn->stream.rx;
	const uint32_t most = iw_receive_direct(&rx->segment);
	struct iovec iov[SOFT_IOV_MAX + 1];
	struct msghdr message = {.msg_iov = iov};
	struct iw_target target;
	iw_error error = iw_target_begin(conn, ep, &rx->segment, most, &target);
	ssize_t count = 0;

	if (error == IW_NO_ERROR) {
		message.msg_iovlen = list_parts(rx, &target, iov);
		rx->in.start = rx->in.end = 0;
		count = iw_socket_recvmsg(conn->fd, &message, MSG_DONTWAIT);
		if (count < 0)
			count = -errno;
		rx->is_dry = count < (ssize_t)(most + iov[message.msg_iovlen - 1].iov_len);
		if (count > 0 && take(conn, &target, most, (uint32_t)count) < 0)
			count = -EFAULT;
	}
	iw_target_end(conn, &target);
	if (count == -EFAULT)
		error = IW_ERROR(1, 0, 0);
	if (error == IW_NO_ERROR)
		return count;
	(void)iw_segment_refuse_target(conn, ep, &rx->segment, error);
	return -EPROTO;
}
