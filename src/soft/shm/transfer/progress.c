// SPDX-License-Identifier: BSD-2-Clause
/*
 * One pass over a connection: what the peer has done for us, what it requests, what we request;
 * then publishing, waking, and going to sleep.
 *
 * Sleeping and waking are a store followed by a load on both sides. A side that goes to sleep
 * stores an odd number in `armed`, executes a full fence, and reads the other side's words once
 * more. A side that publishes stores its words, executes a full fence, and reads `armed`. At least
 * one of them sees the other's store, so no wake-up is lost. One packet per number is enough,
 * because the reader of the packet changes the number before it reads the rings. Where a thread of
 * the consumer sleeps on the bell, ringing it replaces the packet (engine/sleep.c).
 *
 * On a connection that has been polled for long (`is_polled`) the publishing side omits the fence.
 * The fence is the most expensive part of a small message, because it waits until all stores before
 * it have reached the lines that the peer holds. A side that goes to sleep first clears `is_polled`
 * and has the kernel run a fence on every processor where a peer may run.
 *
 * models/wake.pml models publishing, arming and the reader of packets.
 */
#include "soft/shm/transfer/progress.h"

#include <errno.h>

#include "core/base/clock.h"
#include "core/base/fence.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/driven.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/engine/sleep.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/piece.h"
#include "soft/shm/transfer/rx.h"
#include "soft/shm/transfer/tx.h"
#include "soft/shm/wire.h"

#define DRAIN_PASSES 256u
#define PASSES_MAX 16u /* of one connection in a row */
#define WAKE_RETRY_NS 10000000u
/*
 * A poll that takes many entries lasts longer, and counts for more. Not one that takes a message
 * and acknowledgements, as after a look at the memory (COMPAT-46).
 */
#define ENTRIES_PER_POLL 4
#define DONE_LAG_MAX 0x40000000u /* entries done that the word does not report yet */

bool shm_conn_has_rare_work(const struct shm_conn *conn, uint32_t watch)
{
	const struct shm_side *theirs = conn->theirs;

	/* relaxed throughout: see shm_conn_has_work */
#define WORD(word) atomic_load_explicit(&(word), memory_order_relaxed)
	return (watch & SHM_WATCH_UNREPORTED) ||
	       ((watch & SHM_WATCH_RESPONSES) && shm_consumer_has_entry(&conn->response_in)) ||
	       ((watch & SHM_WATCH_REQUEST_SPACE) &&
		WORD(theirs->request_consumed) != WORD(conn->seen_request_space)) ||
	       ((watch & SHM_WATCH_RESPONSE_SPACE) &&
		WORD(theirs->response_consumed) != WORD(conn->seen_response_space));
#undef WORD
}

/*
 * A ring's space is watched only while each pass reads its counter. A counter that no pass reads
 * would stay ahead of what was seen, and the connection would never sleep.
 */
static void update_watch(struct shm_conn *conn)
{
	uint32_t watch =
		(conn->is_head_blocked ? SHM_WATCH_BLOCKED : 0) |
		(conn->reads || conn->arrival.is_supplied ? SHM_WATCH_RESPONSES : 0) |
		(conn->reported != conn->done ? SHM_WATCH_UNREPORTED : 0) |
		(conn->is_space_wanted || conn->bulk.requests.count ? SHM_WATCH_REQUEST_SPACE : 0) |
		(conn->is_response_wanted || conn->is_supply_waiting || conn->bulk.responses.count
			 ? SHM_WATCH_RESPONSE_SPACE
			 : 0);

#define NOTE(word, value) atomic_store_explicit(&conn->word, value, memory_order_relaxed)
	NOTE(watch, watch);
	NOTE(seen_waits, conn->peer_waits);
	NOTE(seen_request_space, conn->request_out.consumed);
	NOTE(seen_response_space, conn->response_out.consumed);
#undef NOTE
}

