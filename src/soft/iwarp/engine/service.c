// SPDX-License-Identifier: BSD-2-Clause
/*
 * The loop of the service thread: it accepts connections, drives set-ups, connections that no
 * thread polls and those that have ended, and keeps their deadlines. Before it: polls by threads of
 * the consumer, and the connections that they drive.
 */
#include "soft/iwarp/engine/service.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/driven.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/connect/setup.h"
#include "soft/iwarp/connect/ep.h"
#include "soft/iwarp/connect/listen.h"
#include "soft/iwarp/connect/request.h"
#include "soft/iwarp/engine.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/transfer/segment.h"
#include "soft/iwarp/transfer/access.h"
#include "soft/iwarp/transfer/tx.h"
#include "soft/soft.h"

#define PASSES_MAX 16u	  /* connections that one poll drives */
#define IDLE_POLLS 20000u /* a connection without work for so many polls is armed */

/* Leaves a connection to the threads that poll. EP locked. */
static void begin_polls(struct iw_conn *conn)
{
	if (!conn->is_polled && iw_pass_watch_polled(conn) >= 0)
		iw_engine_add_polled(conn->engine, conn);
}

static void end_polls(struct iw_engine *engine, struct iw_conn *conn)
{
	if (iw_engine_remove_polled(engine, conn))
		iw_conn_put(conn);
}

/* Has epoll wait for it again. EP locked. */
static void arm(struct iw_engine *engine, struct iw_conn *conn, struct core_ep *ep)
{
	end_polls(engine, conn);
	if (iw_conn_state(conn) != IW_ESTABLISHED)
		return;
	iw_tx_tell(conn, ep);
	iw_pass_watch(conn);
	/* epoll does not report what was read already, nor what a send has found */
	if (conn->has_more || conn->is_lost)
		iw_conn_serve_later(conn);
}

static int drive(struct iw_engine *engine, struct iw_conn *conn)
{
	struct core_ep *ep = iw_conn_enter(conn);
	int handled = 0;

	if (!ep) {
		end_polls(engine, conn);
		return 0;
	}
	if (iw_conn_state(conn) == IW_ESTABLISHED) {
		conn->moved = 0;
		if (!iw_poll_fast(conn, ep, &handled))
			handled = iw_conn_run(conn, ep, handled);
		iw_engine_count_pass(engine, conn->moved);
	}
	if (handled)
		conn->idle_polls = 0;
	else if (conn->is_polled && ++conn->idle_polls >= IDLE_POLLS)
		arm(engine, conn, ep);
	core_ep_leave(ep);
	return handled;
}

static void send_held(struct iw_engine *engine)
{
	uint32_t count = atomic_load_explicit(&engine->held_count, memory_order_relaxed);

	for (; count; count--) {
		struct iw_conn *conn;
		struct core_ep *ep;

		conn = iw_engine_take_held(engine);
		if (!conn)
			break;
		ep = iw_conn_enter(conn);
		if (ep && iw_conn_state(conn) == IW_ESTABLISHED)
			iw_pass_requests(conn, ep);
		if (ep)
			core_ep_leave(ep);
		iw_conn_put(conn);
	}
}

/* --- all of them --- */

/* The caller keeps the instance alive: it holds an EVD or a CNO of it. */
int iw_engine_progress(struct iw_engine *engine)
{
	uint32_t count = atomic_load_explicit(&engine->polled_count, memory_order_relaxed);
	int handled = 0;

	send_held(engine);
	if (count > PASSES_MAX)
		count = PASSES_MAX;
	for (; count; count--) {
		struct iw_conn *conn = iw_engine_next_polled(engine);

		if (!conn)
			break;
		handled += drive(engine, conn);
		iw_conn_put(conn);
	}
	return handled;
}

void iw_engine_arm(struct iw_engine *engine)
{
	struct iw_conn *conn;

	send_held(engine);
	while ((conn = iw_engine_next_polled(engine)) != NULL) {
		struct core_ep *ep = iw_conn_enter(conn);

		if (ep) {
			arm(engine, conn, ep);
			core_ep_leave(ep);
		} else {
			end_polls(engine, conn);
		}
		iw_conn_put(conn);
	}
}

void iw_engine_unattended(struct iw_engine *engine)
{
	/* sequentially consistent, like the store of is_unattended: one side sees the other's */
	if (atomic_load(&engine->polled_count))
		core_service_kick(&engine->service);
}

/* ==== the service thread ==== */

#define STOP_TICK_US 500u
#define STOP_NS 1000000000u	/* longest time that the end of an adapter waits for peers */
#define WATCH_NS 250000u	/* for so long polls are counted while a message waits */
#define WATCH_SPIN_NS 3000u	/* the first part of it, without sleeping */
#define WATCH_SLICE_NS 25000	/* the others */
#define WATCH_POLLS 2		/* so many must come */
#define PAUSE_NS 20000000u	/* after a failure, before polls are counted again */
#define POLLED_LEAST_NS 2000000 /* polls that end sooner are a failure, too */

