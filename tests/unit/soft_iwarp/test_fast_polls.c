// SPDX-License-Identifier: BSD-2-Clause
/* Polls on the fast path over TCP. */
#include "fast_stage.h"

/* The first message of the peer, in one segment. */
static const struct iw_ddp whole = {.opcode = IW_OP_SEND, .msn = 1, .is_last = true};
static const size_t send_size = IW_FPDU_HEAD + IW_UNTAGGED_HEAD + SIZE + IW_FPDU_CRC;

/* MPA-53 DDP-28 DTO-35: one message, and several that one call reads */
static void poll__whole_messages__fast(void **state)
{
	static const uint8_t flags[] = {0, FLAG_C};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		uint8_t bytes[SIZE];
		int handled = 0;

		begin_fast(flags[i]);
		make_pattern(bytes, SIZE);
		for (size_t n = 0; n < 3; n++) {
			memset(flow.region + n * SIZE, 0, SIZE);
			post_recv_at(n * SIZE, SIZE);
		}
		lock_flow();
		peer_send(bytes, SIZE);
		await_bytes(send_size);
		conn_of_flow()->moved = 0;
		assert_true(poll_locked(&handled));
		assert_int_equal(handled, 1);
		assert_int_equal(conn_of_flow()->moved, send_size);
		assert_false(was_solicited);
		peer_send(bytes, SIZE);
		peer_send(bytes, SIZE);
		await_bytes(2 * send_size);
		assert_true(poll_locked(&handled));
		assert_int_equal(handled, 3);
		unlock_flow();
		for (size_t n = 0; n < 3; n++) {
			expect_dto(n * SIZE, DAT_DTO_SUCCESS, SIZE);
			expect_pattern(flow.region + n * SIZE, SIZE);
		}
		end_fast();
	}
}

/* RDMAP-12 DTO-23 */
static void poll__solicited__so_is_the_receive(void **state)
{
	struct iw_ddp ddp;
	int handled = 0;

	(void)state;
	begin_fast(0);
	post_recv_at(0, SIZE);
	lock_flow();
	ddp = send_header(0, true);
	ddp.opcode = IW_OP_SEND_SOLICITED;
	put_segment(&ddp, flow.region, SIZE);
	await_bytes(send_size);
	assert_true(poll_locked(&handled));
	assert_true(was_solicited);
	unlock_flow();
	expect_dto(0, DAT_DTO_SUCCESS, SIZE);
	end_fast();
}

/* An idle poll breaks a stream. */
static void poll__nothing__fast_and_idle(void **state)
{
	int handled = 0;

	(void)state;
	begin_fast(0);
	lock_flow();
	iw_hold_begin(&conn_of_flow()->stream.tx.hold);
	conn_of_flow()->has_more = true;
	assert_true(poll_locked(&handled));
	assert_int_equal(handled, 0);
	assert_true(iw_hold_is_broken(&conn_of_flow()->stream.tx.hold));
	assert_false(conn_of_flow()->has_more);
	unlock_flow();
	end_fast();
}

/* IWCM-32 IWCM-37: the kernel tells an error once */
static void poll__read_fails__left_to_a_pass(void **state)
{
	int handled = 0;

	(void)state;
	begin_fast(0);
	lock_flow();
	atomic_store(&recv_errno, EINTR);
	assert_false(poll_locked(&handled));
	assert_false(conn_of_flow()->is_lost);
	atomic_store(&recv_errno, ENOMEM);
	assert_false(poll_locked(&handled));
	assert_true(conn_of_flow()->retry_ns > 0);
	/* no call before it is time */
	atomic_store(&recv_errno, EIO);
	assert_false(poll_locked(&handled));
	assert_int_equal(atomic_load(&recv_errno), EIO);
	conn_of_flow()->retry_ns = 0;
	assert_false(poll_locked(&handled));
	assert_true(conn_of_flow()->is_lost);
	assert_int_equal(handled, 0);
	pass_locked();
	unlock_flow();
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_broken();
}

/* IWCM-30 */
static void poll__end_of_stream__left_to_a_pass(void **state)
{
	uint64_t give_up = now_ms() + WAIT_MS;
	int handled = 0;

	(void)state;
	begin_fast(0);
	lock_flow();
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	while (poll_locked(&handled))
		assert_true(now_ms() < give_up);
	pass_locked();
	unlock_flow();
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	end_broken();
}

