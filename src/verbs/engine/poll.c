// SPDX-License-Identifier: BSD-2-Clause
/*
 * Polls the completion queues, dispatches completions to their connections, and ends connections
 * whose queues are empty.
 *
 * At its end the queue pair of a connection is moved to the error state and its completions are
 * taken. Then it is destroyed, and only after that the end is reported to the core: from then on
 * nothing accesses memory of the consumer.
 */
#include "verbs/engine/poll.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/handle.h"
#include "core/base/instance.h"
#include "core/ep/ep.h"
#include "core/srq/srq.h"
#include "core/transport.h"
#include "verbs/connect/setup.h"
#include "verbs/device/adapter.h"
#include "verbs/device/cq.h"
#include "verbs/device/srq.h"
#include "verbs/device/tuning.h"
#include "verbs/transfer/complete.h"
#include "verbs/transfer/conn.h"
#include "verbs/transfer/post.h"

/* Dispatches one completion. EP locked. */
static void take(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	if (!vrb_setup_completion(conn, ep, wc))
		vrb_completion(conn, ep, wc);
}

/* Dispatches the completion of an SRQ buffer to the connection that has the queue pair. */
static void srq_dispatch(struct vrb_adapter *adapter, struct core_ref srq, const struct ibv_wc *wc)
{
	struct vrb_conn *conn = vrb_qpn_find(adapter, wc->qp_num);
	struct core_ep *ep = conn ? vrb_conn_enter(conn) : NULL;

	vrb_srq_taken(srq);
	if (ep) {
		take(conn, ep, wc);
		vrb_conn_try_finish(conn, ep, false);
		vrb_conn_leave(ep);
	} else {
		core_srq_discard(srq, (uint32_t)wc->wr_id);
	}
	if (conn)
		vrb_conn_put(conn);
}

/*
 * Locks and returns the endpoint whose connection has that key; NULL: there is none. A cell is
 * never unmapped, so reading it is safe even if it belongs to another endpoint by now. With the
 * endpoint locked its connection cannot change, and the key decides.
 */
static struct core_ep *ep_enter_by_key(struct vrb_adapter *adapter, uint32_t key)
{
	struct core_handle *cell = atomic_load_explicit(
		&adapter->ep_cells[key & VRB_KEY_INDEX_MASK], memory_order_relaxed);
	const struct vrb_conn *conn;
	struct core_ep *ep;

