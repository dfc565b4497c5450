// SPDX-License-Identifier: BSD-2-Clause
/* The requests that our endpoint sends, and what it makes of replies. */
#include "setup_peer.h"
#include "setup_stage.h"
#include "soft/iwarp/transfer/stream.h"

static struct {
	int listener;
	uint16_t port; /* place 0 of the qualifier of that number */
} peer;

static int open_peer(void **state)
{
	peer.listener = listen_at(0, &peer.port);
	return open_stage(state);
}

static int open_hasty_peer(void **state)
{
	peer.listener = listen_at(0, &peer.port);
	return open_hasty(state);
}

static int close_peer(void **state)
{
	close(peer.listener);
	return close_stage(state);
}

static void connect_peer(void)
{
	connect_with(peer.port, WAIT_US, "request", 7);
}

/* Our endpoint connects; the connection and its request. */
static int called(struct frame *frame)
{
	int fd;

	connect_peer();
	fd = answer_call(peer.listener);
	*frame = get_frame(fd, REQUEST);
	return fd;
}

/* The reply to that request that every initiator accepts; C as RTR. */
static struct frame good_reply(void)
{
	return make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 9, 9), "reply", 5);
}

static void expect_failure(DAT_EVENT_NUMBER number)
{
	expect(number);
	expect_quiet(stage.evd);
	assert_int_equal(state_of(stage.a), DAT_EP_STATE_DISCONNECTED);
	ok(core_ep_reset(stage.a));
}

/* Nobody else has connected. */
static void expect_no_other_call(void)
{
	struct pollfd ready = {.fd = peer.listener, .events = POLLIN};

	assert_int_equal(poll(&ready, 1, 0), 0);
}

