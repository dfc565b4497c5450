// SPDX-License-Identifier: BSD-2-Clause
/*
 * The requests of the peer (rx.h). They are carried out in the order of the ring. A message that
 * finds no Receive stays at the head of the ring and blocks what is behind it. Our own requests,
 * and answers to them, go through the other ring and are not blocked (DTO-117).
 */
#include "soft/shm/transfer/rx.h"

#include <errno.h>

#include "core/base/clock.h"
#include "core/transport.h"
#include "core/mem/pz.h"
#include "soft/copy.h"
#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/piece.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/transfer/tx.h"

enum rx_step {
	RX_TAKEN,  /* the entry is carried out */
	RX_WAIT,   /* waits for a Receive, or for room in the response ring */
	RX_MORE,   /* the budget is used up */
	RX_CLOSED, /* refused, and the connection is closed */
	RX_BROKEN, /* the peer broke the rules */
};

/* Reports the refusal to the peer and breaks the connection. */
static enum rx_step refuse(struct shm_conn *conn, enum shm_failed_kind kind,
			   DAT_DTO_COMPLETION_STATUS status)
{
	shm_conn_flush(conn, false);
	/* release, behind `done`: the peer first completes what was carried out */
	atomic_store_explicit(&conn->mine->failed, SHM_FAILED(kind, status), memory_order_release);
	shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
	return RX_CLOSED;
}

/* --- messages --- */

static enum rx_step wait_for_receive(struct shm_conn *conn)
{
	struct shm_arrival *arrival = &conn->arrival;
	uint64_t limit_ns = conn->engine->settings.rnr_timeout_ms * 1000000u;
	uint64_t now;

	if (!limit_ns) {
		arrival->is_blocked = true;
		return RX_WAIT;
	}
	now = core_now_ns();
	if (!arrival->is_blocked) {
		arrival->is_blocked = true;
		arrival->blocked_ns = now;
	}
	if (now - arrival->blocked_ns >= limit_ns)
		return refuse(conn, SHM_FAILED_MESSAGE, DAT_DTO_ERR_RECEIVER_NOT_READY);
	/* set each time, because other deadlines of the connection may have fired meanwhile */
	shm_conn_lower_deadline(conn, arrival->blocked_ns + limit_ns);
	return RX_WAIT;
}

/* Takes the first entry of a message: finds its Receive. RX_TAKEN: continue. */
static enum rx_step begin_message(struct shm_conn *conn, struct core_ep *ep,
				  const struct shm_entry *entry)
{
	struct shm_arrival *arrival = &conn->arrival;
	const struct core_wqe *receive;

	if (!(entry->flags & SHM_FLAG_FIRST))
		return RX_BROKEN;
	receive = core_recv_next(ep);
	if (!receive)
		return wait_for_receive(conn);
	arrival->is_blocked = false;
	if (entry->length > receive->len) { /* DTO-79 */
		core_recv_done(ep, DAT_DTO_ERR_LOCAL_LENGTH, 0, false);
		return refuse(conn, SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER);
	}
	arrival->length = entry->length;
	arrival->offset = 0;
	arrival->is_begun = true;
	arrival->is_pull = false;
	arrival->is_supplied = false;
	arrival->is_solicited = entry->flags & SHM_FLAG_SOLICITED;
	return RX_TAKEN;
}

static enum rx_step end_message(struct shm_conn *conn, struct core_ep *ep)
{
	struct shm_arrival *arrival = &conn->arrival;

	arrival->is_begun = false;
	arrival->is_supplied = false;
	conn->done++;
	conn->is_report_urgent |= arrival->length > SHM_REQUEST_PAYLOAD;
	core_recv_done(ep, DAT_DTO_SUCCESS, arrival->length, arrival->is_solicited);
	return RX_TAKEN;
}

/* The Receive itself is no longer valid: its memory was freed or unmapped. */
static enum rx_step fail_receive(struct shm_conn *conn, struct core_ep *ep)
{
	core_recv_done(ep, DAT_DTO_ERR_LOCAL_PROTECTION, 0, false);
	return refuse(conn, SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER);
}

/* Pins the part of the Receive that the next len bytes of the message fill. */
static int pin_receive(struct shm_conn *conn, struct core_ep *ep, uint64_t len,
		       struct soft_pins *pins)
{
	const struct core_wqe *receive = core_recv_next(ep);

	if (!receive)
		return -EACCES;
	return soft_pin_receive(ep, receive, conn->arrival.offset, len, pins);
}

