// SPDX-License-Identifier: BSD-2-Clause
/*
 * The slow path of posting data transfers; data_path.h has the fast path. Each call checks its
 * parameters (including local bounds, zone and privileges), then the state, then the room in the
 * queue, and only then takes a slot. A refused post changes nothing. In the disconnected state an
 * accepted post is flushed at once.
 */
#include <inttypes.h>
#include <string.h>

#include "core/base/calls.h"
#include "core/base/probe.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/ep/dto.h"
#include "core/ep/ep_queue.h"
#include "core/ep/ep.h"
#include "core/ep/ep_state.h"
#include "core/event/evd.h"

/* Bytes of a Receive on the fast path: devices store the length in 31 bits. */
#define DTO_FAST_RECV_MAX 0x7fffffffu

/* One posting call. */
struct dto_post {
	enum core_op op;
	DAT_COUNT segments;
	const DAT_LMR_TRIPLET *iov;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	const DAT_RMR_TRIPLET *remote;
	enum core_mem_use use;
	DAT_COUNT iov_max;	 /* segments allowed; requests: set by dto_limits() */
	DAT_VLEN len_max;	 /* bytes allowed; set by dto_limits() */
	const char *call;	 /* for messages */
	const char *call_1;	 /* the name of an extension in DAT 1.2; NULL: the same */
	unsigned int flags_arg;	 /* number of the parameter completion_flags */
	unsigned int iov_arg;	 /* of the local segment; 0: 3 */
	unsigned int remote_arg; /* of the remote one; 0: 5 */
	uint32_t takes;		 /* what the peer must take (enum transport_takes) */
	uint32_t immediate;
	uint64_t operand, compare; /* of an atomic operation */
	DAT_VLEN len;		   /* out: bytes in the local segments */
};

static unsigned int dto_remote_arg(const struct dto_post *post)
{
	return post->remote_arg ? post->remote_arg : 5;
}

CORE_COLD static DAT_RETURN dto_bad_flags(const struct dto_post *post, DAT_COMPLETION_FLAGS allowed)
{
	const struct core_arg arg = {post->call, "completion_flags", post->flags_arg};

	return core_bad_bits(&arg, post->flags, allowed);
}

CORE_COLD static DAT_RETURN dto_bad_count(const struct dto_post *post)
{
	const struct core_arg arg = {post->call, "num_segments", 2};

	return core_bad_range(&arg, post->segments, 0, post->iov_max);
}

CORE_COLD static DAT_RETURN dto_no_segments(const struct dto_post *post)
{
	const struct core_arg arg = {post->call, "local_iov", 3};

	return core_bad_null(&arg);
}

CORE_COLD static DAT_RETURN dto_too_long(const struct dto_post *post, const char *name,
					 unsigned int number, DAT_VLEN len)
{
	const struct core_arg arg = {post->call, name, number};

	return core_bad_arg(&arg, "%" PRIu64 " bytes exceed the limit of %" PRIu64, len,
			    post->len_max);
}

/* DAT_LENGTH_ERROR: the two sides of an RDMA operation do not match. */
CORE_COLD static DAT_RETURN dto_mismatch(const struct dto_post *post)
{
	const struct core_arg arg = {post->call, "remote_iov", dto_remote_arg(post)};

	(void)core_bad_arg(&arg, "segment_length %" PRIu64 " does not suit %" PRIu64 " local bytes",
			   post->remote->segment_length, post->len);
	return core_error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
}

CORE_COLD static DAT_RETURN dto_bad_ep(const struct dto_post *post, DAT_EP_HANDLE handle)
{
	const struct core_arg arg = {post->call, "ep_handle", 1};

	return core_bad_handle(&arg, DAT_INVALID_HANDLE_EP, handle);
}

static DAT_RETURN dto_check_flags(const struct core_ep *ep, const struct dto_post *post)
{
	DAT_COMPLETION_FLAGS all =
		DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
		DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;

	if (!(ep->attr.request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG))
		all &= ~(DAT_COMPLETION_FLAGS)DAT_COMPLETION_UNSIGNALLED_FLAG;
	return post->flags & ~all ? dto_bad_flags(post, all) : DAT_SUCCESS;
}

