// SPDX-License-Identifier: BSD-2-Clause
/* The endpoint slots of the transport table, for an endpoint whose connection is over TCP. */
#ifndef IWARP_EP_H
#define IWARP_EP_H

#include "soft/iwarp/conn.h"

void iw_ep_detach(struct iw_conn *conn, struct core_ep *ep);
void iw_ep_disconnect(struct iw_conn *conn, struct core_ep *ep, bool is_graceful);
void iw_ep_post_request(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req);
void iw_ep_post_recv(struct iw_conn *conn, struct core_ep *ep);
/* A queue of the endpoint is full: takes what has come, which may be counts. */
void iw_ep_progress(struct iw_conn *conn, struct core_ep *ep);
void iw_ep_abort(struct iw_conn *conn);

#endif
