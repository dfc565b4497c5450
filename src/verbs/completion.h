// SPDX-License-Identifier: BSD-2-Clause
/* Completions of a connection's queue pair (completion.c) and their status (status.c). */
#ifndef VERBS_COMPLETION_H
#define VERBS_COMPLETION_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#include "core/ep/ep.h"
#include "verbs/conn.h"

/* Handles one completion. EP locked. */
void vrb_completion(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc);
/* Handles the completions that were kept until the connection was established. EP locked. */
void vrb_completions_early(struct vrb_conn *conn, struct core_ep *ep);
/* Drops them: the connection was not established. Their buffers of an SRQ count as consumed. */
void vrb_completions_drop_early(struct vrb_conn *conn);

/* The DAT status of a completion. */
DAT_DTO_COMPLETION_STATUS vrb_status(enum ibv_wc_status status);
/* The status of a failed request, and of a failed Receive. EP locked. */
DAT_DTO_COMPLETION_STATUS vrb_request_status(struct core_ep *ep, const struct core_req *req,
					     enum ibv_wc_status status);
DAT_DTO_COMPLETION_STATUS vrb_recv_status(struct core_ep *ep, const struct core_wqe *wqe,
					  enum ibv_wc_status status);
/* Was the request flushed rather than carried out with an error? EP locked. */
bool vrb_is_flush(struct vrb_conn *conn, struct core_ep *ep, const struct core_req *req,
		  enum ibv_wc_status status);

#endif
