// SPDX-License-Identifier: BSD-2-Clause
/*
 * Small messages that are posted in quick succession wait for each other (transfer/tx.h): what ends
 * the wait, and what does not wait. The clock stands still until the test moves it.
 */
#include "flow_stage.h"
#include "frozen_clock.h"

#include <stdatomic.h>

#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/tx.h"

#define WORD 4u
#define REQUESTS 64

static _Atomic unsigned calls; /* of sendmsg */

ssize_t __real_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags)
{
	atomic_fetch_add(&calls, 1);
	return __real_iw_socket_sendmsg(fd, message, flags);
}

static void expect_calls(unsigned count)
{
	assert_int_equal(atomic_load(&calls), count);
}

/* --- the stage --- */

static unsigned posted; /* Sends of the flow */

/* The service thread measures time when a connection ends. */
static void thaw(void)
{
	atomic_store(&frozen_ns, 0);
}

/* The passive endpoint is one with room for so many requests from now on; returns the other. */
static DAT_EP_HANDLE change_endpoint(DAT_COUNT requests)
{
	DAT_EP_HANDLE before = stage.b;
	DAT_EP_PARAM param;

	ok(core_ep_query(before, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.max_request_dtos = requests;
	ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, &param.ep_attr,
			  &stage.b));
	return before;
}

static void sleep_once(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	assert_int_equal(DAT_GET_TYPE(core_evd_wait(stage.evd, 1000, 1, &event, &more)),
			 DAT_TIMEOUT_EXPIRED);
}

/* A peer of ours has connected, and the clock stands still. */
static void begin_calls(void)
{
	thaw();
	be_called_by_own(0);
	peer_write(1, 0, NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	posted = 0;
	/* so that no thread of the library watches for polls, with a clock that stands still */
	sleep_once();
	atomic_store(&frozen_ns, core_now_ns());
}

static int open_called(void **state)
{
	(void)open_sleepy(state);
	ok(core_ep_free(change_endpoint(REQUESTS)));
	begin_calls();
	return 0;
}

static void post_quietly(unsigned count, size_t size)
{
	posted += count;
	for (unsigned i = 0; i < count; i++)
		post_send_at(0, size, DAT_COMPLETION_SUPPRESS_FLAG);
}

/* So many posts that the next ones wait; these are sent at once. */
static void begin_stream(void)
{
	atomic_store(&calls, 0);
	post_quietly(IW_HOLD_AFTER, WORD);
	expect_calls(IW_HOLD_AFTER);
	atomic_store(&calls, 0);
}

/* Two more, which wait. */
static void hold_two(void)
{
	begin_stream();
	post_quietly(2, WORD);
	expect_calls(0);
}

static void take_sends(unsigned count, size_t size)
{
	struct taken taken;

	for (unsigned i = 0; i < count; i++) {
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.opcode, IW_OP_SEND);
		assert_int_equal(taken.size, size);
	}
}

static void take_message(size_t size)
{
	struct taken taken;

	for (size_t at = 0; at < size; at += taken.size)
		get_fpdu(&taken);
}

/* All Sends have been taken off the wire. */
static void end_called(void)
{
	thaw();
	if (posted > flow.sends)
		peer_counts(posted - flow.sends, 0);
	hang_up();
}

/* --- what ends the wait --- */

static void hold__stream__sixteen_in_one_call(void **state)
{
	(void)state;
	begin_stream();
	take_sends(IW_HOLD_AFTER, WORD);
	for (unsigned i = 1; i <= 2; i++) {
		post_quietly(IW_HOLD_POSTS - 1, WORD);
		expect_calls(i - 1);
		post_quietly(1, WORD);
		expect_calls(i);
		take_sends(IW_HOLD_POSTS, WORD);
	}
	end_called();
}

static void hold__enough_bytes__sent(void **state)
{
	const size_t size = IW_DIRECT_MIN - 1;
	const unsigned count = IW_HOLD_BYTES / IW_DIRECT_MIN;

	(void)state;
	begin_stream();
	post_quietly(count - 1, size);
	expect_calls(0);
	post_quietly(1, size);
	take_sends(IW_HOLD_AFTER, WORD);
	take_sends(count, size);
	expect_calls(1);
	end_called();
}

