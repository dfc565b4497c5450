// SPDX-License-Identifier: BSD-2-Clause
/* The active side of a set-up. */
#ifndef VERBS_ACTIVE_H
#define VERBS_ACTIVE_H

#include <stdint.h>

#include "verbs/connect/setup.h"

/* transport_ops */
int vrb_connect(struct core_ep *ep, const union core_sockaddr *address, DAT_CONN_QUAL qual,
		DAT_TIMEOUT timeout_us, const struct transport_conn_param *param);

/*
 * Handle an event, or a deadline that has passed, while the set-up is under way. They return
 * VRB_GOES_ON, or the event that reports that the set-up has failed. EP locked.
 */
DAT_EVENT_NUMBER vrb_active_event(struct vrb_conn *conn, struct core_ep *ep,
				  const struct vrb_cm_event *event);
DAT_EVENT_NUMBER vrb_active_due(struct vrb_conn *conn, uint64_t now_ns);

#endif
