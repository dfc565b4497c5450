// SPDX-License-Identifier: BSD-2-Clause
/*
 * Posts of one segment. They take the fast path if the segment lies in the region of the previous
 * post. Each case is posted on the fast path and, for each reason, on the slow path: both must
 * return the same code and leave the same state.
 */
#include "core/mem/mem.h"
#include "core/mem/pz.h"
#include "mock.h"

#define LENGTH 8192u

static struct mock_ia ia;
static DAT_EP_HANDLE handle;
static struct core_ep *ep;
static unsigned char memory[LENGTH];
static DAT_LMR_HANDLE lmr; /* of all of `memory` */
static DAT_LMR_CONTEXT key;

static DAT_LMR_HANDLE new_lmr(DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_CONTEXT *key_out)
{
	DAT_REGION_DESCRIPTION region = {.for_va = memory};
	DAT_LMR_HANDLE made;

	assert_int_equal(core_lmr_create(ia.ia, DAT_MEM_TYPE_VIRTUAL, region, LENGTH, ia.pz,
					 privileges, &made, key_out, NULL, NULL, NULL),
			 DAT_SUCCESS);
	return made;
}

static DAT_LMR_TRIPLET segment(DAT_LMR_CONTEXT context, int64_t offset, DAT_VLEN length)
{
	return (DAT_LMR_TRIPLET){.lmr_context = context,
				 .virtual_address = (uintptr_t)memory + (uint64_t)offset,
				 .segment_length = length};
}

enum kind {
	SEND,
	WRITE,
	RECEIVE,
	KINDS,
};

static struct core_mem_cache *known(enum kind kind)
{
	return kind == RECEIVE ? &ep->cached_target : &ep->cached_source;
}

static DAT_RETURN post_flags(enum kind kind, DAT_LMR_TRIPLET *iov, DAT_COMPLETION_FLAGS flags)
{
	DAT_RMR_TRIPLET remote = {.rmr_context = 5,
				  .target_address = 77,
				  .segment_length = iov ? iov->segment_length : 0};
	DAT_DTO_COOKIE cookie = {.as_64 = 99};

	if (kind == SEND)
		return core_ep_post_send(handle, 1, iov, cookie, flags);
	if (kind == WRITE)
		return core_ep_post_rdma_write(handle, 1, iov, cookie, &remote, flags);
	return core_ep_post_recv(handle, 1, iov, cookie, flags);
}

static DAT_RETURN post(enum kind kind, DAT_LMR_TRIPLET iov)
{
	return post_flags(kind, &iov, DAT_COMPLETION_DEFAULT_FLAG);
}

/* Posts in the region, so that the fast path remembers it. */
static void remember_region(enum kind kind)
{
	assert_int_equal(post(kind, segment(key, 0, 8)), DAT_SUCCESS);
	assert_ptr_equal(known(kind)->lmr, core_mem_slot(ep->ia->mem, key));
}

/* The Receive with this index, from the oldest one; NULL: there are fewer. */
static const struct core_wqe *recv_at(uint64_t count)
{
	uint64_t place = ep->recv.head + count;

	return place < ep->recv.tail ? &ep->recv.slots[place & ep->recv.mask] : NULL;
}

static uint64_t posted(enum kind kind)
{
	return kind == RECEIVE ? ep->recv.tail : ep->req.tail;
}

/* Completes everything that is posted, and takes the events. */
static void complete_all(void)
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

static unsigned int fast_calls(void)
{
	return mock.fast_posts + mock.fast_recvs;
}

static void set_slow(uint16_t reasons)
{
	core_lock_acquire(&ep->cell->lock);
	core_handle_clear_slow(ep->cell, UINT16_MAX);
	core_handle_set_slow(ep->cell, reasons);
	core_ep_leave(ep);
}

