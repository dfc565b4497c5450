// SPDX-License-Identifier: BSD-2-Clause
/*
 * Posting data transfers. Each call checks its parameters (local bounds, zone and privileges
 * included), then the state, then the room in the queue, and only then takes a slot; what it
 * refuses leaves no trace. In the disconnected state an accepted post is flushed at once.
 *
 * The fast path takes one segment in the region of the post before it, on an endpoint that has no
 * reason against that path (ep.h). It makes the same checks in one go and reports nothing: what
 * fails one of them goes to the general path, which finds out what is wrong.
 */
#include <string.h>

#include "core/calls.h"
#include "core/ep.h"
#include "core/ep_state.h"
#include "core/evd.h"
#include "core/status.h"
#include "core/transport.h"

/* One posting call, with the positions of its parameters. */
struct dto_post {
	enum core_op op;
	DAT_COUNT segments;
	const DAT_LMR_TRIPLET *iov;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	const DAT_RMR_TRIPLET *remote;
	enum core_mem_use use;
	DAT_COUNT iov_max;	/* segments allowed: dto_limits */
	DAT_VLEN len_max;	/* bytes allowed: likewise */
	unsigned int flags_arg; /* position of completion_flags */
	DAT_VLEN len;		/* out: bytes in the local segments */
};

static DAT_RETURN dto_check_flags(const struct core_ep *ep, const struct dto_post *post)
{
	DAT_COMPLETION_FLAGS all =
		DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
		DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;

	if (post->flags & ~all)
		return core_bad_arg(post->flags_arg);
	if ((post->flags & DAT_COMPLETION_UNSIGNALLED_FLAG) &&
	    !(ep->attr.request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG))
		return core_bad_arg(post->flags_arg);
	return DAT_SUCCESS;
}

/* None, or several. */
static DAT_RETURN dto_check_many(struct core_ep *ep, const DAT_LMR_TRIPLET *iov, DAT_COUNT count,
				 enum core_mem_use use, DAT_VLEN *len_out)
{
	DAT_VLEN len = 0;

	for (DAT_COUNT i = 0; i < count; i++) {
		DAT_RETURN ret = core_mem_check(&ep->ia->mem, &iov[i], ep->pz, use);

		if (ret != DAT_SUCCESS)
			return ret;
		/* no single segment exceeds an address space, but many together could wrap */
		if (iov[i].segment_length > UINT64_MAX - len)
			return core_bad_arg(3);
		len += iov[i].segment_length;
	}
	*len_out = len;
	return DAT_SUCCESS;
}

/* The next post is likely to be in the same region. */
static void dto_know(struct core_ep *ep, const struct dto_post *post)
{
	core_mem_know(&ep->ia->mem, post->iov->lmr_context,
		      post->use == CORE_MEM_SOURCE ? &ep->known_source : &ep->known_target);
}

static DAT_RETURN dto_check_segments(struct core_ep *ep, struct dto_post *post)
{
	DAT_RETURN ret;

	if (post->segments < 0 || post->segments > post->iov_max)
		return core_bad_arg(2);
	if (post->segments && !post->iov)
		return core_bad_arg(3);
	if (post->segments != 1)
		return dto_check_many(ep, post->iov, post->segments, post->use, &post->len);
	post->len = post->iov->segment_length;
	ret = core_mem_check(&ep->ia->mem, post->iov, ep->pz, post->use);
	if (ret == DAT_SUCCESS && post->len)
		dto_know(ep, post);
	return ret;
}

