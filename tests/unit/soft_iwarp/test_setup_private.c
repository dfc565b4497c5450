// SPDX-License-Identifier: BSD-2-Clause
/* Private data as long as the frames of MPA can carry, with our header (adapter "tcp") and without
 * it ("plain"). */
#include "setup_peer.h"
#include "setup_stage.h"

#include "core/base/status.h"

#define ENHANCED_MOST 508u /* beside the enhanced data */
#define HEADER_MOST 64u

static uint8_t bytes[IW_MPA_PRIVATE_MAX];

static int provide_private(void **state)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	add_adapter("plain", "127.0.0.1 transport=tcp header=off");
	return provide(state);
}

static int open_plain(void **state)
{
	(void)state;
	return open_adapter("plain");
}

static void expect_most(DAT_COUNT most)
{
	DAT_PROVIDER_ATTR attr;

	ok(core_ia_query(stage.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	assert_int_equal(attr.max_private_data_size, most);
}

/* The adapter says so, and dat_ep_connect refuses more. */
static void expect_most_in_connect(DAT_COUNT most)
{
	struct sockaddr_in address = loopback(0);

	expect_most(most);
	assert_int_equal(core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&address, stage.qual, WAIT_US,
					 most + 1, bytes, DAT_QOS_BEST_EFFORT,
					 DAT_CONNECT_DEFAULT_FLAG),
			 core_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
}

static void expect_request(size_t size)
{
	DAT_CR_PARAM param = take_request();

	assert_int_equal(param.private_data_size, size);
	assert_memory_equal(param.private_data, bytes, size);
}

static void expect_established_with(size_t size)
{
	DAT_CONNECTION_EVENT_DATA data = expect(DAT_CONNECTION_EVENT_ESTABLISHED);

	assert_ptr_equal(data.ep_handle, stage.a);
	assert_int_equal(data.private_data_size, size);
	assert_memory_equal(data.private_data, bytes, size);
}

/* Our endpoint ends its connection. */
static void hang_up(void)
{
	ok(core_ep_disconnect(stage.a, DAT_CLOSE_ABRUPT_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.a));
}

/* Our endpoint connects; the socket of its connection, and its request. */
static int be_called_by_ours(int *listener, size_t size, struct frame *frame)
{
	uint16_t port;
	int fd;

	*listener = listen_at(0, &port);
	connect_with(port, WAIT_US, bytes, size);
	fd = answer_call(*listener);
	*frame = get_frame(fd, REQUEST);
	return fd;
}

static struct frame reply_with(size_t size)
{
	return make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 9, 9), bytes, size);
}

/* IWCM-19 CONN-GEN-11: what a foreign acceptor sends is shown whole, whatever our own limit is */
static void reply__long_foreign_data__shown_whole(void **state)
{
	static const size_t sizes[] = {HEADER_MOST, HEADER_MOST + 1, 252, ENHANCED_MOST};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct frame frame;
		int listener, fd = be_called_by_ours(&listener, 0, &frame);

		frame = reply_with(sizes[i]);
		put_frame(fd, &frame);
		expect_established_with(sizes[i]);
		hang_up();
		close(fd);
		close(listener);
	}
}

/* IWCM-19 MPA-45: without enhanced data there is room for four bytes more */
static void reply__longest_of_revision_1__shown_whole(void **state)
{
	struct frame frame;
	int listener, fd = be_called_by_ours(&listener, 0, &frame);

	(void)state;
	frame = make_frame(REPLY, 0, 1, NULL, 0);
	put_frame(fd, &frame);
	expect_closed(fd);
	fd = answer_call(listener);
	get_frame(fd, REQUEST);
	frame = make_frame(REPLY, 0, 1, bytes, IW_MPA_PRIVATE_MAX);
	put_frame(fd, &frame);
	expect_established_with(IW_MPA_PRIVATE_MAX);
	hang_up();
	close(fd);
	close(listener);
}

/* IWCM-17 IWCM-19: a foreign initiator */
static void request__long_foreign_data__shown_whole(void **state)
{
	struct frame frame =
		make_enhanced(REQUEST, 0, WORDS(WORD_A | WORD_C, 9, 9), bytes, ENHANCED_MOST);
	int fd = dial(stage.qual);

	(void)state;
	put_frame(fd, &frame);
	expect_request(ENHANCED_MOST);
	ok(core_cr_reject(stage.cr));
	get_frame(fd, REPLY);
	expect_closed(fd);
}

/* IWCM-16 EP-CONNECT-09 */
static void header_on__limit_of_the_calls__64(void **state)
{
	(void)state;
	expect_most_in_connect(HEADER_MOST);
}

