// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast paths of the data path calls. One source file of each provider library includes this
 * header, so that the compiler inlines the transport's half. Before that, it defines:
 *
 *   TRANSPORT_FAST_FLAGS
 *     The completion flags that the transport's fast path supports. Only flags that every endpoint
 *     accepts are allowed.
 *
 *   static inline bool transport_post_fast(struct core_handle *cell, struct core_ep *ep,
 *                                          const struct core_fast_post *post)
 *     Starts a request: a Send, RDMA Write or RDMA Read of one segment, which was checked and lies
 *     in the region of ep->cached_source (RDMA Read: ep->cached_target). It is in its slot of the
 *     queue (post->req). The endpoint is that of the cell. It is locked and has no slow_reasons
 *     (ep.h). Returns false if nothing was done; the core then calls post_request.
 *
 *   static inline bool transport_recv_fast(struct core_handle *cell, struct core_ep *ep,
 *                                          const struct core_fast_post *post)
 *     The same for a Receive of one segment, of less than 2 GiB, in the region of
 *     ep->cached_target. If it returns false, the core calls post_recv.
 *
 *   static inline enum transport_poll transport_poll(struct core_handle *cell, DAT_EVENT *event)
 *     Polls for one completion of the EVD and stores it in `event` (core_evd_deliver_dto). The EVD
 *     is locked, its queue is empty, no thread waits on it, and it has no CNO. Other completions
 *     that the poll finds go into the queues of their EVDs. The function never blocks on a lock of
 *     rank 1 to 7: it locks endpoints and other EVDs by core_handle_enter_fast().
 *
 * Each call tries to lock its object, checks the type of the handle and slow_reasons by one
 * comparison, and combines the checks of the slow path (dto.c, evd_queue.c). If a check fails,
 * the slow path is taken; it repeats the checks and finds the cause.
 */
#ifndef CORE_DATA_PATH_H
#define CORE_DATA_PATH_H

#include "core/base/calls.h"
#include "core/base/probe.h"
#include "core/base/transport_ops.h"
#include "core/ep/dto.h"
#include "core/ep/ep_fast.h"

/*
 * Copies a consumer's segment word by word. The consumer may have stored it just before the call; a
 * wider load could not be forwarded from those stores and would stall until they have left the
 * store buffer. `volatile` prevents the compiler from merging the accesses.
 */
CORE_INLINE void data_copy_local(DAT_LMR_TRIPLET *to, const volatile DAT_LMR_TRIPLET *from)
{
	to->lmr_context = from->lmr_context;
	to->virtual_address = from->virtual_address;
	to->segment_length = from->segment_length;
}

/* The remote side of RDMA. Its length was checked and is not needed any more. */
CORE_INLINE void data_copy_remote(DAT_RMR_TRIPLET *to, const volatile DAT_RMR_TRIPLET *from)
{
	to->rmr_context = from->rmr_context;
	to->target_address = from->target_address;
}

_Static_assert((TRANSPORT_FAST_FLAGS &
		~(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
		  DAT_COMPLETION_BARRIER_FENCE_FLAG)) == 0,
	       "flags that all endpoints accept");

/* True for one segment and no flags but the allowed ones. */
CORE_INLINE bool data_is_plain(DAT_COUNT segments, DAT_COMPLETION_FLAGS flags, unsigned int allowed)
{
	return (((unsigned int)segments ^ 1u) | ((unsigned int)flags & ~allowed)) == 0;
}

/* True if the queue has no free slot. The difference always fits in 32 bits. */
CORE_INLINE bool data_is_full(uint64_t head, uint64_t tail, uint32_t capacity)
{
	return (uint32_t)tail - (uint32_t)head >= capacity;
}

/*
 * The checks of an RDMA Read beside those of its segment. The length is that of the remote side;
 * the rest of the segment is not used.
 */
