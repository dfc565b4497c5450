// SPDX-License-Identifier: BSD-2-Clause
/*
 * The loop of the service thread. It accepts connections, drives set-ups, connections that no
 * thread polls and those that have ended, and keeps their deadlines.
 */
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/driven.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/connect/close.h"
#include "soft/iwarp/connect/setup.h"
#include "soft/iwarp/engine/engine.h"
#include "soft/iwarp/transfer/alive.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/transfer/segment.h"
#include "soft/soft.h"

#define DUE_MAX 64u
#define STOP_TICK_US 500u
#define STOP_NS 1000000000u	 /* longest time that the end of an adapter waits for peers */
#define WATCH_NS 250000u	 /* for so long polls are counted while a message waits */
#define WATCH_SPIN_NS 3000u	 /* the first part of it, without sleeping */
#define WATCH_SLICE_NS 25000	 /* the others */
#define WATCH_POLLS 2		 /* so many must come */
#define PAUSE_LEAST_NS 10000000u /* after a failure, twice as long after each further one */
#define PAUSE_MOST_NS 100000000u
#define POLLED_LEAST_NS 2000000 /* polls that end sooner are a failure, too */

struct service {
	struct iw_engine *engine;
	uint64_t since_ns;   /* when a thread that polls got the first connection */
	uint64_t seen_polls; /* when they were last watched */
	uint64_t watch_ns;   /* the earliest time to watch the polls again */
	uint64_t pause_ns;
};

/* --- does a thread of the consumer poll? --- */

