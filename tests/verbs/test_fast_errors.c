// SPDX-License-Identifier: BSD-2-Clause
/*
 * Errors and ends on the fast path (src/verbs/fast.c): posts that the device refuses, failed and
 * unexpected completions, disconnects, frees and closes with work outstanding, and dead handles.
 * Each error is reported once, and the rest is flushed in order.
 */
#include "fast_lab.h"

#include "core/ep/ep_fast.h"

/* --- errors --- */

/* Posts two Receives and that many Sends, which find no Receive, on a. */
static void outstanding(unsigned sends)
{
	assert_int_equal(recv_len(&rig.a, 64, 101), DAT_SUCCESS);
	assert_int_equal(recv_len(&rig.a, 64, 102), DAT_SUCCESS);
	for (unsigned i = 0; i < sends; i++)
		assert_int_equal(send_len(&rig.a, 8, 201 + i), DAT_SUCCESS);
	assert_true(is_fast(rig.a.ep));
}

static void expect_end(DAT_EVENT_NUMBER a, DAT_EVENT_NUMBER b)
{
	rig_expect_conn(&rig.a, a);
	rig_expect_conn(&rig.b, b);
	rig_no_event(rig.a.dto);
	rig_no_event(rig.a.conn);
	rig_no_event(rig.b.conn);
	assert_false(is_fast(rig.a.ep));
}

static void expect_all_flushed(unsigned sends)
{
	for (unsigned i = 0; i < sends; i++)
		expect_flushed(&rig.a, 201 + i);
	expect_flushed(&rig.a, 101);
	expect_flushed(&rig.a, 102);
}

static void again(void)
{
	rig_reset(&rig);
	join();
	settle();
	assert_true(is_fast(rig.a.ep));
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect_at_once(&rig.a, 1, 8);
}

/* EP-STATE-74: the device refuses a request, with others outstanding and alone */
static void post__fast_path_refused_by_the_device__broken_once(void **state)
{
	(void)state;
	for (unsigned sends = 0; sends < 3; sends++) {
		outstanding(sends);
		fake_fail_next("ibv_post_send");
		assert_int_equal(sends == 1 ? write_len(&rig.a, 8, 201 + sends)
					    : send_len(&rig.a, 8, 201 + sends),
				 DAT_SUCCESS);
		assert_string_equal(fake_failed(), "ibv_post_send");
		fake_fail_at(0);
		assert_false(is_fast(rig.a.ep));
		assert_int_equal(conn_of(&rig.a)->state, VRB_CLOSING);
		assert_int_equal(slow(rig.a.ep) & CORE_EP_SLOW_CONN, CORE_EP_SLOW_CONN);
		assert_int_equal(conn_of(&rig.a)->sq_seen, vrb_sq_posted(conn_of(&rig.a)));
		assert_int_equal(vrb_recv_out(conn_of(&rig.a), inner(&rig.a)), 2);
		let_go();
		expect_all_flushed(sends + 1);
		expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
		again();
	}
}

/* The same for a Receive. The end waits for the Receives that the device holds. */
static void post_recv__refused_by_the_device__broken_once(void **state)
{
	(void)state;
	outstanding(2);
	fake_fail_next("ibv_post_recv");
	assert_int_equal(recv_len(&rig.a, 64, 103), DAT_SUCCESS);
	assert_string_equal(fake_failed(), "ibv_post_recv");
	fake_fail_at(0);
	assert_false(is_fast(rig.a.ep));
	assert_int_equal(conn_of(&rig.a)->state, VRB_CLOSING);
	assert_int_equal(vrb_recv_out(conn_of(&rig.a), inner(&rig.a)), 2);
	assert_int_equal(conn_of(&rig.a)->unsignalled, 0);
	let_go();
	expect_all_flushed(2);
	expect_flushed(&rig.a, 103);
	expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
	again();
}

/* DTO-48 DTO-65: the oldest request fails, or one behind it */
static void completion__error__reported_and_the_rest_flushed(void **state)
{
	(void)state;
	for (unsigned good = 0; good < 3; good++) {
		DAT_EVENT event;

		outstanding(4);
		for (unsigned i = 0; i < good; i++)
			assert_int_equal(recv_len(&rig.b, 64, i), DAT_SUCCESS);
		fake_status(IBV_WC_RETRY_EXC_ERR);
		assert_int_equal(recv_len(&rig.b, 64, 9), DAT_SUCCESS);
		device.most = good == 1 ? VRB_POLL_BATCH : 1;
		for (unsigned i = 0; i < good; i++)
			expect(&rig.a, 201 + i, 8);
		assert_true(take(rig.a.dto, &event));
		check_event(&event, rig.a.dto, rig.a.ep, 201 + good, DAT_DTO_ERR_TRANSPORT, 0);
		assert_false(is_fast(rig.a.ep));
		let_go();
		for (unsigned i = good + 1; i < 4; i++)
			expect_flushed(&rig.a, 201 + i);
		expect_flushed(&rig.a, 101);
		expect_flushed(&rig.a, 102);
		expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
		while (rig_event(rig.b.dto).event_data.dto_completion_event_data.status ==
		       DAT_DTO_SUCCESS)
			;
		again();
	}
}

