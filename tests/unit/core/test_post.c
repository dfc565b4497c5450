// SPDX-License-Identifier: BSD-2-Clause
/*
 * Posts of one segment: the recorded request, and the checks that do not concern memory.
 */
#include "post_use.h"

/* --- contents of a posted request --- */

static void post__known_region__request_as_posted(void **state)
{
	const DAT_COMPLETION_FLAGS flags =
		DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;

	(void)state;
	static const enum core_op ops[] = {
		[SEND] = CORE_OP_SEND, [WRITE] = CORE_OP_RDMA_WRITE, [READ] = CORE_OP_RDMA_READ};

	for (enum kind kind = SEND; kind <= READ; kind++) {
		DAT_LMR_TRIPLET iov = segment(key, 100, 50);

		remember_region(kind);
		mock.req = NULL;
		assert_int_equal(post_flags(kind, &iov, flags), DAT_SUCCESS);
		assert_non_null(mock.req);
		assert_int_equal(mock.req->op, ops[kind]);
		assert_int_equal(mock.req->flags, flags);
		assert_int_equal(mock.req->segments, 1);
		assert_int_equal(mock.req->len, 50);
		assert_memory_equal(mock.req->iov, &iov, sizeof(iov));
		assert_int_equal(mock.req->cookie.as_64, 99);
		assert_int_equal(mock.req->sequence, ep->req.tail - 1);
		if (kind != SEND) {
			assert_int_equal(mock.req->remote.rmr_context, 5);
			assert_int_equal(mock.req->remote.target_address, 77);
		}
	}
}

/* DTO-79 DTO-80: the length of the Receive, not that of its region, limits the message */
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

#define MANY 8 /* segments of a Write */
#define WRITES 3

/* Posts Writes of several segments each and compares what the requests keep. */
static void check_writes_of_many(DAT_EP_HANDLE poster)
{
	const DAT_RMR_TRIPLET remote = {.rmr_context = 5, .segment_length = 100};
	const struct core_req *kept[WRITES];
	DAT_LMR_TRIPLET iov[WRITES][MANY];

	for (int i = 0; i < WRITES; i++) {
		DAT_DTO_COOKIE cookie = {.as_64 = (DAT_UINT64)i};

		for (int k = 0; k < MANY; k++)
			iov[i][k] = segment(key, 100 * i + 10 * k, (DAT_VLEN)k + 1);
		assert_int_equal(core_ep_post_rdma_write(poster, MANY, iov[i], cookie, &remote, 0),
				 DAT_SUCCESS);
		kept[i] = mock.req;
	}
	for (int i = 0; i < WRITES; i++) {
		assert_int_equal(kept[i]->segments, MANY);
		assert_memory_equal(kept[i]->iov, iov[i], sizeof(iov[i]));
	}
}

/* EP-RDMAW-04 EP-RDMAW-10 EP-RDMAW-15: a queue made with that limit */
static void rdma_write__limit_above_the_others__keeps_all_segments(void **state)
{
	DAT_EP_ATTR attr = ep->attr;
	DAT_EP_HANDLE other;

	(void)state;
	attr.max_request_iov = attr.max_rdma_read_iov = 1;
	attr.max_rdma_write_iov = MANY;
	other = mock_ep_with(&ia, &attr);
	mock_link(&ia, other);
	check_writes_of_many(other);
}

/* EP-RDMAW-04 EP-RDMAW-10 EP-RDMAW-15: a queue whose limit grows, and no other */
static void rdma_write__limit_raised__keeps_all_segments(void **state)
{
	DAT_EP_PARAM param = {.ep_attr = ep->attr};
	DAT_EP_ATTR *attr = &param.ep_attr;
	DAT_EP_HANDLE other;

	(void)state;
	attr->max_request_iov = attr->max_rdma_read_iov = attr->max_rdma_write_iov = 1;
	other = mock_ep_with(&ia, attr);
	attr->max_rdma_write_iov = MANY;
	assert_int_equal(core_ep_modify(other, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, &param),
			 DAT_SUCCESS);
	mock_link(&ia, other);
	check_writes_of_many(other);
}

/* --- other checks --- */

