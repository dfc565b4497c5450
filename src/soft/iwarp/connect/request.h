// SPDX-License-Identifier: BSD-2-Clause
/* The active side of a set-up. EP locked. */
#ifndef IWARP_REQUEST_H
#define IWARP_REQUEST_H

#include "core/transport.h"
#include "soft/iwarp/conn.h"

/* transport_ops.connect; the engine has been started. */
int iw_connect(struct iw_engine *engine, struct core_ep *ep, const union core_sockaddr *address,
	       DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us,
	       const struct transport_conn_param *param);

/* Service thread: the socket has events; a deadline has passed. */
void iw_request_event(struct iw_conn *conn, struct core_ep *ep);
void iw_request_due(struct iw_conn *conn, struct core_ep *ep, uint64_t now_ns);

#endif
