// SPDX-License-Identifier: BSD-2-Clause
/* Payloads that are read from the socket straight into their target (receive.c). EP locked. */
#ifndef IWARP_RECEIVE_H
#define IWARP_RECEIVE_H

#include <sys/types.h>

#include "soft/iwarp/conn.h"

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

#endif