static void expect_once(enum kind kind, DAT_LMR_TRIPLET *iov, DAT_COMPLETION_FLAGS flags,
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
static void expect(enum kind kind, DAT_LMR_TRIPLET *iov, DAT_COMPLETION_FLAGS flags, DAT_RETURN ret)
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

static DAT_RETURN error(DAT_RETURN type, DAT_RETURN subtype)
{
	return DAT_CLASS_ERROR | type | subtype;
}

static DAT_RETURN privileges_error(enum kind kind)
{
	return error(DAT_PRIVILEGES_VIOLATION,
		     kind == RECEIVE ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ);
}

static int setup(void **state)
{
	(void)state;
	mock_open(&ia);
	handle = mock_connected(&ia);
	ep = mock.ep;
	lmr = new_lmr(DAT_MEM_PRIV_ALL_FLAG, &key);
	(void)mock_own(handle);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mock_close(&ia);
	return 0;
}

/* --- contents of a posted request --- */

static void post__known_region__request_as_posted(void **state)
{
	const DAT_COMPLETION_FLAGS flags =
		DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;

	(void)state;
	for (enum kind kind = SEND; kind <= WRITE; kind++) {
		DAT_LMR_TRIPLET iov = segment(key, 100, 50);

		remember_region(kind);
		mock.req = NULL;
		assert_int_equal(post_flags(kind, &iov, flags), DAT_SUCCESS);
		assert_non_null(mock.req);
		assert_int_equal(mock.req->op, kind == SEND ? CORE_OP_SEND : CORE_OP_RDMA_WRITE);
		assert_int_equal(mock.req->flags, flags);
		assert_int_equal(mock.req->segments, 1);
		assert_int_equal(mock.req->len, 50);
		assert_memory_equal(mock.req->iov, &iov, sizeof(iov));
		assert_int_equal(mock.req->cookie.as_64, 99);
		assert_int_equal(mock.req->sequence, ep->req.tail - 1);
		if (kind == WRITE) {
			assert_int_equal(mock.req->remote.rmr_context, 5);
			assert_int_equal(mock.req->remote.target_address, 77);
		}
	}
}

static void post_recv__known_region__receive_as_posted(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 100, 50);
	const struct core_wqe *wqe;

	(void)state;
	remember_region(RECEIVE);
	assert_int_equal(post_flags(RECEIVE, &iov, DAT_COMPLETION_DEFAULT_FLAG), DAT_SUCCESS);
	wqe = recv_at(1);
	assert_int_equal(wqe->segments, 1);
	assert_int_equal(wqe->len, 50);
	assert_int_equal(wqe->cookie.as_64, 99);
	assert_int_equal(wqe->flags, 0);
	assert_memory_equal(wqe->iov, &iov, sizeof(iov));
	assert_null(recv_at(2));
}

/* A slot keeps nothing of an earlier post. */
static void post__one_segment_then_several_then_none__each_as_posted(void **state)
{
	static const DAT_COUNT counts[] = {1, 3, 1, 0, 1, 2};
	DAT_LMR_TRIPLET iov[3] = {segment(key, 0, 8), segment(key, 100, 9), segment(key, 200, 10)};
	static const DAT_VLEN lengths[] = {0, 8, 17, 27};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		const struct core_wqe *wqe;

		assert_int_equal(core_ep_post_send(handle, counts[i], iov, cookie, 0), DAT_SUCCESS);
		assert_int_equal(mock.req->segments, counts[i]);
		assert_int_equal(mock.req->len, lengths[counts[i]]);
		assert_int_equal(core_ep_post_recv(handle, counts[i], iov, cookie, 0), DAT_SUCCESS);
		wqe = recv_at(i);
		assert_int_equal(wqe->segments, counts[i]);
		assert_int_equal(wqe->len, lengths[counts[i]]);
		for (DAT_COUNT k = 0; k < counts[i]; k++) {
			assert_memory_equal(&mock.req->iov[k], &iov[k], sizeof(iov[k]));
			assert_memory_equal(&wqe->iov[k], &iov[k], sizeof(iov[k]));
		}
	}
}

/* --- which posts take the fast path --- */

