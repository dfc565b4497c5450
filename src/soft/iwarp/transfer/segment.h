// SPDX-License-Identifier: BSD-2-Clause
/*
 * Placing the payload of one segment: a Send's into the Receive, an RDMA Write's into the region, a
 * Read Response's into the segments of the Read. A payload may be placed in pieces, and whether the
 * target is valid is checked for each. EP locked.
 */
#ifndef IWARP_SEGMENT_H
#define IWARP_SEGMENT_H

#include "soft/iwarp/conn.h"

enum iw_take {
	IW_TAKEN,
	IW_WAIT,  /* for a Receive; nothing has changed */
	IW_ENDED, /* refused: the connection ends */
};

/*
 * Does the segment continue a Send or a Read Response, in one piece of memory, and leave room for
 * another segment? Then bytes of it may be placed before its CRC is there, and nothing else
 * changes.
 */
bool iw_segment_continues(struct iw_conn *conn, struct core_ep *ep,
			  const struct iw_segment *segment);
/* Checks that the segment may be placed, and finds the Receive of a Send. */
enum iw_take iw_segment_begin(struct iw_conn *conn, struct core_ep *ep,
			      const struct iw_segment *segment);
/* Places the next bytes of it. */
enum iw_take iw_segment_put(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment,
			    const uint8_t *bytes, uint32_t count);
/* The memory for it is not valid any more: the connection ends. */
enum iw_take iw_segment_refuse_target(struct iw_conn *conn, struct core_ep *ep,
				      const struct iw_segment *segment, iw_error error);
/* All of it is placed, and its CRC is good: completes what it completes. */
enum iw_take iw_segment_end(struct iw_conn *conn, struct core_ep *ep,
			    const struct iw_segment *segment);

/* All three, for a payload that is there. */
enum iw_take iw_segment_take(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment,
			     const uint8_t *payload);

/* The stream fails: the Receive that is being filled gets that status, and a Read, too. */
void iw_segment_fail_receive(struct iw_conn *conn, struct core_ep *ep,
			     DAT_DTO_COMPLETION_STATUS status);
void iw_segment_fail_filling(struct iw_conn *conn, struct core_ep *ep,
			     DAT_DTO_COMPLETION_STATUS status);

/* --- message.c --- */

/* Checks where a segment of a Send stands in its queue: IW_NO_ERROR or the error. */
iw_error iw_message_check(const struct iw_conn *conn, const struct iw_segment *segment);
/* That segment was taken. */
void iw_message_advance(struct iw_conn *conn, const struct iw_segment *segment);
/* Does a message wait for a Receive, so that later ones wait behind it? */
bool iw_message_is_waiting(const struct iw_conn *conn);
/* Keeps a segment that waits. IW_WAIT: there is no space. */
enum iw_take iw_message_keep(struct iw_conn *conn, const struct iw_segment *segment,
			     const uint8_t *payload);
/* The message that arrives waits no more: the next one has its own time. */
void iw_message_end_waiting(struct iw_conn *conn);
/* The peer has ended its direction of the stream in order. A peer of ours that does so while
 * messages wait has not waited for their completions: it was abrupt. Those of another one, which
 * completes them before they are received, wait for Receives as long as a stopped peer would be
 * waited for.
 */
void iw_message_end_of_stream(struct iw_conn *conn);
/* Delivers what waits and finds a Receive now: > 0 something was delivered. */
int iw_message_deliver(struct iw_conn *conn, struct core_ep *ep);

#endif
