// SPDX-License-Identifier: BSD-2-Clause
/*
 * The completion flags of DTOs: which completions raise an event, and which of these events wake a
 * waiter. That an event does not wake a waiter is verified by what the waiter returns with when
 * another event wakes it: the other events are queued before or after that one. Fences are in
 * test_dto_fence.c.
 */
#include "dto_util.h"

static const enum dto_kind requests[] = {DTO_SEND, DTO_READ, DTO_WRITE};

/* Posts a request of one byte on a. A Send finds a Receive. */
static void post_request(struct rig *rig, enum dto_kind kind, uint64_t cookie,
			 DAT_COMPLETION_FLAGS flags)
{
	if (kind == DTO_SEND)
		post_recv(&rig->b, dt_seg(&rig->y, 100, 1), cookie);
	dt_ok(dto_post_byte(rig, kind, cookie, flags));
	if (kind == DTO_SEND)
		expect_received(&rig->b, cookie, 1);
}

/* DTO-11 */
static void completion_flags__values__as_in_the_header(void **state)
{
	(void)state;
	assert_int_equal(DAT_COMPLETION_DEFAULT_FLAG, 0x00);
	assert_int_equal(DAT_COMPLETION_SUPPRESS_FLAG, 0x01);
	assert_int_equal(DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0x02);
	assert_int_equal(DAT_COMPLETION_UNSIGNALLED_FLAG, 0x04);
	assert_int_equal(DAT_COMPLETION_BARRIER_FENCE_FLAG, 0x08);
	assert_int_equal(DAT_COMPLETION_EVD_THRESHOLD_FLAG, 0x10);
}

/* DTO-33 */
static void ia_query__completion_flags_supported__has_all(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig->ia.provider.completion_flags_supported & 0x0F, 0x0F);
}

/* DTO-08 */
static void ia_query__dto_async_return_guaranteed__false(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig->ia.provider.dto_async_return_guaranteed, DAT_FALSE);
}

/* --- default --- */

/* EP-SEND-21 EP-RDMAR-24 EP-RDMAW-22 EP-RECV-14 DTO-12 */
static void post__default_flag__wakes_waiter(void **state)
{
	struct rig *rig = *state;
	struct dto_waiter waiter;

	for (size_t i = 0; i < COUNT_OF(requests); i++) {
		dto_waiter_start(&waiter, rig->a.request, 1);
		post_request(rig, requests[i], 40 + i, DAT_COMPLETION_DEFAULT_FLAG);
		dto_waiter_wakes(&waiter, 40 + i, 0);
	}
	dto_waiter_start(&waiter, rig->a.recv, 1);
	dt_ok(dto_post_byte(rig, DTO_RECV, 50, 0));
	post_send(&rig->b, dt_seg(&rig->y, 0, 1), 51, 0);
	dto_waiter_wakes(&waiter, 50, 0);
}

/* --- suppress --- */

/* Posts one suppressed request of each kind, then one that is not, on new endpoints. */
static void check_suppressed(struct rig *rig, DAT_COMPLETION_FLAGS attribute)
{
	rig->attr_a.request_completion_flags = attribute;
	rig_link(rig);
	memset(rig->y.p, RIG_FILL, RIG_LEN);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 100), 1);
	post_recv(&rig->b, dt_seg(&rig->y, 100, 100), 2);
	post_send(&rig->a, dt_seg(&rig->x, 0, 100), 3, DAT_COMPLETION_SUPPRESS_FLAG);
	post_write(&rig->a, dt_seg(&rig->x, 300, 100), dt_rseg(&rig->y, 300, 100), 4,
		   DAT_COMPLETION_SUPPRESS_FLAG);
	post_read(&rig->a, dt_seg(&rig->x, 9000, 100), dt_rseg(&rig->y, 300, 100), 5,
		  DAT_COMPLETION_SUPPRESS_FLAG);
	expect_received(&rig->b, 1, 100);
	dt_stays_empty(rig->a.request);
	post_send(&rig->a, dt_seg(&rig->x, 100, 100), 6, 0);
	expect_sent(&rig->a, 6, 100); /* no other event came before it */
	assert_memory_equal(rig->y.p, rig->x.p, 100);
	assert_memory_equal(rig->y.p + 300, rig->x.p + 300, 100);
	assert_memory_equal(rig->x.p + 9000, rig->x.p + 300, 100);
	expect_received(&rig->b, 2, 100);
	dt_stays_empty(rig->a.request);
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);
}

