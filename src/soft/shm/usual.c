// SPDX-License-Identifier: BSD-2-Clause
/*
 * The ways of nearly every small transfer on a connection that is polled: a Send that goes out at
 * once as one entry of the ring, a message of one entry into a Receive whose memory is mapped here,
 * an RDMA Write into mapped memory. Each is what the general way (tx.c, rx.c, direct.c, progress.c)
 * would do, without what that has for the rest, and is only taken when nothing else is to be done
 * for the connection. Nothing has changed when it is not taken, so that the general way follows.
 */
#include "soft/shm/conn.h"

#include <string.h>

#include "core/ep_done.h"
#include "soft/alias.h"

#define USUAL_WRITE 256u /* bytes */
/* Passes in a row that look at messages only: acknowledgements by the word, and whatever is seldom,
 * wait no longer than that. */
#define USUAL_PASSES 64u

/* Most are one word. */
CORE_INLINE void copy_small(void *to, const void *from, size_t len)
{
	uint64_t word;

	if (len != sizeof(word)) {
		memcpy(to, from, len);
		return;
	}
	memcpy(&word, from, sizeof(word));
	memcpy(to, &word, sizeof(word));
}

/*
 * The memory of a segment that was good when it was posted, if it is in the region that the
 * endpoint knows: pinned, if it still is. A region does not change while its key lives.
 */
CORE_INLINE bool pin_known(struct core_lmr *lmr, const DAT_LMR_TRIPLET *segment)
{
	core_pin(lmr);
	/* sequentially consistent: behind the pin, as in mem.c. A free slot has key 0 */
	if (segment->lmr_context && atomic_load(&lmr->key) == segment->lmr_context)
		return true;
	core_unpin(lmr);
	return false;
}

/* --- requests --- */

/* May it start now, and has it one segment? */
CORE_INLINE bool may_start(const struct shm_conn *conn, const struct core_req *req)
{
	return req->segments == 1 && !conn->is_failing &&
	       !(req->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG);
}