/* A message that is not copied, and one of two segments, of which the last is small. */
static void hold__large_message__sent_with_those_before(void **state)
{
	static const size_t sizes[] = {3 * IW_DIRECT_MIN, IW_ULPDU_MAX};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		hold_two();
		post_quietly(1, sizes[i]);
		take_sends(IW_HOLD_AFTER + 2, WORD);
		take_message(sizes[i]);
		end_called();
		begin_calls();
	}
	end_called();
}

static void poll_once(void)
{
	expect_quiet(stage.evd);
}

/* COMPAT-46: the thread polls its memory for an answer, and calls nothing. */
static void pass_time(void)
{
	atomic_fetch_add(&frozen_ns, IW_HOLD_NS);
}

static void count_one(void)
{
	take_sends(IW_HOLD_AFTER, WORD);
	peer_counts(1, 0);
}

static void disconnect(void)
{
	ok(core_ep_disconnect(flow.ep, DAT_CLOSE_GRACEFUL_FLAG));
}

/* COMPAT-46 EP-DISC-13 EP-DISC-16: a poll of an empty EVD, the deadline, counts, a disconnect */
static void hold__something_happens__sent(void **state)
{
	static void (*const causes[])(void) = {poll_once, pass_time, count_one, disconnect};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(causes); i++) {
		const bool is_end = causes[i] == disconnect;

		hold_two();
		causes[i]();
		take_sends(causes[i] == count_one ? 2 : IW_HOLD_AFTER + 2, WORD);
		expect_calls(1);
		if (is_end) {
			thaw();
			peer_counts(posted, 0);
			expect_end(flow.fd);
			expect(DAT_CONNECTION_EVENT_DISCONNECTED);
			end_flow();
		} else {
			end_called();
			begin_calls();
		}
	}
}

/* EP-DISC-10 */
static void hold__abrupt_disconnect__sent(void **state)
{
	(void)state;
	hold_two();
	ok(core_ep_disconnect(flow.ep, DAT_CLOSE_ABRUPT_FLAG));
	take_sends(IW_HOLD_AFTER + 2, WORD);
	thaw();
	expect_end(flow.fd);
	for (unsigned i = 0; i < posted; i++)
		expect_dto(0, DAT_DTO_ERR_FLUSHED, WORD);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	end_flow();
}

/* Another request would be refused. */
static void hold__queue_is_full__sent(void **state)
{
	DAT_EP_HANDLE whole;

	(void)state;
	end_called();
	whole = change_endpoint(IW_HOLD_AFTER + 4);
	begin_calls();
	begin_stream();
	post_quietly(3, WORD);
	expect_calls(0);
	post_quietly(1, WORD);
	take_sends(IW_HOLD_AFTER + 4, WORD);
	end_called();
	ok(core_ep_free(stage.b));
	stage.b = whole;
}

/*
 * DTO-30: two Sends wait for the RDMA Read before them, and the memory of the second is gone then.
 * The first one is sent.
 */
static void hold__request_fails__those_before_are_sent(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = stage.memory};
	DAT_LMR_TRIPLET segment = {.virtual_address = address_of(stage.memory),
				   .segment_length = WORD};
	struct iw_read_request request;
	DAT_LMR_HANDLE lmr;

	(void)state;
	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(stage.memory), stage.pz,
			   DAT_MEM_PRIV_ALL_FLAG, &lmr, &segment.lmr_context, NULL, NULL, NULL));
	begin_stream();
	post_read_at(1000, WORD, 7, 0, DAT_COMPLETION_DEFAULT_FLAG);
	pass_time();
	take_sends(IW_HOLD_AFTER, WORD);
	request = get_read_request();
	post_send_at(8, WORD, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	ok(core_ep_post_send(flow.ep, 1, &segment, (DAT_DTO_COOKIE){.as_64 = 16},
			     DAT_COMPLETION_BARRIER_FENCE_FLAG));
	ok(core_lmr_free(lmr));
	peer_counts(IW_HOLD_AFTER, 0);
	peer_respond(request.sink_stag, request.sink_offset, "abcd", WORD, true);
	take_sends(1, WORD);
	thaw();
	expect_dto(1000, DAT_DTO_SUCCESS, WORD);
	expect_dto(8, DAT_DTO_ERR_FLUSHED, WORD);
	expect_dto(16, DAT_DTO_ERR_LOCAL_PROTECTION, WORD);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
}

