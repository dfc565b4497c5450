// SPDX-License-Identifier: BSD-2-Clause
/*
 * Errors on the fast path (src/verbs/engine/fast.c) while the provider's own thread runs: each
 * error is reported once, the rest is flushed in order, and a new connection works.
 */
#include "fast_lab.h"

static DAT_RETURN try_dequeue(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	return core_evd_dequeue(evd, &event);
}

/* Transfers until this thread owns the locks. */
static void go_fast(void)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	for (int i = 0; i < 500; i++) {
		assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
		assert_int_equal(core_ep_post_send(rig.a.ep, 1, &seg, cookie, 0), DAT_SUCCESS);
		while (try_dequeue(rig.a.dto) != DAT_SUCCESS)
			;
		while (try_dequeue(rig.b.dto) != DAT_SUCCESS)
			;
	}
	assert_true(is_fast(rig.a.ep));
	assert_true(is_fast(rig.a.dto));
}

/* Three Sends that wait for a Receive, with three Receives. */
static void post_three(void)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);

	for (uint64_t i = 10; i < 13; i++) {
		assert_int_equal(
			core_ep_post_recv(rig.a.ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = i + 10}, 0),
			DAT_SUCCESS);
		assert_int_equal(
			core_ep_post_send(rig.a.ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = i}, 0),
			DAT_SUCCESS);
	}
}

/* In the order of their posts. */
static void expect_flushed_range(uint64_t first, uint64_t end)
{
	for (uint64_t i = first; i < end; i++)
		rig_expect_dto(&rig.a, i, DAT_DTO_ERR_FLUSHED);
}

/* DTO-55 GEN-20: one event, and a new connection works. */
static void expect_broken_and_anew(void)
{
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_no_event(rig.a.dto);
	rig_again(&rig);
	go_fast();
}

/* Posts one more, which the device refuses. */
static void post_refused(DAT_EP_POST_SEND_FUNC post, const char *call, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);

	go_fast();
	post_three();
	assert_true(is_fast(rig.a.ep));
	fake_fail_next(call);
	assert_int_equal(post(rig.a.ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = cookie}, 0),
			 DAT_SUCCESS);
	assert_string_equal(fake_failed(), call);
	fake_fail_at(0);
}

static void post_send__refused_by_the_device__all_flushed_in_order(void **state)
{
	(void)state;
	post_refused(core_ep_post_send, "ibv_post_send", 13);
	expect_flushed_range(10, 14);
	expect_flushed_range(20, 23);
	expect_broken_and_anew();
}

static void post_recv__refused_by_the_device__all_flushed_in_order(void **state)
{
	(void)state;
	post_refused(core_ep_post_recv, "ibv_post_recv", 23);
	expect_flushed_range(10, 13);
	expect_flushed_range(20, 24);
	expect_broken_and_anew();
}

/* DTO-48: the oldest fails, those behind it are flushed. */
static void post_send__fails_in_the_device__reported_once_and_the_rest_flushed(void **state)
{
	(void)state;
	go_fast();
	post_three();
	fake_status(IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 10, DAT_DTO_ERR_REMOTE_ACCESS);
	expect_flushed_range(11, 13);
	expect_flushed_range(20, 23);
	rig_expect_dto(&rig.b, 2, DAT_DTO_ERR_FLUSHED);
	expect_broken_and_anew();
}

/* Such a message takes a Receive, but its length does not concern the buffer. */
static void recv__fast_path_taken_by_a_write_with_immediate_data__broken(void **state)
{
	(void)state;
	go_fast();
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 1), DAT_SUCCESS);
	fake_write_next();
	assert_int_equal(rig_send(&rig, &rig.a, 8, 3, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.b, 1, DAT_DTO_ERR_BAD_RESPONSE);
	rig_expect_dto(&rig.a, 3, DAT_DTO_SUCCESS);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_BROKEN);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define AT_WORK_TEST(name) cmocka_unit_test_setup_teardown(name, setup_at_work, teardown_at_work)
		AT_WORK_TEST(post_send__refused_by_the_device__all_flushed_in_order),
		AT_WORK_TEST(post_recv__refused_by_the_device__all_flushed_in_order),
		AT_WORK_TEST(post_send__fails_in_the_device__reported_once_and_the_rest_flushed),
		AT_WORK_TEST(recv__fast_path_taken_by_a_write_with_immediate_data__broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