/* A message is longer than the Receive. */
static void completion__error_of_a_receive__reported_and_the_rest_flushed(void **state)
{
	DAT_EVENT event;

	(void)state;
	outstanding(2);
	assert_int_equal(send_len(&rig.b, 65, 7), DAT_SUCCESS);
	device.most = 1;
	assert_true(take(rig.a.dto, &event));
	check_event(&event, rig.a.dto, rig.a.ep, 101, DAT_DTO_ERR_LOCAL_LENGTH, 0);
	assert_false(is_fast(rig.a.ep));
	let_go();
	expect_flushed(&rig.a, 201);
	expect_flushed(&rig.a, 202);
	expect_flushed(&rig.a, 102);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_not_equal(rig_event(rig.b.conn).event_number, 0);
	rig_expect_dto(&rig.b, 7, DAT_DTO_ERR_REMOTE_RESPONDER);
	again();
}

/* DTO-56: an unspecific status; the core knows whether the memory was freed */
static void completion__is_unspecific__memory_is_checked(void **state)
{
	(void)state;
	for (int is_freed = 0; is_freed < 2; is_freed++) {
		DAT_LMR_CONTEXT key;
		DAT_LMR_HANDLE lmr;
		DAT_EVENT event;

		lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &key);
		assert_int_equal(post_seg(1, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		assert_int_equal(post_seg(0, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		if (is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		fake_status(IBV_WC_LOC_QP_OP_ERR);
		assert_int_equal(recv_len(&rig.b, 64, 9), DAT_SUCCESS);
		assert_true(take(rig.a.dto, &event));
		check_event(&event, rig.a.dto, rig.a.ep, ODD_COOKIE,
			    is_freed ? DAT_DTO_ERR_LOCAL_PROTECTION : DAT_DTO_ERR_LOCAL_EP, 0);
		let_go();
		expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
		expect_flushed(&rig.b, 9);
		if (!is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		again();
	}
}

/* The same for a Receive. */
static void completion__of_a_receive_is_unspecific__memory_is_checked(void **state)
{
	(void)state;
	for (int is_freed = 0; is_freed < 2; is_freed++) {
		DAT_LMR_CONTEXT key;
		DAT_LMR_HANDLE lmr;
		DAT_EVENT event;

		lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &key);
		assert_int_equal(post_seg(2, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		expect(&rig.b, 1, 8);
		assert_int_equal(post_seg(2, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_int_equal(recv_len(&rig.a, 64, 5), DAT_SUCCESS);
		device.more[0] =
			(struct ibv_wc){.wr_id = device.recv.wr_id, .status = IBV_WC_GENERAL_ERR};
		assert_int_equal(write_len(&rig.b, 8, 3), DAT_SUCCESS);
		expect(&rig.b, 3, 8);
		if (is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		device.more_count = 1;
		assert_true(take(rig.a.dto, &event));
		check_event(&event, rig.a.dto, rig.a.ep, ODD_COOKIE,
			    is_freed ? DAT_DTO_ERR_LOCAL_PROTECTION : DAT_DTO_ERR_TRANSPORT, 0);
		let_go();
		expect_flushed(&rig.a, 5);
		expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
		if (!is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		again();
	}
}

/* The device completes the second request first: the first one is reported first all the same. */
static void completion__of_a_later_request_first__in_order(void **state)
{
	struct ibv_wc wc[2];

	(void)state;
	for (uint64_t i = 0; i < 2 * SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 8, 100 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 9, 200 + i), DAT_SUCCESS);
		assert_int_equal(device.real.poll_cq(conn_of(&rig.a)->cq->cq, 2, wc), 2);
		device.more[0] = wc[1];
		device.more[1] = wc[0];
		device.more_count = 1;
		expect_none(rig.a.dto);
		device.more[0] = wc[0];
		device.more_count = 1;
		expect(&rig.a, 100 + i, 8);
		expect(&rig.a, 200 + i, 9);
		assert_int_equal(write_len(&rig.a, 10, 300 + i), DAT_SUCCESS);
		expect(&rig.a, 300 + i, 10);
		assert_true(is_fast(rig.a.ep));
	}
}

/* A completion of an earlier connection that had the same slot in the table is ignored. */
static void completion__of_an_old_connection__ignored(void **state)
{
	struct core_ep *ep = inner(&rig.a);
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	uint32_t old = conn_of(&rig.a)->key ^ (1u << VRB_KEY_INDEX_BITS);

	(void)state;
	outstanding(2);
	for (int i = 0; i < 2; i++) {
		wc.wr_id = i ? vrb_work_id(VRB_WORK_RECV, old, ep->recv.head)
			     : vrb_work_id(VRB_WORK_REQUEST, old, (uint32_t)ep->req.head);
		device.more[0] = wc;
		device.more_count = 1;
		expect_none(rig.a.dto);
		assert_int_equal(ep->req.tail - ep->req.head, 2);
		assert_int_equal(ep->recv.tail - ep->recv.head, 2);
		/* the lock is free */
		assert_int_equal(atomic_load(&cell(rig.a.ep)->lock.inside), 0);
		assert_int_equal(atomic_load(&cell(rig.a.dto)->lock.inside), 0);
	}
	assert_true(is_fast(rig.a.ep));
}

/* EP-DISC-09 EP-DISC-10: an abrupt disconnect with requests and Receives outstanding */
static void ep_disconnect__abrupt__all_flushed_in_order(void **state)
{
	(void)state;
	outstanding(4);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_false(is_fast(rig.a.ep));
	let_go();
	expect_all_flushed(4);
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED, DAT_CONNECTION_EVENT_DISCONNECTED);
	again();
}

/*
 * EP-DISC-13 EP-DISC-15 EP-DISC-17: a graceful disconnect carries out what was posted, and nothing
 * more is accepted
 */
static void ep_disconnect__graceful__all_done_before(void **state)
{
	(void)state;
	outstanding(3);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	assert_false(is_fast(rig.a.ep));
	assert_int_not_equal(send_len(&rig.a, 8, 9), DAT_SUCCESS);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(recv_len(&rig.b, 64, 301 + i), DAT_SUCCESS);
	for (uint64_t i = 0; i < 3; i++) {
		expect(&rig.a, 201 + i, 8);
		expect(&rig.b, 301 + i, 8);
	}
	let_go();
	expect_flushed(&rig.a, 101);
	expect_flushed(&rig.a, 102);
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED, DAT_CONNECTION_EVENT_DISCONNECTED);
	again();
}

/* EP-DISC-33 */
static void peer__ends__all_flushed_in_order(void **state)
{
	(void)state;
	outstanding(3);
	let_go();
	assert_int_equal(core_ep_disconnect(rig.b.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	expect_all_flushed(3);
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED, DAT_CONNECTION_EVENT_DISCONNECTED);
	again();
}

/* The device reports that the queue pair is broken. */
static void qp_event__of_an_error__all_flushed(void **state)
{
	(void)state;
	outstanding(3);
	let_go();
	fake_async(IBV_EVENT_QP_FATAL, conn_of(&rig.a)->qp);
	expect_all_flushed(3);
	expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
	again();
}

/* EP-FREE-19: nothing completes, and the peer is notified */
static void ep_free__outstanding__nothing_left(void **state)
{
	(void)state;
	outstanding(4);
	assert_int_equal(core_ep_free(rig.a.ep), DAT_SUCCESS);
	let_go();
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_no_event(rig.a.dto);
}

/* teardown checks that nothing is left */
static void ia_close__outstanding__nothing_left(void **state)
{
	(void)state;
	outstanding(4);
	assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
}

/* --- handles --- */

static void calls__wrong_or_dead_handle__refused(void **state)
{
	const DAT_PROVIDER *calls = CALLS(rig.a.ep);
	DAT_RETURN bad_ep = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP;
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET to = remote_seg(HALF, 8);
	DAT_EVD_HANDLE evd = make_evd(8, DAT_HANDLE_NULL);
	DAT_EP_HANDLE handles[2];
	DAT_EVENT event;

	(void)state;
	handles[0] = rig.a.dto;
	handles[1] = rig.b.ep;
	own(evd);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(calls->ep_post_send_func(handles[i], 1, &seg, cookie_of(1), 0),
				 bad_ep);
		assert_int_equal(calls->ep_post_recv_func(handles[i], 1, &seg, cookie_of(1), 0),
				 bad_ep);
		assert_int_equal(
			calls->ep_post_rdma_write_func(handles[i], 1, &seg, cookie_of(1), &to, 0),
			bad_ep);
		if (i == 0)
			assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	}
	assert_int_equal(calls->evd_dequeue_func(rig.a.ep, &event),
			 DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
	assert_true(is_fast(evd));
	assert_int_equal(core_evd_free(evd), DAT_SUCCESS);
	assert_int_equal(calls->evd_dequeue_func(evd, &event),
			 DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		RIG_TEST(post__fast_path_refused_by_the_device__broken_once),
		RIG_TEST(post_recv__refused_by_the_device__broken_once),
		RIG_TEST(completion__error__reported_and_the_rest_flushed),
		RIG_TEST(completion__error_of_a_receive__reported_and_the_rest_flushed),
		RIG_TEST(completion__is_unspecific__memory_is_checked),
		RIG_TEST(completion__of_a_receive_is_unspecific__memory_is_checked),
		RIG_TEST(completion__of_a_later_request_first__in_order),
		RIG_TEST(completion__of_an_old_connection__ignored),
		RIG_TEST(ep_disconnect__abrupt__all_flushed_in_order),
		RIG_TEST(ep_disconnect__graceful__all_done_before),
		RIG_TEST(peer__ends__all_flushed_in_order),
		RIG_TEST(qp_event__of_an_error__all_flushed),
		RIG_TEST(ep_free__outstanding__nothing_left),
		RIG_TEST(ia_close__outstanding__nothing_left),
		RIG_TEST(calls__wrong_or_dead_handle__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
