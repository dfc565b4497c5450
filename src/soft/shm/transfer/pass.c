// SPDX-License-Identifier: BSD-2-Clause
/* One pass over a connection (pass.h). */
#include "soft/shm/transfer/pass.h"

#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/driven.h"
#include "soft/shm/instance.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/transfer/publish.h"
#include "soft/shm/transfer/rx.h"
#include "soft/shm/transfer/tx.h"

/*
 * A poll that takes many entries, or moves many bytes, lasts longer, and counts for more. Not one
 * that takes a message and acknowledgements, as after a look at the memory (COMPAT-46).
 */
#define ENTRIES_PER_POLL 4
#define BYTES_PER_POLL 4096u

/*
 * A ring's space is watched only while each pass reads its counter. A counter that no pass reads
 * would stay ahead of what was seen, and the connection would never sleep.
 */
static void update_watch(struct shm_conn *conn)
{
	const enum shm_inbound_state in = conn->in.state;
	const uint32_t kept = SHM_WATCH_REQUEST_SPACE | SHM_WATCH_MORE; /* as they were set */
	uint32_t watch =
		(atomic_load_explicit(&conn->watch, memory_order_relaxed) & kept) |
		(in == SHM_IN_NO_RECEIVE || in == SHM_IN_READ_FULL ? SHM_WATCH_BLOCKED : 0) |
		(conn->tx.reads ? SHM_WATCH_RESPONSES : 0) |
		(conn->report.reported != conn->report.done ? SHM_WATCH_UNREPORTED : 0) |
		(in == SHM_IN_READ_FULL ? SHM_WATCH_RESPONSE_SPACE : 0);

	atomic_store_explicit(&conn->watch, watch, memory_order_relaxed);
}

void shm_conn_update_reasons(struct shm_conn *conn, struct core_ep *ep)
{
	uint16_t reasons = 0;

	update_watch(conn);
	if (shm_conn_state(conn) != SHM_ESTABLISHED)
		reasons |= CORE_EP_SLOW_CONN;
	if (shm_conn_is_pass_awaited(conn, ep))
		reasons |= CORE_EP_SLOW_QUEUE;
	if (conn->in.state == SHM_IN_NO_RECEIVE)
		reasons |= CORE_EP_SLOW_RECV;
	/*
	 * while the peer waits for a Receive it reads no entry, so no entry can report
	 * (publish_done)
	 */
	if (shm_conn_peer_waits(conn) || conn->in.state >= SHM_IN_MESSAGE)
		reasons |= CORE_EP_SLOW_PEER;
	core_handle_put_slow(ep->cell, CORE_EP_SLOW_TRANSPORT, reasons);
}

/* This thread's poll lasts as long as so many more. */
static void count_polls(struct shm_conn *conn, uint32_t polls)
{
	if (polls && !soft_is_library_thread)
		soft_driven_count(&conn->engine->driven, polls, SHM_DRIVEN_POLLS);
}

/* Gives each part of a pass a minimum. Otherwise a stream in one direction would stop the other
 * one. */
static void raise_to_least(struct shm_pass *pass)
{
	if (pass->budget >= SHM_BUDGET_MIN)
		return;
	pass->granted += SHM_BUDGET_MIN - pass->budget;
	pass->budget = SHM_BUDGET_MIN;
}

/* Reads what the peer says: why a request of ours has failed, or 0. */
static uint32_t read_words(struct shm_conn *conn)
{
	/* acquire, and read first: whatever the peer did before it failed is seen below */
	uint32_t failed = atomic_load_explicit(&conn->theirs->failed, memory_order_acquire);
	/* acquire: what the peer waits for is not included in `done`, which is read later */
	uint32_t waits = atomic_load_explicit(&conn->theirs->waits, memory_order_acquire);

	atomic_store_explicit(&conn->seen_waits, waits, memory_order_relaxed);
	return failed;
}

