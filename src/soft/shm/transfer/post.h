// SPDX-License-Identifier: BSD-2-Clause
/*
 * Posts on the fast path of a connection: a Send, an RDMA Write or an RDMA Read that is one entry
 * of the ring, and a small RDMA Write into mapped memory. They are inline in the posting calls of
 * the core (core/ep/data_path.h), so that what was posted stays in registers. A request that is
 * declined is unchanged, and the slow path (tx.c) continues from there.
 */
#ifndef SHM_POST_H
#define SHM_POST_H

#include "core/base/fence.h"
#include "core/transport.h"
#include "core/ep/ep_fast.h"
#include "core/mem/pz.h"
#include "soft/copy.h"
#include "soft/key.h"
#include "soft/pins.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/patience.h"
#include "soft/shm/transfer/place.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/transfer/tx.h"

#define SHM_FAST_WRITE 256u /* longest RDMA Write into mapped memory */

/* The address of the payload of the next entry. NULL: the ring is full. */
CORE_INLINE uint8_t *shm_find_room(struct shm_producer *ring, uint32_t payload)
{
	uint8_t *at = shm_producer_at_once(ring, payload);

	return at ? at : shm_producer_make_room(ring, payload);
}

/* Makes that entry visible to the peer. */
CORE_INLINE void shm_put_entry(struct shm_conn *conn, struct shm_producer *ring,
			       struct shm_entry *entry)
{
	shm_conn_report_done(conn, entry);
	shm_producer_put(ring, entry);
	shm_conn_wake(conn);
}

/* Puts a Send, or an RDMA Write through the ring, into one entry. */
CORE_INLINE bool shm_put_bytes(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
			       const struct core_fast_post *post, struct shm_entry *entry)
{
	uint8_t *payload = shm_find_room(&conn->request_out, entry->payload);

	if (!payload || !soft_fetch(ep, post->segment.lmr_context, post->segment.virtual_address,
				    payload, entry->payload))
		return false;
	if (entry->type == SHM_ENTRY_SEND && entry->payload >= SHM_MAP_SEND)
		entry->key = ep->cached_source.lmr->rkey; /* the peer may ask for a mapping */
	conn->sent++;
	req->transport.word[0] = SHM_REQ_WAIT_DONE;
	shm_put_entry(conn, &conn->request_out, entry);
	shm_engine_activate(conn->engine, conn);
	return true;
}

