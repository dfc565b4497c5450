// SPDX-License-Identifier: BSD-2-Clause
/* What a transport calls about connections. */
#ifndef CORE_CONN_H
#define CORE_CONN_H

#include "core/base/transport_ops.h"
#include "core/ep/ep.h"

/* --- an endpoint's connection; the endpoint is locked --- */

/*
 * The connection stands: state CONNECTED, ESTABLISHED raised. peer->private_data is the acceptor's
 * on the active side, ignored on the passive one. ep->remote_address and ep->remote_port are
 * set by the core (connect arguments, request). Call it before any data of the connection is handed
 * on.
 */
void core_ep_established(struct core_ep *ep, const struct transport_conn_param *peer);

/* The attempt failed: number is PEER_REJECTED, NON_PEER_REJECTED, TIMED_OUT or UNREACHABLE
 * (active), ACCEPT_COMPLETION_ERROR (passive). Flushes everything, state DISCONNECTED. */
void core_ep_connect_failed(struct core_ep *ep, DAT_EVENT_NUMBER number);

/*
 * The connection (or, after disconnect(), the attempt) is over and nothing touches memory through
 * it any more. number is DISCONNECTED (somebody asked) or BROKEN (error, death of the peer); after
 * a dat_ep_disconnect the core reports DISCONNECTED either way. Requests not done and all Receives
 * are flushed in order, then state DISCONNECTED, then the event.
 */
void core_ep_ended(struct core_ep *ep, DAT_EVENT_NUMBER number);

/* --- requests --- */

/*
 * A request arrived for the service point. 0: a CR was made and its event is queued; the
 * transport's object now belongs to the core until accept or reject. -ECONNREFUSED: the point is
 * gone or its backlog is full: refuse it (NON_PEER_REJECTED there). No lock held.
 */
int core_sp_request(struct core_ref sp, const struct transport_request *request);

#endif
