// SPDX-License-Identifier: BSD-2-Clause
/* The life of connections, their endpoints, and their deadlines. */
#include "verbs/conn.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/base/handle.h"
#include "core/transport.h"
#include "verbs/adapter.h"
#include "verbs/service.h"
#include "verbs/table.h"

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
	free(conn->early);
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
	conn->give_up_ns = VRB_NEVER;
	atomic_init(&conn->refs, 2);
	rc = vrb_slot_take(adapter, &conn->peer, &conn->key);
	if (rc) {
		free(conn);
		return rc;
	}
	vrb_adapter_get(adapter);
	pthread_mutex_lock(&adapter->lock);
	conn->next = adapter->first;
	if (conn->next)
		conn->next->prev = conn;
	adapter->first = conn;
	conn->is_listed = true;
	pthread_mutex_unlock(&adapter->lock);
	*conn_out = conn;
	return 0;
}

void vrb_conn_forget(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	bool was_listed;

	pthread_mutex_lock(&adapter->lock);
	was_listed = conn->is_listed;
	if (was_listed) {
		if (conn->prev)
			conn->prev->next = conn->next;
		else
			adapter->first = conn->next;
		if (conn->next)
			conn->next->prev = conn->prev;
		conn->is_listed = false;
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
	struct core_ref ref = {NULL, 0};
	struct core_ep *ep = NULL;

	pthread_mutex_lock(&adapter->lock);
	if (conn->has_ep)
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

void vrb_conn_leave(struct core_ep *ep)
{
	vrb_update_slow_reasons(ep);
	core_ep_leave(ep);
}

/* Does the send queue hold anything but signalled requests that complete in order? */
static bool needs_slow_queue(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return conn->post_next != ep->req.tail || conn->unsignalled || ep->req.done ||
	       conn->has_marker || conn->is_binding || conn->binds_out || conn->retiring ||
	       conn->extra != conn->extra_done || /* or extra_done must be updated */
	       conn->sq_size <= ep->req.capacity; /* a request may find no room */
}

static uint16_t slow_reasons_of(const struct vrb_conn *conn, const struct core_ep *ep)
{
	uint16_t reasons = 0;

	if (conn->state != VRB_ESTABLISHED || conn->is_graceful || !conn->has_fast_path)
		reasons |= CORE_EP_SLOW_CONN;
	if (needs_slow_queue(conn, ep))
		reasons |= CORE_EP_SLOW_QUEUE;
	if (conn->recv_next != ep->recv.tail || conn->is_unconfirmed || !conn->is_receiving)
		reasons |= CORE_EP_SLOW_RECV;
	if (conn->is_flushed || conn->confirm_retries) /* iWARP */
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
	conn->has_ep = true;
	conn->ep = core_handle_ref(ep->cell);
	vrb_slot_set_cell_locked(adapter, conn->key, ep->cell);
	pthread_mutex_unlock(&adapter->lock);
}

void vrb_conn_detach(struct vrb_conn *conn, struct core_ep *ep)
{
	struct vrb_adapter *adapter = conn->adapter;

	((struct vrb_ep *)ep->transport)->conn = NULL;
	pthread_mutex_lock(&adapter->lock);
	conn->has_ep = false;
	if (conn->is_listed)
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
		vrb_service_wake(adapter);
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
