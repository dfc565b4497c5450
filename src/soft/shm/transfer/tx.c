// SPDX-License-Identifier: BSD-2-Clause
/*
 * Our own requests (tx.h): completing them, failing them, and starting them.
 */
#include "soft/shm/transfer/tx.h"

#include <errno.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/pins.h"
#include "soft/shm/instance.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/pass.h"
#include "soft/shm/transfer/publish.h"
#include "soft/shm/transfer/rx.h"

#define BIND_RETRY_NS 1000000u
#define FAILING_NS 500000000u /* time for the requests before a failed one */

/* --- completing --- */

static enum shm_req_state state_of(const struct core_req *req)
{
	return (enum shm_req_state)(req->transport.word[0] & SHM_REQ_STATE_MASK);
}

/* Does direct RDMA that follows have to wait for it? */
static bool is_ordered(const struct core_req *req)
{
	return req->op == CORE_OP_RDMA_WRITE || (req->transport.word[0] & SHM_REQ_ORDERED);
}

static void finish(struct core_ep *ep, struct core_req *req, DAT_DTO_COMPLETION_STATUS status)
{
	req->transport.word[0] = SHM_REQ_FINISHED;
	core_req_done(ep, req, status, req->len);
}

/* Finds the oldest request in that state, from *cursor on; NULL if there is none. */
static struct core_req *oldest(struct shm_conn *conn, struct core_ep *ep, uint64_t *cursor,
			       enum shm_req_state state)
{
	/* slots before the head may have been reused */
	if (*cursor < ep->req.head)
		*cursor = ep->req.head;
	for (; *cursor < conn->tx.next; ++*cursor) {
		struct core_req *req = core_req_at(&ep->req, *cursor);

		if (state_of(req) == state)
			return req;
	}
	return NULL;
}

int shm_tx_acknowledge(struct shm_conn *conn, struct core_ep *ep, uint32_t done)
{
	uint32_t count = done - shm_conn_acked(conn);
	uint32_t i;

	/* both the entries and the word report the count, and may overtake each other */
	if ((int32_t)count <= 0)
		return 0;
	if (count > conn->tx.sent - shm_conn_acked(conn))
		return -EPROTO;
	for (i = 0; i < count; i++) {
		struct core_req *req = oldest(conn, ep, &conn->tx.ack_from, SHM_REQ_WAIT_DONE);

		if (!req)
			return -EPROTO;
		if (is_ordered(req))
			conn->tx.ring_writes--;
		shm_conn_set_acked(conn, shm_conn_acked(conn) + 1);
		finish(ep, req, DAT_DTO_SUCCESS);
	}
	return (int)count;
}

int shm_tx_read_done(struct shm_conn *conn, struct core_ep *ep)
{
	/* acquire: pairs with the release in publish_done of the peer */
	uint32_t done = atomic_load_explicit(&conn->theirs->done, memory_order_acquire);

	SHM_TSAN_ACQUIRE(done);
	return shm_tx_acknowledge(conn, ep, done);
}

/* Places one piece of an RDMA Read: 1, or -EPROTO. */
static int take_data(struct shm_conn *conn, struct core_ep *ep, const struct shm_entry *entry,
		     const uint8_t *bytes)
{
	struct core_req *req = oldest(conn, ep, &conn->tx.data_from, SHM_REQ_WAIT_DATA);
	struct soft_pins pins;
	uint64_t *offset;
	int rc;

	if (!req || entry->type != SHM_ENTRY_DATA)
		return -EPROTO;
	offset = &req->transport.word[1];
	if (!entry->payload || entry->payload > req->len - *offset ||
	    (*offset + entry->payload == req->len) != !!(entry->flags & SHM_FLAG_LAST)) {
		finish(ep, req, DAT_DTO_ERR_BAD_RESPONSE);
		return -EPROTO;
	}
	rc = soft_pin(ep, req->iov, req->segments, *offset, entry->payload, CORE_MEM_TARGET, &pins);
	if (!rc) {
		rc = soft_scatter(&pins, bytes);
		soft_unpin(&pins);
	}
	if (rc < 0) {
		finish(ep, req, DAT_DTO_ERR_LOCAL_PROTECTION);
		return -EPROTO;
	}
	*offset += entry->payload;
	if (entry->flags & SHM_FLAG_LAST) {
		conn->tx.reads--;
		if (is_ordered(req))
			conn->tx.ring_writes--;
		finish(ep, req, DAT_DTO_SUCCESS);
	}
	return 1;
}