	if (!cell)
		return NULL;
	ep = core_handle_lock_cell(cell, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return NULL;
	conn = vrb_conn_of(ep);
	if (conn && conn->key == key && conn->adapter == adapter)
		return ep;
	core_ep_leave(ep);
	return NULL;
}

/* The number of completions at the start that have the same key. */
static int count_same_key(const struct ibv_wc *wc, int count)
{
	int i = 1;

	while (i < count && vrb_work_key(&wc[i]) == vrb_work_key(wc))
		i++;
	return i;
}

/*
 * Dispatches the first completion and those directly after it with the same key. Returns how many.
 */
static int dispatch(struct vrb_adapter *adapter, const struct ibv_wc *wc, int count)
{
	uint32_t key = vrb_work_key(wc);
	struct core_ep *ep = ep_enter_by_key(adapter, key);
	struct vrb_conn *conn;
	struct core_ref srq;

	if (!ep && vrb_srq_by_key(adapter, key, &srq)) {
		srq_dispatch(adapter, srq, wc);
		return 1;
	}
	count = count_same_key(wc, count);
	if (!ep) /* from a queue pair that was destroyed, or is about to be */
		return count;
	conn = vrb_conn_of(ep);
	for (int i = 0; i < count; i++)
		take(conn, ep, &wc[i]);
	vrb_conn_try_finish(conn, ep, false);
	vrb_conn_leave(ep);
	return count;
}

/* Dispatches the kept completions. Returns how many. The caller owns the queue. */
static int dispatch_kept(struct vrb_adapter *adapter, struct vrb_cq *cq)
{
	int count = cq->kept_count;

	while (cq->kept_count) {
		int done = dispatch(adapter, cq->kept, cq->kept_count);

		cq->kept += done;
		cq->kept_count -= (uint8_t)done;
	}
	return count;
}

static int cq_poll(struct vrb_adapter *adapter, struct vrb_cq *cq)
{
	int found, count;

	if (!vrb_cq_own(cq))
		return -EBUSY;
	found = dispatch_kept(adapter, cq);
	do {
		count = vrb_cq_fill(cq);
		found += dispatch_kept(adapter, cq);
	} while (count == VRB_POLL_BATCH && found < VRB_POLL_MAX);
	vrb_cq_disown(cq);
	return found;
}

/* --- all queues --- */

int vrb_poll(struct vrb_adapter *adapter)
{
	bool is_busy = false;
	int found = 0;

	for (struct vrb_cq *cq = vrb_cq_first(adapter); cq; cq = atomic_load(&cq->next)) {
		int rc = cq_poll(adapter, cq);

		if (rc < 0)
			is_busy = true;
		else
			found += rc;
	}
	return !found && is_busy ? -EBUSY : found;
}

/* Polls until the queue was empty, or has returned as many as it holds. False: another thread owns
 * it. */
static bool cq_poll_all(struct vrb_adapter *adapter, struct vrb_cq *cq)
{
	uint32_t found = 0;
	int count;

	do {
		count = cq_poll(adapter, cq);
		found += count > 0 ? (uint32_t)count : 0;
	} while (count >= VRB_POLL_MAX && found < cq->capacity);
	return count >= 0;
}

static bool poll_each(struct vrb_adapter *adapter)
{
	bool is_busy = false;

	for (struct vrb_cq *cq = vrb_cq_first(adapter); cq; cq = atomic_load(&cq->next))
		is_busy |= !cq_poll_all(adapter, cq);
	return !is_busy;
}

bool vrb_poll_arrived(struct vrb_adapter *adapter)
{
	for (int i = 0; i < VRB_ARRIVED_TRIES; i++) {
		if (poll_each(adapter))
			return true;
		sched_yield();
	}
	return false;
}

void vrb_take_arrived(struct vrb_adapter *adapter)
{
	const uint64_t end_ns = core_now_ns() + VRB_DRAIN_NS;
	unsigned turns = 0;

	while (!vrb_poll_arrived(adapter) && core_now_ns() < end_ns)
		core_wait_turn(&turns);
}

/* Tries the binds again that wait for a bind of another endpoint. */
static void retry_blocked(struct vrb_adapter *adapter)
{
	struct vrb_conn *found[VRB_RETRIES_MAX];
	uint32_t count = 0;

	pthread_mutex_lock(&adapter->lock);
	for (struct vrb_conn *conn = adapter->first; conn && count < VRB_RETRIES_MAX;
	     conn = conn->next)
		if (atomic_load(&conn->binds.is_blocked)) {
			vrb_conn_get(conn);
			found[count++] = conn;
		}
	pthread_mutex_unlock(&adapter->lock);
	while (count--) {
		struct core_ep *ep = vrb_conn_enter(found[count]);

		if (ep) {
			if (found[count]->state == VRB_ESTABLISHED)
				vrb_post_requests(found[count], ep);
			vrb_conn_leave(ep);
		}
		vrb_conn_put(found[count]);
	}
}

int vrb_progress(struct core_ia *ia)
{
	struct vrb_adapter *adapter = vrb_adapter_of(ia);
	int state = core_cancel_off(); /* cancellation: see transfer/post.c */
	int rc;

	vrb_note_activity(&vrb_cq_first(adapter)->has_polled);
	rc = vrb_poll(adapter);
	/* relaxed: only what this thread has just dispatched matters */
	if (atomic_load_explicit(&adapter->blocked, memory_order_relaxed))
		retry_blocked(adapter);
	core_cancel_restore(state);
	return rc; /* less than 0: another thread polls */
}

int vrb_poll_arm(struct vrb_adapter *adapter)
{
	vrb_cq_notify(adapter);
	/*
	 * Polls once more, because a completion from before the request may cause no wake-up, and a
	 * completion that a thread has polled and kept causes none. Another thread that owns a
	 * queue may have polled before the request; then the caller has to try again.
	 */
	return vrb_poll(adapter) ? 1 : 0;
}

/* --- releasing --- */

/*
 * Some connections cannot be released when they end. They linger in the adapter's list, without an
 * endpoint, until
 *
 * - the answer to a request over iWARP has arrived, or the kernel's connection manager has timed
 *   out: before that it does not destroy the identifier;
 * - the device has completed the SRQ buffers that the queue pair of an accepted connection holds;
 * - the port is up, so that the peer can be notified.
 *
 * The queue pair of such a connection is in the error state.
 */

static void mark_as(struct vrb_conn *conn, enum vrb_mark mark)
{
	pthread_mutex_t *lock = &conn->adapter->lock;

	pthread_mutex_lock(lock);
	conn->mark = mark;
	pthread_mutex_unlock(lock);
}

/* Destroys the queue pair now, and leaves the identifier until the port is up. */
static void conn_go_offline(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;

	vrb_qp_destroy(conn);
	mark_as(conn, VRB_OFFLINE);
	/* if the port has come up meanwhile, no further event may follow */
	if (vrb_can_notify_peers(adapter))
		vrb_conn_end_offline(adapter);
}

/* Releases it, or leaves the identifier until the port is up. */
static void conn_end(struct vrb_conn *conn)
{
	if (conn->state == VRB_CLOSING && !vrb_can_notify_peers(conn->adapter))
		conn_go_offline(conn);
	else
		vrb_conn_release(conn);
}

/* Takes a connection that lingers, with that mark or one after it; NULL: there is none. */
static struct vrb_conn *lingering_take(struct vrb_adapter *adapter, enum vrb_mark least)
{
	struct vrb_conn *conn;

