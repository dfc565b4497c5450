// SPDX-License-Identifier: BSD-2-Clause
/* The calls by which a transport reports the connection of an endpoint, which is locked. */
#ifndef CORE_EP_CONN_H
#define CORE_EP_CONN_H

#include "core/base/transport_ops.h"
#include "core/ep/ep.h"

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
 * The peer's private data of a PEER_REJECTED that the transport reports next. The core shows them if
 * the endpoint's generation has them, and drops more than CORE_PRIVATE_MAX.
 */
void core_ep_keep_rejection(struct core_ep *ep, const void *private_data, uint32_t size);

/*
 * The connection, or after disconnect() the attempt, has ended and nothing accesses memory through
 * it any more. The event number is DISCONNECTED after a disconnect of either side, and BROKEN after
 * an error or the death of the peer. After dat_ep_disconnect on this endpoint the core raises
 * DISCONNECTED in both cases. The core flushes outstanding requests and all Receives in order, then
 * moves the endpoint to DISCONNECTED, then raises the event.
 */
void core_ep_ended(struct core_ep *ep, DAT_EVENT_NUMBER number);

#endif
