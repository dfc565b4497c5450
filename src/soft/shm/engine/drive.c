// SPDX-License-Identifier: BSD-2-Clause
/*
 * Passes over connections, and what has to follow them; going to sleep; the endpoint slots of the
 * transport table (drive.h).
 *
 * A thread of the consumer sleeps on the bell of a connection, so that the peer wakes it directly:
 * one thread switch instead of two. It sleeps on the connection that was armed last, where the next
 * event is most likely. The service thread wakes it for all other connections, and wakes any second
 * sleeper.
 *
 * No wake-up is lost: the peer omits the packet only if the kernel says that ringing has woken a
 * thread. So a thread that has slept, for whatever reason it woke up, serves the connection as the
 * reader of a packet does. Whether the bell has changed does not matter: it may have been rung
 * before the sleep. models/bell.pml models this.
 */
#include "soft/shm/engine/drive.h"

#include "core/transport.h"
#include "soft/shm/instance.h"
#include "soft/shm/state.h"
#include "soft/shm/connect/revoke.h"
#include "soft/shm/connect/setup.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/pass.h"
#include "soft/shm/transfer/publish.h"
#include "soft/shm/transfer/rx.h"
#include "soft/shm/transfer/tx.h"

#define DRAIN_PASSES 256u
#define PASSES_MAX 16u /* of one connection in a row */

/* --- passes --- */

/* What a pass that goes on has asked for. */
static void continue_later(struct shm_conn *conn, const struct shm_pass *pass)
{
	if (pass->again_ns != UINT64_MAX)
		shm_conn_lower_deadline(conn, pass->again_ns);
	if (!pass->has_more)
		return;
	shm_engine_activate(conn->engine, conn);
	/* relaxed: a hint for the service thread, which checks the connections themselves */
	atomic_store_explicit(&conn->engine->has_more, true, memory_order_relaxed);
}

int shm_drive(struct shm_conn *conn, struct core_ep *ep)
{
	const struct shm_pass pass = shm_pass_run(conn, ep, false);

	if (pass.end)
		shm_conn_close(conn, pass.end);
	if (shm_conn_state(conn) == SHM_ESTABLISHED)
		continue_later(conn, &pass);
	else
		shm_conn_finish(conn, ep);
	return pass.handled;
}

/*
 * What follows a part of a pass that a post has made, with that result, and that must not call the
 * core about the end: the service thread reports it.
 */
static void end_post(struct shm_conn *conn, struct core_ep *ep, struct shm_pass *pass, int rc)
{
	if (rc < 0)
		shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
	if (shm_conn_state(conn) != SHM_ESTABLISHED) {
		shm_conn_serve_later(conn);
		return;
	}
	if (pass->has_more)
		shm_conn_watch_bit(conn, SHM_WATCH_MORE, true);
	shm_conn_flush(conn, true);
	shm_conn_update_reasons(conn, ep);
	continue_later(conn, pass);
	if (pass->has_more)
		shm_conn_serve_later(conn);
}

void shm_drain(struct shm_conn *conn, struct core_ep *ep)
{
	unsigned passes;

	/* bounded: a live peer that keeps writing after its CLOSE does not keep us here */
	for (passes = 0; passes < DRAIN_PASSES; passes++) {
		const struct shm_pass pass = shm_pass_run(conn, ep, true);

		if (pass.end)
			shm_conn_close(conn, pass.end);
		if (shm_conn_state(conn) != SHM_ESTABLISHED || !pass.handled)
			return;
	}
}

/* --- going to sleep --- */

bool shm_conn_arm(struct shm_conn *conn)
{
	uint32_t armed = atomic_load_explicit(&conn->mine->armed, memory_order_relaxed);

	shm_direct_await(conn);
	shm_fence_end_polled(conn);
	if (!(armed & 1))
		atomic_store_explicit(&conn->mine->armed, armed + 1, memory_order_relaxed);
	/* full fence: see the top of transfer/publish.c */
	atomic_thread_fence(memory_order_seq_cst);
	if (shm_conn_has_work(conn)) {
		if (!(armed & 1))
			atomic_store_explicit(&conn->mine->armed, armed + 2, memory_order_relaxed);
		return false;
	}
	if (atomic_exchange_explicit(&conn->wake.is_disarmed, false, memory_order_relaxed))
		atomic_fetch_sub(&conn->engine->disarmed, 1);
	shm_engine_deactivate(conn->engine, conn);
	/* relaxed: a hint */
	atomic_store_explicit(&conn->engine->armed_last, conn, memory_order_relaxed);
	shm_direct_hurry(conn, true);
	return true;
}

