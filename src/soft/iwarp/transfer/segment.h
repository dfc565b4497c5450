// SPDX-License-Identifier: BSD-2-Clause
/*
 * Placing the payload of one segment: a Send's into the Receive, an RDMA Write's into the region, a
 * Read Response's into the segments of the Read. A payload may be placed in pieces, and whether the
 * target is valid is checked for each. EP locked.
 */
#ifndef IWARP_SEGMENT_H
#define IWARP_SEGMENT_H

#include <sys/types.h>

#include "soft/iwarp/conn.h"

enum iw_take {
	IW_TAKEN,
	IW_WAIT,  /* for a Receive; nothing has changed */
	IW_ENDED, /* refused: the connection ends */
};

/* Checks that the segment may be placed, and finds the Receive of a Send. */
enum iw_take iw_segment_begin(struct iw_conn *conn, struct core_ep *ep,
			      const struct iw_segment *segment);
/* Places the next bytes of it. */
enum iw_take iw_segment_put(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment,
			    const uint8_t *bytes, uint32_t count);
/*
 * How many of the next bytes of a segment may be read straight into their target. The kernel may
 * store them in any order, and the last word of a message becomes visible after all before it
 * (EP-RDMAW-44, COMPAT-46).
 */
uint32_t iw_receive_direct(const struct iw_segment *segment);

/*
 * Reads the next bytes of the segment that is open. What follows goes to rx.in, which is empty.
 * Continues the CRC. Returns the number of bytes that came, 0 for the end of the stream, or -errno;
 * -EPROTO: the connection ends.
 */
ssize_t iw_receive(struct iw_conn *conn, struct core_ep *ep);
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

/* ==== Sends of the peer: their order, and those that wait for a Receive ==== */

/* Checks where a segment of a Send stands in its queue: IW_NO_ERROR or the error. */
iw_error iw_message_check(const struct iw_conn *conn, const struct iw_segment *segment);
/* That segment was taken. */
void iw_message_advance(struct iw_conn *conn, const struct iw_segment *segment);
/* Keeps a segment that waits. IW_WAIT: there is no space. */
enum iw_take iw_message_keep(struct iw_conn *conn, const struct iw_segment *segment,
			     const uint8_t *payload);
/* The message that arrives waits no more: the next one has its own time. */
void iw_message_end_waiting(struct iw_conn *conn);
/*
 * The peer has ended its direction of the stream in order. A peer of ours that does so while
 * messages wait has not waited for their completions: it was abrupt. Those of another one, which
 * completes them before they are received, wait for Receives as long as a stopped peer would be
 * waited for.
 */
void iw_message_end_of_stream(struct iw_conn *conn);
/* Delivers what waits and finds a Receive now: > 0 something was delivered. */
int iw_message_deliver(struct iw_conn *conn, struct core_ep *ep);

/* --- the space that they are kept in --- */

/*
 * Records, one behind the other. They are moved to the beginning when the end is reached and enough
 * of the oldest are gone. The space is mapped when it is first needed, and takes memory as it is
 * filled. When it is empty again, it goes back to the system if it was filled far.
 */

void iw_spill_close(struct iw_spill *spill);

/* Adds a record of that size and returns where it is; NULL: there is no room. */
uint8_t *iw_spill_add(struct iw_spill *spill, uint32_t size);
/* The oldest record; there is one. */
static inline const uint8_t *iw_spill_first(const struct iw_spill *spill)
{
	return spill->data + spill->first;
}
/* Removes the oldest record, which has that size. Without records the space may be closed. */
void iw_spill_remove(struct iw_spill *spill, uint32_t size);

#endif
