// SPDX-License-Identifier: BSD-2-Clause
/* Running the two streams of a connection in turn (pass.h). */
#include "soft/iwarp/transfer/pass.h"

#include <sys/epoll.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/iwarp/connect/setup.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/rx.h"
#include "soft/iwarp/transfer/segment.h"
#include "soft/iwarp/transfer/tx.h"

#define BUDGET (1024u * 1024u)	   /* bytes of one pass */
#define LARGE (64u * 1024u)	   /* a message that takes long to send */
#define BUDGET_LEAST (64u * 1024u) /* of either direction */

static uint32_t events_of(struct iw_conn *conn)
{
	const struct iw_stream *stream = &conn->stream;

	if (iw_conn_is_short(conn))
		return IW_EVENTS_SHORT;
	if (stream->rx.end_ns) /* nothing more comes */
		return stream->tx.is_blocked ? EPOLLOUT : 0;
	/* a socket that is not read shows the peer's disconnect all the same */
	return (stream->rx.is_blocked ? EPOLLRDHUP : EPOLLIN) |
	       (stream->tx.is_blocked ? EPOLLOUT : 0);
}

int iw_pass_watch_polled(struct iw_conn *conn)
{
	return conn->stream.rx.is_blocked && !conn->is_lost ? iw_conn_watch(conn, 0)
							    : iw_conn_pause_watch(conn);
}

static int watch(struct iw_conn *conn)
{
	if (conn->is_polled)
		return iw_pass_watch_polled(conn);
	/* epoll would report the hang-up again and again */
	if (conn->is_lost)
		return iw_conn_pause_watch(conn);
	return iw_conn_watch(conn, events_of(conn));
}

void iw_pass_watch(struct iw_conn *conn)
{
	int rc = watch(conn);

	if (rc < 0)
		iw_conn_lower_deadline(conn, core_now_ns() + IW_RETRY_NS);
	if (conn->retry_ns && !conn->is_polled)
		iw_conn_lower_deadline(conn, conn->retry_ns);
}

/*
 * Has the last request before a graceful disconnect completed? If the peer also disconnects
 * gracefully and our message finds no Receive there, neither side waits any longer (EP-STATE-40).
 */
static bool is_drained(const struct iw_conn *conn, const struct core_ep *ep)
{
	return conn->is_draining && (ep->req.head == ep->req.tail || conn->stream.tx.peer_drains);
}

/* The service thread goes on where the budget has ended a pass of a connection that is armed. */
static void go_on_later(struct iw_conn *conn, const struct core_ep *ep, uint64_t rx_budget,
			uint64_t tx_budget)
{
	if (rx_budget && !iw_tx_has_more(conn, ep, tx_budget))
		return;
	conn->has_more = true;
	if (!conn->is_polled)
		iw_conn_serve_later(conn);
}

/* Nothing but a valid FPDU makes the connection established (TERM-32). */
static void finish_accepted(struct iw_conn *conn, struct core_ep *ep)
{
	if (!conn->is_lost && iw_conn_state(conn) == IW_ACCEPTED) {
		iw_pass_watch(conn);
		return;
	}
	iw_conn_set_state(conn, IW_ACCEPTED);
	iw_setup_failed(conn, ep);
}

/*
 * The fast path posts Receives without asking the transport, and requests by a call of
 * post_request.
 */
static void update_reasons(struct iw_conn *conn, struct core_ep *ep)
{
	uint16_t reasons = 0;

	if (iw_conn_state(conn) != IW_ESTABLISHED)
		reasons |= CORE_EP_SLOW_CONN;
	if (conn->stream.rx.is_blocked || iw_message_is_waiting(conn))
		reasons |= CORE_EP_SLOW_RECV;
	core_handle_put_slow(ep->cell, CORE_EP_SLOW_TRANSPORT, reasons);
}

static int run_receiver(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	uint64_t none = 0;
	int handled;

	/* the peer's end must not find messages that were posted before it and have waited */
	if (conn->stream.tx.hold.count)
		(void)iw_tx_run(conn, ep, &none, false);
	handled = iw_rx_run(conn, ep, budget);

	if (iw_conn_of(ep) == conn)
		update_reasons(conn, ep);
	return handled;
}

/*
 * Nothing can be sent any more. What has arrived is carried out before the end is reported
 * (IWCM-33): the failure of a send says nothing about the bytes that came before it.
 */
static void end_lost(struct iw_conn *conn, struct core_ep *ep)
{
	uint64_t budget = BUDGET;

	(void)run_receiver(conn, ep, &budget);
	if (iw_conn_of(ep) != conn || iw_conn_state(conn) != IW_ESTABLISHED)
		return;
	if (!budget) {
		iw_conn_serve_later(conn);
		return;
	}
	if (conn->stream.rx.end_ns) /* messages wait, and the peer has ended in order before */
		return;
	iw_segment_fail_filling(conn, ep, DAT_DTO_ERR_TRANSPORT);
	iw_complete_lost(conn, ep, DAT_DTO_ERR_TRANSPORT);
	iw_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
}

/* Is the time over that messages wait behind the end of the peer's stream? */
static bool is_end_due(struct iw_conn *conn)
{
	const struct iw_rx *rx = &conn->stream.rx;

	if (!rx->end_ns)
		return false;
	if (core_now_ns() >= rx->end_ns)
		return true;
	iw_conn_lower_deadline(conn, rx->end_ns);
	return false;
}