bool shm_settle(struct shm_conn *conn, struct core_ep *ep)
{
	unsigned i;

	for (i = 0; i < PASSES_MAX; i++) {
		if (shm_conn_state(conn) != SHM_ESTABLISHED || shm_conn_arm(conn))
			return true;
		shm_drive(conn, ep);
	}
	/* other connections get their turn first */
	atomic_store_explicit(&conn->engine->has_more, true, memory_order_relaxed);
	return false;
}

void shm_conn_disarm(struct shm_conn *conn)
{
	uint32_t armed = atomic_load_explicit(&conn->mine->armed, memory_order_relaxed);

	if (armed & 1)
		atomic_store_explicit(&conn->mine->armed, armed + 1, memory_order_relaxed);
	/* full fence: the pass that follows sees what was published for the old number */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_exchange_explicit(&conn->wake.is_disarmed, true, memory_order_relaxed))
		atomic_fetch_add(&conn->engine->disarmed, 1);
	shm_engine_activate(conn->engine, conn);
}

/* --- threads of the consumer that sleep --- */

void shm_sleep_begin(struct shm_engine *engine, struct core_sleep *sleep)
{
	struct shm_conn *conn = shm_engine_armed_last(engine);

	if (!conn)
		return;
	/* another thread sleeps there; or the peer says so, which then sends packets to us */
	if (atomic_exchange(&conn->mine->sleeps, 1)) {
		shm_conn_put(conn);
		return;
	}
	sleep->transport = conn;
	sleep->seen = atomic_load(&conn->mine->bell);
	sleep->bell = &conn->mine->bell;
	/*
	 * full fence: the peer publishes, then reads `sleeps`; we store `sleeps`, then read what it
	 * has published
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (shm_conn_state(conn) == SHM_ESTABLISHED && !shm_conn_has_work(conn))
		return;
	/* its packet is on the way, or the work was there before */
	shm_sleep_end(sleep);
	sleep->bell = NULL;
}

/* Serves the connection as the service thread does after a packet. */
static void serve_wake(struct shm_conn *conn)
{
	struct core_ep *ep = shm_conn_enter(conn);

	if (!ep)
		return;
	if (shm_conn_state(conn) == SHM_ESTABLISHED) {
		shm_conn_disarm(conn);
		shm_drive(conn, ep);
		if (!shm_settle(conn, ep))
			core_service_kick(&conn->engine->service);
	}
	core_ep_leave(ep);
}

void shm_sleep_end(struct core_sleep *sleep)
{
	struct shm_conn *conn = sleep->transport;

	atomic_store(&conn->mine->sleeps, 0);
	if (sleep->has_slept)
		serve_wake(conn);
	shm_conn_put(conn);
}

/* --- the endpoint slots --- */

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
		if (conn->end.peer != SHM_PEER_GONE && shm_conn_trust(conn) != SHM_DISTRUSTED)
			/*
			 * the limit counts from detach, so that many endpoints wait at the same
			 * time
			 */
			shm_wait_copies(conn, shm_conn_is_peer_copying, 0, conn->end.limit_ns);
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
		shm_drive(conn, ep);
	if (is_graceful && shm_conn_state(conn) >= SHM_CLOSING) {
		/* the pass has found that the connection ended in another way, and reports that */
	} else if (is_graceful && ep->req.head != ep->req.tail) {
		if (conn->end.ending == SHM_ENDING_NONE)
			conn->end.ending = SHM_ENDING_DRAINED;
		shm_drive(conn, ep);
	} else {
		/* what the peer has reported is done, and not flushed */
		if (shm_conn_state(conn) == SHM_ESTABLISHED)
			(void)shm_tx_read_done(conn, ep);
		shm_conn_close(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
		/* also if the connection was closing already: this event replaces any other */
		conn->end.event = DAT_CONNECTION_EVENT_DISCONNECTED;
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

void shm_ep_post_request(struct core_ep *ep, struct core_req *req)
{
	struct shm_ep *mine = ep->transport;
	struct shm_conn *conn = mine->conn;
	struct shm_pass pass = SHM_PASS_NEW;

	if (!conn || shm_conn_state(conn) != SHM_ESTABLISHED)
		return;			    /* the end is about to be reported, which flushes it */
	if (conn->tx.next == req->sequence) /* no request waits before it */
		end_post(conn, ep, &pass, shm_tx_run(conn, ep, &pass));
	if (shm_conn_state(conn) == SHM_ESTABLISHED && ep->req.head != ep->req.tail)
		shm_engine_activate(conn->engine, conn);
}

void shm_ep_post_recv(struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;
	struct shm_conn *conn = mine->conn;
	struct shm_pass pass = SHM_PASS_NEW;
	uint32_t acked;

	if (!conn || shm_conn_state(conn) != SHM_ESTABLISHED || conn->in.state != SHM_IN_NO_RECEIVE)
		return;
	acked = shm_conn_acked(conn);
	end_post(conn, ep, &pass, shm_rx_run(conn, ep, &pass));
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
		shm_drive(conn, ep);
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