/* One poll sends what two connections hold; or one of them has gone. */
static void hold__two_connections__one_poll_sends_both(void **state)
{
	(void)state;
	for (unsigned is_gone = 0; is_gone < 2; is_gone++) {
		struct flow first = flow;
		unsigned posted_first;
		DAT_EP_HANDLE before;

		hold_two();
		posted_first = posted;
		before = change_endpoint(REQUESTS);
		begin_calls();
		hold_two();
		if (is_gone) {
			ok(core_ep_disconnect(flow.ep, DAT_CLOSE_ABRUPT_FLAG));
			for (unsigned i = 0; i < IW_HOLD_AFTER + 2; i++)
				expect_dto(0, DAT_DTO_ERR_FLUSHED, WORD);
			expect(DAT_CONNECTION_EVENT_DISCONNECTED);
		}
		expect_quiet(stage.evd);
		take_sends(IW_HOLD_AFTER + 2, WORD);
		if (is_gone)
			end_flow();
		else
			end_called();
		ok(core_ep_free(stage.b));
		stage.b = before;
		flow = first;
		posted = posted_first;
		take_sends(IW_HOLD_AFTER + 2, WORD);
		end_called();
		if (!is_gone)
			begin_calls();
	}
}

/* --- what does not wait --- */

static void hold__few_outstanding__each_sent(void **state)
{
	(void)state;
	atomic_store(&calls, 0);
	for (unsigned i = 0; i < 3 * IW_HOLD_AFTER; i++) {
		posted++;
		post_send_at(8, WORD, DAT_COMPLETION_DEFAULT_FLAG);
		expect_calls(i + 1);
		take_sends(1, WORD);
		peer_counts(1, 0);
		expect_dto(8, DAT_DTO_SUCCESS, WORD);
	}
	end_called();
}

/* Their completions come when TCP has taken them, or with an answer that may need more of them. */
static void hold__foreign_peer__each_sent(void **state)
{
	(void)state;
	end_called();
	be_called(0);
	speak();
	atomic_store(&calls, 0);
	for (unsigned i = 0; i < 2 * IW_HOLD_AFTER; i++)
		post_write_at(0, WORD, 1, 0, DAT_COMPLETION_SUPPRESS_FLAG);
	assert_true(atomic_load(&calls) >= 2 * IW_HOLD_AFTER);
	hang_up();
}

/* The thread that posts may wait for the one that the completion wakes. */
static void hold__completions_trigger_a_cno__each_sent(void **state)
{
	DAT_CNO_HANDLE cno;

	(void)state;
	ok(core_cno_create(stage.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	ok(core_evd_modify_cno(stage.evd, cno));
	begin_stream();
	post_quietly(3, WORD);
	expect_calls(3);
	take_sends(IW_HOLD_AFTER + 3, WORD);
	ok(core_evd_modify_cno(stage.evd, DAT_HANDLE_NULL));
	ok(core_cno_free(cno));
	end_called();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_called, close_stage)
	const struct CMUnitTest tests[] = {
		TEST(hold__stream__sixteen_in_one_call),
		TEST(hold__enough_bytes__sent),
		TEST(hold__large_message__sent_with_those_before),
		TEST(hold__something_happens__sent),
		TEST(hold__abrupt_disconnect__sent),
		TEST(hold__queue_is_full__sent),
		TEST(hold__request_fails__those_before_are_sent),
		TEST(hold__two_connections__one_poll_sends_both),
		TEST(hold__few_outstanding__each_sent),
		TEST(hold__foreign_peer__each_sent),
		TEST(hold__completions_trigger_a_cno__each_sent),
	};

	return cmocka_run_group_tests_name("iwarp hold", tests, provide, NULL);
}