static void expect_path(enum kind kind, DAT_COUNT segments, DAT_LMR_TRIPLET iov,
			DAT_COMPLETION_FLAGS flags, bool is_fast)
{
	DAT_LMR_TRIPLET list[2] = {iov, iov};
	DAT_RMR_TRIPLET remote = {.rmr_context = 5, .segment_length = 2 * iov.segment_length};
	/* EP-SEND-10 EP-RECV-08 EP-RDMAW-12: all 64 bits */
	DAT_DTO_COOKIE cookie = {.as_64 = 0xfedcba9876543210u};
	unsigned int fast = fast_calls(), slow_calls = mock.posts + mock.recvs;
	DAT_RETURN ret;

	mock.takes_fast = true;
	mock.req = NULL;
	if (kind == SEND)
		ret = core_ep_post_send(handle, segments, list, cookie, flags);
	else if (kind == WRITE)
		ret = core_ep_post_rdma_write(handle, segments, list, cookie, &remote, flags);
	else
		ret = core_ep_post_recv(handle, segments, list, cookie, flags);
	assert_int_equal(fast_calls(), fast + is_fast);
	assert_int_equal(mock.posts + mock.recvs, slow_calls + (ret == DAT_SUCCESS && !is_fast));
	if (is_fast)
		assert_int_equal(ret, DAT_SUCCESS);
	if (ret == DAT_SUCCESS)
		assert_true((kind == RECEIVE
				     ? recv_at(posted(kind) - 1 - ep->recv.head)->cookie.as_64
				     : mock.req->cookie.as_64) == cookie.as_64);
	if (ret == DAT_SUCCESS)
		complete_all();
	mock.takes_fast = false;
}

static void post__each_parameter__fast_only_if_all_are_supported(void **state)
{
	const DAT_COMPLETION_FLAGS suppress = DAT_COMPLETION_SUPPRESS_FLAG;
	const DAT_COMPLETION_FLAGS solicited = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	const DAT_COMPLETION_FLAGS fence = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	const DAT_COMPLETION_FLAGS unsignalled = DAT_COMPLETION_UNSIGNALLED_FLAG;

	(void)state;
	if (!mock_own(handle))
		skip();
	for (enum kind kind = 0; kind < KINDS; kind++) {
		bool is_request = kind != RECEIVE;
		DAT_LMR_TRIPLET good = segment(key, 0, 8);

		remember_region(kind);
		complete_all();
		expect_path(kind, 1, good, 0, true);
		expect_path(kind, 1, good, suppress, is_request);
		expect_path(kind, 1, good, solicited, is_request);
		expect_path(kind, 1, good, fence, is_request);
		expect_path(kind, 1, good, suppress | solicited | fence, is_request);
		expect_path(kind, 1, good, unsignalled, false);
		expect_path(kind, 1, good, 0x20, false);
		expect_path(kind, 1, segment(key, LENGTH - 1, 1), 0, true);
		expect_path(kind, 1, segment(key, 0, LENGTH), 0, true);
		expect_path(kind, 1, segment(key, 0, LENGTH + 1), 0, false);
		expect_path(kind, 1, segment(key, 0, 0), 0, false);
		expect_path(kind, 1, segment(key + 1, 0, 8), 0, false);
		expect_path(kind, 2, good, 0, false);
		expect_path(kind, 0, good, 0, false);
		expect_path(kind, -1, good, 0, false);
		remember_region(kind); /* not changed by empty segments */
		complete_all();
		expect_path(kind, 1, good, 0, true);
	}
}

static void post__longer_than_allowed__not_on_the_fast_path(void **state)
{
	(void)state;
	if (!mock_own(handle))
		skip();
	ep->attr.max_message_size = 16;
	ep->attr.max_rdma_size = 12;
	ep->ia->attr.max_rdma_size = 24;
	remember_region(SEND);
	remember_region(RECEIVE);
	complete_all();
	expect_path(SEND, 1, segment(key, 0, 16), 0, true);
	expect_path(SEND, 1, segment(key, 0, 17), 0, false);
	/* Send and RDMA Write share the smaller limit of the fast path */
	expect_path(WRITE, 1, segment(key, 0, 16), 0, true);
	expect_path(WRITE, 1, segment(key, 0, 17), 0, false);
	expect_path(WRITE, 1, segment(key, 0, 24), 0, false);
	expect_path(WRITE, 1, segment(key, 0, 25), 0, false);
	expect_path(RECEIVE, 1, segment(key, 0, 25), 0, true);
}

