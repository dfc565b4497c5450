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

/*
 * Checks a key of ours for the peer, and delays dat_lmr_free until iw_key_end(), which follows in
 * every case. `is_write`: what it is used for. IW_NO_ERROR, or the error in the terms of RDMA
 * Writes (layer 1) or of Read Requests (layer 0).
 */
iw_error iw_key_begin(struct iw_conn *conn, struct core_ep *ep, uint32_t key, bool is_write,
		      uint64_t address, uint64_t length);
/* The same without a check. */
void iw_key_announce(struct iw_conn *conn, uint32_t key);
void iw_key_end(struct iw_conn *conn);

/*
 * The connection breaks, and a Terminate tells the peer: of an error in what it sent, which is the
 * offender, or (0/0/00, NULL) of one of ours.
 */
void iw_answer_error(struct iw_conn *conn, iw_error error, const struct iw_offender *offender);

#endif
