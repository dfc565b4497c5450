// SPDX-License-Identifier: BSD-2-Clause
/*
 * The data path. A triplet of DAT 2.0 is converted where it goes: one segment in registers, more on
 * the stack. Nothing is allocated.
 */
#include <inttypes.h>

#include "core/base/calls.h"
#include "core/ep/dto.h"
#include "dat2/convert.h"
#include "dat2/front.h"

/* No transport takes more segments in one call. */
#define DATA_IOV_MAX 64

/* The few words on the stack are written by these functions alone. */
#if __has_attribute(no_stack_protector)
#define DATA_FAST __attribute__((no_stack_protector))
#else
#define DATA_FAST
#endif

enum data_call {
	DATA_SEND,
	DATA_SEND_INVALIDATE,
	DATA_RECV,
	DATA_WRITE,
	DATA_WRITE_IMMEDIATE,
	DATA_READ,
};

/* One posting call, with triplets of the core. */
struct data_post {
	enum data_call call;
	DAT_EP_HANDLE ep;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	const DAT_RMR_TRIPLET *remote;
	uint32_t value; /* the immediate data, or the context to invalidate */
};

CORE_INLINE DAT_RETURN data_call(const struct data_post *post, DAT_COUNT count,
				 DAT_LMR_TRIPLET *iov)
{
	switch (post->call) {
	case DATA_SEND:
		return core_ep_post_send(post->ep, count, iov, post->cookie, post->flags);
	case DATA_SEND_INVALIDATE:
		return core_ep_post_send_invalidate(post->ep, count, iov, post->cookie, post->flags,
						    post->value);
	case DATA_RECV:
		return core_ep_post_recv(post->ep, count, iov, post->cookie, post->flags);
	case DATA_WRITE:
		return core_ep_post_rdma_write(post->ep, count, iov, post->cookie, post->remote,
					       post->flags);
	case DATA_WRITE_IMMEDIATE:
		return core_ep_post_write_immediate(post->ep, count, iov, post->cookie,
						    post->remote, post->value, post->flags);
	default:
		return core_ep_post_rdma_read(post->ep, count, iov, post->cookie, post->remote,
					      post->flags);
	}
}

/* D2-DTO-05: DAT 2.0 has no length for so many bytes. */
CORE_COLD static DAT_RETURN data_too_long(enum data_call call, uint64_t length)
{
	static const struct core_arg arg = {"a post", "local_iov", 3};
	DAT_RETURN ret = core_bad_arg(&arg, "%" PRIu64 " bytes exceed 32 bits", length);

	return dat2_status(call == DATA_SEND || call == DATA_SEND_INVALIDATE || call == DATA_RECV
				   ? ret
				   : core_error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE));
}

CORE_COLD static DAT_RETURN data_bad_count(DAT_COUNT count)
{
	static const struct core_arg arg = {"a post", "num_segments", 2};

	return dat2_status(core_bad_range(&arg, count, 0, DATA_IOV_MAX));
}

/* Converts up to DATA_IOV_MAX segments, none if `count` is negative. Returns their bytes. */
static uint64_t data_convert(DAT_LMR_TRIPLET *converted, DAT_COUNT count,
			     const struct dat2_lmr_triplet *iov)
{
	uint64_t length = 0;

	for (DAT_COUNT i = 0; i < count; i++) {
		converted[i] = dat2_local(&iov[i]);
		length += iov[i].segment_length;
	}
	return length;
}

/* Any number of segments. */
__attribute__((noinline)) static DAT_RETURN
data_post_many(const struct data_post *post, DAT_COUNT count, const struct dat2_lmr_triplet *iov)
{
	DAT_LMR_TRIPLET converted[DATA_IOV_MAX];
	uint64_t length;

	if (!iov || count <= 0)
		return dat2_status(data_call(post, count, iov ? converted : NULL));
	if (count > DATA_IOV_MAX)
		return data_bad_count(count);
	length = data_convert(converted, count, iov);
	if (length > UINT32_MAX)
		return data_too_long(post->call, length);
	return dat2_status(data_call(post, count, converted));
}

/* Is it one segment? Then it goes to the core in `segment`. */
CORE_INLINE bool data_is_one(DAT_COUNT count, const struct dat2_lmr_triplet *iov,
			     DAT_LMR_TRIPLET *segment)
{
	if (__builtin_expect(count != 1 || !iov, false))
		return false;
	dat2_local_put(segment, iov);
	return true;
}

DATA_FAST DAT_RETURN dat2_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT count,
				       const struct dat2_lmr_triplet *iov, DAT_DTO_COOKIE cookie,
				       DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET segment;

	if (data_is_one(count, iov, &segment))
		return dat2_status(core_ep_post_send(ep, 1, &segment, cookie, flags));
	return data_post_many(&(struct data_post){DATA_SEND, ep, cookie, flags, NULL, 0}, count,
			      iov);
}