/* DTO-111 */
static void post__queue_full__not_on_the_fast_path(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	if (!mock_own(handle))
		skip();
	mock.takes_fast = true;
	for (enum kind kind = SEND; kind <= RECEIVE; kind += RECEIVE - SEND) {
		uint32_t capacity = kind == RECEIVE ? ep->recv.capacity : ep->req.capacity;
		unsigned int before;

		remember_region(kind);
		before = fast_calls();
		for (uint32_t i = 1; i < capacity; i++)
			assert_int_equal(post(kind, iov), DAT_SUCCESS);
		assert_int_equal(fast_calls(), before + capacity - 1);
		assert_int_equal(mock_code(post(kind, iov)), DAT_INSUFFICIENT_RESOURCES);
		assert_int_equal(fast_calls(), before + capacity - 1);
	}
}

/* DTO-95 DTO-85 */
static void post__region_gone_or_of_another_zone__not_on_the_fast_path(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	unsigned int before;
	DAT_PZ_HANDLE zone;

	(void)state;
	if (!mock_own(handle))
		skip();
	for (enum kind kind = 0; kind < KINDS; kind++)
		remember_region(kind);
	assert_int_equal(core_pz_create(ia.ia, &zone), DAT_SUCCESS);
	assert_int_equal(core_ep_disconnect(handle, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_int_equal(core_ep_reset(handle), DAT_SUCCESS);
	assert_int_equal(
		core_ep_modify(handle, DAT_EP_FIELD_PZ_HANDLE, &(DAT_EP_PARAM){.pz_handle = zone}),
		DAT_SUCCESS);
	ep->state = DAT_EP_STATE_CONNECTED;
	core_ep_update_slow_reasons(ep);
	assert_int_equal(ep->cell->slow_reasons, 0);
	before = fast_calls();
	for (enum kind kind = 0; kind < KINDS; kind++)
		assert_int_equal(mock_code(post(kind, iov)), DAT_PROTECTION_VIOLATION);
	ep->pz = ((struct core_handle *)ia.pz)->object;
	for (enum kind kind = 0; kind < KINDS; kind++)
		remember_region(kind);
	assert_int_equal(fast_calls(), before + 1); /* the Write uses the region of the Send */
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	for (enum kind kind = 0; kind < KINDS; kind++)
		assert_int_equal(post(kind, iov), privileges_error(kind));
	assert_int_equal(fast_calls(), before + 1);
	ep->pz = ((struct core_handle *)zone)->object;
}

/* A declined post goes to post_request or post_recv, once. */
static void post__transport_declines__slow_path_slot_called(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	if (!mock_own(handle))
		skip();
	for (enum kind kind = 0; kind < KINDS; kind++) {
		unsigned int fast, slow_calls;

		remember_region(kind);
		fast = fast_calls();
		slow_calls = mock.posts + mock.recvs;
		assert_int_equal(post(kind, iov), DAT_SUCCESS);
		assert_int_equal(fast_calls(), fast + 1);
		assert_int_equal(mock.posts + mock.recvs, slow_calls + 1);
		mock.takes_fast = true;
		assert_int_equal(post(kind, iov), DAT_SUCCESS);
		assert_int_equal(fast_calls(), fast + 2);
		assert_int_equal(mock.posts + mock.recvs, slow_calls + 1);
		mock.takes_fast = false;
	}
}

/* --- memory --- */

/* DTO-84 LMR-USE-01 */
static void post__at_the_edges_of_the_region__refused_outside(void **state)
{
	static const struct {
		int64_t offset;
		DAT_VLEN length;
		bool is_good;
	} cases[] = {
		{0, LENGTH, true},
		{LENGTH - 1, 1, true},
		{LENGTH - 8, 8, true},
		{LENGTH - 8, 9, false},
		{LENGTH, 1, false},
		{0, LENGTH + 1, false},
		{1, LENGTH, false},
		{-1, 1, false},
		{-1, 2, false},
		{0, UINT64_MAX, false},
		{1, UINT64_MAX, false},
		{LENGTH - 1, UINT64_MAX, false},
		{-8, (DAT_VLEN)-8, false},
		{INT64_MIN, 8, false},
		/* empty segments are always accepted */
		{0, 0, true},
		{LENGTH, 0, true},
		{-1, 0, true},
	};

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		remember_region(kind);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			DAT_LMR_TRIPLET iov = segment(key, cases[i].offset, cases[i].length);

			expect(kind, &iov, 0,
			       cases[i].is_good ? DAT_SUCCESS
						: error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
		}
	}
}

/* Whatever its context is. The next post is not affected. */
static void post__empty_segment__left_out(void **state)
{
	DAT_LMR_TRIPLET good = segment(key, 0, 8);

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		remember_region(kind);
		for (unsigned is_own = 0; is_own < 2; is_own++) {
			complete_all();
			assert_int_equal(post(kind, segment(is_own ? key : CORE_MEM_MAX - 1, 0, 0)),
					 DAT_SUCCESS);
			if (kind == RECEIVE)
				assert_int_equal(core_recv_next(ep)->segments, 0);
			else
				assert_int_equal(mock.req->segments, 0);
			assert_int_equal(post(kind, good), DAT_SUCCESS);
		}
	}
}