/* Adds what a part has done, or ends the connection. False: no further part may run. */
static bool ran(const struct shm_conn *conn, struct shm_pass *pass, int rc)
{
	if (rc < 0)
		pass->end = DAT_CONNECTION_EVENT_BROKEN;
	else
		pass->handled += rc;
	return rc >= 0 && shm_conn_state(conn) == SHM_ESTABLISHED;
}

/* Runs the parts in order. The core may end the connection when it gets a completion. */
static void run_parts(struct shm_conn *conn, struct core_ep *ep, struct shm_pass *pass,
		      bool is_final)
{
	uint32_t failed = read_words(conn);
	int placed;

	if (!ran(conn, pass, shm_tx_read_done(conn, ep)) ||
	    !ran(conn, pass, shm_tx_responses(conn, ep, pass)))
		return;
	if (failed && !pass->has_more) {
		shm_tx_failed(conn, ep, failed);
		pass->end = DAT_CONNECTION_EVENT_BROKEN;
		return;
	}
	raise_to_least(pass);
	placed = shm_rx_run(conn, ep, pass);
	if (!ran(conn, pass, placed))
		return;
	shm_conn_count_placed(conn, placed);
	if (is_final)
		return;
	raise_to_least(pass);
	(void)ran(conn, pass, shm_tx_run(conn, ep, pass));
	count_polls(conn, (uint32_t)((pass->granted - pass->budget) / BYTES_PER_POLL));
}

/*
 * Graceful disconnect: have all requests of the endpoint finished? If the peer also disconnects
 * gracefully and our message finds no Receive there, neither side waits any longer (EP-STATE-40).
 */
static bool is_drained(const struct shm_conn *conn, const struct core_ep *ep)
{
	return conn->end.ending == SHM_ENDING_DRAINED &&
	       (ep->req.head == ep->req.tail ||
		shm_conn_peer_waits(conn) == (SHM_WAITS_RECEIVE | SHM_WAITS_DRAIN));
}

/*
 * A request has failed here: the connection breaks when those before it have finished, as on a
 * wire. Requests that wait for a Receive or for a stopped peer are not waited for.
 */
static bool is_failed(const struct shm_conn *conn, struct shm_pass *pass)
{
	if (conn->end.ending != SHM_ENDING_FAILED)
		return false;
	if ((shm_conn_acked(conn) == conn->tx.sent && !conn->tx.reads) ||
	    (shm_conn_peer_waits(conn) & SHM_WAITS_RECEIVE) || core_now_ns() >= conn->end.limit_ns)
		return true;
	shm_pass_again(pass, conn->end.limit_ns);
	return false;
}

void shm_conn_count_placed(struct shm_conn *conn, int entries)
{
	count_polls(conn, (uint32_t)entries / ENTRIES_PER_POLL);
}

/* Has the connection to end, because of what waited for that? */
static DAT_EVENT_NUMBER find_end(const struct shm_conn *conn, const struct core_ep *ep,
				 struct shm_pass *pass)
{
	if (is_failed(conn, pass))
		return DAT_CONNECTION_EVENT_BROKEN;
	return is_drained(conn, ep) ? DAT_CONNECTION_EVENT_DISCONNECTED : 0;
}

struct shm_pass shm_pass_run(struct shm_conn *conn, struct core_ep *ep, bool is_final)
{
	struct shm_pass pass = SHM_PASS_NEW;

	run_parts(conn, ep, &pass, is_final);
	shm_conn_watch_bit(conn, SHM_WATCH_MORE, pass.has_more);
	if (pass.end || shm_conn_state(conn) != SHM_ESTABLISHED) {
		pass.handled++;
		return pass;
	}
	shm_conn_flush(conn, pass.handled);
	shm_conn_update_reasons(conn, ep);
	shm_fence_count_taken(conn, pass.handled);
	if (!is_final)
		pass.end = find_end(conn, ep, &pass);
	return pass;
}
