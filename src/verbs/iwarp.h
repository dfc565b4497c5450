// SPDX-License-Identifier: BSD-2-Clause
/* What only iWARP needs (iwarp.c). All is called with the endpoint locked. */
#ifndef VERBS_IWARP_H
#define VERBS_IWARP_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#include "core/ep/ep.h"
#include "verbs/conn.h"

/* ibv_post_send, without the SIGPIPE that siw may raise in it. */
int vrb_siw_post(struct vrb_conn *conn, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* Passive side: must the peer confirm that the connection is established? */
bool vrb_confirm_is_needed(const struct vrb_conn *conn, const struct core_ep *ep);
/* Passive side: posts the Receive for the confirmation, in front of all others. */
int vrb_confirm_expect(struct vrb_conn *conn);
/* Passive side: the completion of that Receive. */
void vrb_confirm_received(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc);
/* Active side: sends the confirmation. */
void vrb_confirm(struct vrb_conn *conn, struct core_ep *ep);
/*
 * Active side: sends an empty Write after it, because siw may overlook it. Called at the deadline.
 */
void vrb_confirm_retry(struct vrb_conn *conn, struct core_ep *ep);

#endif
