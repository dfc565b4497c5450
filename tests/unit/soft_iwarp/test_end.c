// SPDX-License-Identifier: BSD-2-Clause
/* The end of a connection while bytes are on the way: FIN, RST, Terminate, disconnect. */
#include "flow_stage.h"

#define QUIET_US 300000

/* IWCM-31 */
static void fin__within_a_response__that_read_alone_fails(void **state)
{
	struct taken taken;
	uint8_t bytes[100];

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	post_read_at(0, 200, 7, 4096, 0);
	post_read_at(1000, 200, 7, 8192, 0);
	get_fpdu(&taken);
	make_pattern(bytes, sizeof(bytes));
	peer_respond(be_get32(taken.payload), 0, bytes, sizeof(bytes), false);
	put(flow.fd, "\0", 1);
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	expect_dto(0, DAT_DTO_ERR_TRANSPORT, 0);
	expect_dto(1000, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
}

/* In either order: the request may have been posted to an endpoint that was broken already. */
static void expect_broken_and_flushed(size_t offset)
{
	unsigned broken = 0, flushed = 0;

	while (broken + flushed < 2) {
		DAT_EVENT event = next_of(stage.evd);
		const DAT_DTO_COMPLETION_EVENT_DATA *dto =
			&event.event_data.dto_completion_event_data;

		if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
			assert_int_equal(dto->user_cookie.as_64, offset);
			assert_int_equal(dto->status, DAT_DTO_ERR_FLUSHED);
			flushed++;
		} else {
			assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_BROKEN);
			broken++;
		}
	}
	assert_int_equal(flushed, 1);
}

/* IWCM-32: whoever finds it */
static void rst__found_by_a_post__broken(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct taken taken;

		be_calling_with(0, 4, 4);
		get_fpdu(&taken);
		post_read_at(0, 200, 7, 4096, 0);
		get_fpdu(&taken);
		reset_peer();
		post_send_at(1000, 10, 0); /* before or after the service thread knows */
		expect_dto(0, DAT_DTO_ERR_TRANSPORT, 0);
		expect_broken_and_flushed(1000);
		end_flow();
	}
}

/* IWCM-32 DTO-60 EP-STATE-44: also while messages wait for a Receive and the socket is not read */
static void rst__socket_is_not_read__broken(void **state)
{
	static uint8_t bytes[60000];

	(void)state;
	be_called_with(0, 4, 4);
	peer_write(0, 0, "", 0);
	post_read_at(0, 4, 7, 4096, 0);
	(void)get_read_request();
	for (unsigned i = 0; i < 3; i++)
		peer_send(bytes, sizeof(bytes));
	expect_served();
	reset_peer();
	expect_dto(0, DAT_DTO_ERR_TRANSPORT, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
}

/* IWCM-28 MPA-59 TERM-09: the peer ends its direction first, and reads later */
static void fin__bytes_that_tcp_has_not_taken__sent_all_the_same(void **state)
{
	unsigned sends = 0, completed = 0, read = 0;
	bool has_filled = false;
	ssize_t more;
	struct taken taken;
	DAT_EVENT event;

	(void)state;
	be_calling_with(0, 4, 4);
	/* until TCP takes no more for a while: a Send that it has taken completes */
	while (sends < 512 && !has_filled) {
		post_send_at(sends++, 100000, 0);
		while (sends - completed > 4 && !has_filled) {
			DAT_COUNT left;
			DAT_RETURN ret = core_evd_wait(stage.evd, QUIET_US, 1, &event, &left);

			has_filled = DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED;
			completed += ret == DAT_SUCCESS;
		}
	}
	assert_true(has_filled);
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	do {
		event = next_of(stage.evd);
		if (event.event_number == DAT_DTO_COMPLETION_EVENT &&
		    event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS)
			completed++;
	} while (event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED);
	get_fpdu(&taken); /* the RTR */
	while ((more = recv(flow.fd, taken.bytes, 1, MSG_PEEK)) == 1) {
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.msn, read + 1);
		if (taken.ddp.is_last)
			read++;
	}
	assert_int_equal(more, 0); /* no reset */
	assert_true(read >= completed);
	end_flow();
}

