// SPDX-License-Identifier: BSD-2-Clause
/*
 * How connections are set up: the active side (connect.c), listening (listen.c), the passive side's
 * answer (accept.c), and what is common to both sides (setup.c).
 */
#ifndef VERBS_SETUP_H
#define VERBS_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "core/transport.h"
#include "core/base/instance.h"
#include "verbs/conn.h"

#define VRB_PRIVATE_ROOM                                                                           \
	255u /* maximum bytes of private data that a connection manager delivers                   \
	      */

/* A copy of an event of librdmacm. */
struct vrb_cm_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id;
	struct rdma_conn_param param;
	uint8_t data[VRB_PRIVATE_ROOM + 1];
	uint32_t size;
};

struct vrb_listener;

static inline uint8_t vrb_at_most(uint32_t value, uint32_t most)
{
	return (uint8_t)(value < most ? value : most);
}

/* iWARP connection managers require room for at least one RDMA Read. */
static inline uint8_t vrb_at_least_one(uint8_t value, bool is_needed)
{
	return is_needed && !value ? 1 : value;
}

/* transport_ops */
int vrb_listen(struct core_ia *ia, struct core_ref sp, DAT_CONN_QUAL *qual, void **listener_out);
void vrb_unlisten(struct core_ia *ia, void *listener);
int vrb_connect(struct core_ep *ep, const union core_sockaddr *address, DAT_CONN_QUAL qual,
		DAT_TIMEOUT timeout_us, const struct transport_conn_param *param);
int vrb_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param);
void vrb_reject(void *request, enum transport_reject why, const void *private_data,
		uint32_t data_size);

/* --- setup.c --- */

/* Handles an event of the connection. No lock held. */
void vrb_setup_event(struct vrb_conn *conn, const struct vrb_cm_event *event);
/* Handles a deadline that has passed. EP locked. */
void vrb_setup_due(struct vrb_conn *conn, struct core_ep *ep, uint64_t now_ns);
/* Reports to the core that the connection is established. EP locked. */
void vrb_conn_established(struct vrb_conn *conn, struct core_ep *ep);
/* The set-up has failed: frees everything, then reports it to the core. EP locked. */
void vrb_conn_fail(struct vrb_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number);

/* --- the two sides --- */

/* Handles an event while the set-up is under way. EP locked. */
void vrb_active_event(struct vrb_conn *conn, struct core_ep *ep, const struct vrb_cm_event *event);
void vrb_passive_event(struct vrb_conn *conn, struct core_ep *ep, const struct vrb_cm_event *event);

/* From now on the request keeps its identifier (listen.c). Called before it is answered. */
void vrb_request_answered(struct vrb_conn *conn);
void vrb_listener_get(struct vrb_listener *listener);
void vrb_listener_put(struct vrb_listener *listener);
/* Handles a request. `conn` is new; its reference goes to the core if the request does. */
void vrb_listener_event(struct vrb_listener *listener, const struct vrb_cm_event *event,
			struct vrb_conn *conn);

#endif
