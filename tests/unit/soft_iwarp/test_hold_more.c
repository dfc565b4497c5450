// SPDX-License-Identifier: BSD-2-Clause
/* Messages that wait for each other (transfer/hold.h) beside others: large ones, failures, other
 * connections. */
#include "hold_stage.h"

#include "soft/iwarp/transfer/pass.h"

/* --- what is not small --- */

static void expect_nothing_held(void)
{
	assert_int_equal(conn_of_flow()->stream.tx.hold.count, 0);
	assert_int_equal(atomic_load(&engine_of_flow()->held_count), 0);
}

static void check_sent_at_once(size_t size)
{
	atomic_store(&forced_mss, 1500);
	begin_stream();
	post_quietly(1, size);
	expect_nothing_held();
	take_sends(IW_HOLD_AFTER, WORD);
	take_message(size);
	end_calling();
}

/* Its last segments do not wait, though they are small. */
static void hold__message_larger_than_the_buffer__sent_at_once(void **state)
{
	(void)state;
	check_sent_at_once(IW_TX_SIZE + 1000);
}

static void hold__message_in_small_segments__sent_at_once(void **state)
{
	(void)state;
	check_sent_at_once(40000);
}

/* A bind is a request without bytes on the wire. */
static void hold__binds__nothing_waits(void **state)
{
	DAT_LMR_TRIPLET triplet = segment_at(0, 64);
	DAT_RMR_COOKIE cookie = {.as_64 = 1};
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;

	(void)state;
	ok(core_rmr_create(stage.pz, &rmr));
	for (unsigned i = 0; i < 2 * IW_HOLD_AFTER; i++) {
		ok(core_rmr_bind(rmr, &triplet, DAT_MEM_PRIV_REMOTE_READ_FLAG, flow.ep, cookie,
				 DAT_COMPLETION_SUPPRESS_FLAG, &context));
		expect_nothing_held();
	}
	ok(core_rmr_free(rmr));
	end_calling();
}

/* Another request would be refused. */
static void hold__queue_is_full__sent(void **state)
{
	DAT_EP_HANDLE whole = stage.a;
	DAT_EP_PARAM param;
	struct taken rtr;

	(void)state;
	end_calling();
	ok(core_ep_query(whole, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.max_request_dtos = 4;
	ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, &param.ep_attr,
			  &stage.a));
	be_calling_with(0, 0, 0);
	get_fpdu(&rtr);
	freeze();
	begin_stream();
	post_quietly(3, WORD);
	expect_calls(0);
	post_quietly(1, WORD);
	take_sends(IW_HOLD_AFTER + 4, WORD);
	end_stream();
	ok(core_ep_free(stage.a));
	stage.a = whole;
}

/* --- failures --- */

static int open_reading(void **state)
{
	return open_calling_with(state, 4);
}

/*
 * DTO-30: two Sends wait for the RDMA Read before them, and the memory of the second is gone then.
 * The first one has not failed.
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
	iw_engine_arm(engine_of_flow());
	post_send_at(8, WORD, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	ok(core_ep_post_send(flow.ep, 1, &segment, (DAT_DTO_COOKIE){.as_64 = 16},
			     DAT_COMPLETION_BARRIER_FENCE_FLAG));
	ok(core_lmr_free(lmr));
	take_sends(IW_HOLD_AFTER, WORD);
	request = get_read_request();
	peer_respond(request.sink_stag, request.sink_offset, "abcd", WORD, true);
	take_sends(1, WORD);
	thaw();
	expect_dto(1000, DAT_DTO_SUCCESS, WORD);
	expect_dto(8, DAT_DTO_SUCCESS, WORD);
	expect_dto(16, DAT_DTO_ERR_LOCAL_PROTECTION, WORD);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
}

/* --- two connections --- */

static struct side {
	int fd;
	DAT_EP_HANDLE ep;
} first, second;

static void use(const struct side *side)
{
	flow.fd = side->fd;
	flow.ep = side->ep;
}

/* Two messages wait on each of them. */
static void hold_on_both(void)
{
	thaw();
	first = (struct side){flow.fd, flow.ep};
	be_called(0);
	speak();
	second = (struct side){flow.fd, flow.ep};
	sleep_once();
	freeze();
	begin_stream();
	post_quietly(2, WORD);
	expect_calls(0);
	use(&first);
	begin_stream();
	post_quietly(2, WORD);
	expect_calls(0);
	assert_int_equal(atomic_load(&engine_of_flow()->held_count), 2);
}

static void take_held(const struct side *side)
{
	use(side);
	take_sends(IW_HOLD_AFTER + 2, WORD);
}