/* Checks any number of segments. */
static DAT_RETURN dto_check_iov(struct core_ep *ep, struct dto_post *post)
{
	const DAT_LMR_TRIPLET *iov = post->iov;
	DAT_VLEN len = 0;

	for (DAT_COUNT i = 0; i < post->segments; i++) {
		DAT_RETURN ret = core_mem_check(ep->ia->mem, &iov[i], ep->pz, post->use);

		if (ret != DAT_SUCCESS)
			return ret;
		/* a region is mapped, so it has fewer than 2^57 bytes: the sum does not wrap */
		len += iov[i].segment_length;
	}
	post->len = len;
	return DAT_SUCCESS;
}

/* Remembers the region for the fast path: the next post is likely to use it, too. */
static void dto_cache_region(struct core_ep *ep, const struct dto_post *post)
{
	DAT_VLEN send_max = ep->attr.max_message_size, rdma_max = ep->ia->attr.max_rdma_size;
	struct core_mem_cache *target = &ep->cached_target;
	uint32_t key = post->iov->lmr_context;

	if (post->use == CORE_MEM_SOURCE) {
		core_mem_cache_fill(ep->ia->mem, key, &ep->cached_source);
		/* Send and RDMA Write share the limit */
		ep->cached_source.most = send_max < rdma_max ? send_max : rdma_max;
	} else {
		core_mem_cache_fill(ep->ia->mem, key, target);
		core_mem_cache_shrink(target, post->iov->virtual_address, DTO_FAST_RECV_MAX);
		target->most = rdma_max; /* of an RDMA Read; the range limits a Receive */
	}
}

static DAT_RETURN dto_check_segments(struct core_ep *ep, struct dto_post *post)
{
	DAT_RETURN ret;

	if (post->segments < 0 || post->segments > post->iov_max)
		return dto_bad_count(post);
	if (post->segments && !post->iov)
		return dto_no_segments(post);
	if (post->segments != 1)
		return dto_check_iov(ep, post);
	post->len = post->iov->segment_length;
	ret = core_mem_check(ep->ia->mem, post->iov, ep->pz, post->use);
	if (ret == DAT_SUCCESS && post->len)
		dto_cache_region(ep, post);
	return ret;
}

/* D2-ATOM-05 to D2-ATOM-10: 8 bytes of one segment on either side. */
static DAT_RETURN dto_check_atomic(struct core_ep *ep, struct dto_post *post)
{
	const struct core_arg local = {post->call, "local_iov", post->iov_arg};
	const struct core_arg remote = {post->call, "remote_iov", post->remote_arg};
	DAT_LMR_TRIPLET word;

	if (!post->iov)
		return core_bad_null(&local);
	if (post->iov->segment_length < sizeof(uint64_t) ||
	    post->remote->segment_length < sizeof(uint64_t)) {
		(void)core_bad_arg(&remote, "or local_iov: less than 8 bytes");
		return core_error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	}
	if (post->remote->target_address % sizeof(uint64_t))
		return core_bad_arg(&remote, "0x%" PRIx64 " is not a multiple of 8",
				    post->remote->target_address);
	word = *post->iov;
	word.segment_length = sizeof(uint64_t);
	post->len = sizeof(uint64_t);
	return core_mem_check(ep->ia->mem, &word, ep->pz, post->use);
}

static DAT_RETURN dto_check_lengths(const struct dto_post *post)
{
	if (post->op == CORE_OP_RDMA_READ) {
		if (post->remote->segment_length > post->len)
			return dto_mismatch(post);
		if (post->remote->segment_length > post->len_max)
			return dto_too_long(post, "remote_iov", 5, post->remote->segment_length);
		return DAT_SUCCESS;
	}
	if (post->len > post->len_max)
		return dto_too_long(post, "local_iov", 3, post->len);
	if (core_op_is_write(post->op) && post->remote->segment_length < post->len)
		return dto_mismatch(post);
	return DAT_SUCCESS;
}

static DAT_RETURN dto_check_buffers(struct core_ep *ep, struct dto_post *post)
{
	DAT_RETURN ret = dto_check_segments(ep, post);

	return ret == DAT_SUCCESS ? dto_check_lengths(post) : ret;
}