int shm_tx_responses(struct shm_conn *conn, struct core_ep *ep, struct shm_pass *pass)
{
	const uint8_t *payload;
	struct shm_entry entry;
	int handled = 0;

	for (;;) {
		int rc = shm_consumer_peek(&conn->response_in, &entry, &payload);

		if (rc <= 0)
			return rc < 0 ? rc : handled;
		if (pass->budget < entry.payload || handled == (int)SHM_BATCH) {
			pass->has_more = true;
			return handled;
		}
		pass->budget -= entry.payload;
		rc = shm_tx_acknowledge(conn, ep, entry.done);
		if (rc < 0)
			return rc;
		rc = take_data(conn, ep, &entry, payload);
		if (rc < 0)
			return rc;
		handled++;
		if (shm_conn_state(conn) != SHM_ESTABLISHED)
			return handled;
		shm_room_take(conn, &conn->response_in, &entry);
	}
}

void shm_tx_failed(struct shm_conn *conn, struct core_ep *ep, uint32_t failed)
{
	uint32_t status = SHM_FAILED_STATUS(failed);
	struct core_req *req;

	if (SHM_FAILED_KIND(failed) == SHM_FAILED_MESSAGE)
		req = oldest(conn, ep, &conn->tx.ack_from, SHM_REQ_WAIT_DONE);
	else if (SHM_FAILED_KIND(failed) == SHM_FAILED_READ)
		req = oldest(conn, ep, &conn->tx.data_from, SHM_REQ_WAIT_DATA);
	else
		return;
	/* a message in pieces can fail before its last piece is handed out */
	if (!req && conn->tx.next < ep->req.tail) {
		req = core_req_at(&ep->req, conn->tx.next);
		if (!(req->transport.word[0] & SHM_REQ_RING_BEGUN))
			req = NULL;
	}
	if (!req)
		return;
	switch (status) {
	case DAT_DTO_ERR_LOCAL_PROTECTION:
	case DAT_DTO_ERR_REMOTE_ACCESS:
	case DAT_DTO_ERR_REMOTE_RESPONDER:
	case DAT_DTO_ERR_RECEIVER_NOT_READY:
		break;
	default:
		status = DAT_DTO_ERR_BAD_RESPONSE;
	}
	finish(ep, req, (DAT_DTO_COMPLETION_STATUS)status);
}

/* --- starting --- */

enum tx_step {
	TX_STARTED, /* all of it is started, or it is finished: continue with the next one */
	TX_WAIT,    /* waits; a later event continues it */
	TX_MORE,    /* the budget is used up */
	TX_FAILED,  /* it failed: the connection breaks when those before it have finished */
	TX_BROKEN,  /* it failed, or the peer broke the rules: the connection breaks */
};

/* Requests after it are not started any more. */
static enum tx_step fail(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
			 DAT_DTO_COMPLETION_STATUS status, struct shm_pass *pass)
{
	finish(ep, req, status);
	if (shm_conn_acked(conn) == conn->tx.sent && !conn->tx.reads)
		return TX_BROKEN;
	conn->end.ending = SHM_ENDING_FAILED;
	conn->end.limit_ns = core_now_ns() + FAILING_NS;
	shm_pass_again(pass, conn->end.limit_ns);
	return TX_FAILED;
}

