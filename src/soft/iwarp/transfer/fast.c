// SPDX-License-Identifier: BSD-2-Clause
/* The fast path of a connection over TCP (fast.h). */
#include "soft/iwarp/transfer/fast.h"

#include <errno.h>

#include "core/ep/ep_fast.h"
#include "core/transport.h"
#include "shared/bytes.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/transfer/rx.h"
#include "soft/iwarp/transfer/tx.h"
#include "soft/pins.h"

/* --- posts --- */

/* Is it the next message, which may be sent at once? */
CORE_INLINE bool can_send(const struct iw_conn *conn, const struct core_req *req)
{
	const struct iw_tx *tx = &conn->stream.tx;

	return iw_conn_state(conn) == IW_ESTABLISHED && tx->may_send && tx->next == req->sequence &&
	       !tx->is_in_response && !iw_frame_has_unsent(conn);
}

/* Copies the message into the buffer, as one FPDU. False: its region is not valid any more. */
CORE_INLINE bool put_message(struct iw_conn *conn, struct core_ep *ep, struct core_req *req)
{
	struct iw_ddp ddp = iw_tx_header(conn, req);
	uint32_t len = (uint32_t)req->len;
	struct core_lmr *lmr = core_mem_get(ep->ia->mem, req->iov, ep->pz, CORE_MEM_SOURCE);
	uint8_t *to;

	if (!lmr)
		return false;
	ddp.is_last = true;
	to = iw_frame_begin(conn, &ddp, len);
	memcpy(to, (const void *)(uintptr_t)req->iov->virtual_address, len);
	core_mem_put(lmr);
	iw_frame_end(conn, &ddp, len);
	conn->stream.tx.offset = len;
	iw_tx_end_message(conn, req);
	return true;
}

/* May the request take the fast path? One that follows another without an idle poll in between may
 * continue a stream, which hold.h delays. */
CORE_INLINE bool is_small_send(const struct iw_conn *conn, const struct core_req *req)
{
	const struct iw_tx *tx = &conn->stream.tx;

	if ((req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) && tx->consumer_reads)
		return false; /* DTO-30 */
	return req->op == CORE_OP_SEND && req->len < IW_DIRECT_MIN && conn->is_own_peer &&
	       iw_hold_is_broken(&tx->hold);
}

bool iw_post_fast(struct iw_conn *conn, struct core_ep *ep, struct core_req *req)
{
	struct iw_tx *tx = &conn->stream.tx;

	if (!is_small_send(conn, req) || !can_send(conn, req) ||
	    !iw_frame_has_room(conn, (uint32_t)req->len + IW_FRAME_SMALL))
		return false;
	if (iw_counts_are_due(conn))
		iw_counts_put(conn);
	if (!put_message(conn, ep, req))
		return false;
	iw_hold_begin(&tx->hold);
	(void)iw_flush(conn, ep);
	if (iw_frame_has_unsent(conn))
		iw_pass_requests(conn, ep);
	return true;
}

/* --- polls --- */

/* Can new work only come from the socket, at the begin of an FPDU? */
CORE_INLINE bool is_quiet(const struct iw_conn *conn, const struct core_ep *ep)
{
	const struct iw_tx *tx = &conn->stream.tx;
	const struct iw_rx *rx = &conn->stream.rx;

	return !ep->cell->slow_reasons && rx->is_any && !rx->is_open && !iw_buffer_count(&rx->in) &&
	       !conn->retry_ns && !conn->is_hung_up && !iw_frame_has_unsent(conn) &&
	       iw_tx_is_idle(tx, ep);
}

/* Takes the next FPDU in the buffer if it has the counts of the peer. */
CORE_INLINE bool take_counts(struct iw_conn *conn, struct core_ep *ep)
{
	static const uint32_t size = IW_FPDU_HEAD + IW_TAGGED_HEAD + IW_FPDU_CRC;
	struct iw_rx *rx = &conn->stream.rx;
	const uint8_t *at = rx->in.data + rx->in.start;

	if (iw_buffer_count(&rx->in) < size || be_get16(at) != IW_TAGGED_HEAD ||
	    !iw_ddp_is_whole_write(at + IW_FPDU_HEAD, IW_STAG_COUNTS) || !conn->is_own_peer ||
	    !iw_rx_is_crc_good(conn, at, size) ||
	    iw_complete_counted(conn, ep, be_get64(at + IW_FPDU_HEAD + 6)) != IW_NO_ERROR)
		return false;
	rx->in.start += size;
	return true;
}

/* Takes the next FPDU in the buffer if it is a whole Send and fills a Receive of one segment. */
CORE_INLINE bool take_message(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_rx *rx = &conn->stream.rx;
	const uint8_t *at = rx->in.data + rx->in.start;
	const uint8_t *ddp = at + IW_FPDU_HEAD;
	uint32_t count = iw_buffer_count(&rx->in);
	uint32_t ulpdu = count < IW_FPDU_HEAD + IW_UNTAGGED_HEAD ? 0 : be_get16(at);
	uint32_t size = iw_fpdu_size(ulpdu);
	bool is_solicited;

	if (ulpdu <= IW_UNTAGGED_HEAD || size > count || rx->arrival.is_begun ||
	    !iw_ddp_is_whole_send(ddp, rx->msn[IW_QUEUE_SEND], &is_solicited) ||
	    !iw_rx_is_crc_good(conn, at, size) || !core_recv_is_posted(ep) ||
	    !soft_place_in_receive(ep, core_recv_oldest(ep), ddp + IW_UNTAGGED_HEAD,
				   ulpdu - IW_UNTAGGED_HEAD))
		return false;
	rx->in.start += size;
	rx->msn[IW_QUEUE_SEND]++;
	core_recv_done(ep, DAT_DTO_SUCCESS, ulpdu - IW_UNTAGGED_HEAD, is_solicited);
	rx->done.sends++;
	return true;
}

bool iw_poll_fast(struct iw_conn *conn, struct core_ep *ep, int *handled)
{
	struct iw_rx *rx = &conn->stream.rx;
	bool was_due = iw_counts_are_due(conn);
	ssize_t count;

	if (!is_quiet(conn, ep))
		return false;
	conn->has_more = false;
	count = iw_rx_read(conn);
	if (count == -EAGAIN) {
		iw_hold_break(&conn->stream.tx.hold);
		iw_tx_tell(conn, ep);
	} else if (count < 0 && count != -EINTR) {
		iw_rx_fail_read(conn, (int)count);
	}
	if (count <= 0)
		return count == -EAGAIN && !conn->is_lost;
	conn->moved += (uint32_t)count;
	while (iw_buffer_count(&rx->in)) {
		if (!take_message(conn, ep) && !take_counts(conn, ep)) {
			rx->is_fresh = rx->is_dry;
			return false;
		}
		++*handled;
	}
	if (was_due)
		iw_tx_tell(conn, ep);
	return !conn->is_lost;
}