CORE_INLINE bool send_usual(struct shm_conn *conn, struct core_ep *ep, struct core_req *req)
{
	struct shm_entry entry = {
		.type = SHM_ENTRY_SEND,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.payload = (uint16_t)req->len,
		.done = conn->done,
		.length = req->len,
	};
	uint8_t *payload;

	/* longer ones may be better fetched; who waits for a Receive looks at no entry, but at what
	 * is done (progress.c) */
	if (req->len >= SHM_MAP_SEND || conn->is_wake_owed ||
	    (conn->peer_waits & SHM_WAITS_RECEIVE))
		return false;
	payload = shm_producer_at_once(&conn->request_out, entry.payload);
	if (!payload || !pin_known(ep->known_source.lmr, req->iov))
		return false;
	copy_small(payload, (const void *)(uintptr_t)req->iov->virtual_address, entry.payload);
	core_unpin(ep->known_source.lmr);
	if (req->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		entry.flags |= SHM_FLAG_SOLICITED;
	shm_producer_put(&conn->request_out, &entry);
	conn->told = conn->done;
	atomic_store_explicit(&conn->owes_done, false, memory_order_relaxed);
	conn->tx_next++;
	conn->sent++;
	req->transport.word[0] = SHM_REQ_WAIT_DONE;
	shm_count(conn, SHM_COUNT_SEND_INLINE);
	shm_conn_wake(conn);
	return true;
}

/* The mapping of the memory behind the key, if it was used last. */
CORE_INLINE uint8_t *known_target(const struct shm_conn *conn, const DAT_RMR_TRIPLET *remote,
				  DAT_VLEN len)
{
	const struct shm_map *map = conn->remote.last_map;

	if (!map || map->key != remote->rmr_context || map->state != SHM_MAP_READY ||
	    !map->is_writable)
		return NULL;
	return shm_map_at(map, remote->target_address, len);
}

/* Stores the bytes if the key is good: 0 or -errno, as by small_write (direct.c). */
CORE_INLINE int store_usual(struct shm_conn *conn, const DAT_LMR_TRIPLET *segment,
			    const DAT_RMR_TRIPLET *remote, uint8_t *to)
{
	DAT_VLEN len = segment->segment_length;
	int rc;

	/* as shm_announce does it without a fence; that the gate is open is looked at below */
	atomic_store_explicit(&conn->mine->announce, remote->rmr_context, memory_order_relaxed);
	core_fence(true);
	rc = soft_key_check(soft_view_entries(conn->remote.view), remote->rmr_context,
			    SOFT_RIGHT_REMOTE_WRITE, conn->remote.pz, remote->target_address, len);
	if (!rc)
		rc = soft_copy_tail_last(&conn->theirs->revoked, to,
					 (const void *)(uintptr_t)segment->virtual_address, len);
	shm_announce_end(conn);
	return rc;
}

/* What it finds wrong is found once more by the general way, and told. */
CORE_INLINE bool write_usual(struct shm_conn *conn, struct core_ep *ep,
			     const DAT_LMR_TRIPLET *segment, const DAT_RMR_TRIPLET *remote)
{
	uint8_t *to;
	int rc;

	if (!conn->is_light || conn->ring_writes || segment->segment_length > USUAL_WRITE)
		return false;
	to = known_target(conn, remote, segment->segment_length);
	if (!to || !pin_known(ep->known_source.lmr, segment))
		return false;
	rc = store_usual(conn, segment, remote, to);
	core_unpin(ep->known_source.lmr);
	if (rc)
		return false;
	shm_count(conn, SHM_COUNT_MAP);
	return true;
}

bool shm_usual_write(struct shm_conn *conn, struct core_ep *ep, const DAT_LMR_TRIPLET *segment,
		     const DAT_RMR_TRIPLET *remote)
{
	return !conn->is_failing && write_usual(conn, ep, segment, remote);
}

bool shm_usual_post(struct shm_conn *conn, struct core_ep *ep, struct core_req *req)
{
	if (!may_start(conn, req))
		return false;
	if (req->op == CORE_OP_SEND)
		return send_usual(conn, ep, req);
	if (req->op != CORE_OP_RDMA_WRITE || !write_usual(conn, ep, req->iov, &req->remote))
		return false;
	conn->tx_next++;
	req->transport.word[0] = SHM_REQ_FINISHED;
	core_req_done(ep, req, DAT_DTO_SUCCESS, req->len);
	return true;
}

/* --- messages --- */

/* Is there nothing to be done for the connection but what its messages tell? */
CORE_INLINE bool is_calm(const struct shm_conn *conn, const struct core_ep *ep)
{
	return !conn->reads && !conn->is_draining && !conn->is_failing && !conn->is_placing &&
	       conn->tx_next == ep->req.tail && !conn->arrival.is_begun &&
	       !conn->arrival.is_blocked && !conn->write.is_begun && !conn->read.is_begun;
}

/* The peer has carried out that many: usually Sends, the oldest first. False: nonsense. */
CORE_INLINE bool told_usual(struct shm_conn *conn, struct core_ep *ep, uint32_t done)
{
	/* the two ways in which it is told may overtake each other */
	while ((int32_t)(done - conn->acked) > 0) {
		struct core_req *req = core_req_at(&ep->req, ep->req.head);

		if (done - conn->acked > conn->sent - conn->acked ||
		    req->transport.word[0] != SHM_REQ_WAIT_DONE || req->op != CORE_OP_SEND ||
		    !core_req_is_usual(ep, req))
			return shm_tx_told(conn, ep, done) >= 0;
		conn->acked++;
		req->transport.word[0] = SHM_REQ_FINISHED;
		core_req_done_usual(ep, req);
	}
	return true;
}

/* Puts a message into the Receive that is next. */
CORE_INLINE bool place_usual(struct core_ep *ep, const uint8_t *payload, uint32_t len)
{
	const struct core_wqe *wqe = &ep->recv.slots[ep->recv.head & ep->recv.mask];
	struct core_lmr *lmr = ep->known_target.lmr;
	uint8_t *to;

	if (wqe->segments != 1 || wqe->len < len || !pin_known(lmr, wqe->iov))
		return false;
	/* the endpoint's zone may be another than when it was posted */
	to = lmr->pz == ep->pz ? soft_alias(lmr, (const void *)(uintptr_t)wqe->iov->virtual_address)
			       : NULL;
	if (to)
		copy_small(to, payload, len);
	core_unpin(lmr);
	return to;
}

CORE_INLINE bool take_usual(struct shm_conn *conn, struct core_ep *ep)
{
	const uint8_t *payload;
	struct shm_entry entry;

	if (!shm_consumer_glance(&conn->request_in, &entry, &payload) ||
	    entry.type != SHM_ENTRY_SEND || entry.length != entry.payload ||
	    (entry.flags & ~SHM_FLAG_SOLICITED) != (SHM_FLAG_FIRST | SHM_FLAG_LAST) ||
	    entry.payload - 1u >= SHM_MAP_SEND - 1 || !core_recv_is_usual(ep) ||
	    !told_usual(conn, ep, entry.done) || !place_usual(ep, payload, entry.payload))
		return false;
	shm_consumer_take(&conn->request_in, entry.payload);
	conn->done++;
	core_recv_done_usual(ep, entry.payload, entry.flags & SHM_FLAG_SOLICITED);
	return true;
}

int shm_usual_pass(struct shm_conn *conn, struct core_ep *ep)
{
	uint32_t acked = conn->acked;
	int happened = 0, told;
	uint32_t done;

	if (conn->usual_passes == USUAL_PASSES || !is_calm(conn, ep))
		goto not_taken;
	/* acquire: as in shm_tx_acks */
	done = atomic_load_explicit(&conn->theirs->done, memory_order_acquire);
	SHM_SEEN();
	if (!told_usual(conn, ep, done))
		goto not_taken;
	while (happened < (int)SHM_BATCH && take_usual(conn, ep))
		happened++;
	told = (int)(conn->acked - acked);
	/* else the news may be something else */
	if (!happened && !told && conn->told == conn->done)
		goto not_taken;
	conn->usual_passes++;
	shm_conn_passed(conn, happened + told);
	return happened + told;
not_taken:
	conn->usual_passes = 0;
	return -1;
}