/* Reserves room for one entry; TX_STARTED on success. */
static enum tx_step reserve(struct shm_conn *conn, uint32_t payload, uint8_t **payload_out)
{
	int rc = shm_producer_reserve(&conn->request_out, payload, payload_out);

	shm_conn_watch_bit(conn, SHM_WATCH_REQUEST_SPACE, rc == 0);
	if (rc < 0)
		return TX_BROKEN;
	return rc ? TX_STARTED : TX_WAIT;
}

static void handed_out(struct shm_conn *conn, struct core_req *req, uint64_t state)
{
	req->transport.word[0] = state;
	if (state_of(req) == SHM_REQ_WAIT_DATA) {
		conn->tx.reads++;
		return;
	}
	conn->tx.sent++;
	if (is_ordered(req))
		conn->tx.ring_writes++;
}

/*
 * Fills the room with the next bytes of a Send or RDMA Write; false: the memory is not valid any
 * more.
 */
static bool fill(struct core_ep *ep, struct core_req *req, const struct shm_room *room,
		 struct shm_entry *entry)
{
	uint64_t offset = req->transport.word[1];
	struct soft_pins pins;
	int rc;

	if (soft_pin(ep, req->iov, req->segments, offset, room->bytes, CORE_MEM_SOURCE, &pins) < 0)
		return false;
	if (core_op_is_write(req->op)) {
		entry->key = req->remote.rmr_context;
		entry->address = req->remote.target_address + offset;
	}
	rc = soft_gather(room->to, &pins);
	soft_unpin(&pins);
	return rc >= 0;
}

/* Puts a Send or RDMA Write into the ring, piece by piece. */
static enum tx_step put_pieces(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
			       struct shm_pass *pass)
{
	uint64_t *offset = &req->transport.word[1];
	bool is_send = core_op_is_send(req->op);

	for (;;) {
		uint64_t left = req->len - *offset;
		struct shm_entry entry = {
			.type = is_send ? SHM_ENTRY_SEND : SHM_ENTRY_WRITE,
			.length = left,
		};
		struct shm_room room;
		int rc;

		if (!pass->budget)
			return TX_MORE;
		rc = shm_room_reserve(&conn->request_out, left, &room);
		shm_conn_watch_bit(conn, SHM_WATCH_REQUEST_SPACE, rc == 0);
		if (rc <= 0)
			return rc < 0 ? TX_BROKEN : TX_WAIT;
		if (room.bytes && !fill(ep, req, &room, &entry))
			return fail(conn, ep, req, DAT_DTO_ERR_LOCAL_PROTECTION, pass);
		if (!(req->transport.word[0] & SHM_REQ_RING_BEGUN))
			entry.flags |= SHM_FLAG_FIRST;
		if (room.bytes == left)
			entry.flags |= SHM_FLAG_LAST;
		if (is_send && (req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG))
			entry.flags |= SHM_FLAG_SOLICITED;
		if (req->op == CORE_OP_WRITE_IMMEDIATE)
			entry.flags |= SHM_FLAG_NOTICE;
		if (req->op == CORE_OP_SEND_INVALIDATE) {
			entry.flags |= SHM_FLAG_INVALIDATE;
			entry.key = req->remote.rmr_context;
		}
		shm_room_commit(conn, &conn->request_out, &entry, &room);
		req->transport.word[0] |= SHM_REQ_RING_BEGUN;
		*offset += room.bytes;
		pass->budget -= room.bytes < pass->budget ? room.bytes : pass->budget;
		if (entry.flags & SHM_FLAG_LAST)
			break;
	}
	if (req->op != CORE_OP_WRITE_IMMEDIATE)
		handed_out(conn, req, SHM_REQ_WAIT_DONE);
	return TX_STARTED;
}

