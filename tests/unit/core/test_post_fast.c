// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which posts take the fast path: those of one segment in the region of the previous post.
 */
#include <sys/mman.h>

#include "core/mem/mem.h"
#include "core/mem/pz.h"
#include "post_use.h"
#include "core/ep/ep_state.h"

static void expect_path(enum kind kind, DAT_COUNT segments, DAT_LMR_TRIPLET iov,
			DAT_COMPLETION_FLAGS flags, bool is_fast)
{
	DAT_LMR_TRIPLET list[2] = {iov, iov};
	DAT_RMR_TRIPLET remote = {.rmr_context = 5,
				  .segment_length = iov.segment_length * (kind == WRITE ? 2 : 1)};
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
	else if (kind == READ)
		ret = core_ep_post_rdma_read(handle, segments, list, cookie, &remote, flags);
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
	/* EP-RECV-16 DTO-80: the length that a message is compared with */
	if (is_fast && kind == RECEIVE)
		assert_true(recv_at(posted(kind) - 1 - ep->recv.head)->len == iov.segment_length);
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

/* EP-SEND-09 EP-RDMAW-11: a Send may be longer than RDMA */
static void post_send__longer_than_rdma_may_be__accepted(void **state)
{
	(void)state;
	if (!mock_own(handle))
		skip();
	mock.ia->attr.max_rdma_size = 12;
	remember_region(SEND);
	complete_all();
	for (unsigned takes = 0; takes < 2; takes++) {
		mock.takes_fast = takes;
		assert_int_equal(post(SEND, segment(key, 0, 13)), DAT_SUCCESS);
		assert_int_equal(post(WRITE, segment(key, 0, 12)), DAT_SUCCESS);
		assert_int_equal(post(WRITE, segment(key, 0, 13)),
				 error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	}
	complete_all();
	mock.takes_fast = false;
}

/* DTO-04: the length of a transfer has 64 bits */
static void rdma_read__four_gib_less_one__whole_length(void **state)
{
	const DAT_VLEN len = UINT32_MAX;
	void *large = mmap(NULL, len + 1, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	DAT_RMR_TRIPLET remote = {.rmr_context = 5, .segment_length = len};
	DAT_REGION_DESCRIPTION region = {.for_va = large};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};
	DAT_LMR_TRIPLET iov = {.virtual_address = (uintptr_t)large};
	DAT_LMR_HANDLE whole;
	DAT_EVENT event;

	(void)state;
	assert_ptr_not_equal(large, MAP_FAILED);
	mock.ia->attr.max_lmr_block_size = len + 1;
	mock.ia->attr.max_rdma_size = len;
	assert_int_equal(core_lmr_create(ia.ia, DAT_MEM_TYPE_VIRTUAL, region, len + 1, ia.pz,
					 DAT_MEM_PRIV_ALL_FLAG, &whole, &iov.lmr_context, NULL,
					 NULL, NULL),
			 DAT_SUCCESS);
	for (DAT_VLEN more = 0; more < 2; more++) {
		iov.segment_length = len + more;
		assert_int_equal(core_ep_post_rdma_read(handle, 1, &iov, cookie, &remote, 0),
				 DAT_SUCCESS);
		core_lock_acquire(&ep->cell->lock);
		core_req_done(ep, mock.req, DAT_DTO_SUCCESS, mock.req->len);
		core_ep_leave(ep);
		event = mock_event(ia.evd);
		assert_true(event.event_data.dto_completion_event_data.transfered_length == len);
	}
	remote.segment_length = len + 1;
	assert_int_equal(core_ep_post_rdma_read(handle, 1, &iov, cookie, &remote, 0),
			 error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
	assert_int_equal(core_lmr_free(whole), DAT_SUCCESS);
	assert_int_equal(munmap(large, len + 1), 0);
}

/* EP-RDMAW-35 EP-RDMAW-36 LMR-USE-08 */
static void post__target_too_short__length_error(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	DAT_RMR_TRIPLET remote = {.rmr_context = 5};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	(void)state;
	if (!mock_own(handle))
		skip();
	remember_region(WRITE);
	complete_all();
	mock.takes_fast = true;
	for (DAT_VLEN length = 7; length <= 9; length++) {
		bool fits = length >= iov.segment_length;
		unsigned int before = fast_calls();
		uint64_t tail = ep->req.tail;

		remote.segment_length = length;
		assert_int_equal(core_ep_post_rdma_write(handle, 1, &iov, cookie, &remote,
							 DAT_COMPLETION_DEFAULT_FLAG),
				 fits ? DAT_SUCCESS : error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE));
		assert_int_equal(fast_calls(), before + fits);
		assert_true(ep->req.tail == tail + fits);
	}
	complete_all();
	mock.takes_fast = false;
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
		assert_int_equal(post(kind, iov), core_error(DAT_PROTECTION_VIOLATION,
							     kind >= READ ? DAT_PROTECTION_WRITE
									  : DAT_PROTECTION_READ));
	ep->pz = ((struct core_handle *)ia.pz)->object;
	for (enum kind kind = 0; kind < KINDS; kind++)
		remember_region(kind);
	/* the Write uses the region of the Send, and the Receive that of the Read */
	assert_int_equal(fast_calls(), before + 2);
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	for (enum kind kind = 0; kind < KINDS; kind++)
		assert_int_equal(post(kind, iov), privileges_error(kind));
	assert_int_equal(fast_calls(), before + 2);
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

/* Posts a Send and a Receive in the region of the posts before. Returns how many were fast. */
static unsigned int fast_of_two(void)
{
	const DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	const unsigned int before = fast_calls();

	(void)post(SEND, iov);
	(void)post(RECEIVE, iov);
	return fast_calls() - before;
}

static void set_watermarks(DAT_COUNT soft, DAT_COUNT hard)
{
	assert_int_equal(core_ep_set_watermark(handle, soft, hard), DAT_SUCCESS);
}

/* EP-WMARK-01 EP-WMARK-04 EP-WMARK-05: after its event the soft watermark has no effect */
static void post__watermark_armed__not_on_the_fast_path(void **state)
{
	(void)state;
	if (!mock_own(handle))
		skip();
	remember_region(SEND);
	remember_region(RECEIVE);
	complete_all();
	mock.takes_fast = true;
	assert_int_equal(fast_of_two(), 2);
	set_watermarks(2, DAT_WATERMARK_INFINITE);
	assert_int_equal(fast_of_two(), 0);
	assert_int_equal(fast_of_two(), 0);
	assert_int_equal(mock_event(ia.async).event_number,
			 DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	assert_int_equal(fast_of_two(), 2);
	set_watermarks(DAT_WATERMARK_INFINITE, 100);
	assert_int_equal(fast_of_two(), 0);
	set_watermarks(DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE);
	assert_int_equal(fast_of_two(), 2);
	complete_all();
	mock.takes_fast = false;
}

/* DTO-48: nothing succeeds after a failure, nor is posted while the connection ends */
static void post__connection_ends__not_on_the_fast_path(void **state)
{
	(void)state;
	if (!mock_own(handle))
		skip();
	mock.takes_fast = true;
	for (int is_graceful = 0; is_graceful < 2; is_graceful++) {
		remember_region(SEND);
		remember_region(RECEIVE);
		complete_all();
		assert_int_equal(fast_of_two(), 2);
		if (is_graceful) {
			assert_int_equal(core_ep_disconnect(handle, DAT_CLOSE_GRACEFUL_FLAG),
					 DAT_SUCCESS);
		} else {
			core_lock_acquire(&ep->cell->lock);
			core_req_done(ep, mock.req, DAT_DTO_ERR_REMOTE_ACCESS, 0);
			core_ep_leave(ep);
		}
		assert_int_equal(fast_of_two(), 0);
		assert_int_equal(core_ep_disconnect(handle, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
		assert_int_equal(fast_of_two(), 0);
		complete_all();
		assert_int_equal(core_ep_reset(handle), DAT_SUCCESS);
		complete_all();
		assert_int_equal(fast_of_two(), 0);
		complete_all();
		mock_link(&ia, handle);
	}
	complete_all();
	mock.takes_fast = false;
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(post__each_parameter__fast_only_if_all_are_supported),
		T(post__longer_than_allowed__not_on_the_fast_path),
		T(post_send__longer_than_rdma_may_be__accepted),
		T(rdma_read__four_gib_less_one__whole_length),
		T(post__target_too_short__length_error),
		T(post__queue_full__not_on_the_fast_path),
		T(post__region_gone_or_of_another_zone__not_on_the_fast_path),
		T(post__transport_declines__slow_path_slot_called),
		T(post__watermark_armed__not_on_the_fast_path),
		T(post__connection_ends__not_on_the_fast_path),
	};

	return cmocka_run_group_tests_name("core post fast", tests, NULL, NULL);
}