void shm_conn_update_reasons(struct shm_conn *conn, struct core_ep *ep)
{
	uint16_t reasons = 0;

	update_watch(conn);
	if (shm_conn_state(conn) != SHM_ESTABLISHED)
		reasons |= CORE_EP_SLOW_CONN;
	if (shm_conn_is_pass_awaited(conn, ep) || shm_conn_is_lending(conn))
		reasons |= CORE_EP_SLOW_QUEUE;
	if (conn->arrival.is_blocked)
		reasons |= CORE_EP_SLOW_RECV;
	/*
	 * while the peer waits for a Receive it reads no entry, so no entry can report
	 * (publish_done)
	 */
	if (conn->peer_waits || conn->arrival.is_begun || conn->write.is_begun ||
	    conn->read.is_begun)
		reasons |= CORE_EP_SLOW_PEER;
	core_handle_put_slow(ep->cell, CORE_EP_SLOW_TRANSPORT, reasons);
}

/* For dat_stat. EP locked. */
static void count_wakeup(const struct shm_conn *conn)
{
	struct core_handle *cell = shm_conn_ep(conn).cell;
	struct core_ep *ep;

	/* later the endpoint may be gone */
	if (!cell || shm_conn_state(conn) != SHM_ESTABLISHED)
		return;
	ep = cell->object;
	ep->counts.wakeups++;
}

void shm_conn_wake_if_armed(struct shm_conn *conn)
{
	uint32_t armed;

	/* full fence: see the top of the file */
	atomic_thread_fence(memory_order_seq_cst);
	armed = atomic_load_explicit(&conn->theirs->armed, memory_order_relaxed);
	if (!(armed & 1) || armed == conn->woken) {
		conn->is_wake_pending = false;
		return;
	}
	conn->is_wake_pending =
		!shm_sleep_wake(conn) && shm_conn_send_word(conn, SHM_WIRE_WAKE, 0) < 0;
	if (conn->is_wake_pending) {
		/*
		 * the kernel lacks memory, or the socket is full of other packets; if the peer is
		 * gone, the end of the socket shows it
		 */
		shm_conn_lower_deadline(conn, core_now_ns() + WAKE_RETRY_NS);
		return;
	}
	conn->woken = armed;
	shm_count(conn, SHM_COUNT_WAKE);
	count_wakeup(conn);
}

/*
 * Must the word report what is done, because an entry is not enough? The peer reads no entry behind
 * a message that waits for a Receive there (DTO-117), and none before it reads `failed` or when the
 * connection ends (DTO-52). A word that lags by half of its range would look like a newer value.
 */
static bool is_word_needed(const struct shm_conn *conn, bool is_lazy)
{
	return !is_lazy || conn->arrival.is_supplied || (conn->peer_waits & SHM_WAITS_RECEIVE) ||
	       conn->done - conn->stored >= DONE_LAG_MAX;
}

void shm_conn_store_done(struct shm_conn *conn)
{
	conn->reported = conn->done;
	conn->stored = conn->done;
	conn->is_report_urgent = false;
	shm_conn_watch_bit(conn, SHM_WATCH_UNREPORTED, false);
	/* release: pairs with the acquire in shm_tx_read_done; the messages are placed before */
	SHM_TSAN_RELEASE(conn->done);
	atomic_store_explicit(&conn->mine->done, conn->done, memory_order_release);
}

/*
 * Reports to the peer what is done for it. This stores to a line that the peer polls, and the next
 * message would have to wait for that store. So a small report waits for an entry that carries it,
 * or for the next pass, whichever comes first. A report that frees much memory of the peer does not
 * wait.
 */
static bool publish_done(struct shm_conn *conn, bool is_lazy)
{
	uint32_t reported = conn->reported;

	if (is_word_needed(conn, is_lazy)) {
		reported = conn->stored;
		is_lazy = false;
	}
	if (reported == conn->done || (is_lazy && shm_conn_report_may_wait(conn)))
		return false;
	shm_conn_store_done(conn);
	return true;
}

void shm_conn_report(struct shm_conn *conn)
{
	shm_conn_store_done(conn);
	shm_conn_wake(conn);
}

void shm_conn_flush(struct shm_conn *conn, bool is_lazy)
{
	struct shm_side *mine = conn->mine;
	uint32_t waits = (conn->arrival.is_blocked ? SHM_WAITS_RECEIVE : 0) |
			 (conn->is_draining ? SHM_WAITS_DRAIN : 0) |
			 (conn->arrival.is_supplied ? SHM_WAITS_FOR(conn->done) : 0);
	bool has_changed = conn->is_wake_pending;

	has_changed |= shm_producer_publish(&conn->request_out);
	has_changed |= shm_producer_publish(&conn->response_out);
	if (shm_consumer_release(&conn->request_in)) {
		has_changed = true;
		shm_grow_in(conn);
	}
	has_changed |= shm_consumer_release(&conn->response_in);
	has_changed |= conn->bulk.is_space_returned;
	conn->bulk.is_space_returned = false;
	has_changed |= publish_done(conn, is_lazy);
	if (atomic_load_explicit(&mine->waits, memory_order_relaxed) != waits) {
		/* release, behind `done`: what this side waits for is not included in it */
		atomic_store_explicit(&mine->waits, waits, memory_order_release);
		has_changed = true;
	}
	if (has_changed)
		shm_conn_wake(conn);
}

