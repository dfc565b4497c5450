// SPDX-License-Identifier: BSD-2-Clause
/* How requests are cut into messages and segments, their numbers, and what else is in a frame. */
#include "flow_stage.h"
#include "forced_mss.h"

#include <stdatomic.h>

#include "soft/iwarp/conn.h"

/* Takes Sends until the socket is empty for a while; FPDUs never become longer. */
static void take_sends(unsigned count, size_t size, uint32_t old_most, uint32_t new_most)
{
	struct taken taken;
	size_t at = 0;

	while (count) {
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.opcode, IW_OP_SEND);
		assert_int_equal(taken.ddp.mo, at);
		expect_pattern(taken.payload, 1);
		if (old_most != new_most && !taken.ddp.is_last && taken.ulpdu <= new_most)
			old_most = new_most;
		assert_true(taken.ulpdu <= old_most);
		if (!taken.ddp.is_last)
			assert_true(taken.ulpdu > old_most - 4);
		at += taken.size;
		if (!taken.ddp.is_last)
			continue;
		assert_int_equal(at, size);
		at = 0;
		count--;
	}
	assert_int_equal(old_most, new_most);
}

/* MPA-57 MPA-55: a smaller segment shortens the FPDUs behind the one that was begun */
static void segment_size__becomes_smaller__later_fpdus_follow(void **state)
{
	const uint32_t before = iw_fpdu_mulpdu(1448), after = iw_fpdu_mulpdu(1000);
	unsigned sends = 0, completed = 0;
	DAT_RETURN ret = DAT_SUCCESS;
	struct taken taken;
	DAT_COUNT left;

	(void)state;
	atomic_store(&forced_mss, 1448);
	be_calling_with(0, 0, 0);
	get_fpdu(&taken);
	memset(flow.region, pattern(0), REGION);
	post_send_at(0, 100000, 0);
	take_sends(1, 100000, before, before);
	expect_dto(0, DAT_DTO_SUCCESS, 100000);
	/* until TCP takes no more for a while, in the middle of a message */
	while (DAT_GET_TYPE(ret) != DAT_TIMEOUT_EXPIRED && sends < 400) {
		DAT_EVENT event;

		post_send_at(0, 200000, 0);
		sends++;
		ret = core_evd_wait(stage.evd, 200000, 1, &event, &left);
		completed += ret == DAT_SUCCESS;
	}
	assert_true(sends < 400);
	atomic_store(&forced_mss, 1000);
	post_send_at(0, 200000, 0);
	take_sends(sends + 1, 200000, before, after);
	for (; completed < sends + 1; completed++)
		expect_dto(0, DAT_DTO_SUCCESS, 200000);
	hang_up();
	atomic_store(&forced_mss, 0);
}

/* --- message numbers --- */

static struct core_ep *enter_flow(void)
{
	struct core_ep *ep = ((struct core_handle *)flow.ep)->object;
	struct core_ref ref = core_handle_ref(ep->cell);

	ep = core_ep_enter(ref);
	assert_non_null(ep);
	return ep;
}

/* DDP-06: in both directions the number goes on over 0 */
static void msn__largest__zero_follows(void **state)
{
	struct iw_read_request request = {.sink_stag = 9, .size = 0};
	struct taken taken;
	struct core_ep *ep;
	struct iw_stream *stream;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	ep = enter_flow();
	stream = &iw_conn_of(ep)->stream;
	stream->tx.msn[0] = stream->tx.msn[1] = UINT32_MAX - 1;
	stream->rx.msn[0] = stream->rx.msn[1] = UINT32_MAX - 1;
	core_ep_leave(ep);
	flow.msn[0] = flow.msn[1] = UINT32_MAX - 1;
	for (uint32_t i = 0; i < 4; i++) {
		post_send_at(0, 4, 0);
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.msn, UINT32_MAX - 1 + i);
		expect_dto(0, DAT_DTO_SUCCESS, 4);
		post_read_at(0, 4, 7, 0, 0);
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.queue, IW_QUEUE_READ);
		assert_int_equal(taken.ddp.msn, UINT32_MAX - 1 + i);
		peer_respond(be_get32(taken.payload), 0, "abcd", 4, true);
		expect_dto(0, DAT_DTO_SUCCESS, 4);
		post_recv_at(0, 4);
		peer_send("abcd", 4);
		expect_dto(0, DAT_DTO_SUCCESS, 4);
		peer_read(&request);
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.opcode, IW_OP_READ_RESPONSE);
	}
	hang_up();
}