/* What the endpoint or the connection is in the middle of. Each function makes it so, or undoes it.
 */
static void wait_for_retry(bool is_set)
{
	conn_of_flow()->retry_ns = is_set;
}

static void have_reason(bool is_set)
{
	core_handle_put_slow(locked->cell, CORE_EP_SLOW_WATERMARK,
			     is_set ? CORE_EP_SLOW_WATERMARK : 0);
}

static void expect_first(bool is_set)
{
	conn_of_flow()->stream.rx.is_any = !is_set;
}

static void open_payload(bool is_set)
{
	conn_of_flow()->stream.rx.is_open = is_set;
}

static void keep_bytes(bool is_set)
{
	struct iw_buffer *in = &conn_of_flow()->stream.rx.in;

	in->end = is_set ? in->start + 1 : in->start;
}

static void keep_unsent(bool is_set)
{
	struct iw_buffer *out = &conn_of_flow()->stream.tx.out;

	out->end = is_set ? out->start + 1 : out->start;
}

static void poll__other_work__socket_is_not_read(void **state)
{
	static void (*const works[])(bool is_set) = {wait_for_retry, have_reason, expect_first,
						     open_payload,   keep_bytes,  keep_unsent};
	int handled = 0;

	(void)state;
	begin_fast(0);
	post_recv_at(0, SIZE);
	lock_flow();
	peer_send(flow.region, SIZE);
	await_bytes(send_size);
	for (size_t i = 0; i < COUNT_OF(works); i++) {
		works[i](true);
		assert_false(poll_locked(&handled));
		works[i](false);
		await_bytes(send_size);
	}
	assert_true(poll_locked(&handled));
	assert_int_equal(handled, 1);
	unlock_flow();
	expect_dto(0, DAT_DTO_SUCCESS, SIZE);
	end_fast();
}

/*
 * The peer sends these bytes, of which the fast path takes nothing. The pass that follows reads no
 * more than was read.
 */
static void decline(const struct fpdu *fpdu)
{
	int handled = 0;

	lock_flow();
	put_fpdu(fpdu);
	await_bytes(fpdu->size);
	assert_false(poll_locked(&handled));
	assert_int_equal(handled, 0);
	assert_int_equal(iw_buffer_count(&conn_of_flow()->stream.rx.in), fpdu->size);
	atomic_store(&recv_errno, EIO);
	pass_locked();
	assert_int_equal(atomic_exchange(&recv_errno, 0), EIO);
	unlock_flow();
}

/* The end of a test whose message was refused. */
static void end_refused(iw_error error)
{
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(error, NULL);
	end_broken();
}

/* DDP-13 DDP-14 RDMAP-06: the MSN, the offset, the queue */
static void poll__wrong_header__terminate(void **state)
{
	static const struct {
		struct iw_ddp ddp;
		iw_error error;
	} odds[] = {
		{{.opcode = IW_OP_SEND, .is_last = true, .msn = 2}, IW_ERROR(1, 2, 3)},
		{{.opcode = IW_OP_SEND, .is_last = true, .msn = 1, .mo = 4}, IW_ERROR(1, 2, 4)},
		{{.opcode = IW_OP_SEND, .is_last = true, .msn = 1, .queue = 1}, IW_ERROR(1, 2, 1)},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(odds); i++) {
		struct fpdu fpdu;

		begin_fast(0);
		post_recv_at(0, SIZE);
		make_fpdu(&fpdu, &odds[i].ddp, flow.region, SIZE);
		decline(&fpdu);
		expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
		end_refused(odds[i].error);
	}
}

/* MPA-51 */
static void poll__wrong_crc__terminate(void **state)
{
	struct fpdu fpdu;

	(void)state;
	begin_fast(FLAG_C);
	post_recv_at(0, SIZE);
	make_fpdu(&fpdu, &whole, flow.region + 1, SIZE);
	fpdu.bytes[fpdu.size - 1] ^= 1;
	decline(&fpdu);
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	expect_pattern(flow.region, SIZE); /* nothing was placed */
	end_refused(IW_ERROR(2, 0, 2));
}

