// SPDX-License-Identifier: BSD-2-Clause
/*
 * The endpoint: its state, attributes, request queue and receive queue. The request queue is a ring
 * of slots in posting order. A transport may complete requests in any order; the core raises the
 * completion events in posting order (DTO-37). The receive queue is a ring from which the transport
 * takes Receives. The endpoint's lock (that of its cell) guards all members unless marked
 * otherwise.
 */
#ifndef CORE_EP_H
#define CORE_EP_H

#include <stdalign.h>
#include <stddef.h>

#include "core/base/handle.h"
#include "core/base/instance.h"
#include "core/base/line.h"
#include "core/base/refuse.h"
#include "core/ep/ep_counts.h"
#include "core/mem/cache.h"
#include "core/srq/recv_queue.h"
#include "core/srq/srq.h"
#include "shared/stat.h"

struct core_evd;
struct core_pz;
struct core_binding;

/*
 * One posted request. A transport may change `transport` and nothing else. It takes two cache
 * lines; all that the fast path needs to complete a Send or an RDMA Write is in the first one.
 */
struct core_req {
	alignas(CORE_LINE) enum core_op op;
	/* as posted; the transport implements BARRIER_FENCE and SOLICITED_WAIT */
	DAT_COMPLETION_FLAGS flags;
	DAT_DTO_COOKIE cookie;
	DAT_VLEN len;	   /* bytes to move */
	uint64_t sequence; /* number of the request on its EP, from 0, never reused */
	union {
		void *pointer;
		uint64_t word[2];
	} transport;
	DAT_LMR_TRIPLET *iov; /* our copy, without empty segments: `first`, or in the queue's iov */
	uint32_t segments;
	bool is_done; /* completed out of order, not raised yet; false in a free slot */

	DAT_LMR_TRIPLET first;
	union {
		/* RDMA; the fast path never sets the length, and nothing of it over verbs */
		DAT_RMR_TRIPLET remote;
		struct {
			struct core_binding *binding; /* binds: until the bind is executed */
			struct core_ref bound_rmr;    /* binds: the window */
		};
	};
	/* valid if is_done */
	DAT_DTO_COMPLETION_STATUS status;
	union {
		DAT_VLEN done_len;
		uint64_t compare; /* of a compare-swap, before it is done */
	};
};
static_assert(sizeof(struct core_req) == 2 * CORE_LINE, "two adjacent lines");

struct core_req_queue {
	struct core_req *slots;
	DAT_LMR_TRIPLET *iov; /* of requests of several segments, iov_max for each slot */
	uint32_t capacity;    /* requests that may be outstanding; 0 without request EVD */
	uint32_t mask;	      /* number of slots (a power of two, at least capacity) - 1 */
	uint32_t iov_max;     /* segments of one slot */
	uint64_t head;	      /* sequence of the oldest outstanding request */
	uint64_t tail;	      /* sequence of the next request to be posted */
	uint32_t done;	      /* requests with is_done */
};

/*
 * Why an endpoint must use the slow path: bits of core_handle.slow_reasons. The core derives its
 * own bits from the endpoint's members (core_ep_update_slow_reasons). The transport sets and clears
 * the others. A new endpoint has CORE_EP_SLOW_CONN.
 */
enum core_ep_slow {
	CORE_EP_SLOW_STATE = 1,		 /* not connected, or a request has failed */
	CORE_EP_SLOW_EVD = 1 << 1,	 /* an EVD for completions is missing */
	CORE_EP_SLOW_LIMIT = 1 << 2,	 /* an attribute allows no segment */
	CORE_EP_SLOW_WATERMARK = 1 << 3, /* posted Receives are counted against a watermark */
	CORE_EP_SLOW_CORE = 0xff,
	CORE_EP_SLOW_TRANSPORT = 0xff00,
	/* the transport's */
	CORE_EP_SLOW_CONN = 1 << 8,  /* not established, ending, or lost */
	CORE_EP_SLOW_QUEUE = 1 << 9, /* a request waits, or needs the slow path to complete */
	CORE_EP_SLOW_RECV = 1 << 10, /* the next posted Receive needs the slow path */
	CORE_EP_SLOW_PEER = 1 << 11, /* the peer or the device needs the slow path */
};

/* What the fast paths use comes first, in as few cache lines as possible. */
struct core_ep {
	alignas(CORE_LINE) struct core_handle *cell; /* set at creation */
	void *transport; /* the transport's object, from ep_create to ep_destroy */
	struct core_pz *pz;
	struct core_evd *recv_evd;
	struct core_evd *request_evd;
	uint32_t peer_read_in; /* concurrent RDMA Reads that the peer serves */
	uint8_t peer_takes;    /* enum transport_takes */
	uint8_t path;	  /* enum opendat_stat_path; the transport sets it (core_ep_set_path) */
	bool is_breaking; /* a request failed: no later one may succeed (DTO-48) */
	/* the regions of the last segments that were posted; each was checked for its zone */
	struct core_mem_cache cached_source;
	struct core_mem_cache cached_target;
	struct core_req_queue req;
	struct core_recv_queue recv;
	struct core_ia *ia; /* set at creation */
	struct core_ep_counts counts;

