// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which posts take the fast path: those of one segment in the region of the previous post.
 */
#include "core/mem/mem.h"
#include "core/mem/pz.h"
#include "post_use.h"

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

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(post__each_parameter__fast_only_if_all_are_supported),
		T(post__longer_than_allowed__not_on_the_fast_path),
		T(post__target_too_short__length_error),
		T(post__queue_full__not_on_the_fast_path),
		T(post__region_gone_or_of_another_zone__not_on_the_fast_path),
		T(post__transport_declines__slow_path_slot_called),
	};

	return cmocka_run_group_tests_name("core post fast", tests, NULL, NULL);
}