/* DTO-79 DDP-15 */
static void poll__longer_than_its_receive__length_error(void **state)
{
	struct fpdu fpdu;

	(void)state;
	begin_fast(0);
	post_recv_at(0, SIZE - 1);
	make_fpdu(&fpdu, &whole, flow.region + 1, SIZE);
	decline(&fpdu);
	expect_dto(0, DAT_DTO_ERR_LOCAL_LENGTH, 0);
	expect_pattern(flow.region, SIZE);
	end_refused(IW_ERROR(1, 2, 5));
}

/* DDP-14: a message of two segments, of which the second has the offset of a whole one */
static void poll__second_segment__not_taken_for_a_message(void **state)
{
	const struct iw_ddp first = {.opcode = IW_OP_SEND, .msn = 1};
	struct fpdu fpdu;

	(void)state;
	begin_fast(0);
	post_recv_at(0, 2 * SIZE);
	make_fpdu(&fpdu, &first, flow.region, SIZE);
	decline(&fpdu);
	expect_quiet(stage.evd);
	make_fpdu(&fpdu, &whole, flow.region, SIZE);
	decline(&fpdu);
	expect_dto(0, DAT_DTO_ERR_BAD_RESPONSE, 0);
	end_refused(IW_ERROR(1, 2, 4));
}

/* EP-SEND-03 EP-RECV-03: an empty message, and one into several segments */
static void poll__what_needs_the_slow_path__delivered(void **state)
{
	struct iw_ddp ddp = whole;
	DAT_LMR_TRIPLET segments[2];
	struct fpdu fpdu;

	(void)state;
	begin_fast(0);
	post_recv_at(0, SIZE);
	make_fpdu(&fpdu, &ddp, NULL, 0);
	decline(&fpdu);
	expect_dto(0, DAT_DTO_SUCCESS, 0);

	ddp.msn++;
	segments[0] = segment_at(4096, 10);
	segments[1] = segment_at(8192, SIZE - 10);
	memset(flow.region + 8192, 0, SIZE);
	ok(core_ep_post_recv(flow.ep, 2, segments, (DAT_DTO_COOKIE){.as_64 = 3},
			     DAT_COMPLETION_DEFAULT_FLAG));
	make_fpdu(&fpdu, &ddp, flow.region, SIZE);
	decline(&fpdu);
	expect_dto(3, DAT_DTO_SUCCESS, SIZE);
	assert_memory_equal(flow.region + 8192, flow.region + 10, SIZE - 10);
	end_fast();
}

/* DTO-104: no Receive is posted, and the queue has old ones in all slots */
static void poll__no_receive__message_waits(void **state)
{
	struct iw_ddp ddp = {.opcode = IW_OP_SEND, .is_last = true};
	uint32_t slots, i;
	struct fpdu fpdu;

	(void)state;
	begin_fast(0);
	lock_flow();
	slots = locked->recv.mask + 1;
	unlock_flow();
	for (i = 0; i < slots; i++) {
		post_recv_at(4096, SIZE);
		peer_send(flow.region, SIZE);
		expect_dto(4096, DAT_DTO_SUCCESS, SIZE);
	}
	ddp.msn = slots + 1;
	make_fpdu(&fpdu, &ddp, flow.region, SIZE);
	decline(&fpdu);
	expect_quiet(stage.evd);
	post_recv_at(8192, SIZE);
	expect_dto(8192, DAT_DTO_SUCCESS, SIZE);
	assert_memory_equal(flow.region + 8192, flow.region, SIZE);
	end_fast();
}