CORE_INLINE bool data_check_read(const struct core_ep *ep, DAT_LMR_TRIPLET *segment,
				 const volatile DAT_RMR_TRIPLET *remote)
{
	DAT_VLEN len = remote->segment_length;

	/* DTO-109, DTO-110 */
	if (len > segment->segment_length || !ep->attr.max_rdma_read_out || !ep->peer_read_in)
		return false;
	segment->segment_length = len;
	return true;
}

/* Posts a request on the locked endpoint. Returns false if it needs the slow path. */
CORE_INLINE bool data_request(struct core_handle *cell, enum core_op op, const DAT_LMR_TRIPLET *iov,
			      DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			      DAT_COMPLETION_FLAGS flags)
{
	struct core_ep *ep = cell->object;
	const struct core_mem_cache *region =
		op == CORE_OP_RDMA_READ ? &ep->cached_target : &ep->cached_source;
	struct core_fast_post post = {.op = op, .flags = flags, .cookie = cookie.as_64};

	data_copy_local(&post.segment, iov);
	if (!core_mem_cache_hit(region, &post.segment) ||
	    data_is_full(ep->req.head, ep->req.tail, ep->req.capacity))
		return false;
	if (op == CORE_OP_RDMA_READ && !data_check_read(ep, &post.segment, remote))
		return false;
	if (post.segment.segment_length - 1 >= region->most)
		return false;
	if (op == CORE_OP_RDMA_WRITE && remote->segment_length < post.segment.segment_length)
		return false;
	if (op != CORE_OP_SEND)
		data_copy_remote(&post.remote, remote);
	post.number = ep->req.tail;
	post.req = core_req_put(ep, &post);
	if (__builtin_expect(!transport_post_fast(cell, ep, &post), false)) {
		core_req_clear_transport(post.req);
		transport_this->post_request(cell->object, post.req);
	}
	return true;
}

DAT_RETURN core_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			     DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			     DAT_COMPLETION_FLAGS completion_flags)
{
	struct core_handle *cell = (struct core_handle *)ep_handle;
	DAT_COMPLETION_FLAGS flags = TRANSPORT_FAST_FLAGS & completion_flags;
	bool is_posted;

	if (!data_is_plain(num_segments, completion_flags, TRANSPORT_FAST_FLAGS) || !local_iov)
		return core_ep_post_send_slow(ep_handle, num_segments, local_iov, user_cookie,
					      completion_flags);
	if (core_handle_enter_fast(cell, DAT_HANDLE_TYPE_EP)) {
		is_posted = data_request(cell, CORE_OP_SEND, local_iov, user_cookie, NULL, flags);
		core_lock_leave(&cell->lock);
		if (is_posted)
			return DAT_SUCCESS;
	}
	return core_ep_post_send_slow(ep_handle, 1, local_iov, user_cookie, flags);
}

typedef DAT_RETURN data_rdma_slow(DAT_EP_HANDLE handle, DAT_COUNT segments,
				  const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
				  const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);

CORE_INLINE DAT_RETURN data_rdma(enum core_op op, DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				 DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				 const DAT_RMR_TRIPLET *remote_iov,
				 DAT_COMPLETION_FLAGS completion_flags)
{
	struct core_handle *cell = (struct core_handle *)ep_handle;
	DAT_COMPLETION_FLAGS flags = TRANSPORT_FAST_FLAGS & completion_flags;
	data_rdma_slow *slow = op == CORE_OP_RDMA_READ ? core_ep_post_rdma_read_slow
						       : core_ep_post_rdma_write_slow;
	bool is_posted;

	if (!data_is_plain(num_segments, completion_flags, TRANSPORT_FAST_FLAGS) || !local_iov ||
	    !remote_iov)
		return slow(ep_handle, num_segments, local_iov, user_cookie, remote_iov,
			    completion_flags);
	if (core_handle_enter_fast(cell, DAT_HANDLE_TYPE_EP)) {
		is_posted = data_request(cell, op, local_iov, user_cookie, remote_iov, flags);
		core_lock_leave(&cell->lock);
		if (is_posted)
			return DAT_SUCCESS;
	}
	return slow(ep_handle, 1, local_iov, user_cookie, remote_iov, flags);
}

