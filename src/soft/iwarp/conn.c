// SPDX-License-Identifier: BSD-2-Clause
/* What all folders use: a connection's socket in epoll and its endpoint (conn.h), and the engine
 * object with its lists of connections (engine.h). */
#include "soft/iwarp/conn.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/slab.h"
#include "core/transport.h"
#include "shared/names.h"
#include "soft/address.h"
#include "soft/endpoint.h"
#include "soft/fds.h"
#include "soft/iwarp/engine.h"
#include "soft/iwarp/transfer/stream.h"
#include "soft/soft.h"

#define MOVED_PASS 4096u /* to move so many bytes takes about as long as a pass */
#define DRIVEN_PASSES 4u /* over each polled connection, in a millisecond */

/* ==== the engine: its life, its lists, what wakes its thread ==== */

int iw_engine_create(struct soft_adapter *adapter, struct iw_engine **engine_out)
{
	struct iw_engine *engine = core_slab_alloc(sizeof(*engine));

	if (!engine)
		return -ENOMEM;
	engine->ia = adapter->ia;
	engine->adapter = adapter;
	engine->settings = adapter->ia->settings;
	engine->is_loopback = soft_address_is_loopback(&adapter->ia->address);
	core_service_init(&engine->service);
	atomic_init(&engine->refs, 1);
	soft_attention_init(&engine->attention, &engine->service);
	core_lock_init(&engine->lock);
	soft_callers_init(&engine->callers);
	pthread_mutex_init(&engine->start_lock, NULL);
	*engine_out = engine;
	return 0;
}

/* --- the service thread --- */

void iw_engine_close(struct iw_engine *engine)
{
	atomic_store(&engine->is_stopping, true);
	if (atomic_load(&engine->is_started))
		core_service_stop(&engine->service);
	iw_engine_put(engine);
}

void iw_engine_get(struct iw_engine *engine)
{
	/* relaxed: the caller holds a reference already */
	atomic_fetch_add_explicit(&engine->refs, 1, memory_order_relaxed);
}

void iw_engine_put(struct iw_engine *engine)
{
	/* acq_rel: the thread that destroys it sees what all others did */
	if (atomic_fetch_sub_explicit(&engine->refs, 1, memory_order_acq_rel) != 1)
		return;
	soft_thread_close(&engine->service);
	pthread_mutex_destroy(&engine->start_lock);
	soft_callers_destroy(&engine->callers);
	core_lock_destroy(&engine->attention.lock);
	core_lock_destroy(&engine->lock);
	core_slab_free(engine, sizeof(*engine));
}

/* --- connections that threads of the consumer poll --- */

/* Does a poll of an empty EVD find anything to do here? */
static void update_slow_poll_locked(struct iw_engine *engine)
{
	core_ia_set_slow_poll(engine->ia, atomic_load(&engine->polled_count) ||
						  atomic_load(&engine->held_count));
}

static void remove_locked(struct iw_engine *engine, struct iw_conn *conn)
{
	if (conn->next_polled == conn) {
		engine->polled_first = NULL;
	} else {
		conn->next_polled->prev_polled = conn->prev_polled;
		conn->prev_polled->next_polled = conn->next_polled;
		if (engine->polled_first == conn)
			engine->polled_first = conn->next_polled;
	}
	conn->is_polled = false;
	atomic_fetch_sub(&engine->polled_count, 1);
	update_slow_poll_locked(engine);
}

void iw_engine_add_polled(struct iw_engine *engine, struct iw_conn *conn)
{
	struct iw_conn *first;

	iw_conn_get(conn);
	conn->idle_polls = 0;
	core_lock_acquire(&engine->lock);
	first = engine->polled_first;
	if (first) {
		conn->next_polled = first;
		conn->prev_polled = first->prev_polled;
		first->prev_polled->next_polled = conn;
		first->prev_polled = conn;
	} else {
		conn->next_polled = conn;
		conn->prev_polled = conn;
		engine->polled_first = conn;
	}
	conn->is_polled = true;
	atomic_fetch_add(&engine->polled_count, 1);
	update_slow_poll_locked(engine);
	core_lock_release(&engine->lock);
}

