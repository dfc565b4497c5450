// SPDX-License-Identifier: BSD-2-Clause
/* The life and the end of a connection over TCP, and what its endpoint asks of it (ep.h). */
#include "soft/iwarp/connect/ep.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/memcheck.h"
#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/fds.h"
#include "soft/iwarp/connect/listen.h"
#include "soft/iwarp/connect/setup.h"
#include "soft/iwarp/engine.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/transfer/segment.h"
#include "soft/iwarp/transfer/access.h"
#include "soft/iwarp/transfer/tx.h"

#define DISCARD_MAX (1024u * 1024u) /* bytes in one go */

int iw_conn_create(struct iw_engine *engine, int fd, struct iw_conn **conn_out)
{
	struct iw_conn *conn = core_slab_alloc(sizeof(*conn));

	if (!conn)
		return -ENOMEM;
	conn->engine = engine;
	iw_engine_get(engine);
	conn->fd = fd;
	conn->give_up_ns = UINT64_MAX;
	conn->caller.conn = conn;
	soft_attention_add(&engine->attention, &conn->attended);
	*conn_out = conn;
	return 0;
}

static void conn_destroy(struct iw_conn *conn)
{
	struct iw_engine *engine = conn->engine;

	soft_attention_remove(&engine->attention, &conn->attended);
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
	if (soft_attended_put(&conn->attended))
		conn_destroy(conn);
}

/* --- passes --- */

/* Reports the end of a connection that is CLOSING, and releases it. */
static void report_end(struct iw_conn *conn, struct core_ep *ep)
{
	DAT_EVENT_NUMBER number = conn->end;

	if (iw_conn_state(conn) != IW_CLOSING)
		return;
	iw_conn_drop(conn, ep);
	core_ep_ended(ep, number);
}

int iw_conn_run(struct iw_conn *conn, struct core_ep *ep, int handled)
{
	int state = core_cancel_off();

	iw_conn_get(conn);
	if (iw_conn_state(conn) == IW_ESTABLISHED)
		handled = iw_pass(conn, ep, handled);
	report_end(conn, ep);
	iw_conn_put(conn);
	core_cancel_restore(state);
	return handled;
}

/* --- the end --- */

/* Reads and discards what has come, up to the peer's end. */
static void discard(struct iw_conn *conn)
{
	uint64_t left = DISCARD_MAX;

	while (left && !conn->has_fin_come && !conn->is_lost) {
		ssize_t count;

		/* MSG_TRUNC: the kernel discards the bytes; memcheck believes that they need room */
		core_memcheck_pause();
		count = recv(conn->fd, NULL, left, MSG_TRUNC | MSG_DONTWAIT);
		core_memcheck_resume();
		if (count < 0 && errno != EAGAIN && errno != EINTR &&
		    !iw_conn_note_shortage(conn, -errno))
			iw_conn_lose(conn, -errno);
		conn->has_fin_come = !count;
		if (count <= 0)
			return;
		left -= (uint64_t)count < left ? (uint64_t)count : left;
	}
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
	if (iw_engine_remove_polled(conn->engine, conn))
		iw_conn_put(conn);
	if (iw_engine_remove_held(conn->engine, conn))
		iw_conn_put(conn);
	if (iw_conn_state(conn) < IW_ESTABLISHED && conn->is_active)
		conn->is_lost = true; /* there is nobody to say goodbye to */
	iw_answer_last(conn, ep);
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
	iw_conn_set_deadline(conn, 0);
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
	discard(conn);
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
	discard(conn);
	if (conn->is_lost)
		reset(conn);
	else
		iw_conn_close_socket(conn);
}

/* Asks for none of them. */
static bool hurry_lingering(struct soft_attended *attended, void *unused)
{
	(void)unused;
	if (iw_conn_state(iw_conn_of_attended(attended)) == IW_LINGERING)
		atomic_store(&attended->deadline_ns, 1);
	return false;
}

void iw_linger_all(struct iw_engine *engine)
{
	(void)soft_attention_find(&engine->attention, NULL, hurry_lingering, NULL);
	soft_attention_look(&engine->attention, 1);
}

static bool is_open(struct soft_attended *attended, void *unused)
{
	(void)unused;
	return iw_conn_of_attended(attended)->fd >= 0;
}

void iw_linger_end_all(struct iw_engine *engine)
{
	struct soft_attended *found;

	while ((found = soft_attention_find(&engine->attention, NULL, is_open, NULL)) != NULL) {
		struct iw_conn *conn = iw_conn_of_attended(found);

		/* the peer does not take the rest: it must not wait for it */
		reset(conn);
		iw_conn_put(conn);
	}
}

/* --- calls of the core --- */

/* Also if the connection is closing already: this event replaces any other. */
static void end_now(struct iw_conn *conn, struct core_ep *ep)
{
	iw_conn_drop(conn, ep);
	core_ep_ended(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

void iw_ep_disconnect(struct iw_conn *conn, struct core_ep *ep, bool is_graceful)
{
	if (!is_graceful || iw_conn_state(conn) < IW_ESTABLISHED) {
		end_now(conn, ep);
		return;
	}
	/* takes what has arrived before the peer learns of the disconnect */
	conn->is_draining = true;
	(void)iw_conn_run(conn, ep, 0);
}

void iw_ep_post_request(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req)
{
	if (iw_conn_state(conn) == IW_ESTABLISHED)
		iw_pass_post(conn, ep, req);
}

void iw_ep_post_recv(struct iw_conn *conn, struct core_ep *ep)
{
	if (iw_conn_state(conn) == IW_ESTABLISHED &&
	    (iw_message_is_waiting(conn) || conn->stream.rx.is_blocked))
		iw_pass_waiting(conn, ep);
}

void iw_ep_progress(struct iw_conn *conn, struct core_ep *ep)
{
	if (iw_conn_state(conn) != IW_ESTABLISHED)
		return;
	conn->moved = 0;
	iw_pass_receives(conn, ep);
	/* a thread whose posts find the queue full may have no reason to poll */
	if (conn->is_polled)
		iw_engine_count_pass(conn->engine, conn->moved);
}

void iw_ep_abort(struct iw_conn *conn)
{
	if (iw_conn_state(conn) != IW_ESTABLISHED)
		return;
	iw_answer_error(conn, IW_ERROR(0, 0, 0), NULL); /* TERM-15 */
	iw_conn_serve_later(conn);
}