static DAT_RETURN dto_check_lengths(const struct dto_post *post)
{
	if (post->op == CORE_OP_RDMA_READ) {
		if (post->remote->segment_length > post->len)
			return core_error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
		return post->remote->segment_length > post->len_max ? core_bad_arg(5) : DAT_SUCCESS;
	}
	if (post->len > post->len_max)
		return core_bad_arg(3);
	if (post->op == CORE_OP_RDMA_WRITE && post->remote->segment_length < post->len)
		return core_error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

static DAT_RETURN dto_check_room(const struct core_ep *ep, const struct dto_post *post)
{
	bool is_read = post->op == CORE_OP_RDMA_READ;

	if (__builtin_expect(ep->req.tail - ep->req.head >= ep->req.capacity, false))
		return core_no_resources(DAT_RESOURCE_TEP);
	if (is_read && !ep->attr.max_rdma_read_out) /* DTO-109 */
		return core_no_resources(DAT_RESOURCE_CREDITS);
	if (is_read && ep->state == DAT_EP_STATE_CONNECTED && !ep->peer_read_in) /* DTO-110 */
		return core_no_resources(DAT_RESOURCE_CREDITS);
	return DAT_SUCCESS;
}

uint32_t core_copy_segments(DAT_LMR_TRIPLET *to, const DAT_LMR_TRIPLET *from, DAT_COUNT count,
			    DAT_VLEN len)
{
	uint32_t used = 0;

	for (DAT_COUNT i = 0; i < count && len; i++) {
		if (!from[i].segment_length)
			continue;
		to[used] = from[i];
		if (to[used].segment_length > len)
			to[used].segment_length = len;
		len -= to[used].segment_length;
		used++;
	}
	return used;
}

/*
 * Word by word, as the consumer may have written it just now: a longer load would wait until those
 * stores, and all before them, have left the processor. Nor is the copy returned, which would be
 * one more, in longer pieces.
 */
CORE_INLINE void dto_copy_local(DAT_LMR_TRIPLET *to, const DAT_LMR_TRIPLET *from)
{
	to->lmr_context = __atomic_load_n(&from->lmr_context, __ATOMIC_RELAXED);
	to->virtual_address = __atomic_load_n(&from->virtual_address, __ATOMIC_RELAXED);
	to->segment_length = __atomic_load_n(&from->segment_length, __ATOMIC_RELAXED);
}

/* Such a copy goes on from registers, word by word as well. */
CORE_INLINE void dto_put_local(DAT_LMR_TRIPLET *to, const DAT_LMR_TRIPLET *from)
{
	__atomic_store_n(&to->lmr_context, from->lmr_context, __ATOMIC_RELAXED);
	__atomic_store_n(&to->virtual_address, from->virtual_address, __ATOMIC_RELAXED);
	__atomic_store_n(&to->segment_length, from->segment_length, __ATOMIC_RELAXED);
}

CORE_INLINE void dto_put_remote(DAT_RMR_TRIPLET *to, const DAT_RMR_TRIPLET *from)
{
	__atomic_store_n(&to->rmr_context, from->rmr_context, __ATOMIC_RELAXED);
	__atomic_store_n(&to->target_address, from->target_address, __ATOMIC_RELAXED);
	__atomic_store_n(&to->segment_length, from->segment_length, __ATOMIC_RELAXED);
}

CORE_INLINE void dto_copy_remote(DAT_RMR_TRIPLET *to, const DAT_RMR_TRIPLET *from)
{
	to->rmr_context = __atomic_load_n(&from->rmr_context, __ATOMIC_RELAXED);
	to->target_address = __atomic_load_n(&from->target_address, __ATOMIC_RELAXED);
	to->segment_length = __atomic_load_n(&from->segment_length, __ATOMIC_RELAXED);
}

static struct core_req *dto_take_slot(struct core_ep *ep, const struct dto_post *post)
{
	struct core_req *req = core_req_take(ep, post->op, post->flags);

	req->len = post->op == CORE_OP_RDMA_READ ? post->remote->segment_length : post->len;
	req->segments = core_copy_segments(req->iov, post->iov, post->segments, req->len);
	if (post->remote)
		req->remote = *post->remote;
	req->cookie = post->cookie;
	return req;
}

static void dto_limits(const struct core_ep *ep, struct dto_post *post)
{
	/* EP-RDMAR-10, EP-RDMAW-11: the endpoint's own max_rdma_size is no limit */
	post->len_max =
		post->op == CORE_OP_SEND ? ep->attr.max_message_size : ep->ia->attr.max_rdma_size;
	if (post->op == CORE_OP_SEND)
		post->iov_max = ep->attr.max_request_iov;
	else if (post->op == CORE_OP_RDMA_WRITE)
		post->iov_max = ep->attr.max_rdma_write_iov;
	else
		post->iov_max = ep->attr.max_rdma_read_iov;
}

static DAT_RETURN dto_post_locked(struct core_ep *ep, struct dto_post *post)
{
	enum core_ep_verdict verdict = core_ep_asks(ep, CORE_CALL_POST_REQUEST);
	struct core_req *req;
	DAT_RETURN ret;

	dto_limits(ep, post);
	ret = dto_check_flags(ep, post);
	if (ret == DAT_SUCCESS)
		ret = dto_check_segments(ep, post);
	if (ret == DAT_SUCCESS)
		ret = dto_check_lengths(post);
	if (ret != DAT_SUCCESS)
		return ret;
	if (verdict == CORE_EP_NO)
		return core_ep_bad_state(ep->state);
	ret = dto_check_room(ep, post);
	if (ret != DAT_SUCCESS)
		return ret;
	req = dto_take_slot(ep, post);
	if (verdict == CORE_EP_FLUSH)
		core_req_done(ep, req, DAT_DTO_ERR_FLUSHED, 0);
	else
		transport_this->post_request(ep, req);
	return DAT_SUCCESS;
}

/*
 * The queue is full of what may be done by now: a consumer that posts until there is room again,
 * and asks for no completions, need not wait until the transport's own thread finds that out. The
 * endpoint is locked, but not meanwhile; NULL: it is gone.
 */
__attribute__((noinline)) static struct core_ep *dto_drive(struct core_ep *ep)
{
	struct core_ref ref = core_handle_ref(ep->cell);
	struct core_ia *ia = core_ia_enter(ep->ia->cell); /* it must not vanish either */

	if (!ia)
		return ep;
	core_handle_unlock(ref.cell);
	(void)ia->ops->progress(ia);
	core_ia_leave(ia);
	return core_handle_lock_ref(ref, DAT_HANDLE_TYPE_EP);
}

/* The general path of a post. */
static DAT_RETURN dto_post(DAT_EP_HANDLE handle, struct dto_post *post)
{
	struct core_ep *ep = core_handle_lock_inline(handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN full = core_no_resources(DAT_RESOURCE_TEP);
	bool has_driven = false;
	DAT_RETURN ret;

	if (!ep)
		return core_bad_handle(DAT_INVALID_HANDLE_EP);
	if (post->op != CORE_OP_SEND && !post->remote) {
		core_handle_unlock(ep->cell);
		return core_bad_arg(5);
	}
	while ((ret = dto_post_locked(ep, post)) == full && !has_driven) {
		has_driven = true;
		ep = dto_drive(ep);
		if (!ep)
			return core_bad_handle(DAT_INVALID_HANDLE_EP);
	}
	core_handle_unlock(ep->cell);
	return ret;
}

/* The flags that all endpoints take. */
#define DTO_FAST_FLAGS                                                                             \
	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |                       \
	 DAT_COMPLETION_BARRIER_FENCE_FLAG)

/*
 * The fast path of a Send or an RDMA Write, its endpoint entered. False: it is for the general
 * path. No dto_post, since that would have to be in memory.
 */
CORE_INLINE bool request_fast(struct core_ep *ep, enum core_op op, DAT_COUNT segments,
			      const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			      const DAT_RMR_TRIPLET *target, DAT_COMPLETION_FLAGS flags)
{
	bool is_send = op == CORE_OP_SEND;
	DAT_VLEN len_max = is_send ? ep->attr.max_message_size : ep->ia->attr.max_rdma_size;
	DAT_LMR_TRIPLET segment;
	DAT_RMR_TRIPLET remote;
	struct core_req *req;

	if (segments != 1 || !iov || (flags & ~DTO_FAST_FLAGS) ||
	    ep->req.tail - ep->req.head >= ep->req.capacity)
		return false;
	dto_copy_local(&segment, iov);
	if (!core_mem_is_known(&ep->known_source, segment.lmr_context, segment.virtual_address,
			       segment.segment_length, len_max))
		return false;
	if (!is_send) {
		dto_copy_remote(&remote, target);
		if (remote.segment_length < segment.segment_length)
			return false;
	}
	req = core_req_take(ep, op, flags);
	req->len = segment.segment_length;
	req->segments = 1;
	dto_put_local(req->iov, &segment);
	if (!is_send)
		dto_put_remote(&req->remote, &remote);
	req->cookie = cookie;
	if (!transport_this->post_fast(ep, req))
		transport_this->post_request(ep, req);
	return true;
}

__attribute__((noinline)) static DAT_RETURN send_any(DAT_EP_HANDLE handle, DAT_COUNT segments,
						     const DAT_LMR_TRIPLET *iov,
						     DAT_DTO_COOKIE cookie,
						     DAT_COMPLETION_FLAGS flags)
{
	return dto_post(handle, &(struct dto_post){.op = CORE_OP_SEND,
						   .segments = segments,
						   .iov = iov,
						   .cookie = cookie,
						   .flags = flags,
						   .use = CORE_MEM_SOURCE,
						   .flags_arg = 5});
}

DAT_RETURN core_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			     DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			     DAT_COMPLETION_FLAGS completion_flags)
{
	struct core_ep *ep = core_handle_enter_fast(ep_handle, DAT_HANDLE_TYPE_EP);

	if (ep) {
		if (request_fast(ep, CORE_OP_SEND, num_segments, local_iov, user_cookie, NULL,
				 completion_flags)) {
			core_lock_leave(&ep->cell->lock);
			return DAT_SUCCESS;
		}
		core_lock_leave(&ep->cell->lock);
	}
	return send_any(ep_handle, num_segments, local_iov, user_cookie, completion_flags);
}

