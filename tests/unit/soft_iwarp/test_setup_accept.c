// SPDX-License-Identifier: BSD-2-Clause
/* What a reply agrees on, and when the passive side of a connection is established. */
#include "setup_peer.h"
#include "setup_stage.h"

/* The words of a foreign request with that offer. */
#define OFFER(bits) WORDS(bits, 5, 7)

static uint32_t words_for(unsigned offer)
{
	return (offer & 1 ? WORD_B : 0) | (offer & 2 ? WORD_C : 0) | (offer & 4 ? WORD_D : 0);
}

/* A foreign peer sends such a request, and it is accepted; the reply. */
static struct frame ask(int fd, uint8_t flags, uint32_t words)
{
	struct frame frame = make_enhanced(REQUEST, flags, words, "hello", 5);

	put_frame(fd, &frame);
	take_request();
	accept_with("welcome", 7);
	return get_frame(fd, REPLY);
}

static void end(int fd)
{
	close(fd);
	next_of(stage.evd);
	ok(core_ep_reset(stage.b));
}

/* MPA-14 MPA-29 MPA-30 IWCM-19 */
static void reply__each_offer_of_rtr__one_is_chosen(void **state)
{
	/* C before D before B; C if none was offered */
	static const uint32_t chosen[] = {WORD_C, WORD_B, WORD_C, WORD_C,
					  WORD_D, WORD_D, WORD_C, WORD_C};

	(void)state;
	for (unsigned offer = 0; offer < 8; offer++) {
		int fd = dial(stage.qual);
		struct frame frame = ask(fd, 0, OFFER(words_for(offer) | WORD_A));

		assert_int_equal(frame.head[16], FLAG_S);
		assert_int_equal(frame.head[17], 2);
		assert_int_equal(frame_words(&frame) & WORDS(0xc000c000u, 0, 0),
				 WORD_A | chosen[offer]);
		assert_int_equal(frame_size(&frame), IW_MPA_HEAD + 4 + 7);
		assert_memory_equal(frame.data + 4, "welcome", 7);
		end(fd);
	}
	/* without A they are ignored */
	for (unsigned offer = 0; offer < 8; offer++) {
		int fd = dial(stage.qual);
		struct frame frame = ask(fd, 0, OFFER(words_for(offer)));

		assert_int_equal(frame_words(&frame) & WORDS(0xc000c000u, 0, 0), 0);
		expect(DAT_CONNECTION_EVENT_ESTABLISHED);
		end(fd);
	}
}

/* MPA-24 */
static void reply__request_with_or_without_C__the_same(void **state)
{
	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		int fd = dial(stage.qual);
		uint8_t flag = has_crc ? FLAG_C : 0;
		struct frame frame = ask(fd, flag, OFFER(WORD_A));

		assert_int_equal(frame.head[16], FLAG_S | flag);
		end(fd);
	}
}

static uint32_t ird_of(const struct frame *frame)
{
	return frame_words(frame) >> 16 & 0x3fff;
}

static uint32_t ord_of(const struct frame *frame)
{
	return frame_words(frame) & 0x3fff;
}

/* MPA-39 MPA-40 MPA-41 MPA-44 */
static void reply__depths_of_the_request__ours_within_them(void **state)
{
	/* of the request: IRD, ORD; of the reply to an endpoint with counts 8 and 8: ORD */
	static const uint32_t cases[][3] = {{0, 0, 0},	    {1, 0x3ffe, 1}, {4, 4, 4},
					    {0x3ffe, 1, 9}, {0x3fff, 1, 1}, {16, 0x3fff, 9}};
	DAT_EP_PARAM param;

	(void)state;
	ok(core_ep_query(stage.b, DAT_EP_FIELD_ALL, &param));
	assert_int_equal(param.ep_attr.max_rdma_read_in, 8);
	assert_int_equal(param.ep_attr.max_rdma_read_out, 8);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = dial(stage.qual);
		struct frame frame = ask(fd, 0, WORDS(WORD_A, cases[i][0], cases[i][1]));

		assert_int_equal(ird_of(&frame), 9);
		assert_int_equal(ord_of(&frame), cases[i][2]);
		end(fd);
	}
}

