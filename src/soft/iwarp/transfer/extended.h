// SPDX-License-Identifier: BSD-2-Clause
/*
 * RDMA Writes with immediate data and atomic operations (RFC 7306), which peers of ours agree on in
 * the set-up. answer.c carries out the operations of the peer. EP locked.
 */
#ifndef IWARP_EXTENDED_H
#define IWARP_EXTENDED_H

#include "soft/iwarp/conn.h"
#include "soft/iwarp/transfer/segment.h"

/* Queues the immediate data behind the bytes of their Write; false: there is no room. */
bool iw_immediate_queue(struct iw_conn *conn, struct core_req *req);
/* Queues an Atomic Request; false: there is no room. A Read more is allowed. */
bool iw_atomic_queue(struct iw_conn *conn, struct core_req *req);

/* The immediate data of the Write before take a Receive. Nothing of them is placed (D2-TCP-10). */
enum iw_take iw_immediate_take(struct iw_conn *conn, struct core_ep *ep,
			       const struct iw_segment *segment, const uint8_t *payload);
/* The Response to the oldest atomic operation. */
enum iw_take iw_atomic_take(struct iw_conn *conn, struct core_ep *ep,
			    const struct iw_segment *segment, const uint8_t *payload);

#endif
