// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls of the data path: their fast paths, compiled together with those of the transport. One
 * source file of each provider library includes this, after it has defined for its transport:
 *
 *   static inline bool transport_post_fast(struct core_ep *ep, struct core_req *req,
 *                                          enum core_op op, const DAT_LMR_TRIPLET *segment)
 *     Starts the request that was taken last: a Send or an RDMA Write of that one segment, which is
 *     good and in the region of ep->known_source. The endpoint is entered and has no slow_reasons
 *     (ep.h). False: nothing was done, and post_request follows.
 *
 *   static inline bool transport_recv_fast(struct core_ep *ep, const struct core_wqe *wqe)
 *     The same for a Receive of one segment in the region of ep->known_target; else post_recv.
 *
 *   static inline enum transport_poll transport_poll(struct core_evd *evd, DAT_EVENT *event)
 *     Looks for one completion of the dispatcher, which is locked, whose queue is empty, on which
 *     nobody waits, and which has no CNO, and gives it to the caller (core_evd_give_dto); what it
 *     finds beside it goes into the queues of the dispatchers. Waits for no lock of rank 1 to 7:
 *     endpoints and other dispatchers are entered by core_handle_enter_fast().
 *
 * Each call enters its object by one comparison behind a trylock, and makes the checks of the
 * general path (dto.c, evd.c) in one go. What fails one of them goes there, which finds out what is
 * wrong.
 */
#ifndef CORE_DATA_PATH_H
#define CORE_DATA_PATH_H

#include "core/calls.h"
#include "core/ep.h"
#include "core/evd.h"
#include "core/transport.h"

/*
 * Copies of a consumer's segment. Word by word, as it may have been written just now: a longer load
 * would wait until those stores, and all before them, have left the processor.
 */
CORE_INLINE void data_copy_local(DAT_LMR_TRIPLET *to, const DAT_LMR_TRIPLET *from)
{
	to->lmr_context = __atomic_load_n(&from->lmr_context, __ATOMIC_RELAXED);
	to->virtual_address = __atomic_load_n(&from->virtual_address, __ATOMIC_RELAXED);
	to->segment_length = __atomic_load_n(&from->segment_length, __ATOMIC_RELAXED);
}

CORE_INLINE void data_copy_remote(DAT_RMR_TRIPLET *to, const DAT_RMR_TRIPLET *from)
{
	to->rmr_context = __atomic_load_n(&from->rmr_context, __ATOMIC_RELAXED);
	to->target_address = __atomic_load_n(&from->target_address, __ATOMIC_RELAXED);
	to->segment_length = __atomic_load_n(&from->segment_length, __ATOMIC_RELAXED);
}

/* Such a copy goes on from registers, word by word as well. */
CORE_INLINE void data_put_local(DAT_LMR_TRIPLET *to, const DAT_LMR_TRIPLET *from)
{
	__atomic_store_n(&to->lmr_context, from->lmr_context, __ATOMIC_RELAXED);
	__atomic_store_n(&to->virtual_address, from->virtual_address, __ATOMIC_RELAXED);
	__atomic_store_n(&to->segment_length, from->segment_length, __ATOMIC_RELAXED);
}

CORE_INLINE void data_put_remote(DAT_RMR_TRIPLET *to, const DAT_RMR_TRIPLET *from)
{
	__atomic_store_n(&to->rmr_context, from->rmr_context, __ATOMIC_RELAXED);
	__atomic_store_n(&to->target_address, from->target_address, __ATOMIC_RELAXED);
	__atomic_store_n(&to->segment_length, from->segment_length, __ATOMIC_RELAXED);
}

/* The flags that all endpoints take. */
#define DATA_FAST_FLAGS                                                                            \
	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |                       \
	 DAT_COMPLETION_BARRIER_FENCE_FLAG)

/* One segment, and no flag but these; in one comparison. */
CORE_INLINE bool data_is_plain(DAT_COUNT segments, DAT_COMPLETION_FLAGS flags, unsigned int allowed)
{
	return (((unsigned int)segments ^ 1u) | ((unsigned int)flags & ~allowed)) == 0;
}