/* What the parts of a pass have found, in the order of its weight. */
static void judge_pass(struct iw_conn *conn, struct core_ep *ep)
{
	if (iw_conn_state(conn) == IW_ESTABLISHED && conn->is_lost)
		end_lost(conn, ep);
	if (iw_conn_of(ep) == conn && iw_conn_state(conn) == IW_ESTABLISHED &&
	    (is_end_due(conn) || is_drained(conn, ep)))
		iw_conn_close(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* `handled`: what a poll has done before, by the fast path. */
static int run(struct iw_conn *conn, struct core_ep *ep, int handled)
{
	uint64_t rx_budget = BUDGET, tx_budget = BUDGET;
	bool was_accepted = iw_conn_state(conn) == IW_ACCEPTED;
	bool was_due = iw_counts_are_due(conn);

	handled += run_receiver(conn, ep, &rx_budget);
	conn->has_more = false;
	conn->moved += (uint32_t)(BUDGET - rx_budget);
	if (iw_conn_of(ep) != conn)
		return handled + 1;
	if (conn->is_hung_up && rx_budget)
		conn->is_lost = true; /* all that could be read was */
	if (was_accepted && !conn->stream.rx.is_any) {
		finish_accepted(conn, ep);
		return handled;
	}
	if (iw_conn_state(conn) == IW_ESTABLISHED) {
		iw_stream_repeat_rtr(conn);
		handled += iw_tx_run(conn, ep, &tx_budget, false);
		conn->moved += (uint32_t)(BUDGET - tx_budget);
	}
	if (!handled)
		iw_hold_break(&conn->stream.tx.hold);
	/* a thread that polls may answer what it has got, and the counts go with the answer */
	if (was_due || !handled || !conn->is_polled)
		iw_tx_tell(conn, ep);
	judge_pass(conn, ep);
	if (iw_conn_of(ep) != conn)
		return handled + 1;
	if (iw_conn_state(conn) == IW_CLOSING) {
		iw_conn_finish(conn, ep);
		return handled + 1;
	}
	iw_pass_watch(conn);
	go_on_later(conn, ep, rx_budget, tx_budget);
	return handled;
}

int iw_pass_behind(struct iw_conn *conn, struct core_ep *ep, int handled)
{
	int state = core_cancel_off();

	iw_conn_get(conn);
	if (iw_conn_state(conn) == IW_CLOSING)
		iw_conn_finish(conn, ep);
	else if (iw_conn_state(conn) == IW_ACCEPTED || iw_conn_state(conn) == IW_ESTABLISHED)
		handled = run(conn, ep, handled);
	iw_conn_put(conn);
	core_cancel_restore(state);
	return handled;
}

int iw_pass(struct iw_conn *conn, struct core_ep *ep)
{
	return iw_pass_behind(conn, ep, 0);
}

/* After a call of the consumer, which must not report the end of the connection itself. */
static void after_post(struct iw_conn *conn, const struct core_ep *ep, uint64_t rx_budget,
		       uint64_t tx_budget)
{
	if (iw_conn_state(conn) == IW_CLOSING || conn->is_lost || is_drained(conn, ep))
		iw_conn_serve_later(conn);
	else
		iw_pass_watch(conn);
	go_on_later(conn, ep, rx_budget, tx_budget);
}

static void run_requests(struct iw_conn *conn, struct core_ep *ep, bool may_hold)
{
	int state = core_cancel_off();
	uint64_t budget = BUDGET;

	(void)iw_tx_run(conn, ep, &budget, may_hold);
	after_post(conn, ep, BUDGET, budget);
	core_cancel_restore(state);
}

void iw_pass_requests(struct iw_conn *conn, struct core_ep *ep)
{
	run_requests(conn, ep, false);
}

static bool is_large(const struct core_req *req)
{
	return (req->op == CORE_OP_SEND || req->op == CORE_OP_RDMA_WRITE) && req->len >= LARGE;
}

/*
 * A thread that posts large messages without a pause drives its connection as one that polls does:
 * to read the socket takes little time beside such a message.
 */
static void post_large(struct iw_conn *conn, struct core_ep *ep, uint32_t size)
{
	if (!conn->is_polled) {
		run_requests(conn, ep, false);
		return;
	}
	iw_pass_receives(conn, ep);
	iw_engine_count_pass(conn->engine, size);
}

/* For watch_polls in engine/service.c. */
static void count_post(struct iw_engine *engine)
{
	uint64_t posts = atomic_load_explicit(&engine->posts, memory_order_relaxed);

	atomic_store_explicit(&engine->posts, posts + 1, memory_order_relaxed);
}

void iw_pass_post(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req)
{
	struct iw_tx *tx = &conn->stream.tx;
	uint64_t now;

	count_post(conn->engine);
	if (is_large(req)) {
		post_large(conn, ep, (uint32_t)req->len);
		return;
	}
	now = core_now_ns();
	run_requests(conn, ep, iw_hold_may(conn, ep, now));
	if (!tx->hold.count) {
		tx->hold.post_ns = core_now_ns(); /* to send takes longer than a gap */
	} else if (tx->hold.count == 1) {
		iw_engine_add_held(conn->engine, conn);
		iw_conn_lower_deadline(conn, now + IW_HOLD_NS);
	}
}

void iw_pass_receives(struct iw_conn *conn, struct core_ep *ep)
{
	int state = core_cancel_off();
	uint64_t rx_budget = BUDGET_LEAST, tx_budget = BUDGET;

	(void)run_receiver(conn, ep, &rx_budget);
	/* what has come may be what a request waits for, or wants an answer */
	if (iw_conn_state(conn) == IW_ESTABLISHED) {
		(void)iw_tx_run(conn, ep, &tx_budget, false);
		iw_tx_tell(conn, ep);
	}
	after_post(conn, ep, rx_budget, tx_budget);
	core_cancel_restore(state);
}