/* Behind the bytes of its Write, whichever way these went. The peer reports both together. */
static enum tx_step put_immediate(struct shm_conn *conn, struct core_req *req)
{
	struct shm_entry entry = {
		.type = SHM_ENTRY_IMMEDIATE,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.key = *core_req_immediate(req),
		.length = req->len,
	};
	uint64_t begun = req->transport.word[0] & SHM_REQ_RING_BEGUN;
	uint8_t *payload;
	enum tx_step step = reserve(conn, 0, &payload);

	if (step != TX_STARTED)
		return step;
	if (req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		entry.flags |= SHM_FLAG_SOLICITED;
	shm_conn_commit(conn, &conn->request_out, &entry);
	handed_out(conn, req, SHM_REQ_WAIT_DONE | (begun ? SHM_REQ_ORDERED : 0));
	return TX_STARTED;
}

/* Requests an RDMA Read through the ring. */
static enum tx_step put_read(struct shm_conn *conn, struct core_req *req)
{
	uint64_t offset = req->transport.word[1];
	struct shm_entry entry = {
		.type = SHM_ENTRY_READ,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.key = req->remote.rmr_context,
		.address = req->remote.target_address + offset,
		.length = req->len - offset,
	};
	enum tx_step step;
	uint8_t *payload;

	if (conn->tx.reads >= conn->tx.read_limit)
		return TX_WAIT;
	step = reserve(conn, 0, &payload);
	if (step != TX_STARTED)
		return step;
	shm_conn_commit(conn, &conn->request_out, &entry);
	handed_out(conn, req, SHM_REQ_WAIT_DATA);
	return TX_STARTED;
}

/* The peer's engine carries it out, because its own threads may use the word, too (D2-ATOM-18). */
static enum tx_step put_atomic(struct shm_conn *conn, struct core_req *req)
{
	const struct shm_atomic atomic = {
		.is_swap = req->op == CORE_OP_COMPARE_SWAP,
		.operand = *core_req_operand(req),
		.compare = req->compare,
	};
	struct shm_entry entry = {
		.type = SHM_ENTRY_ATOMIC,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.payload = sizeof(atomic),
		.key = req->remote.rmr_context,
		.address = req->remote.target_address,
		.length = sizeof(uint64_t),
	};
	enum tx_step step;
	uint8_t *payload;

	if (conn->tx.reads >= conn->tx.read_limit)
		return TX_WAIT;
	step = reserve(conn, sizeof(atomic), &payload);
	if (step != TX_STARTED)
		return step;
	memcpy(payload, &atomic, sizeof(atomic));
	shm_conn_commit(conn, &conn->request_out, &entry);
	handed_out(conn, req, SHM_REQ_WAIT_DATA | SHM_REQ_ORDERED);
	conn->tx.ring_writes++;
	return TX_STARTED;
}

static enum tx_step start_rdma_ring(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
				    struct shm_pass *pass)
{
	enum tx_step step;

	core_ep_set_path(ep, OPENDAT_PATH_RING);
	step = req->op == CORE_OP_RDMA_READ ? put_read(conn, req) : put_pieces(conn, ep, req, pass);
	if (step == TX_STARTED) {
		shm_count(conn, SHM_COUNT_RING);
		shm_map_count_use(conn, req->remote.rmr_context);
	}
	if (step == TX_STARTED && req->op == CORE_OP_WRITE_IMMEDIATE) {
		req->transport.word[0] |= SHM_REQ_WRITTEN;
		return put_immediate(conn, req);
	}
	return step;
}

/* The bytes of an RDMA Write are moved, or the Read is done. */
static enum tx_step end_direct(struct shm_conn *conn, struct core_ep *ep, struct core_req *req)
{
	if (req->op == CORE_OP_WRITE_IMMEDIATE) {
		req->transport.word[0] |= SHM_REQ_WRITTEN;
		return put_immediate(conn, req);
	}
	finish(ep, req, DAT_DTO_SUCCESS);
	return TX_STARTED;
}

static enum tx_step start_rdma(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
			       struct shm_pass *pass)
{
	struct shm_map *map;
	enum shm_path path;
	int rc;