/* LMR-USE-04 LMR-USE-05 */
static void post__another_context__privileges_violation(void **state)
{
	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		DAT_LMR_TRIPLET none = segment(0, 0, 8), other = segment(key + 1, 0, 8);

		remember_region(kind);
		expect(kind, &none, 0, privileges_error(kind));
		expect(kind, &other, 0, privileges_error(kind));
	}
}

/* DTO-95 */
static void post__region_freed__refused(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8), none = segment(0, 0, 8);

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++)
		remember_region(kind);
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		expect(kind, &iov, 0, privileges_error(kind));
		/* the slot has key 0 now, which no region has */
		expect(kind, &none, 0, privileges_error(kind));
	}
}

/* Frees the region, and makes regions until one has the same slot. */
static DAT_LMR_CONTEXT reuse_slot(DAT_MEM_PRIV_FLAGS privileges)
{
	const struct core_lmr *slot = core_mem_slot(ep->ia->mem, key);
	DAT_LMR_CONTEXT next;

	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	while (lmr = new_lmr(privileges, &next), core_mem_slot(ep->ia->mem, next) != slot)
		assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	return next;
}

static void post__slot_reused__old_key_refused_and_new_one_accepted(void **state)
{
	DAT_LMR_TRIPLET old = segment(key, 0, 8), new;

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++)
		remember_region(kind);
	new = segment(reuse_slot(DAT_MEM_PRIV_ALL_FLAG), 0, 8);
	assert_int_not_equal(new.lmr_context, old.lmr_context);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		expect(kind, &old, 0, privileges_error(kind));
		expect(kind, &new, 0, DAT_SUCCESS);
	}
}

/* DTO-86 DTO-87; the privilege to write includes the one to read (LMR-CREATE-39). */
static void post__slot_reused_with_other_privileges__new_ones_apply(void **state)
{
	DAT_LMR_TRIPLET iov;

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++)
		remember_region(kind);
	iov = segment(reuse_slot(DAT_MEM_PRIV_LOCAL_READ_FLAG), 0, 8);
	expect(SEND, &iov, 0, DAT_SUCCESS);
	expect(WRITE, &iov, 0, DAT_SUCCESS);
	expect(RECEIVE, &iov, 0, privileges_error(RECEIVE));
	key = iov.lmr_context;
	iov = segment(reuse_slot(DAT_MEM_PRIV_LOCAL_WRITE_FLAG), 0, 8);
	expect(SEND, &iov, 0, DAT_SUCCESS);
	expect(RECEIVE, &iov, 0, DAT_SUCCESS);
	key = iov.lmr_context;
	iov = segment(reuse_slot(DAT_MEM_PRIV_REMOTE_READ_FLAG), 0, 8);
	expect(SEND, &iov, 0, privileges_error(SEND));
	expect(RECEIVE, &iov, 0, privileges_error(RECEIVE));
}

/* When all keys of a slot were used, the first one is issued again. */
static void post__key_issued_again__new_region_applies(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++)
		remember_region(kind);
	core_mem_slot(ep->ia->mem, key)->generation--;
	assert_int_equal(reuse_slot(DAT_MEM_PRIV_REMOTE_READ_FLAG), key);
	for (enum kind kind = 0; kind < KINDS; kind++)
		expect(kind, &iov, 0, privileges_error(kind));
}

