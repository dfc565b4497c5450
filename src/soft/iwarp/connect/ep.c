// SPDX-License-Identifier: BSD-2-Clause
/* The endpoint slots of the transport table (ep.h). */
#include "soft/iwarp/connect/ep.h"

#include "core/transport.h"
#include "soft/iwarp/engine/engine.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/transfer/segment.h"

void iw_ep_detach(struct iw_conn *conn, struct core_ep *ep)
{
	iw_conn_drop(conn, ep);
}

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
	(void)iw_pass(conn, ep);
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
		iw_pass_receives(conn, ep);
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
