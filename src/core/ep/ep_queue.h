// SPDX-License-Identifier: BSD-2-Clause
/*
 * The queues of an endpoint: their memory, watermarks, and the calls by which a transport completes
 * requests and Receives. The endpoint is locked. ep_fast.h has the variants for the fast path.
 */
#ifndef CORE_EP_QUEUE_H
#define CORE_EP_QUEUE_H

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

/* Completes that Receive with success: with the immediate data of a Write of `len` bytes, or with a
 * message that has killed a key. */
void core_recv_done_immediate(struct core_ep *ep, uint32_t value, DAT_VLEN len, bool is_solicited);
void core_recv_done_invalidate(struct core_ep *ep, uint32_t key, DAT_VLEN len, bool is_solicited);

/* The device placed a message into this buffer of the endpoint's SRQ. The transport then calls
 * core_recv_done(). */
void core_srq_filled(struct core_ep *ep, uint32_t index);

/* Sizes the queues as the attributes say and keeps posted Receives. */
DAT_RETURN core_ep_size_queues(struct core_ep *ep, const DAT_EP_ATTR *attr);
void core_ep_free_queues(struct core_ep *ep);
/* Cancels posted binds without completion events. The endpoint is being destroyed. */
void core_ep_drop_binds(struct core_ep *ep);
/* The number of Receives that the endpoint holds and has not completed. */
uint32_t core_ep_recv_count(const struct core_ep *ep);
/* Sets and arms the soft high watermark. */
void core_ep_set_soft_watermark(struct core_ep *ep, DAT_COUNT soft);
/* Compares the number of Receives held with the watermarks. Returns false if it
 * breaks the connection. */
bool core_ep_check_watermarks(struct core_ep *ep);
/* Completes all requests and Receives. Those that are not done are flushed. EP locked. */
void core_ep_flush(struct core_ep *ep);

/*
 * Drives the transport, because requests or Receives may have finished that nobody has polled for:
 * when a queue is full, and for calls that report what is outstanding. A consumer that suppresses
 * completions and posts until there is room does not poll. The endpoint is locked at entry and at
 * return, but not in between. NULL: it no longer exists.
 */
struct core_ep *core_ep_drive(struct core_ep *ep);

#endif
