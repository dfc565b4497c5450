// SPDX-License-Identifier: BSD-2-Clause
/*
 * Our own requests. tx.c starts them in posting order, each when it may (docs/spec/transfers.md,
 * "Ordering"); they finish in any order (completion.c), and the core raises the completions in
 * order. A request that goes through the ring stays in the core's queue until the peer's `done` or
 * the data of an RDMA Read completes it; one that is copied directly finishes when it has run.
 *
 * Functions that return an int return > 0 if work was done, 0, or -EPROTO. EP locked.
 */
#ifndef SHM_TX_H
#define SHM_TX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/transport.h"

struct shm_conn;

/* The state of a request: core_req.transport.word[0]; word[1] is the bytes already moved. */
enum shm_req_state {
	SHM_REQ_NEW,
	SHM_REQ_WAIT_DONE, /* all of it is in the ring; the peer's `done` completes it */
	SHM_REQ_WAIT_DATA, /* an RDMA Read through the ring */
	SHM_REQ_FINISHED,
};
#define SHM_REQ_STATE_MASK 0xffu
#define SHM_REQ_RING_BEGUN 0x100u /* also in word[0]: the first entry is in the ring */
/* Also there: the peer fetches its bytes, and may ask for them instead. */
#define SHM_REQ_PULL (UINT64_C(1) << 32)

/* --- tx.c --- */

/* Starts the requests that may start. */
int shm_tx_run(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget);
/*
 * Is it better if the receiver fetches a Send than if it goes through the ring? `key` and `address`
 * are those of the first segment, `len` is the length of all.
 */
bool shm_is_worth_fetching(struct shm_conn *conn, struct core_ep *ep, uint32_t segments,
			   DAT_LMR_CONTEXT key, DAT_VADDR address, DAT_VLEN len);

/* --- completion.c --- */

/* Completes what the peer's word `done` acknowledges. */
int shm_tx_read_done(struct shm_conn *conn, struct core_ep *ep);
/* Completes requests up to `done`, which came from that word or from an entry of a ring. */
int shm_tx_acknowledge(struct shm_conn *conn, struct core_ep *ep, uint32_t done);
/* Places the data of RDMA Reads that came through the response ring. */
int shm_tx_responses(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget);
/* Puts the bytes of a Send that the peer cannot fetch into the response ring, if it asks for that.
 */
int shm_tx_supply(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget);
/* The peer refused the request that `failed` names (segment.h). */
int shm_tx_failed(struct shm_conn *conn, struct core_ep *ep, uint32_t failed);
/* Completes a request. */
void shm_tx_finish(struct core_ep *ep, struct core_req *req, DAT_DTO_COMPLETION_STATUS status);
/* Fails a request and, when those before it have finished, breaks the connection. */
void shm_tx_fail(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		 DAT_DTO_COMPLETION_STATUS status);

#endif
