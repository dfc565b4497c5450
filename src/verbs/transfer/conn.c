// SPDX-License-Identifier: BSD-2-Clause
/* Connections: their life, endpoints, deadlines, and the start of the end. */
#include "verbs/transfer/conn.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/handle.h"
#include "core/base/log.h"
#include "core/transport.h"
#include "shared/names.h"
#include "verbs/device/device.h"
#include "verbs/device/cq.h"
#include "verbs/device/tuning.h"
#include "verbs/transfer/queue.h"

void vrb_conn_get(struct vrb_conn *conn)
{
	/* relaxed: the caller holds a reference, or the lock that guards the list */
	atomic_fetch_add_explicit(&conn->refs, 1, memory_order_relaxed);
}

void vrb_conn_put(struct vrb_conn *conn)
{
	/* acquire and release: the thread that frees it sees all writes of the others */
	if (atomic_fetch_sub_explicit(&conn->refs, 1, memory_order_acq_rel) != 1)
		return;
	vrb_adapter_put(conn->adapter);
	free(conn->early.wc);
	free(conn);
}

int vrb_conn_create(struct vrb_adapter *adapter, enum vrb_state state, struct vrb_conn **conn_out)
{
	struct vrb_conn *conn = calloc(1, sizeof(*conn));
	int rc;

	if (!conn)
		return -ENOMEM;
	conn->peer.kind = VRB_KIND_CONN;
	conn->adapter = adapter;
	conn->inline_max = adapter->limits.inline_max;
	conn->has_fast_path = vrb_has_fast_path(adapter);
	conn->state = state;
	conn->deadline_ns = VRB_NEVER;
	conn->setup.give_up_ns = VRB_NEVER;
	conn->attempt.refused_at = CM_PORTS;
	conn->end.flush_ns = VRB_NEVER;
	atomic_init(&conn->refs, 2);
	rc = vrb_slot_take(adapter, &conn->peer, &conn->key);
	if (rc) {
		free(conn);
		return rc;
	}
	vrb_adapter_get(adapter);
	pthread_mutex_lock(&adapter->lock);
	conn->next = adapter->first;
	conn->link = &adapter->first;
	if (conn->next)
		conn->next->link = &conn->next;
	adapter->first = conn;
	pthread_mutex_unlock(&adapter->lock);
	*conn_out = conn;
	return 0;
}

void vrb_conn_forget(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	bool was_listed;

	pthread_mutex_lock(&adapter->lock);
	was_listed = conn->link != NULL;
	if (was_listed) {
		*conn->link = conn->next;
		if (conn->next)
			conn->next->link = conn->link;
		conn->link = NULL;
		vrb_slot_free_locked(adapter, conn->key);
	}
	pthread_mutex_unlock(&adapter->lock);
	if (was_listed)
		vrb_conn_put(conn);
}

/* --- the endpoint --- */

struct core_ep *vrb_conn_enter(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	struct core_ref ref;
	struct core_ep *ep = NULL;

	pthread_mutex_lock(&adapter->lock);
	ref = conn->ep;
	pthread_mutex_unlock(&adapter->lock);
	if (ref.cell)
		ep = core_ep_enter(ref);
	if (ep && vrb_conn_of(ep) != conn) {
		core_ep_leave(ep);
		ep = NULL;
	}
	return ep;
}

/* Asserts what is true of the connection whenever its endpoint is unlocked. */
static void check(const struct vrb_conn *conn)
{
	bool is_over = conn->state >= VRB_CLOSING;

	(void)is_over; /* where assertions are left out */
	assert(!conn->end.why == !is_over);
	assert(!conn->end.is_graceful || conn->state >= VRB_ESTABLISHED);
	assert(conn->end.flush_ns == VRB_NEVER || conn->state >= VRB_ESTABLISHED);
	assert(!conn->setup.is_unconfirmed || conn->state == VRB_ACCEPTED);
	assert(conn->qp || conn->state < VRB_ESTABLISHED);
}

void vrb_conn_leave(struct core_ep *ep)
{
	if (vrb_conn_of(ep))
		check(vrb_conn_of(ep));
	vrb_update_slow_reasons(ep);
	core_ep_leave(ep);
}

/* Does the send queue hold anything but signalled requests that complete in order? */
static bool needs_slow_queue(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return conn->sq.next != ep->req.tail || conn->sq.unsignalled || ep->req.done ||
	       conn->marker.is_out || conn->binds.is_running || conn->binds.out ||
	       conn->binds.retiring ||
	       conn->sq.extra != conn->sq.extra_done || /* or extra_done must be updated */
	       conn->sq.size <= ep->req.capacity;	/* a request may find no room */
}