struct service {
	struct iw_engine *engine;
	uint64_t since_ns;   /* when a thread that polls got the first connection */
	uint64_t seen_polls; /* when they were last watched */
	uint64_t watch_ns;   /* the earliest time to watch the polls again */
};

/* --- does a thread of the consumer poll? --- */

static void note_failure(struct service *service)
{
	service->watch_ns = core_now_ns() + PAUSE_NS;
}

/* Gives the polling thread time to poll, though it may share its processor with this one. */
static void watch_pause(uint64_t begin)
{
	const struct timespec slice = {.tv_nsec = WATCH_SLICE_NS};

	if (core_now_ns() - begin >= WATCH_SPIN_NS)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &slice, NULL);
}

/*
 * Calls of the consumer that drive a polled connection: polls, and posts, of which large ones and
 * those that find the queue full read the socket. A thread that posts small messages polls when the
 * queue is full, at the latest.
 */
static uint64_t calls_of(const struct iw_engine *engine)
{
	return soft_polls(engine->adapter) +
	       atomic_load_explicit(&engine->posts, memory_order_relaxed);
}

/*
 * Does a thread poll while a message waits in its socket? A thread that polls its memory for the
 * end of a message calls nothing before the message has been placed (COMPAT-46).
 */
static bool watch_polls(struct service *service)
{
	const struct soft_adapter *adapter = service->engine->adapter;
	uint64_t polls = calls_of(service->engine);
	uint64_t begin = core_now_ns();

	if (begin < service->watch_ns || polls == service->seen_polls)
		return false;
	service->seen_polls = polls;
	for (;;) {
		if (soft_is_unattended(adapter))
			return false;
		/* concurrent polls may step the total back */
		if ((int64_t)(calls_of(service->engine) - polls) >= WATCH_POLLS)
			return true;
		if (core_now_ns() - begin >= WATCH_NS)
			break;
		watch_pause(begin);
	}
	note_failure(service);
	return false;
}

/* A connection has events. Is it left to a thread that polls? */
static bool is_left_to_pollers(struct service *service)
{
	struct iw_engine *engine = service->engine;
	uint64_t now;

	if (atomic_load(&engine->polled_count))
		return true;
	if (!watch_polls(service))
		return false;
	now = core_now_ns();
	service->since_ns = now;
	soft_driven_begin(&engine->driven, now);
	return true;
}

/* For how long threads drive the polled connections yet. A thread that sleeps has armed its own. */
static uint64_t driven_left(const struct iw_engine *engine, uint64_t now)
{
	return soft_is_unattended(engine->adapter) ? 0 : soft_driven_left(&engine->driven, now);
}

/* Takes the polled connections back if no thread polls them any more. */
static void check_pollers(struct service *service)
{
	struct iw_engine *engine = service->engine;

	if (!atomic_load(&engine->polled_count) || driven_left(engine, core_now_ns()))
		return;
	/* not until now: the end of the polls may be noticed late */
	if ((int64_t)(soft_driven_last(&engine->driven) - service->since_ns) < POLLED_LEAST_NS)
		note_failure(service);
	iw_engine_arm(engine);
}

/* --- one connection --- */

static void serve_data(struct service *service, struct iw_conn *conn, uint32_t events)
{
	/* asked with the endpoint unlocked, because it may take a while */
	bool is_left = events && !(events & (EPOLLERR | EPOLLHUP)) && is_left_to_pollers(service);
	struct core_ep *ep = iw_conn_enter(conn);

	if (!ep)
		return;
	if (events & (EPOLLERR | EPOLLHUP))
		conn->is_hung_up = true;
	/* a reset shows these events, too */
	if ((events & EPOLLRDHUP) && !conn->is_hung_up && conn->stream.rx.is_blocked)
		iw_message_end_of_stream(conn);
	if (!events)
		iw_alive_due(conn);
	if (iw_conn_state(conn) == IW_ESTABLISHED && !conn->is_hung_up && !conn->is_polled &&
	    is_left)
		begin_polls(conn);
	else
		(void)iw_conn_run(conn, ep, 0);
	core_ep_leave(ep);
}

static void setup_event(struct iw_conn *conn, uint32_t events)
{
	struct core_ep *ep;

	/* each step finds out itself what there is to do */
	if (iw_conn_state(conn) == IW_ARRIVING) {
		iw_arriving_event(conn);
		return;
	}
	ep = iw_conn_enter(conn);
	if (!ep)
		return;
	switch (iw_conn_state(conn)) { /* another thread may have ended it before */
	case IW_CONNECTING:
	case IW_REQUESTED:
		iw_request_event(conn, ep);
		break;
	case IW_ACCEPTED:
		if (events & (EPOLLERR | EPOLLHUP))
			conn->is_hung_up = true; /* for the passes to come */
		iw_accepted_event(conn, ep);
		break;
	default:
		break;
	}
	core_ep_leave(ep);
}