/* --- FIN --- */

#define PART 10u /* bytes of each of three segments */

/* IWCM-30 IWCM-31 IWCM-33: at every byte of a Send and a message of three segments */
static void fin__at_every_byte__disconnect_between_fpdus_only(void **state)
{
	uint8_t bytes[256];
	struct fpdu fpdu;
	size_t ends[4];
	size_t size = 0;

	(void)state;
	flow.has_crc = false;
	for (uint32_t i = 0; i < 4; i++) {
		const struct iw_ddp ddp = {.opcode = IW_OP_SEND,
					   .msn = i ? 2 : 1,
					   .mo = i ? (i - 1) * PART : 0,
					   .is_last = !i || i == 3};

		make_fpdu(&fpdu, &ddp, "0123456789", PART);
		memcpy(bytes + size, fpdu.bytes, fpdu.size);
		size += fpdu.size;
		ends[i] = size;
	}
	for (size_t cut = 0; cut <= size; cut++) {
		bool is_between = !cut;

		for (size_t i = 0; i < 4; i++)
			is_between |= cut == ends[i];
		be_called(0);
		post_recv_at(0, PART);
		post_recv_at(1000, 3 * PART);
		put(flow.fd, bytes, cut);
		assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
		if (cut < ends[0])
			expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
		else
			expect_dto(0, DAT_DTO_SUCCESS, PART);
		if (cut == size)
			expect_dto(1000, DAT_DTO_SUCCESS, 3 * PART);
		else
			expect_dto(1000,
				   is_between || cut < ends[1] ? DAT_DTO_ERR_FLUSHED
							       : DAT_DTO_ERR_TRANSPORT,
				   0);
		expect(is_between ? DAT_CONNECTION_EVENT_DISCONNECTED
				  : DAT_CONNECTION_EVENT_BROKEN);
		expect_end(flow.fd);
		end_flow();
	}
}

/* --- our disconnect --- */

/* IWCM-27: graceful: all that was posted, then FIN, and no Terminate */
static void disconnect__graceful__queue_is_finished_first(void **state)
{
	struct iw_read_request request;
	struct taken taken;

	(void)state;
	be_calling_with(0, 1, 4);
	get_fpdu(&taken);
	post_write_at(0, 10, 7, 0, 0);
	post_read_at(1000, 4, 7, 8192, 0);
	post_send_at(2000, 5, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	ok(core_ep_disconnect(flow.ep, DAT_CLOSE_GRACEFUL_FLAG));
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
	request = get_read_request(); /* the proof, or the Read */
	peer_respond(request.sink_stag, 0, "abcd", request.size, true);
	expect_dto(0, DAT_DTO_SUCCESS, 10);
	if (!request.size) {
		request = get_read_request();
		peer_respond(request.sink_stag, 0, "abcd", request.size, true);
	}
	expect_dto(1000, DAT_DTO_SUCCESS, 4);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_SEND);
	expect_dto(2000, DAT_DTO_SUCCESS, 5);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_end(flow.fd);
	end_flow();
}

/* IWCM-33 EP-DISC-16: a foreign peer ends behind messages that wait for a Receive, and further ones
 * in the socket; they are delivered to later Receives, then the end is reported */
static void fin__messages_wait__delivered_before_the_end(void **state)
{
	static const unsigned counts[] = {1, 18}; /* the last one does not fit into the space */
	static uint8_t bytes[60000];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		be_called(0);
		for (unsigned n = 0; n < counts[i]; n++)
			peer_send(bytes, sizeof(bytes));
		assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
		expect_served();
		expect_quiet(stage.evd);
		for (unsigned n = 0; n < counts[i]; n++) {
			post_recv_at(n, sizeof(bytes));
			expect_dto(n, DAT_DTO_SUCCESS, sizeof(bytes));
		}
		expect(DAT_CONNECTION_EVENT_DISCONNECTED);
		end_flow();
	}
}

