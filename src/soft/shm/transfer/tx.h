// SPDX-License-Identifier: BSD-2-Clause
/*
 * Our own requests. They start in posting order, each when it may (docs/spec/transfers.md,
 * "Ordering"); they finish in any order, and the core raises the completions in order. A request
 * that goes through the ring stays in the core's queue until the peer's `done` or the data of an
 * RDMA Read completes it; one that is copied directly finishes when it has run.
 *
 * Functions that return an int return > 0 if work was done, 0, or -EPROTO: the connection breaks.
 * EP locked.
 */
#ifndef SHM_TX_H
#define SHM_TX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/transport.h"

struct shm_conn;
struct shm_pass;

/* The state of a request: core_req.transport.word[0]; word[1] is the bytes already moved. */
enum shm_req_state {
	SHM_REQ_NEW,
	SHM_REQ_WAIT_DONE, /* all of it is in the ring; the peer's `done` completes it */
	SHM_REQ_WAIT_DATA, /* an RDMA Read through the ring */
	SHM_REQ_FINISHED,
};
#define SHM_REQ_STATE_MASK 0xffu
/* also in word[0]: */
#define SHM_REQ_RING_BEGUN 0x100u /* the first entry is in the ring */
#define SHM_REQ_ORDERED 0x200u	  /* counted in conn->ring_writes, though it is no RDMA Write */
#define SHM_REQ_WRITTEN 0x400u	  /* only the immediate data of the Write are left */

/* Starts the requests that may start. */
int shm_tx_run(struct shm_conn *conn, struct core_ep *ep, struct shm_pass *pass);
/* Completes what the peer's word `done` acknowledges. */
int shm_tx_read_done(struct shm_conn *conn, struct core_ep *ep);
/* Completes requests up to `done`, which came from that word or from an entry of a ring. */
int shm_tx_acknowledge(struct shm_conn *conn, struct core_ep *ep, uint32_t done);
/* Places the data of RDMA Reads that came through the response ring. */
int shm_tx_responses(struct shm_conn *conn, struct core_ep *ep, struct shm_pass *pass);
/* The peer refused the request that `failed` names (segment.h), if there is one; the connection
 * breaks. */
void shm_tx_failed(struct shm_conn *conn, struct core_ep *ep, uint32_t failed);

#endif
