// SPDX-License-Identifier: BSD-2-Clause
/*
 * What this side has taken and produced becomes visible to the peer, and wakes it (the top of
 * publish.c describes sleeping and waking). EP locked, unless a section says otherwise.
 *
 * When a fence is left out. Two protocols of a connection are a store followed by a load on both
 * sides, and need a full fence between them: sleeping and waking, announcing a copy and revoking
 * (transfer/direct.c, connect/revoke.c). The side that does this for each message leaves its fence
 * out, once a flag that both sides see allows it. The other side, which does it rarely, has the
 * kernel run a fence on all processors (core/base/fence.h). models/wake.pml, models/keys.pml and models/close.pml model both.
 *
 * - A side that takes many entries without a sleep sets `is_polled`, after which its peer publishes
 *   without a fence. It clears the word, and has the kernel run a fence, before it sleeps.
 * - A side that copies through mapped memory sets `is_unfenced`, once, and announces such copies
 *   without a fence from then on. Keys that were given to no peer (soft_keys_give) never need the
 *   kernel's fence.
 */
#ifndef SHM_PUBLISH_H
#define SHM_PUBLISH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "soft/shm/conn.h"
#include "soft/shm/state.h"

#define SHM_UNREPORTED_MAX 8u /* messages done that may wait for a report */

/* --- when a fence is left out: waking the peer --- */

/* May the fence before the look at the peer's `armed` be left out? Then the peer is awake. */
static inline bool shm_fence_is_peer_polled(const struct shm_conn *conn)
{
	return conn->wake.can_skip_fence &&
	       atomic_load_explicit(&conn->theirs->is_polled, memory_order_relaxed);
}
/* Counts entries that were taken without a sleep between them; after many the peer may omit it. */
void shm_fence_count_taken(struct shm_conn *conn, int entries);
/* To be called before `armed` becomes odd: from here on the peer executes a full fence first. */
void shm_fence_end_polled(struct shm_conn *conn);

/* --- when a fence is left out: announcing a copy --- */

/*
 * Are our announcements of mapped memory without a fence? Our own word, unless the peer has changed
 * it, who is then the only one that may see bytes move through its dead key.
 */
static inline bool shm_fence_is_unfenced(const struct shm_conn *conn)
{
	return conn->wake.can_skip_fence &&
	       atomic_load_explicit(&conn->mine->is_unfenced, memory_order_relaxed);
}

/* --- when a fence is left out: revoking, by any thread --- */

/* Does the peer announce its copies without a fence? */
bool shm_fence_is_peer_unfenced(const struct shm_conn *conn);

/* --- publishing and waking --- */

/* Something was published: wakes the peer if it sleeps. */
__attribute__((noinline)) void shm_conn_wake_if_armed(struct shm_conn *conn);
static inline void shm_conn_wake(struct shm_conn *conn)
{
	/* keeps the compiler from moving the load up: see the top of publish.c */
	atomic_signal_fence(memory_order_seq_cst);
	if (shm_fence_is_peer_polled(conn))
		conn->wake.is_due = false;
	else
		shm_conn_wake_if_armed(conn);
}

/* An outgoing entry reports what is done for the peer. */
static inline void shm_conn_note_reported(struct shm_conn *conn)
{
	conn->report.reported = conn->report.done;
	shm_conn_watch_bit(conn, SHM_WATCH_UNREPORTED, false);
}

/* Puts an entry into the room that was reserved last. A flush has to follow, which wakes the peer. */
static inline void shm_conn_commit(struct shm_conn *conn, struct shm_producer *ring,
				   struct shm_entry *entry)
{
	entry->done = conn->report.done;
	shm_producer_commit(ring, entry);
	shm_conn_note_reported(conn);
	conn->wake.is_due = true;
}

/* Room in a ring for the next bytes of a request. */
struct shm_room {
	uint8_t *to;
	uint32_t bytes;
};
/* Reserves room for the next of `left` bytes: 1, 0 when there is none now, or -EPROTO. */
static inline int shm_room_reserve(struct shm_producer *ring, uint64_t left, struct shm_room *room)
{
	uint32_t most = shm_payload_max(ring->mask);

	room->bytes = left < most ? (uint32_t)left : most;
	return shm_producer_reserve(ring, room->bytes, &room->to);
}
/* Completes its entry. Of a large request, the peer takes one part while we fill the next one. */
void shm_room_commit(struct shm_conn *conn, struct shm_producer *ring, struct shm_entry *entry,
		     const struct shm_room *room);
/* The bytes of that entry are taken. Gives much space back at once. */
void shm_room_take(struct shm_conn *conn, struct shm_consumer *ring, const struct shm_entry *entry);

/*
 * May a report wait? It may while there is little to report and the connection is disarmed, so that
 * another poll follows soon.
 */
static inline bool shm_conn_report_may_wait(const struct shm_conn *conn)
{
	return !conn->report.is_urgent &&
	       conn->report.done - conn->report.reported < SHM_UNREPORTED_MAX &&
	       atomic_load_explicit(&conn->wake.is_disarmed, memory_order_relaxed);
}

/*
 * Reports what is done for the peer by the word, and wakes the peer if it sleeps: all of a flush that
 * a poll without messages needs.
 */
void shm_conn_report(struct shm_conn *conn);
/*
 * Publishes what this side has taken and produced, and wakes the peer if it sleeps. is_lazy: the
 * next entry that goes out, or the next pass, may report what is done.
 */
void shm_conn_flush(struct shm_conn *conn, bool is_lazy);

#endif
