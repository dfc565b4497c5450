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

bool shm_post_fast(struct core_ep *ep, struct core_req *req);
/* Is nothing to be done for a Receive that was posted? False: call shm_ep_post_recv. */
bool shm_recv_fast(const struct core_ep *ep);
/* Takes acknowledgements and at most `most` messages; false: a pass is needed. */
bool shm_poll_fast(struct shm_conn *conn, struct core_ep *ep, unsigned most,
		   struct core_dequeue *dequeue);

#endif
