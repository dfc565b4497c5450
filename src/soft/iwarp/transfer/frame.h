// SPDX-License-Identifier: BSD-2-Clause
/*
 * Building FPDUs, and giving them to TCP. Small payloads are copied behind their header, so that
 * one system call sends many. Large ones go to TCP straight from the consumer's memory, and
 * one system call sends many of these, too: a call for each would wake the peer for each.
 */
#ifndef IWARP_FRAME_H
#define IWARP_FRAME_H

#include "soft/iwarp/conn.h"
#include "soft/pins.h"

/* What waits; of each FPDU head, payload and tail; segments of the payloads. */
#define IW_SEND_IOV (1u + 3u * IW_FRAMES + SOFT_IOV_MAX)
#define IW_DIRECT_MIN 8192u /* payloads from that size on are not copied */
/* What a frame without payload needs at most: a Read Request, or a Terminate. */
#define IW_FRAME_SMALL 96u

/* Is there room for an FPDU with that much payload behind what waits to be sent? */
bool iw_frame_has_room(struct iw_conn *conn, uint32_t payload);
/*
 * What a ULPDU may have at most. A foreign peer's follow the segment size of TCP, which may change.
 */
uint32_t iw_frame_mulpdu(const struct iw_conn *conn);
/* How much payload fits into one segment with a header of that size, by the rules for this peer. */
uint32_t iw_frame_most(const struct iw_conn *conn, uint32_t head);

/*
 * Writes length and header of an FPDU, and returns where its payload goes; iw_frame_end() completes
 * it. There is room.
 */
uint8_t *iw_frame_begin(struct iw_conn *conn, const struct iw_ddp *ddp, uint32_t payload);
void iw_frame_end(struct iw_conn *conn, const struct iw_ddp *ddp, uint32_t payload);
/* Both, for an FPDU without payload. */
void iw_frame_put_empty(struct iw_conn *conn, const struct iw_ddp *ddp);
/* An RDMA Write of length 0, by which two engines of ours tell each other something (tx.h). */
void iw_frame_put_word(struct iw_conn *conn, uint32_t stag, uint64_t word);
/* Do FPDUs wait whose payload is not copied? */
static inline bool iw_frame_is_direct(const struct iw_conn *conn)
{
	return conn->stream.tx.direct.first < conn->stream.tx.direct.count;
}
/* Does anything wait for TCP? */
static inline bool iw_frame_has_unsent(const struct iw_conn *conn)
{
	return iw_buffer_count(&conn->stream.tx.out) || iw_frame_is_direct(conn);
}
/* May more FPDUs of that request follow them? */
bool iw_frame_can_append(const struct iw_conn *conn, const struct core_req *req);
/* Queues an FPDU whose payload is the next `len` bytes of a request, from that offset on, without
 * copying it. There is room for it, or it can be appended; nothing else can be queued before
 * iw_flush has sent all of it. 0 or -EFAULT: the memory is not valid any more. */
int iw_frame_direct(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req,
		    const struct iw_ddp *ddp, uint64_t offset, uint32_t len);

/*
 * Gives TCP what waits. Sets is_blocked if TCP has no room, is_lost if it has failed. -EFAULT: the
 * memory of request direct.sequence is not valid any more. EP locked.
 */
int iw_flush(struct iw_conn *conn, struct core_ep *ep);

/*
 * The stream ends behind the FPDU that has begun: copies what that still needs of the consumer's
 * memory, before its request completes. Nothing more may be received or queued. Sets is_lost if the
 * memory is not valid any more. More calls do nothing.
 */
void iw_frame_cut(struct iw_conn *conn, struct core_ep *ep);
/* After iw_answer_last: sends what is left. True: all of it is sent. */
bool iw_frame_flush_rest(struct iw_conn *conn);

#endif
