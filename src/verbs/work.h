// SPDX-License-Identifier: BSD-2-Clause
/*
 * Work requests: what their numbers say, and their positions in the send queue of a connection.
 *
 * A position counts the work requests that were posted before it. Most requests of an endpoint are
 * one work request each, so that positions are not counted: they are the sequence of a request and
 * `extra`, the work requests beyond those. A marker, an iWARP proof, the bind and the end of a
 * window add one to `extra` when they are posted. A bind is no work request when it has its turn:
 * its window was bound before, or it needed none. So its turn takes one away. Each request notes
 * what `extra` is when it was posted or had its turn, and its position follows. When the head of
 * the endpoint's queue passes a request, that note says how many of the extra ones are done.
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

/* What a work request's number says beside the connection. */
enum vrb_work {
	VRB_WORK_REQUEST, /* of the endpoint; the value is the low half of its sequence */
	VRB_WORK_PART,	  /* a work request that belongs to one, whose success says nothing */
	VRB_WORK_MARKER,  /* ours: everything before it is done; the value is one of below */
	VRB_WORK_RECV,	  /* the endpoint's oldest Receive; the value: the low half of its place in
			   * the order of all. Or the SRQ's buffer: where it is */
};

/* Immediate data of a Send that asks for a notification. */
#define VRB_SOLICITED_IMM 0x6f445357u

#define VRB_MARKER_PLAIN 0u
#define VRB_MARKER_RETIRED 1u /* a window was unbound */

/* The upper half of a number. */
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

/* The upper half of a completion's number, or of a work request's; read alone. */
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
 * Is the completion that of a message, and good? A foreign peer's RDMA Write with immediate data
 * takes a Receive, too, and its length says nothing of the buffer. Both asked in one go.
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

/* --- what is noted in a posted request; 0 before the general path posts it (ep.h) --- */

_Static_assert(sizeof(((struct core_req *)0)->transport) >= 2 * sizeof(uint64_t), "room for both");

/* `extra` behind it. */
CORE_INLINE void vrb_note_extra(struct core_req *req, uint64_t extra)
{
	req->transport.word[0] = extra;
}

CORE_INLINE uint64_t vrb_noted_extra(const struct core_req *req)
{
	return req->transport.word[0];
}

/* It asked for no completion. Only suppressed ones need the note, and have it. */
static inline void vrb_note_unsignalled(struct core_req *req, bool is_unsignalled)
{
	req->transport.word[1] = is_unsignalled;
}

static inline bool vrb_is_unsignalled(const struct core_req *req)
{
	return (req->flags & DAT_COMPLETION_SUPPRESS_FLAG) && req->transport.word[1];
}

/* --- positions --- */

/* Behind a request that was posted, or a bind that has its turn. */
static inline uint64_t vrb_end(const struct core_req *req)
{
	return req->sequence + 1 + vrb_noted_extra(req);
}

/* Behind everything that was posted. */
static inline uint64_t vrb_sq_posted(const struct vrb_conn *conn)
{
	return conn->post_next + conn->extra;
}

/* What is before it is known to be complete: those places are free. */
static inline uint64_t vrb_sq_done(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return ep->req.head + conn->extra_done;
}

/* Places that work requests may take: one is kept for the marker. */
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