/* A Send or an RDMA Write, its endpoint entered. False: it is for the general path. */
CORE_INLINE bool data_request(struct core_ep *ep, enum core_op op, DAT_COUNT segments,
			      const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			      const DAT_RMR_TRIPLET *target, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET segment;
	DAT_RMR_TRIPLET remote;
	struct core_req *req;

	if (!data_is_plain(segments, flags, DATA_FAST_FLAGS) || !iov ||
	    ep->req.tail - ep->req.head >= ep->req.capacity)
		return false;
	data_copy_local(&segment, iov);
	if (!core_mem_is_known(&ep->known_source, &segment) ||
	    segment.segment_length - 1 >= ep->known_source.most)
		return false;
	if (op == CORE_OP_RDMA_WRITE) {
		data_copy_remote(&remote, target);
		if (remote.segment_length < segment.segment_length)
			return false;
	}
	req = core_req_take(ep, op, flags);
	req->len = segment.segment_length;
	req->segments = 1;
	data_put_local(req->iov, &segment);
	if (op == CORE_OP_RDMA_WRITE)
		data_put_remote(&req->remote, &remote);
	req->cookie = cookie;
	if (__builtin_expect(!transport_post_fast(ep, req, op, &segment), false)) {
		core_req_forget_transport(req);
		transport_this->post_request(ep, req);
	}
	return true;
}

DAT_RETURN core_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			     DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			     DAT_COMPLETION_FLAGS completion_flags)
{
	struct core_ep *ep = core_handle_enter_fast(ep_handle, DAT_HANDLE_TYPE_EP);
	bool is_posted;

	if (ep) {
		is_posted = data_request(ep, CORE_OP_SEND, num_segments, local_iov, user_cookie,
					 NULL, completion_flags);
		core_lock_leave(&((struct core_handle *)ep_handle)->lock);
		if (is_posted)
			return DAT_SUCCESS;
	}
	return core_ep_post_send_any(ep_handle, num_segments, local_iov, user_cookie,
				     completion_flags);
}

DAT_RETURN core_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				   DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				   const DAT_RMR_TRIPLET *remote_iov,
				   DAT_COMPLETION_FLAGS completion_flags)
{
	struct core_ep *ep = core_handle_enter_fast(ep_handle, DAT_HANDLE_TYPE_EP);
	bool is_posted;

	if (ep) {
		is_posted =
			remote_iov && data_request(ep, CORE_OP_RDMA_WRITE, num_segments, local_iov,
						   user_cookie, remote_iov, completion_flags);
		core_lock_leave(&((struct core_handle *)ep_handle)->lock);
		if (is_posted)
			return DAT_SUCCESS;
	}
	return core_ep_post_rdma_write_any(ep_handle, num_segments, local_iov, user_cookie,
					   remote_iov, completion_flags);
}

/* As data_request. An endpoint with an SRQ has no room for a Receive of its own. */
CORE_INLINE bool data_recv(struct core_ep *ep, DAT_COUNT segments, const DAT_LMR_TRIPLET *iov,
			   DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct core_recv_queue *queue = &ep->recv;
	DAT_LMR_TRIPLET segment;
	struct core_wqe *wqe;

	if (!data_is_plain(segments, flags, 0) || !iov ||
	    queue->tail - queue->head >= queue->capacity)
		return false;
	data_copy_local(&segment, iov);
	if (!core_mem_is_known(&ep->known_target, &segment))
		return false;
	wqe = &queue->slots[queue->tail & queue->mask];
	queue->tail++;
	wqe->segments = 1;
	wqe->len = segment.segment_length;
	wqe->cookie = cookie;
	wqe->flags = DAT_COMPLETION_DEFAULT_FLAG;
	data_put_local(wqe->iov, &segment);
	if (__builtin_expect(!transport_recv_fast(ep, wqe), false))
		transport_this->post_recv(ep);
	return true;
}

DAT_RETURN core_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			     DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			     DAT_COMPLETION_FLAGS completion_flags)
{
	struct core_ep *ep = core_handle_enter_fast(ep_handle, DAT_HANDLE_TYPE_EP);
	bool is_posted;

	if (ep) {
		is_posted = data_recv(ep, num_segments, local_iov, user_cookie, completion_flags);
		core_lock_leave(&((struct core_handle *)ep_handle)->lock);
		if (is_posted)
			return DAT_SUCCESS;
	}
	return core_ep_post_recv_any(ep_handle, num_segments, local_iov, user_cookie,
				     completion_flags);
}

DAT_RETURN core_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	struct core_evd *evd = core_handle_enter_fast(evd_handle, DAT_HANDLE_TYPE_EVD);
	enum transport_poll found = TRANSPORT_POLL_GENERAL;

	if (evd) {
		if (event && evd->head != evd->tail)
			return core_evd_take_queued(evd, event);
		if (event)
			found = transport_poll(evd, event);
		core_lock_leave(&((struct core_handle *)evd_handle)->lock);
	}
	if (__builtin_expect(found == TRANSPORT_POLL_FOUND, true))
		return DAT_SUCCESS;
	return found == TRANSPORT_POLL_EMPTY ? (DAT_RETURN)DAT_QUEUE_EMPTY
					     : core_evd_dequeue_any(evd_handle, event);
}

#endif
