// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of a connection over TCP: a small Send of one segment to a peer of ours while
 * nothing else waits to be sent, and whole Sends that have arrived for Receives of one segment. It
 * does what the slow path (tx.c, rx.c) would do, with the same counters. What it declines is
 * unchanged, and the slow path continues from there. EP locked, without slow_reasons (posts).
 */
#ifndef IWARP_FAST_H
#define IWARP_FAST_H

#include "soft/iwarp/conn.h"

/* A request was posted. False: it was not begun. */
bool iw_post_fast(struct iw_conn *conn, struct core_ep *ep, struct core_req *req);
/*
 * A thread of the consumer polls the connection, which is ESTABLISHED. Reads the socket and adds
 * the number of messages to *handled. False: a pass is needed.
 */
bool iw_poll_fast(struct iw_conn *conn, struct core_ep *ep, int *handled);

#endif
