// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages that the sender places itself, for a program that polls its memory (COMPAT-46).
 *
 * Such a program leaves its connections to the service thread, which would have to be woken for
 * each message. So a patient side (patience.h) offers the Receive that the next message fills: it
 * stores the key and the address of its memory in the segment. The sender copies the message there
 * with process_vm_writev(2), completes the Send, and puts an entry without payload into the ring.
 * The program finds the message in its memory, and one of its next polls finds the entry and
 * completes the Receive. No thread is woken.
 *
 * - An offer is for one message, by number, and is valid until that message arrives. The receiver
 *   accepts a placed message only with the number that it has offered last.
 * - The sender announces the key while it copies, as for RDMA (direct.h). So dat_lmr_free waits for
 *   the copy, and so does the end of the connection.
 * - The sender puts its entry, executes a full fence, and reads `is_patient` and `revoked`. If the
 *   peer is not patient any more, a packet follows, as for every other entry. If the peer is ending
 *   the connection, the Send is not complete yet. A side that ends a connection stores `revoked`,
 *   executes a full fence, waits for the announcement, and takes a message that was placed. So a
 *   Send that has succeeded also completes its Receive.
 * - A connection with an offer stays on the list of active connections, so polls find the entry. A
 *   thread that begins to wait finds the connection there (patience.h).
 *
 * The entry also reports what the sender has done. Polls find that, and no packet follows later.
 * All functions need the endpoint's lock. models/place.pml models this.
 */
#ifndef SOFT_SHM_PLACE_H
#define SOFT_SHM_PLACE_H

#include "core/ep/ep.h"
#include "soft/shm/state.h"
#include "soft/shm/transfer/patience.h"

/* --- our side receives --- */

/* Is the Receive of the peer's next message offered? */
static inline bool shm_place_has_offer(const struct shm_conn *conn)
{
	return conn->offer && conn->offer == SHM_OFFER(conn->done);
}

/* Offers the oldest Receive if that is possible, and not done already. */
void shm_place_offer(struct shm_conn *conn, struct core_ep *ep);
/* Is the entry a message that may have been placed? */
bool shm_place_is_valid(const struct shm_conn *conn, const struct shm_entry *entry);
/* Counts how often threads polled before such a message was taken. */
void shm_place_count_polls(struct shm_conn *conn);
/* Counts such a message as done. The report needs no packet: the sender has completed the Send. */
void shm_place_count_done(struct shm_conn *conn);
/* The connection has ended, and the peer copies nothing any more: takes a message that it has
 * placed. */
void shm_place_take_last(struct shm_conn *conn, struct core_ep *ep);

/* Has the message arrived that the offer was for? */
static inline bool shm_place_has_old_offer(const struct shm_conn *conn)
{
	return conn->offer && !shm_place_has_offer(conn);
}

/* --- our side sends --- */

/* May the peer's offers be used? */
static inline bool shm_place_is_possible(const struct shm_conn *conn)
{
	return conn->remote.has_cma && shm_patience_is_peer_patient(conn);
}

/* Places a Send and completes it. False: the ring takes it. */
bool shm_place_send(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		    uint64_t *budget);

/* --- both --- */

/* Has the peer's patience changed, or is the offer old, so that shm_place_update is due? */
static inline bool shm_place_is_outdated(const struct shm_conn *conn)
{
	return conn->may_place != shm_place_is_possible(conn) || shm_place_has_old_offer(conn);
}

/* After a pass or a post: offers a Receive, and updates what a post on the fast path looks at. */
void shm_place_update(struct shm_conn *conn, struct core_ep *ep);

#endif
