// SPDX-License-Identifier: BSD-2-Clause
/* Which thread drives a connection: the service thread, or one of the consumer that polls. */
#include "flow_stage.h"

#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/iwarp/engine/engine.h"
#include "soft/soft.h"

#define POLL_NS 25000u /* from one poll to the next, as on a slow processor */
#define POLLS 100u
#define LARGE (64u * 1024u)
#define LONG_NS 10000000u /* longer than a thread that does nothing keeps the connection */
#define LIMIT_NS UINT64_C(20000000000)

/* Large messages are not sent: the peer does not read. */
ssize_t __real_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags)
{
	size_t size = size_of(message);

	return size < LARGE ? __real_iw_socket_sendmsg(fd, message, flags) : (ssize_t)size;
}

static bool is_polled(void)
{
	const struct core_ep *ep = ((struct core_handle *)flow.ep)->object;

	return atomic_load(&soft_adapter_of(ep->ia)->tcp->polled_count) != 0;
}

static void poll_slowly(void)
{
	for (unsigned i = 0; i < POLLS; i++) {
		uint64_t end = core_now_ns() + POLL_NS;

		expect_quiet(stage.evd);
		while (core_now_ns() < end)
			;
	}
}

/* The peer sends empty RDMA Writes until the connection is left to this thread. */
static void take_over(void)
{
	uint64_t end = core_now_ns() + LIMIT_NS;
	bool is_taken = false;

	be_called(0);
	while (!is_taken && core_now_ns() < end) {
		peer_write(0, 0, "", 0);
		poll_slowly();
		is_taken = is_polled();
	}
	assert_true(is_taken);
}

/* Waits for the last byte of the region, without a call. Was the connection left to this thread? */
static bool wait_for_byte(uint8_t value)
{
	const uint8_t *last = flow.region + REGION - 1;
	uint64_t end = core_now_ns() + LIMIT_NS;
	bool was_polled = false;

	while (peek(last) != value && core_now_ns() < end)
		was_polled |= is_polled();
	assert_int_equal(peek(last), value);
	return was_polled;
}

static void send_byte(uint8_t value)
{
	post_recv_at(REGION - 1, 1);
	peer_send(&value, 1);
}

static void polls__slow_loop__drives_the_connection(void **state)
{
	(void)state;
	take_over();
	send_byte(1);
	expect_dto(REGION - 1, DAT_DTO_SUCCESS, 1);
	hang_up();
}

/* COMPAT-46 */
static void polls__loop_ends__service_thread_places(void **state)
{
	(void)state;
	take_over();
	send_byte(2);
	(void)wait_for_byte(2);
	expect_dto(REGION - 1, DAT_DTO_SUCCESS, 1);
	hang_up();
}

/*
 * IWCM-32 DTO-60: messages wait for a Receive, so no poll reads the socket. The reset is found all
 * the same, while a thread goes on polling and does not sleep.
 */
static void polls__socket_is_not_read_and_reset__broken(void **state)
{
	static uint8_t bytes[60000];
	uint64_t end = core_now_ns() + LIMIT_NS;
	DAT_EVENT event = {0};

	(void)state;
	take_over();
	for (unsigned i = 0; i < 3; i++)
		peer_send(bytes, sizeof(bytes));
	poll_slowly();
	reset_peer();
	while (core_evd_dequeue(stage.evd, &event) != DAT_SUCCESS && core_now_ns() < end)
		;
	assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
}

/* COMPAT-46: polls come before the message and after it, not while it waits to be placed */
static void polls__thread_that_polls_its_memory__never_left_to_it(void **state)
{
	(void)state;
	be_called(0);
	for (uint8_t round = 1; round < 5; round++) {
		poll_slowly();
		send_byte(round);
		assert_false(wait_for_byte(round));
		expect_dto(REGION - 1, DAT_DTO_SUCCESS, 1);
	}
	hang_up();
}

static void post_large(void)
{
	post_send_at(0, LARGE, DAT_COMPLETION_SUPPRESS_FLAG);
}

/* The peer sends, until the connection is left to this thread, which only posts. */
static void post_until_polled(uint64_t end)
{
	while (!is_polled() && core_now_ns() < end) {
		peer_write(0, 0, "", 0);
		for (unsigned i = 0; i < POLLS; i++)
			post_large();
	}
}

/* Posts for a while. Is the next message placed, and the connection still left to this thread? */
static bool is_placed_by_posts(uint8_t value, uint64_t end)
{
	const uint8_t *last = flow.region + REGION - 1;
	uint64_t begin = core_now_ns();
	bool is_still_polled;

	while (core_now_ns() < begin + LONG_NS)
		post_large();
	send_byte(value);
	while (peek(last) != value && core_now_ns() < end)
		post_large();
	is_still_polled = is_polled();
	assert_int_equal(peek(last), value);
	expect_dto(REGION - 1, DAT_DTO_SUCCESS, 1);
	return is_still_polled;
}

/*
 * A thread that posts large messages without a pause needs no polls. It may lose its processor, and
 * then the connection, but not each time.
 */
static void polls__posts_of_large_messages__drive_the_connection(void **state)
{
	uint64_t end = core_now_ns() + LIMIT_NS;
	unsigned placed = 0;
	uint8_t value = 0;

	(void)state;
	be_called(0);
	speak(); /* before that nothing may be sent (MPA-18) */
	while (placed < 5 && core_now_ns() < end) {
		expect_quiet(stage.evd); /* the last thread that polled does not sleep any more */
		post_until_polled(end);
		value = (uint8_t)(value % 255 + 1);
		placed += (unsigned)is_placed_by_posts(value, end);
	}
	assert_int_equal(placed, 5);
	hang_up();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(polls__slow_loop__drives_the_connection,
						open_sleepy, close_stage),
		cmocka_unit_test_setup_teardown(
			polls__posts_of_large_messages__drive_the_connection, open_sleepy,
			close_stage),
		cmocka_unit_test_setup_teardown(polls__loop_ends__service_thread_places,
						open_sleepy, close_stage),
		cmocka_unit_test_setup_teardown(polls__socket_is_not_read_and_reset__broken,
						open_sleepy, close_stage),
		cmocka_unit_test_setup_teardown(
			polls__thread_that_polls_its_memory__never_left_to_it, open_sleepy,
			close_stage),
	};

	return cmocka_run_group_tests_name("iwarp polls", tests, provide, NULL);
}