/* Gives each part of a pass a minimum. Otherwise a stream in one direction would stop the other
 * one. */
static void raise_to_least(uint64_t *budget)
{
	if (*budget < SHM_BUDGET_MIN)
		*budget = SHM_BUDGET_MIN;
}

/*
 * Runs the parts in order; a part may end the connection. Adds what was done to *handled; -EPROTO.
 */
static int run_parts(struct shm_conn *conn, struct core_ep *ep, int *handled, bool is_final)
{
	uint64_t budget = SHM_BUDGET;
	/* acquire, and read first: whatever the peer did before it failed is seen below */
	uint32_t failed = atomic_load_explicit(&conn->theirs->failed, memory_order_acquire);
	int rc;

	/* acquire, likewise: what the peer waits for is not included in `done` */
	conn->peer_waits = atomic_load_explicit(&conn->theirs->waits, memory_order_acquire);
	atomic_store_explicit(&conn->has_more, false, memory_order_relaxed);
	conn->has_declined = false;
	rc = shm_pool_reclaim(conn);
	if (rc < 0)
		return rc;
	rc = shm_tx_read_done(conn, ep);
	if (rc < 0 || shm_conn_state(conn) != SHM_ESTABLISHED)
		return rc;
	*handled += rc;
	rc = shm_tx_responses(conn, ep, &budget);
	if (rc < 0 || shm_conn_state(conn) != SHM_ESTABLISHED)
		return rc;
	*handled += rc;
	if (failed && !atomic_load_explicit(&conn->has_more, memory_order_relaxed))
		return shm_tx_failed(conn, ep, failed);
	raise_to_least(&budget);
	rc = shm_rx_run(conn, ep, &budget);
	if (rc < 0 || shm_conn_state(conn) != SHM_ESTABLISHED)
		return rc;
	shm_conn_count_placed(conn, rc);
	*handled += rc;
	if (is_final)
		return 0;
	raise_to_least(&budget);
	rc = shm_tx_supply(conn, ep, &budget);
	if (rc < 0 || shm_conn_state(conn) != SHM_ESTABLISHED)
		return rc;
	*handled += rc;
	raise_to_least(&budget);
	rc = shm_tx_run(conn, ep, &budget);
	if (rc > 0)
		*handled += rc;
	return rc;
}

/*
 * Graceful disconnect: have all requests of the endpoint finished? If the peer also disconnects
 * gracefully and our message finds no Receive there, neither side waits any longer (EP-STATE-40).
 */
static bool is_drained(const struct shm_conn *conn, const struct core_ep *ep)
{
	return conn->is_draining && (ep->req.head == ep->req.tail ||
				     conn->peer_waits == (SHM_WAITS_RECEIVE | SHM_WAITS_DRAIN));
}

/*
 * A request has failed here: the connection breaks when those before it have finished, as on a
 * wire. Requests that wait for a Receive or for a stopped peer are not waited for.
 */
static bool is_failed(struct shm_conn *conn)
{
	if (!conn->is_failing)
		return false;
	if ((shm_conn_acked(conn) == conn->sent && !conn->reads) ||
	    (conn->peer_waits & SHM_WAITS_RECEIVE) || core_now_ns() >= conn->failing_ns)
		return true;
	shm_conn_lower_deadline(conn, conn->failing_ns);
	return false;
}

void shm_conn_count_placed(struct shm_conn *conn, int entries)
{
	if (entries >= ENTRIES_PER_POLL && !soft_is_library_thread)
		soft_driven_count(&conn->engine->driven, (uint32_t)entries / ENTRIES_PER_POLL,
				  SHM_DRIVEN_POLLS);
}