/* EP-SEND-22 EP-RDMAR-24 EP-RDMAW-23 DTO-13 DTO-15 DTO-17 */
static void post__suppressed_success__no_event(void **state)
{
	struct rig *rig = *state;

	check_suppressed(rig, DAT_COMPLETION_DEFAULT_FLAG);
	check_suppressed(rig, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	check_suppressed(rig, DAT_COMPLETION_UNSIGNALLED_FLAG);
	check_suppressed(rig, DAT_COMPLETION_SUPPRESS_FLAG);
}

/*
 * DTO-06 DTO-14 DTO-74 EP-RDMAW-23: failed and flushed requests raise an event although they are
 * suppressed
 */
static void post__suppressed_failure__event_with_status(void **state)
{
	struct rig *rig = *state;
	const DAT_COMPLETION_FLAGS flag = DAT_COMPLETION_SUPPRESS_FLAG;
	DAT_RMR_TRIPLET outside = dt_rseg(&rig->y, RIG_LEN - 1, 2);
	DAT_EVENT event;

	rig_link(rig);
	post_write(&rig->a, dt_seg(&rig->x, 0, 2), outside, 1, flag);
	expect_request(&rig->a, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	expect_broken(rig);
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);

	rig_link(rig);
	post_send(&rig->a, dt_seg(&rig->x, 0, 2), 2, flag);
	post_send(&rig->a, dt_seg(&rig->x, 0, 2), 3, flag | DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	for (uint64_t cookie = 2; cookie <= 3; cookie++) {
		event = dt_event(rig->a.request);
		assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == cookie);
		assert_int_not_equal(event.event_data.dto_completion_event_data.status,
				     DAT_DTO_SUCCESS);
	}
	dt_no_event(rig->a.request);
}

/* --- unsignalled --- */

/* Completions of the flag UNSIGNALLED, on endpoints whose attribute has these flags. */
static void check_unsignalled(struct rig *rig, DAT_COMPLETION_FLAGS attribute)
{
	struct dto_waiter waiter;

	rig->attr_a.request_completion_flags = attribute;
	rig_link(rig);
	for (size_t i = 0; i < COUNT_OF(requests); i++) {
		dto_waiter_start(&waiter, rig->a.request, 1);
		post_request(rig, requests[i], 10, DAT_COMPLETION_UNSIGNALLED_FLAG);
		dto_waiter_sleeps(&waiter);
		post_request(rig, requests[i], 11, DAT_COMPLETION_UNSIGNALLED_FLAG);
		dto_waiter_sleeps(&waiter);
		post_request(rig, requests[i], 12, DAT_COMPLETION_DEFAULT_FLAG);
		dto_waiter_wakes(&waiter, 10, 2);
		expect_sent(&rig->a, 11, 1);
		expect_sent(&rig->a, 12, 1);
		dt_no_event(rig->a.request);
	}
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);
}

/* EP-RDMAW-24 EP-RDMAW-25 EP-CREATE-63 DTO-18 DTO-19 DTO-20: other flags may be set beside it */
static void post__unsignalled__does_not_wake_waiter(void **state)
{
	const DAT_COMPLETION_FLAGS with_suppress =
		DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_SUPPRESS_FLAG;
	struct rig *rig = *state;

	check_unsignalled(rig, DAT_COMPLETION_UNSIGNALLED_FLAG);
	check_unsignalled(rig, with_suppress);
	check_unsignalled(rig, with_suppress | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
				       DAT_COMPLETION_BARRIER_FENCE_FLAG);
}