/* What the peer does not take, or the path does not carry (D2-IMM-17, D2-ATOM-26). */
static DAT_RETURN dto_check_peer(const struct core_ep *ep, const struct dto_post *post)
{
	const struct core_arg arg = {post->call, "ep_handle", 1};

	if (ep->state != DAT_EP_STATE_CONNECTED || (ep->peer_takes & post->takes) == post->takes)
		return DAT_SUCCESS;
	return core_unsupported(&arg, "the peer or the path to it does not have this operation");
}

static DAT_RETURN dto_check_room(const struct core_ep *ep, const struct dto_post *post)
{
	bool is_read = core_op_is_read(post->op);

	if (__builtin_expect(core_req_is_full(&ep->req), false))
		return core_no_resources(DAT_RESOURCE_TEP);
	if (is_read && !ep->attr.max_rdma_read_out) /* DTO-109 */
		return core_no_resources(DAT_RESOURCE_CREDITS);
	if (is_read && ep->state == DAT_EP_STATE_CONNECTED && !ep->peer_read_in) /* DTO-110 */
		return core_no_resources(DAT_RESOURCE_CREDITS);
	return DAT_SUCCESS;
}

static struct core_req *dto_take_slot(struct core_ep *ep, const struct dto_post *post)
{
	const struct core_req_queue *queue = &ep->req;
	struct core_req *req = core_req_take(ep, post->op, post->flags);

	core_req_clear_transport(req);
	req->len = post->op == CORE_OP_RDMA_READ ? post->remote->segment_length : post->len;
	core_req_count(ep, core_op_counted(post->op), req->len);
	if (post->op > CORE_OP_BIND && post->op <= CORE_OP_COMPARE_SWAP)
		ep->counts.apart[post->op - CORE_OP_WRITE_IMMEDIATE]++;
	/* as core_recv_queue_slot */
	req->iov = post->segments > 1 ? queue->iov + (req->sequence & queue->mask) * queue->iov_max
				      : &req->first;
	req->segments = core_copy_segments(req->iov, post->iov, post->segments, req->len);
	if (post->remote)
		req->remote = *post->remote;
	if (post->op == CORE_OP_WRITE_IMMEDIATE) {
		ep->counts.immediate_bytes += req->len;
		*core_req_immediate(req) = post->immediate;
	}
	if (core_op_is_atomic(post->op)) {
		*core_req_operand(req) = post->operand;
		req->compare = post->compare;
	}
	req->cookie = post->cookie;
	CORE_PROBE4(request_post, ep->cell, req->op, req->cookie.as_64, req->len);
	return req;
}

static void dto_limits(const struct core_ep *ep, struct dto_post *post)
{
	/* EP-RDMAR-10, EP-RDMAW-11: the endpoint's max_rdma_size does not limit RDMA */
	post->len_max =
		core_op_is_send(post->op) ? ep->attr.max_message_size : ep->ia->attr.max_rdma_size;
	if (core_op_is_send(post->op))
		post->iov_max = ep->attr.max_request_iov;
	else if (core_op_is_write(post->op))
		post->iov_max = ep->attr.max_rdma_write_iov;
	else
		post->iov_max = ep->attr.max_rdma_read_iov;
}

