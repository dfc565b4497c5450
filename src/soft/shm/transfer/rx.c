// SPDX-License-Identifier: BSD-2-Clause
/*
 * The requests of the peer (rx.h). They are carried out in the order of the ring. A message that
 * finds no Receive stays at the head of the ring and blocks what is behind it. Our own requests,
 * and answers to them, go through the other ring and are not blocked (DTO-117).
 */
#include "soft/shm/transfer/rx.h"

#include <errno.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/transport.h"
#include "core/mem/pz.h"
#include "soft/copy.h"
#include "soft/key.h"
#include "soft/pins.h"
#include "soft/shm/instance.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/transfer/pass.h"
#include "soft/shm/transfer/publish.h"
#include "soft/shm/transfer/tx.h"

#define KILL_RETRY_NS 1000000u

enum rx_step {
	RX_TAKEN,  /* the entry is carried out */
	RX_WAIT,   /* waits for a Receive, or for room in the response ring */
	RX_MORE,   /* the budget is used up */
	RX_BROKEN, /* refused, or the peer broke the rules: the connection breaks */
};

/* Reports the refusal to the peer. */
static enum rx_step refuse(struct shm_conn *conn, enum shm_failed_kind kind,
			   DAT_DTO_COMPLETION_STATUS status)
{
	shm_conn_flush(conn, false);
	/* release, behind `done`: the peer first completes what was carried out */
	atomic_store_explicit(&conn->mine->failed, SHM_FAILED(kind, status), memory_order_release);
	return RX_BROKEN;
}

/* --- keys of ours that the peer uses --- */

/* Delays dat_lmr_free until announce_own_key_end. */
static void announce_own(struct shm_conn *conn, uint32_t key)
{
	atomic_store_explicit(&conn->local_announce, key, memory_order_relaxed);
	/* full fence: pairs with the one in soft_keys_invalidate, as in shm_announce */
	atomic_thread_fence(memory_order_seq_cst);
}

/* Checks the key for the peer, too. */
static int announce_own_key(struct shm_conn *conn, const struct core_ep *ep, uint32_t key,
			    enum soft_right right, uint64_t address, uint64_t length)
{
	announce_own(conn, key);
	return soft_key_check(soft_keys_entries(conn->engine->adapter->keys), key, right,
			      ep->pz->id, address, length);
}

static void announce_own_key_end(struct shm_conn *conn)
{
	/* release: the bytes are placed before dat_lmr_free continues */
	atomic_store_explicit(&conn->local_announce, 0, memory_order_release);
}

/* --- messages --- */

static enum rx_step wait_for_receive(struct shm_conn *conn, struct shm_pass *pass)
{
	uint64_t limit_ns = conn->engine->settings.rnr_timeout_ms * 1000000u;
	uint64_t now = limit_ns ? core_now_ns() : 0;

	if (conn->in.state != SHM_IN_NO_RECEIVE)
		conn->in = (struct shm_inbound){.state = SHM_IN_NO_RECEIVE, .blocked_ns = now};
	if (!limit_ns)
		return RX_WAIT;
	if (now - conn->in.blocked_ns >= limit_ns)
		return refuse(conn, SHM_FAILED_MESSAGE, DAT_DTO_ERR_RECEIVER_NOT_READY);
	/* set each time, because other deadlines of the connection may have fired meanwhile */
	shm_pass_again(pass, conn->in.blocked_ns + limit_ns);
	return RX_WAIT;
}

static enum rx_step end_message(struct shm_conn *conn, struct core_ep *ep,
				const struct shm_entry *entry)
{
	const uint64_t len = conn->in.offset;
	const bool is_solicited = entry->flags & SHM_FLAG_SOLICITED;

	conn->in.state = SHM_IN_NONE;
	conn->report.done++;
	conn->report.is_urgent |= len > SHM_REQUEST_PAYLOAD;
	if (entry->flags & SHM_FLAG_INVALIDATE)
		core_recv_done_invalidate(ep, entry->key, len, is_solicited);
	else
		core_recv_done(ep, DAT_DTO_SUCCESS, len, is_solicited);
	return RX_TAKEN;
}

