// SPDX-License-Identifier: BSD-2-Clause
/* Requests that a peer sends to a service point: which ones raise a connection request, and what
 * the replies to the others are. */
#include "setup_peer.h"
#include "setup_stage.h"

/* A request of another OpenDAT for a qualifier, with 4 bytes of the consumer's data. */
static struct frame own_request_with(DAT_CONN_QUAL qual, uint32_t nonce, uint8_t flags)
{
	const struct cm_request request = {.flags = CM_COUNTS,
					   .size = 4,
					   .qual = qual,
					   .nonce = nonce,
					   .port = 4711,
					   .read_in = 3,
					   .read_out = 2,
					   .data_size = 4,
					   .data = "data"};
	uint8_t bytes[CM_MAX];
	size_t size = cm_put_request(&request, bytes);

	return make_enhanced(REQUEST, flags, WORDS(WORD_A | WORD_C | WORD_D, 4, 3), bytes, size);
}

static struct frame own_request(void)
{
	return own_request_with(stage.qual, 1, 0);
}

/* The peer's next valid request is the first one of which the core hears. */
static void expect_no_request_before(void)
{
	struct frame frame = make_frame(REQUEST, 0, 1, "first", 5);
	int fd = dial(stage.qual);
	DAT_CR_PARAM param;

	put_frame(fd, &frame);
	param = take_request();
	assert_int_equal(param.private_data_size, 5);
	assert_memory_equal(param.private_data, "first", 5);
	expect_quiet(stage.request_evd);
	ok(core_cr_reject(stage.cr));
	get_frame(fd, REPLY);
	close(fd);
}

static void expect_refused_silently(const void *bytes, size_t size)
{
	int fd = dial(stage.qual);

	put(fd, bytes, size);
	expect_closed(fd);
}

/* MPA-08 */
static void request__too_long__closed_without_waiting(void **state)
{
	struct frame frame = make_frame(REQUEST, 0, 1, NULL, 0);

	(void)state;
	frame.head[18] = 513 >> 8;
	frame.head[19] = 513 & 0xff;
	expect_refused_silently(&frame, IW_MPA_HEAD);
	expect_no_request_before();
}

/* MPA-09 CONN-GEN-09 */
static void request__wrong_key__closed_at_the_first_wrong_byte(void **state)
{
	struct frame reply = make_frame(REPLY, 0, 1, NULL, 0);

	(void)state;
	expect_refused_silently("G", 1);
	expect_refused_silently("GET / HTTP/1.1\r\n\r\n", 18);
	expect_refused_silently("MPA ID Rep", 10);
	expect_refused_silently(&reply, IW_MPA_HEAD);
	expect_no_request_before();
}

/* MPA-10 */
static void request__unknown_revision__closed(void **state)
{
	const uint8_t revisions[] = {0, 3, 255};

	(void)state;
	for (size_t i = 0; i < sizeof(revisions); i++) {
		struct frame frame = make_frame(REQUEST, 0, revisions[i], NULL, 0);

		expect_refused_silently(&frame, IW_MPA_HEAD);
	}
	expect_no_request_before();
}

/* MPA-11 MPA-12 MPA-24 MPA-30 MPA-38 IWCM-17 IWCM-19 */
static void request__not_enhanced__served_without_enhanced_data(void **state)
{
	/* revision, flags of the request, flags of the reply */
	static const uint8_t cases[][3] = {
		{1, 0, 0}, {1, FLAG_S | 0x0f, 0}, {2, 0, 0}, {2, FLAG_C, FLAG_C}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame frame = make_frame(REQUEST, cases[i][1], cases[i][0], "foreign", 7);
		struct sockaddr_in own;
		socklen_t size = sizeof(own);
		int fd = dial(stage.qual);
		DAT_CR_PARAM param;

		assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
		put_frame(fd, &frame);
		param = take_request();
		assert_int_equal(param.private_data_size, 7);
		assert_memory_equal(param.private_data, "foreign", 7);
		assert_true(param.remote_port_qual == ntohs(own.sin_port));
		accept_with("yes", 3);
		frame = get_frame(fd, REPLY);
		assert_int_equal(frame.head[16], cases[i][2]);
		assert_int_equal(frame.head[17], cases[i][0]);
		assert_int_equal(frame_size(&frame), IW_MPA_HEAD + 3);
		assert_memory_equal(frame.data, "yes", 3);
		/* at once: nothing comes from the peer */
		expect(DAT_CONNECTION_EVENT_ESTABLISHED);
		close(fd);
		expect(DAT_CONNECTION_EVENT_DISCONNECTED);
		ok(core_ep_reset(stage.b));
	}
}

