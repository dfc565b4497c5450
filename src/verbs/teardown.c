// SPDX-License-Identifier: BSD-2-Clause
/*
 * How a connection ends. The queue pair is moved to the error state and its completions are taken.
 * Then it is destroyed, and only after that the end is reported to the core: from then on nothing
 * accesses memory of the consumer.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <rdma/rdma_cma.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/transport.h"
#include "shared/names.h"
#include "core/ep/ep.h"
#include "verbs/adapter.h"
#include "verbs/conn.h"
#include "verbs/cq.h"
#include "verbs/device.h"
#include "verbs/orphan.h"
#include "verbs/qp.h"
#include "verbs/service.h"
#include "verbs/work.h"

#define DRAIN_NS (300 * VRB_NS_PER_MS)
/*
 * How long a device may take to complete the SRQ buffers that the queue pair holds, and how long
 * after it has reported that it holds none. Some devices never report it (rxe and siw of Linux
 * 6.1), and one reports it early (bnxt_re).
 */
#define DRAIN_SRQ_NS (100 * VRB_NS_PER_MS)
#define DRAIN_LEFT_NS (2 * VRB_NS_PER_MS)
#define SILENT_NS                                                                                  \
	(500 * VRB_NS_PER_MS) /* how long the connection manager may take to explain a flush */

static void notify_peer(struct vrb_conn *conn)
{
	if (!conn->is_peer_notified)
		(void)rdma_disconnect(
			conn->id); /* fails if the peer disconnected first or is gone */
	conn->is_peer_notified = true;
}

/*
 * Can a message reach the peers? While the port is down it would be lost. Also, after a send that
 * failed, rxe's management queue pair, which serves all connections, receives nothing any more
 * (docs/verbs.md).
 */
static bool can_notify_peers(struct vrb_adapter *adapter)
{
	return adapter->is_iwarp || atomic_load(&adapter->is_dead) || vrb_device_is_up(adapter);
}

/* Releases identifier, queue pair and the list's reference. Over iWARP this may take long
 * (conn_release_later). */
static void conn_release(struct vrb_conn *conn)
{
	if (conn->id && conn->state == VRB_CLOSING)
		notify_peer(conn);
	if (conn->id && rdma_destroy_id(conn->id))
		core_log(CORE_LOG_ERROR, "connection identifier: not freed: %m");
	conn->id = NULL;
	vrb_qp_destroy(conn);
	conn->state = VRB_ENDED;
	vrb_conn_forget(conn);
	vrb_conn_put(conn);
}

/* --- while the port is down --- */

static struct vrb_conn *lingering_take(struct vrb_adapter *adapter)
{
	struct vrb_conn *conn;

	pthread_mutex_lock(&adapter->lock);
	for (conn = adapter->first; conn && !conn->is_lingering;)
		conn = conn->next;
	if (conn)
		conn->is_lingering = false;
	pthread_mutex_unlock(&adapter->lock);
	return conn;
}

void vrb_conn_end_lingering(struct vrb_adapter *adapter)
{
	struct vrb_conn *conn;

	while ((conn = lingering_take(adapter)))
		conn_release(conn);
}

/* Destroys the queue pair now, and leaves the identifier until the port is up. */
static void conn_linger(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;

	vrb_qp_destroy(conn);
	pthread_mutex_lock(&adapter->lock);
	conn->is_lingering = true;
	pthread_mutex_unlock(&adapter->lock);
	/* if the port has come up meanwhile, no further event may follow */
	if (can_notify_peers(adapter))
		vrb_conn_end_lingering(adapter);
}

/* Releases it, or leaves the identifier until the port is up. */
static void conn_end(struct vrb_conn *conn)
{
	if (conn->state == VRB_CLOSING && !can_notify_peers(conn->adapter))
		conn_linger(conn);
	else
		conn_release(conn);
}

/* --- buffers of an SRQ --- */

/* Takes the completions that have arrived, also those that another thread is dispatching. */
static void take_arrived(struct vrb_adapter *adapter)
{
	const struct timespec pause = {0, 20000};
	const uint64_t end_ns = core_now_ns() + DRAIN_NS;

	while (!vrb_cq_take_arrived(adapter) && core_now_ns() < end_ns)
		(void)nanosleep(&pause, NULL);
}

/* Waits until the queue pair, in the error state, holds no buffer of its SRQ. */
static void wait_left_srq(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	const struct timespec until = core_timespec(core_now_ns() + DRAIN_SRQ_NS);
	const struct timespec left = {0, DRAIN_LEFT_NS};
	int rc = 0;

	pthread_mutex_lock(&adapter->lock);
	while (!atomic_load(&conn->has_left_srq) && !rc)
		rc = pthread_cond_timedwait(&adapter->left_srq, &adapter->lock, &until);
	pthread_mutex_unlock(&adapter->lock);
	if (!rc)
		(void)nanosleep(&left, NULL);
}

/*
 * Releases a connection whose queue pair may hold buffers of its SRQ. Completions that are lost
 * with the queue pair would leave their buffers counted in the SRQ for ever (EP-FREE-26). siw
 * completes the buffers when it destroys the queue pair.
 */
static void conn_release_from_srq(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;

	if (conn->state == VRB_ACCEPTED)
		vrb_qp_to_error(conn);
	if (!adapter->is_siw && !atomic_load(&adapter->is_dead))
		wait_left_srq(conn);
	take_arrived(adapter);
	conn_end(conn);
	take_arrived(adapter);
}