/* The message cannot be placed in its Receive. */
static enum rx_step fail_receive(struct shm_conn *conn, struct core_ep *ep,
				 DAT_DTO_COMPLETION_STATUS status)
{
	core_recv_done(ep, status, 0, false);
	return refuse(conn, SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER);
}

/* Fills the next part of the Receive: 0, or -errno: its memory was freed or unmapped. */
static int fill_receive(struct shm_conn *conn, struct core_ep *ep, const struct core_wqe *receive,
			const struct shm_entry *entry, const uint8_t *bytes)
{
	struct soft_pins pins;
	int rc = soft_pin_receive(ep, receive, conn->in.offset, entry->payload, &pins);

	if (rc < 0)
		return rc;
	rc = soft_scatter(&pins, bytes);
	soft_unpin(&pins);
	conn->in.offset += entry->payload;
	return rc;
}

/*
 * Ends remote access by a key of ours before the message that says so completes. While a peer is in
 * the middle of a copy through a window the message waits. RX_TAKEN: it is over.
 */
static enum rx_step invalidate(struct shm_conn *conn, struct core_ep *ep, uint32_t key,
			       struct shm_pass *pass)
{
	enum core_kill kill = core_bind_kill(ep, key);
	bool is_found = kill != CORE_KILL_NONE || conn->in.state == SHM_IN_KILLING;

	if (!is_found) { /* a region's? */
		announce_own(conn, key);
		is_found = soft_keys_kill(conn->engine->adapter->keys, key, ep->pz->id);
		announce_own_key_end(conn);
	}
	if (!is_found) {
		core_recv_done(ep, DAT_DTO_ERR_LOCAL_PROTECTION, 0, false);
		return refuse(conn, SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_ACCESS);
	}
	if (kill != CORE_KILL_WAIT)
		return RX_TAKEN;
	conn->in.state = SHM_IN_KILLING;
	shm_pass_again(pass, core_now_ns() + KILL_RETRY_NS);
	return RX_WAIT;
}

/* Does its length, that of all that is left of its request, agree with what it brings? */
static bool is_piece(const struct shm_entry *entry)
{
	const bool is_last = entry->flags & SHM_FLAG_LAST;

	return entry->payload <= entry->length && (entry->payload == entry->length) == is_last &&
	       (entry->payload || is_last);
}

static enum rx_step take_send(struct shm_conn *conn, struct core_ep *ep,
			      const struct shm_entry *entry, const uint8_t *bytes,
			      struct shm_pass *pass)
{
	const bool is_begun = conn->in.state >= SHM_IN_MESSAGE;
	const bool is_first = entry->flags & SHM_FLAG_FIRST;
	const struct core_wqe *receive;
	enum rx_step step;

	if (is_first == is_begun && conn->in.state != SHM_IN_KILLING)
		return RX_BROKEN;
	receive = core_recv_next(ep);
	if (!receive)
		return is_begun ? fail_receive(conn, ep, DAT_DTO_ERR_LOCAL_PROTECTION)
				: wait_for_receive(conn, pass);
	if (!is_begun)
		conn->in = (struct shm_inbound){.state = SHM_IN_MESSAGE};
	if (entry->length > receive->len - conn->in.offset) /* DTO-79 */
		return fail_receive(conn, ep, DAT_DTO_ERR_LOCAL_LENGTH);
	if (!is_piece(entry))
		return RX_BROKEN;
	if ((entry->flags & SHM_FLAG_LAST) && (entry->flags & SHM_FLAG_INVALIDATE)) {
		step = invalidate(conn, ep, entry->key, pass);
		if (step != RX_TAKEN)
			return step;
	}
	if (entry->payload && fill_receive(conn, ep, receive, entry, bytes) < 0)
		return fail_receive(conn, ep, DAT_DTO_ERR_LOCAL_PROTECTION);
	return entry->flags & SHM_FLAG_LAST ? end_message(conn, ep, entry) : RX_TAKEN;
}

/* --- RDMA through the ring --- */

