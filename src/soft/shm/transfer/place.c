// SPDX-License-Identifier: BSD-2-Clause
/* See place.h. */
#include "soft/shm/transfer/place.h"

#include <errno.h>

#include "core/transport.h"
#include "soft/key.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/patience.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/transfer/tx.h"

/*
 * A thread that polls its EVD, and not its memory, polls more often than that between two messages.
 * After so many messages in a row the ring takes the next one: it is faster for such a thread.
 */
#define POLLS_MANY 16u
#define POLLED_MANY 16u

/* --- our side receives --- */

/* Is there room on the list? Polls check only so many connections. */
static bool has_room_on_list(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->is_active, memory_order_relaxed) ||
	       shm_active_count(conn->engine) < SHM_LISTED_MAX;
}

static bool is_offer_wanted(const struct shm_conn *conn, const struct core_ep *ep)
{
	/* the peer fetches our Sends: so it can access our memory */
	return conn->is_patient && conn->remote.is_pulling && !ep->srq && !conn->arrival.is_begun &&
	       conn->polled_placed < POLLED_MANY && !shm_place_has_offer(conn) &&
	       has_room_on_list(conn) &&
	       /* a watermark shall be noticed when the message arrives */
	       !(ep->cell->slow_reasons & CORE_EP_SLOW_WATERMARK);
}

void shm_place_offer(struct shm_conn *conn, struct core_ep *ep)
{
	struct shm_side *mine = conn->mine;
	const struct core_wqe *receive;
	struct core_lmr *lmr;

	if (!is_offer_wanted(conn, ep))
		return;
	receive = core_recv_next(ep);
	if (!receive || receive->segments != 1)
		return;
	lmr = core_mem_get(ep->ia->mem, receive->iov, ep->pz, CORE_MEM_TARGET);
	if (!lmr)
		return;
	mine->offer_key = lmr->rkey;
	mine->offer_address = receive->iov->virtual_address;
	mine->offer_length = receive->len;
	core_mem_put(lmr);
	conn->offer = SHM_OFFER(conn->done);
	/* release: pairs with the acquire in read_offer of the peer */
	SHM_TSAN_RELEASE(conn->offer);
	atomic_store_explicit(&mine->offer, conn->offer, memory_order_release);
	shm_engine_activate(conn->engine, conn);
}

/* So that an old offer is not valid again when the numbers wrap. */
static void forget_old_offer(struct shm_conn *conn)
{
	if (!shm_place_has_old_offer(conn))
		return;
	conn->offer = 0;
	atomic_store_explicit(&conn->mine->offer, 0, memory_order_relaxed);
}

bool shm_place_is_valid(const struct shm_conn *conn, const struct shm_entry *entry)
{
	return shm_place_has_offer(conn) && !entry->payload && entry->length &&
	       (entry->flags & ~SHM_FLAG_SOLICITED) ==
		       (SHM_FLAG_FIRST | SHM_FLAG_LAST | SHM_FLAG_PLACED);
}

void shm_place_count_polls(struct shm_conn *conn)
{
	/* relaxed: a hint */
	uint32_t polls =
		(uint32_t)atomic_load_explicit(&conn->engine->driven.polls, memory_order_relaxed);
	bool is_polled = polls - conn->polls_at_placed >= POLLS_MANY;

	conn->polls_at_placed = polls;
	if (!is_polled)
		conn->polled_placed = 0;
	else if (conn->polled_placed < POLLED_MANY)
		conn->polled_placed++;
}

void shm_place_count_done(struct shm_conn *conn)
{
	bool is_all_reported = conn->reported == conn->done;

	conn->done++;
	/* else the next report contains it */
	if (!is_all_reported)
		return;
	conn->reported_at_wake++;
	shm_conn_store_done(conn);
}

/* The next message in the ring. The size of the ring bounds the number of RDMA Reads before it. */
static bool find_message(struct shm_conn *conn, struct core_ep *ep, struct shm_entry *entry)
{
	const uint8_t *payload;
	unsigned i;

	for (i = 0; i < SHM_LARGE_RING / SHM_ENTRY_ALIGN; i++) {
		if (shm_consumer_peek(&conn->request_in, entry, &payload) <= 0 ||
		    shm_tx_acknowledge(conn, ep, entry->done) < 0)
			return false;
		if (entry->type != SHM_ENTRY_READ)
			return entry->type == SHM_ENTRY_SEND;
		shm_consumer_pop(&conn->request_in);
	}
	return false;
}

