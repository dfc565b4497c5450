// SPDX-License-Identifier: BSD-2-Clause
/* Beginning and end of the two streams of a connection, running them, the fast path (pass.h). */
#include "soft/iwarp/transfer/pass.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/ep/ep_fast.h"
#include "core/transport.h"
#include "shared/bytes.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/rx.h"
#include "soft/iwarp/transfer/segment.h"
#include "soft/iwarp/transfer/tx.h"
#include "soft/pins.h"

#define BUDGET (1024u * 1024u)	   /* bytes of one pass */
#define LARGE (64u * 1024u)	   /* a message that takes long to send */
#define BUDGET_LEAST (64u * 1024u) /* of either direction */

static uint32_t events_of(struct iw_conn *conn)
{
	const struct iw_stream *stream = &conn->stream;

	if (iw_conn_is_short(conn))
		return IW_EVENTS_SHORT;
	if (stream->rx.end_ns) /* nothing more comes */
		return stream->tx.is_blocked ? EPOLLOUT : 0;
	/* a socket that is not read shows the peer's disconnect all the same */
	return (stream->rx.is_blocked ? EPOLLRDHUP : EPOLLIN) |
	       (stream->tx.is_blocked ? EPOLLOUT : 0);
}

int iw_pass_watch_polled(struct iw_conn *conn)
{
	return conn->stream.rx.is_blocked && !conn->is_lost ? iw_conn_watch(conn, 0)
							    : iw_conn_pause_watch(conn);
}

static int watch(struct iw_conn *conn)
{
	if (conn->is_polled)
		return iw_pass_watch_polled(conn);
	/* epoll would report the hang-up again and again */
	if (conn->is_lost)
		return iw_conn_pause_watch(conn);
	return iw_conn_watch(conn, events_of(conn));
}

void iw_pass_watch(struct iw_conn *conn)
{
	int rc = watch(conn);

	if (rc < 0)
		iw_conn_lower_deadline(conn, core_now_ns() + IW_RETRY_NS);
	if (conn->retry_ns && !conn->is_polled)
		iw_conn_lower_deadline(conn, conn->retry_ns);
}

/*
 * Has the last request before a graceful disconnect completed? If the peer also disconnects
 * gracefully and our message finds no Receive there, neither side waits any longer (EP-STATE-40).
 */
static bool is_drained(const struct iw_conn *conn, const struct core_ep *ep)
{
	return conn->is_draining && (ep->req.head == ep->req.tail || conn->stream.tx.peer_drains);
}

/* The service thread goes on where the budget has ended a pass of a connection that is armed. */
static void go_on_later(struct iw_conn *conn, const struct core_ep *ep, uint64_t rx_budget,
			uint64_t tx_budget)
{
	if (rx_budget && !iw_tx_has_more(conn, ep, tx_budget))
		return;
	conn->has_more = true;
	if (!conn->is_polled)
		iw_conn_serve_later(conn);
}

/*
 * The fast path posts Receives without asking the transport, and requests by a call of
 * post_request.
 */
static void update_reasons(struct iw_conn *conn, struct core_ep *ep)
{
	uint16_t reasons = 0;

	if (iw_conn_state(conn) != IW_ESTABLISHED)
		reasons |= CORE_EP_SLOW_CONN;
	if (conn->stream.rx.is_blocked || iw_message_is_waiting(conn))
		reasons |= CORE_EP_SLOW_RECV;
	core_handle_put_slow(ep->cell, CORE_EP_SLOW_TRANSPORT, reasons);
}

static int run_receiver(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	int handled = iw_rx_run(conn, ep, budget);

	if (iw_conn_of(ep) == conn)
		update_reasons(conn, ep);
	return handled;
}

/*
 * Nothing can be sent any more. What has arrived is carried out before the end is reported
 * (IWCM-33): the failure of a send says nothing about the bytes that came before it.
 */
static void end_lost(struct iw_conn *conn, struct core_ep *ep)
{
	uint64_t budget = BUDGET;

	(void)run_receiver(conn, ep, &budget);
	if (iw_conn_of(ep) != conn || iw_conn_state(conn) != IW_ESTABLISHED)
		return;
	if (!budget) {
		iw_conn_serve_later(conn);
		return;
	}
	if (conn->stream.rx.end_ns) /* messages wait, and the peer has ended in order before */
		return;
	iw_segment_fail_filling(conn, ep, DAT_DTO_ERR_TRANSPORT);
	iw_complete_lost(conn, ep, DAT_DTO_ERR_TRANSPORT);
	iw_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
}

