// SPDX-License-Identifier: BSD-2-Clause
/* What the peer is owed: Read Responses; counts (tx.h); a Terminate. */
#ifndef IWARP_ANSWER_H
#define IWARP_ANSWER_H

#include "soft/iwarp/conn.h"

/*
 * Queues the next segment of a Read Response: 1 it was queued, 0 none is owed, -EAGAIN no room,
 * -EACCES the source of a Read is not valid any more: the connection ends.
 */
int iw_answer_put(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget);

/* Takes up a Read Request of the peer: IW_NO_ERROR, or the error to terminate with. EP locked. */
iw_error iw_answer_take_request(struct iw_conn *conn, struct core_ep *ep,
				const struct iw_read_request *request,
				const struct iw_offender *offender);

/* The same for an Atomic Request. */
iw_error iw_answer_take_atomic(struct iw_conn *conn, struct core_ep *ep,
			       const struct iw_atomic *atomic, const struct iw_offender *offender);

/*
 * The connection breaks, and a Terminate tells the peer: of an error in what it sent, which is the
 * offender, or (0/0/00, NULL) of one of ours.
 */
void iw_answer_error(struct iw_conn *conn, iw_error error, const struct iw_offender *offender);

/* The endpoint goes: cuts the stream, and appends counts and the Terminate, if there are any. */
void iw_answer_last(struct iw_conn *conn, struct core_ep *ep);

/* --- counts (tx.h) --- */

/* Are counts to be sent, or that we drain? Always false with a foreign peer. */
bool iw_counts_are_due(const struct iw_conn *conn);
/* For each poll of a thread, once: may they wait for more, or for an answer? */
bool iw_counts_may_wait(struct iw_conn *conn);
/* Queues them: there is room, and no message is under way. */
void iw_counts_put(struct iw_conn *conn);

/* A Terminate has come. */
void iw_answer_terminated(struct iw_conn *conn, struct core_ep *ep,
			  const struct iw_terminate *terminate);

#endif
