// SPDX-License-Identifier: BSD-2-Clause
/* The bytes that arrive become FPDUs, and these are carried out (rx.c). */
#ifndef IWARP_RX_H
#define IWARP_RX_H

#include <sys/types.h>

#include "soft/iwarp/conn.h"

/*
 * Reads the socket and carries out what has come, up to the budget (bytes): > 0 there was work, or
 * 0. May end the connection (state CLOSING, or the endpoint has released it). EP locked.
 */
int iw_rx_run(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget);

/* For the fast path. Reads what the socket has behind the bytes in the buffer: > 0, 0 for the end of the
 * stream, or -errno. */
ssize_t iw_rx_read(struct iw_conn *conn);
/* A read of the socket has failed with that error. */
void iw_rx_fail_read(struct iw_conn *conn, int error);
/* Is the CRC good of an FPDU of that size, or is there none? */
bool iw_rx_is_crc_good(const struct iw_conn *conn, const uint8_t *at, uint32_t size);

#endif
