// SPDX-License-Identifier: BSD-2-Clause
/* The end of a connection over TCP (close.h). */
#include "soft/iwarp/connect/close.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/transport.h"
#include "shared/names.h"
#include "soft/iwarp/transfer/alive.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/transfer/tx.h"

#define DISCARD_MAX (1024u * 1024u) /* bytes in one go */

void iw_conn_close(struct iw_conn *conn, DAT_EVENT_NUMBER end)
{
	if (iw_conn_state(conn) >= IW_CLOSING)
		return;
	core_log(end == DAT_CONNECTION_EVENT_BROKEN ? CORE_LOG_CONN | CORE_LOG_ERROR
						    : CORE_LOG_CONN,
		 "TCP connection on descriptor %d ends: %s%s", conn->fd, opendat_event_name(end),
		 conn->is_lost ? ", TCP has failed" : "");
	iw_conn_set_state(conn, IW_CLOSING);
	conn->end = end;
}

void iw_conn_discard(struct iw_conn *conn)
{
	uint64_t left = DISCARD_MAX;

	while (left && !conn->has_fin_come && !conn->is_lost) {
		/* MSG_TRUNC: the kernel discards the bytes */
		ssize_t count = recv(conn->fd, NULL, left, MSG_TRUNC | MSG_DONTWAIT);

		if (count < 0 && errno != EAGAIN && errno != EINTR &&
		    !iw_conn_note_shortage(conn, -errno))
			iw_conn_lose(conn, -errno);
		conn->has_fin_come = !count;
		if (count <= 0)
			return;
		left -= (uint64_t)count < left ? (uint64_t)count : left;
	}
}

void iw_conn_finish(struct iw_conn *conn, struct core_ep *ep)
{
	DAT_EVENT_NUMBER number = conn->end;

	if (iw_conn_state(conn) != IW_CLOSING)
		return;
	iw_conn_drop(conn, ep);
	core_ep_ended(ep, number);
}

/* Sends what is left and ends our direction of the stream behind it. True: both are done. */
static bool say_goodbye(struct iw_conn *conn)
{
	bool is_sent = iw_frame_flush_rest(conn);

	if (is_sent && !conn->is_lost && !conn->has_fin_sent) {
		(void)shutdown(conn->fd, SHUT_WR);
		conn->has_fin_sent = true;
	}
	return is_sent;
}

void iw_conn_drop(struct iw_conn *conn, struct core_ep *ep)
{
	iw_engine_remove_polled(conn->engine, conn);
	iw_engine_remove_held(conn->engine, conn);
	if (iw_conn_state(conn) < IW_ESTABLISHED && conn->is_active)
		conn->is_lost = true; /* there is nobody to say goodbye to */
	iw_frame_detach(conn, ep);
	iw_conn_detach(conn, ep);
	/* at once: the process may exit when it has got the event */
	if (!conn->is_lost)
		(void)say_goodbye(conn);
	iw_conn_linger(conn);
}

void iw_conn_linger(struct iw_conn *conn)
{
	bool is_failed =
		iw_conn_state(conn) < IW_ESTABLISHED || conn->end == DAT_CONNECTION_EVENT_BROKEN;

	conn->give_up_ns =
		core_now_ns() + conn->engine->settings.peer_timeout_ms * UINT64_C(1000000);
	atomic_store(&conn->deadline_ns, 0);
	iw_conn_set_state(conn, IW_LINGERING);
	if (conn->listener && is_failed)
		soft_callers_set(&conn->engine->callers, &conn->caller, SOFT_CALLER_REFUSED);
	iw_conn_serve_later(conn);
	iw_conn_put(conn);
}

/* --- service thread --- */

static void reset(struct iw_conn *conn)
{
	struct linger now = {.l_onoff = 1, .l_linger = 0};

	(void)setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	iw_conn_close_socket(conn);
}

/* Has the connection served again when one of these events comes, or when it is time. */
static void watch_linger(struct iw_conn *conn, uint32_t events)
{
	bool is_short = iw_conn_is_short(conn);
	uint64_t at_ns = is_short ? conn->retry_ns : conn->give_up_ns;

	/* the kernel lacks memory for it: what was begun is sent all the same */
	if (iw_conn_watch(conn, is_short ? IW_EVENTS_SHORT : events) < 0)
		at_ns = core_now_ns() + IW_RETRY_NS;
	iw_conn_set_deadline(conn, at_ns < conn->give_up_ns ? at_ns : conn->give_up_ns);
}

void iw_linger(struct iw_conn *conn)
{
	bool is_sent;

	if (conn->fd < 0)
		return;
	if (conn->is_lost || core_now_ns() >= conn->give_up_ns) {
		reset(conn);
		return;
	}
	if (iw_conn_is_short(conn)) {
		watch_linger(conn, 0);
		return;
	}
	is_sent = say_goodbye(conn);
	if (conn->is_lost) {
		reset(conn);
		return;
	}
	iw_conn_discard(conn);
	if (conn->is_lost) {
		reset(conn);
		return;
	}
	/* the adapter closes: the peer's end need not be waited for, which may be stopped */
	if (is_sent && (conn->has_fin_come || (atomic_load(&conn->engine->is_stopping) &&
					       iw_alive_is_all_answered(conn))))
		iw_conn_close_socket(conn);
	else
		watch_linger(conn, (conn->has_fin_come ? 0 : EPOLLIN) | (is_sent ? 0 : EPOLLOUT));
}

void iw_linger_end(struct iw_conn *conn)
{
	iw_conn_discard(conn);
	if (conn->is_lost)
		reset(conn);
	else
		iw_conn_close_socket(conn);
}

void iw_linger_all(struct iw_engine *engine)
{
	struct iw_conn *conn;

	core_lock_acquire(&engine->lock);
	for (conn = engine->first; conn; conn = conn->next)
		if (iw_conn_state(conn) == IW_LINGERING)
			atomic_store(&conn->deadline_ns, 1);
	core_lock_release(&engine->lock);
	atomic_store(&engine->deadline_ns, 1);
}

/* Some connection that still has a socket, with a reference. */
static struct iw_conn *any_open(struct iw_engine *engine)
{
	struct iw_conn *conn;

	core_lock_acquire(&engine->lock);
	for (conn = engine->first; conn; conn = conn->next)
		if (conn->fd >= 0 && iw_conn_get_unless_dead(conn))
			break;
	core_lock_release(&engine->lock);
	return conn;
}

void iw_linger_end_all(struct iw_engine *engine)
{
	struct iw_conn *conn;

	while ((conn = any_open(engine)) != NULL) {
		/* the peer does not take the rest: it must not wait for it */
		reset(conn);
		iw_conn_put(conn);
	}
}