static void expect_refused(const void *bytes, size_t size)
{
	struct frame request;
	int fd = called(&request);

	put(fd, bytes, size);
	expect_closed(fd);
	expect_failure(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	expect_no_other_call();
}

/* MPA-01 MPA-02 MPA-06 MPA-07 MPA-21 MPA-28 MPA-39 IWCM-10 IWCM-11 IWCM-14 */
static void request__as_specified(void **state)
{
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	struct cm_request request;
	struct frame frame;
	DAT_EP_PARAM param;
	int fd = called(&frame);

	(void)state;
	assert_int_equal(frame.head[16], FLAG_S);
	assert_int_equal(frame.head[17], 2);
	assert_int_equal(frame_words(&frame), WORDS(WORD_A | WORD_C | WORD_D, 9, 9));
	assert_int_equal(frame_size(&frame), IW_MPA_HEAD + 4 + CM_REQUEST_HEAD + 7);
	assert_int_equal(
		cm_get_request(frame.data + 4, CM_REQUEST_HEAD + 7, IW_MPA_PRIVATE_MAX, &request),
		1);
	assert_int_equal(request.flags, CM_COUNTS | CM_ATOMICS);
	assert_true(request.qual == peer.port);
	assert_int_equal(request.read_in, 8);
	assert_int_equal(request.read_out, 8);
	assert_int_equal(request.size, 7);
	assert_memory_equal(request.data, "request", 7);
	assert_int_equal(getpeername(fd, (struct sockaddr *)&from, &size), 0);
	assert_int_equal(request.port, ntohs(from.sin_port));
	assert_int_equal(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	ok(core_ep_query(stage.a, DAT_EP_FIELD_ALL, &param));
	assert_true(param.local_port_qual == request.port);
	close(fd);
}

/* MPA-15 MPA-16 MPA-32 MPA-33 IWCM-19 */
static void reply__in_single_bytes__established_and_rtr_first(void **state)
{
	DAT_LMR_TRIPLET source = {stage.lkey, 0, (uintptr_t)stage.memory, 4};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};
	DAT_CONNECTION_EVENT_DATA data;
	struct frame frame;
	uint8_t bytes[28];
	int fd = called(&frame);

	(void)state;
	frame = good_reply();
	for (size_t i = 0; i < frame_size(&frame); i++) {
		struct pollfd pause = {.fd = fd, .events = POLLIN};

		assert_int_equal(poll(&pause, 1, 1), 0);
		put(fd, (uint8_t *)&frame + i, 1);
	}
	data = expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(data.private_data_size, 5);
	assert_memory_equal(data.private_data, "reply", 5);
	ok(core_ep_post_send(stage.a, 1, &source, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	get_rtr(fd, bytes);
	get(fd, bytes + 20, 8);
	assert_int_equal(bytes[1], 22);
	close(fd);
}

/* MPA-32 MPA-34 */
static void reply__chooses_D__read_request_of_length_0(void **state)
{
	struct frame frame;
	uint8_t bytes[52];
	int fd = called(&frame);

	(void)state;
	frame = make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_D, 9, 9), NULL, 0);
	put_frame(fd, &frame);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	get(fd, bytes, sizeof(bytes));
	assert_int_equal(bytes[1], 46);
	assert_int_equal(bytes[3], 0x41); /* RDMAP version 1, Read Request */
	assert_int_equal(bytes[11], 1);	  /* QN */
	assert_int_equal(bytes[15], 1);	  /* MSN */
	assert_memory_equal(bytes + 32, "\0\0\0\0", 4);
	close(fd);
}

/* MPA-19 */
static void reply__bytes_behind_it__refused(void **state)
{
	struct frame frame = good_reply();
	uint8_t bytes[sizeof(frame) + 20];

	(void)state;
	memcpy(bytes, &frame, sizeof(frame));
	memcpy(bytes + frame_size(&frame), rtr_write, sizeof(rtr_write));
	expect_refused(bytes, frame_size(&frame) + sizeof(rtr_write));
}

/* MPA-20 */
static void reply__invalid__refused(void **state)
{
	struct frame frame = good_reply();

	(void)state;
	memcpy(frame.head, REQUEST, 16);
	expect_refused(&frame, frame_size(&frame));
	expect_refused("HTTP/1.1 400 Bad Request\r\n", 26);
	frame = good_reply();
	frame.head[18] = 513 >> 8;
	frame.head[19] = 513 & 0xff;
	expect_refused(&frame, IW_MPA_HEAD);
	frame = make_frame(REPLY, FLAG_S, 2, "abc", 3);
	expect_refused(&frame, frame_size(&frame));
	frame = good_reply();
	frame.head[17] = 3;
	expect_refused(&frame, frame_size(&frame));
}

/* MPA-20 MPA-46 */
static void reply__ends_in_the_middle__refused(void **state)
{
	struct frame frame, reply = good_reply();
	int fd = called(&frame);

	(void)state;
	put(fd, &reply, 22);
	close(fd);
	expect_failure(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	expect_no_other_call();
}

/* MPA-22 */
static void reply__markers__refused(void **state)
{
	struct frame frame = good_reply();

	(void)state;
	frame.head[16] |= FLAG_M;
	expect_refused(&frame, frame_size(&frame));
}

/* A Terminate of that code is all that comes. */
static void expect_terminate(uint32_t words, uint8_t code)
{
	struct frame frame;
	uint8_t bytes[2 + 18 + 4 + 4];
	int fd = called(&frame);

	frame = make_enhanced(REPLY, 0, words, NULL, 0);
	put_frame(fd, &frame);
	expect_failure(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	get(fd, bytes, sizeof(bytes));
	assert_int_equal(bytes[1], 22);
	assert_int_equal(bytes[3], 0x47); /* RDMAP version 1, Terminate */
	assert_int_equal(bytes[11], 2);	  /* QN */
	assert_int_equal(bytes[20], 0x20);
	assert_int_equal(bytes[21], code);
	expect_closed(fd);
	expect_no_other_call();
}

/* MPA-31 */
static void reply__no_form_that_we_offered__terminate_2_0_07(void **state)
{
	(void)state;
	expect_terminate(WORDS(WORD_A | WORD_B, 9, 9), 7);
	expect_terminate(WORDS(WORD_A, 9, 9), 7);
	expect_terminate(WORDS(WORD_C, 9, 9), 7);
}

/* MPA-43 */
static void reply__ord_above_our_ird__raised_or_terminate_2_0_06(void **state)
{
	uint8_t bytes[sizeof(rtr_write)];
	struct frame frame;
	int fd = called(&frame);

	(void)state;
	frame = make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 9, IW_READS), NULL, 0);
	put_frame(fd, &frame);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	get(fd, bytes, sizeof(bytes)); /* unread bytes would make the close a reset */
	close(fd);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.a));
	expect_terminate(WORDS(WORD_A | WORD_C, 9, IW_READS + 1), 6);
	expect_terminate(WORDS(WORD_A | WORD_C, 9, 0x3ffe), 6);
}

