// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a transport calls when a request or a Receive of an endpoint is finished. The endpoint is
 * locked. ep_fast.h has the short forms for the fast path.
 */
#ifndef CORE_COMPLETE_H
#define CORE_COMPLETE_H

#include "core/ep/ep.h"

/*
 * A request is finished. Any order; the completion is raised when all earlier ones are done. After
 * a status other than SUCCESS every later request ends unsuccessfully, whatever the transport
 * says; the transport then ends the connection with core_ep_ended(BROKEN) as soon as it can.
 */
void core_req_done(struct core_ep *ep, struct core_req *req, DAT_DTO_COMPLETION_STATUS status,
		   DAT_VLEN len);

/*
 * The Receive that the next message fills; NULL when none is posted (the message waits). Stays the
 * same, and its iov valid, until core_recv_done().
 */
const struct core_wqe *core_recv_next(struct core_ep *ep);
/* The zone that its segments must be in. */
struct core_pz *core_recv_pz(const struct core_ep *ep);
void core_recv_done(struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len,
		    bool is_solicited);

/* The device has filled that buffer of the endpoint's SRQ. core_recv_done() follows. */
void core_srq_taken(struct core_ep *ep, uint32_t index);

#endif
