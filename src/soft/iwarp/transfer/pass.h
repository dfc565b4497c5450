// SPDX-License-Identifier: BSD-2-Clause
/* Running the two streams of a connection, and their fast path. EP locked in all functions. */
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
/* Queues a Terminate without headers; nothing is sent behind it. */
void iw_stream_send_error(struct iw_conn *conn, iw_error error);

/*
 * One pass over an ESTABLISHED connection: reads what has come, carries it out, starts requests,
 * sends. It may end the connection: then it is CLOSING, or the endpoint has released it, and the
 * caller needs a reference of its own to tell. `handled`: what iw_poll_fast has done before.
 * Returns > 0 if there was work.
 */
int iw_pass(struct iw_conn *conn, struct core_ep *ep, int handled);
/* Looks for the first valid FPDU of a connection that is ACCEPTED, and leaves it in the buffer. */
enum iw_accepted {
	IW_ACCEPTED_WAITS,
	IW_ACCEPTED_FPDU, /* it is there (MPA-37) */
	IW_ACCEPTED_FAILED,
} iw_pass_accepted(struct iw_conn *conn, struct core_ep *ep);

/*
 * The part of a pass that a call of the consumer makes: it starts requests and sends what waits, or
 * reads the socket, too. ESTABLISHED. The service thread reports what ends.
 */
void iw_pass_requests(struct iw_conn *conn, struct core_ep *ep);
void iw_pass_receives(struct iw_conn *conn, struct core_ep *ep);
/* A Receive was posted: delivers messages that waited for it. Of a polled connection the rest is
 * left to the polls, and the counts to the service thread if none comes in time (IW_HOLD_NS). */
void iw_pass_waiting(struct iw_conn *conn, struct core_ep *ep);
/* A request was posted: the same as iw_pass_requests, but what it queues may wait for the next one
 * (tx.h). */
void iw_pass_post(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req);

/*
 * Has epoll wait for what can happen next. If threads of the consumer poll the connection, epoll
 * waits for nothing, and only for a hang-up while no poll reads the socket.
 */
void iw_pass_watch(struct iw_conn *conn);
/* The same for a connection that is polled from now on: 0 or -errno. */
int iw_pass_watch_polled(struct iw_conn *conn);

/*
 * ==== the fast path ====
 *
 * A small Send of one segment to a peer of ours while nothing else waits to be sent, and whole Sends
 * that have arrived for Receives of one segment. It does what the slow path (tx.c, rx.c) would do,
 * with the same counters. What it declines is unchanged, and the slow path continues from there.
 * Posts: without slow_reasons.
 */

/* A request was posted. False: it was not begun. */
bool iw_post_fast(struct iw_conn *conn, struct core_ep *ep, struct core_req *req);
/*
 * A thread of the consumer polls the connection, which is ESTABLISHED. Reads the socket and adds
 * the number of messages to *handled. False: a pass is needed.
 */
bool iw_poll_fast(struct iw_conn *conn, struct core_ep *ep, int *handled);

#endif
