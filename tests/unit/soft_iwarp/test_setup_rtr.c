// SPDX-License-Identifier: BSD-2-Clause
/* The ready-to-receive message: what counts as one, and when it is sent again. */
#include "flow_stage.h"

/* The peer is an initiator that offers that form; the reply to it is on its socket. */
static void be_offered(uint8_t flags, uint32_t form)
{
	struct frame frame = make_enhanced(REQUEST, flags, WORDS(WORD_A | form, 4, 4), NULL, 0);
	int fd = dial(stage.qual);

	begin_flow(fd, stage.b, flags & FLAG_C);
	post_recv_at(0, 16);
	put_frame(fd, &frame);
	take_request();
	accept_with(NULL, 0);
	frame = get_frame(fd, REPLY);
	assert_int_equal(frame_words(&frame) & WORDS(WORD_B | WORD_C | WORD_D, 0, 0), form);
}

/* MPA-35: both readings of form B are taken, and none of them takes a Receive */
static void rtr__form_B__takes_no_receive(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		be_offered(i & 1 ? FLAG_C : 0, WORD_B);
		if (i & 2) {
			peer_send(NULL, 0);
		} else {
			struct fpdu empty;

			close_fpdu(&empty, 0);
			put_fpdu(&empty);
		}
		expect(DAT_CONNECTION_EVENT_ESTABLISHED);
		expect_served();
		expect_quiet(stage.evd);
		/* the next Send finds the Receive, also if it has no bytes */
		peer_send(NULL, 0);
		expect_dto(0, DAT_DTO_SUCCESS, 0);
		hang_up();
	}
}

/* MPA-35: in place of another form an empty FPDU is none, and a Send is a Send */
static void rtr__send_in_place_of_C__takes_the_receive(void **state)
{
	(void)state;
	be_offered(0, WORD_C);
	peer_send(NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect_dto(0, DAT_DTO_SUCCESS, 0);
	hang_up();
}

/* MPA-36: a first FPDU of another kind is carried out as well */
static void rtr__another_message__established_and_carried_out(void **state)
{
	struct iw_read_request request = {.sink_stag = 9, .size = 4};
	struct taken taken;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		be_offered(0, i == 1 ? WORD_D : WORD_C);
		if (i == 0) {
			peer_send("first", 5);
		} else if (i == 1) {
			peer_write(flow.rkey, address_of(flow.region + 1000), "first", 5);
		} else {
			memcpy(flow.region, "read", 4);
			request.source_stag = flow.rkey;
			request.source_offset = address_of(flow.region);
			peer_read(&request);
		}
		expect(DAT_CONNECTION_EVENT_ESTABLISHED);
		if (i == 1) {
			peer_send("next", 4);
		} else if (i == 2) {
			get_fpdu(&taken);
			assert_int_equal(taken.ddp.opcode, IW_OP_READ_RESPONSE);
			assert_memory_equal(taken.payload, "read", 4);
			peer_send("next", 4);
		}
		expect_dto(0, DAT_DTO_SUCCESS, i ? 4 : 5);
		if (i == 1) /* placed before what follows it, and after the event */
			assert_memory_equal(flow.region + 1000, "first", 5);
		hang_up();
	}
}

/* --- again --- */

/* A responder that chooses C and then is silent; a time that the RTR is not older than. */
static uint64_t be_calling_a_silent_one(const void *data, size_t size)
{
	struct frame frame = make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 4, 4), data, size);
	uint16_t port;
	int listener = listen_at(0, &port);
	struct taken taken;
	uint64_t begin;
	int fd;

	connect_with(port, WAIT_US, NULL, 0);
	fd = answer_call(listener);
	close(listener);
	get_frame(fd, REQUEST);
	begin = now_ms();
	put_frame(fd, &frame);
	begin_flow(fd, stage.a, false);
	get_any_fpdu(&taken);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	return begin;
}

static void expect_repetition(uint64_t begin, uint64_t after_ms)
{
	struct taken taken;

	get_any_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
	assert_int_equal(taken.ddp.stag, 1);
	assert_int_equal(taken.size, 0);
	assert_true(now_ms() - begin + 1 >= after_ms);
}

/* IWCM-52: after 10 ms, 100 ms and 1 s, and then no more */
static void rtr__responder_silent__repeated_three_times(void **state)
{
	uint64_t begin = be_calling_a_silent_one(NULL, 0);
	struct pollfd ready = {.fd = flow.fd, .events = POLLIN};

	(void)state;
	expect_repetition(begin, 10);
	expect_repetition(begin, 100);
	expect_repetition(begin, 1000);
	assert_int_equal(poll(&ready, 1, 300), 0);
	hang_up();
}

/* IWCM-52: a responder that has sent something gets no more, and an engine of ours none at all */
static void rtr__responder_speaks__not_repeated(void **state)
{
	const struct cm_accept accept = {.read_in = 4, .flags = CM_COUNTS};
	uint8_t bytes[CM_MAX];
	struct pollfd ready = {.events = POLLIN};
	uint64_t begin;

	(void)state;
	begin = be_calling_a_silent_one(NULL, 0);
	expect_repetition(begin, 10);
	speak();
	ready.fd = flow.fd;
	/* unless the next one was due before, on a machine that is busy */
	while (poll(&ready, 1, 300) && now_ms() - begin < 1300)
		get_any_fpdu(&(struct taken){.size = 0});
	if (now_ms() - begin < 1000)
		expect_silence(flow.fd);
	hang_up();
	(void)be_calling_a_silent_one(bytes, cm_put_accept(&accept, bytes));
	ready.fd = flow.fd;
	assert_int_equal(poll(&ready, 1, 200), 0);
	hang_up();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_flow, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rtr__form_B__takes_no_receive),
		TEST(rtr__send_in_place_of_C__takes_the_receive),
		TEST(rtr__another_message__established_and_carried_out),
		TEST(rtr__responder_silent__repeated_three_times),
		TEST(rtr__responder_speaks__not_repeated),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
