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
#include "soft/shm/state.h"

struct core_dequeue;
struct shm_conn;

enum shm_poll {
	SHM_POLL_NOTHING,  /* nothing has arrived */
	SHM_POLL_DONE,	   /* what has arrived is taken */
	SHM_POLL_DECLINED, /* a pass is needed */
};
/* Takes what has arrived: one message, or in a stream up to SHM_BATCH. */
enum shm_poll shm_poll_fast(struct shm_conn *conn, struct core_ep *ep,
			    struct core_dequeue *dequeue);
/*
 * Takes one whole message, if `cell` is the EVD of the endpoint's Receives. DONE: the event is
 * filled in. DECLINED: call shm_poll_fast.
 */
enum shm_poll shm_poll_message(struct shm_conn *conn, struct core_ep *ep, struct core_handle *cell,
			       DAT_EVENT *event);

#endif