static void note_failure(struct service *service)
{
	service->watch_ns = core_now_ns() + service->pause_ns;
	if (service->pause_ns < PAUSE_MOST_NS)
		service->pause_ns *= 2;
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
	int64_t polled_ns;

	if (!atomic_load(&engine->polled_count))
		return;
	/* not until now: the end of the polls may be noticed late */
	polled_ns = (int64_t)(soft_driven_last(&engine->driven) - service->since_ns);
	if (polled_ns >= POLLED_LEAST_NS)
		service->pause_ns = PAUSE_LEAST_NS;
	if (driven_left(engine, core_now_ns()))
		return;
	if (polled_ns < POLLED_LEAST_NS)
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
	if (!events) {
		iw_alive_due(conn);
		iw_hold_due(&conn->stream.tx.hold);
	}
	if (iw_conn_state(conn) == IW_CLOSING)
		iw_conn_finish(conn, ep);
	else if (!conn->is_hung_up && !conn->is_polled && is_left)
		iw_engine_add_polled(service->engine, conn);
	else
		iw_pass(conn, ep);
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
			iw_setup_event(conn, events);
		else
			iw_setup_due(conn, core_now_ns());
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

/* Takes the first of a list that was detached from the engine, which may add it again from now on.
 */
static struct iw_conn *next_pending(struct iw_engine *engine, struct iw_conn **first)
{
	struct iw_conn *conn = *first;

	if (!conn)
		return NULL;
	core_lock_acquire(&engine->lock);
	*first = conn->next_pending;
	conn->is_pending = false;
	core_lock_release(&engine->lock);
	return conn;
}

/* Each once: one that goes on without end must not keep the thread from the others (IWCM-46). */
static void serve_pending(struct service *service)
{
	struct iw_engine *engine = service->engine;
	struct iw_conn *first, *conn;

	core_lock_acquire(&engine->lock);
	first = engine->pending_first;
	engine->pending_first = NULL;
	core_lock_release(&engine->lock);
	while ((conn = next_pending(engine, &first)) != NULL) {
		serve(service, conn, 0);
		iw_conn_put(conn);
	}
}

/* Up to DUE_MAX connections whose deadline has passed, with a reference each. */
static unsigned find_due(struct iw_engine *engine, uint64_t now, struct iw_conn *due[DUE_MAX])
{
	unsigned count = 0;
	struct iw_conn *conn;

	core_lock_acquire(&engine->lock);
	for (conn = engine->first; conn && count < DUE_MAX; conn = conn->next) {
		uint64_t deadline = atomic_load(&conn->deadline_ns);

		if (!deadline || deadline > now || !iw_conn_get_unless_dead(conn))
			continue;
		/* it fires once; a deadline that another thread has set meanwhile stays */
		atomic_compare_exchange_strong(&conn->deadline_ns, &deadline, 0);
		due[count++] = conn;
	}
	core_lock_release(&engine->lock);
	return count;
}

/* Computes the earliest deadline of all again. */
static void update_deadline(struct iw_engine *engine)
{
	uint64_t earliest = UINT64_MAX;
	struct iw_conn *conn;

	core_lock_acquire(&engine->lock);
	for (conn = engine->first; conn; conn = conn->next) {
		uint64_t deadline = atomic_load(&conn->deadline_ns);

		if (deadline && deadline < earliest)
			earliest = deadline;
	}
	core_lock_release(&engine->lock);
	if (earliest != UINT64_MAX)
		iw_engine_lower_deadline(engine, earliest);
}

static void serve_deadlines(struct service *service)
{
	struct iw_engine *engine = service->engine;
	uint64_t now = core_now_ns();
	struct iw_conn *due[DUE_MAX];
	unsigned count, i;

	if (now < atomic_load(&engine->deadline_ns))
		return;
	/* before the scan: a thread that sets a deadline stores it in the connection first */
	atomic_store(&engine->deadline_ns, UINT64_MAX);
	do {
		count = find_due(engine, now, due);
		for (i = 0; i < count; i++) {
			serve(service, due[i], 0);
			iw_conn_put(due[i]);
		}
	} while (count == DUE_MAX);
	update_deadline(engine);
}

/* --- the loop --- */

static int wait_for_events(struct iw_engine *engine, struct epoll_event *events)
{
	uint64_t now = core_now_ns();
	uint64_t left = soft_wait_until(atomic_load(&engine->deadline_ns), now);
	uint64_t late = SOFT_WAIT_NO_LIMIT;

	/* is there still a thread that polls? */
	if (atomic_load(&engine->polled_count))
		late = driven_left(engine, now);
	return soft_thread_wait(&engine->service, events, IW_EVENTS, left, late);
}

static void serve_events(struct service *service)
{
	struct iw_engine *engine = service->engine;
	struct epoll_event events[IW_EVENTS];
	int count = wait_for_events(engine, events);
	int i;

	for (i = 0; i < count; i++) {
		struct iw_watch *watch = events[i].data.ptr;

		switch (watch->kind) {
		case IW_KIND_KICK:
			soft_thread_kicked(&engine->service);
			break;
		case IW_KIND_LISTENER:
			iw_listener_event((struct iw_listener *)watch);
			break;
		case IW_KIND_CONN:
			serve(service, (struct iw_conn *)watch, events[i].events);
			break;
		}
	}
	serve_pending(service);
	serve_deadlines(service);
	iw_engine_put_gone(engine);
	check_pollers(service);
}

static bool is_any_left(struct iw_engine *engine)
{
	bool is_any;

	core_lock_acquire(&engine->lock);
	is_any = engine->first != NULL;
	core_lock_release(&engine->lock);
	return is_any;
}

/* Of the thread, which may have been cancelled (soft_thread_stop). */
static void service_end(void *argument)
{
	struct service *service = argument;
	struct iw_engine *engine = service->engine;
	uint64_t limit;

	soft_thread_ends(&engine->service);
	/* bytes that peers have not taken yet are lost when their socket is closed with unread data
	 */
	iw_setup_drop_all(engine, NULL);
	iw_engine_put_gone(engine);
	limit = core_now_ns() + STOP_NS;
	while (is_any_left(engine) && core_now_ns() < limit) {
		iw_linger_all(engine);
		serve_events(service);
		if (is_any_left(engine))
			usleep(STOP_TICK_US);
	}
	iw_linger_end_all(engine);
	iw_engine_put_gone(engine);
	iw_engine_put(engine);
}

void *iw_service_run(void *argument)
{
	struct service service = {.engine = argument, .pause_ns = PAUSE_LEAST_NS};

	(void)core_cancel_off();
	soft_is_library_thread = true;
	pthread_cleanup_push(service_end, &service);
	while (!atomic_load(&service.engine->is_stopping))
		serve_events(&service);
	pthread_cleanup_pop(true);
	return NULL;
}
