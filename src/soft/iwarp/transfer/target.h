// SPDX-License-Identifier: BSD-2-Clause
/* Where the next bytes of a segment go. EP locked. */
#ifndef IWARP_TARGET_H
#define IWARP_TARGET_H

#include "soft/iwarp/conn.h"
#include "soft/pins.h"

struct iw_target {
	struct soft_pins pins; /* Send, Read Response; of an RDMA Write the range alone */
	bool has_key;	       /* RDMA Write: a key of ours is announced */
};

/* A Send fills a Receive; any other segment fills a region, or the sink of a Read. */
static inline bool iw_segment_is_send(const struct iw_segment *segment)
{
	return !segment->ddp.is_tagged;
}

/* The Read that a Response belongs to; NULL: none is in flight. */
static inline struct iw_read *iw_oldest_read(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;

	return tx->read_count ? &tx->read[tx->read_first] : NULL;
}

/*
 * Finds the memory of the next `count` bytes and keeps it valid until iw_target_end, which must be
 * called in any case: IW_NO_ERROR, or the error.
 */
iw_error iw_target_begin(struct iw_conn *conn, struct core_ep *ep, const struct iw_segment *segment,
			 uint32_t count, struct iw_target *target);
void iw_target_end(struct iw_conn *conn, struct iw_target *target);
/* That many bytes are placed. */
void iw_target_advance(struct iw_conn *conn, struct iw_segment *segment, uint32_t count);

#endif
