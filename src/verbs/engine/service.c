// SPDX-License-Identifier: BSD-2-Clause
/*
 * The service thread of an instance. It handles the events of the connection manager and of the
 * device, deadlines, and completions while no consumer thread polls. It has all signals blocked.
 *
 * While a consumer thread polls, the service thread checks at intervals whether it still does. The
 * intervals grow, because each check takes processor time from other threads, but stay short while
 * another thread sleeps. When no thread polls any more, it arms the queues and sleeps without
 * limit. A thread that only posts is treated like one that polls, because it holds the lock of its
 * endpoint most of the time. It polls when its queue is full.
 */
#include "verbs/engine/service.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/instance.h"
#include "core/base/log.h"
#include "core/base/service.h"
#include "core/ep/ep.h"
#include "core/event/evd_queue.h"
#include "core/srq/srq.h"
#include "core/transport.h"
#include "verbs/connect/active.h"
#include "verbs/connect/passive.h"
#include "verbs/connect/setup.h"
#include "verbs/device/cq.h"
#include "verbs/device/srq.h"
#include "verbs/device/tuning.h"
#include "verbs/engine/poll.h"
#include "verbs/transfer/conn.h"
#include "verbs/transfer/post.h"

/* --- the device --- */

/* Handles an event of one queue pair. The caller holds a reference to the connection. */
static void qp_event(struct vrb_conn *conn, enum ibv_event_type type)
{
	struct core_ep *ep;

	if (type == IBV_EVENT_QP_LAST_WQE_REACHED) {
		vrb_conn_left_srq(conn);
		return;
	}
	ep = vrb_conn_enter(conn);
	if (!ep)
		return;
	core_log(CORE_LOG_CONN, "connection %u: %s", conn->key, ibv_event_type_str(type));
	if (type == IBV_EVENT_COMM_EST) {
		if (conn->state == VRB_ACCEPTED)
			(void)rdma_notify(conn->id, type);
	} else if (conn->adapter->is_siw && type != IBV_EVENT_QP_ACCESS_ERR) {
		/* the device could not send: the peer may have closed the stream in order
		 * (transfer/complete.c) */
		vrb_conn_flushed(conn, ep);
	} else {
		conn->end.has_failed = true;
		if (conn->state == VRB_ESTABLISHED) {
			vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
			vrb_conn_try_finish(conn, ep, false);
		} else if (conn->state == VRB_CLOSING) {
			conn->end.why = DAT_CONNECTION_EVENT_BROKEN;
		}
	}
	vrb_conn_leave(ep);
}

static void srq_failed(struct vrb_adapter *adapter, uint32_t key)
{
	struct core_ref srq;

	if (vrb_srq_by_key(adapter, key, &srq))
		core_srq_failed(srq);
}

static bool is_qp_event(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return true;
	default:
		return false;
	}
}

/* Reads the device's events and handles those of single queue pairs. */
static void read_device_events(struct vrb_adapter *adapter)
{
	struct ibv_async_event event;
	struct vrb_conn *conn;

	while (!ibv_get_async_event(adapter->context, &event)) {
		enum ibv_event_type type = event.event_type;
		uint32_t srq_key = 0;

		conn = NULL;
		if (is_qp_event(type)) {
			/* exists until the event is acknowledged */
			conn = event.element.qp->qp_context;
			if (conn)
				vrb_conn_get(conn);
		} else if (type == IBV_EVENT_SRQ_ERR) {
			srq_key = (uint32_t)(uintptr_t)event.element.srq->srq_context;
		}
		ibv_ack_async_event(&event);
		if (conn) {
			qp_event(conn, type);
			vrb_conn_put(conn);
		} else if (type == IBV_EVENT_SRQ_ERR) {
			srq_failed(adapter, srq_key);
		} else if (type < 32) {
			atomic_fetch_or(&adapter->device_events, 1u << type);
		}
	}
}