void vrb_conn_left_srq(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	struct core_ep *ep;

	pthread_mutex_lock(&adapter->lock);
	atomic_store(&conn->has_left_srq, true);
	pthread_cond_broadcast(&adapter->left_srq);
	pthread_mutex_unlock(&adapter->lock);
	ep = vrb_conn_enter(conn);
	if (!ep)
		return;
	vrb_conn_try_finish(conn, ep, false);
	vrb_conn_leave(ep);
}

/* --- connections that take long to release --- */

static void *reaper_run(void *argument)
{
	struct vrb_conn *conn = argument;
	struct vrb_adapter *adapter = conn->adapter;

	vrb_adapter_get(adapter);
	if (conn->state == VRB_ACCEPTED)
		conn_release_from_srq(conn);
	else
		conn_release(conn);
	vrb_orphans_free(adapter);
	pthread_mutex_lock(&adapter->lock);
	if (!--adapter->reapers)
		pthread_cond_broadcast(&adapter->reaped);
	pthread_mutex_unlock(&adapter->lock);
	vrb_adapter_put(adapter);
	return NULL;
}

/*
 * The kernel's iWARP connection manager does not destroy an identifier before the peer has answered
 * its request or the manager has timed out. An accepted connection that fails may hold buffers of
 * an SRQ. A thread waits for that. The queue pair is in the error state and cannot be connected any
 * more. False: no thread could be made.
 */
static bool conn_release_later(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	const struct core_thread_form form = {
		.name = "dat-reaper", .is_detached = true, .sched = adapter->ia->sched};
	pthread_t thread;

	vrb_qp_to_error(conn);
	pthread_mutex_lock(&adapter->lock);
	adapter->reapers++;
	pthread_mutex_unlock(&adapter->lock);
	if (!core_thread_create(&thread, &form, reaper_run, conn))
		return true;
	pthread_mutex_lock(&adapter->lock);
	adapter->reapers--;
	pthread_mutex_unlock(&adapter->lock);
	return false;
}

void vrb_conn_wait_reapers(struct vrb_adapter *adapter)
{
	pthread_mutex_lock(&adapter->lock);
	while (adapter->reapers)
		pthread_cond_wait(&adapter->reaped, &adapter->lock);
	pthread_mutex_unlock(&adapter->lock);
}

static bool has_srq(const struct vrb_conn *conn)
{
	return conn->qp && conn->qp->srq;
}

void vrb_conn_destroy(struct vrb_conn *conn)
{
	bool is_slow = conn->state == VRB_ACCEPTED
			       ? has_srq(conn)
			       : conn->adapter->is_iwarp && conn->state == VRB_CONNECTING &&
					 conn->id && conn->qp;

	if (!is_slow || !conn_release_later(conn))
		conn_end(conn);
}

void vrb_conn_destroy_freed(struct vrb_conn *conn)
{
	if (has_srq(conn) && (conn->state == VRB_CLOSING || conn->state == VRB_ACCEPTED))
		conn_release_from_srq(conn);
	else
		vrb_conn_destroy(conn);
}

/* --- established connections --- */

/* Was a completion seen for everything in the send queue, successful or not? */
static bool is_seen(const struct vrb_conn *conn, const struct core_ep *ep)
{
	uint64_t posted = vrb_sq_posted(conn);

	/* the fast path updates only sq_done */
	return conn->sq_seen == posted || vrb_sq_done(conn, ep) == posted;
}

/*
 * The time at which the connection ends even if completions are missing. The provider does not know
 * which SRQ buffers a queue pair holds. Their completions are in the queue soon after the device
 * has reported that it holds none. The queue is polled before the deadline is served.
 */
static uint64_t drain_deadline(const struct vrb_conn *conn, const struct core_ep *ep)
{
	uint64_t wait = DRAIN_NS;

	if (ep->srq && is_seen(conn, ep))
		wait = atomic_load(&conn->has_left_srq) ? DRAIN_LEFT_NS : DRAIN_SRQ_NS;
	return core_now_ns() + wait;
}

static bool is_drained(const struct vrb_conn *conn, const struct core_ep *ep)
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
	conn->why = why;
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
	    (why != DAT_CONNECTION_EVENT_BROKEN && can_notify_peers(conn->adapter)))
		notify_peer(conn);
	vrb_conn_set_deadline(conn, is_drained(conn, ep) ? 0 : drain_deadline(conn, ep));
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
	if (conn->is_flushed)
		return;
	conn->is_flushed = true;
	conn->give_up_ns = core_now_ns() + SILENT_NS;
	vrb_conn_set_deadline(conn, conn->give_up_ns);
}

void vrb_conn_try_finish(struct vrb_conn *conn, struct core_ep *ep, bool is_forced)
{
	DAT_EVENT_NUMBER why = conn->why;

	if (conn->state != VRB_CLOSING)
		return;
	if (!is_forced && !is_drained(conn, ep)) {
		if (ep->srq)
			vrb_conn_set_deadline(conn, drain_deadline(conn, ep));
		return;
	}
	vrb_conn_detach(conn, ep);
	vrb_conn_destroy(conn);
	core_ep_ended(ep, why);
}
