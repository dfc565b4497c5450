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
#include "verbs/service.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/transport.h"
#include "core/ep/ep.h"
#include "verbs/conn.h"
#include "verbs/cq.h"
#include "verbs/device.h"
#include "verbs/setup.h"
#include "verbs/table.h"

#define TICK_MS 1	 /* the first interval between two checks of a consumer that polls */
#define TICK_MAX_MS 32u	 /* the longest; each is twice the one before */
#define LOST_MS 100	 /* between two looks without descriptors */
#define CM_EVENTS_MAX 64 /* events in a row, so that completions get their turn */

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

/*
 * Enables the event of the descriptor, which is always readable, once. Unlike a write this changes
 * no file of the consumer that has the number of ours, because the consumer has closed it. False:
 * then it cannot wake the thread.
 */
static bool enable_wake(struct vrb_adapter *adapter)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = SOURCE_WAKE};

	return epoll_ctl(adapter->epoll_fd, EPOLL_CTL_MOD, adapter->wake_fd, &event) == 0;
}

void vrb_service_wake(struct vrb_adapter *adapter)
{
	if (!atomic_exchange(&adapter->is_woken_up, true) && !enable_wake(adapter)) {
		atomic_store(&adapter->is_woken_up, false);
		core_log(CORE_LOG_ERROR, "service thread: no wake-up: %m");
	}
}

static void take_wake(struct vrb_adapter *adapter)
{
	/* before this thread checks for the work that it was woken for */
	atomic_store(&adapter->is_woken_up, false);
}

/* --- the connection manager --- */

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
		vrb_setup_event((struct vrb_conn *)peer, &copy);
	}
	if (peer && peer->kind == VRB_KIND_LISTENER)
		vrb_listener_put((struct vrb_listener *)peer);
	else if (peer)
		vrb_conn_put((struct vrb_conn *)peer);
	return true;
}

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
	watch->is_armed = !vrb_cq_arm(adapter);
	watch->pause_ms = TICK_MS;
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
		(void)vrb_cq_progress(adapter);
	if (has_sleepers)
		watch->pause_ms = TICK_MS;
	else if (is_over && watch->pause_ms < TICK_MAX_MS)
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
		watch->pause_ms = TICK_MS;
		/* the waiter that polled last may be asleep by now */
		(void)vrb_cq_progress(adapter);
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

/* --- deadlines --- */

/* False: deadlines have passed, but completions have to be dispatched first (SRQ-USE-05). */
static bool serve_due(struct vrb_adapter *adapter)
{
	uint64_t now = core_now_ns();
	struct vrb_conn *conn;
	struct core_ep *ep;

	if (now < atomic_load(&adapter->deadline_ns))
		return true;
	if (!vrb_cq_take_arrived(adapter))
		return false;
	while ((conn = vrb_conn_next_due(adapter, now))) {
		ep = vrb_conn_enter(conn);
		if (ep) {
			vrb_setup_due(conn, ep, now);
			vrb_conn_leave(ep);
		}
		vrb_conn_put(conn);
	}
	return true;
}

static int wait_ms(const struct vrb_adapter *adapter, const struct watch *watch)
{
	uint64_t deadline = atomic_load(&adapter->deadline_ns);
	uint64_t most = watch->is_armed ? 60000 : watch->pause_ms;
	uint64_t now, ms;

	if (deadline == VRB_NEVER)
		return watch->is_armed ? -1 : (int)most;
	now = core_now_ns();
	if (deadline <= now)
		return watch->is_late ? TICK_MS : 0;
	ms = (deadline - now + VRB_NS_PER_MS - 1) / VRB_NS_PER_MS;
	return ms > most ? (int)most : (int)ms;
}

/* --- the thread --- */