/* Of a large region only a part around the address is remembered. */
static void core_mem_know_around__each_address__part_of_that_size(void **state)
{
	static const struct {
		DAT_VADDR at, from;
		DAT_VLEN most, length;
	} cases[] = {
		{1050, 1000, UINT64_MAX, 100}, {1050, 1000, 100, 100}, {1099, 1000, 101, 100},
		{1000, 1000, 10, 10},	       {1005, 1000, 10, 10},   {1006, 1001, 10, 10},
		{1050, 1045, 10, 10},	       {1094, 1089, 10, 10},   {1095, 1090, 10, 10},
		{1099, 1090, 10, 10},	       {1099, 1001, 99, 99},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_mem_cache region = {.address = 1000, .length = 100};

		core_mem_cache_shrink(&region, cases[i].at, cases[i].most);
		assert_int_equal(region.address, cases[i].from);
		assert_int_equal(region.length, cases[i].length);
	}
}

/* The upper half of the name counts publish and revoke; it is odd while the slot has a key. */
static void core_mem_publish__each_use__another_name(void **state)
{
	struct core_lmr *slot = core_mem_slot(ep->ia->mem, key);
	uint64_t name = atomic_load(&slot->name), next;

	(void)state;
	assert_int_equal((uint32_t)name, key);
	assert_int_equal(name >> 32 & 1, 1);
	for (int i = 0; i < 3; i++) {
		slot->generation--; /* issues the same key again */
		core_mem_revoke(ep->ia->mem, slot);
		next = atomic_load(&slot->name);
		assert_int_equal(next, ((name >> 32) + 1) << 32);
		assert_int_equal(core_mem_publish(ep->ia->mem, slot), key);
		next = atomic_load(&slot->name);
		assert_int_equal(next, name + (UINT64_C(2) << 32));
		name = next;
	}
}