/* After many entries without a sleep, the peer may omit the fence. */
void shm_conn_count_taken(struct shm_conn *conn, int entries)
{
	/* relaxed: this side is the only writer */
	if (!entries || atomic_load_explicit(&conn->mine->is_polled, memory_order_relaxed))
		return;
	conn->taken += (uint32_t)entries;
	if (conn->taken >= SHM_POLLED_AFTER &&
	    atomic_load_explicit(&conn->is_disarmed, memory_order_relaxed) &&
	    core_fence_is_supported(CORE_FENCE_HOST))
		atomic_store_explicit(&conn->mine->is_polled, 1, memory_order_relaxed);
}

static int one_pass(struct shm_conn *conn, struct core_ep *ep, bool is_final)
{
	int handled = 0;
	int rc = run_parts(conn, ep, &handled, is_final);

	if (shm_conn_state(conn) != SHM_ESTABLISHED)
		return handled + 1;
	if (rc < 0) {
		shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
		return handled + 1;
	}
	shm_conn_flush(conn, handled);
	shm_conn_update_reasons(conn, ep);
	shm_conn_count_taken(conn, handled);
	return handled;
}

void shm_conn_continue_later(struct shm_conn *conn)
{
	if (!atomic_load_explicit(&conn->has_more, memory_order_relaxed))
		return;
	shm_engine_activate(conn->engine, conn);
	/* relaxed: a hint for the service thread, which checks the connections themselves */
	atomic_store_explicit(&conn->engine->has_more, true, memory_order_relaxed);
}

int shm_conn_pass(struct shm_conn *conn, struct core_ep *ep)
{
	int handled = one_pass(conn, ep, false);

	if (shm_conn_state(conn) == SHM_ESTABLISHED && is_failed(conn))
		shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
	if (shm_conn_state(conn) == SHM_ESTABLISHED && is_drained(conn, ep))
		shm_conn_close(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	if (shm_conn_state(conn) == SHM_CLOSING)
		shm_conn_finish(conn, ep);
	else
		shm_conn_continue_later(conn);
	return handled;
}

void shm_conn_drain(struct shm_conn *conn, struct core_ep *ep)
{
	unsigned passes;

	/* bounded: a live peer that keeps writing after its CLOSE does not keep us here */
	for (passes = 0; passes < DRAIN_PASSES; passes++)
		if (shm_conn_state(conn) != SHM_ESTABLISHED || !one_pass(conn, ep, true))
			return;
}

/* From here on the peer executes a full fence before it reads `armed`. */
static void end_polling(struct shm_conn *conn)
{
	conn->taken = 0;
	/* relaxed: this side is the only writer */
	if (!atomic_load_explicit(&conn->mine->is_polled, memory_order_relaxed))
		return;
	atomic_store_explicit(&conn->mine->is_polled, 0, memory_order_relaxed);
	core_fence_heavy(CORE_FENCE_HOST);
}

bool shm_conn_arm(struct shm_conn *conn)
{
	uint32_t armed = atomic_load_explicit(&conn->mine->armed, memory_order_relaxed);

	end_polling(conn);
	if (!(armed & 1))
		atomic_store_explicit(&conn->mine->armed, armed + 1, memory_order_relaxed);
	/* full fence: see the top of the file */
	atomic_thread_fence(memory_order_seq_cst);
	if (shm_conn_has_work(conn)) {
		if (!(armed & 1))
			atomic_store_explicit(&conn->mine->armed, armed + 2, memory_order_relaxed);
		return false;
	}
	if (atomic_exchange_explicit(&conn->is_disarmed, false, memory_order_relaxed))
		atomic_fetch_sub(&conn->engine->disarmed, 1);
	shm_engine_deactivate(conn->engine, conn);
	/* relaxed: a hint */
	atomic_store_explicit(&conn->engine->armed_last, conn->id, memory_order_relaxed);
	return true;
}

bool shm_conn_settle(struct shm_conn *conn, struct core_ep *ep)
{
	unsigned i;

	for (i = 0; i < PASSES_MAX; i++) {
		if (shm_conn_state(conn) != SHM_ESTABLISHED || shm_conn_arm(conn))
			return true;
		shm_conn_pass(conn, ep);
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
	if (!atomic_exchange_explicit(&conn->is_disarmed, true, memory_order_relaxed))
		atomic_fetch_add(&conn->engine->disarmed, 1);
	shm_engine_activate(conn->engine, conn);
}