/* MPA-24 MPA-51 */
static void reply__with_C__frames_have_a_crc(void **state)
{
	struct frame frame;
	uint8_t bytes[20];
	int fd = called(&frame);

	(void)state;
	frame = good_reply();
	frame.head[16] |= FLAG_C;
	put_frame(fd, &frame);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	get(fd, bytes, sizeof(bytes));
	assert_memory_equal(bytes, rtr_write, 16);
	assert_memory_not_equal(bytes + 16, "\0\0\0\0", 4);
	close(fd);
}

/* --- a peer without RFC 6581 --- */

/* It answers so; our endpoint tries again with revision 1. */
static void expect_second_try(const void *bytes, size_t size)
{
	struct frame frame;
	int fd = called(&frame);

	put(fd, bytes, size);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	expect_closed(fd);
	fd = answer_call(peer.listener);
	frame = get_frame(fd, REQUEST);
	assert_int_equal(frame.head[16], 0);
	assert_int_equal(frame.head[17], 1);
	assert_int_equal(frame_size(&frame), IW_MPA_HEAD + CM_REQUEST_HEAD + 7);
	frame = make_frame(REPLY, 0, 1, "old", 3);
	put_frame(fd, &frame);
	assert_int_equal(expect(DAT_CONNECTION_EVENT_ESTABLISHED).private_data_size, 3);
	expect_no_other_call();
	close(fd);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.a));
}

/* MPA-45 MPA-46 */
static void reply__of_an_old_peer__second_try_with_revision_1(void **state)
{
	struct frame frame = make_frame(REPLY, 0, 1, NULL, 0);

	(void)state;
	expect_second_try(&frame, frame_size(&frame));
	frame.head[17] = 2;
	expect_second_try(&frame, frame_size(&frame));
	expect_second_try(NULL, 0);
}