static void setup_due(struct iw_conn *conn, uint64_t now)
{
	struct core_ep *ep;

	if (iw_conn_state(conn) == IW_ARRIVING) {
		if (now >= conn->give_up_ns) /* IWCM-25 */
			iw_setup_drop(conn);
		else
			iw_conn_set_deadline(conn, conn->give_up_ns);
		return;
	}
	ep = iw_conn_enter(conn);
	if (!ep)
		return;
	switch (iw_conn_state(conn)) {
	case IW_CONNECTING:
	case IW_REQUESTED:
		iw_request_due(conn, ep, now);
		break;
	case IW_ACCEPTED:
		iw_accepted_due(conn, ep, now);
		break;
	default:
		break;
	}
	core_ep_leave(ep);
}

static void serve(struct service *service, struct iw_conn *conn, uint32_t events)
{
	switch (iw_conn_state(conn)) {
	case IW_CONNECTING:
	case IW_REQUESTED:
	case IW_ARRIVING:
	case IW_OFFERED:
	case IW_ACCEPTED:
		if (events)
			setup_event(conn, events);
		else
			setup_due(conn, core_now_ns());
		break;
	case IW_ESTABLISHED:
	case IW_CLOSING:
		serve_data(service, conn, events);
		break;
	case IW_LINGERING:
		iw_linger(conn);
		break;
	}
}

/* --- deadlines and requests of other threads --- */

static void serve_attended(struct soft_attended *attended, void *argument)
{
	struct iw_conn *conn = iw_conn_of_attended(attended);

	if (attended->is_listener) {
		iw_listener_serve(attended);
		return;
	}
	serve(argument, conn, 0);
	iw_conn_put(conn);
}

static void put_attended(struct soft_attended *attended, void *unused)
{
	(void)unused;
	if (attended->is_listener)
		iw_listener_serve(attended);
	else
		iw_conn_put(iw_conn_of_attended(attended));
}

/* --- the loop --- */

static int wait_for_events(struct iw_engine *engine, struct epoll_event *events)
{
	uint64_t now = core_now_ns();
	uint64_t left = core_wait_until(atomic_load(&engine->attention.deadline_ns), now);
	uint64_t late = CORE_WAIT_NO_LIMIT;

	/* is there still a thread that polls? */
	if (atomic_load(&engine->polled_count))
		late = driven_left(engine, now);
	return core_service_wait(&engine->service, events, IW_EVENTS, left, late);
}

static void serve_events(struct service *service)
{
	struct iw_engine *engine = service->engine;
	struct epoll_event events[IW_EVENTS];
	int count = wait_for_events(engine, events);
	int i;

	for (i = 0; i < count; i++) {
		struct soft_attended *attended = events[i].data.ptr;

		if (!attended)
			core_service_kicked(&engine->service);
		else if (attended->is_listener)
			iw_listener_event(attended);
		else
			serve(service, iw_conn_of_attended(attended), events[i].events);
	}
	/* one that goes on without end does not keep the thread from the others (IWCM-46) */
	soft_attention_serve_asking(&engine->attention, serve_attended, service);
	soft_attention_serve_due(&engine->attention, core_now_ns(), serve_attended, service);
	check_pollers(service);
}

static bool is_any_left(struct iw_engine *engine)
{
	bool is_any;

	core_lock_acquire(&engine->attention.lock);
	is_any = engine->attention.first != NULL;
	core_lock_release(&engine->attention.lock);
	return is_any;
}

/* Of the thread, which may have been cancelled (core_service_stop). */
static void service_end(void *argument)
{
	struct service *service = argument;
	struct iw_engine *engine = service->engine;
	uint64_t limit;

	core_service_ends(&engine->service);
	/*
	 * bytes that peers have not taken yet are lost when their socket is closed with unread data
	 */
	iw_setup_drop_all(engine, NULL);
	limit = core_now_ns() + STOP_NS;
	while (is_any_left(engine) && core_now_ns() < limit) {
		iw_linger_all(engine);
		serve_events(service);
		if (is_any_left(engine))
			usleep(STOP_TICK_US);
	}
	iw_linger_end_all(engine);
	soft_attention_serve_asking(&engine->attention, put_attended, NULL);
	iw_engine_put(engine);
}

static void *run(void *argument)
{
	struct service service = {.engine = argument};

	(void)core_cancel_off();
	soft_is_library_thread = true;
	pthread_cleanup_push(service_end, &service);
	while (!atomic_load(&service.engine->is_stopping))
		serve_events(&service);
	pthread_cleanup_pop(true);
	return NULL;
}

static int start_locked(struct iw_engine *engine)
{
	int rc = soft_thread_open(&engine->service);

	if (rc < 0) {
		soft_thread_close(&engine->service);
		return rc;
	}
	iw_engine_get(engine); /* the thread's */
	rc = soft_thread_start(&engine->service, engine->ia, "dat-tcp", run, engine);
	if (rc < 0) {
		iw_engine_put(engine);
		soft_thread_close(&engine->service);
		return rc;
	}
	atomic_store(&engine->is_started, true);
	return 0;
}

int iw_engine_start(struct iw_engine *engine)
{
	int rc = 0;

	if (atomic_load(&engine->is_started))
		return 0;
	pthread_mutex_lock(&engine->start_lock);
	if (!atomic_load(&engine->is_started))
		rc = start_locked(engine);
	pthread_mutex_unlock(&engine->start_lock);
	return rc;
}