	if (!req->len) /* EP-RDMAR-07, EP-RDMAW-08: nothing is accessed, nothing checked */
		return end_direct(conn, ep, req);
	if (req->transport.word[0] & SHM_REQ_WRITTEN)
		return put_immediate(conn, req);
	path = req->transport.word[0] & SHM_REQ_RING_BEGUN ? SHM_PATH_RING
							   : shm_path_choose(conn, req, &map);
	if (path == SHM_PATH_RING)
		return start_rdma_ring(conn, ep, req, pass);
	/* DTO-40, DTO-41: ring writes come first */
	if (conn->tx.ring_writes)
		return TX_WAIT;
	rc = shm_direct_run(conn, ep, req, map, &pass->budget);
	switch (rc) {
	case 1:
		shm_count(conn, map ? SHM_COUNT_MAP : SHM_COUNT_CMA);
		if (!map)
			shm_map_count_use(conn, req->remote.rmr_context);
		core_ep_set_path(ep, map ? OPENDAT_PATH_MAP : OPENDAT_PATH_CMA);
		return end_direct(conn, ep, req);
	case 0:
		return TX_MORE;
	case -EAGAIN: /* the peer has ended the connection; its packet is on the way */
		return TX_WAIT;
	case -ENOLINK:
		return start_rdma_ring(conn, ep, req, pass);
	case -EFAULT:
		return fail(conn, ep, req, DAT_DTO_ERR_LOCAL_PROTECTION, pass);
	default:
		return fail(conn, ep, req, DAT_DTO_ERR_REMOTE_ACCESS, pass);
	}
}

static enum tx_step start_request(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
				  struct shm_pass *pass)
{
	/* DTO-30; direct reads have finished when the next request starts */
	if ((req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) && conn->tx.reads)
		return TX_WAIT;
	switch (req->op) {
	case CORE_OP_SEND:
	case CORE_OP_SEND_INVALIDATE:
		return put_pieces(conn, ep, req, pass);
	case CORE_OP_RDMA_WRITE:
	case CORE_OP_RDMA_READ:
	case CORE_OP_WRITE_IMMEDIATE:
		return start_rdma(conn, ep, req, pass);
	case CORE_OP_FETCH_ADD:
	case CORE_OP_COMPARE_SWAP:
		return put_atomic(conn, req);
	case CORE_OP_BIND:
		if (req->sequence != ep->req.head)
			return TX_WAIT; /* for the end of an earlier request, which causes a pass */
		req->transport.word[0] = SHM_REQ_FINISHED;
		if (core_bind_run(ep, req, true) == CORE_BIND_DONE)
			return TX_STARTED;
		/* a peer is in the middle of a copy through the old key, which ends by itself */
		shm_pass_again(pass, core_now_ns() + BIND_RETRY_NS);
		return TX_WAIT;
	}
	return TX_BROKEN;
}

int shm_tx_run(struct shm_conn *conn, struct core_ep *ep, struct shm_pass *pass)
{
	int handled = 0;

	/* set again below: a request that waits for another reason needs no poll for space */
	shm_conn_watch_bit(conn, SHM_WATCH_REQUEST_SPACE, false);
	while (conn->end.ending != SHM_ENDING_FAILED && conn->tx.next < ep->req.tail) {
		struct core_req *req = core_req_at(&ep->req, conn->tx.next);
		uint64_t before = pass->budget;

		switch (start_request(conn, ep, req, pass)) {
		case TX_STARTED:
			conn->tx.next++;
			handled++;
			break;
		case TX_WAIT:
			return handled + (pass->budget != before);
		case TX_MORE:
			pass->has_more = true;
			return handled + 1;
		case TX_FAILED:
			return handled + 1;
		case TX_BROKEN:
			return -EPROTO;
		}
	}
	return handled;
}
