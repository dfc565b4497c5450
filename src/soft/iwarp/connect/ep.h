// SPDX-License-Identifier: BSD-2-Clause
/*
 * The end of a connection over TCP. Its endpoint gets rid of it at once; the service thread then
 * sends what was begun, half-closes the socket, reads until the peer has done the same, and closes
 * it. Closing a socket with unread bytes would make the kernel reset the connection, and bytes that
 * the peer has not read yet would be lost (DTO-52).
 */
#ifndef IWARP_EP_H
#define IWARP_EP_H

#include "soft/iwarp/conn.h"

/* A connection with one reference, around a socket (or -1), which it owns on success. */
int iw_conn_create(struct iw_engine *engine, int fd, struct iw_conn **conn_out);
void iw_conn_put(struct iw_conn *conn);

/*
 * A pass over an ESTABLISHED connection (transfer/pass.h); reports its end if it is CLOSING. The
 * caller must not use the connection any more without a reference of its own. `handled`: what
 * iw_poll_fast has done before. EP locked.
 */
int iw_conn_run(struct iw_conn *conn, struct core_ep *ep, int handled);
/*
 * Releases the endpoint's connection, in any state. The service thread takes it
 * over: it sends the rest of what was begun, half-closes the socket, and closes it when the peer
 * has done the same. EP locked.
 */
void iw_conn_drop(struct iw_conn *conn, struct core_ep *ep);

/* Hands a connection without endpoint to the service thread, which ends it as above. Takes the
 * caller's reference. Any lock may be held but the engine's. */
void iw_conn_linger(struct iw_conn *conn);

/* --- service thread --- */

/* Continues the end of a connection that is LINGERING. */
void iw_linger(struct iw_conn *conn);
/* Ends it now: what the peer has not sent yet would reset the connection. */
void iw_linger_end(struct iw_conn *conn);
/* The adapter closes: has all such connections served again. */
void iw_linger_all(struct iw_engine *engine);
/* The adapter is closed: closes all sockets. */
void iw_linger_end_all(struct iw_engine *engine);

/* --- the endpoint slots of the transport table --- */

void iw_ep_disconnect(struct iw_conn *conn, struct core_ep *ep, bool is_graceful);
void iw_ep_post_request(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req);
void iw_ep_post_recv(struct iw_conn *conn, struct core_ep *ep);
/* A queue of the endpoint is full: takes what has come, which may be counts. */
void iw_ep_progress(struct iw_conn *conn, struct core_ep *ep);
void iw_ep_abort(struct iw_conn *conn);

#endif
