// SPDX-License-Identifier: BSD-2-Clause
/*
 * What this side has taken and produced becomes visible to the peer, and wakes it (publish.h).
 *
 * Sleeping and waking are a store followed by a load on both sides. A side that goes to sleep
 * stores an odd number in `armed`, executes a full fence, and reads the other side's words once
 * more. A side that publishes stores its words, executes a full fence, and reads `armed`. At least
 * one of them sees the other's store, so no wake-up is lost. One packet per number is enough,
 * because the reader of the packet changes the number before it reads the rings. Where a thread of
 * the consumer sleeps on the bell, ringing it replaces the packet (engine/drive.c).
 *
 * On a connection that has been polled for long (`is_polled`) the publishing side omits the fence.
 * The fence is the most expensive part of a small message, because it waits until all stores before
 * it have reached the lines that the peer holds (publish.h).
 *
 * models/wake.pml models publishing, arming (engine/drive.c) and the reader of packets.
 */
#include "soft/shm/transfer/publish.h"

#include "core/transport.h"
#include "core/base/clock.h"
#include "core/base/fence.h"
#include "soft/shm/instance.h"
#include "soft/shm/socket.h"
#include "soft/shm/state.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/bytes/wire.h"

#define WAKE_RETRY_NS 10000000u
#define DONE_LAG_MAX 0x40000000u /* entries done that the word does not report yet */

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

/* Wakes a thread of the peer that sleeps on its bell (engine/drive.c). False: there is none. */
static bool wake_sleeper(const struct shm_conn *conn)
{
	/* relaxed: behind the fence of shm_conn_wake_if_armed */
	return atomic_load_explicit(&conn->theirs->sleeps, memory_order_relaxed) &&
	       core_bell_wake(&conn->theirs->bell);
}

void shm_conn_wake_if_armed(struct shm_conn *conn)
{
	uint32_t armed;

	/* full fence: see the top of the file */
	atomic_thread_fence(memory_order_seq_cst);
	armed = atomic_load_explicit(&conn->theirs->armed, memory_order_relaxed);
	if (!(armed & 1) || armed == conn->wake.woken) {
		conn->wake.is_due = false;
		return;
	}
	conn->wake.is_due = !wake_sleeper(conn) && shm_conn_send_word(conn, SHM_WIRE_WAKE, 0) < 0;
	if (conn->wake.is_due) {
		/*
		 * the kernel lacks memory, or the socket is full of other packets; if the peer is
		 * gone, the end of the socket shows it
		 */
		shm_conn_lower_deadline(conn, core_now_ns() + WAKE_RETRY_NS);
		return;
	}
	conn->wake.woken = armed;
	count_wakeup(conn);
}

/*
 * What the word says. Our own store, unless the peer has changed it, which misleads nobody but the
 * peer.
 */
static uint32_t stored_done(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->mine->done, memory_order_relaxed);
}

/*
 * Must the word report what is done, because an entry is not enough? The peer reads no entry behind
 * a message that waits for a Receive there (DTO-117), and none before it reads `failed` or when the
 * connection ends (DTO-52). A word that lags by half of its range would look like a newer value.
 */
static bool is_word_needed(const struct shm_conn *conn, bool is_lazy)
{
	return !is_lazy || (shm_conn_peer_waits(conn) & SHM_WAITS_RECEIVE) ||
	       conn->report.done - stored_done(conn) >= DONE_LAG_MAX;
}

/* Reports what is done for the peer by the word; a packet does not follow. */
static void store_done(struct shm_conn *conn)
{
	conn->report.reported = conn->report.done;
	conn->report.is_urgent = false;
	shm_conn_watch_bit(conn, SHM_WATCH_UNREPORTED, false);
	/* release: pairs with the acquire in shm_tx_read_done; the messages are placed before */
	SHM_TSAN_RELEASE(conn->report.done);
	atomic_store_explicit(&conn->mine->done, conn->report.done, memory_order_release);
}

/*
 * Reports to the peer what is done for it. This stores to a line that the peer polls, and the next
 * message would have to wait for that store. So a small report waits for an entry that carries it,
 * or for the next pass, whichever comes first. A report that frees much memory of the peer does not
 * wait.
 */
static bool publish_done(struct shm_conn *conn, bool is_lazy)
{
	uint32_t reported = conn->report.reported;

	if (is_word_needed(conn, is_lazy)) {
		reported = stored_done(conn);
		is_lazy = false;
	}
	if (reported == conn->report.done || (is_lazy && shm_conn_report_may_wait(conn)))
		return false;
	store_done(conn);
	return true;
}

void shm_conn_report(struct shm_conn *conn)
{
	store_done(conn);
	shm_conn_wake(conn);
}

void shm_room_commit(struct shm_conn *conn, struct shm_producer *ring, struct shm_entry *entry,
		     const struct shm_room *room)
{
	entry->payload = (uint16_t)room->bytes;
	shm_conn_commit(conn, ring, entry);
	if (!(entry->flags & SHM_FLAG_LAST))
		shm_conn_wake(conn);
}

void shm_room_take(struct shm_conn *conn, struct shm_consumer *ring, const struct shm_entry *entry)
{
	shm_consumer_take(ring, entry->payload);
	if (entry->payload < SHM_REQUEST_PAYLOAD)
		return;
	shm_consumer_give_back(ring);
	conn->wake.is_due = true;
}

void shm_conn_flush(struct shm_conn *conn, bool is_lazy)
{
	struct shm_side *mine = conn->mine;
	uint32_t waits = (conn->in.state == SHM_IN_NO_RECEIVE ? SHM_WAITS_RECEIVE : 0) |
			 (conn->end.ending == SHM_ENDING_DRAINED ? SHM_WAITS_DRAIN : 0);
	bool has_changed = conn->wake.is_due;

	has_changed |= shm_consumer_release(&conn->request_in);
	has_changed |= shm_consumer_release(&conn->response_in);
	has_changed |= publish_done(conn, is_lazy);
	if (atomic_load_explicit(&mine->waits, memory_order_relaxed) != waits) {
		/* release, behind `done`: what this side waits for is not included in it */
		atomic_store_explicit(&mine->waits, waits, memory_order_release);
		has_changed = true;
	}
	if (has_changed)
		shm_conn_wake(conn);
}

/* --- when a fence is left out (publish.h) --- */

void shm_fence_count_taken(struct shm_conn *conn, int entries)
{
	/* relaxed: this side is the only writer */
	if (!entries || atomic_load_explicit(&conn->mine->is_polled, memory_order_relaxed))
		return;
	conn->wake.taken += (uint32_t)entries;
	if (conn->wake.taken >= CORE_FENCE_AFTER_ENTRIES &&
	    atomic_load_explicit(&conn->wake.is_disarmed, memory_order_relaxed) &&
	    core_fence_is_supported(CORE_FENCE_HOST))
		atomic_store_explicit(&conn->mine->is_polled, 1, memory_order_relaxed);
}

void shm_fence_end_polled(struct shm_conn *conn)
{
	conn->wake.taken = 0;
	/* relaxed: this side is the only writer */
	if (!atomic_load_explicit(&conn->mine->is_polled, memory_order_relaxed))
		return;
	atomic_store_explicit(&conn->mine->is_polled, 0, memory_order_relaxed);
	core_fence_heavy(CORE_FENCE_HOST);
}

bool shm_fence_is_peer_unfenced(const struct shm_conn *conn)
{
	return shm_conn_has_segment(conn) && shm_conn_reach(conn) >= SHM_REACH_DIRECT &&
	       atomic_load_explicit(&conn->theirs->is_unfenced, memory_order_relaxed);
}