static void hold__two_connections__one_poll_sends_both(void **state)
{
	(void)state;
	hold_on_both();
	expect_quiet(stage.evd);
	expect_calls(2);
	take_held(&first);
	take_held(&second);
	end_calling();
	use(&first);
	hang_up();
}

/* The one that was added first is at the end of the list. */
static void hold__one_of_two_disconnected__other_sent(void **state)
{
	(void)state;
	hold_on_both();
	ok(core_ep_disconnect(second.ep, DAT_CLOSE_ABRUPT_FLAG));
	assert_int_equal(atomic_load(&engine_of_flow()->held_count), 1);
	for (unsigned i = 0; i < 2; i++)
		expect_dto(0, DAT_DTO_ERR_FLUSHED, WORD);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_quiet(stage.evd);
	take_held(&first);
	end_calling();
	use(&second);
	end_flow();
}

/*
 * A poll. Has it made an idle pass over the connection? The service thread can end the polling of
 * a connection at any time, and the poll finds none then.
 */
static bool poll_idly(struct iw_conn *conn)
{
	struct core_ep *ep = iw_conn_enter(conn);
	uint32_t before;
	bool is_idle;

	assert_non_null(ep);
	iw_engine_add_polled(conn->engine, conn);
	before = conn->idle_polls;
	core_ep_leave(ep);
	expect_quiet(stage.evd);
	assert_ptr_equal(iw_conn_enter(conn), ep);
	is_idle = conn->idle_polls != before;
	core_ep_leave(ep);
	return is_idle;
}

static void end_stream_by_polls(struct iw_conn *conn)
{
	unsigned tries = 0;

	begin_stream();
	while (!poll_idly(conn))
		assert_true(++tries < 10000 && !poll(NULL, 0, 1));
	begin_stream();
	take_sends(2 * IW_HOLD_AFTER, WORD);
	end_calling();
}

/* COMPAT-46: as in a ping-pong: the next post waits for an answer that a poll brings. */
static void hold__idle_poll_of_the_connection__ends_the_stream(void **state)
{
	(void)state;
	end_stream_by_polls(conn_of_flow());
}

/* COMPAT-46: the same by a full pass */
static void hold__idle_poll_off_the_fast_path__ends_the_stream(void **state)
{
	struct iw_conn *conn = conn_of_flow();
	struct core_ep *ep = iw_conn_enter(conn);

	(void)state;
	assert_non_null(ep);
	core_handle_put_slow(ep->cell, CORE_EP_SLOW_WATERMARK, CORE_EP_SLOW_WATERMARK);
	core_ep_leave(ep);
	end_stream_by_polls(conn);
}

/* A poll still has something to do when no connection is polled any more. */
static void hold__no_connection_is_polled_any_more__poll_sends(void **state)
{
	struct iw_conn *conn;
	struct core_ep *ep;
	bool is_fast;

	(void)state;
	hold_on_both();
	conn = conn_of_flow();
	ep = iw_conn_enter(conn);
	assert_non_null(ep);
	iw_engine_add_polled(conn->engine, conn);
	iw_engine_remove_polled(conn->engine, conn);
	iw_pass_watch(conn);
	/* the service thread cannot send what it holds while the endpoint is locked */
	is_fast = core_ia_can_poll_fast(conn->engine->ia);
	core_ep_leave(ep);
	assert_false(is_fast);
	for (unsigned tries = 0; !core_ia_can_poll_fast(conn->engine->ia); tries++) {
		assert_true(tries < 10000 && !poll(NULL, 0, tries ? 1 : 0));
		expect_quiet(stage.evd);
	}
	take_held(&second);
	take_held(&first);
	end_calling();
	use(&second);
	hang_up();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_calling, close_stage)
	const struct CMUnitTest tests[] = {
		TEST(hold__message_larger_than_the_buffer__sent_at_once),
		TEST(hold__message_in_small_segments__sent_at_once),
		TEST(hold__binds__nothing_waits),
		TEST(hold__queue_is_full__sent),
		cmocka_unit_test_setup_teardown(hold__request_fails__those_before_are_sent,
						open_reading, close_stage),
		TEST(hold__two_connections__one_poll_sends_both),
		TEST(hold__one_of_two_disconnected__other_sent),
		TEST(hold__idle_poll_of_the_connection__ends_the_stream),
		TEST(hold__idle_poll_off_the_fast_path__ends_the_stream),
		TEST(hold__no_connection_is_polled_any_more__poll_sends),
	};

	return cmocka_run_group_tests_name("iwarp hold-more", tests, provide, NULL);
}
