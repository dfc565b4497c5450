// SPDX-License-Identifier: BSD-2-Clause
/*
 * Polls on the fast path of a connection. They take messages of one entry for a Receive of one
 * segment, RDMA Writes of one entry, RDMA Reads that one entry answers, the data of RDMA Reads, and
 * acknowledgements. post.h has the posts. The endpoint is entered without slow_reasons
 * (core/ep/data_path.h). What is declined is unchanged, and the slow path continues from there.
 */
#ifndef SHM_FAST_H
#define SHM_FAST_H

#include <stdbool.h>

#include "core/transport.h"

struct core_dequeue;
struct shm_conn;

/* Takes acknowledgements and at most `most` messages; false: a pass is needed. */
bool shm_poll_fast(struct shm_conn *conn, struct core_ep *ep, unsigned most,
		   struct core_dequeue *dequeue);

#endif
