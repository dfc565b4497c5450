// SPDX-License-Identifier: BSD-2-Clause
/*
 * What both sides of a set-up share: queue pairs, and what happens before a connection is
 * established. All is called with the endpoint locked, but for the release.
 */
#ifndef VERBS_SETUP_H
#define VERBS_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "core/ep/ep.h"
#include "core/transport.h"
#include "verbs/transfer/conn.h"

#define VRB_PRIVATE_ROOM                                                                           \
	255u /* bytes of private data that a connection manager delivers at most                   \
	      */

#define VRB_GOES_ON ((DAT_EVENT_NUMBER)0) /* the set-up has not failed */

/* A copy of an event of librdmacm. */
struct vrb_cm_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id;
	struct rdma_conn_param param;
	uint8_t data[VRB_PRIVATE_ROOM + 1];
	uint32_t size;
};

static inline uint8_t vrb_at_most(uint32_t value, uint32_t most)
{
	return (uint8_t)(value < most ? value : most);
}

/* iWARP connection managers require room for at least one RDMA Read. */
static inline uint8_t vrb_at_least_one(uint8_t value, bool is_needed)
{
	return is_needed && !value ? 1 : value;
}

/* Reports to the core that the connection is established; on the active side with the peer's
 * private data. */
void vrb_conn_established(struct vrb_conn *conn, struct core_ep *ep, const void *private_data,
			  uint32_t size);
/*
 * Handles a completion if it is one of the set-up or comes before or after the connection. False:
 * it is the connection's, which may be established just now.
 */
bool vrb_setup_completion(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc);
/* Drops the messages that arrived early: the connection was not established. Their buffers of an
 * SRQ count as consumed. */
void vrb_early_drop(struct vrb_conn *conn);

/* --- the confirmation of iWARP --- */

/* Passive side: must the peer confirm that the connection is established? */
bool vrb_confirm_is_needed(const struct vrb_conn *conn, const struct core_ep *ep);
/* Passive side: posts the Receive for the confirmation, in front of all others. */
int vrb_confirm_expect(struct vrb_conn *conn);
/*
 * Active side: sends an empty Write after it, because siw may overlook it. Called at the deadline.
 */
void vrb_confirm_retry(struct vrb_conn *conn, struct core_ep *ep);

/* --- queue pairs: one serves one connection, and several requests of one attempt --- */

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

/*
 * Releases identifier and queue pair, and drops the references of the list and of the caller. Waits
 * for the answer to a request over iWARP (engine/poll.c).
 */
void vrb_conn_release(struct vrb_conn *conn);

#endif
