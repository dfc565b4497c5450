// SPDX-License-Identifier: BSD-2-Clause
/* Completions of an established connection's queue pair. */
#ifndef VERBS_COMPLETE_H
#define VERBS_COMPLETE_H

#include <infiniband/verbs.h>

#include "core/ep/ep.h"
#include "verbs/transfer/conn.h"

/*
 * Handles one completion of a connection that is established or closing. It may start to close the
 * connection: the caller then tries to finish it. EP locked.
 */
void vrb_completion(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc);
/* The DAT status of a completion. */
DAT_DTO_COMPLETION_STATUS vrb_status(enum ibv_wc_status status);

#endif