/* IWCM-33: no Receive comes: the wait has an end, and the messages are dropped */
static void fin__messages_wait_in_vain__ends_after_the_limit(void **state)
{
	(void)state;
	be_called(0);
	peer_send("text", 4);
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	expect_served();
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	end_flow();
}

/* IWCM-33 IWCM-32: a send fails before all that has come was read: it is carried out all the same
 */
static void reset__behind_messages__delivered_before_the_end(void **state)
{
	static uint8_t bytes[1000];

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		be_called(0);
		speak();
		for (unsigned n = 0; n < 4; n++)
			post_recv_at(n, sizeof(bytes));
		post_read_at(1000, 4, 7, 0, 0);
		(void)get_read_request();
		for (unsigned n = 0; n < 4; n++)
			peer_send(bytes, sizeof(bytes));
		reset_peer();
		post_send_at(2000, 10, 0); /* before or after the service thread reads */
		for (unsigned n = 0; n < 4; n++)
			expect_dto(n, DAT_DTO_SUCCESS, sizeof(bytes));
		expect_dto(1000, DAT_DTO_ERR_TRANSPORT, 0);
		expect_broken_and_flushed(2000);
		end_flow();
	}
}

/*
 * IWCM-32 DTO-60: messages wait for a Receive, so no poll reads the socket. The reset is found all
 * the same, while a thread goes on polling and does not sleep.
 */
static void rst__socket_is_not_read_and_polled__broken(void **state)
{
	static uint8_t bytes[60000];
	uint64_t give_up = now_ms() + WAIT_MS;
	DAT_EVENT event = {0};

	(void)state;
	be_called(0);
	for (unsigned i = 0; i < 20; i++) {
		peer_write(0, 0, NULL, 0);
		for (unsigned n = 0; n < 1000; n++)
			expect_quiet(stage.evd);
	}
	for (unsigned i = 0; i < 3; i++)
		peer_send(bytes, sizeof(bytes));
	for (unsigned n = 0; n < 1000; n++)
		expect_quiet(stage.evd);
	reset_peer();
	while (core_evd_dequeue(stage.evd, &event) != DAT_SUCCESS)
		assert_true(now_ms() < give_up);
	assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
}

/* IWCM-27: the Response that the disconnect waits for is behind messages that wait for a Receive */
static void disconnect__graceful__ends_behind_messages_that_wait(void **state)
{
	static uint8_t bytes[60000];
	struct iw_read_request request;

	(void)state;
	be_called_with(0, 4, 4);
	peer_write(0, 0, "", 0);
	post_read_at(0, 4, 7, 4096, 0);
	request = get_read_request();
	ok(core_ep_disconnect(flow.ep, DAT_CLOSE_GRACEFUL_FLAG));
	for (unsigned i = 0; i < 18; i++) /* more than the spill space of 1 MiB */
		peer_send(bytes, sizeof(bytes));
	peer_respond(request.sink_stag, 0, bytes, 4, true);
	expect_served();
	expect_quiet(stage.evd);
	/* the space has room for the last message, and the socket is read */
	post_recv_at(1000, sizeof(bytes));
	expect_dto(1000, DAT_DTO_SUCCESS, sizeof(bytes));
	expect_dto(0, DAT_DTO_SUCCESS, 4);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_end(flow.fd);
	end_flow();
}

