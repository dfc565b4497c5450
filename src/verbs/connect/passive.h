// SPDX-License-Identifier: BSD-2-Clause
/* The passive side of a set-up: listening, requests, and their answers. */
#ifndef VERBS_PASSIVE_H
#define VERBS_PASSIVE_H

#include <stdint.h>

#include "verbs/connect/setup.h"

struct vrb_listener;

/* transport_ops */
int vrb_listen(struct core_ia *ia, struct core_ref sp, DAT_CONN_QUAL *qual, void **listener_out);
void vrb_unlisten(struct core_ia *ia, void *listener);
int vrb_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param);
void vrb_reject(void *request, enum transport_reject why, const void *private_data, uint32_t size);

void vrb_listener_get(struct vrb_listener *listener);
void vrb_listener_put(struct vrb_listener *listener);
/* Handles a request. `conn` is new; its reference goes to the core if the request does. */
void vrb_listener_event(struct vrb_listener *listener, const struct vrb_cm_event *event,
			struct vrb_conn *conn);

/*
 * Handle an event, or a deadline, of an accepted request: as vrb_active_event and vrb_active_due.
 */
DAT_EVENT_NUMBER vrb_passive_event(struct vrb_conn *conn, struct core_ep *ep,
				   const struct vrb_cm_event *event);
DAT_EVENT_NUMBER vrb_passive_due(struct vrb_conn *conn, uint64_t now_ns);

#endif