bool iw_engine_remove_polled(struct iw_engine *engine, struct iw_conn *conn)
{
	bool was_polled;

	core_lock_acquire(&engine->lock);
	was_polled = conn->is_polled;
	if (was_polled)
		remove_locked(engine, conn);
	core_lock_release(&engine->lock);
	return was_polled;
}

struct iw_conn *iw_engine_next_polled(struct iw_engine *engine)
{
	struct iw_conn *conn;

	core_lock_acquire(&engine->lock);
	conn = engine->polled_first;
	if (conn) {
		engine->polled_first = conn->next_polled;
		iw_conn_get(conn);
	}
	core_lock_release(&engine->lock);
	return conn;
}

/* A pass that moves many bytes counts for as many as could be made meanwhile. */
void iw_engine_count_pass(struct iw_engine *engine, uint32_t moved)
{
	uint32_t polled = atomic_load_explicit(&engine->polled_count, memory_order_relaxed);

	soft_driven_count(&engine->driven, 1 + moved / MOVED_PASS, DRIVEN_PASSES * polled);
}

/* --- connections whose last messages wait for more --- */

void iw_engine_add_held(struct iw_engine *engine, struct iw_conn *conn)
{
	if (atomic_load_explicit(&conn->is_held, memory_order_relaxed))
		return;
	iw_conn_get(conn);
	core_lock_acquire(&engine->lock);
	atomic_store_explicit(&conn->is_held, true, memory_order_relaxed);
	conn->next_held = engine->held_first;
	engine->held_first = conn;
	atomic_fetch_add(&engine->held_count, 1);
	update_slow_poll_locked(engine);
	core_lock_release(&engine->lock);
}

/* Removes the connection that the pointer names, with its reference. */
static struct iw_conn *remove_held_locked(struct iw_engine *engine, struct iw_conn **at)
{
	struct iw_conn *conn = *at;

	if (!conn)
		return NULL;
	*at = conn->next_held;
	atomic_store_explicit(&conn->is_held, false, memory_order_relaxed);
	atomic_fetch_sub(&engine->held_count, 1);
	update_slow_poll_locked(engine);
	return conn;
}

bool iw_engine_remove_held(struct iw_engine *engine, struct iw_conn *conn)
{
	struct iw_conn **at = &engine->held_first;
	struct iw_conn *removed;

	core_lock_acquire(&engine->lock);
	while (*at && *at != conn)
		at = &(*at)->next_held;
	removed = remove_held_locked(engine, at);
	core_lock_release(&engine->lock);
	return removed != NULL;
}

struct iw_conn *iw_engine_take_held(struct iw_engine *engine)
{
	struct iw_conn *conn;

	core_lock_acquire(&engine->lock);
	conn = remove_held_locked(engine, &engine->held_first);
	core_lock_release(&engine->lock);
	return conn;
}

/* --- keys of our own table --- */

struct key_use {
	uint32_t key;
	bool is_used;
};

/* Asks for none of them. */
static bool note_use(struct soft_attended *attended, void *argument)
{
	const struct iw_conn *conn = iw_conn_of_attended(attended);
	struct key_use *use = argument;

	/* acquire: what was placed through the key is placed */
	use->is_used |= atomic_load_explicit(&conn->announced, memory_order_acquire) == use->key;
	return false;
}

bool iw_engine_is_key_in_use(struct iw_engine *engine, uint32_t key)
{
	struct key_use use = {.key = key};

	if (atomic_load(&engine->is_started))
		(void)soft_attention_find(&engine->attention, NULL, note_use, &use);
	return use.is_used;
}

void iw_engine_wait_key(struct iw_engine *engine, uint32_t key)
{
	/* a thread of ours holds it for one copy or one read of a socket, which does not block */
	while (iw_engine_is_key_in_use(engine, key))
		sched_yield();
}

/* ==== a connection ==== */

/* --- epoll --- */