static void move_to_zone(DAT_EP_HANDLE endpoint, DAT_PZ_HANDLE zone)
{
	DAT_EP_PARAM param = {.pz_handle = zone};

	assert_int_equal(core_ep_modify(endpoint, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_SUCCESS);
}

/* DTO-85 LMR-USE-02: the remembered region is checked again for the new zone. */
static void post_recv__zone_of_the_endpoint_changed__protection_violation(void **state)
{
	DAT_EP_HANDLE endpoint = mock_ep(&ia);
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	DAT_DTO_COOKIE cookie = {.as_64 = 99};
	DAT_PZ_HANDLE other;

	(void)state;
	assert_int_equal(core_pz_create(ia.ia, &other), DAT_SUCCESS);
	assert_int_equal(core_ep_post_recv(endpoint, 1, &iov, cookie, 0), DAT_SUCCESS);
	move_to_zone(endpoint, other);
	assert_int_equal(core_ep_post_recv(endpoint, 1, &iov, cookie, 0),
			 error(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE));
	move_to_zone(endpoint, ia.pz);
	assert_int_equal(core_ep_post_recv(endpoint, 1, &iov, cookie, 0), DAT_SUCCESS);
	assert_int_equal(core_ep_free(endpoint), DAT_SUCCESS);
	assert_int_equal(core_pz_free(other), DAT_SUCCESS);
}

/* --- other checks --- */

/* EP-SEND-09 EP-RDMAW-11 */
static void post__longer_than_allowed__refused(void **state)
{
	DAT_LMR_TRIPLET longest = segment(key, 0, 16), longer = segment(key, 0, 17);

	(void)state;
	ep->attr.max_message_size = 16;
	ep->ia->attr.max_rdma_size = 16;
	for (enum kind kind = SEND; kind <= WRITE; kind++) {
		remember_region(kind);
		expect(kind, &longest, 0, DAT_SUCCESS);
		expect(kind, &longer, 0, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	}
}

/* EP-RDMAW-11 EP-RDMAR-10 */
static void rdma__above_max_rdma_size_of_the_endpoint__limit_of_the_adapter_applies(void **state)
{
	DAT_LMR_TRIPLET above = segment(key, 0, 64), beyond = segment(key, 0, 65);
	DAT_RMR_TRIPLET remote = {.rmr_context = 5};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	(void)state;
	ep->attr.max_rdma_size = 16;
	ep->ia->attr.max_rdma_size = 64;
	ep->attr.max_rdma_read_out = 1;
	ep->peer_read_in = 1;
	remember_region(WRITE);
	expect(WRITE, &above, 0, DAT_SUCCESS);
	expect(WRITE, &beyond, 0, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	remote.segment_length = 65;
	assert_int_equal(core_ep_post_rdma_read(handle, 1, &beyond, cookie, &remote, 0),
			 error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
	remote.segment_length = 64; /* the local buffer may be longer */
	assert_int_equal(core_ep_post_rdma_read(handle, 1, &beyond, cookie, &remote, 0),
			 DAT_SUCCESS);
	complete_all();
}

/* EP-RDMAW-11: on the fast path, too. */
static void rdma_write__above_max_rdma_size_of_the_endpoint__fast(void **state)
{
	DAT_LMR_TRIPLET longer = segment(key, 0, 17);
	unsigned int before;

	(void)state;
	ep->attr.max_rdma_size = 16;
	ep->attr.max_message_size = 17;
	remember_region(WRITE);
	expect(WRITE, &longer, 0, DAT_SUCCESS);
	before = mock.fast_posts;
	assert_int_equal(post(WRITE, longer), DAT_SUCCESS);
	assert_int_equal(mock.fast_posts, before + 1);
}

static void rdma_write__target_shorter_or_missing__refused(void **state)
{
	DAT_RMR_TRIPLET remote = {.rmr_context = 5, .segment_length = 7};
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	(void)state;
	remember_region(WRITE);
	assert_int_equal(core_ep_post_rdma_write(handle, 1, &iov, cookie, &remote, 0),
			 error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE));
	assert_int_equal(core_ep_post_rdma_write(handle, 1, &iov, cookie, NULL, 0),
			 error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
	/* the lock was released */
	remote.segment_length = 8;
	assert_int_equal(core_ep_post_rdma_write(handle, 1, &iov, cookie, &remote, 0), DAT_SUCCESS);
}

static void post__no_segment_list_or_none_allowed__refused(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		remember_region(kind);
		expect(kind, NULL, 0, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	}
	ep->attr.max_request_iov = 0;
	ep->attr.max_rdma_write_iov = 0;
	ep->attr.max_recv_iov = 0;
	core_ep_update_slow_reasons(ep);
	assert_int_equal(ep->cell->slow_reasons, CORE_EP_SLOW_LIMIT);
	for (enum kind kind = 0; kind < KINDS; kind++)
		expect(kind, &iov, 0, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
}

static void post__unsupported_flags__refused(void **state)
{
	static const DAT_COMPLETION_FLAGS flags[] = {
		DAT_COMPLETION_UNSIGNALLED_FLAG, (DAT_COMPLETION_FLAGS)0x20,
		(DAT_COMPLETION_FLAGS)0x80000000u, (DAT_COMPLETION_FLAGS)0x100};
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	DAT_EP_ATTR attr;

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		DAT_RETURN arg = kind == WRITE ? DAT_INVALID_ARG6 : DAT_INVALID_ARG5;

		remember_region(kind);
		for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
			expect(kind, &iov, flags[i], error(DAT_INVALID_PARAMETER, arg));
	}
	expect(RECEIVE, &iov, DAT_COMPLETION_SUPPRESS_FLAG,
	       error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
	attr = ep->attr;
	ep->attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	ep->attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	for (enum kind kind = 0; kind < KINDS; kind++)
		expect(kind, &iov, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_SUCCESS);
	assert_int_equal(post_flags(RECEIVE, &iov, DAT_COMPLETION_UNSIGNALLED_FLAG), DAT_SUCCESS);
	assert_int_equal(core_recv_next(ep)->flags, DAT_COMPLETION_UNSIGNALLED_FLAG);
	/* a reused slot does not keep the flag */
	complete_all();
	for (uint32_t i = 0; i < ep->recv.capacity; i++)
		assert_int_equal(post_flags(RECEIVE, &iov, DAT_COMPLETION_UNSIGNALLED_FLAG),
				 DAT_SUCCESS);
	complete_all();
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	assert_int_equal(core_recv_next(ep)->flags, 0);
	ep->attr = attr; /* as the EVDs have counted them */
}

/* DTO-111 EP-SEND-32 */
static void post__queue_full__refused(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	enum kind kind;

	(void)state;
	for (kind = SEND; kind <= RECEIVE; kind += RECEIVE - SEND) {
		uint32_t capacity = kind == RECEIVE ? ep->recv.capacity : ep->req.capacity;

		remember_region(kind);
		for (uint32_t i = 1; i < capacity; i++)
			assert_int_equal(post(kind, iov), DAT_SUCCESS);
		expect(kind, &iov, 0, error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP));
	}
	expect(WRITE, &iov, 0, error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP));
}

/* In the disconnected state an accepted post is flushed at once. */
static void post__disconnected__flushed(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	remember_region(SEND);
	remember_region(RECEIVE);
	assert_int_equal(core_ep_disconnect(handle, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	for (int i = 0; i < 3; i++)
		(void)mock_event(ia.evd);
	mock_no_event(ia.evd);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		DAT_EVENT event;

		mock.req = NULL;
		assert_int_equal(post(kind, iov), DAT_SUCCESS);
		assert_null(mock.req);
		event = mock_event(ia.evd);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_ERR_FLUSHED);
	}
}

static void post__unconnected__requests_refused_and_receives_accepted(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	remember_region(SEND);
	ep->state = DAT_EP_STATE_UNCONNECTED;
	core_ep_update_slow_reasons(ep);
	assert_int_equal(mock_code(post(SEND, iov)), DAT_INVALID_STATE);
	assert_int_equal(mock_code(post(WRITE, iov)), DAT_INVALID_STATE);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	ep->state = DAT_EP_STATE_CONNECTED;
}

/* EP-WMARK-02 EP-WMARK-03 EP-WMARK-04 */
static void post_recv__soft_watermark_passed__event(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	remember_region(RECEIVE);
	assert_int_equal(core_ep_set_watermark(handle, 2, DAT_WATERMARK_INFINITE), DAT_SUCCESS);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	mock_no_event(ia.async);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	assert_int_equal(mock_event(ia.async).event_data.asynch_error_event_data.reason,
			 DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	mock_no_event(ia.async);
}

/* EP-WMARK-06 */
static void post_recv__hard_watermark_passed__connection_breaks(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	remember_region(RECEIVE);
	assert_int_equal(core_ep_set_watermark(handle, DAT_WATERMARK_INFINITE, 2), DAT_SUCCESS);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	assert_int_equal(mock.aborts, 0);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	assert_int_equal(mock.aborts, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(post__known_region__request_as_posted),
		T(post_recv__known_region__receive_as_posted),
		T(post__one_segment_then_several_then_none__each_as_posted),
		T(post__each_parameter__fast_only_if_all_are_supported),
		T(post__longer_than_allowed__not_on_the_fast_path),
		T(post__queue_full__not_on_the_fast_path),
		T(post__region_gone_or_of_another_zone__not_on_the_fast_path),
		T(post__transport_declines__slow_path_slot_called),
		T(post__at_the_edges_of_the_region__refused_outside),
		T(post__empty_segment__left_out),
		T(post__another_context__privileges_violation),
		T(post__region_freed__refused),
		T(post__slot_reused__old_key_refused_and_new_one_accepted),
		T(post__slot_reused_with_other_privileges__new_ones_apply),
		T(post__key_issued_again__new_region_applies),
		T(core_mem_know_around__each_address__part_of_that_size),
		T(core_mem_publish__each_use__another_name),
		T(post_recv__zone_of_the_endpoint_changed__protection_violation),
		T(post__longer_than_allowed__refused),
		T(rdma__above_max_rdma_size_of_the_endpoint__limit_of_the_adapter_applies),
		T(rdma_write__above_max_rdma_size_of_the_endpoint__fast),
		T(rdma_write__target_shorter_or_missing__refused),
		T(post__no_segment_list_or_none_allowed__refused),
		T(post__unsupported_flags__refused),
		T(post__queue_full__refused),
		T(post__disconnected__flushed),
		T(post__unconnected__requests_refused_and_receives_accepted),
		T(post_recv__soft_watermark_passed__event),
		T(post_recv__hard_watermark_passed__connection_breaks),
	};

	return cmocka_run_group_tests_name("core post", tests, NULL, NULL);
}
