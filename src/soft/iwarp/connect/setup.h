// SPDX-License-Identifier: BSD-2-Clause
/*
 * The set-up of connections over TCP: service points (listen.c), the active side (request.c), the
 * passive side (accept.c), and what both have in common (setup.c).
 */
#ifndef IWARP_SETUP_H
#define IWARP_SETUP_H

#include "core/transport.h"
#include "soft/iwarp/conn.h"

/* transport_ops; the engine has been started */
int iw_listen(struct iw_engine *engine, struct core_ref sp, DAT_CONN_QUAL *qual,
	      struct iw_listener **listener_out);
void iw_unlisten(struct iw_engine *engine, struct iw_listener *listener);
int iw_connect(struct iw_engine *engine, struct core_ep *ep, const union core_sockaddr *address,
	       DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us,
	       const struct transport_conn_param *param);
int iw_accept(struct iw_conn *conn, struct core_ep *ep, const struct transport_conn_param *param);
void iw_reject(struct iw_conn *conn, enum transport_reject why);

/* --- service thread; no lock held --- */

/* epoll reports a listening socket. */
void iw_listener_event(struct iw_listener *listener);
/* epoll reports the socket of a connection in a state before ESTABLISHED. */
void iw_setup_event(struct iw_conn *conn, uint32_t events);
/* The deadline of such a connection has passed, or iw_conn_serve_later was called. */
void iw_setup_due(struct iw_conn *conn, uint64_t now_ns);
/* Drops all connections to that listener that have no endpoint and no owner; NULL: to any. */
void iw_setup_drop_all(struct iw_engine *engine, const struct iw_listener *listener);

/* --- called by the transfer --- */

/*
 * ACCEPTED: the first valid FPDU has come. The connection becomes ESTABLISHED, and the core learns
 * so. EP locked.
 */
void iw_setup_first_fpdu(struct iw_conn *conn, struct core_ep *ep);
/* ACCEPTED: the stream has ended or broken before that. EP locked. */
void iw_setup_failed(struct iw_conn *conn, struct core_ep *ep);

/* --- the connection is destroyed, or its set-up is over --- */
void iw_setup_free(struct iw_conn *conn);
void iw_listener_put(struct iw_listener *listener);

#endif
