// SPDX-License-Identifier: BSD-2-Clause
/* The calls by which a transport reports connections and connection requests. */
#ifndef CORE_CONN_H
#define CORE_CONN_H

#include "core/base/transport_ops.h"
#include "core/ep/ep.h"

/* --- the connection of an endpoint; the endpoint is locked --- */

/*
 * The connection is established. The core moves the endpoint to CONNECTED and raises ESTABLISHED.
 * On the active side, peer->private_data comes from the acceptor; the transport has refused more
 * than it takes (CONN-GEN-11), which is CORE_PRIVATE_MAX at most. On the passive side it is
 * ignored. The core itself sets ep->remote_address and ep->remote_port. The transport calls this
 * before it completes any request or Receive of the connection.
 */
void core_ep_established(struct core_ep *ep, const struct transport_conn_param *peer);

/*
 * The attempt to connect failed. The event number is PEER_REJECTED, NON_PEER_REJECTED, TIMED_OUT or
 * UNREACHABLE on the active side and ACCEPT_COMPLETION_ERROR on the passive side. The core flushes
 * all requests and Receives, moves the endpoint to DISCONNECTED and raises the event.
 */
void core_ep_connect_failed(struct core_ep *ep, DAT_EVENT_NUMBER number);

/*
 * The connection, or after disconnect() the attempt, has ended and nothing accesses memory through
 * it any more. The event number is DISCONNECTED after a disconnect of either side, and BROKEN after
 * an error or the death of the peer. After dat_ep_disconnect on this endpoint the core raises
 * DISCONNECTED in both cases. The core flushes outstanding requests and all Receives in order, then
 * moves the endpoint to DISCONNECTED, then raises the event.
 */
void core_ep_ended(struct core_ep *ep, DAT_EVENT_NUMBER number);

/* --- requests --- */

/*
 * A connection request arrived for the service point. Returns 0 if the core has made a CR and
 * queued its event; the core then owns the transport's request object until it calls accept or
 * reject. Returns -ECONNREFUSED if the service point does not listen any more, or if the CR, its
 * endpoint or its event cannot be made. The transport then refuses the request, and the peer gets
 * NON_PEER_REJECTED. No lock held.
 */
int core_sp_request(struct core_ref sp, const struct transport_request *request);

#endif
