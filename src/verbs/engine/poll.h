// SPDX-License-Identifier: BSD-2-Clause
/* Polls of the completion queues, and the end of connections and of attempts to connect. */
#ifndef VERBS_POLL_H
#define VERBS_POLL_H

#include <stdbool.h>

#include "core/ep/ep.h"
#include "verbs/device/adapter.h"
#include "verbs/transfer/conn.h"

/* transport_ops.progress */
int vrb_progress(struct core_ia *ia);
/* Dispatches kept completions, then polls all queues and dispatches what they return. > 0: some
 * were dispatched; -EBUSY: none were, and another thread owns one of the queues. Cancellation is
 * off. */
int vrb_poll(struct vrb_adapter *adapter);
/*
 * Takes the completions that have arrived. False: another thread has taken some from a queue and
 * not dispatched them yet.
 */
bool vrb_poll_arrived(struct vrb_adapter *adapter);
/* Takes them, and waits until the other thread has dispatched its own, at most VRB_DRAIN_NS. No lock
 * held, because that thread may need it. */
void vrb_take_arrived(struct vrb_adapter *adapter);
/* Requests a wake-up by the next completion, then polls once more. > 0: call it again. */
int vrb_poll_arm(struct vrb_adapter *adapter);

/* --- the end --- */

/* The set-up has failed: frees everything, then reports it to the core. EP locked. */
void vrb_conn_fail(struct vrb_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number);
/* Ends a closing connection when its queues are empty, or is_forced. EP locked. */
void vrb_conn_try_finish(struct vrb_conn *conn, struct core_ep *ep, bool is_forced);
/* The device reports that the queue pair, in the error state, holds no buffer of its SRQ. */
void vrb_conn_left_srq(struct vrb_conn *conn);

/* Destroys identifier and queue pair, and drops the owner's reference. The service thread does it
 * later if that takes long. */
void vrb_conn_destroy(struct vrb_conn *conn);
/* Likewise for an endpoint that is freed: waits until no buffer of an SRQ is held. No lock held. */
void vrb_conn_destroy_freed(struct vrb_conn *conn);

/* --- connections without an endpoint that linger until they can be released --- */

/* A deadline of the connection has passed. */
void vrb_conn_linger_due(struct vrb_conn *conn);
/* There is an event of the identifier: perhaps the answer to the connection's request. */
void vrb_conn_answered(struct vrb_conn *conn, const struct rdma_cm_id *id);
/* The port is up: releases those that wait for that. */
void vrb_conn_end_offline(struct vrb_adapter *adapter);
/* Releases all, before the instance is closed. */
void vrb_conn_end_lingering(struct vrb_adapter *adapter);

#endif
