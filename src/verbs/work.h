// SPDX-License-Identifier: BSD-2-Clause
/*
 * Work requests: their IDs, and their positions in the send queue of a connection.
 *
 * The upper half of an ID is the kind of work (enum vrb_work) and the key of the connection or SRQ
 * (table.h). The lower half is a value that depends on the kind.
 *
 * A position is the number of work requests that were posted before. Most requests of an endpoint
 * take one work request each. So positions are calculated: a request's sequence plus `extra`, the
 * number of work requests posted beyond one for each request. Markers, verifying RDMA Reads, and
 * the work requests that bind and unbind windows increment `extra` when they are posted. A bind
 * needs no work request when it has its turn, because its window was bound before or it needed
 * none, so its turn decrements `extra`. Each request stores the value of `extra` at the time it was
 * posted or had its turn. When the head of the endpoint's queue passes the request, that value
 * becomes `extra_done`.
 */
#ifndef VERBS_WORK_H
#define VERBS_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "core/ep/ep.h"
#include "verbs/conn.h"
#include "verbs/table.h"

enum vrb_work {
	VRB_WORK_REQUEST, /* of the endpoint; the value is the low half of its sequence */
	VRB_WORK_PART,	  /* one of two for a request; its success completes nothing */
	VRB_WORK_MARKER,  /* of the provider; the value is VRB_MARKER_* */
	/* a Receive; the value is the low half of its sequence, or the index of an SRQ buffer */
	VRB_WORK_RECV,
};

/* Immediate data of a Send that asks for a notification. */
#define VRB_SOLICITED_IMM 0x6f445357u

#define VRB_MARKER_PLAIN 0u
#define VRB_MARKER_RETIRED 1u /* the work request that unbinds a window */

CORE_INLINE uint32_t vrb_work_name(enum vrb_work work, uint32_t key)
{
	return (uint32_t)work << 30 | key;
}

CORE_INLINE uint64_t vrb_work_id(enum vrb_work work, uint32_t key, uint64_t value)
{
	return (uint64_t)vrb_work_name(work, key) << 32 | (uint32_t)value;
}

static inline enum vrb_work vrb_work_of(const struct ibv_wc *wc)
{
	return (enum vrb_work)(wc->wr_id >> 62);
}

/* The upper half of the ID of a completion or a work request. Reads only that half. */
CORE_INLINE uint32_t vrb_name_of(const uint64_t *wr_id)
{
	uint32_t name;

	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the upper half is the second");
	memcpy(&name, (const char *)wr_id + sizeof(name), sizeof(name));
	return name;
}

static inline uint32_t vrb_work_key(const struct ibv_wc *wc)
{
	return (uint32_t)(wc->wr_id >> 32) & VRB_KEY_MASK;
}

/*
 * Is it the successful completion of a message? A foreign peer's RDMA Write with immediate data
 * takes a Receive too, but its length does not concern the buffer. One comparison checks status and
 * opcode.
 */
CORE_INLINE bool vrb_is_message(const struct ibv_wc *wc)
{
	uint64_t both;

	_Static_assert(offsetof(struct ibv_wc, opcode) ==
			       offsetof(struct ibv_wc, status) + sizeof(uint32_t),
		       "side by side");
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the status is the low half");
	memcpy(&both, (const char *)wc + offsetof(struct ibv_wc, status), sizeof(both));
	return both == ((uint64_t)IBV_WC_RECV << 32 | IBV_WC_SUCCESS);
}

/* --- what a posted request stores; 0 before the slow path posts it (core/ep/ep.h) --- */

_Static_assert(sizeof(((struct core_req *)0)->transport) >= 2 * sizeof(uint64_t), "room for both");

/* Stores the value of `extra` after the request. */
CORE_INLINE void vrb_note_extra(struct core_req *req, uint64_t extra)
{
	req->transport.word[0] = extra;
}

CORE_INLINE uint64_t vrb_noted_extra(const struct core_req *req)
{
	return req->transport.word[0];
}

/* Stores whether the request was posted unsignalled. Read for suppressed requests only. */
static inline void vrb_note_unsignalled(struct core_req *req, bool is_unsignalled)
{
	req->transport.word[1] = is_unsignalled;
}

static inline bool vrb_is_unsignalled(const struct core_req *req)
{
	return (req->flags & DAT_COMPLETION_SUPPRESS_FLAG) && req->transport.word[1];
}

/* --- positions --- */

/* The position behind a posted request, or behind a bind that has had its turn. */
static inline uint64_t vrb_end(const struct core_req *req)
{
	return req->sequence + 1 + vrb_noted_extra(req);
}

/* The position behind everything that was posted. */
static inline uint64_t vrb_sq_posted(const struct vrb_conn *conn)
{
	return conn->post_next + conn->extra;
}

/* The position before which everything is known to be complete and all entries are free. */
static inline uint64_t vrb_sq_done(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return ep->req.head + conn->extra_done;
}

/* Does the send queue have that many free entries? One more is reserved for a marker. */
static inline bool vrb_has_room(const struct vrb_conn *conn, const struct core_ep *ep,
				uint32_t places)
{
	return vrb_sq_posted(conn) - vrb_sq_done(conn, ep) + places < conn->sq_size;
}

/* Receives in the device's queue. */
static inline uint32_t vrb_recv_out(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return (uint32_t)(conn->recv_next - ep->recv.head) + (uint32_t)conn->recv_extra;
}

#endif