static enum rx_step take_send(struct shm_conn *conn, struct core_ep *ep,
			      const struct shm_entry *entry, const struct shm_bytes *bytes)
{
	struct shm_arrival *arrival = &conn->arrival;
	struct soft_pins pins;
	enum rx_step step;
	int rc;

	if (!arrival->is_begun) {
		step = begin_message(conn, ep, entry);
		if (step != RX_TAKEN)
			return step;
	} else if (arrival->is_pull || (entry->flags & SHM_FLAG_FIRST)) {
		return RX_BROKEN;
	}
	if (bytes->count > arrival->length - arrival->offset ||
	    (arrival->offset + bytes->count == arrival->length) !=
		    !!(entry->flags & SHM_FLAG_LAST) ||
	    (!bytes->count && arrival->length))
		return RX_BROKEN;
	/*
	 * counts the use of that memory: after enough uses it is mapped, and messages from it are
	 * fetched
	 */
	if (bytes->count >= SHM_MAP_SEND && conn->remote.maps && conn->remote.has_pull)
		(void)shm_map_find(conn, entry->key);
	if (bytes->count) {
		rc = pin_receive(conn, ep, bytes->count, &pins);
		if (!rc) {
			rc = soft_scatter(&pins, bytes->at);
			soft_unpin(&pins);
		}
		if (rc < 0)
			return fail_receive(conn, ep);
		arrival->offset += bytes->count;
	}
	return entry->flags & SHM_FLAG_LAST ? end_message(conn, ep) : RX_TAKEN;
}

/*
 * Copies the list of sources once and checks it: together they must have the length of the message.
 */
static bool copy_sources(struct shm_arrival *arrival, const struct shm_entry *entry,
			 const uint8_t *payload)
{
	uint32_t count = entry->payload / (uint32_t)sizeof(struct shm_source);
	uint64_t left = entry->length;
	uint32_t i;

	if (!count || count > SOFT_IOV_MAX || entry->payload % sizeof(struct shm_source))
		return false;
	shm_read_once(arrival->sources, payload, entry->payload);
	for (i = 0; i < count; i++) {
		uint64_t length = arrival->sources[i].length;

		if (!length || length > left)
			return false;
		left -= length;
	}
	return left == 0;
}

/* Copies from a mapping of the peer's memory if there is one, else by the kernel. */
static int fetch_source(struct shm_conn *conn, const struct shm_map *map,
			const struct shm_source *source, uint64_t skip,
			const struct soft_pins *pins, uint64_t len)
{
	const uint8_t *memory = map ? shm_map_at(map, source->address, source->length) : NULL;
	int rc;

	if (memory) /* our memory may be unmapped, a mapping of theirs cannot */
		return soft_scatter(pins, memory + skip) < 0 ? -ENOENT : 0;
	rc = shm_copy_by_kernel(conn, source->address + skip, pins, len, false);
	return rc == -EFAULT && soft_is_gone(pins, CORE_MEM_TARGET) ? -ENOENT : rc;
}

/*
 * Fetches the next piece: 0, -errno of the announcement or the copy, or -ENOENT: our Receive is not
 * valid.
 */
static int pull_piece(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	struct shm_arrival *arrival = &conn->arrival;
	const struct shm_source *source = arrival->sources;
	uint64_t skip = arrival->offset;
	const struct shm_map *map;
	struct soft_pins pins;
	uint64_t len;
	int rc;

	while (skip >= source->length)
		skip -= source++->length;
	len = source->length - skip;
	if (len > SHM_PULL_PIECE)
		len = SHM_PULL_PIECE;
	if (len > *budget)
		len = *budget;
	if (pin_receive(conn, ep, len, &pins) < 0)
		return -ENOENT;
	map = conn->remote.maps ? shm_map_find(conn, source->key) : NULL;
	rc = shm_announce(conn, map, source->key, SOFT_RIGHT_PULL, source->address, source->length);
	if (!rc)
		rc = fetch_source(conn, map, source, skip, &pins, len);
	shm_announce_end(conn);
	soft_unpin(&pins);
	if (rc)
		return rc;
	arrival->offset += len;
	*budget -= len;
	return 0;
}

/*
 * Has the sender supply the bytes (shm_tx_supply). It begins with the first one, because it does
 * not know what was fetched; and the kernel is not asked again, because the sender makes no more
 * entries of that kind.
 */
static void ask_for_bytes(struct shm_conn *conn)
{
	conn->remote.cannot_pull = true;
	conn->arrival.is_supplied = true;
	conn->arrival.offset = 0;
}