/* MPA-46 */
static void reply__none_to_the_second_try__fails(void **state)
{
	struct frame frame;
	int fd = called(&frame);

	(void)state;
	close(fd);
	fd = answer_call(peer.listener);
	get_frame(fd, REQUEST);
	close(fd);
	expect_failure(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	expect_no_other_call();
}

/* MPA-46 */
static void reply__reset__no_second_try(void **state)
{
	const struct linger now = {.l_onoff = 1, .l_linger = 0};
	struct frame frame;
	int fd = called(&frame);

	(void)state;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(fd);
	expect_failure(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	expect_no_other_call();
}

/* --- rejects --- */

static void expect_rejected(uint8_t flags, uint8_t revision, const void *data, size_t size,
			    DAT_EVENT_NUMBER number)
{
	struct frame frame;
	int fd = called(&frame);

	frame = revision == 2 ? make_enhanced(REPLY, flags, 0, data, size)
			      : make_frame(REPLY, flags, revision, data, size);
	put_frame(fd, &frame);
	expect_failure(number);
	expect_closed(fd);
	expect_no_other_call();
}

/* IWCM-12 IWCM-21 IWCM-22 IWCM-23 IWCM-07 MPA-46 */
static void reply__with_R__as_its_reason_says(void **state)
{
	uint8_t bytes[CM_REJECT_MAX];
	size_t size = cm_put_reject(CM_REASON_CONSUMER, NULL, 0, bytes);

	(void)state;
	expect_rejected(FLAG_R, 2, bytes, size, DAT_CONNECTION_EVENT_PEER_REJECTED);
	(void)cm_put_reject(CM_REASON_PROVIDER, NULL, 0, bytes);
	expect_rejected(FLAG_R, 2, bytes, size, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	(void)cm_put_reject(CM_REASON_NOT_HERE, NULL, 0, bytes);
	expect_rejected(FLAG_R, 2, bytes, size, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	expect_rejected(FLAG_R, 2, "no", 2, DAT_CONNECTION_EVENT_PEER_REJECTED);
	expect_rejected(FLAG_R, 1, NULL, 0, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* --- private data --- */

/* IWCM-13 IWCM-16 */
static void reply__private_data_that_make_no_sense__refused(void **state)
{
	struct cm_accept accept = {.read_in = 1, .size = 2, .data = "ok"};
	uint8_t bytes[CM_MAX] = {0};
	size_t size = cm_put_accept(&accept, bytes);
	struct frame frame;

	(void)state;
	bytes[7] = 3; /* more than comes */
	frame = make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 9, 9), bytes, size);
	expect_refused(&frame, frame_size(&frame));
	/* more than an adapter with the header names */
	memset(bytes + CM_ACCEPT_HEAD, 'x', CM_PRIVATE_MAX + 1);
	bytes[7] = CM_PRIVATE_MAX + 1;
	frame = make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 9, 9), bytes,
			      CM_ACCEPT_HEAD + CM_PRIVATE_MAX + 1);
	expect_refused(&frame, frame_size(&frame));
}

/* IWCM-12 IWCM-15 */
static void reply__wants_confirmation__send_of_length_0_behind_the_rtr(void **state)
{
	struct cm_accept accept = {
		.read_in = 1, .size = 2, .data = "ok", .wants_confirmation = true};
	uint8_t bytes[CM_MAX];
	size_t size = cm_put_accept(&accept, bytes);
	struct frame frame;
	int fd = called(&frame);

	(void)state;
	frame = make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 9, 9), bytes, size);
	put_frame(fd, &frame);
	assert_int_equal(expect(DAT_CONNECTION_EVENT_ESTABLISHED).private_data_size, 2);
	get_rtr(fd, bytes);
	get(fd, bytes + 20, 4);
	assert_int_equal(bytes[1], 18);
	assert_int_equal(bytes[3], 0x43);
	close(fd);
}

/* --- time --- */

/* IWCM-25 */
static void reply__a_byte_now_and_then__ends_after_the_setup_timeout(void **state)
{
	struct frame frame, reply = good_reply();
	int fd = called(&frame);
	uint64_t begin = now_ms();

	(void)state;
	assert_in_range(put_slowly(fd, &reply, 20, (int)HASTY_MS / 4), 0, 19);
	assert_true(now_ms() - begin >= HASTY_MS);
	expect_closed(fd);
	expect_failure(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

int main(void)
{
#define one(name) cmocka_unit_test_setup_teardown(name, open_peer, close_peer)
#define hasty(name) cmocka_unit_test_setup_teardown(name, open_hasty_peer, close_peer)
	const struct CMUnitTest tests[] = {
		one(request__as_specified),
		one(reply__in_single_bytes__established_and_rtr_first),
		one(reply__chooses_D__read_request_of_length_0),
		one(reply__bytes_behind_it__refused),
		one(reply__invalid__refused),
		one(reply__ends_in_the_middle__refused),
		one(reply__markers__refused),
		one(reply__no_form_that_we_offered__terminate_2_0_07),
		one(reply__ord_above_our_ird__raised_or_terminate_2_0_06),
		one(reply__with_C__frames_have_a_crc),
		one(reply__of_an_old_peer__second_try_with_revision_1),
		one(reply__none_to_the_second_try__fails),
		one(reply__reset__no_second_try),
		one(reply__with_R__as_its_reason_says),
		one(reply__private_data_that_make_no_sense__refused),
		one(reply__wants_confirmation__send_of_length_0_behind_the_rtr),
		hasty(reply__a_byte_now_and_then__ends_after_the_setup_timeout),
	};

	return cmocka_run_group_tests_name("setup_connect", tests, provide, NULL);
}
