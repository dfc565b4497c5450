// SPDX-License-Identifier: BSD-2-Clause
/*
 * Our own requests: acknowledgements, the data of RDMA Reads, failures, and Sends that the peer
 * cannot fetch (tx.h).
 */
#include "core/base/clock.h"
#include "soft/shm/transfer/tx.h"

#include <errno.h>

#include "core/transport.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/piece.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/transfer/rx.h"

#define FAILING_NS 500000000u /* time for the requests before a failed one */

static enum shm_req_state state_of(const struct core_req *req)
{
	return (enum shm_req_state)(req->transport.word[0] & SHM_REQ_STATE_MASK);
}

void shm_tx_finish(struct core_ep *ep, struct core_req *req, DAT_DTO_COMPLETION_STATUS status)
{
	req->transport.word[0] = SHM_REQ_FINISHED;
	core_req_done(ep, req, status, req->len);
}

void shm_tx_fail(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		 DAT_DTO_COMPLETION_STATUS status)
{
	shm_tx_finish(ep, req, status);
	if (shm_conn_acked(conn) == conn->sent && !conn->reads) {
		shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
		return;
	}
	conn->is_failing = true;
	conn->failing_ns = core_now_ns() + FAILING_NS;
	shm_conn_lower_deadline(conn, conn->failing_ns);
}

/*
 * The same for a request that the peer has refused or answered wrongly: no earlier request is left.
 */
static void fail_now(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		     DAT_DTO_COMPLETION_STATUS status)
{
	shm_tx_finish(ep, req, status);
	shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
}

