// SPDX-License-Identifier: BSD-2-Clause
/*
 * The end of a connection over TCP. Its endpoint gets rid of it at once; the service thread then
 * sends what was begun, half-closes the socket, reads until the peer has done the same, and closes
 * it. Closing a socket with unread bytes would make the kernel reset the connection, and bytes that
 * the peer has not read yet would be lost (DTO-52).
 */
#ifndef IWARP_CLOSE_H
#define IWARP_CLOSE_H

#include "soft/iwarp/conn.h"

/* Hands a connection without endpoint to the service thread, which ends it as above. Takes the
 * caller's reference. Any lock may be held but the engine's. */
void iw_conn_linger(struct iw_conn *conn);

/* Reads and discards what has come, up to the peer's end. */
void iw_conn_discard(struct iw_conn *conn);

/* --- service thread --- */

/* Continues the end of a connection that is LINGERING. */
void iw_linger(struct iw_conn *conn);
/* Ends it now: what the peer has not sent yet would reset the connection. */
void iw_linger_end(struct iw_conn *conn);
/* The adapter closes: has all such connections served again. */
void iw_linger_all(struct iw_engine *engine);
/* The adapter is closed: closes all sockets. */
void iw_linger_end_all(struct iw_engine *engine);

#endif