static uint16_t slow_reasons_of(const struct vrb_conn *conn, const struct core_ep *ep)
{
	uint16_t reasons = 0;

	if (conn->state != VRB_ESTABLISHED || conn->end.is_graceful || !conn->has_fast_path)
		reasons |= CORE_EP_SLOW_CONN;
	if (needs_slow_queue(conn, ep))
		reasons |= CORE_EP_SLOW_QUEUE;
	if (conn->rq.next != ep->recv.tail || conn->setup.is_unconfirmed || !conn->rq.is_open)
		reasons |= CORE_EP_SLOW_RECV;
	if (conn->end.flush_ns != VRB_NEVER || conn->setup.confirm_retries) /* iWARP */
		reasons |= CORE_EP_SLOW_PEER;
	return reasons;
}

void vrb_update_slow_reasons(struct core_ep *ep)
{
	const struct vrb_conn *conn = vrb_conn_of(ep);
	uint16_t reasons = conn ? slow_reasons_of(conn, ep) : CORE_EP_SLOW_CONN;

	core_handle_put_slow(ep->cell, CORE_EP_SLOW_TRANSPORT, reasons);
}

void vrb_conn_attach(struct vrb_conn *conn, struct core_ep *ep)
{
	struct vrb_adapter *adapter = conn->adapter;

	((struct vrb_ep *)ep->transport)->conn = conn;
	pthread_mutex_lock(&adapter->lock);
	conn->ep = core_handle_ref(ep->cell);
	vrb_slot_set_cell_locked(adapter, conn->key, ep->cell);
	pthread_mutex_unlock(&adapter->lock);
}

void vrb_conn_detach(struct vrb_conn *conn, struct core_ep *ep)
{
	struct vrb_adapter *adapter = conn->adapter;

	((struct vrb_ep *)ep->transport)->conn = NULL;
	pthread_mutex_lock(&adapter->lock);
	conn->ep.cell = NULL;
	if (conn->link)
		vrb_slot_set_cell_locked(adapter, conn->key, NULL);
	pthread_mutex_unlock(&adapter->lock);
}

/* --- deadlines --- */

void vrb_conn_set_deadline(struct vrb_conn *conn, uint64_t when_ns)
{
	struct vrb_adapter *adapter = conn->adapter;
	bool is_earliest;

	pthread_mutex_lock(&adapter->lock);
	conn->deadline_ns = when_ns;
	is_earliest = when_ns < atomic_load(&adapter->deadline_ns);
	if (is_earliest)
		atomic_store(&adapter->deadline_ns, when_ns);
	pthread_mutex_unlock(&adapter->lock);
	if (is_earliest)
		core_service_kick(&adapter->service);
}

struct vrb_conn *vrb_conn_next_due(struct vrb_adapter *adapter, uint64_t now_ns)
{
	uint64_t earliest = VRB_NEVER;
	struct vrb_conn *due = NULL;

	pthread_mutex_lock(&adapter->lock);
	for (struct vrb_conn *conn = adapter->first; conn && !due; conn = conn->next) {
		if (conn->deadline_ns <= now_ns)
			due = conn;
		else if (conn->deadline_ns < earliest)
			earliest = conn->deadline_ns;
	}
	if (due) {
		due->deadline_ns = VRB_NEVER;
		vrb_conn_get(due);
	} else {
		atomic_store(&adapter->deadline_ns, earliest);
	}
	pthread_mutex_unlock(&adapter->lock);
	return due;
}

void vrb_conn_all_due(struct vrb_adapter *adapter)
{
	pthread_mutex_lock(&adapter->lock);
	for (struct vrb_conn *conn = adapter->first; conn; conn = conn->next)
		conn->deadline_ns = 0;
	atomic_store(&adapter->deadline_ns, 0);
	pthread_mutex_unlock(&adapter->lock);
}

/* --- queue pairs by number --- */

void vrb_qpn_add(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	struct vrb_conn **bucket;

	pthread_mutex_lock(&adapter->lock);
	bucket = &adapter->by_qpn[conn->qp->qp_num % VRB_QPN_BUCKETS];
	conn->qpn_next = *bucket;
	conn->qpn_link = bucket;
	if (conn->qpn_next)
		conn->qpn_next->qpn_link = &conn->qpn_next;
	*bucket = conn;
	pthread_mutex_unlock(&adapter->lock);
}

void vrb_qpn_remove(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;

	pthread_mutex_lock(&adapter->lock);
	if (conn->qpn_link) {
		*conn->qpn_link = conn->qpn_next;
		if (conn->qpn_next)
			conn->qpn_next->qpn_link = conn->qpn_link;
		conn->qpn_link = NULL;
	}
	pthread_mutex_unlock(&adapter->lock);
}

struct vrb_conn *vrb_qpn_find(struct vrb_adapter *adapter, uint32_t qp_num)
{
	struct vrb_conn *conn;