/* --- several messages for one request --- */

#define MOST REGION /* IW_RDMA_MAX of this build */
#define REST 1000u

/* A request of two segments, which is longer than one message may be. */
static void post_long(bool is_read)
{
	DAT_LMR_TRIPLET list[2] = {segment_at(0, MOST), segment_at(0, REST)};
	const DAT_RMR_TRIPLET remote = {
		.rmr_context = 7, .target_address = 4096, .segment_length = MOST + REST};
	DAT_DTO_COOKIE cookie = {.as_64 = 5};

	if (is_read)
		ok(core_ep_post_rdma_read(flow.ep, 2, list, cookie, &remote, 0));
	else
		ok(core_ep_post_rdma_write(flow.ep, 2, list, cookie, &remote, 0));
}

/* RDMAP-19: the limit is 1 GiB, but 256 KiB in this build */
static void write__longer_than_a_message__two_messages_and_one_completion(void **state)
{
	DAT_IA_ATTR attr;
	struct taken taken;
	size_t size = 0;

	(void)state;
	ok(core_ia_query(stage.ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	assert_true(attr.max_message_size < UINT64_C(1) << 32);
	be_calling_with(0, 0, 0); /* no proofs */
	get_fpdu(&taken);
	post_long(false);
	post_send_at(0, 4, 0);
	while (size < MOST + REST) {
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
		assert_int_equal(taken.ddp.stag, 7);
		assert_true(taken.ddp.offset == 4096 + size);
		size += taken.size;
		assert_int_equal(taken.ddp.is_last, size == MOST || size == MOST + REST);
	}
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_SEND);
	expect_dto(5, DAT_DTO_SUCCESS, MOST + REST);
	expect_dto(0, DAT_DTO_SUCCESS, 4);
	hang_up();
}

/* RDMAP-19 */
static void read__longer_than_a_message__two_requests_and_one_completion(void **state)
{
	static uint8_t bytes[60000];
	struct iw_read_request first, second;
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	post_long(true);
	first = get_read_request();
	assert_int_equal(first.size, MOST);
	assert_true(first.source_offset == 4096);
	second = get_read_request();
	assert_int_equal(second.size, REST);
	assert_true(second.source_offset == 4096 + MOST);
	memset(bytes, 'a', sizeof(bytes));
	for (uint32_t at = 0; at < MOST; at += (uint32_t)sizeof(bytes)) {
		uint32_t left = MOST - at;
		uint32_t size = left < sizeof(bytes) ? left : (uint32_t)sizeof(bytes);

		peer_respond(first.sink_stag, first.sink_offset + at, bytes, size, size == left);
	}
	expect_served();
	expect_quiet(stage.evd);
	memset(bytes, 'b', REST);
	peer_respond(second.sink_stag, second.sink_offset, bytes, REST, true);
	expect_dto(5, DAT_DTO_SUCCESS, MOST + REST);
	assert_int_equal(flow.region[0], 'b');
	assert_int_equal(flow.region[REST], 'a');
	assert_int_equal(flow.region[MOST - 1], 'a');
	hang_up();
}

/* --- nothing of ours in a frame --- */

/* Leaves bytes in all buffers that later frames are made in. */
static void dirty_buffers(void)
{
	static uint8_t bytes[60000];
	struct taken taken;

	memset(bytes, 0xee, sizeof(bytes));
	memset(flow.region, 0xee, REGION);
	for (unsigned i = 0; i < 3; i++) {
		post_recv_at(0, sizeof(bytes));
		peer_send(bytes, sizeof(bytes));
		expect_dto(0, DAT_DTO_SUCCESS, sizeof(bytes));
		for (unsigned k = 0; k < 8; k++) {
			post_send_at(0, 8000, 0);
			get_fpdu(&taken);
			expect_dto(0, DAT_DTO_SUCCESS, 8000);
		}
	}
}

/* What a header has beside its fields is zero; get_fpdu() checks the pad. */
static void expect_clean(const struct taken *taken)
{
	assert_int_equal(taken->bytes[0] & 0x3c, 0);
	assert_int_equal(taken->bytes[1] & 0x30, 0);
	if (!taken->ddp.is_tagged)
		assert_int_equal(be_get32(taken->bytes + 2), 0);
}

/* A Terminate without headers is four bytes, and one with headers has the peer's bytes alone. */
static void expect_clean_terminate(iw_error error, const struct fpdu *cause)
{
	struct taken taken;

	expect_terminate(error, &taken);
	expect_clean(&taken);
	assert_int_equal(taken.payload[2] & 0x1f, 0);
	assert_int_equal(taken.payload[3], 0);
	if (!(taken.payload[2] & 0x40)) {
		assert_int_equal(taken.size, 4);
		return;
	}
	assert_memory_equal(taken.payload + 4, cause->bytes, taken.size - 4);
}

static void break_with(const struct iw_ddp *ddp, size_t ulpdu, iw_error error)
{
	struct fpdu fpdu;

	be_called(0);
	dirty_buffers();
	expect_untouched(flow.bytes, GUARD);
	make_fpdu(&fpdu, ddp, NULL, 0);
	if (ulpdu)
		close_fpdu(&fpdu, ulpdu);
	put_fpdu(&fpdu);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_clean_terminate(error, &fpdu);
	end_flow();
}

/* IWCM-45: pads, reserved fields and Terminates, behind other bytes in the same buffers */
static void frames__buffers_were_used__nothing_else_in_them(void **state)
{
	const struct iw_ddp write = {
		.is_tagged = true, .is_last = true, .opcode = IW_OP_WRITE, .stag = 0x1234};
	const struct iw_ddp send = {.is_last = true, .opcode = IW_OP_SEND, .msn = 99};
	struct taken taken;

	(void)state;
	be_calling_with(FLAG_C, 4, 4);
	get_fpdu(&taken);
	dirty_buffers();
	for (size_t size = 0; size < 5; size++) {
		struct iw_read_request request = {.size = (uint32_t)size,
						  .source_stag = flow.rkey,
						  .source_offset = address_of(flow.region)};

		post_send_at(0, size, size & 1 ? DAT_COMPLETION_SOLICITED_WAIT_FLAG : 0);
		get_fpdu(&taken);
		expect_clean(&taken);
		expect_dto(0, DAT_DTO_SUCCESS, size);
		post_write_at(0, size, 7, 4096, DAT_COMPLETION_SUPPRESS_FLAG);
		get_fpdu(&taken);
		expect_clean(&taken);
		peer_read(&request);
		get_fpdu(&taken);
		expect_clean(&taken);
		assert_int_equal(taken.ddp.opcode, IW_OP_READ_RESPONSE);
		assert_int_equal(taken.size, size);
	}
	hang_up();
	break_with(&write, 15, IW_ERROR(1, 1, 0));
	break_with(&send, 0, IW_ERROR(1, 2, 3));
	break_with(&send, 17, IW_ERROR(1, 0, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_flow, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(segment_size__becomes_smaller__later_fpdus_follow),
		TEST(msn__largest__zero_follows),
		TEST(write__longer_than_a_message__two_messages_and_one_completion),
		TEST(read__longer_than_a_message__two_requests_and_one_completion),
		TEST(frames__buffers_were_used__nothing_else_in_them),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