CORE_INLINE bool shm_send_fast(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
			       const struct core_fast_post *post)
{
	struct shm_entry entry = {
		.type = SHM_ENTRY_SEND,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.payload = (uint16_t)post->segment.segment_length,
		.length = post->segment.segment_length,
	};

	if (conn->may_place)
		return false;
	if (post->segment.segment_length >= SHM_MAP_SEND &&
	    (post->segment.segment_length > SHM_REQUEST_PAYLOAD ||
	     shm_is_worth_fetching(conn, ep, req)))
		return false;
	if (req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		entry.flags |= SHM_FLAG_SOLICITED;
	if (!shm_put_bytes(conn, ep, req, post, &entry))
		return false;
	shm_count(conn, SHM_COUNT_SEND_INLINE);
	return true;
}

/* An RDMA Write, if all RDMA of the connection goes through the ring. */
CORE_INLINE bool shm_put_write(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
			       const struct core_fast_post *post)
{
	struct shm_entry entry = {
		.type = SHM_ENTRY_WRITE,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.payload = (uint16_t)post->segment.segment_length,
		.key = post->remote.rmr_context,
		.address = post->remote.target_address,
		.length = post->segment.segment_length,
	};

	if (post->segment.segment_length > SHM_REQUEST_PAYLOAD ||
	    !shm_put_bytes(conn, ep, req, post, &entry))
		return false;
	conn->ring_writes++;
	core_ep_set_path(ep, OPENDAT_PATH_RING);
	shm_count(conn, SHM_COUNT_RING);
	return true;
}

/* Stores the bytes if the key is valid: 0, or -errno as from shm_direct_run. */
CORE_INLINE int shm_write_mapped(struct shm_conn *conn, const struct core_fast_post *post,
				 uint8_t *to)
{
	int rc;

	/*
	 * as shm_announce without a fence; the copy itself checks the gate (models/keys.pml,
	 * models/close.pml)
	 */
	atomic_store_explicit(&conn->mine->announce, post->remote.rmr_context,
			      memory_order_relaxed);
	core_fence_light(true);
	rc = soft_key_check(soft_view_entries(conn->remote.view), post->remote.rmr_context,
			    SOFT_RIGHT_REMOTE_WRITE, conn->remote.pz, post->remote.target_address,
			    post->segment.segment_length);
	if (!rc)
		rc = soft_copy_gated(&conn->theirs->revoked, to,
				     (const void *)(uintptr_t)post->segment.virtual_address,
				     post->segment.segment_length);
	shm_announce_end(conn);
	return rc;
}

/* Errors are left to the slow path, which finds and reports them. */
CORE_INLINE bool shm_write_fast(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
				const struct core_fast_post *post)
{
	const struct shm_map *map = conn->remote.last_map;
	uint8_t *to;
	int rc;

	if (!map)
		return shm_path_is_ring(conn) && shm_put_write(conn, ep, req, post);
	if (!conn->is_unfenced || conn->ring_writes ||
	    post->segment.segment_length > SHM_FAST_WRITE || map->key != post->remote.rmr_context ||
	    !map->is_writable)
		return false;
	to = shm_map_at(map, post->remote.target_address, post->segment.segment_length);
	if (!to || !soft_pin_posted(ep, post->segment.lmr_context))
		return false;
	rc = shm_write_mapped(conn, post, to);
	core_unpin_one();
	if (rc)
		return false;
	shm_count(conn, SHM_COUNT_MAP);
	req->transport.word[0] = SHM_REQ_FINISHED;
	core_req_done_posted(ep, req);
	return true;
}

/* Requests an RDMA Read, if all RDMA of the connection goes through the ring. */
CORE_INLINE bool shm_read_fast(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
			       const struct core_fast_post *post)
{
	struct shm_entry entry = {
		.type = SHM_ENTRY_READ,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.key = post->remote.rmr_context,
		.address = post->remote.target_address,
		.length = post->segment.segment_length,
	};

	if (!shm_path_is_ring(conn) || conn->reads >= conn->read_limit ||
	    !shm_find_room(&conn->request_out, 0))
		return false;
	conn->reads++;
	shm_conn_watch_bit(conn, SHM_WATCH_RESPONSES, true);
	req->transport.word[0] = SHM_REQ_WAIT_DATA;
	req->transport.word[1] = 0;
	shm_put_entry(conn, &conn->request_out, &entry);
	shm_engine_activate(conn->engine, conn);
	core_ep_set_path(ep, OPENDAT_PATH_RING);
	shm_count(conn, SHM_COUNT_RING);
	return true;
}

/* DTO-30: a fenced request waits for RDMA Reads through the ring. */
CORE_INLINE bool shm_may_start(const struct shm_conn *conn, const struct core_req *req)
{
	return !(req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) || !conn->reads;
}

/* A request was started. */
CORE_INLINE bool shm_count_started(struct shm_conn *conn, struct core_ep *ep, bool is_send)
{
	conn->tx_next++;
	if (__builtin_expect(conn->is_patient, false)) {
		shm_patience_check_patient(conn, ep);
		if (is_send)
			shm_place_update(conn, ep);
	}
	return true;
}

/* Posts a request of that kind, which is a constant. False: call shm_ep_post_request. */
CORE_INLINE bool shm_post_fast(struct core_ep *ep, struct core_req *req,
			       const struct core_fast_post *post)
{
	struct shm_conn *conn = shm_ep_conn(ep);

	if (!shm_may_start(conn, req))
		return false;
	if (post->op == CORE_OP_SEND)
		return shm_send_fast(conn, ep, req, post) && shm_count_started(conn, ep, true);
	if (post->op == CORE_OP_RDMA_WRITE)
		return shm_write_fast(conn, ep, req, post) && shm_count_started(conn, ep, false);
	return shm_read_fast(conn, ep, req, post) && shm_count_started(conn, ep, false);
}

/* Is nothing to be done for a Receive that was posted? False: call shm_ep_post_recv. */
CORE_INLINE bool shm_recv_fast(const struct core_ep *ep)
{
	return !shm_ep_conn(ep)->is_patient;
}

#endif