static bool serve_source(struct vrb_adapter *adapter, enum source source)
{
	switch (source) {
	case SOURCE_WAKE:
		take_wake(adapter);
		break;
	case SOURCE_CM:
		for (int i = 0; i < CM_EVENTS_MAX && cm_event(adapter); i++)
			;
		break;
	case SOURCE_DEVICE:
		vrb_device_read_events(adapter);
		break;
	default:
		take_wakeups(adapter);
		return true;
	}
	return false;
}

/* Waits as epoll_wait does. The thread can be cancelled in here, and nowhere else. */
static int wait_for_events(const struct vrb_adapter *adapter, struct epoll_event *events, int ms)
{
	int count, error, state;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	count = epoll_wait(adapter->epoll_fd, events, SOURCES, ms);
	error = errno;
	pthread_setcancelstate(state, NULL);
	if (count >= 0 || error == EINTR)
		return count;
	/* the consumer has closed the descriptors (GEN-41): looks for work at intervals */
	(void)poll(NULL, 0, ms < 0 || ms > LOST_MS ? LOST_MS : ms ? ms : TICK_MS);
	return 0;
}

static void service_end(void *adapter)
{
	vrb_adapter_put(adapter);
}

static void *service_run(void *argument)
{
	struct vrb_adapter *adapter = argument;
	struct epoll_event events[SOURCES];
	struct watch watch = {.pause_ms = TICK_MS};

	(void)core_cancel_off();
	pthread_cleanup_push(service_end, adapter);
	while (!atomic_load(&adapter->is_stopping)) {
		int count = wait_for_events(adapter, events, wait_ms(adapter, &watch));
		bool is_woken = false;

		for (int i = 0; i < count; i++)
			is_woken |= serve_source(adapter, (enum source)events[i].data.u32);
		if (atomic_load(&adapter->is_stopping))
			break;
		vrb_device_handle_events(adapter);
		if (atomic_exchange(&adapter->is_serving, false))
			core_srq_serve_all(adapter->ia);
		watch.is_late = !serve_due(adapter);
		watch_completions(adapter, &watch, is_woken, count == 0);
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
	return epoll_ctl(adapter->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int watch_all(struct vrb_adapter *adapter)
{
	struct epoll_event wake = {.events = EPOLLONESHOT, .data.u32 = SOURCE_WAKE};
	int rc = 0;

	if (epoll_ctl(adapter->epoll_fd, EPOLL_CTL_ADD, adapter->wake_fd, &wake) < 0)
		rc = -errno;
	if (!rc)
		rc = watch_fd(adapter, adapter->channel->fd, SOURCE_CM);
	if (!rc)
		rc = watch_fd(adapter, adapter->context->async_fd, SOURCE_DEVICE);
	if (!rc)
		rc = watch_fd(adapter, adapter->completions->fd, SOURCE_COMPLETION);
	return rc;
}

int vrb_service_start(struct vrb_adapter *adapter)
{
	const struct core_thread_form form = {.name = "dat-verbs",
					      .sched = adapter->ia->sched,
					      .cpus = &adapter->ia->settings.service_cpus};
	int rc;

	adapter->wake_fd = -1;
	adapter->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (adapter->epoll_fd < 0)
		return -errno;
	adapter->wake_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = adapter->wake_fd < 0 ? -errno : watch_all(adapter);
	if (!rc) {
		vrb_adapter_get(adapter); /* the thread's reference */
		rc = core_thread_create(&adapter->thread, &form, service_run, adapter);
		if (rc)
			vrb_adapter_put(adapter);
	}
	if (rc && adapter->wake_fd >= 0)
		close(adapter->wake_fd);
	if (rc)
		close(adapter->epoll_fd);
	return rc;
}

void vrb_service_stop(struct vrb_adapter *adapter)
{
	atomic_store(&adapter->is_stopping, true);
	/* it sleeps on descriptors that the consumer has closed */
	if (!enable_wake(adapter))
		pthread_cancel(adapter->thread);
	/* never called by that thread, which runs no consumer code */
	pthread_join(adapter->thread, NULL);
	close(adapter->wake_fd);
	close(adapter->epoll_fd);
}