/* EP-SEND-09 EP-RDMAW-11: each has its own limit, though the fast path keeps one for both */
static void post__longer_than_allowed__refused(void **state)
{
	DAT_LMR_TRIPLET longest = segment(key, 0, 16), longer = segment(key, 0, 17);

	(void)state;
	for (enum kind kind = SEND; kind <= WRITE; kind++) {
		ep->attr.max_message_size = kind == SEND ? 16 : LENGTH;
		ep->ia->attr.max_rdma_size = kind == SEND ? LENGTH : 16;
		*known(kind) = CORE_MEM_CACHE_EMPTY;
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

/* Posts an RDMA Read of that many remote bytes into a segment of 16. */
static void expect_read(DAT_VLEN remote_len, DAT_RETURN ret, bool is_fast)
{
	DAT_RMR_TRIPLET remote = {.rmr_context = 5, .segment_length = remote_len};
	DAT_LMR_TRIPLET iov = segment(key, 0, 16);
	DAT_DTO_COOKIE cookie = {.as_64 = 1};
	unsigned int before = mock.fast_posts;
	uint64_t tail = ep->req.tail;

	mock.req = NULL;
	assert_int_equal(core_ep_post_rdma_read(handle, 1, &iov, cookie, &remote, 0), ret);
	assert_true(ep->req.tail == tail + (ret == DAT_SUCCESS));
	assert_int_equal(mock.fast_posts, before + is_fast);
	if (ret != DAT_SUCCESS)
		return;
	/* EP-RDMAR-02 EP-RDMAR-05: the rest of the segment is not part of the transfer */
	assert_int_equal(mock.req->len, remote_len);
	assert_int_equal(mock.req->segments, remote_len ? 1 : 0);
	if (remote_len)
		assert_int_equal(mock.req->iov->segment_length, remote_len);
	complete_all();
}

/* The fast path looks at the limit of the adapter when it remembers a region. */
static void limit_rdma(DAT_VLEN most)
{
	ep->ia->attr.max_rdma_size = most;
	*known(READ) = CORE_MEM_CACHE_EMPTY;
	remember_region(READ);
	complete_all();
}

/* EP-RDMAR-02 EP-RDMAR-04 EP-RDMAR-05 EP-RDMAR-07 EP-RDMAR-10 DTO-04 */
static void rdma_read__each_remote_length__that_many_bytes_or_refused(void **state)
{
	(void)state;
	if (!mock_own(handle))
		skip();
	for (unsigned takes = 0; takes < 2; takes++) {
		mock.takes_fast = takes;
		limit_rdma(12);
		expect_read(0, DAT_SUCCESS, false);
		expect_read(1, DAT_SUCCESS, true);
		expect_read(12, DAT_SUCCESS, true);
		expect_read(13, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5), false);
		limit_rdma(64);
		expect_read(16, DAT_SUCCESS, true);
		expect_read(17, error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE), false);
		expect_read(UINT64_MAX, error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE), false);
	}
	mock.takes_fast = false;
}

/* DTO-109 DTO-110 */
static void rdma_read__none_allowed__refused(void **state)
{
	const DAT_RETURN refused = error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_CREDITS);
	DAT_COUNT most = ep->attr.max_rdma_read_out;
	uint32_t peer = ep->peer_read_in;

	(void)state;
	remember_region(READ);
	complete_all();
	ep->attr.max_rdma_read_out = 0;
	expect_read(8, refused, false);
	ep->attr.max_rdma_read_out = most;
	ep->peer_read_in = 0;
	expect_read(8, refused, false);
	ep->peer_read_in = peer;
	expect_read(8, DAT_SUCCESS, true);
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
	ep->attr.max_rdma_read_iov = 0;
	ep->attr.max_recv_iov = 0;
	core_ep_update_slow_reasons(ep);
	assert_int_equal(ep->cell->slow_reasons, CORE_EP_SLOW_LIMIT);
	for (enum kind kind = 0; kind < KINDS; kind++)
		expect(kind, &iov, 0, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
}

/* EP-SEND-26 EP-RDMAR-27 EP-RDMAW-25 EP-RDMAW-28 EP-RECV-21 EP-RECV-22 EP-RECV-24 DTO-19 */
static void post__unsupported_flags__refused(void **state)
{
	static const DAT_COMPLETION_FLAGS flags[] = {
		DAT_COMPLETION_UNSIGNALLED_FLAG, (DAT_COMPLETION_FLAGS)0x20,
		(DAT_COMPLETION_FLAGS)0x80000000u, (DAT_COMPLETION_FLAGS)0x100};
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	DAT_EP_ATTR attr;

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		bool is_rdma = kind == WRITE || kind == READ;
		DAT_RETURN arg = is_rdma ? DAT_INVALID_ARG6 : DAT_INVALID_ARG5;

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
	const DAT_RETURN refused = core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	remember_region(SEND);
	ep->state = DAT_EP_STATE_UNCONNECTED;
	core_ep_update_slow_reasons(ep);
	assert_int_equal(post(SEND, iov), refused);
	assert_int_equal(post(WRITE, iov), refused);
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
		T(rdma_write__limit_above_the_others__keeps_all_segments),
		T(rdma_write__limit_raised__keeps_all_segments),
		T(post__longer_than_allowed__refused),
		T(rdma__above_max_rdma_size_of_the_endpoint__limit_of_the_adapter_applies),
		T(rdma_write__above_max_rdma_size_of_the_endpoint__fast),
		T(rdma_read__each_remote_length__that_many_bytes_or_refused),
		T(rdma_read__none_allowed__refused),
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