/* Handles the events of the whole device that were read. */
static void handle_device_events(struct vrb_adapter *adapter)
{
	uint32_t device_events = atomic_exchange(&adapter->device_events, 0);
	struct core_ia *ia = adapter->ia;

	if (device_events & 1u << IBV_EVENT_PORT_ERR)
		core_log(CORE_LOG_CONN, "%s: the port is down", ia->device);
	if (device_events & 1u << IBV_EVENT_PORT_ACTIVE)
		vrb_conn_end_offline(adapter);
	if (device_events & 1u << IBV_EVENT_CQ_ERR)
		core_ia_async_event(ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, ia->cell,
				    DAT_IA_OTHER_ERROR);
	if (!(device_events & (1u << IBV_EVENT_DEVICE_FATAL | 1u << IBV_EVENT_CQ_ERR)))
		return;
	if (atomic_exchange(&adapter->is_dead, true))
		return;
	core_log(CORE_LOG_ERROR, "%s: the device has failed", ia->device);
	core_ia_async_event(ia, DAT_ASYNC_ERROR_IA_CATASTROPHIC, ia->cell,
			    DAT_IA_CATASTROPHIC_ERROR);
	vrb_conn_all_due(adapter);
}

/* --- the connection manager --- */

static void event_locked(struct vrb_conn *conn, struct core_ep *ep,
			 const struct vrb_cm_event *event)
{
	DAT_EVENT_NUMBER failure = VRB_GOES_ON;

	switch (conn->state) {
	case VRB_RESOLVING:
	case VRB_CONNECTING:
		failure = vrb_active_event(conn, ep, event);
		break;
	case VRB_ACCEPTED:
		failure = vrb_passive_event(conn, ep, event);
		break;
	case VRB_ESTABLISHED:
		/* a reject may come, too, if the passive side was destroyed before it saw that we
		 * are established */
		if (event->type != RDMA_CM_EVENT_DISCONNECTED &&
		    event->type != RDMA_CM_EVENT_REJECTED)
			break;
		vrb_conn_close(conn, ep,
			       vrb_conn_is_broken(conn) ? DAT_CONNECTION_EVENT_BROKEN
							: DAT_CONNECTION_EVENT_DISCONNECTED);
		vrb_conn_try_finish(conn, ep, false);
		break;
	default:
		break;
	}
	if (failure)
		vrb_conn_fail(conn, ep, failure);
}

/* An event of a request that the consumer has not answered. If the peer is gone, accepting it will
 * fail. */
static void request_event(struct vrb_conn *conn, const struct vrb_cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		atomic_store(&conn->setup.is_peer_gone, true);
		break;
	default:
		break;
	}
}

/* Handles an event of a connection. No lock held. */
static void conn_event(struct vrb_conn *conn, const struct vrb_cm_event *event)
{
	struct core_ep *ep;

	core_log(CORE_LOG_CONN, "connection %u: %s, status %d", conn->key,
		 rdma_event_str(event->type), event->status);
	if (event->type == RDMA_CM_EVENT_DISCONNECTED) {
		/* an earlier event of the device may explain the end */
		read_device_events(conn->adapter);
		/* the confirmation may have arrived before it, and be in the hands of another thread */
		if (conn->adapter->is_iwarp)
			vrb_take_arrived(conn->adapter);
	}
	request_event(conn, event);
	ep = vrb_conn_enter(conn);
	if (!ep) {
		vrb_conn_answered(conn, event->id);
		return;
	}
	if (conn->id == event->id)
		event_locked(conn, ep, event);
	vrb_conn_leave(ep);
}

static void event_copy(const struct rdma_cm_event *from, struct vrb_cm_event *to)
{
	memset(to, 0, offsetof(struct vrb_cm_event, data));
	to->type = from->event;
	to->status = from->status;
	to->id = from->id;
	to->param = from->param.conn;
	to->size = from->param.conn.private_data ? from->param.conn.private_data_len : 0;
	if (to->size)
		memcpy(to->data, from->param.conn.private_data, to->size);
	to->param.private_data = NULL;
}

