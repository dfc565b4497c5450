// SPDX-License-Identifier: BSD-2-Clause
/* Posts on the fast path over TCP. */
#include "fast_stage.h"

/* MPA-47 DDP-08 RDMAP-11 EP-SEND-22: with and without a CRC, up to the largest */
static void post__small_send__fast_and_right(void **state)
{
	static const uint8_t flags[] = {0, FLAG_C};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		begin_fast(flags[i]);
		assert_true(post_fast(1, 1, DAT_COMPLETION_DEFAULT_FLAG));
		get_send(1, 1, IW_OP_SEND, 2);
		expect_dto(1, DAT_DTO_SUCCESS, 1);
		assert_true(post_fast(7, SIZE, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
		get_send(7, SIZE, IW_OP_SEND_SOLICITED, 3);
		expect_dto(7, DAT_DTO_SUCCESS, SIZE);
		assert_true(post_fast(9, IW_DIRECT_MIN - 1, DAT_COMPLETION_SUPPRESS_FLAG));
		get_send(9, IW_DIRECT_MIN - 1, IW_OP_SEND, 4);
		assert_false(post_fast(11, IW_DIRECT_MIN, DAT_COMPLETION_DEFAULT_FLAG));
		get_send(11, IW_DIRECT_MIN, IW_OP_SEND, 5);
		expect_dto(11, DAT_DTO_SUCCESS, IW_DIRECT_MIN);
		end_fast();
	}
}

/* MPA-55: the FPDUs of a foreign peer follow the segment size of TCP */
static void post__foreign_peer__slow(void **state)
{
	struct taken rtr;

	(void)state;
	be_calling_with(0, 0, 0);
	get_fpdu(&rtr);
	begin_sends();
	assert_false(post_fast(0, SIZE, DAT_COMPLETION_SUPPRESS_FLAG));
	get_send(0, SIZE, IW_OP_SEND, 2);
	end_fast();
}

/* A post right behind another one may begin a stream (hold.h). */
static void post__follows_another__slow(void **state)
{
	(void)state;
	begin_fast(0);
	lock_flow();
	iw_hold_break(&conn_of_flow()->stream.tx.hold);
	assert_true(post_locked(segment_at(1, SIZE), DAT_COMPLETION_DEFAULT_FLAG));
	assert_false(post_locked(segment_at(2, SIZE), DAT_COMPLETION_DEFAULT_FLAG));
	unlock_flow();
	get_send(1, SIZE, IW_OP_SEND, 2);
	get_send(2, SIZE, IW_OP_SEND, 3);
	expect_dto(1, DAT_DTO_SUCCESS, SIZE);
	expect_dto(2, DAT_DTO_SUCCESS, SIZE);
	end_fast();
}

/* DTO-30 DTO-37: behind a Read in flight a fenced Send waits, and so does what follows it */
static void post__fence_behind_a_read__waits(void **state)
{
	struct iw_read_request request;

	(void)state;
	begin_fast(0);
	post_read_at(4096, SIZE, 77, 0, DAT_COMPLETION_DEFAULT_FLAG);
	request = get_read_request();
	assert_true(post_fast(1, SIZE, DAT_COMPLETION_DEFAULT_FLAG));
	get_send(1, SIZE, IW_OP_SEND, 2);
	assert_false(post_fast(2, SIZE, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	assert_false(post_fast(3, SIZE, DAT_COMPLETION_DEFAULT_FLAG));
	expect_quiet(stage.evd);
	peer_respond(request.sink_stag, 0, flow.region + 4096, SIZE, true);
	get_send(2, SIZE, IW_OP_SEND, 3);
	get_send(3, SIZE, IW_OP_SEND, 4);
	expect_dto(4096, DAT_DTO_SUCCESS, SIZE);
	expect_dto(1, DAT_DTO_SUCCESS, SIZE);
	expect_dto(2, DAT_DTO_SUCCESS, SIZE);
	expect_dto(3, DAT_DTO_SUCCESS, SIZE);
	end_fast();
}

/* MPA-59 DTO-34 DTO-37: TCP takes nothing, or a part, and the rest later */
static void post__tcp_takes_a_part__rest_follows(void **state)
{
	static const size_t limits[] = {0, 1, 30, SIZE};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(limits); i++) {
		begin_fast(0);
		atomic_store(&send_limit, limits[i]);
		assert_true(post_fast(1, SIZE, DAT_COMPLETION_DEFAULT_FLAG));
		assert_false(post_fast(2, SIZE, DAT_COMPLETION_DEFAULT_FLAG));
		expect_quiet(stage.evd);
		atomic_store(&send_limit, NO_LIMIT);
		get_send(1, SIZE, IW_OP_SEND, 2);
		get_send(2, SIZE, IW_OP_SEND, 3);
		expect_dto(1, DAT_DTO_SUCCESS, SIZE);
		expect_dto(2, DAT_DTO_SUCCESS, SIZE);
		end_fast();
	}
}

/* Does the fast path decline such a request of that region? */
static bool is_declined(enum core_op op, DAT_LMR_CONTEXT context)
{
	DAT_LMR_TRIPLET segment = segment_at(0, SIZE);
	struct core_req *req;
	bool is_taken;

	segment.lmr_context = context;
	req = take_slot(segment, DAT_COMPLETION_SUPPRESS_FLAG);
	req->op = op;
	iw_hold_break(&conn_of_flow()->stream.tx.hold);
	is_taken = iw_post_fast(conn_of_flow(), locked, req);
	if (!is_taken)
		locked->req.tail--;
	return !is_taken;
}

/* LMR-FREE-06: the region is checked when it is read */
static void post__region_is_gone__declined(void **state)
{
	(void)state;
	begin_fast(0);
	lock_flow();
	assert_true(is_declined(CORE_OP_SEND, flow.lkey + 1));
	assert_false(is_declined(CORE_OP_SEND, flow.lkey));
	unlock_flow();
	get_send(0, SIZE, IW_OP_SEND, 2);
	end_fast();
}

/* TERM-06: nothing is sent behind a Terminate */
static void post__connection_ends__declined(void **state)
{
	(void)state;
	begin_fast(0);
	lock_flow();
	iw_conn_set_state(conn_of_flow(), IW_CLOSING);
	assert_true(is_declined(CORE_OP_SEND, flow.lkey));
	iw_conn_set_state(conn_of_flow(), IW_ESTABLISHED);
	unlock_flow();
	end_fast();
}

/* MPA-18: a responder sends nothing before it has received an FPDU */
static void post__may_not_send_yet__declined(void **state)
{
	struct iw_tx *tx;

	(void)state;
	begin_fast(0);
	lock_flow();
	tx = &conn_of_flow()->stream.tx;
	tx->may_send = false;
	assert_true(is_declined(CORE_OP_SEND, flow.lkey));
	tx->may_send = true;
	unlock_flow();
	end_fast();
}

/* DDP-10: a pass has ended in the middle of a Read Response */
static void post__response_has_begun__declined(void **state)
{
	struct iw_conn *conn;
	uint64_t give_up = now_ms() + WAIT_MS;

	(void)state;
	begin_fast(0);
	conn = conn_of_flow();
	lock_flow();
	atomic_store(&is_swallowing, true);
	for (unsigned i = 0; i < 5; i++) {
		const struct iw_read_request request = {.size = REGION - 7,
							.source_stag = flow.rkey,
							.source_offset = address_of(flow.region)};

		peer_read(&request);
	}
	await_bytes(5 * (IW_FPDU_HEAD + IW_UNTAGGED_HEAD + IW_READ_REQUEST_SIZE + IW_FPDU_CRC));
	while (!conn->stream.tx.is_in_response && now_ms() < give_up)
		pass_locked();
	assert_true(conn->stream.tx.is_in_response);
	assert_false(iw_frame_has_unsent(conn));
	assert_true(is_declined(CORE_OP_SEND, flow.lkey));
	unlock_flow();
	expect_served();
	atomic_store(&is_swallowing, false);
	end_fast();
}

/* RDMAP-33 RDMAP-34: an RDMA Write completes by its proof */
static void post__rdma_write__declined(void **state)
{
	(void)state;
	begin_fast(0);
	lock_flow();
	assert_true(is_declined(CORE_OP_RDMA_WRITE, flow.lkey));
	unlock_flow();
	end_fast();
}

/* More bytes than the buffer has room for, one after the other. */
static void post__many__buffer_is_used_again(void **state)
{
	(void)state;
	begin_fast(0);
	for (uint32_t i = 0; i < 2 * IW_TX_SIZE / IW_DIRECT_MIN; i++) {
		assert_true(post_fast(9, IW_DIRECT_MIN - 1, DAT_COMPLETION_SUPPRESS_FLAG));
		get_send(9, IW_DIRECT_MIN - 1, IW_OP_SEND, 2 + i);
	}
	end_fast();
}

/* MPA-59: nothing but room in TCP makes the rest go on */
static void post__tcp_takes_a_part__goes_on_by_itself(void **state)
{
	static const size_t limits[] = {0, 30};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(limits); i++) {
		begin_fast(0);
		atomic_store(&send_limit, limits[i]);
		assert_true(post_fast(1, SIZE, DAT_COMPLETION_SUPPRESS_FLAG));
		assert_true(conn_of_flow()->events & EPOLLOUT);
		atomic_store(&send_limit, NO_LIMIT);
		get_send(1, SIZE, IW_OP_SEND, 2);
		end_fast();
	}
}

/* IWCM-32: TCP has failed, and nobody has noticed it yet */
static void post__connection_is_lost__fails_as_on_the_slow_path(void **state)
{
	(void)state;
	for (int is_slow = 0; is_slow < 2; is_slow++) {

		begin_fast(0);
		lock_flow();
		iw_conn_lose(conn_of_flow(), -ECONNRESET);
		if (!is_slow)
			iw_hold_break(&conn_of_flow()->stream.tx.hold);
		(void)post_locked(segment_at(1, SIZE), DAT_COMPLETION_DEFAULT_FLAG);
		(void)post_locked(segment_at(2, SIZE), DAT_COMPLETION_SUPPRESS_FLAG);
		unlock_flow();
		expect_dto(1, DAT_DTO_ERR_TRANSPORT, 0);
		expect_dto(2, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		end_broken();
	}
}

/* IWCM-37: no call for the socket before it is time */
static void post__kernel_lacks_memory__sent_later(void **state)
{
	int handled = 0;

	(void)state;
	begin_fast(0);
	lock_flow();
	atomic_store(&recv_errno, ENOMEM);
	assert_false(poll_locked(&handled));
	iw_hold_break(&conn_of_flow()->stream.tx.hold);
	assert_true(post_locked(segment_at(1, SIZE), DAT_COMPLETION_DEFAULT_FLAG));
	assert_true(iw_frame_has_unsent(conn_of_flow()));
	unlock_flow();
	get_send(1, SIZE, IW_OP_SEND, 2);
	expect_dto(1, DAT_DTO_SUCCESS, SIZE);
	end_fast();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fast, close_fast)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(post__small_send__fast_and_right),
		TEST(post__foreign_peer__slow),
		TEST(post__follows_another__slow),
		TEST(post__fence_behind_a_read__waits),
		TEST(post__tcp_takes_a_part__rest_follows),
		TEST(post__region_is_gone__declined),
		TEST(post__connection_ends__declined),
		TEST(post__may_not_send_yet__declined),
		TEST(post__response_has_begun__declined),
		TEST(post__rdma_write__declined),
		TEST(post__many__buffer_is_used_again),
		TEST(post__tcp_takes_a_part__goes_on_by_itself),
		TEST(post__connection_is_lost__fails_as_on_the_slow_path),
		TEST(post__kernel_lacks_memory__sent_later),
	};

	return cmocka_run_group_tests_name("posts on the fast path over TCP", tests, provide, NULL);
}
