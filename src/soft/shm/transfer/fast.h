// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of a connection: a Send, an RDMA Write or an RDMA Read that is one entry of the
 * ring, a small RDMA Write into mapped memory, the data of an RDMA Read, and acknowledgements. At
 * the receiver: a message of one entry into a Receive of one segment, an RDMA Write of one entry,
 * and an RDMA Read that one entry answers. The endpoint is entered without slow_reasons
 * (core/ep/data_path.h). A function that returns false has changed nothing that the slow path would
 * not have changed, and the slow path continues from there.
 */
#ifndef SHM_FAST_H
#define SHM_FAST_H

#include <stdbool.h>

#include "core/transport.h"

struct core_dequeue;
struct shm_conn;

/* One function for each kind of request, which keeps the frames small. */
bool shm_send_fast(struct core_ep *ep, struct core_req *req);
bool shm_write_fast(struct core_ep *ep, struct core_req *req);
bool shm_read_fast(struct core_ep *ep, struct core_req *req);
/* Posts a request of that kind, which is mostly a constant. */
CORE_INLINE bool shm_post_fast(struct core_ep *ep, struct core_req *req, enum core_op op)
{
	if (op == CORE_OP_SEND)
		return shm_send_fast(ep, req);
	return op == CORE_OP_RDMA_WRITE ? shm_write_fast(ep, req) : shm_read_fast(ep, req);
}
/* Is nothing to be done for a Receive that was posted? False: call shm_ep_post_recv. */
bool shm_recv_fast(const struct core_ep *ep);
/* Takes acknowledgements and at most `most` messages; false: a pass is needed. */
bool shm_poll_fast(struct shm_conn *conn, struct core_ep *ep, unsigned most,
		   struct core_dequeue *dequeue);

#endif
