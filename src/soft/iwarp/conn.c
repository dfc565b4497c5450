// SPDX-License-Identifier: BSD-2-Clause
/* The life of a connection over TCP, its socket in epoll, and its endpoint. */
#include "soft/iwarp/conn.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/fds.h"
#include "soft/iwarp/connect/setup.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/endpoint.h"
#include "soft/refs.h"

int iw_conn_create(struct iw_engine *engine, int fd, struct iw_conn **conn_out)
{
	struct iw_conn *conn = core_slab_alloc(sizeof(*conn));

	if (!conn)
		return -ENOMEM;
	conn->watch.kind = IW_KIND_CONN;
	conn->engine = engine;
	iw_engine_get(engine);
	atomic_init(&conn->refs, 1);
	conn->fd = fd;
	conn->give_up_ns = UINT64_MAX;
	conn->caller.conn = conn;
	core_lock_acquire(&engine->lock);
	conn->next = engine->first;
	if (conn->next)
		conn->next->prev = conn;
	engine->first = conn;
	core_lock_release(&engine->lock);
	*conn_out = conn;
	return 0;
}

void iw_conn_get(struct iw_conn *conn)
{
	/* relaxed: the caller holds a reference */
	atomic_fetch_add_explicit(&conn->refs, 1, memory_order_relaxed);
}

bool iw_conn_get_unless_dead(struct iw_conn *conn)
{
	return soft_get_unless_dead(&conn->refs);
}

static void conn_destroy(struct iw_conn *conn)
{
	struct iw_engine *engine = conn->engine;

	core_lock_acquire(&engine->lock);
	if (conn->next)
		conn->next->prev = conn->prev;
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		engine->first = conn->next;
	core_lock_release(&engine->lock);
	soft_callers_set(&engine->callers, &conn->caller, SOFT_CALLER_NONE);
	soft_fd_close(conn->fd);
	iw_setup_free(conn);
	iw_stream_free(conn);
	if (conn->listener)
		iw_listener_put(conn->listener);
	core_slab_free(conn, sizeof(*conn));
	iw_engine_put(engine);
}

void iw_conn_put(struct iw_conn *conn)
{
	/* acq_rel: the thread that destroys it sees what all others did */
	if (atomic_fetch_sub_explicit(&conn->refs, 1, memory_order_acq_rel) == 1)
		conn_destroy(conn);
}

/* --- epoll --- */

int iw_conn_watch(struct iw_conn *conn, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = &conn->watch};
	int op = conn->is_in_epoll ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (conn->is_in_epoll && conn->events == events)
		return 0;
	if (epoll_ctl(conn->engine->service.epoll_fd, op, conn->fd, &event) < 0)
		return -errno;
	if (!conn->is_watched)
		iw_conn_get(conn); /* until iw_conn_unwatch: events refer to the connection */
	conn->is_watched = true;
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
	if (!conn->is_watched)
		return;
	(void)iw_conn_pause_watch(conn);
	conn->is_in_epoll = false;
	conn->is_watched = false;
	/* this batch of events may still name it */
	iw_engine_put_later(conn->engine, conn);
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

/* --- attention of the service thread --- */

void iw_conn_serve_later(struct iw_conn *conn)
{
	struct iw_engine *engine = conn->engine;

	core_lock_acquire(&engine->lock);
	if (!conn->is_pending) {
		conn->is_pending = true;
		iw_conn_get(conn);
		conn->next_pending = engine->pending_first;
		engine->pending_first = conn;
	}
	core_lock_release(&engine->lock);
	iw_engine_kick(engine);
}

void iw_conn_set_deadline(struct iw_conn *conn, uint64_t deadline_ns)
{
	/* sequentially consistent, and before the engine's: see iw_service_deadlines */
	atomic_store(&conn->deadline_ns, deadline_ns);
	if (deadline_ns)
		iw_engine_lower_deadline(conn->engine, deadline_ns);
}

void iw_conn_lower_deadline(struct iw_conn *conn, uint64_t deadline_ns)
{
	uint64_t now_set = atomic_load(&conn->deadline_ns);

	if (!now_set || deadline_ns < now_set)
		iw_conn_set_deadline(conn, deadline_ns);
}