/* MPA-37 */
static void accept__peer_to_peer__established_by_the_first_fpdu(void **state)
{
	int fd = dial(stage.qual);

	(void)state;
	ask(fd, 0, OFFER(WORD_A | WORD_C));
	expect_served();
	assert_int_equal(state_of(stage.b), DAT_EP_STATE_COMPLETION_PENDING);
	expect_quiet(stage.evd);
	put(fd, rtr_write, sizeof(rtr_write) - 1);
	expect_served();
	assert_int_equal(state_of(stage.b), DAT_EP_STATE_COMPLETION_PENDING);
	put(fd, rtr_write + sizeof(rtr_write) - 1, 1);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(state_of(stage.b), DAT_EP_STATE_CONNECTED);
	close(fd);
}

/* MPA-37 CR-ACCEPT-30 IWCM-25 */
static void accept__no_first_fpdu__fails_after_the_setup_timeout(void **state)
{
	int fd = dial(stage.qual);
	uint64_t begin = now_ms();

	(void)state;
	ask(fd, 0, OFFER(WORD_A | WORD_C));
	put(fd, rtr_write, 3);
	expect(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	assert_true(now_ms() - begin >= HASTY_MS);
	expect_closed(fd);
}

/* TERM-32 CR-ACCEPT-21 */
static void accept__stream_ends_before_the_first_fpdu__fails(void **state)
{
	(void)state;
	for (size_t size = 0; size < 4; size += 3) {
		int fd = dial(stage.qual);

		ask(fd, 0, OFFER(WORD_A | WORD_C));
		put(fd, rtr_write, size);
		close(fd);
		expect(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		ok(core_ep_reset(stage.b));
	}
}

/* MPA-18 MPA-38 */
static void accept__without_peer_to_peer__sends_nothing_before_the_first_fpdu(void **state)
{
	DAT_LMR_TRIPLET source = {stage.lkey, 0, (uintptr_t)stage.memory, 4};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};
	uint8_t bytes[28];
	int fd = dial(stage.qual);

	(void)state;
	memcpy(stage.memory, "late", 4);
	ask(fd, 0, OFFER(0));
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	ok(core_ep_post_send(stage.b, 1, &source, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	expect_served();
	expect_silence(fd);
	put(fd, rtr_write, sizeof(rtr_write));
	get(fd, bytes, sizeof(bytes));
	assert_int_equal(bytes[1], 22);
	assert_memory_equal(bytes + 20, "late", 4);
	close(fd);
}

/* IWCM-14 */
static void reply__request_of_our_own_engine__same_flag(void **state)
{
	struct cm_request request = {.qual = stage.qual, .port = 1};
	struct cm_accept accept;

	(void)state;
	for (int is_own = 0; is_own < 2; is_own++) {
		uint8_t bytes[CM_MAX];
		struct frame frame;
		int fd = dial(stage.qual);

		request.flags = is_own ? CM_COUNTS : 0;
		frame = make_enhanced(REQUEST, 0, OFFER(WORD_A | WORD_C), bytes,
				      cm_put_request(&request, bytes));
		put_frame(fd, &frame);
		take_request();
		accept_with("ok", 2);
		frame = get_frame(fd, REPLY);
		assert_int_equal(cm_get_accept(frame.data + 4, frame_size(&frame) - IW_MPA_HEAD - 4,
					       &accept),
				 1);
		assert_int_equal(accept.flags, is_own ? CM_COUNTS | CM_ATOMICS : 0);
		assert_int_equal(accept.read_in, 8);
		assert_int_equal(accept.size, 2);
		assert_memory_equal(accept.data, "ok", 2);
		end(fd);
	}
}

int main(void)
{
#define one(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
#define hasty(name) cmocka_unit_test_setup_teardown(name, open_hasty, close_stage)
	const struct CMUnitTest tests[] = {
		one(reply__each_offer_of_rtr__one_is_chosen),
		one(reply__request_with_or_without_C__the_same),
		one(reply__depths_of_the_request__ours_within_them),
		one(reply__request_of_our_own_engine__same_flag),
		one(accept__peer_to_peer__established_by_the_first_fpdu),
		one(accept__stream_ends_before_the_first_fpdu__fails),
		one(accept__without_peer_to_peer__sends_nothing_before_the_first_fpdu),
		hasty(accept__no_first_fpdu__fails_after_the_setup_timeout),
	};

	return cmocka_run_group_tests_name("setup_accept", tests, provide, NULL);
}
