// SPDX-License-Identifier: BSD-2-Clause
/* Small messages that are posted in quick succession wait for each other (transfer/hold.h). */
#include "hold_stage.h"

/* --- what ends the wait --- */

static void hold__stream__sixteen_in_one_call(void **state)
{
	(void)state;
	begin_stream();
	post_quietly(IW_HOLD_POSTS - 1, WORD);
	expect_calls(0);
	post_quietly(1, WORD);
	expect_calls(1);
	take_sends(IW_HOLD_AFTER + IW_HOLD_POSTS, WORD);
	/* and so on */
	post_quietly(IW_HOLD_POSTS - 1, WORD);
	expect_calls(1);
	post_quietly(1, WORD);
	expect_calls(2);
	take_sends(IW_HOLD_POSTS, WORD);
	end_calling();
}

static void hold__enough_bytes__sent(void **state)
{
	const size_t size = 3000;

	(void)state;
	begin_stream();
	post_quietly(2, size);
	expect_calls(0);
	post_quietly(1, size);
	take_sends(IW_HOLD_AFTER, WORD);
	take_sends(3, size);
	end_stream();
}

static void hold__large_message__sent_with_those_before(void **state)
{
	(void)state;
	begin_stream();
	post_quietly(2, WORD);
	expect_calls(0);
	post_quietly(1, 3 * IW_DIRECT_MIN);
	expect_calls(1);
	take_sends(IW_HOLD_AFTER + 2, WORD);
	take_message(3 * IW_DIRECT_MIN);
	end_stream();
}

static void hold__time_passes_between_posts__sent(void **state)
{
	(void)state;
	begin_stream();
	for (unsigned i = 0; i < 3; i++) {
		post_quietly(1, WORD);
		pass_time(IW_HOLD_GAP_NS);
	}
	expect_calls(0);
	post_quietly(1, WORD);
	take_sends(IW_HOLD_AFTER + 4, WORD);
	end_stream();
}

/* The Send's completion waits, too. */
static void hold__poll_of_an_empty_evd__sent(void **state)
{
	DAT_EVENT event;

	(void)state;
	begin_stream();
	post_quietly(1, WORD);
	post_send_at(8, WORD, DAT_COMPLETION_DEFAULT_FLAG);
	expect_calls(0);
	ok(core_evd_dequeue(stage.evd, &event));
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 8);
	take_sends(IW_HOLD_AFTER + 2, WORD);
	expect_quiet(stage.evd);
	assert_int_equal(atomic_load(&engine_of_flow()->held_count), 0);
	end_stream();
}

static void hold__thread_is_about_to_sleep__sent(void **state)
{
	(void)state;
	begin_stream();
	post_quietly(2, WORD);
	expect_calls(0);
	iw_engine_arm(engine_of_flow());
	take_sends(IW_HOLD_AFTER + 2, WORD);
	end_stream();
}

static void let_deadline_pass(void)
{
	begin_stream();
	post_quietly(2, WORD);
	expect_calls(0);
	pass_time(IW_HOLD_NS);
	take_sends(IW_HOLD_AFTER + 2, WORD);
	expect_calls(1);
}

static void expect_pause(uint64_t ns)
{
	/* the service thread has sent what waited, and this thread sends all but the last post */
	pass_time(ns - 1 - (IW_HOLD_AFTER + 2) * (IW_HOLD_GAP_NS + 1));
	begin_stream();
	post_quietly(2, WORD);
	expect_calls(2);
	take_sends(IW_HOLD_AFTER + 2, WORD);
	pass_time(IW_HOLD_GAP_NS + 1);
}

/* COMPAT-46: the thread polls its memory for an answer, and calls nothing. */
static void hold__deadlines__sent_and_a_pause(void **state)
{
	uint64_t pause_ns = IW_HOLD_PAUSE_LEAST_NS;

	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		let_deadline_pass();
		expect_pause(pause_ns);
		pause_ns =
			2 * pause_ns < IW_HOLD_PAUSE_MOST_NS ? 2 * pause_ns : IW_HOLD_PAUSE_MOST_NS;
	}
	end_calling();
}

/* The thread that posted is stored now and then, and has lost its processor. */
static void hold__deadline_without_a_processor__no_pause(void **state)
{
	struct iw_hold *hold = &conn_of_flow()->stream.tx.hold;

	(void)state;
	let_deadline_pass();
	pass_time(IW_HOLD_PAUSE_LEAST_NS);
	assert_int_equal(atomic_load(&hold->poster.id), 0);
	begin_stream();
	post_quietly(IW_HOLD_POSTS + 2, WORD);
	expect_calls(1);
	assert_int_equal(atomic_load(&hold->poster.id), syscall(SYS_gettid));
	is_preempted = true;
	pass_time(IW_HOLD_NS);
	take_sends(IW_HOLD_AFTER + IW_HOLD_POSTS + 2, WORD);
	assert_int_equal(preempted_limit_ns, IW_HOLD_NS);
	/* and the next pause is a short one */
	is_preempted = false;
	pass_time(IW_HOLD_GAP_NS + 1);
	let_deadline_pass();
	expect_pause(IW_HOLD_PAUSE_LEAST_NS);
	let_deadline_pass();
	end_stream();
}