static DAT_RETURN dto_post_locked(struct core_ep *ep, struct dto_post *post)
{
	enum core_ep_verdict verdict = core_ep_check_call(ep, CORE_CALL_POST_REQUEST);
	struct core_req *req;
	DAT_RETURN ret;

	dto_limits(ep, post);
	ret = dto_check_flags(ep, post);
	if (ret == DAT_SUCCESS)
		ret = core_op_is_atomic(post->op) ? dto_check_atomic(ep, post)
						  : dto_check_buffers(ep, post);
	if (ret == DAT_SUCCESS)
		ret = dto_check_peer(ep, post);
	if (ret != DAT_SUCCESS)
		return ret;
	if (verdict == CORE_EP_NO)
		return core_ep_bad_state(ep);
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

static DAT_RETURN dto_post(DAT_EP_HANDLE handle, struct dto_post *post)
{
	struct core_ep *ep = core_handle_lock_inline(handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN full = core_no_resources(DAT_RESOURCE_TEP);
	bool has_progressed = false;
	DAT_RETURN ret;

	if (!ep)
		return dto_bad_ep(post, handle);
	if (post->call_1 && ep->ia->adapter->front->major == DAT_VERSION_MAJOR)
		post->call = post->call_1;
	if (post->op != CORE_OP_SEND && !post->remote) {
		const struct core_arg arg = {post->call, "remote_iov", dto_remote_arg(post)};

		core_handle_unlock(ep->cell);
		return core_bad_null(&arg);
	}
	while ((ret = dto_post_locked(ep, post)) == full && !has_progressed) {
		has_progressed = true;
		ep = core_ep_drive(ep);
		if (!ep)
			return dto_bad_ep(post, handle);
	}
	core_handle_unlock(ep->cell);
	return ret;
}

DAT_RETURN core_ep_post_send_slow(DAT_EP_HANDLE handle, DAT_COUNT segments,
				  const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
				  DAT_COMPLETION_FLAGS flags)
{
	return dto_post(handle, &(struct dto_post){.op = CORE_OP_SEND,
						   .segments = segments,
						   .iov = iov,
						   .cookie = cookie,
						   .flags = flags,
						   .use = CORE_MEM_SOURCE,
						   .call = "dat_ep_post_send",
						   .flags_arg = 5});
}

DAT_RETURN core_ep_post_rdma_read_slow(DAT_EP_HANDLE handle, DAT_COUNT segments,
				       const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
				       const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	return dto_post(handle, &(struct dto_post){.op = CORE_OP_RDMA_READ,
						   .segments = segments,
						   .iov = iov,
						   .cookie = cookie,
						   .flags = flags,
						   .remote = remote,
						   .use = CORE_MEM_TARGET,
						   .call = "dat_ep_post_rdma_read",
						   .flags_arg = 6});
}

DAT_RETURN core_ep_post_rdma_write_slow(DAT_EP_HANDLE handle, DAT_COUNT segments,
					const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	return dto_post(handle, &(struct dto_post){.op = CORE_OP_RDMA_WRITE,
						   .segments = segments,
						   .iov = iov,
						   .cookie = cookie,
						   .flags = flags,
						   .remote = remote,
						   .use = CORE_MEM_SOURCE,
						   .call = "dat_ep_post_rdma_write",
						   .flags_arg = 6});
}

/* --- operations of later generations --- */

DAT_RETURN core_ep_post_send_invalidate(DAT_EP_HANDLE handle, DAT_COUNT segments,
					const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT context)
{
	const DAT_RMR_TRIPLET remote = {.rmr_context = context};

	return dto_post(handle, &(struct dto_post){.op = CORE_OP_SEND_INVALIDATE,
						   .segments = segments,
						   .iov = iov,
						   .cookie = cookie,
						   .flags = flags,
						   .remote = &remote,
						   .use = CORE_MEM_SOURCE,
						   .call = "dat_ep_post_send_with_invalidate",
						   .call_1 = "dat_opendat_ep_post_send_invalidate",
						   .flags_arg = 5,
						   .takes = TRANSPORT_TAKES_INVALIDATE});
}

DAT_RETURN core_ep_post_write_immediate(DAT_EP_HANDLE handle, DAT_COUNT segments,
					const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					const DAT_RMR_TRIPLET *remote, uint32_t immediate,
					DAT_COMPLETION_FLAGS flags)
{
	return dto_post(handle, &(struct dto_post){.op = CORE_OP_WRITE_IMMEDIATE,
						   .segments = segments,
						   .iov = iov,
						   .cookie = cookie,
						   .flags = flags,
						   .remote = remote,
						   .use = CORE_MEM_SOURCE,
						   .call = "dat_ib_post_rdma_write_immed",
						   .call_1 = "dat_opendat_ep_post_rdma_write_immed",
						   .flags_arg = 7,
						   .takes = TRANSPORT_TAKES_IMMEDIATE,
						   .immediate = immediate});
}

DAT_RETURN core_ep_post_fetch_add(DAT_EP_HANDLE handle, uint64_t add, const DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags)
{
	return dto_post(handle, &(struct dto_post){.op = CORE_OP_FETCH_ADD,
						   .segments = 1,
						   .iov = iov,
						   .cookie = cookie,
						   .flags = flags,
						   .remote = remote,
						   .use = CORE_MEM_TARGET,
						   .call = "dat_ib_post_fetch_and_add",
						   .call_1 = "dat_opendat_ep_post_fetch_and_add",
						   .iov_arg = 3,
						   .remote_arg = 5,
						   .flags_arg = 6,
						   .takes = TRANSPORT_TAKES_ATOMICS,
						   .operand = add});
}

DAT_RETURN core_ep_post_compare_swap(DAT_EP_HANDLE handle, uint64_t compare, uint64_t swap,
				     const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
				     const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	return dto_post(handle, &(struct dto_post){.op = CORE_OP_COMPARE_SWAP,
						   .segments = 1,
						   .iov = iov,
						   .cookie = cookie,
						   .flags = flags,
						   .remote = remote,
						   .use = CORE_MEM_TARGET,
						   .call = "dat_ib_post_cmp_and_swap",
						   .call_1 = "dat_opendat_ep_post_cmp_and_swap",
						   .iov_arg = 4,
						   .remote_arg = 6,
						   .flags_arg = 7,
						   .takes = TRANSPORT_TAKES_ATOMICS,
						   .operand = swap,
						   .compare = compare});
}

/* --- Receives --- */

static DAT_RETURN recv_check(struct core_ep *ep, struct dto_post *post)
{
	DAT_COMPLETION_FLAGS all = ep->attr.recv_completion_flags == DAT_COMPLETION_UNSIGNALLED_FLAG
					   ? DAT_COMPLETION_UNSIGNALLED_FLAG
					   : DAT_COMPLETION_DEFAULT_FLAG;

	if (post->flags & ~all)
		return dto_bad_flags(post, all);
	return dto_check_segments(ep, post);
}

CORE_COLD static DAT_RETURN recv_has_srq(const struct core_ep *ep)
{
	return core_bad_arg(CORE_ARG(ep_post_recv, 1, ep_handle),
			    "%s receives into the buffers of its SRQ: post them by "
			    "dat_srq_post_recv",
			    core_object_name(ep->cell, DAT_HANDLE_TYPE_EP).text);
}

static bool recv_is_full(const struct core_recv_queue *queue)
{
	return queue->tail - queue->head >= queue->capacity;
}

/* EP locked at entry, not at return. */
static DAT_RETURN recv_post(struct core_ep *ep, struct dto_post *post)
{
	struct core_recv_queue *queue = &ep->recv;
	struct core_wqe *wqe;
	DAT_RETURN ret = ep->srq ? recv_has_srq(ep) /* EP-CRSRQ-04 */ : recv_check(ep, post);

	if (ret == DAT_SUCCESS && (!ep->recv_evd || recv_is_full(queue)))
		ret = core_no_resources(DAT_RESOURCE_TEP);
	if (ret == DAT_SUCCESS) {
		wqe = core_recv_queue_slot(queue, queue->tail++, (uint32_t)post->segments);
		wqe->segments = core_copy_segments(wqe->iov, post->iov, post->segments, post->len);
		wqe->len = post->len;
		wqe->cookie = post->cookie;
		wqe->flags = post->flags;
		ep->counts.recv_room += wqe->len;
		CORE_PROBE3(recv_post, ep->cell, wqe->cookie.as_64, wqe->len);
		if (core_ep_check_call(ep, CORE_CALL_POST_RECV) == CORE_EP_FLUSH)
			core_recv_done(ep, DAT_DTO_ERR_FLUSHED, 0, false);
		else if (core_ep_check_watermarks(ep))
			transport_this->post_recv(ep);
	}
	core_handle_unlock(ep->cell);
	return ret;
}

DAT_RETURN core_ep_post_recv_slow(DAT_EP_HANDLE handle, DAT_COUNT segments,
				  const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
				  DAT_COMPLETION_FLAGS flags)
{
	struct core_ep *ep = core_handle_lock_inline(handle, DAT_HANDLE_TYPE_EP);

	/* a message may have arrived in the meantime, so that fewer are outstanding */
	if (ep && ep->recv.capacity &&
	    (recv_is_full(&ep->recv) || (ep->cell->slow_reasons & CORE_EP_SLOW_WATERMARK)))
		ep = core_ep_drive(ep);
	if (!ep)
		return core_bad_handle(CORE_ARG(ep_post_recv, 1, ep_handle), DAT_INVALID_HANDLE_EP,
				       handle);
	return recv_post(ep, &(struct dto_post){.call = "dat_ep_post_recv",
						.flags_arg = 5,
						.segments = segments,
						.iov = iov,
						.cookie = cookie,
						.flags = flags,
						.use = CORE_MEM_TARGET,
						.iov_max = ep->attr.max_recv_iov});
}
