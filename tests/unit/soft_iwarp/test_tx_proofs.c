// SPDX-License-Identifier: BSD-2-Clause
/* Proofs that an RDMA Write is placed: what is asked, when, and what completes; the counts of a
 * peer of ours. Long messages. */
#include "flow_stage.h"

#define DRAINS 3u      /* the STag by which one of ours says that it waits, too */
#define LARGEST 65516u /* payload of a segment of a Send; one of a Write has four bytes more */

/* RDMAP-33 RDMAP-34 RDMAP-36: a foreign peer; no success before it has answered */
static void write__foreign_peer__proven_by_an_empty_read(void **state)
{
	struct iw_read_request request;
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	post_write_at(0, 10, 7, 0, DAT_COMPLETION_SUPPRESS_FLAG);
	post_write_at(100, 10, 7, 0, 0);
	get_fpdu(&taken);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
	request = get_read_request();
	assert_int_equal(request.size, 0);
	/* two more share the next one */
	post_write_at(200, 10, 7, 0, 0);
	post_write_at(300, 10, 7, 0, 0);
	get_fpdu(&taken);
	get_fpdu(&taken);
	expect_served();
	expect_silence(flow.fd);
	expect_quiet(stage.evd);
	peer_respond(request.sink_stag, request.sink_offset, NULL, 0, true);
	expect_dto(100, DAT_DTO_SUCCESS, 10);
	request = get_read_request();
	expect_quiet(stage.evd);
	peer_respond(request.sink_stag, request.sink_offset, NULL, 0, true);
	expect_dto(200, DAT_DTO_SUCCESS, 10);
	expect_dto(300, DAT_DTO_SUCCESS, 10);
	expect_served();
	expect_silence(flow.fd);
	hang_up();
}

/* RDMAP-34 DTO-116: suppressed ones want none, and a Send completes without one */
static void writes__suppressed__no_proof(void **state)
{
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	for (unsigned i = 0; i < 1000; i++) {
		post_write_at(0, 10, 7, 0, DAT_COMPLETION_SUPPRESS_FLAG);
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
	}
	post_send_at(100, 1, 0);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_SEND);
	expect_dto(100, DAT_DTO_SUCCESS, 1);
	hang_up();
}

/* RDMAP-35: a Read of the consumer behind it is proof enough; both are posted before the library
 * may send, so that nothing is asked in between */
static void write__read_behind_it__one_read_request(void **state)
{
	struct iw_read_request request;
	struct taken taken;

	(void)state;
	be_called_with(0, 4, 4);
	post_write_at(0, 10, 7, 0, 0);
	post_read_at(100, 4, 7, 0, 0);
	peer_write(0, 0, NULL, 0);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
	request = get_read_request();
	assert_int_equal(request.size, 4);
	expect_served();
	expect_silence(flow.fd);
	expect_quiet(stage.evd);
	peer_respond(request.sink_stag, 0, "abcd", 4, true);
	expect_dto(0, DAT_DTO_SUCCESS, 10);
	expect_dto(100, DAT_DTO_SUCCESS, 4);
	expect_served();
	expect_silence(flow.fd);
	hang_up();
}

/* RDMAP-25 RDMAP-33: a Read in front of it proves nothing about it, and takes the only place */
static void write__read_in_front_of_it__asked_for_itself(void **state)
{
	struct iw_read_request request;
	struct taken taken;

	(void)state;
	be_called_with(0, 1, 4);
	post_read_at(100, 4, 7, 0, 0);
	post_write_at(0, 10, 7, 0, 0);
	peer_write(0, 0, NULL, 0);
	request = get_read_request();
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
	expect_served();
	expect_silence(flow.fd);
	peer_respond(request.sink_stag, 0, "abcd", 4, true);
	expect_dto(100, DAT_DTO_SUCCESS, 4);
	request = get_read_request();
	assert_int_equal(request.size, 0);
	expect_quiet(stage.evd);
	peer_respond(request.sink_stag, 0, NULL, 0, true);
	expect_dto(0, DAT_DTO_SUCCESS, 10);
	hang_up();
}

