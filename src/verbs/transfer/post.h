// SPDX-License-Identifier: BSD-2-Clause
/*
 * Posting. All is called with the endpoint locked, and with cancellation off unless said otherwise.
 */
#ifndef VERBS_POST_H
#define VERBS_POST_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "core/ep/ep.h"
#include "verbs/transfer/conn.h"

/* transport_ops; cancellation may be on, and there may be no connection. */
void vrb_post_request(struct core_ep *ep, struct core_req *req);
void vrb_post_recv(struct core_ep *ep);

/* --- requests --- */

/* Posts the requests that wait, as long as there is room. */
void vrb_post_requests(struct vrb_conn *conn, struct core_ep *ep);
/* Posts a signalled work request of length 0. Its completion shows that everything before it is
 * done. It occupies one entry of the send queue. */
void vrb_post_marker(struct vrb_conn *conn, struct core_ep *ep, enum ibv_wr_opcode opcode);
/* Posts a marker if unsignalled requests have no signalled work request behind them. */
void vrb_post_needed_marker(struct vrb_conn *conn, struct core_ep *ep);
/* The device has refused a post: the connection fails. */
void vrb_send_refused(struct vrb_conn *conn, struct core_ep *ep, int rc);
/* Does the request start an RDMA Read, its own or a verifying one? */
bool vrb_starts_read(const struct vrb_conn *conn, const struct core_req *req);

/* --- Receives --- */

/* Posts the Receives that wait. */
void vrb_post_recvs(struct vrb_conn *conn, struct core_ep *ep);
/* The device has refused a Receive: the connection breaks. */
void vrb_recv_refused(struct vrb_conn *conn, struct core_ep *ep, int rc);
/*
 * A Receive has failed. If none is left, posts one of the provider's own: its flush shows that the
 * device has answered the peer (vrb_conn_close).
 */
void vrb_post_last_recv(struct vrb_conn *conn, const struct core_ep *ep);

#endif