DAT_RETURN core_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				   DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				   const DAT_RMR_TRIPLET *remote_iov,
				   DAT_COMPLETION_FLAGS completion_flags)
{
	return data_rdma(CORE_OP_RDMA_WRITE, ep_handle, num_segments, local_iov, user_cookie,
			 remote_iov, completion_flags);
}

DAT_RETURN core_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				  DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				  const DAT_RMR_TRIPLET *remote_iov,
				  DAT_COMPLETION_FLAGS completion_flags)
{
	return data_rdma(CORE_OP_RDMA_READ, ep_handle, num_segments, local_iov, user_cookie,
			 remote_iov, completion_flags);
}

/* As data_request(), for a Receive. The queue of an endpoint with an SRQ has capacity 0. */
CORE_INLINE bool data_recv(struct core_handle *cell, const DAT_LMR_TRIPLET *iov,
			   DAT_DTO_COOKIE cookie)
{
	struct core_ep *ep = cell->object;
	struct core_recv_queue *queue = &ep->recv;
	struct core_fast_post post;
	struct core_wqe *wqe;

	data_copy_local(&post.segment, iov);
	if (!core_mem_cache_hit(&ep->cached_target, &post.segment) ||
	    data_is_full(queue->head, queue->tail, queue->capacity))
		return false;
	post.number = queue->tail++;
	wqe = &queue->slots[post.number & queue->mask];
	wqe->segments = 1;
	wqe->len = post.segment.segment_length;
	ep->counts.recv_room += wqe->len;
	wqe->cookie = cookie;
	wqe->flags = DAT_COMPLETION_DEFAULT_FLAG;
	wqe->iov = &wqe->first;
	core_put_segment(&wqe->first, &post.segment);
	CORE_PROBE3(recv_post, cell, wqe->cookie.as_64, wqe->len);
	if (__builtin_expect(!transport_recv_fast(cell, ep, &post), false))
		transport_this->post_recv(cell->object);
	return true;
}

DAT_RETURN core_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			     DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			     DAT_COMPLETION_FLAGS completion_flags)
{
	struct core_handle *cell = (struct core_handle *)ep_handle;
	bool is_posted;

	if (!data_is_plain(num_segments, completion_flags, DAT_COMPLETION_DEFAULT_FLAG) ||
	    !local_iov)
		return core_ep_post_recv_slow(ep_handle, num_segments, local_iov, user_cookie,
					      completion_flags);
	if (core_handle_enter_fast(cell, DAT_HANDLE_TYPE_EP)) {
		is_posted = data_recv(cell, local_iov, user_cookie);
		core_lock_leave(&cell->lock);
		if (is_posted)
			return DAT_SUCCESS;
	}
	return core_ep_post_recv_slow(ep_handle, 1, local_iov, user_cookie,
				      DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN core_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	struct core_handle *cell = (struct core_handle *)evd_handle;
	struct core_evd *evd = core_handle_enter_fast(cell, DAT_HANDLE_TYPE_EVD);
	enum transport_poll found = TRANSPORT_POLL_SLOW;

	if (evd) {
		if (event && evd->head != evd->tail)
			return core_evd_take_queued(evd, event);
		if (event) {
			found = transport_poll(cell, event);
			evd->dequeues[found]++;
		}
		core_lock_leave(&cell->lock);
	}
	if (__builtin_expect(found == TRANSPORT_POLL_FOUND, true))
		return DAT_SUCCESS;
	return found == TRANSPORT_POLL_EMPTY ? (DAT_RETURN)DAT_QUEUE_EMPTY
					     : core_evd_dequeue_slow(evd_handle, event);
}

#endif
