// SPDX-License-Identifier: BSD-2-Clause
/*
 * Polls on the fast path (fast.h). They do what the slow path (tx.c, rx.c, progress.c) would do,
 * with the same counters. What they decline is unchanged: the slow path continues from there.
 * shm_conn_update_reasons decides when an endpoint may use the fast path.
 */
#include "soft/shm/transfer/fast.h"

#include "core/transport.h"
#include "core/ep/ep_fast.h"
#include "core/event/evd.h"
#include "soft/copy.h"
#include "soft/pins.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/patience.h"
#include "soft/shm/transfer/post.h"
#include "soft/shm/transfer/progress.h"

/*
 * So many polls in a row check for messages, Writes, Reads, their data and acknowledgements only;
 * then a pass checks for everything else.
 */
#define FAST_POLLS 64u

/* The peer has carried out messages and ring writes up to `done`: completes the oldest requests. */
CORE_INLINE bool take_acks(struct shm_conn *conn, struct core_ep *ep, uint32_t done,
			   struct core_dequeue *dequeue)
{
	uint32_t acked = shm_conn_acked(conn);

	/* both the entries and the word report the count, and may overtake each other */
	while ((int32_t)(done - acked) > 0) {
		struct core_req *req = core_req_at(&ep->req, ep->req.head);

		if (acked == conn->sent || req->transport.word[0] != SHM_REQ_WAIT_DONE ||
		    core_req_is_next_done(ep) || !core_req_done_fast(ep->cell, ep, req, dequeue))
			return false;
		if (req->op == CORE_OP_RDMA_WRITE)
			conn->ring_writes--;
		req->transport.word[0] = SHM_REQ_FINISHED;
		shm_conn_set_acked(conn, ++acked);
	}
	return true;
}

CORE_INLINE bool take_message(struct shm_conn *conn, struct core_ep *ep,
			      const struct shm_entry *entry, const uint8_t *payload,
			      struct core_dequeue *dequeue)
{
	const struct core_wqe *wqe = core_recv_oldest(ep);

	if (!core_recv_is_posted(ep) || !soft_place_in_receive(ep, wqe, payload, entry->payload) ||
	    !core_recv_done_fast(ep->cell, ep, wqe, entry->payload, dequeue))
		return false;
	core_recv_prefetch_next(wqe);
	/*
	 * counts the use of that memory: after enough uses it is mapped, and messages from it are
	 * fetched
	 */
	if (entry->payload >= SHM_MAP_SEND && conn->remote.maps && conn->remote.has_pull)
		(void)shm_map_find(conn, entry->key);
	return true;
}

__attribute__((noinline)) static bool take_write_fast(struct shm_conn *conn, struct core_ep *ep,
						      const struct shm_entry *entry,
						      const uint8_t *payload)
{
	const struct shm_inbound write = {
		.key = entry->key,
		.address = shm_entry_address(payload),
		.length = entry->length,
	};

	if (shm_rx_place(conn, ep, &write, payload, entry->payload) < 0)
		return false;
	conn->is_report_urgent = true;
	return true;
}

/* Answers an RDMA Read in one entry. */
__attribute__((noinline)) static bool answer_read(struct shm_conn *conn, struct core_ep *ep,
						  const struct shm_entry *entry,
						  const uint8_t *payload)
{
	const struct shm_inbound read = {
		.key = entry->key,
		.address = shm_entry_address(payload),
		.length = entry->length,
	};
	struct shm_entry data = {
		.type = SHM_ENTRY_DATA,
		.flags = SHM_FLAG_LAST,
		.payload = (uint16_t)entry->length,
	};
	uint8_t *to;

	if (entry->length - 1 >= SHM_RESPONSE_PAYLOAD)
		return false;
	to = shm_find_room(&conn->response_out, data.payload);
	if (!to || shm_rx_fetch(conn, ep, &read, to, data.payload) < 0)
		return false;
	shm_put_entry(conn, &conn->response_out, &data);
	return true;
}

/* Looks at the entry at the head of a ring. */
CORE_INLINE bool peek_entry(struct shm_consumer *ring, struct shm_entry *entry_out,
			    const uint8_t **payload_out)
{
	return shm_consumer_peek_fast(ring, entry_out, payload_out) ||
	       shm_consumer_peek(ring, entry_out, payload_out) > 0;
}

/* Is it a whole message or RDMA Write? */
CORE_INLINE bool is_whole(const struct shm_entry *entry)
{
	return entry->length == entry->payload && entry->payload &&
	       (entry->flags & ~SHM_FLAG_SOLICITED) == (SHM_FLAG_FIRST | SHM_FLAG_LAST);
}

/*
 * Takes the entry at the head of the ring: a whole message that has a Receive, a whole Write, or a
 * Read.
 */
CORE_INLINE bool take_entry_fast(struct shm_conn *conn, struct core_ep *ep,
				 struct core_dequeue *dequeue)
{
	const uint8_t *payload;
	struct shm_entry entry;
	bool is_taken;

