// SPDX-License-Identifier: BSD-2-Clause
/*
 * The endpoint: state, attributes, and its two queues. The request queue is a ring of slots in
 * posting order; a transport may finish slots in any order, completions are raised in posting
 * order (DTO-37). The receive queue is a ring of work requests that the transport takes from. All
 * members are guarded by the endpoint's lock (that of its cell) unless marked otherwise.
 */
#ifndef CORE_EP_H
#define CORE_EP_H

#include "core/base/handle.h"
#include "core/base/instance.h"
#include "core/mem/known.h"
#include "core/srq/recv_queue.h"
#include "core/srq/srq.h"

struct core_evd;
struct core_pz;
struct core_binding;

enum core_op {
	CORE_OP_SEND,
	CORE_OP_RDMA_WRITE,
	CORE_OP_RDMA_READ,
	CORE_OP_BIND,
};

/* One posted request. The transport may use `transport` and must not change anything else. */
struct core_req {
	uint32_t segments;
	DAT_COMPLETION_FLAGS
	flags;		      /* as posted; the transport obeys BARRIER_FENCE and SOLICITED_WAIT */
	DAT_LMR_TRIPLET *iov; /* our copy; segments of length 0 are left out */
	DAT_VLEN len;	      /* bytes to move */
	DAT_RMR_TRIPLET remote; /* RDMA only; its length is checked and not kept */
	DAT_DTO_COOKIE cookie;
	struct core_binding *binding; /* binds: until it has its turn (rmr.h); else undefined */
	struct core_ref bound_rmr;    /* binds only: the window */
	uint64_t sequence;	      /* number of this request on its EP, from 0, never reused */
	union {
		void *pointer;
		uint64_t word[2];
	} transport;
	enum core_op op;
	/* the core's */
	bool is_done; /* by core_req_done, and not raised yet; false in a free slot */
	/* once it is done, unless its completion is raised at once */
	DAT_DTO_COMPLETION_STATUS status;
	DAT_VLEN done_len;
};

struct core_req_queue {
	struct core_req *slots;
	DAT_LMR_TRIPLET *iov;
	uint32_t capacity; /* requests that may be outstanding; 0 without request EVD */
	uint32_t mask;	   /* slots - 1; slots are a power of two, at least capacity */
	uint32_t iov_max;  /* segments of one slot */
	uint64_t head;	   /* sequence of the oldest request whose completion is not raised */
	uint64_t tail;	   /* sequence of the next post */
	uint32_t done;	   /* requests that are done and wait for an older one's completion */
};

/*
 * Reasons against the fast path of an endpoint: core_handle.slow_reasons. The core's own follow
 * from the endpoint's members (core_ep_review_slow); those of a transport are set and cleared by
 * it, and an endpoint starts with CORE_EP_SLOW_CONN.
 */
enum core_ep_slow {
	CORE_EP_SLOW_STATE = 1,		 /* not connected, or a request has failed */
	CORE_EP_SLOW_EVD = 1 << 1,	 /* a completion would have no dispatcher */
	CORE_EP_SLOW_LIMIT = 1 << 2,	 /* an attribute allows no segment */
	CORE_EP_SLOW_WATERMARK = 1 << 3, /* posted Receives are watched */
	CORE_EP_SLOW_CORE = 0xff,
	CORE_EP_SLOW_TRANSPORT = 0xff00,
	/* the transport's */
	CORE_EP_SLOW_CONN = 1 << 8,  /* its connection does not stand, is ending or was lost */
	CORE_EP_SLOW_QUEUE = 1 << 9, /* a posted request waits, or needs more than a completion */
	CORE_EP_SLOW_RECV = 1 << 10, /* the next Receive that is posted has to be acted on */
	CORE_EP_SLOW_PEER = 1 << 11, /* the peer, or the device, needs more than the fast path does
				      */
};

struct core_ep {
	/* set at creation */
	struct core_handle *cell;
	struct core_ia *ia;
	bool is_provider_made;

	DAT_EP_STATE state;
	bool is_breaking; /* a request failed: no later one may succeed (DTO-48) */
	struct core_pz *pz;
	/* the regions of the last single segments that were posted, good for its zone */
	struct core_known known_source;
	struct core_known known_target;
	struct core_evd *recv_evd;
	struct core_evd *request_evd;
	struct core_evd *connect_evd;
	struct core_srq *srq;
	struct core_srq_user srq_user;
	DAT_COUNT soft_watermark; /* of Receives it holds; DAT_WATERMARK_INFINITE: none */
	DAT_COUNT hard_watermark;
	bool is_soft_armed;
	DAT_EP_ATTR attr;
	struct core_req_queue req;
	struct core_recv_queue recv;

