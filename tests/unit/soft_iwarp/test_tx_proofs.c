// SPDX-License-Identifier: BSD-2-Clause
/* Proofs that an RDMA Write is placed: what is asked, when, and what completes. Long messages. */
#include "flow_stage.h"

/* STags of what two of ours tell each other: a question, an answer */
#define ASK 2u
#define ANSWER 3u
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

/* RDMAP-37 EP-RDMAW-08: a question and its answer; a Write of length 0 of the consumer is none */
static void write__own_peer__question_and_answer(void **state)
{
	struct taken taken;

	(void)state;
	be_established_with_own();
	post_write_at(0, 10, 7, 0, 0);
	get_fpdu(&taken);
	assert_int_equal(taken.size, 10);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
	assert_int_equal(taken.ddp.stag, ASK);
	assert_int_equal(taken.size, 0);
	expect_quiet(stage.evd);
	peer_write(ANSWER, taken.ddp.offset, NULL, 0);
	expect_dto(0, DAT_DTO_SUCCESS, 10);
	for (uint32_t stag = ASK; stag <= ANSWER; stag++) {
		post_write_at(0, 0, stag, 12345, 0);
		get_fpdu(&taken);
		assert_true(taken.ddp.stag < ASK || taken.ddp.stag > ANSWER);
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.stag, ASK);
		peer_write(ANSWER, taken.ddp.offset, NULL, 0);
		expect_dto(0, DAT_DTO_SUCCESS, 0);
	}
	/* the other way round */
	peer_write(flow.rkey, address_of(flow.region), "abcd", 4);
	peer_write(ASK, 0x123456789abcdef0, NULL, 0);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.stag, ANSWER);
	assert_true(taken.ddp.offset == 0x123456789abcdef0);
	assert_memory_equal(flow.region, "abcd", 4);
	hang_up();
}

/* RDMAP-33: an answer to a question that was not asked, or that names what is not posted */
static void answer__without_a_question__no_harm(void **state)
{
	struct taken taken;

	(void)state;
	be_established_with_own();
	peer_write(ANSWER, UINT64_MAX, NULL, 0);
	peer_write(ANSWER, 0, NULL, 0);
	peer_write(ASK, 1, NULL, 0);
	get_fpdu(&taken); /* they are taken now */
	assert_int_equal(taken.ddp.stag, ANSWER);
	post_write_at(0, 10, 7, 0, 0);
	get_fpdu(&taken);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.stag, ASK);
	expect_quiet(stage.evd);
	peer_write(ANSWER, taken.ddp.offset, NULL, 0);
	expect_dto(0, DAT_DTO_SUCCESS, 10);
	hang_up();
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

/* MPA-58 DDP-08: large FPDUs between two of ours, */
static void message__own_peer__fpdus_of_nearly_64_kib(void **state)
{
	static const struct {
		size_t size;
		unsigned count; /* of the largest size */
	} cases[] = {{LARGEST, 0},	   {LARGEST + 1, 1}, {2 * LARGEST, 1},
		     {2 * LARGEST + 1, 2}, {3 * LARGEST, 2}, {REGION, 4}};
	struct taken taken;

	(void)state;
	be_established_with_own();
	make_pattern(flow.region, REGION);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		post_send_at(0, cases[i].size, 0);
		get_message(cases[i].count, LARGEST, cases[i].size);
		expect_dto(0, DAT_DTO_SUCCESS, cases[i].size);
	}
	post_write_at(0, REGION, 7, 0, 0);
	get_message(4, LARGEST + 4, REGION);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.stag, ASK);
	peer_write(ANSWER, taken.ddp.offset, NULL, 0);
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
	struct taken taken;

	(void)state;
	be_established_with_own();
	make_pattern(flow.region, REGION);
	ok(core_ep_post_rdma_write(flow.ep, 2, list, cookie, &remote, 0));
	get_message(4, LARGEST + 4, REGION);
	get_message(4, LARGEST + 4, REGION);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.stag, ASK);
	peer_write(ANSWER, taken.ddp.offset, NULL, 0);
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
		TEST(write__own_peer__question_and_answer),
		TEST(answer__without_a_question__no_harm),
		TEST(message__own_peer__fpdus_of_nearly_64_kib),
		TEST(write__own_peer__two_messages),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
