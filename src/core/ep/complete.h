// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls by which a transport completes requests and Receives. The endpoint is locked. ep_fast.h
 * has the variants for the fast path.
 */
#ifndef CORE_COMPLETE_H
#define CORE_COMPLETE_H

#include "core/ep/ep.h"

/*
 * Completes a request. A transport may complete requests in any order; the core raises each event
 * when all earlier requests are done. After a status other than SUCCESS the core flushes every
 * later request, whatever status the transport reports for it. The transport then calls
 * core_ep_ended(BROKEN) as soon as it can.
 */
void core_req_done(struct core_ep *ep, struct core_req *req, DAT_DTO_COMPLETION_STATUS status,
		   DAT_VLEN len);

/*
 * The Receive that the next message fills. NULL if none is posted: the message has to wait.
 * Repeated calls return the same Receive, and its iov stays valid, until core_recv_done().
 */
const struct core_wqe *core_recv_next(struct core_ep *ep);
/* The protection zone that its segments must be in. */
struct core_pz *core_recv_pz(const struct core_ep *ep);
/* Completes that Receive. */
void core_recv_done(struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len,
		    bool is_solicited);

/* The device placed a message into this buffer of the endpoint's SRQ. The transport then calls
 * core_recv_done(). */
void core_srq_filled(struct core_ep *ep, uint32_t index);

#endif