static void be_established_with_own(void)
{
	be_called_by_own(0);
	put(flow.fd, rtr_write, sizeof(rtr_write));
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* DTO-116 RDMAP-37: Sends and Writes, suppressed or not, complete when they are counted */
static void requests__own_peer__complete_when_counted(void **state)
{
	struct taken taken;

	(void)state;
	be_established_with_own();
	post_write_at(0, 10, 7, 0, 0);
	post_send_at(1, 10, DAT_COMPLETION_SUPPRESS_FLAG);
	post_send_at(2, 10, 0);
	post_write_at(3, 10, 7, 0, 0);
	for (unsigned i = 0; i < 4; i++)
		get_fpdu(&taken);
	expect_served();
	expect_silence(flow.fd); /* nothing is asked */
	expect_quiet(stage.evd);
	peer_counts(0, 2); /* the Sends wait for Receives */
	expect_dto(0, DAT_DTO_SUCCESS, 10);
	expect_quiet(stage.evd);
	peer_counts(1, 0);
	expect_served();
	expect_quiet(stage.evd);
	peer_counts(1, 0);
	expect_dto(2, DAT_DTO_SUCCESS, 10);
	expect_dto(3, DAT_DTO_SUCCESS, 10);
	hang_up();
}

/* DTO-116 EP-SEND-22: a suppressed request keeps its slot until it is counted, and fails aloud */
static void request__suppressed_and_not_counted__flushed(void **state)
{
	struct taken taken;

	(void)state;
	be_established_with_own();
	post_send_at(1, 10, DAT_COMPLETION_SUPPRESS_FLAG);
	get_fpdu(&taken);
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	expect_dto(1, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	end_flow();
}

/* EP-RDMAW-08: a Write of length 0 of the consumer is none of ours, and is counted */
static void write__own_peer__empty_with_any_stag__counted(void **state)
{
	struct taken taken;

	(void)state;
	be_established_with_own();
	for (uint32_t stag = 0; stag <= 4; stag++) {
		post_write_at(0, 0, stag, 12345, 0);
		get_any_fpdu(&taken);
		assert_int_equal(taken.size, 0);
		assert_true(taken.ddp.stag < 1 || taken.ddp.stag > DRAINS);
		expect_quiet(stage.evd);
		peer_counts(0, 1);
		expect_dto(0, DAT_DTO_SUCCESS, 0);
	}
	hang_up();
}

/* Takes counts off the wire. */
static void expect_counts(uint32_t sends, uint32_t writes)
{
	struct taken taken;

	get_any_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
	assert_int_equal(taken.ddp.stag, COUNTS);
	assert_int_equal(taken.size, 0);
	assert_true(taken.ddp.is_last);
	assert_true(taken.ddp.offset == ((uint64_t)sends << 32 | writes));
}

/* DTO-116 COMPAT-48: told when the Receive has completed and the Write is placed, not before */
static void message__of_own_peer__counted_when_it_is_received(void **state)
{
	(void)state;
	be_established_with_own();
	peer_write(flow.rkey, address_of(flow.region), "abcd", 4);
	expect_counts(0, 1);
	assert_memory_equal(flow.region, "abcd", 4);
	peer_write(0, 0, NULL, 0);
	expect_counts(0, 2);
	peer_send("first", 5);
	peer_send("second", 6);
	expect_served();
	expect_silence(flow.fd);
	post_recv_at(100, 10);
	expect_counts(1, 2);
	expect_dto(100, DAT_DTO_SUCCESS, 5);
	expect_served();
	expect_silence(flow.fd);
	post_recv_at(200, 10);
	expect_counts(2, 2);
	expect_dto(200, DAT_DTO_SUCCESS, 6);
	hang_up();
}

/* DTO-116 TERM-01: the counts come before the Terminate, and before the end */
static void end__of_the_stream__counts_come_before(void **state)
{
	(void)state;
	be_established_with_own();
	post_recv_at(0, 10);
	peer_send("first", 5);
	expect_counts(1, 0);
	expect_dto(0, DAT_DTO_SUCCESS, 5);
	peer_write(flow.rkey + 1, 0, "x", 1);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(1, 1, 0), NULL);
	end_flow();
}

/* EP-STATE-40: both disconnect gracefully, and messages of both wait for Receives */
static void disconnect__both_drain_and_wait__ends(void **state)
{
	struct taken taken;

	(void)state;
	for (int is_peer_first = 0; is_peer_first < 2; is_peer_first++) {
		be_established_with_own();
		post_send_at(7, 10, 0);
		get_fpdu(&taken);
		peer_send("waits", 5);
		if (is_peer_first)
			peer_write(DRAINS, 0, NULL, 0);
		expect_served();
		expect_silence(flow.fd);
		ok(core_ep_disconnect(flow.ep, DAT_CLOSE_GRACEFUL_FLAG));
		if (!is_peer_first) {
			get_fpdu(&taken);
			assert_int_equal(taken.ddp.stag, DRAINS);
			expect_quiet(stage.evd);
			peer_write(DRAINS, 0, NULL, 0);
		}
		expect_dto(7, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_DISCONNECTED);
		end_flow();
	}
}

/* EP-DISC-41: the peer has said that it drains, and then received our message: we wait for the next
 */
static void disconnect__peer_drained_and_went_on__waits(void **state)
{
	struct taken taken;

	(void)state;
	be_established_with_own();
	post_send_at(1, 10, 0);
	get_fpdu(&taken);
	peer_write(DRAINS, 0, NULL, 0);
	peer_counts(1, 0);
	expect_dto(1, DAT_DTO_SUCCESS, 10);
	post_send_at(2, 10, 0);
	get_fpdu(&taken);
	ok(core_ep_disconnect(flow.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_served();
	expect_quiet(stage.evd);
	peer_counts(1, 0);
	expect_dto(2, DAT_DTO_SUCCESS, 10);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	end_flow();
}

/* Reads a message of `count` segments of that length and the last one. */
static void get_message(unsigned count, size_t length, size_t size)
{
	static uint8_t bytes[REGION];
	struct taken taken;
	size_t at = 0;

	for (unsigned i = 0; i <= count; i++) {
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.is_last, i == count);
		assert_true(taken.ddp.is_last || taken.size == length);
		assert_true(taken.size <= length);
		memcpy(bytes + at, taken.payload, taken.size);
		at += taken.size;
	}
	assert_int_equal(at, size);
	expect_pattern(bytes, size);
}

/* MPA-58 DDP-08: large FPDUs between two of ours */
static void message__own_peer__fpdus_of_nearly_64_kib(void **state)
{
	static const struct {
		size_t size;
		unsigned count; /* of the largest size */
	} cases[] = {{LARGEST, 0},	   {LARGEST + 1, 1}, {2 * LARGEST, 1},
		     {2 * LARGEST + 1, 2}, {3 * LARGEST, 2}, {REGION, 4}};

	(void)state;
	be_established_with_own();
	make_pattern(flow.region, REGION);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		post_send_at(0, cases[i].size, 0);
		get_message(cases[i].count, LARGEST, cases[i].size);
		peer_counts(1, 0);
		expect_dto(0, DAT_DTO_SUCCESS, cases[i].size);
	}
	post_write_at(0, REGION, 7, 0, 0);
	get_message(4, LARGEST + 4, REGION);
	peer_counts(0, 1);
	expect_dto(0, DAT_DTO_SUCCESS, REGION);
	hang_up();
}

/* MPA-59 RDMAP-19: nothing comes between the FPDUs of a request that is several messages */
static void write__own_peer__two_messages(void **state)
{
	DAT_LMR_TRIPLET list[2] = {segment_at(0, REGION), segment_at(0, REGION)};
	const DAT_RMR_TRIPLET remote = {
		.rmr_context = 7, .target_address = 4096, .segment_length = 2 * REGION};
	const DAT_DTO_COOKIE cookie = {.as_64 = 5};

	(void)state;
	be_established_with_own();
	make_pattern(flow.region, REGION);
	ok(core_ep_post_rdma_write(flow.ep, 2, list, cookie, &remote, 0));
	get_message(4, LARGEST + 4, REGION);
	get_message(4, LARGEST + 4, REGION);
	peer_counts(0, 1);
	expect_served();
	expect_quiet(stage.evd);
	peer_counts(0, 1); /* two messages */
	expect_dto(5, DAT_DTO_SUCCESS, 2 * REGION);
	hang_up();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_sleepy, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(write__foreign_peer__proven_by_an_empty_read),
		TEST(writes__suppressed__no_proof),
		TEST(write__read_behind_it__one_read_request),
		TEST(write__read_in_front_of_it__asked_for_itself),
		TEST(requests__own_peer__complete_when_counted),
		TEST(request__suppressed_and_not_counted__flushed),
		TEST(write__own_peer__empty_with_any_stag__counted),
		TEST(message__of_own_peer__counted_when_it_is_received),
		TEST(end__of_the_stream__counts_come_before),
		TEST(disconnect__both_drain_and_wait__ends),
		TEST(disconnect__peer_drained_and_went_on__waits),
		TEST(message__own_peer__fpdus_of_nearly_64_kib),
		TEST(write__own_peer__two_messages),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
