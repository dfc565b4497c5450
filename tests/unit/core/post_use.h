// SPDX-License-Identifier: BSD-2-Clause
/*
 * A connected endpoint of the mock transport and the posts of one segment on it. For each case
 * expect() posts on the fast path and, for each reason, on the slow path: both must return the same
 * code and leave the same state.
 */
#ifndef TESTS_POST_USE_H
#define TESTS_POST_USE_H

#include "core/mem/mem.h"
#include "mock.h"

#define LENGTH 8192u

static struct mock_ia ia;
static DAT_EP_HANDLE handle;
static struct core_ep *ep;
static unsigned char memory[LENGTH];
static DAT_LMR_HANDLE lmr; /* of all of `memory` */
static DAT_LMR_CONTEXT key;

static inline DAT_LMR_HANDLE new_lmr(DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_CONTEXT *key_out)
{
	DAT_REGION_DESCRIPTION region = {.for_va = memory};
	DAT_LMR_HANDLE made;

	assert_int_equal(core_lmr_create(ia.ia, DAT_MEM_TYPE_VIRTUAL, region, LENGTH, ia.pz,
					 privileges, &made, key_out, NULL, NULL, NULL),
			 DAT_SUCCESS);
	return made;
}

static inline DAT_LMR_TRIPLET segment(DAT_LMR_CONTEXT context, int64_t offset, DAT_VLEN length)
{
	return (DAT_LMR_TRIPLET){.lmr_context = context,
				 .virtual_address = (uintptr_t)memory + (uint64_t)offset,
				 .segment_length = length};
}

enum kind {
	SEND,
	WRITE,
	READ,
	RECEIVE,
	KINDS,
};

static inline struct core_mem_cache *known(enum kind kind)
{
	return kind >= READ ? &ep->cached_target : &ep->cached_source;
}

static inline DAT_RETURN post_flags(enum kind kind, DAT_LMR_TRIPLET *iov,
				    DAT_COMPLETION_FLAGS flags)
{
	DAT_RMR_TRIPLET remote = {.rmr_context = 5,
				  .target_address = 77,
				  .segment_length = iov ? iov->segment_length : 0};
	DAT_DTO_COOKIE cookie = {.as_64 = 99};

	if (kind == SEND)
		return core_ep_post_send(handle, 1, iov, cookie, flags);
	if (kind == WRITE)
		return core_ep_post_rdma_write(handle, 1, iov, cookie, &remote, flags);
	if (kind == READ)
		return core_ep_post_rdma_read(handle, 1, iov, cookie, &remote, flags);
	return core_ep_post_recv(handle, 1, iov, cookie, flags);
}

static inline DAT_RETURN post(enum kind kind, DAT_LMR_TRIPLET iov)
{
	return post_flags(kind, &iov, DAT_COMPLETION_DEFAULT_FLAG);
}

/* Posts in the region, so that the fast path remembers it. */
static inline void remember_region(enum kind kind)
{
	assert_int_equal(post(kind, segment(key, 0, 8)), DAT_SUCCESS);
	assert_ptr_equal(known(kind)->lmr, core_mem_slot(ep->ia->mem, key));
}

/* The Receive with this index, from the oldest one; NULL: there are fewer. */
static inline const struct core_wqe *recv_at(uint64_t count)
{
	uint64_t place = ep->recv.head + count;

	return place < ep->recv.tail ? &ep->recv.slots[place & ep->recv.mask] : NULL;
}

static inline uint64_t posted(enum kind kind)
{
	return kind == RECEIVE ? ep->recv.tail : ep->req.tail;
}

/* Completes everything that is posted, and takes the events. */
static inline void complete_all(void)
{
	DAT_EVENT event;

	core_lock_acquire(&ep->cell->lock);
	while (ep->req.head != ep->req.tail)
		core_req_done(ep, core_req_at(&ep->req, ep->req.head), DAT_DTO_SUCCESS, 0);
	while (ep->recv.head != ep->recv.tail)
		core_recv_done(ep, DAT_DTO_SUCCESS, 0, false);
	core_ep_leave(ep);
	while (core_evd_dequeue(ia.evd, &event) == DAT_SUCCESS)
		;
}

static inline unsigned int fast_calls(void)
{
	return mock.fast_posts + mock.fast_recvs;
}

static inline void set_slow(uint16_t reasons)
{
	core_lock_acquire(&ep->cell->lock);
	core_handle_clear_slow(ep->cell, UINT16_MAX);
	core_handle_set_slow(ep->cell, reasons);
	core_ep_leave(ep);
}

static inline void expect_once(enum kind kind, DAT_LMR_TRIPLET *iov, DAT_COMPLETION_FLAGS flags,
			       DAT_RETURN ret)
{
	uint64_t before = posted(kind);

	assert_int_equal(post_flags(kind, iov, flags), ret);
	/* checked here, as a thread that owns a lock can enter it again */
	assert_int_equal(atomic_load(&ep->cell->lock.inside), 0);
	assert_int_equal(posted(kind), before + (ret == DAT_SUCCESS));
	if (ret == DAT_SUCCESS)
		complete_all();
}

/*
 * Expects the same result on all paths: on the fast path, which the transport declines or accepts,
 * and on the slow path, because no region is remembered or for each of the slow_reasons. A refused
 * post must change nothing.
 */
static inline void expect(enum kind kind, DAT_LMR_TRIPLET *iov, DAT_COMPLETION_FLAGS flags,
			  DAT_RETURN ret)
{
	struct core_mem_cache region = *known(kind);
	uint16_t reasons = ep->cell->slow_reasons;
	unsigned int before;

	for (unsigned takes = 0; takes < 2; takes++) {
		mock.takes_fast = takes;
		expect_once(kind, iov, flags, ret);
		*known(kind) = region;
	}
	before = fast_calls();
	*known(kind) = CORE_MEM_CACHE_EMPTY;
	expect_once(kind, iov, flags, ret);
	*known(kind) = region;
	for (unsigned int reason = CORE_EP_SLOW_STATE; reason <= CORE_EP_SLOW_PEER; reason *= 2) {
		set_slow((uint16_t)reason);
		expect_once(kind, iov, flags, ret);
	}
	set_slow(reasons);
	*known(kind) = region;
	assert_int_equal(fast_calls(), before);
	mock.takes_fast = false;
}

static inline DAT_RETURN error(DAT_RETURN type, DAT_RETURN subtype)
{
	return DAT_CLASS_ERROR | type | subtype;
}

static inline DAT_RETURN privileges_error(enum kind kind)
{
	return error(DAT_PRIVILEGES_VIOLATION,
		     kind >= READ ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ);
}

static inline int setup(void **state)
{
	(void)state;
	mock_open(&ia);
	handle = mock_connected(&ia);
	ep = mock.ep;
	lmr = new_lmr(DAT_MEM_PRIV_ALL_FLAG, &key);
	(void)mock_own(handle);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	mock_close(&ia);
	return 0;
}

#endif