/* MPA-53: one message is there, and a part of the next one */
static void poll__part_of_an_fpdu__rest_follows(void **state)
{
	struct iw_ddp ddp = {.opcode = IW_OP_SEND, .msn = 2, .is_last = true};
	struct fpdu fpdu;

	(void)state;
	make_fpdu(&fpdu, &ddp, flow.region, SIZE);
	for (size_t part = 1; part < fpdu.size; part++) {
		int handled = 0;

		begin_fast(0);
		make_fpdu(&fpdu, &ddp, flow.region, SIZE);
		post_recv_at(4096, SIZE);
		post_recv_at(8192, SIZE);
		memset(flow.region + 8192, 0, SIZE);
		lock_flow();
		peer_send(flow.region, SIZE);
		put(flow.fd, fpdu.bytes, part);
		await_bytes(send_size + part);
		assert_false(poll_locked(&handled));
		assert_int_equal(handled, 1);
		pass_locked();
		unlock_flow();
		put(flow.fd, fpdu.bytes + part, fpdu.size - part);
		expect_dto(4096, DAT_DTO_SUCCESS, SIZE);
		expect_dto(8192, DAT_DTO_SUCCESS, SIZE);
		expect_pattern(flow.region + 8192, SIZE);
		end_fast();
	}
}

/* SRQ-USE-02 */
static void poll__shared_receives__slow_path_takes_them(void **state)
{
	int handled = 0;

	(void)state;
	begin_shared();
	begin_fast(0);
	post_shared(SIZE);
	lock_flow();
	peer_send(flow.region, SIZE);
	await_bytes(send_size);
	assert_false(poll_locked(&handled));
	assert_int_equal(handled, 0);
	pass_locked();
	unlock_flow();
	expect_dto(0, DAT_DTO_SUCCESS, SIZE);
	end_fast();
	end_shared();
}

/* Polls as drive() does. */
static int poll_flow(bool is_slow)
{
	int handled = 0;

	if (is_slow || !poll_locked(&handled))
		handled = iw_pass_behind(conn_of_flow(), locked, handled);
	return handled;
}

/* IWCM-30: epoll has reported the end of both directions; the end of the stream is seen */
static void poll__hung_up__end_of_stream_is_seen(void **state)
{
	(void)state;
	for (int is_slow = 1; is_slow >= 0; is_slow--) {
		struct pollfd ready = {.events = POLLRDHUP};
		struct fpdu fpdu;

		begin_fast(0);
		post_recv_at(0, SIZE);
		lock_flow();
		conn_of_flow()->is_hung_up = true;
		make_fpdu(&fpdu, &whole, NULL, 0);
		put_fpdu(&fpdu);
		assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
		ready.fd = conn_of_flow()->fd;
		assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
		(void)poll_flow(is_slow);
		unlock_flow();
		expect_dto(0, DAT_DTO_SUCCESS, 0);
		expect(DAT_CONNECTION_EVENT_DISCONNECTED);
		end_broken();
	}
}

/* A poll that has delivered a message is not idle, though the next message is not all there. */
static void poll__part_behind_a_message__not_idle(void **state)
{
	(void)state;
	for (int is_slow = 1; is_slow >= 0; is_slow--) {
		begin_fast(0);
		post_recv_at(0, SIZE);
		lock_flow();
		iw_hold_begin(&conn_of_flow()->stream.tx.hold);
		peer_send(flow.region, SIZE);
		put(flow.fd, "", 1);
		await_bytes(send_size + 1);
		assert_int_equal(poll_flow(is_slow), 1);
		assert_false(iw_hold_is_broken(&conn_of_flow()->stream.tx.hold));
		unlock_flow();
		expect_dto(0, DAT_DTO_SUCCESS, SIZE);
		assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		end_broken();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fast, close_fast)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(poll__whole_messages__fast),
		TEST(poll__solicited__so_is_the_receive),
		TEST(poll__nothing__fast_and_idle),
		TEST(poll__read_fails__left_to_a_pass),
		TEST(poll__end_of_stream__left_to_a_pass),
		TEST(poll__other_work__socket_is_not_read),
		TEST(poll__wrong_header__terminate),
		TEST(poll__wrong_crc__terminate),
		TEST(poll__longer_than_its_receive__length_error),
		TEST(poll__second_segment__not_taken_for_a_message),
		TEST(poll__what_needs_the_slow_path__delivered),
		TEST(poll__no_receive__message_waits),
		TEST(poll__part_of_an_fpdu__rest_follows),
		TEST(poll__shared_receives__slow_path_takes_them),
		TEST(poll__hung_up__end_of_stream_is_seen),
		TEST(poll__part_behind_a_message__not_idle),
	};

	return cmocka_run_group_tests_name("polls on the fast path over TCP", tests, provide, NULL);
}