/*
 * Takes the next completion by dat_evd_wait and returns its cookie. Each call finds the completion
 * queued or returns at once: a waiter that blocks before it arrives would not be woken.
 */
static uint64_t wait_until_queued(DAT_EVD_HANDLE evd)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	DAT_COUNT more;
	DAT_EVENT event;
	DAT_RETURN ret;

	do {
		ret = dat_evd_wait(evd, 0, 1, &event, &more);
	} while (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED && dt_now_us() < end);
	dt_ok(ret);
	assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	return event.event_data.dto_completion_event_data.user_cookie.as_64;
}

/* DTO-18 DTO-21 */
static void post__unsignalled__can_be_dequeued_and_waited_for(void **state)
{
	struct rig *rig = *state;
	DAT_EVENT event;

	rig->attr_a.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	rig_link(rig);
	post_request(rig, DTO_WRITE, 1, DAT_COMPLETION_UNSIGNALLED_FLAG);
	event = dt_event_poll(rig->a.request);
	assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == 1);
	assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);

	post_request(rig, DTO_WRITE, 2, DAT_COMPLETION_UNSIGNALLED_FLAG);
	post_request(rig, DTO_SEND, 3, DAT_COMPLETION_UNSIGNALLED_FLAG);
	assert_int_equal(wait_until_queued(rig->a.request), 2);
	assert_int_equal(wait_until_queued(rig->a.request), 3);
}

/* EP-RECV-14 EP-RECV-21 DTO-18 DTO-19 DTO-20: on the recv queue */
static void post_recv__unsignalled__does_not_wake_waiter(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->y, 0, 8);
	struct dto_waiter waiter;

	rig->attr_b.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	rig_link(rig);
	dt_ok(dat_ep_post_recv(rig->b.ep, 1, &seg, dt_cookie(1), DAT_COMPLETION_UNSIGNALLED_FLAG));
	dt_ok(dat_ep_post_recv(rig->b.ep, 1, &seg, dt_cookie(2), DAT_COMPLETION_UNSIGNALLED_FLAG));
	dt_ok(dat_ep_post_recv(rig->b.ep, 1, &seg, dt_cookie(3), DAT_COMPLETION_DEFAULT_FLAG));
	dto_waiter_start(&waiter, rig->b.recv, 1);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 4, 0);
	/* DTO-25: the Send requests a notification, but the flag of the Receive decides */
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 5, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	expect_sent(&rig->a, 4, 8);
	expect_sent(&rig->a, 5, 8);
	dto_waiter_sleeps(&waiter);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 6, 0);
	dto_waiter_wakes(&waiter, 1, 2);
}

/* --- solicited wait --- */

/* EP-SEND-23 EP-SEND-27 DTO-23 DTO-24 */
static void post_send__solicited_wait__wakes_solicited_receiver(void **state)
{
	struct rig *rig = *state;
	struct dto_waiter waiter;

	rig->attr_b.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	rig_link(rig);
	for (uint64_t i = 1; i <= 5; i++)
		post_recv(&rig->b, dt_seg(&rig->y, 0, 30000), i);
	/* a small message is one entry of a ring, a large one several */
	for (uint64_t i = 1; i <= 3; i += 2) {
		const size_t len = i == 1 ? 8 : 30000;

		dto_waiter_start(&waiter, rig->b.recv, 1);
		post_send(&rig->a, dt_seg(&rig->x, 0, len), 10 + i, 0);
		expect_sent(&rig->a, 10 + i, len);
		dto_waiter_sleeps(&waiter);
		post_send(&rig->a, dt_seg(&rig->x, 0, len), 11 + i,
			  DAT_COMPLETION_SOLICITED_WAIT_FLAG);
		dto_waiter_wakes(&waiter, i, 1);
		expect_received(&rig->b, i + 1, len);
		expect_sent(&rig->a, 11 + i, len);
	}

	dto_waiter_start(&waiter, rig->b.recv, 1);
	post_send(&rig->a, dt_seg(&rig->x, 0, 0), 15,
		  DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_SUPPRESS_FLAG |
			  DAT_COMPLETION_BARRIER_FENCE_FLAG);
	dto_waiter_wakes(&waiter, 5, 0);
	dt_stays_empty(rig->a.request);
}