/* EP-DISC-13 EP-DISC-16 */
static void hold__graceful_disconnect__sent_and_completed(void **state)
{
	(void)state;
	begin_stream();
	post_quietly(1, WORD);
	post_send_at(8, WORD, DAT_COMPLETION_DEFAULT_FLAG);
	expect_calls(0);
	ok(core_ep_disconnect(flow.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_dto(8, DAT_DTO_SUCCESS, WORD);
	expect_calls(1);
	take_sends(IW_HOLD_AFTER + 2, WORD);
	thaw();
	expect_end(flow.fd);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	end_flow();
}

static void wait_until_unused(const struct iw_conn *conn)
{
	uint64_t end = core_now_ns() + WAIT_US * UINT64_C(1000);

	while (atomic_load(&conn->refs) > 1 && core_now_ns() < end)
		sched_yield();
	assert_int_equal(atomic_load(&conn->refs), 1);
}

/* EP-DISC-10: nothing refers to the connection any more; the bytes are sent all the same. */
static void hold__abrupt_disconnect__sent(void **state)
{
	struct iw_conn *conn = conn_of_flow();

	(void)state;
	begin_stream();
	post_quietly(2, WORD);
	expect_calls(0);
	iw_conn_get(conn);
	ok(core_ep_disconnect(flow.ep, DAT_CLOSE_ABRUPT_FLAG));
	assert_int_equal(atomic_load(&conn->engine->held_count), 0);
	take_sends(IW_HOLD_AFTER + 2, WORD);
	thaw();
	expect_end(flow.fd);
	for (unsigned i = 0; i < 2; i++)
		expect_dto(0, DAT_DTO_ERR_FLUSHED, WORD);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	end_flow();
	wait_until_unused(conn);
	iw_conn_put(conn);
}

/* The peer disconnects: the messages that were posted before have not failed. */
static void hold__peer_disconnects__completed(void **state)
{
	(void)state;
	begin_stream();
	post_send_at(8, WORD, DAT_COMPLETION_DEFAULT_FLAG);
	expect_calls(0);
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	take_sends(IW_HOLD_AFTER + 1, WORD); /* without a call of this thread */
	thaw();
	expect_dto(8, DAT_DTO_SUCCESS, WORD);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	end_flow();
}

/* --- what does not wait --- */

static void hold__slow_posts__each_sent(void **state)
{
	(void)state;
	begin_stream();
	for (unsigned i = 0; i < 3 * IW_HOLD_AFTER; i++) {
		pass_time(IW_HOLD_GAP_NS + 1);
		post_quietly(1, WORD);
		expect_calls(i + 1);
	}
	take_sends(4 * IW_HOLD_AFTER, WORD);
	/* it takes as many posts as before */
	pass_time(IW_HOLD_GAP_NS + 1);
	begin_stream();
	post_quietly(1, WORD);
	expect_calls(0);
	expect_quiet(stage.evd);
	take_sends(IW_HOLD_AFTER + 1, WORD);
	end_stream();
}

/* A message that uses up what one pass may move leaves nothing for the service thread. */
static void hold__large_message__service_thread_sleeps_on(void **state)
{
	DAT_LMR_TRIPLET list[4];

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(list); i++)
		list[i] = segment_at(0, REGION);
	is_swallowing = true;
	/* the first one sets the next time to look at the peer */
	for (unsigned i = 0; i < 3; i++) {
		kicks = 0;
		ok(core_ep_post_send(flow.ep, COUNT_OF(list), list, (DAT_DTO_COOKIE){.as_64 = 1},
				     DAT_COMPLETION_DEFAULT_FLAG));
		expect_dto(1, DAT_DTO_SUCCESS, COUNT_OF(list) * REGION);
	}
	assert_int_equal(kicks, 0);
	is_swallowing = false;
	end_calling();
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
	end_calling();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_calling, close_stage)
	const struct CMUnitTest tests[] = {
		TEST(hold__stream__sixteen_in_one_call),
		TEST(hold__enough_bytes__sent),
		TEST(hold__large_message__sent_with_those_before),
		TEST(hold__time_passes_between_posts__sent),
		TEST(hold__poll_of_an_empty_evd__sent),
		TEST(hold__thread_is_about_to_sleep__sent),
		TEST(hold__deadlines__sent_and_a_pause),
		TEST(hold__deadline_without_a_processor__no_pause),
		TEST(hold__graceful_disconnect__sent_and_completed),
		TEST(hold__abrupt_disconnect__sent),
		TEST(hold__peer_disconnects__completed),
		TEST(hold__slow_posts__each_sent),
		TEST(hold__large_message__service_thread_sleeps_on),
		TEST(hold__completions_trigger_a_cno__each_sent),
	};

	return cmocka_run_group_tests_name("iwarp hold", tests, provide, NULL);
}
