// SPDX-License-Identifier: BSD-2-Clause
/* Where the next bytes of a segment go (target.h). */
#include "soft/iwarp/transfer/target.h"

#include "core/transport.h"
#include "soft/iwarp/transfer/answer.h"

iw_error iw_target_begin(struct iw_conn *conn, struct core_ep *ep, const struct iw_segment *segment,
			 uint32_t count, struct iw_target *target)
{
	const struct iw_read *read;
	const struct core_req *req;
	uint64_t address;

	target->has_key = segment->ddp.opcode == IW_OP_WRITE;
	target->pins.count = 0;
	if (target->has_key) {
		address = segment->ddp.offset + segment->placed;
		target->pins.iov[0] = (struct iovec){(void *)(uintptr_t)address, count};
		return iw_key_begin(conn, ep, segment->ddp.stag, true, address, count);
	}
	if (iw_segment_is_send(segment))
		return soft_pin_receive(ep, core_recv_next(ep), conn->stream.rx.filling.offset,
					count, &target->pins) < 0
			       ? IW_ERROR(1, 0, 0)
			       : IW_NO_ERROR;
	read = iw_oldest_read(conn);
	req = core_req_at(&ep->req, read->sequence);
	return soft_pin(ep, req->iov, req->segments, read->offset + read->taken, count,
			CORE_MEM_TARGET, &target->pins) < 0
		       ? IW_ERROR(1, 1, 0)
		       : IW_NO_ERROR;
}

void iw_target_end(struct iw_conn *conn, struct iw_target *target)
{
	if (target->has_key)
		iw_key_end(conn);
	else
		soft_unpin(&target->pins);
}

void iw_target_advance(struct iw_conn *conn, struct iw_segment *segment, uint32_t count)
{
	segment->placed += count;
	if (iw_segment_is_send(segment))
		conn->stream.rx.filling.offset += count;
	else if (segment->ddp.opcode == IW_OP_READ_RESPONSE)
		iw_oldest_read(conn)->taken += count;
}