void shm_place_take_last(struct shm_conn *conn, struct core_ep *ep)
{
	const struct core_wqe *receive;
	struct shm_entry entry;

	/* the peer fails all that is behind a request that was refused (DTO-48) */
	if (!shm_place_has_offer(conn) || conn->arrival.is_begun ||
	    atomic_load_explicit(&conn->mine->failed, memory_order_relaxed) ||
	    !find_message(conn, ep, &entry) || !shm_place_is_valid(conn, &entry))
		return;
	receive = core_recv_next(ep);
	if (!receive || entry.length > receive->len)
		return;
	shm_place_count_done(conn);
	core_recv_done(ep, DAT_DTO_SUCCESS, entry.length, entry.flags & SHM_FLAG_SOLICITED);
}

/* --- our side sends --- */

/* Where the peer wants our next message. */
struct target {
	uint32_t key;
	uint64_t address;
};

/* Reads the peer's offer for our next message. */
static bool read_offer(const struct shm_conn *conn, uint64_t len, struct target *target)
{
	struct shm_side *theirs = conn->theirs;
	/* acquire: pairs with the release in shm_place_offer */
	uint32_t number = atomic_load_explicit(&theirs->offer, memory_order_acquire);

	if (!number || number != SHM_OFFER(conn->sent))
		return false;
	SHM_TSAN_ACQUIRE(number);
	/* each is read once: a hostile peer may change them */
	target->key = __atomic_load_n(&theirs->offer_key, __ATOMIC_RELAXED);
	target->address = __atomic_load_n(&theirs->offer_address, __ATOMIC_RELAXED);
	return len <= __atomic_load_n(&theirs->offer_length, __ATOMIC_RELAXED);
}

/* Makes the entry, for which there is room, visible. */
static void put_placed(struct shm_conn *conn, struct core_req *req)
{
	struct shm_entry entry = {
		.type = SHM_ENTRY_SEND,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST | SHM_FLAG_PLACED,
		.length = req->len,
	};

	/* others that are not visible yet need the packet, if one is due */
	conn->is_wake_pending |= conn->request_out.produced != conn->request_out.published;
	if (req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		entry.flags |= SHM_FLAG_SOLICITED;
	shm_conn_commit(conn, &conn->request_out, &entry);
	(void)shm_producer_publish(&conn->request_out);
	/* full fence: see the header */
	atomic_thread_fence(memory_order_seq_cst);
	conn->is_wake_pending |= !shm_patience_is_peer_patient(conn);
}

/* Completes the Send, unless the peer ends the connection: then its `done` decides. */
static void finish(struct shm_conn *conn, struct core_ep *ep, struct core_req *req)
{
	conn->sent++;
	req->transport.word[0] = SHM_REQ_WAIT_DONE;
	/* behind the fence of put_placed */
	if (atomic_load_explicit(&conn->theirs->revoked, memory_order_relaxed))
		return;
	shm_conn_set_acked(conn, conn->sent);
	shm_tx_finish(ep, req, DAT_DTO_SUCCESS);
}

/* Copies the message and puts its entry: 0, or -errno of the announcement or the copy. */
static int place(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		 const struct target *target)
{
	struct soft_pins pins;
	int rc;

	if (soft_pin(ep, req->iov, req->segments, 0, req->len, CORE_MEM_SOURCE, &pins) < 0)
		return -EFAULT;
	rc = shm_announce(conn, NULL, target->key, SOFT_RIGHT_PLACE, target->address, req->len);
	if (!rc)
		rc = shm_copy_by_kernel(conn, target->address, &pins, req->len, true);
	if (!rc)
		put_placed(conn, req);
	shm_announce_end(conn);
	soft_unpin(&pins);
	return rc;
}

bool shm_place_send(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		    uint64_t *budget)
{
	struct target target;
	uint8_t *payload;
	int rc;

	if (!shm_place_is_possible(conn) || !req->len || req->len > SHM_CMA_PIECE ||
	    req->len > *budget || req->transport.word[0] & SHM_REQ_RING_BEGUN ||
	    !read_offer(conn, req->len, &target))
		return false;
	/* the peer has taken all messages before the one that it waits for */
	if (shm_tx_acknowledge(conn, ep, conn->sent) < 0 ||
	    shm_producer_reserve(&conn->request_out, 0, &payload) <= 0)
		return false;
	rc = place(conn, ep, req, &target);
	if (rc == -EPERM || rc == -ESRCH)
		conn->remote.has_cma = false; /* as in direct_piece */
	if (rc)
		return false;
	finish(conn, ep, req);
	*budget -= req->len;
	shm_count(conn, SHM_COUNT_SEND_PLACED);
	return true;
}

/* --- both --- */

void shm_place_update(struct shm_conn *conn, struct core_ep *ep)
{
	forget_old_offer(conn);
	shm_place_offer(conn, ep);
	conn->may_place = shm_place_is_possible(conn);
}