int iw_conn_watch(struct iw_conn *conn, uint32_t events)
{
	int op = conn->is_in_epoll ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	int rc;

	if (conn->is_in_epoll && conn->events == events)
		return 0;
	rc = soft_attention_watch(&conn->engine->attention, &conn->attended, op, conn->fd, events);
	if (rc < 0)
		return rc;
	conn->is_in_epoll = true;
	conn->events = events;
	return 0;
}

int iw_conn_pause_watch(struct iw_conn *conn)
{
	if (conn->is_in_epoll &&
	    epoll_ctl(conn->engine->service.epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL) < 0)
		return -errno;
	conn->is_in_epoll = false;
	return 0;
}

void iw_conn_unwatch(struct iw_conn *conn)
{
	soft_attention_unwatch(&conn->engine->attention, &conn->attended, conn->fd);
	conn->is_in_epoll = false;
}

void iw_conn_close_socket(struct iw_conn *conn)
{
	iw_conn_unwatch(conn);
	soft_callers_set(&conn->engine->callers, &conn->caller, SOFT_CALLER_NONE);
	soft_fd_close(conn->fd);
	conn->fd = -1;
}

/* --- the kernel lacks memory --- */

bool iw_conn_note_shortage(struct iw_conn *conn, int error)
{
	if (error != -ENOMEM && error != -ENOBUFS)
		return false;
	conn->retry_ns = core_now_ns() + IW_RETRY_NS;
	return true;
}

bool iw_conn_is_short(struct iw_conn *conn)
{
	if (conn->retry_ns && core_now_ns() >= conn->retry_ns)
		conn->retry_ns = 0;
	return conn->retry_ns != 0;
}

/* --- endpoint --- */

struct iw_conn *iw_conn_of(const struct core_ep *ep)
{
	const struct soft_ep *mine = ep->transport;

	return mine ? mine->tcp : NULL;
}

void iw_conn_attach(struct iw_conn *conn, struct core_ep *ep)
{
	struct soft_ep *mine = ep->transport;

	conn->ep_ref = core_handle_ref(ep->cell);
	mine->tcp = conn;
	/* release: pairs with the acquire in iw_conn_enter */
	atomic_store_explicit(&conn->has_ep, true, memory_order_release);
}

void iw_conn_detach(struct iw_conn *conn, struct core_ep *ep)
{
	struct soft_ep *mine = ep->transport;

	mine->tcp = NULL;
	atomic_store_explicit(&conn->has_ep, false, memory_order_release);
	core_handle_set_slow(ep->cell, CORE_EP_SLOW_CONN);
}

struct core_ep *iw_conn_enter(struct iw_conn *conn)
{
	struct core_ep *ep;

	if (!atomic_load_explicit(&conn->has_ep, memory_order_acquire))
		return NULL;
	ep = core_ep_enter(conn->ep_ref);
	if (!ep || iw_conn_of(ep) == conn)
		return ep;
	core_ep_leave(ep);
	return NULL;
}

/* --- the end --- */

struct core_name iw_conn_name(const struct iw_conn *conn)
{
	/* acquire: pairs with the release in iw_conn_attach */
	if (atomic_load_explicit(&conn->has_ep, memory_order_acquire))
		return core_object_name(conn->ep_ref.cell, DAT_HANDLE_TYPE_EP);
	return (struct core_name){"no endpoint"};
}

struct lost_text {
	char text[128];
};

/* In the words of the system: ": Connection reset by peer". */
static struct lost_text why_lost(const struct iw_conn *conn)
{
	struct lost_text why;

	snprintf(why.text, sizeof(why.text), ": %s", strerror(conn->error));
	return why;
}

void iw_conn_close(struct iw_conn *conn, DAT_EVENT_NUMBER end)
{
	if (iw_conn_state(conn) >= IW_CLOSING)
		return;
	core_log(end == DAT_CONNECTION_EVENT_BROKEN ? CORE_LOG_CONN | CORE_LOG_ERROR
						    : CORE_LOG_CONN,
		 "%s: the TCP connection ends: %s%s%s", iw_conn_name(conn).text,
		 opendat_event_name(end), conn->is_lost ? ", TCP has failed" : "",
		 conn->error ? why_lost(conn).text : "");
	iw_conn_set_state(conn, IW_CLOSING);
	conn->end = end;
}
