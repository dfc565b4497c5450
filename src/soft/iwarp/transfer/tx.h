// SPDX-License-Identifier: BSD-2-Clause
/* Requests of the consumer become messages, and what completes them. */
#ifndef IWARP_TX_H
#define IWARP_TX_H

#include "soft/iwarp/conn.h"

/*
 * Each of two engines of OpenDAT sends the other the counts of its Sends and RDMA Writes that have
 * been carried out: of a Send the Receive's completion is queued, of a Write all bytes are placed.
 * The numbers count messages of the stream, from its begin. They go into the TO of an
 * RDMA Write of length zero with the STag IW_STAG_COUNTS, the Sends in the upper half. A Send or
 * Write completes when it is counted (DTO-116). Nobody counts these messages themselves, nor the
 * ready-to-receive message, which has the STag IW_STAG_RTR.
 *
 * The counts go in front of whatever is sent anyway. If nothing is, the service thread sends them
 * at the end of its pass. A thread that polls sends them after some polls that have carried out
 * nothing, or when many are due: until then the consumer may answer.
 *
 * A side that disconnects gracefully while a message of the other waits for a Receive says so
 * after the counts, by the STag IW_STAG_DRAINS. If the other one disconnects gracefully, too, both
 * would wait for each other: it ends the connection (EP-STATE-40).
 */
#define IW_STAG_RTR 1u
#define IW_STAG_COUNTS 2u
#define IW_STAG_DRAINS 3u
/* What a Write of length zero names in place of these. */
#define IW_STAG_NONE 0u

/* Bytes of one RDMA Write or Read Request; a longer request becomes several (RDMAP-19). Tests lower
 * it. */
#ifndef IW_RDMA_MAX
#define IW_RDMA_MAX (1u << 30)
#endif

/* --- requests --- */

/*
 * Queues and sends what can be sent, up to the budget (bytes): > 0 there was work, or 0. With
 * `may_hold`, small messages are only queued (see below). A request that fails here breaks the
 * connection (state CLOSING).
 */
int iw_tx_run(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget, bool may_hold);
/* Has it ended because of the budget, so that it would go on at once? */
bool iw_tx_has_more(const struct iw_conn *conn, const struct core_ep *ep, uint64_t budget);
/* Sends the peer what is due. If that is not possible now, a later pass does. */
void iw_tx_tell(struct iw_conn *conn, struct core_ep *ep);
/* Remembers a Read Request that was queued; there is room for it. */
struct iw_read *iw_tx_add_read(struct iw_tx *tx, enum iw_read_kind kind, uint64_t sequence);
/* Queues a Read Request that brings no bytes. */
void iw_tx_put_empty_read(struct iw_conn *conn, const struct iw_read *read);

/* Is there nothing to queue but counts: no request, no question, no Response? */
bool iw_tx_is_idle(const struct iw_tx *tx, const struct core_ep *ep);
/* The header of the next segment of a Send or RDMA Write, without `is_last`. */
struct iw_ddp iw_tx_header(const struct iw_conn *conn, const struct core_req *req);
/* A message of a Send or Write is completely queued, and the request, too, if that was its last. */
void iw_tx_end_message(struct iw_conn *conn, struct core_req *req);

/*
 * Small messages wait for each other, so that one system call sends several. One waits only behind
 * enough requests that have not completed: it would reach the peer behind them anyway, and what
 * completes them makes a pass over the connection, which sends it. The wait also ends with enough
 * posts or bytes, a poll that finds its EVD empty, a thread that is about to sleep in a call for
 * the same instance, or a deadline. Nothing waits if a completion of the endpoint wakes a thread or
 * a CNO: the thread that posts may wait for that one, outside the library.
 */
#define IW_HOLD_AFTER 8u     /* a post behind so many outstanding requests may wait */
#define IW_HOLD_POSTS 16u    /* so many that wait are sent together, */
#define IW_HOLD_BYTES 32768u /* or so many bytes */
#define IW_HOLD_NS 500000u   /* the deadline */

/* May the request that was posted last wait for the next one? If not, all are sent now. */
bool iw_hold_may(const struct iw_conn *conn, const struct core_ep *ep);
/* It does, and is the first one: polls find the connection, and the service thread its deadline. */
void iw_hold_begin(struct iw_conn *conn);

/* --- completions --- */

/*
 * The peer has told these counts: IW_NO_ERROR, or the error if it cannot have carried out so much.
 */
iw_error iw_complete_counted(struct iw_conn *conn, struct core_ep *ep, uint64_t counts);
/* The oldest Read in flight has its last byte. */
void iw_complete_read(struct iw_conn *conn, struct core_ep *ep);
/* TCP has failed: the first request outstanding gets that status. */
void iw_complete_lost(struct iw_conn *conn, struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status);
/* Are Writes of this connection, to a foreign peer, proven at all? */
bool iw_has_proofs(const struct iw_conn *conn);

#endif