/* --- header=off --- */

/* IWCM-16 IWCM-20 EP-CONNECT-09 CR-ACCEPT-15 */
static void header_off__limit_of_the_calls__508(void **state)
{
	struct frame frame = make_frame(REQUEST, 0, 1, NULL, 0);
	int fd = dial(stage.qual);

	(void)state;
	expect_most_in_connect(ENHANCED_MOST);
	put_frame(fd, &frame);
	take_request();
	assert_int_equal(core_cr_accept(stage.cr, stage.b, ENHANCED_MOST + 1, bytes),
			 core_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	close(fd);
}

/* IWCM-20 MPA-45: the longest request, also that of the second try */
static void header_off__longest_request__arrives_whole(void **state)
{
	struct frame frame;
	int listener, fd = be_called_by_ours(&listener, ENHANCED_MOST, &frame);

	(void)state;
	assert_int_equal(frame_size(&frame), IW_MPA_HEAD + IW_MPA_PRIVATE_MAX);
	assert_memory_equal(frame.data + 4, bytes, ENHANCED_MOST);
	frame = make_frame(REPLY, 0, 1, NULL, 0);
	put_frame(fd, &frame);
	expect_closed(fd);
	fd = answer_call(listener);
	frame = get_frame(fd, REQUEST);
	assert_int_equal(frame_size(&frame), IW_MPA_HEAD + ENHANCED_MOST);
	assert_memory_equal(frame.data, bytes, ENHANCED_MOST);
	close(fd);
	close(listener);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

/* IWCM-19 IWCM-20 CONN-GEN-03: both sides are adapters without the header */
static void header_off__two_of_ours__all_bytes_arrive(void **state)
{
	static const size_t sizes[] = {0, HEADER_MOST, 255, 256, ENHANCED_MOST};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		connect_with(stage.qual, WAIT_US, bytes, sizes[i]);
		expect_request(sizes[i]);
		accept_with(bytes, sizes[i]);
		for (unsigned side = 0; side < 2; side++) {
			DAT_CONNECTION_EVENT_DATA data = expect(DAT_CONNECTION_EVENT_ESTABLISHED);

			if (data.ep_handle != stage.a)
				continue;
			assert_int_equal(data.private_data_size, sizes[i]);
			assert_memory_equal(data.private_data, bytes, sizes[i]);
		}
		ok(core_ep_disconnect(stage.a, DAT_CLOSE_ABRUPT_FLAG));
		for (unsigned side = 0; side < 2; side++)
			expect(DAT_CONNECTION_EVENT_DISCONNECTED);
		ok(core_ep_reset(stage.a));
		ok(core_ep_reset(stage.b));
	}
}

/* CONN-GEN-11: an initiator with the header takes no more than it names */
static void header_off__long_accept_to_a_header__fails_at_both_sides(void **state)
{
	const struct cm_request request = {.flags = CM_COUNTS, .qual = stage.qual, .port = 1};

	(void)state;
	for (size_t size = HEADER_MOST; size <= ENHANCED_MOST;
	     size += ENHANCED_MOST - HEADER_MOST) {
		uint8_t head[CM_MAX];
		struct frame frame = make_enhanced(REQUEST, 0, WORDS(WORD_A | WORD_C, 9, 9), head,
						   cm_put_request(&request, head));
		int fd = dial(stage.qual);

		put_frame(fd, &frame);
		take_request();
		accept_with(bytes, size);
		frame = get_frame(fd, REPLY);
		assert_int_equal(frame.head[16] & FLAG_R, size > HEADER_MOST ? FLAG_R : 0);
		if (size > HEADER_MOST)
			assert_int_equal(
				cm_get_reject(frame.data + 4, frame_size(&frame) - IW_MPA_HEAD - 4),
				CM_REASON_PROVIDER);
		close(fd);
		expect(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		ok(core_ep_reset(stage.b));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
#define PLAIN(name) cmocka_unit_test_setup_teardown(name, open_plain, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reply__long_foreign_data__shown_whole),
		TEST(reply__longest_of_revision_1__shown_whole),
		TEST(request__long_foreign_data__shown_whole),
		TEST(header_on__limit_of_the_calls__64),
		PLAIN(header_off__limit_of_the_calls__508),
		PLAIN(header_off__longest_request__arrives_whole),
		PLAIN(header_off__two_of_ours__all_bytes_arrive),
		PLAIN(header_off__long_accept_to_a_header__fails_at_both_sides),
	};

	return cmocka_run_group_tests_name("setup_private", tests, provide_private, NULL);
}
