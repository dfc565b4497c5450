// SPDX-License-Identifier: BSD-2-Clause
/*
 * One pass over a connection: what the peer has done for us, what it requests, what we request;
 * then publishing, waking, and going to sleep (progress.c). EP locked unless a function says
 * otherwise.
 */
#ifndef SHM_PROGRESS_H
#define SHM_PROGRESS_H

#include "soft/shm/conn.h"
#include "soft/shm/state.h"

#define SHM_BUDGET (1024u * 1024u) /* bytes that one pass moves at most */
/* bytes that each part of a pass may move, whatever the parts before it have moved */
#define SHM_BUDGET_MIN (SHM_BUDGET / 8)
#define SHM_UNREPORTED_MAX 8u /* messages done that may wait for a report */
/* entries without a sleep, after which the peer may omit the fence; one by the kernel: 20 us */
#define SHM_POLLED_AFTER 512u
#define SHM_BATCH 32u /* entries of each kind that one pass takes at most */

/* --- pending work --- */

/* Is there work other than messages and acknowledgements? */
bool shm_conn_has_rare_work(const struct shm_conn *conn, uint32_t watch);
/* Has the peer reported a failure, begun or ceased to wait, or has a pass left work? A hint. */
static inline bool shm_conn_has_news(const struct shm_conn *conn)
{
	const struct shm_side *theirs = conn->theirs;

	/* relaxed: a pass, which has the lock, reads again */
#define WORD(word) atomic_load_explicit(&(word), memory_order_relaxed)
	return WORD(theirs->waits) != WORD(conn->seen_waits) || WORD(theirs->failed) != 0 ||
	       WORD(conn->has_more);
#undef WORD
}

/* Is there work? Needs no lock: a hint, and a wrong answer is soon corrected. */
static inline bool shm_conn_has_work(const struct shm_conn *conn)
{
	/* relaxed throughout: a pass, which has the lock, reads again */
	uint32_t watch = atomic_load_explicit(&conn->watch, memory_order_relaxed);
	uint32_t done = atomic_load_explicit(&conn->theirs->done, memory_order_relaxed);

	if (!(watch & SHM_WATCH_BLOCKED) && shm_consumer_has_entry(&conn->request_in))
		return true;
	if ((int32_t)(done - shm_conn_acked(conn)) > 0 || shm_conn_has_news(conn))
		return true;
	return watch && shm_conn_has_rare_work(conn, watch);
}

/* --- passes --- */

/* One pass over everything that can move; ESTABLISHED. Returns how much was done. */
int shm_conn_pass(struct shm_conn *conn, struct core_ep *ep);
/* If the last pass used up its budget: makes sure that another one follows. */
void shm_conn_continue_later(struct shm_conn *conn);
/* Takes everything that is complete in the rings of a peer that has gone. */
void shm_conn_drain(struct shm_conn *conn, struct core_ep *ep);
/* After a change outside the fast path: updates what polls check, and the endpoint's
 * slow_reasons. */
void shm_conn_update_reasons(struct shm_conn *conn, struct core_ep *ep);

/* --- publishing --- */

/* An outgoing entry reports what is done for the peer. */
static inline void shm_conn_note_reported(struct shm_conn *conn)
{
	conn->reported = conn->done;
	shm_conn_watch_bit(conn, SHM_WATCH_UNREPORTED, false);
}

/* Completes the entry that was reserved last. */
static inline void shm_conn_commit(struct shm_conn *conn, struct shm_producer *ring,
				   struct shm_entry *entry)
{
	entry->done = conn->done;
	shm_producer_commit(ring, entry);
	shm_conn_note_reported(conn);
}

/*
 * May a report wait? It may while there is little to report and the connection is disarmed, so that
 * another poll follows soon.
 */
static inline bool shm_conn_report_may_wait(const struct shm_conn *conn)
{
	return !conn->is_report_urgent && conn->done - conn->reported < SHM_UNREPORTED_MAX &&
	       atomic_load_explicit(&conn->is_disarmed, memory_order_relaxed);
}

/* Reports what is done for the peer by the word; a packet does not follow. */
void shm_conn_store_done(struct shm_conn *conn);
/* The same, and wakes the peer if it sleeps: all of a flush that a poll without messages needs. */
void shm_conn_report(struct shm_conn *conn);
/*
 * Publishes what this side has taken and produced, and wakes the peer if it sleeps. is_lazy: the
 * next entry that goes out, or the next pass, may report what is done.
 */
void shm_conn_flush(struct shm_conn *conn, bool is_lazy);

/* --- sleeping and waking --- */

/* Something was published: wakes the peer if it sleeps. */
__attribute__((noinline)) void shm_conn_wake_if_armed(struct shm_conn *conn);
static inline void shm_conn_wake(struct shm_conn *conn)
{
	/* keeps the compiler from moving the load up: see the top of progress.c */
	atomic_signal_fence(memory_order_seq_cst);
	if (conn->can_skip_fence &&
	    atomic_load_explicit(&conn->theirs->is_polled, memory_order_relaxed))
		conn->is_wake_pending = false;
	else
		shm_conn_wake_if_armed(conn);
}

/* Does something of ours wait for the end of an earlier request, which a pass would notice? */
static inline bool shm_conn_is_pass_awaited(const struct shm_conn *conn, const struct core_ep *ep)
{
	return conn->tx_next != ep->req.tail || conn->is_draining || conn->is_failing;
}

/* Space that the peer gives back frees pieces for other connections (pool.h). */
static inline bool shm_conn_is_lending(const struct shm_conn *conn)
{
	return conn->bulk.requests.count || conn->bulk.responses.count;
}

/* Goes to sleep; false if there is work to do first. */
bool shm_conn_arm(struct shm_conn *conn);
/* Arms it, after passes as long as there is work. False: there still is, but other connections
 * come first. */
bool shm_conn_settle(struct shm_conn *conn, struct core_ep *ep);
void shm_conn_disarm(struct shm_conn *conn);
/* Counts messages and RDMA of the peer that a poll has placed, if they are many (soft/driven.h). */
void shm_conn_count_placed(struct shm_conn *conn, int entries);
/* Counts entries that were taken without a sleep between them. */
void shm_conn_count_taken(struct shm_conn *conn, int entries);

#endif