/* Finds the oldest request in that state, from *cursor on; NULL if there is none. */
static struct core_req *oldest(struct shm_conn *conn, struct core_ep *ep, uint64_t *cursor,
			       enum shm_req_state state)
{
	/* slots before the head may have been reused */
	if (*cursor < ep->req.head)
		*cursor = ep->req.head;
	for (; *cursor < conn->tx_next; ++*cursor) {
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
	if (count > conn->sent - shm_conn_acked(conn))
		return -EPROTO;
	for (i = 0; i < count; i++) {
		struct core_req *req = oldest(conn, ep, &conn->tx_ack, SHM_REQ_WAIT_DONE);

		if (!req)
			return -EPROTO;
		if (req->op == CORE_OP_RDMA_WRITE)
			conn->ring_writes--;
		shm_conn_set_acked(conn, shm_conn_acked(conn) + 1);
		shm_tx_finish(ep, req, DAT_DTO_SUCCESS);
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

/* Places one piece of an RDMA Read, or of a message that we cannot fetch. 1, or -EPROTO; may close
 * the connection. */
static int take_data(struct shm_conn *conn, struct core_ep *ep, const struct shm_entry *entry,
		     const struct shm_bytes *bytes)
{
	struct core_req *req = oldest(conn, ep, &conn->tx_data, SHM_REQ_WAIT_DATA);
	struct soft_pins pins;
	uint64_t *offset;
	int rc;

	if (entry->type == SHM_ENTRY_BYTES)
		return shm_rx_supplied(conn, ep, entry, bytes);
	if (!req || entry->type != SHM_ENTRY_DATA)
		return -EPROTO;
	offset = &req->transport.word[1];
	if (!bytes->count || bytes->count > req->len - *offset ||
	    (*offset + bytes->count == req->len) != !!(entry->flags & SHM_FLAG_LAST)) {
		fail_now(conn, ep, req, DAT_DTO_ERR_BAD_RESPONSE);
		return 1;
	}
	rc = soft_pin(ep, req->iov, req->segments, *offset, bytes->count, CORE_MEM_TARGET, &pins);
	if (!rc) {
		rc = soft_scatter(&pins, bytes->at);
		soft_unpin(&pins);
	}
	if (rc < 0) {
		fail_now(conn, ep, req, DAT_DTO_ERR_LOCAL_PROTECTION);
		return 1;
	}
	*offset += bytes->count;
	if (entry->flags & SHM_FLAG_LAST) {
		conn->reads--;
		shm_tx_finish(ep, req, DAT_DTO_SUCCESS);
	}
	return 1;
}

int shm_tx_responses(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	const uint8_t *payload;
	struct shm_bytes bytes;
	struct shm_entry entry;
	int handled = 0;

	for (;;) {
		int rc = shm_consumer_peek(&conn->response_in, &entry, &payload);

		if (rc <= 0)
			return rc < 0 ? rc : handled;
		rc = shm_bytes_find(conn, &entry, payload, &bytes);
		if (rc < 0)
			return rc;
		if (*budget < bytes.count || handled == (int)SHM_BATCH) {
			atomic_store_explicit(&conn->has_more, true, memory_order_relaxed);
			return handled;
		}
		*budget -= bytes.count;
		rc = shm_tx_acknowledge(conn, ep, entry.done);
		if (rc < 0)
			return rc;
		rc = take_data(conn, ep, &entry, &bytes);
		if (rc < 0)
			return rc;
		handled++;
		if (shm_conn_state(conn) != SHM_ESTABLISHED)
			return handled;
		shm_consumer_pop(&conn->response_in);
		shm_bytes_release(conn, &conn->response_in, &entry);
	}
}

/* Fills the room with the next bytes of a Send; false: the memory is not valid any more. */
static bool supply(struct shm_conn *conn, struct core_ep *ep, const struct core_req *req,
		   const struct shm_room *room)
{
	struct soft_pins pins;
	int rc;

	if (soft_pin(ep, req->iov, req->segments, req->transport.word[1], room->bytes,
		     CORE_MEM_SOURCE, &pins) < 0)
		return false;
	rc = soft_gather(room->to, &pins, &conn->stream);
	soft_unpin(&pins);
	return rc >= 0;
}

int shm_tx_supply(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	struct core_req *req;
	uint64_t *offset;
	int handled = 0;

	conn->is_supply_waiting = false;
	if (!(conn->peer_waits & SHM_WAITS_BYTES))
		return 0;
	conn->remote.is_pulling = false;
	/* the word may be older than what the peer has reported since */
	if (SHM_WAITS_NUMBER(conn->peer_waits) !=
	    SHM_WAITS_NUMBER(SHM_WAITS_FOR(shm_conn_acked(conn))))
		return 0;
	req = oldest(conn, ep, &conn->tx_ack, SHM_REQ_WAIT_DONE);
	if (!req || !(req->transport.word[0] & SHM_REQ_PULL))
		return -EPROTO;
	for (offset = &req->transport.word[1]; *offset < req->len; handled++) {
		uint64_t left = req->len - *offset;
		struct shm_entry entry = {.type = SHM_ENTRY_BYTES};
		struct shm_room room;
		int rc;

		if (!*budget) {
			atomic_store_explicit(&conn->has_more, true, memory_order_relaxed);
			break;
		}
		rc = shm_room_reserve(conn, &conn->response_out, &conn->bulk.responses, left,
				      SHM_RESPONSE_PAYLOAD, &room);
		conn->is_supply_waiting = rc == 0;
		if (rc <= 0)
			return rc < 0 ? rc : handled;
		if (!supply(conn, ep, req, &room)) {
			shm_room_cancel(conn, &room);
			fail_now(conn, ep, req, DAT_DTO_ERR_LOCAL_PROTECTION);
			break;
		}
		entry.flags = room.bytes == left ? SHM_FLAG_LAST : 0;
		shm_room_commit(conn, &conn->response_out, &conn->bulk.responses, &entry, &room);
		*offset += room.bytes;
		*budget -= room.bytes < *budget ? room.bytes : *budget;
	}
	return handled;
}

int shm_tx_failed(struct shm_conn *conn, struct core_ep *ep, uint32_t failed)
{
	uint32_t status = SHM_FAILED_STATUS(failed);
	struct core_req *req;

	if (SHM_FAILED_KIND(failed) == SHM_FAILED_MESSAGE)
		req = oldest(conn, ep, &conn->tx_ack, SHM_REQ_WAIT_DONE);
	else if (SHM_FAILED_KIND(failed) == SHM_FAILED_READ)
		req = oldest(conn, ep, &conn->tx_data, SHM_REQ_WAIT_DATA);
	else
		return -EPROTO;
	/* a message in pieces can fail before its last piece is handed out */
	if (!req && conn->tx_next < ep->req.tail) {
		req = core_req_at(&ep->req, conn->tx_next);
		if (!(req->transport.word[0] & SHM_REQ_RING_BEGUN))
			req = NULL;
	}
	if (!req)
		return -EPROTO;
	switch (status) {
	case DAT_DTO_ERR_LOCAL_PROTECTION:
	case DAT_DTO_ERR_REMOTE_ACCESS:
	case DAT_DTO_ERR_REMOTE_RESPONDER:
	case DAT_DTO_ERR_RECEIVER_NOT_READY:
		break;
	default:
		status = DAT_DTO_ERR_BAD_RESPONSE;
	}
	fail_now(conn, ep, req, (DAT_DTO_COMPLETION_STATUS)status);
	return 1;
}
