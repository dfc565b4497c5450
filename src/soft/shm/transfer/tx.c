// SPDX-License-Identifier: BSD-2-Clause
/*
 * Our own requests: starting them (tx.h).
 */
#include "soft/shm/transfer/tx.h"

#include <errno.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/grow.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/piece.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/transfer/rx.h"

#define BIND_RETRY_NS 1000000u

enum tx_step {
	TX_STARTED, /* all of it is started, or it is finished: continue with the next one */
	TX_WAIT,    /* waits; a later event continues it */
	TX_MORE,    /* the budget is used up */
	TX_CLOSED,  /* it failed, and so did the connection */
	TX_BROKEN,  /* the peer broke the rules */
};

/* Reserves room for one entry; TX_STARTED on success. */
static enum tx_step reserve(struct shm_conn *conn, uint32_t payload, uint8_t **payload_out)
{
	int rc = shm_producer_reserve(&conn->request_out, payload, payload_out);

	conn->is_space_wanted = rc == 0;
	if (rc < 0)
		return TX_BROKEN;
	return rc ? TX_STARTED : TX_WAIT;
}

static void handed_out(struct shm_conn *conn, struct core_req *req, enum shm_req_state state)
{
	req->transport.word[0] = state;
	if (state == SHM_REQ_WAIT_DATA) {
		conn->reads++;
		return;
	}
	conn->sent++;
	if (req->op == CORE_OP_RDMA_WRITE)
		conn->ring_writes++;
}

/*
 * Fills the room with the next bytes of a Send or RDMA Write; false: the memory is not valid any
 * more.
 */
static bool fill(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		 const struct shm_room *room, struct shm_entry *entry)
{
	uint64_t offset = req->transport.word[1];
	struct soft_pins pins;
	int rc;

	if (soft_pin(ep, req->iov, req->segments, offset, room->bytes, CORE_MEM_SOURCE, &pins) < 0)
		return false;
	if (req->op == CORE_OP_RDMA_WRITE) {
		entry->key = req->remote.rmr_context;
		entry->address = req->remote.target_address + offset;
	} else if (req->segments == 1 && room->bytes >= SHM_MAP_SEND) {
		/* the key, so that the peer may ask for a mapping */
		entry->key = pins.lmr[0]->rkey;
	}
	rc = soft_gather(room->to, &pins, &conn->stream);
	soft_unpin(&pins);
	return rc >= 0;
}

/* Puts a Send or RDMA Write into the ring, piece by piece. */
static enum tx_step put_pieces(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
			       uint64_t *budget)
{
	uint64_t *offset = &req->transport.word[1];
	bool is_send = req->op == CORE_OP_SEND;

	for (;;) {
		uint64_t left = req->len - *offset;
		struct shm_entry entry = {
			.type = is_send ? SHM_ENTRY_SEND : SHM_ENTRY_WRITE,
			.length = left,
		};
		struct shm_room room;
		int rc;

		if (!*budget)
			return TX_MORE;
		rc = shm_room_reserve(conn, &conn->request_out, &conn->bulk.requests, left,
				      SHM_REQUEST_PAYLOAD, &room);
		conn->is_space_wanted = rc == 0;
		if (rc <= 0)
			return rc < 0 ? TX_BROKEN : TX_WAIT;
		if (room.bytes && !fill(conn, ep, req, &room, &entry)) {
			shm_room_cancel(conn, &room);
			shm_tx_fail(conn, ep, req, DAT_DTO_ERR_LOCAL_PROTECTION);
			return TX_CLOSED;
		}
		if (!(req->transport.word[0] & SHM_REQ_RING_BEGUN))
			entry.flags |= SHM_FLAG_FIRST;
		if (room.bytes == left)
			entry.flags |= SHM_FLAG_LAST;
		if (is_send && (req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG))
			entry.flags |= SHM_FLAG_SOLICITED;
		shm_room_commit(conn, &conn->request_out, &conn->bulk.requests, &entry, &room);
		req->transport.word[0] |= SHM_REQ_RING_BEGUN;
		*offset += room.bytes;
		*budget -= room.bytes < *budget ? room.bytes : *budget;
		if (entry.flags & SHM_FLAG_LAST)
			break;
	}
	handed_out(conn, req, SHM_REQ_WAIT_DONE);
	return TX_STARTED;
}

