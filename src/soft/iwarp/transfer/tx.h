// SPDX-License-Identifier: BSD-2-Clause
/* Requests of the consumer become messages (tx.c), and what completes them (complete.c). */
#ifndef IWARP_TX_H
#define IWARP_TX_H

#include "soft/iwarp/conn.h"

/*
 * What two engines of OpenDAT tell each other, by RDMA Writes of length zero with these STags. The
 * TO of a question comes back in the answer when all that came before it is placed.
 */
#define IW_STAG_RTR 1u
#define IW_STAG_ASK 2u
#define IW_STAG_ANSWER 3u

/* Bytes of one RDMA Write or Read Request; a longer request becomes several (RDMAP-19). Tests lower
 * it. */
#ifndef IW_RDMA_MAX
#define IW_RDMA_MAX (1u << 30)
#endif

/* --- tx.c --- */

/*
 * Queues and sends what can be sent, up to the budget (bytes): > 0 there was work, or 0. With
 * `may_hold`, small messages are only queued (hold.h). A request that fails here breaks the
 * connection (state CLOSING).
 */
int iw_tx_run(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget, bool may_hold);
/* Has it ended because of the budget, so that it would go on at once? */
bool iw_tx_has_more(const struct iw_conn *conn, const struct core_ep *ep, uint64_t budget);
/* A request of ours fails: its status, then the end of the connection. */
void iw_tx_fail(struct iw_conn *conn, struct core_ep *ep, struct core_req *req,
		DAT_DTO_COMPLETION_STATUS status);
/* Remembers a Read Request that was queued; there is room for it. */
struct iw_read *iw_tx_add_read(struct iw_tx *tx, enum iw_read_kind kind, uint64_t sequence);
/* Is a Read Request more allowed? */
bool iw_tx_can_read(const struct iw_conn *conn);
/* Queues a Read Request that brings no bytes. */
void iw_tx_put_empty_read(struct iw_conn *conn, const struct iw_read *read);

/* Is there nothing to queue: no request, no question, no answer? */
bool iw_tx_is_idle(const struct iw_tx *tx, const struct core_ep *ep);
/* The header of the next segment of a Send or RDMA Write, without `is_last`. */
struct iw_ddp iw_tx_header(const struct iw_conn *conn, const struct core_req *req);
/* The request is completely queued. */
void iw_tx_end_request(struct iw_conn *conn, struct core_req *req);

/* --- complete.c --- */

/* Completes requests whose last byte TCP has taken, and whose memory it does not use. */
void iw_complete_sent(struct iw_conn *conn, struct core_ep *ep);
/* The peer has proven that all requests before that sequence are carried out. */
void iw_complete_proven(struct iw_conn *conn, struct core_ep *ep, uint64_t end);
/* The oldest Read in flight has its last byte. */
void iw_complete_read(struct iw_conn *conn, struct core_ep *ep);
/* A Terminate has come. */
void iw_complete_terminated(struct iw_conn *conn, struct core_ep *ep,
			    const struct iw_terminate *terminate);
/* TCP has failed: the first request outstanding gets that status. */
void iw_complete_lost(struct iw_conn *conn, struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status);
/* Are Writes of this connection proven at all? */
bool iw_has_proofs(const struct iw_conn *conn);
/* Does the completion of that request wait for a proof? */
bool iw_wants_proof(const struct iw_conn *conn, const struct core_req *req);

#endif