DAT_RETURN core_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				  DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				  const DAT_RMR_TRIPLET *remote_iov,
				  DAT_COMPLETION_FLAGS completion_flags)
{
	return dto_post(ep_handle, &(struct dto_post){.op = CORE_OP_RDMA_READ,
						      .segments = num_segments,
						      .iov = local_iov,
						      .cookie = user_cookie,
						      .flags = completion_flags,
						      .remote = remote_iov,
						      .use = CORE_MEM_TARGET,
						      .flags_arg = 6});
}

__attribute__((noinline)) static DAT_RETURN
write_any(DAT_EP_HANDLE handle, DAT_COUNT segments, const DAT_LMR_TRIPLET *iov,
	  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	return dto_post(handle, &(struct dto_post){.op = CORE_OP_RDMA_WRITE,
						   .segments = segments,
						   .iov = iov,
						   .cookie = cookie,
						   .flags = flags,
						   .remote = remote,
						   .use = CORE_MEM_SOURCE,
						   .flags_arg = 6});
}

DAT_RETURN core_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				   DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				   const DAT_RMR_TRIPLET *remote_iov,
				   DAT_COMPLETION_FLAGS completion_flags)
{
	struct core_ep *ep = core_handle_enter_fast(ep_handle, DAT_HANDLE_TYPE_EP);

	if (ep) {
		if (remote_iov && request_fast(ep, CORE_OP_RDMA_WRITE, num_segments, local_iov,
					       user_cookie, remote_iov, completion_flags)) {
			core_lock_leave(&ep->cell->lock);
			return DAT_SUCCESS;
		}
		core_lock_leave(&ep->cell->lock);
	}
	return write_any(ep_handle, num_segments, local_iov, user_cookie, remote_iov,
			 completion_flags);
}