int shm_rx_place(struct shm_conn *conn, const struct core_ep *ep, const struct shm_entry *write,
		 const uint8_t *from)
{
	/* checks all that is left, so that a refused request changes no byte (DTO-94) */
	int rc = announce_own_key(conn, ep, write->key, SOFT_RIGHT_REMOTE_WRITE, write->address,
				  write->length);

	if (!rc)
		rc = soft_copy_to_consumer((void *)(uintptr_t)write->address, from, write->payload);
	announce_own_key_end(conn);
	return rc;
}

int shm_rx_fetch(struct shm_conn *conn, const struct core_ep *ep, const struct shm_entry *read,
		 uint64_t offset, const struct shm_room *room)
{
	int rc = announce_own_key(conn, ep, read->key, SOFT_RIGHT_REMOTE_READ, read->address,
				  read->length);

	if (!rc)
		rc = soft_copy_from_consumer(room->to, (void *)(uintptr_t)(read->address + offset),
					     room->bytes);
	announce_own_key_end(conn);
	return rc;
}

static enum rx_step take_write(struct shm_conn *conn, struct core_ep *ep,
			       const struct shm_entry *entry, const uint8_t *bytes)
{
	if (!entry->payload || !is_piece(entry))
		return RX_BROKEN;
	if (shm_rx_place(conn, ep, entry, bytes) < 0)
		return refuse(conn, SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_ACCESS);
	if ((entry->flags & (SHM_FLAG_LAST | SHM_FLAG_NOTICE)) == SHM_FLAG_LAST) {
		conn->report.done++;
		conn->report.is_urgent = true;
	}
	return RX_TAKEN;
}

/* The immediate data of a Write whose bytes are there: takes a Receive, as a message does. */
static enum rx_step take_immediate(struct shm_conn *conn, struct core_ep *ep,
				   const struct shm_entry *entry, struct shm_pass *pass)
{
	if (!(conn->takes & TRANSPORT_TAKES_IMMEDIATE) || entry->payload)
		return RX_BROKEN;
	if (!core_recv_next(ep))
		return wait_for_receive(conn, pass);
	conn->in.state = SHM_IN_NONE;
	conn->report.done++;
	conn->report.is_urgent = true;
	core_recv_done_immediate(ep, entry->key, entry->length, entry->flags & SHM_FLAG_SOLICITED);
	return RX_TAKEN;
}

/* Carries out an atomic operation and returns the value before. */
static int run_atomic(struct shm_conn *conn, const struct core_ep *ep,
		      const struct shm_entry *entry, const struct shm_atomic *atomic,
		      uint64_t *before_out)
{
	int rc = announce_own_key(conn, ep, entry->key, SOFT_RIGHT_REMOTE_ATOMIC, entry->address,
				  sizeof(uint64_t));

	if (!rc && entry->address % sizeof(uint64_t))
		rc = -EACCES;
	if (!rc)
		rc = soft_atomic((void *)(uintptr_t)entry->address,
				 atomic->is_swap ? &atomic->compare : NULL, atomic->operand,
				 before_out);
	announce_own_key_end(conn);
	return rc;
}

static enum rx_step take_atomic(struct shm_conn *conn, struct core_ep *ep,
				const struct shm_entry *entry, const uint8_t *bytes)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST};
	struct shm_atomic atomic;
	struct shm_room room;
	uint64_t before;
	int rc;

	if (!(conn->takes & TRANSPORT_TAKES_ATOMICS) || entry->payload != sizeof(atomic))
		return RX_BROKEN;
	shm_read_once(&atomic, bytes, sizeof(atomic));
	rc = shm_room_reserve(&conn->response_out, sizeof(before), &room);
	conn->in = (struct shm_inbound){.state = rc == 0 ? SHM_IN_READ_FULL : SHM_IN_NONE};
	if (rc <= 0)
		return rc < 0 ? RX_BROKEN : RX_WAIT;
	if (run_atomic(conn, ep, entry, &atomic, &before) < 0)
		return refuse(conn, SHM_FAILED_READ, DAT_DTO_ERR_REMOTE_ACCESS);
	memcpy(room.to, &before, sizeof(before));
	shm_room_commit(conn, &conn->response_out, &data, &room);
	return RX_TAKEN;
}

