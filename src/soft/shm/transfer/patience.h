// SPDX-License-Identifier: BSD-2-Clause
/*
 * Patience: a side that sleeps and only waits for messages needs no packet for what is done for it.
 *
 * A program that polls its memory for the next message (COMPAT-46) leaves its connections to the
 * service thread. If that were woken for each acknowledgement too, it would run twice for each
 * message. So a side whose service thread arms a connection stores `is_patient` if no thread waits
 * for the end of its requests. The peer's service thread then reports what is done quietly: it
 * stores the word and sends no packet. The packet of the next message serves for both. Without one
 * a packet follows after PATIENCE_NS, or after SHM_QUIET_MAX messages.
 *
 * A patient side does not wait for space either, and gets no packet for space that is given back.
 *
 * Quiet reports are found by passes, and by polls, because a patient connection with requests stays
 * on the list of active connections. Patience ends when something begins to wait:
 *
 * - A thread marks its EVD, executes a full fence, and arms all connections of the list, which are
 *   not patient then. A post, or an offer (place.h), puts its connection on the list, executes a
 *   full fence, and reads the mark. At least one of the two sees the other's store.
 * - The end of patience is a store, a full fence, and a look at what is reported. A report is a
 *   store, a full fence, and a look at `is_patient`. At least one sees the other's store.
 *
 * models/patience.pml models this. All functions need the endpoint's lock, unless one says
 * otherwise.
 */
#ifndef SOFT_SHM_PATIENCE_H
#define SOFT_SHM_PATIENCE_H

#include "core/ep/ep.h"
#include "soft/shm/state.h"

/* So many messages may be done without a packet to a patient peer. */
#define SHM_QUIET_MAX 2u
/* So many connections may be on the list for it: as many as one poll checks (engine/poll.c). */
#define SHM_LISTED_MAX 64u

/* --- our side sleeps --- */

/* Is it patient? Needs no lock: a hint then. */
static inline bool shm_patience_is_set(const struct shm_conn *conn)
{
	return shm_conn_has_segment(conn) &&
	       atomic_load_explicit(&conn->mine->is_patient, memory_order_relaxed);
}

/* Sets the word. The caller executes a full fence before it looks at the peer's words. */
static inline void shm_patience_set(struct shm_conn *conn, bool is_patient)
{
	if (conn->is_patient == is_patient)
		return;
	conn->is_patient = is_patient;
	atomic_store_explicit(&conn->mine->is_patient, is_patient, memory_order_relaxed);
}

/* May the thread that arms the connection be patient? */
bool shm_patience_is_possible(const struct shm_conn *conn, const struct core_ep *ep);

/* Ends it if something waits. To be called after a post or an offer, with the connection on the
 * list. */
void shm_patience_check_patient(struct shm_conn *conn, const struct core_ep *ep);
static inline void shm_patience_check(struct shm_conn *conn, const struct core_ep *ep)
{
	if (__builtin_expect(conn->is_patient, false))
		shm_patience_check_patient(conn, ep);
}

/* --- the peer sleeps --- */

/* Is the peer patient? A hint, unless a full fence is between a store of ours and this. */
static inline bool shm_patience_is_peer_patient(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->theirs->is_patient, memory_order_relaxed);
}

/* Must a packet follow what the word reports? has_reported: it reports more than before. */
bool shm_patience_needs_packet(struct shm_conn *conn, bool has_reported);

/*
 * Must a packet follow space that was given back? A patient peer does not wait for it. When its
 * patience ends, it looks at the space, too.
 */
static inline bool shm_patience_needs_space(const struct shm_conn *conn)
{
	if (!shm_patience_is_peer_patient(conn))
		return true;
	/* full fence: see the top */
	atomic_thread_fence(memory_order_seq_cst);
	return !shm_patience_is_peer_patient(conn);
}

/* The peer is woken, or is awake, and reads what is reported. */
static inline void shm_patience_peer_looks(struct shm_conn *conn)
{
	conn->is_report_quiet = false;
	conn->reported_at_wake = conn->reported;
}

#endif