	/* the connection */
	DAT_PORT_QUAL local_port;
	union core_sockaddr remote_address;
	DAT_PORT_QUAL remote_port;
	DAT_CONN_QUAL connect_qual; /* what was connected to (active side) */
	DAT_CONNECT_FLAGS connect_flags;
	uint32_t peer_read_in; /* RDMA Reads that the peer takes at once */
	uint8_t *private_data; /* from the peer, with ESTABLISHED; max_private_data_size bytes */
	DAT_COUNT private_data_size;

	void *transport; /* the transport's side: set by its ep_create, gone after ep_destroy */
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
	unsigned int attr_arg;	 /* which parameter of the call the attributes are */
	DAT_RETURN bad_pointer; /* a pointer of the call is NULL: told after the handles (GEN-19) */
};

/* Makes an endpoint; live at return. */
DAT_RETURN core_ep_new(struct core_ia *ia, const struct core_ep_args *args,
		       struct core_ep **ep_out);
/* Destroys a live endpoint in any state, its lock held; no lock is held at return. */
void core_ep_destroy_locked(struct core_ep *ep);

/* Locks the endpoint if it still lives; NULL if not. */
struct core_ep *core_ep_enter(struct core_ref ref);
void core_ep_leave(struct core_ep *ep);
/* A buffer of its SRQ is available (hooks.h). No lock held. */
void core_ep_offer(struct core_ref ref);

/* Attributes (ep_attr.c). `arg` is the parameter to blame. */
void core_ep_attr_defaults(struct core_ia *ia, bool has_recv, bool has_request,
			   DAT_EP_ATTR *attr_out);
void core_ep_attr_fill(struct core_ia *ia, DAT_EP_ATTR *attr);
DAT_RETURN core_ep_attr_check(struct core_ia *ia, const DAT_EP_ATTR *attr, bool has_srq,
			      unsigned int arg);
DAT_RETURN core_ep_attr_check_requests(const DAT_EP_ATTR *attr, bool has_request, unsigned int arg);
DAT_RETURN core_ep_attr_check_pairs(const DAT_EP_ATTR *attr, bool has_recv, bool has_request,
				    unsigned int arg);

/* Queues (ep_queue.c): sizes follow the attributes; posted Receives are kept. */
DAT_RETURN core_ep_size_queues(struct core_ep *ep, const DAT_EP_ATTR *attr);
void core_ep_free_queues(struct core_ep *ep);
/* Lets go of what posted binds hold, without completions: the endpoint is being destroyed. */
void core_ep_drop_binds(struct core_ep *ep);
/* How many Receives the endpoint holds uncompleted. */
uint32_t core_ep_held(const struct core_ep *ep);
/* And arms it. */
void core_ep_set_soft_watermark(struct core_ep *ep, DAT_COUNT soft);
/* Compares that with the watermarks (ep_watermark.c). False: the connection is being broken. */
bool core_ep_watch(struct core_ep *ep);
/* Completes everything that is posted: what is not done is flushed. Locked. */
void core_ep_flush(struct core_ep *ep);

static inline struct core_req *core_req_at(struct core_req_queue *queue, uint64_t sequence)
{
	return &queue->slots[sequence & queue->mask];
}

/* Sets or clears the core's reasons against the fast path: after each change of what they follow
 * from. Locked, or not yet published. */
void core_ep_review_slow(struct core_ep *ep);

/* Takes the next slot of the request queue, which has room; the caller fills in the rest. Locked.
 */
CORE_INLINE struct core_req *core_req_take(struct core_ep *ep, enum core_op op,
					   DAT_COMPLETION_FLAGS flags)
{
	uint64_t tail = ep->req.tail; /* read once: for all the compiler knows a slot is there */
	struct core_req *req = core_req_at(&ep->req, tail);

	req->op = op;
	req->sequence = tail;
	ep->req.tail = tail + 1;
	req->flags = flags;
	return req;
}

/* Before a request goes to the general path of a transport. */
CORE_INLINE void core_req_forget_transport(struct core_req *req)
{
	req->transport.word[0] = 0;
	req->transport.word[1] = 0;
}

/* The posting calls without their fast paths (dto.c), which they must not be inlined into. */
__attribute__((noinline, cold)) DAT_RETURN
core_ep_post_send_any(DAT_EP_HANDLE handle, DAT_COUNT segments, const DAT_LMR_TRIPLET *iov,
		      DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
__attribute__((noinline, cold)) DAT_RETURN
core_ep_post_rdma_write_any(DAT_EP_HANDLE handle, DAT_COUNT segments, const DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			    DAT_COMPLETION_FLAGS flags);
__attribute__((noinline, cold)) DAT_RETURN
core_ep_post_recv_any(DAT_EP_HANDLE handle, DAT_COUNT segments, const DAT_LMR_TRIPLET *iov,
		      DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

#endif