/* --- Receives --- */

static DAT_RETURN recv_check(struct core_ep *ep, struct dto_post *post)
{
	if (post->flags & ~DAT_COMPLETION_UNSIGNALLED_FLAG)
		return core_bad_arg(5);
	if (post->flags && ep->attr.recv_completion_flags != DAT_COMPLETION_UNSIGNALLED_FLAG)
		return core_bad_arg(5);
	return dto_check_segments(ep, post);
}

/* The general path; unlocks the endpoint. */
static DAT_RETURN recv_post(struct core_ep *ep, struct dto_post *post)
{
	struct core_recv_queue *queue = &ep->recv;
	struct core_wqe *wqe;
	DAT_RETURN ret = ep->srq ? core_bad_arg(1) /* EP-CRSRQ-04 */ : recv_check(ep, post);

	if (ret == DAT_SUCCESS && (!ep->recv_evd || queue->tail - queue->head >= queue->capacity))
		ret = core_no_resources(DAT_RESOURCE_TEP);
	if (ret == DAT_SUCCESS) {
		wqe = &queue->slots[queue->tail++ & queue->mask];
		wqe->segments = core_copy_segments(wqe->iov, post->iov, post->segments, post->len);
		wqe->len = post->len;
		wqe->cookie = post->cookie;
		wqe->flags = post->flags;
		if (core_ep_asks(ep, CORE_CALL_POST_RECV) == CORE_EP_FLUSH)
			core_recv_done(ep, DAT_DTO_ERR_FLUSHED, 0, false);
		else if (core_ep_watch(ep))
			transport_this->post_recv(ep);
	}
	core_handle_unlock(ep->cell);
	return ret;
}