/* MPA-13 MPA-14 */
static void request__no_room_for_enhanced_data__reply_with_R(void **state)
{
	(void)state;
	for (unsigned size = 0; size < 4; size += 3) {
		struct frame frame = make_frame(REQUEST, FLAG_S | FLAG_C, 2, "abc", size);
		int fd = dial(stage.qual);

		put_frame(fd, &frame);
		frame = get_frame(fd, REPLY);
		assert_int_equal(frame.head[16], FLAG_R | FLAG_S | FLAG_C);
		assert_int_equal(frame.head[17], 2);
		assert_int_equal(frame_size(&frame), IW_MPA_HEAD + 4);
		expect_closed(fd);
	}
	expect_no_request_before();
}

/* MPA-04 MPA-05 MPA-15 IWCM-11 */
static void request__single_bytes_with_all_flags__served(void **state)
{
	struct frame frame = own_request_with(stage.qual, 1, FLAG_R | 0x0f);
	int fd = dial(stage.qual);
	DAT_CR_PARAM param;

	(void)state;
	for (size_t i = 0; i < frame_size(&frame); i++) {
		struct pollfd pause = {.fd = fd, .events = POLLIN};

		put(fd, (uint8_t *)&frame + i, 1);
		assert_int_equal(poll(&pause, 1, 1), 0);
	}
	param = take_request();
	assert_int_equal(param.private_data_size, 4);
	assert_memory_equal(param.private_data, "data", 4);
	assert_true(param.remote_port_qual == 4711);
	ok(core_cr_reject(stage.cr));
	close(fd);
}

