// SPDX-License-Identifier: BSD-2-Clause
/* Service points over TCP, and callers that have no owner yet. */
#ifndef IWARP_LISTEN_H
#define IWARP_LISTEN_H

#include "core/transport.h"
#include "soft/iwarp/conn.h"

/* transport_ops; the engine has been started. */
int iw_listen(struct iw_engine *engine, struct core_ref sp, DAT_CONN_QUAL *qual,
	      struct iw_listener **listener_out);
void iw_unlisten(struct iw_engine *engine, struct iw_listener *listener);
void iw_listener_put(struct iw_listener *listener);

/* Service thread: epoll reports a listening socket. No lock held. */
void iw_listener_event(struct soft_attended *attended);
/* Service thread: drops all connections to that listener that have no endpoint and no owner; NULL:
 * to any. */
void iw_setup_drop_all(struct iw_engine *engine, struct iw_listener *listener);
struct core_ref iw_listener_sp(const struct iw_listener *listener);
DAT_CONN_QUAL iw_listener_qual(const struct iw_listener *listener);
uint16_t iw_listener_port(const struct iw_listener *listener);
/* Service thread: drops a connection without endpoint. */
void iw_setup_drop(struct iw_conn *conn);
/* Unanswered requests: added by the service thread, removed by any. */
void iw_listener_add_offered(struct iw_conn *conn);
void iw_listener_remove_offered(struct iw_conn *conn);
/*
 * Service thread: if that request is a repetition of one that the consumer has not answered, that
 * one continues with this socket. True: done.
 */
bool iw_listener_take_over(struct iw_conn *conn);
/* Service thread: its deadline has passed, or it has ended. Drops a reference. */
void iw_listener_serve(struct soft_attended *attended);

#endif