/* IWCM-28 MPA-59: abrupt, in the middle of large FPDUs that the peer reads later */
static void disconnect__abrupt__fpdu_under_way_is_finished(void **state)
{
	struct taken taken;
	unsigned sends;
	ssize_t more;

	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		unsigned completed = 0, read = 0, ended = 0;

		be_calling_with(has_crc ? FLAG_C : 0, 4, 4);
		for (sends = 0; sends < 16; sends++)
			post_send_at(0, REGION, 0);
		ok(core_ep_disconnect(flow.ep, DAT_CLOSE_ABRUPT_FLAG));
		fill_memory();
		while (ended < sends) {
			DAT_EVENT event = next_of(stage.evd);

			assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
			completed += event.event_data.dto_completion_event_data.status ==
				     DAT_DTO_SUCCESS;
			ended++;
		}
		expect(DAT_CONNECTION_EVENT_DISCONNECTED);
		get_fpdu(&taken); /* the RTR */
		while ((more = recv(flow.fd, taken.bytes, 1, MSG_PEEK)) == 1) {
			get_fpdu(&taken);
			assert_int_equal(taken.ddp.opcode, IW_OP_SEND);
			expect_untouched(taken.payload, taken.size);
			read += taken.ddp.is_last;
		}
		assert_int_equal(more, 0);
		assert_true(read >= completed);
		end_flow();
	}
}

/* IWCM-29: what comes behind our FIN is thrown away, and nothing is reset */
static void disconnect__peer_goes_on_sending__no_reset(void **state)
{
	static const uint8_t bytes[60000];
	struct pollfd ready;

	(void)state;
	be_called(0);
	ok(core_ep_disconnect(flow.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_end(flow.fd);
	for (unsigned i = 0; i < 170; i++) /* 10 MiB */
		peer_write(flow.rkey, address_of(flow.region), bytes, sizeof(bytes));
	ready = (struct pollfd){.fd = flow.fd, .events = POLLOUT};
	assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
	assert_int_equal(ready.revents & (POLLERR | POLLHUP), 0);
	expect_untouched(flow.region, REGION);
	end_flow();
}

/* --- a Terminate that TCP does not take --- */

#define SHORT_MS 500u /* peer_timeout_ms of the adapter "short" */

static int open_short(void **state)
{
	(void)state;
	return open_flow_with("short", "127.0.0.1 transport=tcp peer_timeout_ms=500");
}

/* The peer reads nothing, until TCP takes no more; the number of Sends that have not completed. */
static unsigned fill_window(void)
{
	unsigned outstanding = 0;
	DAT_RETURN ret = DAT_SUCCESS;

	while (DAT_GET_TYPE(ret) != DAT_TIMEOUT_EXPIRED) {
		DAT_EVENT event;
		DAT_COUNT left;

		post_send_at(0, 200000, 0);
		outstanding++;
		ret = core_evd_wait(stage.evd, QUIET_US, 1, &event, &left);
		outstanding -= ret == DAT_SUCCESS;
	}
	return outstanding;
}

/* TERM-07: BROKEN at once, and a reset in place of the Terminate when the time is over */
static void terminate__window_closed__reset_after_the_limit(void **state)
{
	struct taken taken;
	unsigned outstanding;
	uint64_t begin;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	outstanding = fill_window();
	assert_true(outstanding > 0);
	begin = now_ms();
	peer_write(0x1234, 0, "x", 1); /* no such STag */
	while (outstanding--)
		expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	assert_true(now_ms() - begin < SHORT_MS);
	expect_reset(flow.fd);
	assert_true(now_ms() - begin >= SHORT_MS);
	end_flow();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_sleepy, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fin__within_a_response__that_read_alone_fails),
		TEST(rst__found_by_a_post__broken),
		TEST(rst__socket_is_not_read__broken),
		TEST(fin__bytes_that_tcp_has_not_taken__sent_all_the_same),
		TEST(fin__at_every_byte__disconnect_between_fpdus_only),
		TEST(disconnect__graceful__queue_is_finished_first),
		TEST(disconnect__graceful__ends_behind_messages_that_wait),
		TEST(fin__messages_wait__delivered_before_the_end),
		cmocka_unit_test_setup_teardown(fin__messages_wait_in_vain__ends_after_the_limit,
						open_short, close_stage),
		TEST(reset__behind_messages__delivered_before_the_end),
		TEST(rst__socket_is_not_read_and_polled__broken),
		TEST(disconnect__abrupt__fpdu_under_way_is_finished),
		TEST(disconnect__peer_goes_on_sending__no_reset),
		cmocka_unit_test_setup_teardown(terminate__window_closed__reset_after_the_limit,
						open_short, close_stage),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
