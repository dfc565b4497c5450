// SPDX-License-Identifier: BSD-2-Clause
/*
 * Polls on the fast path (fast.h). They do what the slow path (tx.c, rx.c, pass.c) would do,
 * with the same counters. What they decline is unchanged: the slow path continues from there.
 * shm_conn_update_reasons decides when an endpoint may use the fast path.
 */
#include "soft/shm/transfer/fast.h"

#include "core/transport.h"
#include "core/ep/ep_fast.h"
#include "core/event/evd.h"
#include "soft/copy.h"
#include "soft/pins.h"
#include "soft/shm/instance.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/pass.h"
#include "soft/shm/transfer/publish.h"

/*
 * So many polls that have work check for messages, Writes, Reads, their data and acknowledgements
 * only; the next one also checks whether a pass is due.
 */
#define FAST_POLLS 64u

/* The peer has carried out the oldest request, after `acked` others: completes it. */
CORE_INLINE bool take_ack(struct shm_conn *conn, struct core_ep *ep, uint32_t acked,
			  struct core_dequeue *dequeue)
{
	struct core_req *req = core_req_at(&ep->req, ep->req.head);

	/* the upper half of the word does not matter here */
	if (acked == conn->tx.sent || (uint32_t)req->transport.word[0] != SHM_REQ_WAIT_DONE ||
	    core_req_is_next_done(ep) || !core_req_done_fast(ep->cell, ep, req, dequeue))
		return false;
	if (req->op == CORE_OP_RDMA_WRITE)
		conn->tx.ring_writes--;
	req->transport.word[0] = SHM_REQ_FINISHED;
	shm_conn_set_acked(conn, acked + 1);
	return true;
}

/* The peer has carried out messages and ring writes up to `done`: completes the oldest requests. */
static bool take_acks(struct shm_conn *conn, struct core_ep *ep, uint32_t done,
		      struct core_dequeue *dequeue)
{
	uint32_t acked = shm_conn_acked(conn);

	/* both the entries and the word report the count, and may overtake each other */
	for (; (int32_t)(done - acked) > 0; acked++)
		if (!take_ack(conn, ep, acked, dequeue))
			return false;
	return true;
}

/* Completes the oldest Receive with those bytes of a message. */
static bool take_bytes(struct core_ep *ep, const uint8_t *bytes, uint32_t len,
		       struct core_dequeue *dequeue)
{
	const struct core_wqe *wqe;

	if (!core_recv_is_posted(ep)) /* it may have an SRQ, and no queue of its own */
		return false;
	wqe = core_recv_oldest(ep);
	if (!soft_place_in_receive(ep, wqe, bytes, len) ||
	    !core_recv_done_fast(ep->cell, ep, wqe, len, dequeue))
		return false;
	core_recv_prefetch_next(wqe);
	return true;
}

__attribute__((noinline)) static bool take_write_fast(struct shm_conn *conn, struct core_ep *ep,
						      const struct shm_entry *entry,
						      const uint8_t *payload)
{
	if (shm_rx_place(conn, ep, entry, payload) < 0)
		return false;
	conn->report.is_urgent = true;
	return true;
}

/* Answers an RDMA Read in one entry. */
__attribute__((noinline)) static bool answer_read(struct shm_conn *conn, struct core_ep *ep,
						  const struct shm_entry *entry)
{
	struct shm_entry data = {
		.type = SHM_ENTRY_DATA,
		.flags = SHM_FLAG_LAST,
		.payload = (uint16_t)entry->length,
	};
	struct shm_room room = {.bytes = data.payload};

	if (entry->length - 1 >= SHM_RESPONSE_PAYLOAD)
		return false;
	room.to = shm_producer_at_once(&conn->response_out, data.payload);
	if (!room.to || shm_rx_fetch(conn, ep, entry, 0, &room) < 0)
		return false;
	shm_put_entry(conn, &conn->response_out, room.to, &data);
	shm_conn_wake(conn);
	return true;
}

/* Is it a whole message or RDMA Write? */
CORE_INLINE bool is_whole(const struct shm_entry *entry)
{
	return entry->length == entry->payload && entry->payload &&
	       (entry->flags & ~SHM_FLAG_SOLICITED) == (SHM_FLAG_FIRST | SHM_FLAG_LAST);
}

/* A message or Write of the peer is carried out. */
CORE_INLINE void count_done(struct shm_conn *conn)
{
	conn->report.done++;
	shm_conn_watch_bit(conn, SHM_WATCH_UNREPORTED, true);
}

/*
 * Takes the entry at the head of the ring: a whole message that has a Receive, a whole Write, or a
 * Read.
 */