	pthread_mutex_lock(&adapter->lock);
	conn = adapter->by_qpn[qp_num % VRB_QPN_BUCKETS];
	while (conn && conn->qp->qp_num != qp_num)
		conn = conn->qpn_next;
	if (conn)
		vrb_conn_get(conn);
	pthread_mutex_unlock(&adapter->lock);
	return conn;
}

/* --- the start of the end --- */

void vrb_qp_to_error(struct vrb_conn *conn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	/* a failure does not matter: the queue pair is destroyed soon */
	(void)ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE);
}

bool vrb_conn_is_broken(const struct vrb_conn *conn)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (conn->end.has_failed)
		return true;
	if (conn->adapter->is_iwarp || ibv_query_qp(conn->qp, &attr, IBV_QP_STATE, &init))
		return false;
	return attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE;
}

void vrb_conn_notify_peer(struct vrb_conn *conn)
{
	if (!conn->end.is_peer_notified)
		(void)rdma_disconnect(
			conn->id); /* fails if the peer disconnected first or is gone */
	conn->end.is_peer_notified = true;
}

/*
 * While the port is down a message to the peers would be lost. Also, after a send that failed,
 * rxe's management queue pair, which serves all connections, receives nothing any more
 * (docs/verbs.md).
 */
bool vrb_can_notify_peers(struct vrb_adapter *adapter)
{
	return adapter->is_iwarp || atomic_load(&adapter->is_dead) || vrb_device_is_up(adapter);
}

/* Was a completion seen for everything in the send queue, successful or not? */
static bool is_seen(const struct vrb_conn *conn, const struct core_ep *ep)
{
	uint64_t posted = vrb_sq_posted(conn);

	/* the fast path updates only sq_done */
	return conn->sq.seen == posted || vrb_sq_done(conn, ep) == posted;
}

/*
 * The provider does not know which SRQ buffers a queue pair holds. Their completions are in the
 * queue soon after the device has reported that it holds none. The queue is polled before a
 * deadline is served.
 */
uint64_t vrb_conn_srq_deadline(const struct vrb_conn *conn)
{
	return core_now_ns() +
	       (atomic_load(&conn->end.has_left_srq) ? VRB_DRAIN_LEFT_NS : VRB_DRAIN_SRQ_NS);
}

uint64_t vrb_conn_drain_deadline(const struct vrb_conn *conn, const struct core_ep *ep)
{
	if (ep->srq && is_seen(conn, ep))
		return vrb_conn_srq_deadline(conn);
	return core_now_ns() + VRB_DRAIN_NS;
}

bool vrb_conn_is_drained(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return !ep->srq && !vrb_recv_out(conn, ep) && is_seen(conn, ep);
}

void vrb_conn_close(struct vrb_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER why)
{
	if (conn->state != VRB_ESTABLISHED)
		return;
	core_log(why == DAT_CONNECTION_EVENT_BROKEN ? CORE_LOG_CONN | CORE_LOG_ERROR
						    : CORE_LOG_CONN,
		 "%s: queue pair %u ends: %s", core_object_name(ep->cell, DAT_HANDLE_TYPE_EP).text,
		 conn->qp->qp_num, opendat_event_name(why));
	conn->state = VRB_CLOSING;
	conn->end.why = why;
	/*
	 * When an iWARP device is asked to disconnect it sends what was posted, then closes the
	 * stream. In the error state it drops the stream at once.
	 */
	if (!conn->adapter->is_iwarp || why == DAT_CONNECTION_EVENT_BROKEN)
		vrb_qp_to_error(conn);
	/*
	 * A device may report an error before it has sent its answer to the peer. It has sent the
	 * answer when it has flushed the queue, so the disconnect is sent only then. iWARP sends
	 * both in its stream, in order.
	 */
	if (conn->adapter->is_iwarp ||
	    (why != DAT_CONNECTION_EVENT_BROKEN && vrb_can_notify_peers(conn->adapter)))
		vrb_conn_notify_peer(conn);
	vrb_conn_set_deadline(
		conn, vrb_conn_is_drained(conn, ep) ? 0 : vrb_conn_drain_deadline(conn, ep));
}

void vrb_conn_flushed(struct vrb_conn *conn, struct core_ep *ep)
{
	if (conn->state != VRB_ESTABLISHED)
		return;
	if (!conn->adapter->is_iwarp) {
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
		return;
	}
	/* the peer may have closed its stream: then the connection manager reports it soon */
	if (conn->end.flush_ns != VRB_NEVER)
		return;
	conn->end.flush_ns = core_now_ns() + VRB_SILENT_NS;
	vrb_conn_set_deadline(conn, conn->end.flush_ns);
}
