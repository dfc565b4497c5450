// SPDX-License-Identifier: BSD-2-Clause
/*
 * Running the two streams of a connection. EP locked in all functions.
 */
#ifndef IWARP_PASS_H
#define IWARP_PASS_H

#include "soft/iwarp/conn.h"
#include "soft/iwarp/wire/formats.h"

/*
 * Prepares the streams when the set-up frames have been exchanged: is_active, is_own_peer, has_crc,
 * ird, ord and read_max are set. 0 or -ENOMEM.
 */
int iw_stream_begin(struct iw_conn *conn);
/* The endpoint is about to be CONNECTED: its requests begin with the next one that it posts. */
void iw_stream_start(struct iw_conn *conn, const struct core_ep *ep);
/* Frees the streams; nobody uses the connection any more. */
void iw_stream_free(struct iw_conn *conn);

/* Queues the ready-to-receive message of that form, in front of all others. */
void iw_stream_send_rtr(struct iw_conn *conn, enum iw_rtr form);
/*
 * A responder that is not known to take the RTR gets an empty RDMA Write now and then until it has
 * sent something: siw overlooks what comes before it has handed the socket to its queue pair, until
 * more comes (IWCM-52). The second function does what is due.
 */
void iw_stream_begin_repeats(struct iw_conn *conn);
void iw_stream_repeat_rtr(struct iw_conn *conn);
/*
 * Requests wait for the first FPDU of the initiator (MPA-18). One that waits for ours, too, would
 * leave both silent, so the log gets a line after a second, once.
 */
void iw_stream_wait_for_first(struct iw_conn *conn);
/* Queues a Terminate without headers; nothing is sent behind it. */
void iw_stream_send_error(struct iw_conn *conn, iw_error error);

/*
 * One pass: reads what has come, carries it out, starts requests, sends. ACCEPTED, ESTABLISHED or
 * CLOSING. May end the connection and report that to the core: the caller then must not use the
 * connection any more without a reference of its own. Returns > 0 if there was work.
 */
int iw_pass(struct iw_conn *conn, struct core_ep *ep);
/* The same behind iw_poll_fast, which has handled so much: returns the sum. */
int iw_pass_behind(struct iw_conn *conn, struct core_ep *ep, int handled);

/* The part of a pass that a call of the consumer makes: it starts requests and sends what waits, or
 * delivers messages that waited for a Receive. ESTABLISHED. The service thread reports what ends.
 */
void iw_pass_requests(struct iw_conn *conn, struct core_ep *ep);
void iw_pass_receives(struct iw_conn *conn, struct core_ep *ep);
/* A request was posted: the same as iw_pass_requests, but what it queues may wait for the next one
 * (hold.h). */
void iw_pass_post(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req);

/*
 * Has epoll wait for what can happen next. If threads of the consumer poll the connection, epoll
 * waits for nothing, and only for a hang-up while no poll reads the socket.
 */
void iw_pass_watch(struct iw_conn *conn);
/* The same for a connection that is polled from now on: 0 or -errno. */
int iw_pass_watch_polled(struct iw_conn *conn);

/* A foreign peer's FPDUs follow the segment size of TCP, which may change. */
void iw_stream_update_mulpdu(struct iw_conn *conn);

#endif