	if (!peek_entry(&conn->request_in, &entry, &payload) ||
	    !take_acks(conn, ep, entry.done, dequeue))
		return false;
	switch (entry.type) {
	case SHM_ENTRY_SEND:
		is_taken = is_whole(&entry) && take_message(conn, ep, &entry, payload, dequeue);
		break;
	case SHM_ENTRY_WRITE:
		is_taken = is_whole(&entry) && take_write_fast(conn, ep, &entry, payload);
		break;
	case SHM_ENTRY_READ:
		is_taken = answer_read(conn, ep, &entry, payload);
		break;
	default:
		is_taken = false;
	}
	if (!is_taken)
		return false;
	shm_consumer_take(&conn->request_in, entry.payload);
	if (entry.type != SHM_ENTRY_READ) {
		conn->done++;
		shm_conn_watch_bit(conn, SHM_WATCH_UNREPORTED, true);
	}
	return true;
}

/* --- data of RDMA Reads --- */

CORE_INLINE bool has_data(const struct shm_conn *conn)
{
	return conn->reads && shm_consumer_has_entry(&conn->response_in);
}

/* Takes the data of an RDMA Read that is the oldest request, if it is one entry. */
__attribute__((noinline)) static bool take_data_fast(struct shm_conn *conn, struct core_ep *ep,
						     struct core_dequeue *dequeue)
{
	const uint8_t *payload;
	struct shm_entry entry;
	struct core_req *req;

	if (!peek_entry(&conn->response_in, &entry, &payload) || entry.type != SHM_ENTRY_DATA ||
	    entry.flags != SHM_FLAG_LAST || !take_acks(conn, ep, entry.done, dequeue))
		return false;
	req = core_req_at(&ep->req, ep->req.head);
	if (req->transport.word[0] != SHM_REQ_WAIT_DATA || req->transport.word[1] ||
	    req->segments != 1 || entry.payload != req->len || core_req_is_next_done(ep) ||
	    !soft_place(ep, req->iov, payload, entry.payload) ||
	    !core_req_done_fast(ep->cell, ep, req, dequeue))
		return false;
	req->transport.word[0] = SHM_REQ_FINISHED;
	shm_conn_watch_bit(conn, SHM_WATCH_RESPONSES, --conn->reads > 0);
	shm_consumer_take(&conn->response_in, entry.payload);
	return true;
}

/* Takes acknowledgements, answers and entries; false: something else is there. */
CORE_INLINE bool take_all(struct shm_conn *conn, struct core_ep *ep, unsigned most, uint32_t done,
			  struct core_dequeue *dequeue, uint32_t *messages)
{
	bool has_entry;

	if (!take_acks(conn, ep, done, dequeue))
		return false;
	while (*messages < most && has_data(conn)) {
		if (!take_data_fast(conn, ep, dequeue))
			return false;
		++*messages;
	}
	has_entry = *messages < most && shm_consumer_has_entry(&conn->request_in);
	while (has_entry) {
		if (!take_entry_fast(conn, ep, dequeue))
			return false;
		has_entry = ++*messages < most && shm_consumer_has_entry(&conn->request_in);
		if (has_entry)
			shm_consumer_fetch_ahead(&conn->request_in);
	}
	return true;
}

/*
 * Must what is done be reported now, or space be given back? Other reasons for a report are left to
 * the next pass: an endpoint whose peer waits has slow_reasons, and before a pass checks how much
 * the word lags, FAST_POLLS polls take at most SHM_BATCH entries each.
 */
CORE_INLINE bool is_flush_due(const struct shm_conn *conn)
{
	return shm_consumer_is_due(&conn->request_in) || shm_consumer_is_due(&conn->response_in) ||
	       !shm_conn_report_may_wait(conn);
}

/*
 * A poll for one message returns at once: reading the next entry would wait for its cache line, and
 * an answer that is sent meanwhile would wait behind that. In a stream of messages, those that have
 * arrived are taken together.
 */
bool shm_poll_fast(struct shm_conn *conn, struct core_ep *ep, unsigned most,
		   struct core_dequeue *dequeue)
{
	uint32_t acked = shm_conn_acked(conn);
	uint32_t done, messages = 0;
	bool is_done;

	if (conn->fast_polls == FAST_POLLS)
		goto decline;
	/* acquire: pairs with the release in publish_done of the peer */
	done = atomic_load_explicit(&conn->theirs->done, memory_order_acquire);
	SHM_TSAN_ACQUIRE(done);
	if (!shm_consumer_has_entry(&conn->request_in) && !has_data(conn) &&
	    (int32_t)(done - acked) <= 0) {
		/* either reports are pending, or a pass has to check for rare work */
		if (conn->reported == conn->done)
			goto decline;
		shm_conn_report(conn);
		conn->fast_polls++;
		return true;
	}
	is_done = take_all(conn, ep, most, done, dequeue, &messages);
	/* in any case: what was declined may be a filler, which is no work any more */
	if (is_flush_due(conn))
		shm_conn_flush(conn, true);
	if (!is_done)
		goto decline;
	shm_conn_count_taken(conn, (int)(shm_conn_acked(conn) - acked + messages));
	shm_conn_count_placed(conn, (int)messages);
	conn->fast_polls++;
	return true;
decline:
	/* no pass follows if the caller has its event: then polls go on counting */
	conn->fast_polls = dequeue->is_filled ? (uint8_t)(conn->fast_polls + 1) : 0;
	return false;
}