DATA_FAST DAT_RETURN dat2_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT count,
				       const struct dat2_lmr_triplet *iov, DAT_DTO_COOKIE cookie,
				       DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET segment;

	if (data_is_one(count, iov, &segment))
		return dat2_status(core_ep_post_recv(ep, 1, &segment, cookie, flags));
	return data_post_many(&(struct data_post){DATA_RECV, ep, cookie, flags, NULL, 0}, count,
			      iov);
}

/* RDMA of several segments, or with a NULL pointer. */
__attribute__((noinline)) static DAT_RETURN data_rdma_many(struct data_post *post, DAT_COUNT count,
							   const struct dat2_lmr_triplet *iov,
							   const struct dat2_rmr_triplet *remote)
{
	DAT_RMR_TRIPLET converted;

	if (remote) {
		converted = dat2_remote(remote);
		post->remote = &converted;
	}
	return data_post_many(post, count, iov);
}

DATA_FAST DAT_RETURN dat2_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT count,
					    const struct dat2_lmr_triplet *iov,
					    DAT_DTO_COOKIE cookie,
					    const struct dat2_rmr_triplet *remote,
					    DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET segment;
	DAT_RMR_TRIPLET target;

	if (remote && data_is_one(count, iov, &segment)) {
		dat2_remote_put(&target, remote);
		return dat2_status(core_ep_post_rdma_read(ep, 1, &segment, cookie, &target, flags));
	}
	return data_rdma_many(&(struct data_post){DATA_READ, ep, cookie, flags, NULL, 0}, count,
			      iov, remote);
}

DATA_FAST DAT_RETURN dat2_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT count,
					     const struct dat2_lmr_triplet *iov,
					     DAT_DTO_COOKIE cookie,
					     const struct dat2_rmr_triplet *remote,
					     DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET segment;
	DAT_RMR_TRIPLET target;

	if (remote && data_is_one(count, iov, &segment)) {
		dat2_remote_put(&target, remote);
		return dat2_status(
			core_ep_post_rdma_write(ep, 1, &segment, cookie, &target, flags));
	}
	return data_rdma_many(&(struct data_post){DATA_WRITE, ep, cookie, flags, NULL, 0}, count,
			      iov, remote);
}

DAT_RETURN dat2_ep_post_write_immediate(DAT_EP_HANDLE ep, DAT_COUNT count,
					const struct dat2_lmr_triplet *iov, DAT_DTO_COOKIE cookie,
					const struct dat2_rmr_triplet *remote, uint32_t immediate,
					DAT_COMPLETION_FLAGS flags)
{
	struct data_post post = {DATA_WRITE_IMMEDIATE, ep, cookie, flags, NULL, immediate};

	return data_rdma_many(&post, count, iov, remote);
}

DAT_RETURN dat2_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT count,
			      const struct dat2_lmr_triplet *iov, DAT_DTO_COOKIE cookie)
{
	DAT_LMR_TRIPLET converted[DATA_IOV_MAX];
	uint64_t length = 0;

	if (count > DATA_IOV_MAX)
		return data_bad_count(count);
	if (iov)
		length = data_convert(converted, count, iov);
	if (length > UINT32_MAX)
		return data_too_long(DATA_RECV, length);
	return dat2_status(core_srq_post_recv(srq, count, iov ? converted : NULL, cookie));
}

DAT_RETURN dat2_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT count,
					     const struct dat2_lmr_triplet *iov,
					     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
					     DAT_BOOLEAN invalidates, DAT_RMR_CONTEXT context)
{
	const struct data_post post = {DATA_SEND_INVALIDATE, ep, cookie, flags, NULL, context};

	if (!invalidates)
		return dat2_ep_post_send(ep, count, iov, cookie, flags);
	return data_post_many(&post, count, iov);
}

/* --- events --- */

DATA_FAST DAT_RETURN dat2_evd_dequeue(DAT_EVD_HANDLE evd, struct dat2_event *event)
{
	DAT_EVENT found;
	DAT_RETURN ret = core_evd_dequeue(evd, event ? &found : NULL);

	if (ret != DAT_SUCCESS)
		return dat2_status_of_failure(ret);
	dat2_event_out(&found, event);
	return DAT_SUCCESS;
}

DAT_RETURN dat2_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 struct dat2_event *event, DAT_COUNT *nmore)
{
	DAT_EVENT found;
	DAT_RETURN ret = core_evd_wait(evd, timeout, threshold, event ? &found : NULL, nmore);

	if (ret != DAT_SUCCESS)
		return dat2_status_of_failure(ret);
	dat2_event_out(&found, event);
	return DAT_SUCCESS;
}

DAT_RETURN dat2_evd_post_se(DAT_EVD_HANDLE evd, const struct dat2_event *event)
{
	DAT_EVENT converted;

	if (!event)
		return dat2_status(core_evd_post_se(evd, NULL));
	converted = (DAT_EVENT){.event_number = (DAT_EVENT_NUMBER)event->event_number,
				.event_data.software_event_data = event->data.software};
	return dat2_status(core_evd_post_se(evd, &converted));
}
