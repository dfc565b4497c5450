// SPDX-License-Identifier: BSD-2-Clause
/* Immediate data and atomic operations (RFC 7306) with a peer that the test plays. */
#include "flow_stage.h"

#include "core/base/instance.h"
#include "core/ep/dto.h"

/* A peer of ours that takes all of it has called. */
static void begin_own(void)
{
	be_called_by_own(0);
	peer_write(1, 0, NULL, 0); /* its ready-to-receive message */
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void peer_immediate(uint32_t value, uint32_t length, size_t size)
{
	const struct iw_ddp ddp = {
		.is_last = true, .opcode = IW_OP_IMMEDIATE, .msn = flow.msn[IW_QUEUE_SEND]++};
	uint8_t payload[IW_IMMEDIATE_SIZE + 1] = {0};

	iw_immediate_put(&(struct iw_immediate){value, length}, payload);
	put_segment(&ddp, payload, size);
}

static void peer_atomic(const struct iw_atomic *atomic, size_t size)
{
	const struct iw_ddp ddp = {.is_last = true,
				   .opcode = IW_OP_ATOMIC_REQUEST,
				   .queue = IW_QUEUE_READ,
				   .msn = flow.msn[IW_QUEUE_READ]++};
	uint8_t payload[IW_ATOMIC_REQUEST_SIZE];

	iw_atomic_put(atomic, payload);
	put_segment(&ddp, payload, size);
}

static void peer_answer(uint32_t id, uint64_t before, size_t size)
{
	const struct iw_ddp ddp = {.is_last = true,
				   .opcode = IW_OP_ATOMIC_RESPONSE,
				   .queue = IW_QUEUE_ATOMIC,
				   .msn = flow.msn[IW_QUEUE_ATOMIC]++};
	uint8_t payload[IW_ATOMIC_RESPONSE_SIZE];

	be_put32(payload, id);
	be_put64(payload + 4, before);
	put_segment(&ddp, payload, size);
}

/* An atomic operation of ours, whose value before comes to that offset. Returns its identifier. */
static struct iw_atomic post_add_at(size_t offset)
{
	DAT_LMR_TRIPLET segment = segment_at(offset, 8);
	DAT_RMR_TRIPLET remote = {.rmr_context = 7, .target_address = 64, .segment_length = 8};
	DAT_DTO_COOKIE cookie = {.as_64 = offset};
	struct iw_atomic atomic;
	struct taken taken;

	ok(core_ep_post_fetch_add(flow.ep, 3, &segment, cookie, &remote, 0));
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_ATOMIC_REQUEST);
	assert_int_equal(taken.ddp.queue, IW_QUEUE_READ);
	assert_int_equal(taken.size, IW_ATOMIC_REQUEST_SIZE);
	assert_true(iw_atomic_get(taken.payload, &atomic));
	assert_false(atomic.is_swap);
	assert_int_equal(atomic.stag, 7);
	assert_int_equal(atomic.offset, 64);
	assert_int_equal(atomic.operand, 3);
	return atomic;
}

/* D2-TCP-02: without the flag what comes is an unexpected operation */
static void immediate__not_agreed__refused(void **state)
{
	(void)state;
	begin_own();
	post_recv_at(0, 64);
	peer_immediate(1, 0, IW_IMMEDIATE_SIZE);
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(0, 2, 6), NULL);
	end_flow();
}

/* D2-TCP-06 D2-TCP-10 D2-TCP-08: it waits for a Receive as a Send does, and changes no byte of it */
static void immediate__behind_a_send__in_order(void **state)
{
	(void)state;
	take_all();
	begin_own();
	peer_send("abcd", 4);
	peer_immediate(0x11223344, 100, IW_IMMEDIATE_SIZE);
	peer_send("efgh", 4);
	expect_served();
	for (size_t i = 0; i < 3; i++)
		post_recv_at(i * 64, i == 1 ? 0 : 64);
	expect_dto(0, DAT_DTO_SUCCESS, 4);
	expect_dto(64, DAT_DTO_SUCCESS, 100);
	expect_dto(128, DAT_DTO_SUCCESS, 4);
	expect_untouched(flow.region + 64, 64);
	fill_memory();
	hang_up();
}