__attribute__((noinline)) static DAT_RETURN recv_any(DAT_EP_HANDLE handle, DAT_COUNT segments,
						     const DAT_LMR_TRIPLET *iov,
						     DAT_DTO_COOKIE cookie,
						     DAT_COMPLETION_FLAGS flags)
{
	struct core_ep *ep = core_handle_lock_inline(handle, DAT_HANDLE_TYPE_EP);

	if (!ep)
		return core_bad_handle(DAT_INVALID_HANDLE_EP);
	return recv_post(ep, &(struct dto_post){.segments = segments,
						.iov = iov,
						.cookie = cookie,
						.flags = flags,
						.use = CORE_MEM_TARGET,
						.iov_max = ep->attr.max_recv_iov});
}

/* As request_fast. An endpoint with an SRQ has no room for a Receive of its own. */
CORE_INLINE bool recv_fast(struct core_ep *ep, DAT_COUNT segments, const DAT_LMR_TRIPLET *iov,
			   DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct core_recv_queue *queue = &ep->recv;
	DAT_LMR_TRIPLET segment;
	struct core_wqe *wqe;

	if (segments != 1 || !iov || flags || queue->tail - queue->head >= queue->capacity)
		return false;
	dto_copy_local(&segment, iov);
	if (!core_mem_is_known(&ep->known_target, segment.lmr_context, segment.virtual_address,
			       segment.segment_length, UINT64_MAX))
		return false;
	wqe = &queue->slots[queue->tail & queue->mask];
	queue->tail++;
	wqe->segments = 1;
	wqe->len = segment.segment_length;
	wqe->cookie = cookie;
	wqe->flags = 0;
	dto_put_local(wqe->iov, &segment);
	if (!transport_this->recv_fast(ep, wqe))
		transport_this->post_recv(ep);
	return true;
}

DAT_RETURN core_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			     DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			     DAT_COMPLETION_FLAGS completion_flags)
{
	struct core_ep *ep = core_handle_enter_fast(ep_handle, DAT_HANDLE_TYPE_EP);

	if (ep) {
		if (recv_fast(ep, num_segments, local_iov, user_cookie, completion_flags)) {
			core_lock_leave(&ep->cell->lock);
			return DAT_SUCCESS;
		}
		core_lock_leave(&ep->cell->lock);
	}
	return recv_any(ep_handle, num_segments, local_iov, user_cookie, completion_flags);
}