/*
 * Returns the object that the event is for, with a reference, or NULL. Called before the event is
 * acknowledged.
 */
static struct vrb_peer *event_peer(const struct rdma_cm_event *event)
{
	const struct rdma_cm_id *id =
		event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->listen_id : event->id;
	struct vrb_peer *peer = id->context;

	if (!peer)
		return NULL;
	if (peer->kind == VRB_KIND_LISTENER)
		vrb_listener_get((struct vrb_listener *)peer);
	else
		vrb_conn_get((struct vrb_conn *)peer);
	return peer;
}

/* Makes the connection of a request, before further events of the request can arrive. */
static struct vrb_conn *event_conn(struct vrb_adapter *adapter, const struct rdma_cm_event *event)
{
	struct vrb_conn *conn = NULL;

	if (vrb_conn_create(adapter, VRB_REQUESTED, &conn))
		conn = NULL;
	event->id->context = conn;
	return conn;
}

static void removed(struct vrb_adapter *adapter)
{
	core_log(CORE_LOG_CONN, "%s: the device is removed", adapter->ia->device);
	atomic_fetch_or(&adapter->device_events, 1u << IBV_EVENT_DEVICE_FATAL);
}

/* Handles one event. False: there is none. */
static bool cm_event(struct vrb_adapter *adapter)
{
	struct rdma_cm_event *event;
	struct vrb_conn *conn = NULL;
	struct vrb_cm_event copy;
	struct vrb_peer *peer;
	bool is_request;

	if (rdma_get_cm_event(adapter->channel, &event))
		return false;
	event_copy(event, &copy);
	is_request = copy.type == RDMA_CM_EVENT_CONNECT_REQUEST;
	peer = event_peer(event);
	if (is_request)
		conn = event_conn(adapter, event);
	(void)rdma_ack_cm_event(event);

	if (copy.type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		removed(adapter);
	if (is_request && conn && peer) {
		vrb_listener_event((struct vrb_listener *)peer, &copy, conn);
	} else if (is_request) {
		(void)rdma_reject(copy.id, NULL, 0);
		(void)rdma_destroy_id(copy.id);
	} else if (peer && peer->kind == VRB_KIND_CONN) {
		conn_event((struct vrb_conn *)peer, &copy);
	}
	if (peer && peer->kind == VRB_KIND_LISTENER)
		vrb_listener_put((struct vrb_listener *)peer);
	else if (peer)
		vrb_conn_put((struct vrb_conn *)peer);
	return true;
}

static void handle_cm_events(struct vrb_adapter *adapter)
{
	for (int i = 0; i < VRB_CM_EVENTS_MAX && cm_event(adapter); i++)
		;
}

/* --- deadlines --- */

static void due_established(struct vrb_conn *conn, struct core_ep *ep, uint64_t now_ns)
{
	bool is_dead = atomic_load(&conn->adapter->is_dead);
	bool is_timed_out = now_ns >= conn->end.flush_ns;

	if (is_dead || is_timed_out || conn->end.has_failed) {
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
		vrb_conn_try_finish(conn, ep, is_dead);
	} else if (conn->end.flush_ns != VRB_NEVER) {
		/* the deadline was set for another reason, which the flush has made obsolete */
		vrb_conn_set_deadline(conn, conn->end.flush_ns);
	} else {
		vrb_confirm_retry(conn, ep);
		vrb_post_requests(conn, ep);
	}
}

/* Handles a deadline of a connection that has passed. */
static void conn_due(struct vrb_conn *conn, struct core_ep *ep, uint64_t now_ns)
{
	DAT_EVENT_NUMBER failure = VRB_GOES_ON;

	switch (conn->state) {
	case VRB_RESOLVING:
	case VRB_CONNECTING:
		failure = vrb_active_due(conn, now_ns);
		break;
	case VRB_ACCEPTED:
		failure = vrb_passive_due(conn, now_ns);
		break;
	case VRB_ESTABLISHED:
		due_established(conn, ep, now_ns);
		break;
	case VRB_CLOSING:
		vrb_conn_try_finish(conn, ep, true);
		break;
	default:
		break;
	}
	if (failure)
		vrb_conn_fail(conn, ep, failure);
}

/* False: deadlines have passed, but completions have to be dispatched first (SRQ-USE-05). */
static bool serve_deadlines(struct vrb_adapter *adapter)
{
	uint64_t now = core_now_ns();
	struct vrb_conn *conn;
	struct core_ep *ep;

	if (now < atomic_load(&adapter->deadline_ns))
		return true;
	if (!vrb_poll_arrived(adapter))
		return false;
	while ((conn = vrb_conn_next_due(adapter, now))) {
		ep = vrb_conn_enter(conn);
		if (ep) {
			conn_due(conn, ep, now);
			vrb_conn_leave(ep);
		} else {
			vrb_conn_linger_due(conn);
		}
		vrb_conn_put(conn);
	}
	return true;
}

enum source {
	SOURCE_WAKE,
	SOURCE_CM,
	SOURCE_DEVICE,
	SOURCE_COMPLETION,
	SOURCES,
};

/* What the thread knows about completions. */
struct watch {
	uint32_t pause_ms; /* until the next check */
	bool is_armed;	   /* the device wakes the thread */
	bool is_late;	   /* deadlines have passed that could not be served */
};

/* --- completions --- */

static void take_wakeups(struct vrb_adapter *adapter)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(adapter->completions, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}

/* Arms the queues, because no thread has polled since the last check. */
static void arm(struct vrb_adapter *adapter, struct watch *watch)
{
	watch->is_armed = !vrb_poll_arm(adapter);
	watch->pause_ms = VRB_TICK_MS;
}

/*
 * Called while a consumer thread polls or posts. A thread that only posts polls only when its queue
 * is full, so this polls in its place. A thread that sleeps must not wait until another consumer
 * thread polls, so this polls for it, too.
 */
static void watch_consumer(struct vrb_adapter *adapter, struct watch *watch, bool has_polled,
			   bool is_over)
{
	bool has_sleepers = atomic_load_explicit(&adapter->ia->sleepers, memory_order_relaxed) > 0;

	if (has_sleepers || !has_polled)
		(void)vrb_poll(adapter);
	if (has_sleepers)
		watch->pause_ms = VRB_TICK_MS;
	else if (is_over && watch->pause_ms < VRB_TICK_MAX_MS)
		watch->pause_ms *= 2;
}

/*
 * Takes completions unless another thread does. Afterwards the queues are armed, another thread
 * polls, or the next check is due after a tick. is_over: the interval has ended without any event.
 */
static void watch_completions(struct vrb_adapter *adapter, struct watch *watch, bool is_woken,
			      bool is_over)
{
	bool has_polled = vrb_cq_was_polled(adapter);
	bool has_posted =
		atomic_exchange_explicit(&adapter->has_posted, false, memory_order_relaxed);

	if (is_woken) {
		watch->is_armed = false;
		watch->pause_ms = VRB_TICK_MS;
		/* the waiter that polled last may be asleep by now */
		(void)vrb_poll(adapter);
		/*
		 * A consumer thread takes what was just dispatched without polling. If each
		 * completion woke this thread again, the consumer would never have to poll. So the
		 * consumer gets one tick to do so.
		 */
		if (!atomic_load_explicit(&adapter->ia->sleepers, memory_order_relaxed))
			return;
	}
	if (watch->is_armed)
		return;
	if (has_polled || has_posted)
		watch_consumer(adapter, watch, has_polled, is_over);
	else
		arm(adapter, watch);
}

static uint64_t wait_ns(const struct vrb_adapter *adapter, const struct watch *watch)
{
	uint64_t deadline = atomic_load(&adapter->deadline_ns);
	uint64_t most = watch->is_armed ? CORE_WAIT_NO_LIMIT : watch->pause_ms * VRB_NS_PER_MS;
	uint64_t left = core_wait_until(deadline, deadline == VRB_NEVER ? 0 : core_now_ns());

	if (!left)
		return watch->is_late ? VRB_TICK_MS * VRB_NS_PER_MS : 0;
	return left < most ? left : most;
}

/* --- the thread --- */

static bool serve_source(struct vrb_adapter *adapter, enum source source)
{
	switch (source) {
	case SOURCE_WAKE:
		core_service_kicked(&adapter->service);
		break;
	case SOURCE_CM:
		handle_cm_events(adapter);
		break;
	case SOURCE_DEVICE:
		read_device_events(adapter);
		break;
	default:
		take_wakeups(adapter);
		return true;
	}
	return false;
}

static void service_end(void *adapter)
{
	vrb_adapter_put(adapter);
}

static void *service_run(void *argument)
{
	struct vrb_adapter *adapter = argument;
	struct epoll_event events[SOURCES];
	struct watch watch = {.pause_ms = VRB_TICK_MS};

	(void)core_cancel_off();
	pthread_cleanup_push(service_end, adapter);
	while (!atomic_load(&adapter->is_stopping)) {
		int count = core_service_wait(&adapter->service, events, SOURCES,
					      wait_ns(adapter, &watch), CORE_WAIT_NO_LIMIT);
		bool is_woken = false;

		for (int i = 0; i < count; i++)
			is_woken |= serve_source(adapter, (enum source)events[i].data.u32);
		if (atomic_load(&adapter->is_stopping))
			break;
		handle_device_events(adapter);
		if (atomic_exchange(&adapter->is_serving, false))
			core_srq_serve_all(adapter->ia);
		watch.is_late = !serve_deadlines(adapter);
		watch_completions(adapter, &watch, is_woken, count <= 0);
	}
	pthread_cleanup_pop(true);
	return NULL;
}

static int watch_fd(struct vrb_adapter *adapter, int fd, enum source source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return epoll_ctl(adapter->service.epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int watch_all(struct vrb_adapter *adapter)
{
	struct core_service *service = &adapter->service;
	int rc;

	service->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (service->epoll_fd < 0)
		return -errno;
	service->kick_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (service->kick_fd < 0)
		return -errno;
	rc = core_service_watch_kicks(service, (epoll_data_t){.u32 = SOURCE_WAKE});
	if (!rc)
		rc = watch_fd(adapter, adapter->channel->fd, SOURCE_CM);
	if (!rc)
		rc = watch_fd(adapter, adapter->context->async_fd, SOURCE_DEVICE);
	if (!rc)
		rc = watch_fd(adapter, adapter->completions->fd, SOURCE_COMPLETION);
	return rc;
}

static void close_all(struct vrb_adapter *adapter)
{
	if (adapter->service.kick_fd >= 0)
		close(adapter->service.kick_fd);
	if (adapter->service.epoll_fd >= 0)
		close(adapter->service.epoll_fd);
}

int vrb_service_start(struct vrb_adapter *adapter)
{
	static const struct core_service_form form = {.name = "dat-verbs", .run = service_run};
	int rc = watch_all(adapter);

	if (!rc) {
		vrb_adapter_get(adapter); /* the thread's reference */
		rc = core_service_start(&adapter->service, adapter->ia, &form, adapter);
		if (rc)
			vrb_adapter_put(adapter);
	}
	if (rc)
		close_all(adapter);
	return rc;
}

void vrb_service_stop(struct vrb_adapter *adapter)
{
	atomic_store(&adapter->is_stopping, true);
	/* never called by that thread, which runs no consumer code */
	core_service_stop(&adapter->service);
	close_all(adapter);
}
