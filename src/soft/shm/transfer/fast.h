// SPDX-License-Identifier: BSD-2-Clause
/*
 * Posts on the fast path of a connection: a Send or an RDMA Write that is one entry of the ring, and
 * a small RDMA Write into mapped memory. They are inline in the posting calls of the core
 * (core/ep/data_path.h). Where they decline, nothing was done, and the request takes the slow path
 * (tx.c).
 */
#ifndef SHM_FAST_H
#define SHM_FAST_H

#include "core/base/fence.h"
#include "core/transport.h"
#include "core/ep/ep_fast.h"
#include "core/mem/pz.h"
#include "soft/copy.h"
#include "soft/key.h"
#include "soft/pins.h"
#include "soft/shm/instance.h"
#include "soft/shm/state.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/pass.h"
#include "soft/shm/transfer/publish.h"
#include "soft/shm/transfer/tx.h"

#define SHM_FAST_WRITE 256u /* longest RDMA Write into mapped memory */

/*
 * Writes the entry for which shm_producer_at_once has found room, and makes it visible to the peer;
 * reports in it what is done. shm_conn_wake has to follow.
 */
CORE_INLINE void shm_put_entry(struct shm_conn *conn, struct shm_producer *ring, uint8_t *payload,
			       struct shm_entry *entry)
{
	entry->done = conn->report.done;
	shm_producer_put(ring, payload, entry);
	shm_conn_note_reported(conn);
}

/* Puts a Send, or an RDMA Write through the ring, into one entry. */
CORE_INLINE bool shm_put_bytes(struct shm_conn *conn, struct core_ep *ep,
			       const struct core_fast_post *post, struct shm_entry *entry)
{
	uint8_t *payload = shm_producer_at_once(&conn->request_out, entry->payload);

	if (!payload || !soft_fetch(ep, post->segment.lmr_context, post->segment.virtual_address,
				    payload, post->segment.segment_length))
		return false;
	shm_put_entry(conn, &conn->request_out, payload, entry);
	conn->tx.sent++;
	post->req->transport.word[0] = SHM_REQ_WAIT_DONE;
	core_req_prefetch_next(post->req);
	shm_conn_wake(conn);
	shm_engine_activate(conn->engine, conn);
	return true;
}

/* The flag of an entry for the flags of a request, without a branch. */
CORE_INLINE uint8_t shm_solicited(DAT_COMPLETION_FLAGS flags)
{
	static_assert(SHM_FLAG_SOLICITED == DAT_COMPLETION_SOLICITED_WAIT_FLAG << 1, "one shift");
	return (uint8_t)((flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) << 1);
}

CORE_INLINE bool shm_send_fast(struct shm_conn *conn, struct core_ep *ep,
			       const struct core_fast_post *post)
{
	struct shm_entry entry = {
		.type = SHM_ENTRY_SEND,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST | shm_solicited(post->flags),
		.payload = (uint16_t)post->segment.segment_length,
		.length = post->segment.segment_length,
	};

	if (post->segment.segment_length > SHM_REQUEST_PAYLOAD)
		return false;
	return shm_put_bytes(conn, ep, post, &entry);
}

/* An RDMA Write through the ring. */
CORE_INLINE bool shm_put_write(struct shm_conn *conn, struct core_ep *ep,
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
	    !shm_put_bytes(conn, ep, post, &entry))
		return false;
	conn->tx.ring_writes++;
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

/*
 * May it go through the ring? Memory that may still be mapped takes the slow path, which counts its
 * uses.
 */
CORE_INLINE bool shm_takes_ring(const struct shm_conn *conn, const struct core_fast_post *post)
{
	const struct shm_map *map = conn->remote.last_map;

	return shm_path_is_ring(conn) ||
	       (map && map->key == post->remote.rmr_context && map->state == SHM_MAP_REFUSED &&
		shm_path_is_polled(conn, post->segment.segment_length));
}

/* Errors are left to the slow path, which finds and reports them. */
CORE_INLINE bool shm_write_fast(struct shm_conn *conn, struct core_ep *ep,
				const struct core_fast_post *post)
{
	const struct shm_map *map = conn->remote.last_map;
	struct core_req *req = post->req;
	uint8_t *to;
	int rc;

	if (!map || map->state != SHM_MAP_READY)
		return shm_takes_ring(conn, post) && shm_put_write(conn, ep, post);
	if (!shm_fence_is_unfenced(conn) || conn->tx.ring_writes ||
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
	core_req_prefetch_next(req);
	if (req->sequence == ep->req.head)
		(void)core_req_done_fast(ep->cell, ep, req, NULL);
	else
		core_req_done(ep, req, DAT_DTO_SUCCESS, req->len);
	return true;
}

/* DTO-30: a fenced request waits for RDMA Reads through the ring. */
CORE_INLINE bool shm_may_start(const struct shm_conn *conn, const struct core_fast_post *post)
{
	return !(post->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) || !conn->tx.reads;
}

/* Posts a request; post->op is a constant. False: nothing was done, call shm_ep_post_request. */
CORE_INLINE bool shm_post_fast(struct core_ep *ep, const struct core_fast_post *post)
{
	struct shm_conn *conn = shm_ep_conn(ep);
	bool is_started;

	if (post->op == CORE_OP_RDMA_READ || !shm_may_start(conn, post))
		return false;
	is_started = post->op == CORE_OP_SEND ? shm_send_fast(conn, ep, post)
					      : shm_write_fast(conn, ep, post);
	conn->tx.next += is_started;
	return is_started;
}

/* --- polls (fast.c); the endpoint is entered without slow_reasons --- */

enum shm_poll {
	SHM_POLL_NOTHING,  /* nothing has arrived */
	SHM_POLL_DONE,	   /* what has arrived is taken */
	SHM_POLL_DECLINED, /* a pass is needed */
};
/*
 * Takes one message, or what else has arrived: one entry, or in a stream up to SHM_BATCH.
 * What it declines is unchanged, and the slow path continues from there.
 */
enum shm_poll shm_poll_fast(struct shm_conn *conn, struct core_ep *ep,
			    struct core_dequeue *dequeue);

#endif