/* D2-TCP-11 */
static void immediate__of_another_size__refused(void **state)
{
	(void)state;
	take_all();
	for (size_t size = IW_IMMEDIATE_SIZE - 1; size <= IW_IMMEDIATE_SIZE + 1; size += 2) {
		begin_own();
		post_recv_at(0, 64);
		peer_immediate(1, 0, size);
		expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(size < IW_IMMEDIATE_SIZE ? IW_ERROR(1, 2, 4) : IW_ERROR(1, 2, 5),
				 NULL);
		end_flow();
	}
}

/* D2-TCP-06 D2-TCP-07 D2-TCP-08 D2-TCP-12: what is sent, and when it completes */
static void immediate__posted__follows_its_write(void **state)
{
	DAT_LMR_TRIPLET segment = segment_at(0, 16);
	DAT_RMR_TRIPLET remote = {.rmr_context = 7, .target_address = 9, .segment_length = 16};
	struct iw_immediate immediate;
	struct taken taken;

	(void)state;
	take_all();
	begin_own();
	segment.lmr_context = flow.lkey;
	ok(core_ep_post_write_immediate(flow.ep, 1, &segment, (DAT_DTO_COOKIE){.as_64 = 5}, &remote,
					0x01020304, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
	assert_int_equal(taken.size, 16);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_IMMEDIATE_SOLICITED);
	assert_int_equal(taken.ddp.msn, 1);
	assert_int_equal(taken.size, IW_IMMEDIATE_SIZE);
	assert_memory_equal(taken.payload, "\1\2\3\4\0\0\0\20", 8);
	iw_immediate_get(taken.payload, &immediate);
	assert_int_equal(immediate.value, 0x01020304);
	peer_counts(0, 1);
	expect_served();
	expect_quiet(stage.evd);
	peer_counts(1, 0);
	expect_dto(5, DAT_DTO_SUCCESS, 16);
	hang_up();
}

/* D2-TCP-13 D2-TCP-15 D2-TCP-16 D2-TCP-17 D2-TCP-21: behind the Response to a Read before it */
static void atomic_request__behind_a_read__answered_in_order(void **state)
{
	const struct iw_read_request read = {.sink_stag = 9,
					     .size = 8,
					     .source_stag = flow.rkey,
					     .source_offset = address_of(flow.region)};
	struct iw_read_request request = read;
	struct iw_atomic add = {.id = 77, .offset = address_of(flow.region), .operand = 5};
	uint64_t value = 40;
	struct taken taken;

	(void)state;
	take_all();
	begin_own();
	memcpy(flow.region, &value, sizeof(value));
	request.source_stag = add.stag = flow.rkey;
	peer_read(&request);
	peer_atomic(&add, IW_ATOMIC_REQUEST_SIZE);
	add.is_swap = true;
	add.id++;
	add.compare = 45;
	add.operand = 1;
	peer_atomic(&add, IW_ATOMIC_REQUEST_SIZE);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_READ_RESPONSE);
	assert_memory_equal(taken.payload, &value, sizeof(value));
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_ATOMIC_RESPONSE);
	assert_int_equal(taken.ddp.queue, IW_QUEUE_ATOMIC);
	assert_int_equal(taken.ddp.msn, 1);
	assert_int_equal(taken.size, IW_ATOMIC_RESPONSE_SIZE);
	assert_memory_equal(taken.payload, "\0\0\0\115\0\0\0\0\0\0\0\50", 12);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.msn, 2);
	assert_memory_equal(taken.payload, "\0\0\0\116\0\0\0\0\0\0\0\55", 12);
	memcpy(&value, flow.region, sizeof(value));
	assert_int_equal(value, 1);
	fill_memory();
	hang_up();
}

/* D2-TCP-19 D2-TCP-14 D2-ATOM-11 */
static void atomic_request__not_allowed__refused(void **state)
{
	static const struct {
		uint64_t offset;
		int64_t stag; /* added to the key */
		size_t size;
		iw_error error;
	} cases[] = {
		{4, 0, IW_ATOMIC_REQUEST_SIZE, IW_ERROR(0, 1, 1)},
		{REGION, 0, IW_ATOMIC_REQUEST_SIZE, IW_ERROR(0, 1, 1)},
		{0, 1, IW_ATOMIC_REQUEST_SIZE, IW_ERROR(0, 1, 0)},
		{0, 0, IW_ATOMIC_REQUEST_SIZE - 1, IW_ERROR(1, 2, 4)},
	};

	(void)state;
	take_all();
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const struct iw_atomic add = {.id = 1,
					      .stag = flow.rkey + (uint32_t)cases[i].stag,
					      .offset = address_of(flow.region) + cases[i].offset,
					      .operand = 1};

		begin_own();
		peer_atomic(&add, cases[i].size);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(cases[i].error, NULL);
		expect_untouched(flow.region, REGION);
		end_flow();
	}
}