/* DTO-25 DTO-26 DTO-27: no effect on either side of plain endpoints */
static void post_send__solicited_wait_to_plain_receiver__no_effect(void **state)
{
	struct rig *rig = *state;
	const DAT_COMPLETION_FLAGS flags[] = {DAT_COMPLETION_DEFAULT_FLAG,
					      DAT_COMPLETION_SOLICITED_WAIT_FLAG};
	struct dto_waiter receiver, sender;

	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		post_recv(&rig->b, dt_seg(&rig->y, 0, 8), i);
		dto_waiter_start(&receiver, rig->b.recv, 1);
		dto_waiter_start(&sender, rig->a.request, 1);
		post_send(&rig->a, dt_seg(&rig->x, 0, 8), i, flags[i]);
		dto_waiter_wakes(&receiver, i, 0);
		dto_waiter_wakes(&sender, i, 0);
	}
}

/* EP-RDMAR-26 EP-RDMAW-27 */
static void post_rdma__solicited_wait__no_notification_at_the_peer(void **state)
{
	struct rig *rig = *state;
	struct dto_waiter waiter;

	rig->attr_b.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	rig_link(rig);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 1);
	dto_waiter_start(&waiter, rig->b.recv, 1);
	dt_ok(dto_post_byte(rig, DTO_WRITE, 2, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	dt_ok(dto_post_byte(rig, DTO_READ, 3, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	expect_sent(&rig->a, 2, 1);
	expect_sent(&rig->a, 3, 1);
	dto_waiter_sleeps(&waiter);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 4, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	dto_waiter_wakes(&waiter, 1, 0);
}

/* --- threshold --- */

/* DTO-28 EVD-WAIT-15 */
static void evd_wait__threshold_of_three__wakes_at_the_third(void **state)
{
	struct rig *rig = *state;
	struct dto_waiter waiter;

	rig->attr_a.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	rig->attr_b.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	rig_link(rig);
	dto_waiter_start(&waiter, rig->a.request, 3);
	post_request(rig, DTO_WRITE, 1, 0);
	dto_waiter_sleeps(&waiter);
	post_request(rig, DTO_SEND, 2, 0);
	dto_waiter_sleeps(&waiter);
	post_request(rig, DTO_READ, 3, 0);
	dto_waiter_wakes(&waiter, 1, 2);

	for (uint64_t i = 0; i < 3; i++)
		post_recv(&rig->b, dt_seg(&rig->y, 0, 8), i);
	dto_waiter_start(&waiter, rig->b.recv, 3);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 11, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 12, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	dto_waiter_sleeps(&waiter);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 13, 0);
	dto_waiter_wakes(&waiter, 0, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completion_flags__values__as_in_the_header),
		rig_test_bare(ia_query__completion_flags_supported__has_all),
		rig_test_bare(ia_query__dto_async_return_guaranteed__false),
		rig_test(post__default_flag__wakes_waiter),
		rig_test_bare(post__suppressed_success__no_event),
		rig_test_bare(post__suppressed_failure__event_with_status),
		rig_test_bare(post__unsignalled__does_not_wake_waiter),
		rig_test_bare(post__unsignalled__can_be_dequeued_and_waited_for),
		rig_test_bare(post_recv__unsignalled__does_not_wake_waiter),
		rig_test_bare(post_send__solicited_wait__wakes_solicited_receiver),
		rig_test(post_send__solicited_wait_to_plain_receiver__no_effect),
		rig_test_bare(post_rdma__solicited_wait__no_notification_at_the_peer),
		rig_test_bare(evd_wait__threshold_of_three__wakes_at_the_third),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