/* Is the time over that messages wait behind the end of the peer's stream? */
static bool is_end_due(struct iw_conn *conn)
{
	const struct iw_rx *rx = &conn->stream.rx;

	if (!rx->end_ns)
		return false;
	if (core_now_ns() >= rx->end_ns)
		return true;
	iw_conn_lower_deadline(conn, rx->end_ns);
	return false;
}

/* What the parts of a pass have found, in the order of its weight. */
static void judge_pass(struct iw_conn *conn, struct core_ep *ep)
{
	if (iw_conn_state(conn) == IW_ESTABLISHED && conn->is_lost)
		end_lost(conn, ep);
	if (iw_conn_of(ep) == conn && iw_conn_state(conn) == IW_ESTABLISHED &&
	    (is_end_due(conn) || is_drained(conn, ep)))
		iw_conn_close(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
}

enum iw_accepted iw_pass_accepted(struct iw_conn *conn, struct core_ep *ep)
{
	uint64_t budget = BUDGET;
	int handled = run_receiver(conn, ep, &budget);
	bool is_waiting = iw_conn_state(conn) == IW_ACCEPTED && !conn->is_lost;

	if (is_waiting && handled)
		return IW_ACCEPTED_FPDU;
	if (is_waiting && !conn->is_hung_up) {
		iw_pass_watch(conn);
		return IW_ACCEPTED_WAITS;
	}
	/* nothing but a valid FPDU makes the connection established (TERM-32) */
	conn->is_lost |= conn->is_hung_up;
	iw_conn_set_state(conn, IW_ACCEPTED);
	return IW_ACCEPTED_FAILED;
}

int iw_pass(struct iw_conn *conn, struct core_ep *ep, int handled)
{
	uint64_t rx_budget = BUDGET, tx_budget = BUDGET;

	handled += run_receiver(conn, ep, &rx_budget);
	conn->has_more = false;
	conn->moved += (uint32_t)(BUDGET - rx_budget);
	if (iw_conn_of(ep) != conn)
		return handled + 1;
	if (conn->is_hung_up && rx_budget)
		conn->is_lost = true; /* all that could be read was */
	if (iw_conn_state(conn) == IW_ESTABLISHED) {
		iw_stream_repeat_rtr(conn);
		handled += iw_tx_run(conn, ep, &tx_budget, false);
		conn->moved += (uint32_t)(BUDGET - tx_budget);
	}
	/* a thread that polls may answer what it has got, and the counts go with the answer */
	if (!conn->is_polled || !iw_counts_may_wait(conn))
		iw_tx_tell(conn, ep);
	judge_pass(conn, ep);
	if (iw_conn_of(ep) != conn || iw_conn_state(conn) == IW_CLOSING)
		return handled + 1;
	iw_pass_watch(conn);
	go_on_later(conn, ep, rx_budget, tx_budget);
	return handled;
}

/* After a call of the consumer, which must not report the end of the connection itself. */
static void after_post(struct iw_conn *conn, const struct core_ep *ep, uint64_t rx_budget,
		       uint64_t tx_budget)
{
	if (iw_conn_state(conn) == IW_CLOSING || conn->is_lost || is_drained(conn, ep))
		iw_conn_serve_later(conn);
	else
		iw_pass_watch(conn);
	go_on_later(conn, ep, rx_budget, tx_budget);
}

static void run_requests(struct iw_conn *conn, struct core_ep *ep, bool may_hold)
{
	int state = core_cancel_off();
	uint64_t budget = BUDGET;

	(void)iw_tx_run(conn, ep, &budget, may_hold);
	after_post(conn, ep, BUDGET, budget);
	core_cancel_restore(state);
}

void iw_pass_requests(struct iw_conn *conn, struct core_ep *ep)
{
	run_requests(conn, ep, false);
}

static bool is_large(const struct core_req *req)
{
	return (core_op_is_send(req->op) || req->op == CORE_OP_RDMA_WRITE) && req->len >= LARGE;
}

/*
 * A thread that posts large messages without a pause drives its connection as one that polls does:
 * to read the socket takes little time beside such a message.
 */
static void post_large(struct iw_conn *conn, struct core_ep *ep, uint32_t size)
{
	if (!conn->is_polled) {
		run_requests(conn, ep, false);
		return;
	}
	iw_pass_receives(conn, ep);
	iw_engine_count_pass(conn->engine, size);
}

/* For watch_polls in engine/service.c. */
static void count_post(struct iw_engine *engine)
{
	uint64_t posts = atomic_load_explicit(&engine->posts, memory_order_relaxed);

	atomic_store_explicit(&engine->posts, posts + 1, memory_order_relaxed);
}

void iw_pass_post(struct iw_conn *conn, struct core_ep *ep, const struct core_req *req)
{
	count_post(conn->engine);
	if (is_large(req)) {
		post_large(conn, ep, (uint32_t)req->len);
		return;
	}
	run_requests(conn, ep, iw_hold_may(conn, ep));
	if (conn->stream.tx.held == 1)
		iw_hold_begin(conn);
}

void iw_pass_receives(struct iw_conn *conn, struct core_ep *ep)
{
	int state = core_cancel_off();
	uint64_t rx_budget = BUDGET_LEAST, tx_budget = BUDGET;

	(void)run_receiver(conn, ep, &rx_budget);
	/* what has come may be what a request waits for, or wants an answer */
	if (iw_conn_state(conn) == IW_ESTABLISHED) {
		(void)iw_tx_run(conn, ep, &tx_budget, false);
		iw_tx_tell(conn, ep);
	}
	after_post(conn, ep, rx_budget, tx_budget);
	core_cancel_restore(state);
}

void iw_pass_waiting(struct iw_conn *conn, struct core_ep *ep)
{
	int state;

	if (conn->stream.rx.is_blocked || !conn->is_polled) {
		iw_pass_receives(conn, ep);
		return;
	}
	state = core_cancel_off();
	(void)iw_message_deliver(conn, ep);
	update_reasons(conn, ep);
	if (iw_conn_state(conn) == IW_CLOSING)
		iw_conn_serve_later(conn);
	else if (iw_counts_are_due(conn))
		iw_conn_lower_deadline(conn, core_now_ns() + IW_HOLD_NS);
	core_cancel_restore(state);
}

/* --- beginning and end --- */

/* NULL: there is no memory. */
static uint8_t *map_buffer(void)
{
	uint8_t *data = mmap(NULL, IW_BUFFER_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return data == MAP_FAILED ? NULL : data;
}

int iw_stream_begin(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_rx *rx = &conn->stream.rx;
	uint8_t *data = rx->in.data ? rx->in.data : map_buffer();
	struct iw_lists *lists;
	unsigned queue;

	if (!data)
		return -ENOMEM;
	rx->in = (struct iw_buffer){.data = data, .size = IW_RX_SIZE};
	tx->out = (struct iw_buffer){.data = data + IW_RX_SIZE, .size = IW_TX_SIZE};
	lists = (struct iw_lists *)(void *)(data + IW_RX_SIZE + IW_TX_SIZE);
	tx->read = lists->read;
	tx->served = lists->served;
	tx->direct.frame = lists->frame;
	for (queue = 0; queue < IW_QUEUES; queue++)
		tx->msn[queue] = rx->msn[queue] = 1;
	tx->mulpdu = iw_frame_mulpdu(conn);
	tx->error = IW_NO_ERROR;
	tx->may_send = conn->is_active;
	/* any value will do: a Response is compared with what is in flight */
	if (getrandom(&tx->stag, sizeof(tx->stag), GRND_NONBLOCK) < 0)
		tx->stag = (uint32_t)core_now_ns();
	return 0;
}

void iw_stream_start(struct iw_conn *conn, const struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;

	/* the sequence goes on from one connection of the endpoint to the next */
	tx->next = tx->unsent = ep->req.tail;
	tx->wants_proof = tx->asked = tx->proven = ep->req.tail;
}

void iw_stream_free(struct iw_conn *conn)
{
	struct iw_stream *stream = &conn->stream;

	if (stream->rx.in.data)
		munmap(stream->rx.in.data, IW_BUFFER_SIZE);
	stream->rx.in.data = NULL;
	iw_spill_close(&stream->rx.spill);
}

void iw_stream_send_rtr(struct iw_conn *conn, enum iw_rtr form)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_ddp ddp = {.is_last = true, .opcode = IW_OP_SEND, .queue = IW_QUEUE_SEND};

	switch (form) {
	case IW_RTR_NONE:
		return;
	case IW_RTR_READ:
		iw_tx_put_empty_read(conn, iw_tx_add_read(tx, IW_READ_RTR, 0));
		return;
	case IW_RTR_WRITE:
		iw_frame_put_word(conn, IW_STAG_RTR, 0);
		return;
	case IW_RTR_SEND:
		ddp.msn = tx->msn[IW_QUEUE_SEND]++;
		iw_frame_put_empty(conn, &ddp);
		return;
	}
}

/* --- the RTR again --- */

static const uint64_t repeat_ms[] = {10, 90, 900}; /* each after the one before */
#define REPEATS (sizeof(repeat_ms) / sizeof(repeat_ms[0]))

/* Sets when the next one is due, after one at that time. */
static void set_repeat(struct iw_conn *conn, uint64_t last_ns)
{
	struct iw_tx *tx = &conn->stream.tx;

	tx->repeat_ns = tx->repeats < REPEATS ? last_ns + repeat_ms[tx->repeats] * 1000000u : 0;
	if (tx->repeat_ns)
		iw_conn_lower_deadline(conn, tx->repeat_ns);
}

void iw_stream_begin_repeats(struct iw_conn *conn)
{
	set_repeat(conn, core_now_ns());
}

void iw_stream_repeat_rtr(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;

	if (!tx->repeat_ns)
		return;
	if (conn->stream.rx.is_any) {
		tx->repeat_ns = 0;
		return;
	}
	if (core_now_ns() < tx->repeat_ns) {
		iw_conn_lower_deadline(conn, tx->repeat_ns);
		return;
	}
	/* bytes that still have to be sent do the same */
	if (tx->under_way == IW_NO_MESSAGE && iw_frame_has_room(conn, 0))
		iw_stream_send_rtr(conn, IW_RTR_WRITE);
	tx->repeats++;
	set_repeat(conn, tx->repeat_ns);
}

void iw_stream_send_error(struct iw_conn *conn, iw_error error)
{
	struct iw_tx *tx = &conn->stream.tx;

	if (!tx->out.data && iw_stream_begin(conn) < 0)
		return;
	memset(&tx->offender, 0, sizeof(tx->offender));
	tx->error = error;
	tx->is_over = true;
}

/* ==== the fast path ==== */

/* --- posts --- */

/* Is it the next message, and does nothing wait but messages that wait for it? */
CORE_INLINE bool can_send(const struct iw_conn *conn, const struct core_req *req)
{
	const struct iw_tx *tx = &conn->stream.tx;

	return iw_conn_state(conn) == IW_ESTABLISHED && tx->may_send && tx->next == req->sequence &&
	       tx->under_way == IW_NO_MESSAGE && (tx->held || !iw_frame_has_unsent(conn));
}

/* Copies the message into the buffer, as one FPDU. False: its region is not valid any more. */
CORE_INLINE bool put_message(struct iw_conn *conn, struct core_ep *ep, struct core_req *req)
{
	struct iw_ddp ddp = iw_tx_header(conn, req);
	uint32_t len = (uint32_t)req->len;
	struct core_lmr *lmr = core_mem_get(ep->ia->mem, req->iov, ep->pz, CORE_MEM_SOURCE);
	uint8_t *to;

	if (!lmr)
		return false;
	ddp.is_last = true;
	to = iw_frame_begin(conn, &ddp, len);
	memcpy(to, (const void *)(uintptr_t)req->iov->virtual_address, len);
	core_mem_put(lmr);
	iw_frame_end(conn, &ddp, len);
	conn->stream.tx.offset = len;
	iw_tx_end_message(conn, req);
	return true;
}

/* May the request take the fast path? */
CORE_INLINE bool is_small_send(const struct iw_conn *conn, const struct core_req *req)
{
	const struct iw_tx *tx = &conn->stream.tx;

	if ((req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) && tx->consumer_reads)
		return false; /* DTO-30 */
	return req->op == CORE_OP_SEND && req->len < IW_DIRECT_MIN && conn->is_own_peer;
}

bool iw_post_fast(struct iw_conn *conn, struct core_ep *ep, struct core_req *req)
{
	struct iw_tx *tx = &conn->stream.tx;

	if (!is_small_send(conn, req) || !can_send(conn, req) ||
	    !iw_frame_has_room(conn, (uint32_t)req->len + IW_FRAME_SMALL))
		return false;
	if (iw_counts_are_due(conn))
		iw_counts_put(conn);
	if (!put_message(conn, ep, req))
		return false;
	if (iw_hold_may(conn, ep) && iw_buffer_count(&tx->out) < IW_HOLD_BYTES) {
		if (!tx->held++)
			iw_hold_begin(conn);
		return true;
	}
	tx->held = 0;
	(void)iw_flush(conn, ep);
	if (iw_frame_has_unsent(conn))
		iw_pass_requests(conn, ep);
	return true;
}

/* --- polls --- */

/* Can new work only come from the socket, at the begin of an FPDU? */
CORE_INLINE bool is_quiet(const struct iw_conn *conn, const struct core_ep *ep)
{
	const struct iw_tx *tx = &conn->stream.tx;
	const struct iw_rx *rx = &conn->stream.rx;

	return !ep->cell->slow_reasons && rx->is_any && !rx->is_open && !iw_buffer_count(&rx->in) &&
	       !conn->retry_ns && !conn->is_hung_up && !iw_frame_has_unsent(conn) &&
	       iw_tx_is_idle(tx, ep);
}

/* Takes the next FPDU in the buffer if it has the counts of the peer. */
CORE_INLINE bool take_counts(struct iw_conn *conn, struct core_ep *ep)
{
	static const uint32_t size = IW_FPDU_HEAD + IW_TAGGED_HEAD + IW_FPDU_CRC;
	struct iw_rx *rx = &conn->stream.rx;
	const uint8_t *at = rx->in.data + rx->in.start;

	if (iw_buffer_count(&rx->in) < size || be_get16(at) != IW_TAGGED_HEAD ||
	    !iw_ddp_is_whole_write(at + IW_FPDU_HEAD, IW_STAG_COUNTS) || !conn->is_own_peer ||
	    !iw_rx_is_crc_good(conn, at, size) ||
	    iw_complete_counted(conn, ep, be_get64(at + IW_FPDU_HEAD + 6)) != IW_NO_ERROR)
		return false;
	rx->in.start += size;
	return true;
}

/* Takes the next FPDU in the buffer if it is a whole Send and fills a Receive of one segment. */
CORE_INLINE bool take_message(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_rx *rx = &conn->stream.rx;
	const uint8_t *at = rx->in.data + rx->in.start;
	const uint8_t *ddp = at + IW_FPDU_HEAD;
	uint32_t count = iw_buffer_count(&rx->in);
	uint32_t ulpdu = count < IW_FPDU_HEAD + IW_UNTAGGED_HEAD ? 0 : be_get16(at);
	uint32_t size = iw_fpdu_size(ulpdu);
	bool is_solicited;

	if (ulpdu <= IW_UNTAGGED_HEAD || size > count || rx->arrival.is_begun ||
	    !iw_ddp_is_whole_send(ddp, rx->msn[IW_QUEUE_SEND], &is_solicited) ||
	    !iw_rx_is_crc_good(conn, at, size) || !core_recv_is_posted(ep) ||
	    !soft_place_in_receive(ep, core_recv_oldest(ep), ddp + IW_UNTAGGED_HEAD,
				   ulpdu - IW_UNTAGGED_HEAD))
		return false;
	rx->in.start += size;
	rx->msn[IW_QUEUE_SEND]++;
	core_recv_done(ep, DAT_DTO_SUCCESS, ulpdu - IW_UNTAGGED_HEAD, is_solicited);
	rx->done.sends++;
	return true;
}

bool iw_poll_fast(struct iw_conn *conn, struct core_ep *ep, int *handled)
{
	struct iw_rx *rx = &conn->stream.rx;
	ssize_t count;

	if (!is_quiet(conn, ep))
		return false;
	conn->has_more = false;
	count = iw_rx_read(conn);
	if (count == -EAGAIN && !iw_counts_may_wait(conn))
		iw_tx_tell(conn, ep);
	else if (count < 0 && count != -EAGAIN && count != -EINTR)
		iw_rx_fail_read(conn, (int)count);
	if (count <= 0)
		return count == -EAGAIN && !conn->is_lost;
	conn->moved += (uint32_t)count;
	while (iw_buffer_count(&rx->in)) {
		if (!take_message(conn, ep) && !take_counts(conn, ep)) {
			rx->is_fresh = rx->is_dry;
			return false;
		}
		++*handled;
	}
	if (!iw_counts_may_wait(conn))
		iw_tx_tell(conn, ep);
	return !conn->is_lost;
}