static bool take_entry_fast(struct shm_conn *conn, struct core_ep *ep, struct core_dequeue *dequeue)
{
	const uint8_t *payload;
	struct shm_entry entry;
	bool is_taken;

	if (shm_consumer_peek(&conn->request_in, &entry, &payload) <= 0 ||
	    !take_acks(conn, ep, entry.done, dequeue))
		return false;
	switch (entry.type) {
	case SHM_ENTRY_SEND:
		is_taken = is_whole(&entry) && take_bytes(ep, payload, entry.payload, dequeue);
		break;
	case SHM_ENTRY_WRITE:
		is_taken = is_whole(&entry) && take_write_fast(conn, ep, &entry, payload);
		break;
	case SHM_ENTRY_READ:
		is_taken = answer_read(conn, ep, &entry);
		break;
	default:
		is_taken = false;
	}
	if (!is_taken)
		return false;
	shm_consumer_take(&conn->request_in, entry.payload);
	if (entry.type != SHM_ENTRY_READ)
		count_done(conn);
	return true;
}

/* --- data of RDMA Reads --- */

CORE_INLINE bool has_data(const struct shm_conn *conn)
{
	return conn->tx.reads && shm_consumer_has_entry(&conn->response_in);
}

/* Takes the data of an RDMA Read that is the oldest request, if it is one entry. */
__attribute__((noinline)) static bool take_data_fast(struct shm_conn *conn, struct core_ep *ep,
						     struct core_dequeue *dequeue)
{
	const uint8_t *payload;
	struct shm_entry entry;
	struct core_req *req;

	if (shm_consumer_peek(&conn->response_in, &entry, &payload) <= 0 ||
	    entry.type != SHM_ENTRY_DATA || entry.flags != SHM_FLAG_LAST ||
	    !take_acks(conn, ep, entry.done, dequeue))
		return false;
	req = core_req_at(&ep->req, ep->req.head);
	if (req->transport.word[0] != SHM_REQ_WAIT_DATA || req->transport.word[1] ||
	    req->segments != 1 || entry.payload != req->len || core_req_is_next_done(ep) ||
	    !soft_place(ep, req->iov, payload, entry.payload) ||
	    !core_req_done_fast(ep->cell, ep, req, dequeue))
		return false;
	req->transport.word[0] = SHM_REQ_FINISHED;
	shm_conn_watch_bit(conn, SHM_WATCH_RESPONSES, --conn->tx.reads > 0);
	shm_consumer_take(&conn->response_in, entry.payload);
	return true;
}

/*
 * To be called after entries were taken. Must what is done be reported now, or space be given back?
 * Other reasons for a report are left to passes and flushes: an endpoint whose peer waits has
 * slow_reasons, and each flush checks how much the word lags.
 */
static void flush_if_due(struct shm_conn *conn)
{
	if (shm_consumer_is_due(&conn->request_in) || shm_consumer_is_due(&conn->response_in) ||
	    !shm_conn_report_may_wait(conn))
		shm_conn_flush(conn, true);
}

/* Is it time to check whether a pass is due? */
CORE_INLINE bool is_check_due(const struct shm_conn *conn)
{
	return conn->fast_polls >= FAST_POLLS;
}

/*
 * Is there work that polls on the fast path do not look for, or do not come to? The peer's requests
 * wait while data of Reads arrive, and connections over TCP for the slow path.
 */
static bool is_pass_due(const struct shm_conn *conn, const struct core_ep *ep)
{
	return shm_conn_has_news(conn) || shm_conn_watches(conn, SHM_WATCH_MORE) ||
	       (has_data(conn) && shm_consumer_has_entry(&conn->request_in)) ||
	       atomic_load_explicit(&ep->ia->refuses_polls, memory_order_relaxed);
}

/* Takes acknowledgements, answers and entries; false: something else is there. */
static bool take_all(struct shm_conn *conn, struct core_ep *ep, unsigned most, uint32_t done,
		     struct core_dequeue *dequeue, uint32_t *messages)
{
	if (!take_acks(conn, ep, done, dequeue))
		return false;
	while (*messages < most && has_data(conn)) {
		if (!take_data_fast(conn, ep, dequeue))
			return false;
		++*messages;
	}
	while (*messages < most && shm_consumer_has_entry(&conn->request_in)) {
		if (*messages)
			shm_consumer_fetch_ahead(&conn->request_in);
		if (!take_entry_fast(conn, ep, dequeue))
			return false;
		++*messages;
	}
	return true;
}

/* The rest of shm_poll_fast: whatever is no single message. */
__attribute__((noinline)) static enum shm_poll poll_rest(struct shm_conn *conn, struct core_ep *ep,
							 struct core_dequeue *dequeue)
{
	unsigned most = shm_conn_idle(conn) ? 1 : SHM_BATCH;
	uint32_t acked = shm_conn_acked(conn);
	uint32_t done, messages = 0;
	bool is_done;