/* Puts a Send that the receiver fetches: the entry lists where its bytes are. */
static enum tx_step put_sources(struct shm_conn *conn, struct core_ep *ep, struct core_req *req)
{
	struct shm_source sources[SOFT_IOV_MAX];
	struct shm_entry entry = {
		.type = SHM_ENTRY_PULL,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.length = req->len,
	};
	enum tx_step step;
	uint8_t *payload;
	uint32_t i;

	for (i = 0; i < req->segments; i++) {
		const DAT_LMR_TRIPLET *segment = &req->iov[i];
		struct core_lmr *lmr = core_mem_get(ep->ia->mem, segment, ep->pz, CORE_MEM_SOURCE);

		if (!lmr) {
			shm_tx_fail(conn, ep, req, DAT_DTO_ERR_LOCAL_PROTECTION);
			return TX_CLOSED;
		}
		sources[i] = (struct shm_source){
			.key = lmr->rkey,
			.address = segment->virtual_address,
			.length = segment->segment_length,
		};
		core_mem_put(lmr);
	}
	entry.payload = req->segments * (uint32_t)sizeof(*sources);
	step = reserve(conn, entry.payload, &payload);
	if (step != TX_STARTED)
		return step;
	memcpy(payload, sources, entry.payload);
	if (req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		entry.flags |= SHM_FLAG_SOLICITED;
	shm_conn_commit(conn, &conn->request_out, &entry);
	handed_out(conn, req, SHM_REQ_WAIT_DONE);
	req->transport.word[0] |= SHM_REQ_PULL;
	shm_count(conn, SHM_COUNT_SEND_PULL);
	return TX_STARTED;
}

/* Fetching saves one copy; from mapped memory it costs no system call. */
bool shm_is_worth_fetching(struct shm_conn *conn, struct core_ep *ep, uint32_t segments,
			   DAT_LMR_CONTEXT key, DAT_VADDR address, DAT_VLEN len)
{
	DAT_LMR_TRIPLET segment = {
		.lmr_context = key, .virtual_address = address, .segment_length = len};
	struct core_lmr *lmr;
	bool is_mapped;

	if (!conn->remote.is_pulling || segments > SOFT_IOV_MAX)
		return false;
	if (len > SHM_REQUEST_PAYLOAD)
		return true;
	if (len < SHM_MAP_SEND || segments != 1 || !conn->remote.maps ||
	    !atomic_load_explicit(&conn->engine->given_count, memory_order_relaxed))
		return false;
	lmr = core_mem_get(ep->ia->mem, &segment, ep->pz, CORE_MEM_SOURCE);
	is_mapped = lmr && shm_map_is_given(conn, lmr->rkey);
	if (lmr)
		core_mem_put(lmr);
	return is_mapped;
}

static enum tx_step start_send(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
			       uint64_t *budget)
{
	enum tx_step step;

	if (!(req->transport.word[0] & SHM_REQ_RING_BEGUN) &&
	    shm_is_worth_fetching(conn, ep, req->segments, req->iov->lmr_context,
				  req->iov->virtual_address, req->len))
		return put_sources(conn, ep, req);
	step = put_pieces(conn, ep, req, budget);
	if (step == TX_STARTED)
		shm_count(conn, req->len <= SHM_REQUEST_PAYLOAD ? SHM_COUNT_SEND_INLINE
								: SHM_COUNT_SEND_PIECES);
	return step;
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

	if (conn->reads >= conn->read_limit)
		return TX_WAIT;
	step = reserve(conn, 0, &payload);
	if (step != TX_STARTED)
		return step;
	shm_conn_commit(conn, &conn->request_out, &entry);
	handed_out(conn, req, SHM_REQ_WAIT_DATA);
	shm_count(conn, SHM_COUNT_RING);
	return TX_STARTED;
}

static enum tx_step start_rdma_ring(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
				    uint64_t *budget)
{
	enum tx_step step;

	core_ep_set_path(ep, OPENDAT_PATH_RING);
	if (req->op == CORE_OP_RDMA_READ)
		return put_read(conn, req);
	step = put_pieces(conn, ep, req, budget);
	if (step == TX_STARTED)
		shm_count(conn, SHM_COUNT_RING);
	return step;
}

static enum tx_step start_rdma(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
			       uint64_t *budget)
{
	struct shm_map *map;
	enum shm_path path;
	int rc;

	if (!req->len) { /* EP-RDMAR-07, EP-RDMAW-08: nothing is accessed, nothing checked */
		shm_tx_finish(ep, req, DAT_DTO_SUCCESS);
		return TX_STARTED;
	}
	path = shm_path_choose(conn, req, &map);
	if (path == SHM_PATH_RING || (req->transport.word[0] & SHM_REQ_RING_BEGUN))
		return start_rdma_ring(conn, ep, req, budget);
	/* DTO-40, DTO-41: ring writes come first */
	if (conn->ring_writes)
		return TX_WAIT;
	rc = shm_direct_run(conn, ep, req, map, budget);
	switch (rc) {
	case 1:
		shm_count(conn, map ? SHM_COUNT_MAP : SHM_COUNT_CMA);
		core_ep_set_path(ep, map ? OPENDAT_PATH_MAP : OPENDAT_PATH_CMA);
		shm_tx_finish(ep, req, DAT_DTO_SUCCESS);
		return TX_STARTED;
	case 0:
		return TX_MORE;
	case -EAGAIN: /* the peer has ended the connection; its packet is on the way */
		return TX_WAIT;
	case -ENOLINK:
		return start_rdma_ring(conn, ep, req, budget);
	case -EFAULT:
		shm_tx_fail(conn, ep, req, DAT_DTO_ERR_LOCAL_PROTECTION);
		return TX_CLOSED;
	default:
		shm_tx_fail(conn, ep, req, DAT_DTO_ERR_REMOTE_ACCESS);
		return TX_CLOSED;
	}
}

static enum tx_step start_request(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
				  uint64_t *budget)
{
	/* DTO-30; direct reads have finished when the next request starts */
	if ((req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) && conn->reads)
		return TX_WAIT;
	switch (req->op) {
	case CORE_OP_SEND:
		return start_send(conn, ep, req, budget);
	case CORE_OP_RDMA_WRITE:
	case CORE_OP_RDMA_READ:
		return start_rdma(conn, ep, req, budget);
	case CORE_OP_BIND:
		if (req->sequence != ep->req.head)
			return TX_WAIT; /* for the end of an earlier request, which causes a pass */
		req->transport.word[0] = SHM_REQ_FINISHED;
		if (core_bind_run(ep, req, true) == CORE_BIND_DONE)
			return TX_STARTED;
		/* a peer is in the middle of a copy through the old key, which ends by itself */
		shm_conn_lower_deadline(conn, core_now_ns() + BIND_RETRY_NS);
		return TX_WAIT;
	}
	return TX_BROKEN;
}

int shm_tx_run(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	int handled = 0;

	if (conn->is_space_wanted)
		shm_grow_out(conn);
	/* set again below: a request that waits for another reason needs no poll for space */
	conn->is_space_wanted = false;
	while (!conn->is_failing && conn->tx_next < ep->req.tail) {
		struct core_req *req = core_req_at(&ep->req, conn->tx_next);
		uint64_t before = *budget;

		switch (start_request(conn, ep, req, budget)) {
		case TX_STARTED:
			conn->tx_next++;
			handled++;
			break;
		case TX_WAIT:
			return handled + (*budget != before);
		case TX_MORE:
			atomic_store_explicit(&conn->has_more, true, memory_order_relaxed);
			return handled + 1;
		case TX_CLOSED:
			return handled + 1;
		case TX_BROKEN:
			return -EPROTO;
		}
	}
	return handled;
}