static enum rx_step take_read(struct shm_conn *conn, struct core_ep *ep,
			      const struct shm_entry *entry, struct shm_pass *pass)
{
	struct shm_inbound *read = &conn->in;

	if (read->state == SHM_IN_NONE) {
		if (!entry->length)
			return RX_BROKEN;
		read->offset = 0;
	}
	read->state = SHM_IN_READ;
	while (read->offset < entry->length) {
		uint64_t left = entry->length - read->offset;
		struct shm_entry data = {.type = SHM_ENTRY_DATA};
		struct shm_room room;
		int rc;

		if (!pass->budget)
			return RX_MORE;
		rc = shm_room_reserve(&conn->response_out, left, &room);
		if (rc < 0)
			return RX_BROKEN;
		if (rc == 0) {
			read->state = SHM_IN_READ_FULL;
			return RX_WAIT;
		}
		if (shm_rx_fetch(conn, ep, entry, read->offset, &room) < 0)
			return refuse(conn, SHM_FAILED_READ, DAT_DTO_ERR_REMOTE_ACCESS);
		if (room.bytes == left)
			data.flags = SHM_FLAG_LAST;
		shm_room_commit(conn, &conn->response_out, &data, &room);
		read->offset += room.bytes;
		pass->budget -= room.bytes < pass->budget ? room.bytes : pass->budget;
	}
	read->state = SHM_IN_NONE;
	return RX_TAKEN;
}

/* --- the ring --- */

/* A message or Read that is under way must be continued: no other entry may come between. */
static bool is_expected(const struct shm_conn *conn, uint8_t type)
{
	switch (conn->in.state) {
	case SHM_IN_NONE:
		return true;
	case SHM_IN_NO_RECEIVE: /* the same message, from its begin */
		return type == SHM_ENTRY_SEND || type == SHM_ENTRY_IMMEDIATE;
	case SHM_IN_MESSAGE:
	case SHM_IN_KILLING:
		return type == SHM_ENTRY_SEND;
	case SHM_IN_READ:
		return type == SHM_ENTRY_READ;
	case SHM_IN_READ_FULL:
		return type == SHM_ENTRY_READ || type == SHM_ENTRY_ATOMIC;
	}
	return false;
}

static enum rx_step take_entry(struct shm_conn *conn, struct core_ep *ep,
			       const struct shm_entry *entry, const uint8_t *payload,
			       struct shm_pass *pass)
{
	enum rx_step step;

	if (!is_expected(conn, entry->type))
		return RX_BROKEN;
	switch (entry->type) {
	case SHM_ENTRY_SEND:
	case SHM_ENTRY_WRITE:
		if (pass->budget < entry->payload)
			return RX_MORE;
		step = entry->type == SHM_ENTRY_SEND ? take_send(conn, ep, entry, payload, pass)
						     : take_write(conn, ep, entry, payload);
		if (step == RX_TAKEN)
			pass->budget -= entry->payload;
		return step;
	case SHM_ENTRY_READ:
		return take_read(conn, ep, entry, pass);
	case SHM_ENTRY_IMMEDIATE:
		return take_immediate(conn, ep, entry, pass);
	case SHM_ENTRY_ATOMIC:
		return take_atomic(conn, ep, entry, payload);
	default:
		return RX_BROKEN;
	}
}

int shm_rx_run(struct shm_conn *conn, struct core_ep *ep, struct shm_pass *pass)
{
	uint64_t at_start = pass->budget;
	const uint8_t *payload;
	struct shm_entry entry;
	int handled = 0;

	for (;;) {
		int rc = shm_consumer_peek(&conn->request_in, &entry, &payload);
		if (rc <= 0)
			return rc < 0 ? rc : handled;
		if (handled == (int)SHM_BATCH) {
			pass->has_more = true;
			return handled;
		}
		rc = shm_tx_acknowledge(conn, ep, entry.done);
		if (rc < 0)
			return rc;
		switch (take_entry(conn, ep, &entry, payload, pass)) {
		case RX_TAKEN:
			shm_room_take(conn, &conn->request_in, &entry);
			handled++;
			break;
		case RX_WAIT:
			return handled + (pass->budget != at_start);
		case RX_MORE:
			pass->has_more = true;
			return handled + 1;
		case RX_BROKEN:
			return -EPROTO;
		}
	}
}