/* MPA-17 CR-ACCEPT-21 */
static void request__bytes_behind_it__set_up_ends(void **state)
{
	struct frame frame = own_request();
	uint8_t bytes[sizeof(frame) + 1] = {0};
	int fd;

	(void)state;
	memcpy(bytes, &frame, sizeof(frame));
	expect_refused_silently(bytes, frame_size(&frame) + 1);
	expect_no_request_before();

	fd = dial(stage.qual);
	put_frame(fd, &frame);
	take_request();
	put(fd, "x", 1);
	accept_with(NULL, 0);
	expect(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	expect_closed(fd);
}

/* MPA-22 */
static void request__markers__reply_with_R_and_without_M(void **state)
{
	struct frame frame = make_frame(REQUEST, FLAG_M, 1, NULL, 0);
	int fd = dial(stage.qual);

	(void)state;
	put_frame(fd, &frame);
	frame = get_frame(fd, REPLY);
	assert_int_equal(frame.head[16], FLAG_R);
	assert_int_equal(frame_size(&frame), IW_MPA_HEAD);
	expect_closed(fd);
	expect_no_request_before();
}

static void expect_own_reject(int fd, enum cm_reason reason)
{
	struct frame frame = get_frame(fd, REPLY);

	assert_int_equal(frame.head[16], FLAG_R | FLAG_S);
	assert_int_equal(frame.head[17], 2);
	assert_int_equal(frame_size(&frame), IW_MPA_HEAD + 4 + CM_REJECT_HEAD);
	assert_int_equal(cm_get_reject(frame.data + 4, CM_REJECT_HEAD), reason);
	assert_int_equal(frame.data[4 + 7], 0);
	expect_closed(fd);
}

/* IWCM-13 IWCM-12 */
static void request__header_makes_no_sense__reason_2(void **state)
{
	/* offset in the header, value: size, version, type */
	static const uint8_t cases[][2] = {{7, 5}, {7, 65}, {4, 2}, {5, 3}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame frame = own_request();
		int fd = dial(stage.qual);

		frame.data[4 + cases[i][0]] = cases[i][1];
		put_frame(fd, &frame);
		expect_own_reject(fd, CM_REASON_PROVIDER);
	}
	expect_no_request_before();
}

/* IWCM-13 CONN-GEN-03 */
static void request__bytes_behind_the_data__ignored(void **state)
{
	struct frame frame = own_request();
	size_t size = frame_size(&frame) - IW_MPA_HEAD;
	int fd = dial(stage.qual);

	(void)state;
	frame = make_frame(REQUEST, FLAG_S, 2, frame.data, size + 10);
	put_frame(fd, &frame);
	assert_int_equal(take_request().private_data_size, 4);
	ok(core_cr_reject(stage.cr));
	close(fd);
}

/* IWCM-07 IWCM-12 CONN-GEN-08 */
static void request__another_qualifier__reason_3(void **state)
{
	struct frame frame = own_request_with(stage.qual + 65536, 1, 0);
	int fd = dial(stage.qual);

	(void)state;
	put_frame(fd, &frame);
	expect_own_reject(fd, CM_REASON_NOT_HERE);
	expect_no_request_before();
}

/* IWCM-21 MPA-14 */
static void reject__by_the_consumer__reason_1(void **state)
{
	struct frame frame = own_request();
	int fd = dial(stage.qual);

	(void)state;
	put_frame(fd, &frame);
	take_request();
	ok(core_cr_reject(stage.cr));
	expect_own_reject(fd, CM_REASON_CONSUMER);
}

/* IWCM-22 CONN-EVT-26 */
static void request__no_room_for_the_event__reason_2(void **state)
{
	DAT_EVD_HANDLE evd;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual = 0;
	int fds[9];

	(void)state;
	ok(core_evd_create(stage.ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd));
	ok(core_psp_create_any(stage.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	for (int i = 0; i < 9; i++) {
		struct frame frame = own_request_with(qual, (uint32_t)i, 0);

		fds[i] = dial(qual);
		put_frame(fds[i], &frame);
	}
	expect_own_reject(fds[8], CM_REASON_PROVIDER);
	for (int i = 0; i < 8; i++) {
		expect_silence(fds[i]);
		close(fds[i]);
	}
}

/* IWCM-26 */
static void request__repeated_before_the_answer__continues_on_the_new_socket(void **state)
{
	struct frame frame = own_request_with(stage.qual, 77, 0);
	int first = dial(stage.qual);
	int second = dial(stage.qual);

	(void)state;
	put_frame(first, &frame);
	take_request();
	put_frame(second, &frame);
	expect_closed(first);
	expect_quiet(stage.request_evd);
	accept_with(NULL, 0);
	get_frame(second, REPLY);
	put(second, rtr_write, sizeof(rtr_write));
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	/* another attempt */
	frame = own_request_with(stage.qual, 78, 0);
	first = dial(stage.qual);
	put_frame(first, &frame);
	take_request();
	close(first);
	close(second);
}

int main(void)
{
#define one(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
	const struct CMUnitTest tests[] = {
		one(request__too_long__closed_without_waiting),
		one(request__wrong_key__closed_at_the_first_wrong_byte),
		one(request__unknown_revision__closed),
		one(request__not_enhanced__served_without_enhanced_data),
		one(request__no_room_for_enhanced_data__reply_with_R),
		one(request__single_bytes_with_all_flags__served),
		one(request__bytes_behind_it__set_up_ends),
		one(request__markers__reply_with_R_and_without_M),
		one(request__header_makes_no_sense__reason_2),
		one(request__bytes_behind_the_data__ignored),
		one(request__another_qualifier__reason_3),
		one(reject__by_the_consumer__reason_1),
		one(request__no_room_for_the_event__reason_2),
		one(request__repeated_before_the_answer__continues_on_the_new_socket),
	};

	return cmocka_run_group_tests_name("setup_request", tests, provide, NULL);
}