	pthread_mutex_lock(&adapter->lock);
	for (conn = adapter->first; conn && conn->mark < least;)
		conn = conn->next;
	if (conn)
		conn->mark = VRB_UNMARKED;
	pthread_mutex_unlock(&adapter->lock);
	return conn;
}

static void release_lingering(struct vrb_adapter *adapter, enum vrb_mark least)
{
	struct vrb_conn *conn;

	while ((conn = lingering_take(adapter, least)))
		vrb_conn_release(conn);
}

void vrb_conn_end_offline(struct vrb_adapter *adapter)
{
	release_lingering(adapter, VRB_OFFLINE);
}

void vrb_conn_end_lingering(struct vrb_adapter *adapter)
{
	release_lingering(adapter, VRB_LINGERING);
}

void vrb_conn_linger_due(struct vrb_conn *conn)
{
	bool is_due;

	pthread_mutex_lock(&conn->adapter->lock);
	/* VRB_NEVER: it was not set again since the service thread has found it passed */
	is_due = conn->mark == VRB_LINGERING && conn->deadline_ns == VRB_NEVER;
	if (is_due)
		conn->mark = VRB_UNMARKED;
	pthread_mutex_unlock(&conn->adapter->lock);
	if (is_due)
		conn_end(conn);
}

/*
 * May the queue pair hold buffers of its SRQ? Completions that are lost with the queue pair would
 * leave their buffers counted in the SRQ for ever (EP-FREE-26). siw completes the buffers when it
 * destroys the queue pair.
 */
static bool holds_buffers(const struct vrb_conn *conn)
{
	return conn->qp && conn->srq && !conn->adapter->is_siw &&
	       !atomic_load(&conn->adapter->is_dead) &&
	       (conn->state == VRB_CLOSING || conn->state == VRB_ACCEPTED);
}

static bool awaits_answer(const struct vrb_conn *conn)
{
	return conn->adapter->is_iwarp && conn->state == VRB_CONNECTING && conn->id && conn->qp;
}

void vrb_conn_destroy(struct vrb_conn *conn)
{
	/* the buffers of a connection that closes were awaited before */
	bool has_buffers = conn->state == VRB_ACCEPTED && holds_buffers(conn);

	if (!has_buffers && !awaits_answer(conn)) {
		conn_end(conn);
		return;
	}
	vrb_qp_to_error(conn);
	vrb_conn_set_deadline(conn, has_buffers ? vrb_conn_srq_deadline(conn)
						: core_now_ns() + VRB_ANSWER_NS);
	mark_as(conn, VRB_LINGERING); /* last: the service thread may release it */
}

void vrb_conn_answered(struct vrb_conn *conn, const struct rdma_cm_id *id)
{
	pthread_mutex_t *lock = &conn->adapter->lock;
	bool is_over;

	pthread_mutex_lock(lock);
	is_over = conn->mark == VRB_LINGERING && conn->id == id && awaits_answer(conn);
	pthread_mutex_unlock(lock);
	if (is_over)
		vrb_conn_set_deadline(conn, 0);
}

void vrb_conn_left_srq(struct vrb_conn *conn)
{
	struct core_ep *ep;

	atomic_store(&conn->end.has_left_srq, true);
	ep = vrb_conn_enter(conn);
	if (!ep) {
		vrb_conn_set_deadline(conn, vrb_conn_srq_deadline(conn));
		return;
	}
	vrb_conn_try_finish(conn, ep, false);
	vrb_conn_leave(ep);
}

/* Waits until the queue pair, in the error state, holds no buffer of its SRQ. */
static void wait_for_buffers(const struct vrb_conn *conn)
{
	const struct timespec left = {0, VRB_DRAIN_LEFT_NS};
	const uint64_t end_ns = vrb_conn_srq_deadline(conn);
	unsigned turns = 0;

	while (!atomic_load(&conn->end.has_left_srq) && core_now_ns() < end_ns)
		core_wait_turn(&turns);
	if (atomic_load(&conn->end.has_left_srq))
		(void)nanosleep(&left, NULL);
}

void vrb_conn_destroy_freed(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;

	if (!holds_buffers(conn)) {
		vrb_conn_destroy(conn);
		return;
	}
	if (conn->state == VRB_ACCEPTED)
		vrb_qp_to_error(conn);
	wait_for_buffers(conn);
	vrb_take_arrived(adapter);
	conn_end(conn);
	vrb_take_arrived(adapter);
}

/* --- the end as the core sees it --- */

void vrb_conn_fail(struct vrb_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	vrb_conn_detach(conn, ep);
	vrb_conn_destroy(conn);
	if (number == DAT_CONNECTION_EVENT_DISCONNECTED)
		core_ep_ended(ep, number);
	else
		core_ep_connect_failed(ep, number);
}

void vrb_conn_try_finish(struct vrb_conn *conn, struct core_ep *ep, bool is_forced)
{
	DAT_EVENT_NUMBER why = conn->end.why;

	if (conn->state != VRB_CLOSING)
		return;
	if (!is_forced && !vrb_conn_is_drained(conn, ep)) {
		if (ep->srq)
			vrb_conn_set_deadline(conn, vrb_conn_drain_deadline(conn, ep));
		return;
	}
	vrb_conn_detach(conn, ep);
	vrb_conn_destroy(conn);
	core_ep_ended(ep, why);
}
