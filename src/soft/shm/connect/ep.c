// SPDX-License-Identifier: BSD-2-Clause
/* The endpoint slots of the transport table. */
#include "soft/shm/connect/ep.h"

#include "core/transport.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/identity.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/transfer/rx.h"
#include "soft/shm/transfer/tx.h"

void shm_ep_detach(struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;

	mine->is_detached = true;
	if (mine->conn)
		shm_conn_close(mine->conn, DAT_CONNECTION_EVENT_DISCONNECTED);
}

void shm_ep_destroy(struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;
	struct shm_conn *conn = mine->conn;

	if (conn) {
		shm_conn_set_deadline(conn, 0);
		if (!conn->is_peer_gone && !atomic_load(&conn->is_distrusted))
			/*
			 * the limit counts from detach, so that many endpoints wait at the same
			 * time
			 */
			shm_wait_copies(conn, shm_conn_is_peer_copying, 0, conn->force_ns);
		shm_conn_drop(conn, ep);
	}
}

void shm_ep_disconnect(struct core_ep *ep, bool is_graceful)
{
	struct shm_ep *mine = ep->transport;
	struct shm_conn *conn = mine->conn;

	if (!conn)
		return;
	shm_conn_get(conn);
	/* take what has arrived before the peer learns of the disconnect */
	if (is_graceful && shm_conn_state(conn) == SHM_ESTABLISHED)
		shm_conn_pass(conn, ep);
	if (is_graceful && shm_conn_state(conn) >= SHM_CLOSING) {
		/* the pass has found that the connection ended in another way, and reports that */
	} else if (is_graceful && ep->req.head != ep->req.tail) {
		conn->is_draining = true;
		shm_conn_pass(conn, ep);
	} else {
		/* what the peer has reported is done, and not flushed */
		if (shm_conn_state(conn) == SHM_ESTABLISHED)
			(void)shm_tx_read_done(conn, ep);
		shm_conn_close(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
		/* also if the connection was closing already: this event replaces any other */
		conn->end = DAT_CONNECTION_EVENT_DISCONNECTED;
		shm_conn_finish(conn, ep);
	}
	shm_conn_put(conn);
}

int shm_ep_peer(struct core_ep *ep, void *request, struct transport_peer *peer_out)
{
	const struct shm_ep *mine = ep ? ep->transport : NULL;
	const struct shm_conn *conn = ep ? mine->conn : request;

	if (!conn)
		return -ENOTCONN;
	shm_identity_tell(conn, peer_out);
	return 0;
}

/* After a call that must not call the core about the end: the service thread reports it. */
static void after_post(struct shm_conn *conn, struct core_ep *ep)
{
	if (shm_conn_state(conn) == SHM_CLOSING) {
		shm_conn_serve_later(conn);
		return;
	}
	shm_conn_flush(conn, true);
	shm_conn_update_reasons(conn, ep);
	shm_conn_continue_later(conn);
	if (atomic_load_explicit(&conn->has_more, memory_order_relaxed))
		shm_conn_serve_later(conn);
}

void shm_ep_post_request(struct core_ep *ep, struct core_req *req)
{
	struct shm_ep *mine = ep->transport;
	struct shm_conn *conn = mine->conn;
	uint64_t budget = SHM_BUDGET;

	if (!conn || shm_conn_state(conn) != SHM_ESTABLISHED)
		return; /* the end is about to be reported, which flushes it */
	if (conn->tx_next == req->sequence) { /* no request waits before it */
		if (shm_tx_run(conn, ep, &budget) < 0)
			shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
		after_post(conn, ep);
	}
	if (shm_conn_state(conn) == SHM_ESTABLISHED && ep->req.head != ep->req.tail)
		shm_engine_activate(conn->engine, conn);
}

void shm_ep_post_recv(struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;
	struct shm_conn *conn = mine->conn;
	uint64_t budget = SHM_BUDGET;
	uint32_t acked;
	int rc;

	if (!conn || shm_conn_state(conn) != SHM_ESTABLISHED || !conn->arrival.is_blocked)
		return;
	acked = shm_conn_acked(conn);
	rc = shm_rx_run(conn, ep, &budget);
	if (rc < 0)
		shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
	after_post(conn, ep);
	/* the messages brought acknowledgements, and nothing else may cause a pass any more */
	if (shm_conn_acked(conn) != acked && shm_conn_is_pass_awaited(conn, ep))
		shm_conn_serve_later(conn);
}

/* A poll checks a part of a long list only. */
void shm_ep_progress(struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;
	struct shm_conn *conn = mine->conn;

	if (conn && shm_conn_state(conn) == SHM_ESTABLISHED && shm_conn_has_work(conn))
		shm_conn_pass(conn, ep);
}

void shm_ep_abort(struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;
	struct shm_conn *conn = mine->conn;

	if (!conn || shm_conn_state(conn) != SHM_ESTABLISHED)
		return;
	shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
	shm_conn_serve_later(conn);
}