int shm_rx_supplied(struct shm_conn *conn, struct core_ep *ep, const struct shm_entry *entry,
		    const struct shm_bytes *bytes)
{
	struct shm_arrival *arrival = &conn->arrival;
	struct soft_pins pins;
	int rc;

	if (!arrival->is_supplied || !bytes->count ||
	    bytes->count > arrival->length - arrival->offset ||
	    (arrival->offset + bytes->count == arrival->length) != !!(entry->flags & SHM_FLAG_LAST))
		return -EPROTO;
	rc = pin_receive(conn, ep, bytes->count, &pins);
	if (!rc) {
		rc = soft_scatter(&pins, bytes->at);
		soft_unpin(&pins);
	}
	if (rc < 0)
		fail_receive(conn, ep);
	else
		arrival->offset += bytes->count;
	return 1;
}

static enum rx_step take_pull(struct shm_conn *conn, struct core_ep *ep,
			      const struct shm_entry *entry, const uint8_t *payload,
			      uint64_t *budget)
{
	struct shm_arrival *arrival = &conn->arrival;

	/* only a peer to which we offered it may request it */
	if (!conn->remote.has_pull)
		return RX_BROKEN;
	if (!arrival->is_begun) {
		enum rx_step step = begin_message(conn, ep, entry);

		if (step != RX_TAKEN)
			return step;
		if (!copy_sources(arrival, entry, payload))
			return RX_BROKEN;
		arrival->is_pull = true;
		if (conn->remote.cannot_pull)
			ask_for_bytes(conn);
	} else if (!arrival->is_pull) {
		return RX_BROKEN;
	}
	while (arrival->offset < arrival->length) {
		int rc;

		if (arrival->is_supplied)
			return RX_WAIT;
		if (!*budget)
			return RX_MORE;
		rc = pull_piece(conn, ep, budget);
		if (shm_is_refused(conn, rc)) {
			ask_for_bytes(conn);
			continue;
		}
		switch (rc) {
		case 0:
			break;
		case -EAGAIN: /* the peer has ended the connection, or is dead */
			return RX_WAIT;
		case -ENOENT:
			return fail_receive(conn, ep);
		case -EACCES: /* the sender has freed the region (DTO-96) */
		case -EFAULT:
			return refuse(conn, SHM_FAILED_MESSAGE, DAT_DTO_ERR_LOCAL_PROTECTION);
		default:
			return refuse(conn, SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER);
		}
	}
	return end_message(conn, ep);
}

/* --- RDMA through the ring --- */

/* Checks a key of ours for the peer, and delays dat_lmr_free until announce_own_key_end. */
static int announce_own_key(struct shm_conn *conn, const struct core_ep *ep, uint32_t key,
			    enum soft_right right, uint64_t address, uint64_t length)
{
	atomic_store_explicit(&conn->local_announce, key, memory_order_relaxed);
	/* full fence: pairs with the one in soft_keys_invalidate, as in shm_announce */
	atomic_thread_fence(memory_order_seq_cst);
	return soft_key_check(soft_keys_entries(conn->engine->adapter->keys), key, right,
			      ep->pz->id, address, length);
}

static void announce_own_key_end(struct shm_conn *conn)
{
	/* release: the bytes are placed before dat_lmr_free continues */
	atomic_store_explicit(&conn->local_announce, 0, memory_order_release);
}

int shm_rx_place(struct shm_conn *conn, const struct core_ep *ep, const struct shm_inbound *write,
		 const uint8_t *from, uint32_t count)
{
	/* checks the whole range, so that a refused request changes no byte (DTO-94) */
	int rc = announce_own_key(conn, ep, write->key, SOFT_RIGHT_REMOTE_WRITE, write->address,
				  write->length);

	if (!rc)
		rc = soft_copy_to_consumer((void *)(uintptr_t)(write->address + write->offset),
					   from, count);
	announce_own_key_end(conn);
	return rc;
}

int shm_rx_fetch(struct shm_conn *conn, const struct core_ep *ep, const struct shm_inbound *read,
		 uint8_t *to, uint32_t count)
{
	int rc = announce_own_key(conn, ep, read->key, SOFT_RIGHT_REMOTE_READ, read->address,
				  read->length);

	if (!rc)
		rc = soft_copy_from_consumer(to, (void *)(uintptr_t)(read->address + read->offset),
					     count, &conn->stream);
	announce_own_key_end(conn);
	return rc;
}

static enum rx_step take_write(struct shm_conn *conn, struct core_ep *ep,
			       const struct shm_entry *entry, const struct shm_bytes *bytes)
{
	struct shm_inbound *write = &conn->write;

	if (!!(entry->flags & SHM_FLAG_FIRST) == write->is_begun || !bytes->count)
		return RX_BROKEN;
	if (!write->is_begun)
		*write = (struct shm_inbound){
			.is_begun = true,
			.key = entry->key,
			.address = entry->address,
			.length = entry->length,
		};
	if (bytes->count > write->length - write->offset || entry->key != write->key ||
	    (write->offset + bytes->count == write->length) != !!(entry->flags & SHM_FLAG_LAST))
		return RX_BROKEN;
	if (shm_rx_place(conn, ep, write, bytes->at, bytes->count) < 0)
		return refuse(conn, SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_ACCESS);
	write->offset += bytes->count;
	if (entry->flags & SHM_FLAG_LAST) {
		write->is_begun = false;
		conn->done++;
		conn->is_report_urgent = true;
	}
	return RX_TAKEN;
}

