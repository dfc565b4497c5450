// SPDX-License-Identifier: BSD-2-Clause
/*
 * The reasons against the fast path (vrb_update_slow_reasons): each is set and cleared where it
 * arises. The provider's own thread is held, so that only the test's calls do anything.
 */
#include "fast_lab.h"

/* A suppressed request sets the reason. It is cleared when all of them are done, and by a new
 * connection. */
static void slow_reasons__suppressed__until_it_is_done(void **state)
{
	unsigned posts;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		assert_int_equal(write_flags(DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
		assert_int_equal(slow(rig.a.ep), CORE_EP_SLOW_QUEUE);
		posts = fake_posts();
		expect(&rig.a, 1, 8); /* and a marker completes the other one */
		assert_int_equal(fake_posts(), posts + 1);
		expect_none(rig.a.dto);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(vrb_sq_done(conn_of(&rig.a), inner(&rig.a)),
				 vrb_sq_posted(conn_of(&rig.a)));
	}
	/* alone it is signalled; the fast path takes the completion, which causes no event */
	assert_int_equal(write_flags(DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
	assert_true(is_fast(rig.a.ep));
	expect_none(rig.a.dto);
	assert_int_equal(inner(&rig.a)->req.head, inner(&rig.a)->req.tail);
	let_go();
	rig_part(&rig);
	assert_true(slow(rig.a.ep) & CORE_EP_SLOW_CONN);
	rig_reset(&rig);
	join();
	fake_hold(true);
	own_all();
	assert_true(is_fast(rig.a.ep));
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 1, 8);
}

/* A Receive of two segments is posted on the slow path, and completes on the fast path. */
static void post_recv__behind_one_of_two_segments__both_in_order(void **state)
{
	(void)state;
	assert_int_equal(post_two(2), DAT_SUCCESS);
	assert_int_equal(device.recv.num_sge, 2);
	assert_true(is_fast(rig.a.ep));
	assert_int_equal(recv_len(&rig.a, 64, 5), DAT_SUCCESS);
	assert_int_equal(device.recv.num_sge, 1);
	assert_int_equal(conn_of(&rig.a)->recv_next, inner(&rig.a)->recv.tail);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(send_len(&rig.b, 20, i), DAT_SUCCESS);
	expect_at_once(&rig.a, ODD_COOKIE, 20);
	expect_at_once(&rig.b, 0, 20);
	expect_at_once(&rig.a, 5, 20);
	expect_at_once(&rig.b, 1, 20);
}

/* --- the reasons --- */

static void expect_reasons(uint16_t reasons)
{
	struct core_handle *handle = cell(rig.a.ep);

	core_lock_acquire(&handle->lock);
	vrb_update_slow_reasons(inner(&rig.a));
	assert_int_equal(handle->slow_reasons, reasons);
	core_lock_release(&handle->lock);
}

#define WITH(member, value, reason)                                                                \
	do {                                                                                       \
		__typeof__(member) before_ = (member);                                             \
                                                                                                   \
		expect_reasons(0);                                                                 \
		(member) = (value);                                                                \
		expect_reasons(reason);                                                            \
		(member) = before_;                                                                \
		expect_reasons(0);                                                                 \
	} while (0)

static void slow_reasons__each_reason__set_and_cleared(void **state)
{
	struct vrb_conn *conn = conn_of(&rig.a);
	struct core_ep *ep = inner(&rig.a);

	(void)state;
	WITH(conn->state, VRB_CLOSING, CORE_EP_SLOW_CONN);
	WITH(conn->state, VRB_ACCEPTED, CORE_EP_SLOW_CONN);
	WITH(conn->is_graceful, true, CORE_EP_SLOW_CONN);
	WITH(conn->has_fast_path, false, CORE_EP_SLOW_CONN);
	WITH(((struct vrb_ep *)ep->transport)->conn, NULL, CORE_EP_SLOW_CONN);
	WITH(conn->post_next, ep->req.tail - 1, CORE_EP_SLOW_QUEUE);
	WITH(conn->unsignalled, 1, CORE_EP_SLOW_QUEUE);
	WITH(ep->req.done, 1, CORE_EP_SLOW_QUEUE);
	WITH(conn->binds_out, 1, CORE_EP_SLOW_QUEUE);
	WITH(conn->has_marker, true, CORE_EP_SLOW_QUEUE);
	WITH(conn->is_binding, true, CORE_EP_SLOW_QUEUE);
	WITH(conn->retiring, (struct vrb_window *)conn, CORE_EP_SLOW_QUEUE);
	WITH(conn->sq_size, ep->req.capacity, CORE_EP_SLOW_QUEUE);
	WITH(conn->is_receiving, false, CORE_EP_SLOW_RECV);
	WITH(conn->is_unconfirmed, true, CORE_EP_SLOW_RECV);
	WITH(conn->recv_next, ep->recv.tail - 1, CORE_EP_SLOW_RECV);
	WITH(conn->is_flushed, true, CORE_EP_SLOW_PEER);
	WITH(conn->confirm_retries, 1, CORE_EP_SLOW_PEER);
}

/* With a reason set, the slow path does the same, with the same counters. */
static void calls__with_a_reason__same_on_the_slow_path(void **state)
{
	static const uint16_t reasons[] = {CORE_EP_SLOW_CONN, CORE_EP_SLOW_QUEUE, CORE_EP_SLOW_RECV,
					   CORE_EP_SLOW_PEER};
	struct vrb_conn *conn = conn_of(&rig.a);
	struct core_ep *ep = inner(&rig.a);

	(void)state;
	for (uint64_t i = 0; i < 4 * SLOTS; i++) {
		uint64_t posted = vrb_sq_posted(conn);

		/* the slow path updates the reasons, so set it before each call */
		core_handle_set_slow(rig.a.ep, reasons[i % 4]);
		assert_int_equal(write_len(&rig.a, 8, 100 + i), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(write_len(&rig.a, 9, 200 + i), DAT_SUCCESS);
		core_handle_set_slow(rig.a.ep, reasons[i % 4]);
		assert_int_equal(recv_len(&rig.a, 64, 300 + i), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(vrb_sq_posted(conn) - posted, 2);
		assert_int_equal(vrb_sq_done(conn, ep), posted);
		assert_int_equal(vrb_recv_out(conn, ep), 1);
		core_handle_set_slow(rig.a.ep, reasons[i % 4]);
		expect(&rig.a, 100 + i, 8);
		assert_true(is_fast(rig.a.ep));
		expect(&rig.a, 200 + i, 9);
		assert_int_equal(vrb_sq_done(conn, ep), posted + 2);
		assert_int_equal(send_len(&rig.b, 5, i), DAT_SUCCESS);
		core_handle_set_slow(rig.a.ep, reasons[i % 4]);
		expect(&rig.a, 300 + i, 5);
		expect(&rig.b, i, 5);
		assert_int_equal(vrb_recv_out(conn, ep), 0);
	}
}

/* RMR-BIND-39: set while a bind is under way, cleared when it is done */
static void slow_reasons__bind__until_it_is_done(void **state)
{
	const struct vrb_conn *conn = conn_of(&rig.a);

	(void)state;
	make_odd();
	for (unsigned i = 0; i < 2 * SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(post_bind(0), DAT_SUCCESS);
		assert_int_equal(slow(rig.a.ep), CORE_EP_SLOW_QUEUE);
		assert_int_equal(write_len(&rig.a, 9, 2), DAT_SUCCESS);
		assert_int_equal(slow(rig.a.ep), CORE_EP_SLOW_QUEUE);
		assert_int_equal(drain(rig.a.dto), 3);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(vrb_sq_done(conn, inner(&rig.a)), vrb_sq_posted(conn));
		assert_int_equal(write_len(&rig.a, 10, 3), DAT_SUCCESS);
		expect_at_once(&rig.a, 3, 10);
	}
}

/* EP-DISC-13: the reason is set as soon as the call returns. */
static void slow_reasons__graceful_disconnect__set_at_once(void **state)
{
	(void)state;
	assert_int_equal(send_len(&rig.a, 8, 1), DAT_SUCCESS);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	assert_true(slow(rig.a.ep) & CORE_EP_SLOW_CONN);
	assert_int_equal(recv_len(&rig.b, 64, 2), DAT_SUCCESS);
	expect(&rig.a, 1, 8);
	let_go();
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_true(slow(rig.a.ep) & CORE_EP_SLOW_CONN);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect(&rig.b, 2, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		RIG_TEST(slow_reasons__suppressed__until_it_is_done),
		RIG_TEST(post_recv__behind_one_of_two_segments__both_in_order),
		RIG_TEST(slow_reasons__each_reason__set_and_cleared),
		RIG_TEST(calls__with_a_reason__same_on_the_slow_path),
		RIG_TEST(slow_reasons__bind__until_it_is_done),
		RIG_TEST(slow_reasons__graceful_disconnect__set_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
