// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs: one serves one connection, and several requests of one attempt to connect. */
#ifndef VERBS_QP_H
#define VERBS_QP_H

#include <stdbool.h>
#include <stdint.h>

#include "verbs/conn.h"

/* Values of the InfiniBand attributes. */
#define VRB_RETRY_COUNT 7
#define VRB_RNR_FOR_EVER 7

/* Makes a queue pair for the attributes of the endpoint. EP locked. */
int vrb_qp_create(struct vrb_conn *conn, struct core_ep *ep);
/* Replaces the queue pair, with a new key, after a failed request. EP locked. */
int vrb_qp_renew(struct vrb_conn *conn, struct core_ep *ep);
/* Destroys the queue pair, if there is one, and what belongs to it. */
void vrb_qp_destroy(struct vrb_conn *conn);
/* Moves it to the state INIT and posts the endpoint's Receives. EP locked. */
int vrb_qp_to_init(struct vrb_conn *conn, struct core_ep *ep);
/* Moves it to RTR, then to RTS. */
int vrb_qp_to_send(struct vrb_conn *conn, uint32_t read_in, uint32_t read_out);
void vrb_qp_to_error(struct vrb_conn *conn);
/* Is the queue pair in the error state, or has the device reported an error? */
bool vrb_conn_is_broken(const struct vrb_conn *conn);

#endif