	if (is_check_due(conn)) {
		if (is_pass_due(conn, ep))
			goto decline;
		conn->fast_polls = 0;
	}
	/* acquire: pairs with the release in publish_done of the peer */
	done = atomic_load_explicit(&conn->theirs->done, memory_order_acquire);
	SHM_TSAN_ACQUIRE(done);
	shm_conn_set_idle(conn, 0);
	if (!shm_consumer_has_entry(&conn->request_in) && !has_data(conn) &&
	    (int32_t)(done - acked) <= 0) {
		/* either reports are pending, or a pass has to check for rare work */
		if (conn->report.reported == conn->report.done)
			goto decline;
		shm_conn_report(conn);
		conn->fast_polls++;
		return SHM_POLL_DONE;
	}
	is_done = take_all(conn, ep, most, done, dequeue, &messages);
	/* in any case: what was declined may be a filler, which is no work any more */
	flush_if_due(conn);
	if (!is_done)
		goto decline;
	shm_fence_count_taken(conn, (int)(shm_conn_acked(conn) - acked + messages));
	shm_conn_count_placed(conn, (int)messages);
	conn->fast_polls++;
	return SHM_POLL_DONE;
decline:
	/* no pass follows if the caller has its event: then the next check brings one */
	if (dequeue->is_filled) {
		shm_conn_watch_bit(conn, SHM_WATCH_MORE, true);
		conn->fast_polls++;
	} else {
		conn->fast_polls = 0;
	}
	return SHM_POLL_DECLINED;
}

/* --- one message --- */

/* The rest of a poll that has taken a message; see is_end_due. */
__attribute__((noinline)) static void end_poll(struct shm_conn *conn)
{
	flush_if_due(conn);
	shm_fence_count_taken(conn, 1);
}

/* Nothing is in the ring. Is there nothing else that poll_rest would do? */
CORE_INLINE bool is_quiet(const struct shm_conn *conn)
{
	uint32_t done = atomic_load_explicit(&conn->theirs->done, memory_order_relaxed);

	return (int32_t)(done - shm_conn_acked(conn)) <= 0 &&
	       conn->report.reported == conn->report.done && !has_data(conn);
}

/*
 * After a message: must it be counted, or something be reported or given back? As flush_if_due; but
 * what makes a report urgent, an RDMA Write or a large message, the poll that took it has reported.
 */
CORE_INLINE bool is_end_due(const struct shm_conn *conn)
{
	return conn->wake.taken < CORE_FENCE_AFTER_ENTRIES ||
	       shm_consumer_is_due(&conn->request_in) ||
	       conn->report.done - conn->report.reported >= SHM_UNREPORTED_MAX ||
	       !atomic_load_explicit(&conn->wake.is_disarmed, memory_order_relaxed);
}

/*
 * Takes one whole message of a Receive whose completion goes to the caller, and the acknowledgement
 * in it. False: poll_rest has to follow.
 */
CORE_INLINE bool take_message(struct shm_conn *conn, struct core_ep *ep,
			      const struct shm_message *message, struct core_dequeue *dequeue)
{
	uint32_t acked = shm_conn_acked(conn);
	const struct core_wqe *wqe;

	if (has_data(conn) || is_check_due(conn) || message->done - acked > 1 ||
	    !core_recv_is_posted(ep) || !core_recv_is_direct(ep, dequeue))
		return false;
	conn->fast_polls++;
	if (message->done != acked) {
		if (!take_ack(conn, ep, acked, dequeue))
			return false;
		if (dequeue->is_filled) /* by a request; the message waits for the next poll */
			return true;
	}
	wqe = core_recv_oldest(ep);
	if (!soft_place_in_receive(ep, wqe, message->bytes, message->len))
		return false;
	(void)core_recv_done_fast(ep->cell, ep, wqe, message->len, dequeue); /* it is direct */
	core_recv_prefetch_next(wqe);
	shm_consumer_take(&conn->request_in, message->len);
	count_done(conn);
	if (is_end_due(conn))
		end_poll(conn);
	shm_conn_set_idle(conn, 0);
	return true;
}

/*
 * Most polls find nothing or one message. Such a poll returns at once: reading the next entry would
 * wait for its cache line, and an answer that is sent meanwhile would wait behind that.
 */
enum shm_poll shm_poll_fast(struct shm_conn *conn, struct core_ep *ep, struct core_dequeue *dequeue)
{
	struct shm_message message;
	enum shm_head head = shm_consumer_peek_message(&conn->request_in, &message);

	if (head == SHM_HEAD_EMPTY && is_quiet(conn))
		return SHM_POLL_NOTHING;
	if (head == SHM_HEAD_MESSAGE && take_message(conn, ep, &message, dequeue))
		return SHM_POLL_DONE;
	return poll_rest(conn, ep, dequeue);
}