static enum rx_step take_read(struct shm_conn *conn, struct core_ep *ep,
			      const struct shm_entry *entry, uint64_t *budget)
{
	struct shm_inbound *read = &conn->read;

	if (!read->is_begun) {
		if (!entry->length)
			return RX_BROKEN;
		*read = (struct shm_inbound){
			.is_begun = true,
			.key = entry->key,
			.address = entry->address,
			.length = entry->length,
		};
	}
	while (read->offset < read->length) {
		uint64_t left = read->length - read->offset;
		struct shm_entry data = {.type = SHM_ENTRY_DATA};
		struct shm_room room;
		int rc;

		if (!*budget)
			return RX_MORE;
		rc = shm_room_reserve(conn, &conn->response_out, &conn->bulk.responses, left,
				      SHM_RESPONSE_PAYLOAD, &room);
		conn->is_response_wanted = rc == 0;
		if (rc <= 0)
			return rc < 0 ? RX_BROKEN : RX_WAIT;
		if (shm_rx_fetch(conn, ep, read, room.to, room.bytes) < 0) {
			shm_room_cancel(conn, &room);
			return refuse(conn, SHM_FAILED_READ, DAT_DTO_ERR_REMOTE_ACCESS);
		}
		if (room.bytes == left)
			data.flags = SHM_FLAG_LAST;
		shm_room_commit(conn, &conn->response_out, &conn->bulk.responses, &data, &room);
		read->offset += room.bytes;
		*budget -= room.bytes < *budget ? room.bytes : *budget;
	}
	read->is_begun = false;
	return RX_TAKEN;
}

/* --- the ring --- */

static enum rx_step take_entry(struct shm_conn *conn, struct core_ep *ep,
			       const struct shm_entry *entry, const uint8_t *payload,
			       uint64_t *budget)
{
	struct shm_bytes bytes;
	enum rx_step step;

	/* a message or RDMA in progress must be continued: no other entry may come between */
	if ((conn->arrival.is_begun && entry->type != SHM_ENTRY_SEND &&
	     entry->type != SHM_ENTRY_PULL) ||
	    (conn->write.is_begun && entry->type != SHM_ENTRY_WRITE) ||
	    (conn->read.is_begun && entry->type != SHM_ENTRY_READ))
		return RX_BROKEN;
	switch (entry->type) {
	case SHM_ENTRY_SEND:
	case SHM_ENTRY_WRITE:
		if (shm_bytes_find(conn, entry, payload, &bytes) < 0)
			return RX_BROKEN;
		if (*budget < bytes.count)
			return RX_MORE;
		step = entry->type == SHM_ENTRY_SEND ? take_send(conn, ep, entry, &bytes)
						     : take_write(conn, ep, entry, &bytes);
		if (step == RX_TAKEN)
			*budget -= bytes.count;
		return step;
	case SHM_ENTRY_PULL:
		return take_pull(conn, ep, entry, payload, budget);
	case SHM_ENTRY_READ:
		return take_read(conn, ep, entry, budget);
	default:
		return RX_BROKEN;
	}
}

int shm_rx_run(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	uint64_t at_start = *budget;
	const uint8_t *payload;
	struct shm_entry entry;
	int handled = 0;

	conn->is_head_blocked = false;
	for (;;) {
		int rc = shm_consumer_peek(&conn->request_in, &entry, &payload);
		if (rc <= 0)
			return rc < 0 ? rc : handled;
		if (handled == (int)SHM_BATCH) {
			atomic_store_explicit(&conn->has_more, true, memory_order_relaxed);
			return handled;
		}
		rc = shm_tx_acknowledge(conn, ep, entry.done);
		if (rc < 0)
			return rc;
		switch (take_entry(conn, ep, &entry, payload, budget)) {
		case RX_TAKEN:
			shm_consumer_pop(&conn->request_in);
			shm_bytes_release(conn, &conn->request_in, &entry);
			handled++;
			break;
		case RX_WAIT:
			conn->is_head_blocked = true;
			return handled + (*budget != at_start);
		case RX_MORE:
			atomic_store_explicit(&conn->has_more, true, memory_order_relaxed);
			return handled + 1;
		case RX_CLOSED:
			return handled + 1;
		case RX_BROKEN:
			return -EPROTO;
		}
	}
}