	bool is_provider_made; /* set at creation */
	uint8_t takes;	       /* enum transport_takes, of the next connection */

	DAT_EP_STATE state;
	struct core_evd *connect_evd;
	struct core_srq *srq;
	struct core_srq_user srq_user;
	DAT_COUNT soft_watermark; /* of the Receives it holds; DAT_WATERMARK_INFINITE: none */
	DAT_COUNT hard_watermark;
	bool is_soft_armed;
	DAT_EP_ATTR attr;

	/* the connection */
	DAT_PORT_QUAL local_port;
	union core_sockaddr remote_address;
	DAT_PORT_QUAL remote_port;
	DAT_CONNECT_FLAGS connect_flags;
	uint8_t *private_data; /* from the ESTABLISHED event; room for CORE_PRIVATE_MAX */
	DAT_COUNT private_data_size;
	uint64_t *counted_before; /* what its generation has reset; or NULL */
};

static_assert(offsetof(struct core_ep, counts.posted[CORE_OP_BIND]) <= 5 * CORE_LINE, "five lines");

/* The parameters that have these values. */
struct core_ep_names {
	struct core_arg pz, recv_evd, request_evd, connect_evd, attr, result;
};

struct core_ep_args {
	DAT_PZ_HANDLE pz; /* handles may be DAT_HANDLE_NULL */
	DAT_EVD_HANDLE recv_evd;
	DAT_EVD_HANDLE request_evd;
	DAT_EVD_HANDLE connect_evd;
	DAT_SRQ_HANDLE srq;
	bool has_srq;
	const DAT_EP_ATTR *attr; /* NULL: the defaults */
	bool is_provider_made;	 /* for a connection request: starts TENTATIVE_CONNECTION_PENDING */
	bool needs_attr;	 /* NULL is refused */
	bool has_no_result;	 /* the consumer gave no place for the handle */
	const struct core_ep_names *names; /* of the parameters; NULL if is_provider_made */
};

/* Creates an endpoint. Its handle is valid at return. */
DAT_RETURN core_ep_new(struct core_ia *ia, const struct core_ep_args *args,
		       struct core_ep **ep_out);
/* Destroys an endpoint in any state. Its lock is held at entry and no lock at return. */
void core_ep_destroy_locked(struct core_ep *ep);

/* Locks the endpoint. Returns NULL if it no longer exists. */
struct core_ep *core_ep_enter(struct core_ref ref);
void core_ep_leave(struct core_ep *ep);
/* Does a completion of a request or Receive wake a thread or trigger a CNO? EP locked; the answer
 * may be old. */
bool core_ep_is_watched(const struct core_ep *ep);
/* Notifies a waiting endpoint that its SRQ has a buffer (hooks.h). No lock held. */
void core_ep_offer(struct core_ref ref);

/* The immediate data of a Write, and what an atomic operation adds or stores, are kept where the
 * remote triplet has nothing that is used. What a Send invalidates is remote.rmr_context. */
static inline uint32_t *core_req_immediate(struct core_req *req)
{
	return &req->remote.pad;
}

static inline uint64_t *core_req_operand(struct core_req *req)
{
	return &req->remote.segment_length;
}

static inline struct core_req *core_req_at(struct core_req_queue *queue, uint64_t sequence)
{
	return &queue->slots[sequence & queue->mask];
}

/* True if another request would be refused. */
static inline bool core_req_is_full(const struct core_req_queue *queue)
{
	return queue->tail - queue->head >= queue->capacity;
}

/*
 * Locks the endpoint, and drives the transport if anything is outstanding. NULL: it does not exist.
 */
struct core_ep *core_ep_lock_driven(DAT_EP_HANDLE ep_handle);

/* The transport has chosen how the bytes of the connection move, for dat_stat. EP locked. */
CORE_INLINE void core_ep_set_path(struct core_ep *ep, enum opendat_stat_path path)
{
	ep->path = (uint8_t)path;
}

/* Counts a request that was posted. EP locked. */
CORE_INLINE void core_req_count(struct core_ep *ep, enum core_op op, DAT_VLEN len)
{
	ep->counts.bytes[op] += len;
	if (op != CORE_OP_SEND)
		ep->counts.posted[op]++;
}

/* Takes the next slot of the request queue, which has room. The caller sets the other members. EP
 * locked. */
CORE_INLINE struct core_req *core_req_take(struct core_ep *ep, enum core_op op,
					   DAT_COMPLETION_FLAGS flags)
{
	uint64_t tail = ep->req.tail;
	struct core_req *req = core_req_at(&ep->req, tail);

	req->op = op;
	req->flags = flags;
	req->sequence = tail;
	ep->req.tail = tail + 1;
	return req;
}

/* Resets the transport's part of a slot, before the request goes to the slow path. */
CORE_INLINE void core_req_clear_transport(struct core_req *req)
{
	req->transport.word[0] = 0;
	req->transport.word[1] = 0;
}

#endif