/* D2-TCP-14 */
static void atomic_request__other_masks__refused(void **state)
{
	struct iw_atomic atomic = {.is_swap = true};
	uint8_t payload[IW_ATOMIC_REQUEST_SIZE];

	(void)state;
	for (size_t at = 28; at < IW_ATOMIC_REQUEST_SIZE; at += 16) {
		atomic.is_swap = true;
		iw_atomic_put(&atomic, payload);
		assert_true(iw_atomic_get(payload, &atomic));
		payload[at] = 0;
		assert_false(iw_atomic_get(payload, &atomic));
	}
	atomic.is_swap = false;
	iw_atomic_put(&atomic, payload);
	payload[35] = 1;
	assert_false(iw_atomic_get(payload, &atomic));
	payload[35] = 0;
	assert_true(iw_atomic_get(payload, &atomic));
	payload[3] = 1; /* no operation of ours */
	assert_false(iw_atomic_get(payload, &atomic));
}

/* D2-TCP-19: the Terminate names the one that was refused */
static void atomic_request__second_refused__remote_access(void **state)
{
	struct iw_offender offender = {.ulpdu = IW_UNTAGGED_HEAD + IW_ATOMIC_REQUEST_SIZE};
	const struct iw_ddp second = {
		.is_last = true, .opcode = IW_OP_ATOMIC_REQUEST, .queue = IW_QUEUE_READ, .msn = 2};
	uint8_t payload[IW_TERMINATE_MAX];
	struct iw_atomic atomic;

	(void)state;
	take_all();
	begin_own();
	atomic = post_add_at(8);
	(void)post_add_at(16);
	peer_answer(atomic.id, 1, IW_ATOMIC_RESPONSE_SIZE);
	expect_dto(8, DAT_DTO_SUCCESS, 8);
	(void)iw_ddp_put(&second, offender.head);
	peer_terminate(payload, iw_terminate_put(IW_ERROR(0, 1, 2), &offender, payload));
	expect_dto(16, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	fill_memory();
	end_flow();
}

/* D2-TCP-13 D2-TCP-15 D2-TCP-18 */
static void atomic_response__right_or_wrong__value_or_refused(void **state)
{
	struct iw_atomic atomic;
	uint64_t value;

	(void)state;
	take_all();
	begin_own();
	atomic = post_add_at(8);
	peer_answer(atomic.id, 0x0102030405060708, IW_ATOMIC_RESPONSE_SIZE);
	expect_dto(8, DAT_DTO_SUCCESS, 8);
	memcpy(&value, flow.region + 8, sizeof(value));
	assert_true(value == 0x0102030405060708);
	fill_memory();
	hang_up();
	for (int is_short = 0; is_short < 2; is_short++) {
		begin_own();
		atomic = post_add_at(8);
		peer_answer(atomic.id + !is_short, 1, IW_ATOMIC_RESPONSE_SIZE - (size_t)is_short);
		expect_dto(8, DAT_DTO_ERR_BAD_RESPONSE, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(IW_ERROR(1, 1, 0), NULL);
		expect_untouched(flow.region, REGION);
		end_flow();
	}
}

static int close_all(void **state)
{
	take_no_more();
	return close_stage(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_flow, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(immediate__not_agreed__refused),
		TEST(immediate__behind_a_send__in_order),
		TEST(immediate__of_another_size__refused),
		TEST(immediate__posted__follows_its_write),
		TEST(atomic_request__behind_a_read__answered_in_order),
		TEST(atomic_request__not_allowed__refused),
		TEST(atomic_request__other_masks__refused),
		TEST(atomic_request__second_refused__remote_access),
		TEST(atomic_response__right_or_wrong__value_or_refused),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
