// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_post_send: what a Send transfers, what it leaves unchanged, and how it completes. Refusals
 * are in test_dto_refused.c, states in test_dto_states.c, flags in test_dto_flags.c.
 */
#include "dto_util.h"

/* EP-SEND-01 EP-SEND-02 EP-SEND-17 DTO-01 DTO-02 DTO-03 DTO-04 DTO-51 */
static void post_send__several_segments__joined_in_order(void **state)
{
	struct rig *rig = *state;
	/* not in address order, and one of them twice */
	DAT_LMR_TRIPLET iov[4] = {dt_seg(&rig->x, 5000, 33), dt_seg(&rig->x, 1, 7),
				  dt_seg(&rig->x, 5000, 33), dt_seg(&rig->x, 333, 100)};
	DAT_EVENT event;

	post_recv(&rig->b, dt_seg(&rig->y, 10, 1000), 1);
	dt_ok(dat_ep_post_send(rig->a.ep, 4, iov, dt_cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
	event = dt_event(rig->a.request);
	assert_int_equal(event.event_number, 0x00001);
	assert_ptr_equal(event.event_data.dto_completion_event_data.ep_handle, rig->a.ep);
	assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == 2);
	assert_int_equal(event.event_data.dto_completion_event_data.status, 0);
	assert_true(event.event_data.dto_completion_event_data.transfered_length == 173);
	expect_received(&rig->b, 1, 173);
	assert_memory_equal(rig->y.p + 10, rig->x.p + 5000, 33);
	assert_memory_equal(rig->y.p + 43, rig->x.p + 1, 7);
	assert_memory_equal(rig->y.p + 50, rig->x.p + 5000, 33);
	assert_memory_equal(rig->y.p + 83, rig->x.p + 333, 100);
	dt_check_bytes(rig->y.p, 10, RIG_FILL);
	dt_check_bytes(rig->y.p + 183, RIG_LEN - 183, RIG_FILL);
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
}

/* EP-SEND-03 EP-RECV-02 DTO-75 DTO-76 DTO-119 */
static void post_send__no_segments__message_of_size_zero(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET empty = dt_seg(&rig->x, 0, 0);

	post_recv(&rig->b, dt_seg(&rig->y, 0, 100), 1);
	dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(2), 0));
	post_recv(&rig->b, dt_seg(&rig->y, 0, 100), 3);
	dt_ok(dat_ep_post_send(rig->a.ep, 0, NULL, dt_cookie(11), 0));
	dt_ok(dat_ep_post_send(rig->a.ep, 0, NULL, dt_cookie(12), 0));
	dt_ok(dat_ep_post_send(rig->a.ep, 1, &empty, dt_cookie(13), 0));
	for (uint64_t i = 1; i <= 3; i++) {
		expect_sent(&rig->a, 10 + i, 0);
		expect_received(&rig->b, i, 0);
	}
	dt_check_bytes(rig->y.p, RIG_LEN, RIG_FILL);
	expect_quiet(&rig->b);
	rig_works(rig);
}

/*
 * EP-SEND-11 EP-SEND-13 EP-SEND-16 EP-RECV-09: the consumer may reuse the array when the call
 * returns
 */
static void post_send__array_overwritten_at_return__no_effect(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[3] = {dt_seg(&rig->x, 0, 9), dt_seg(&rig->x, 90, 10),
				  dt_seg(&rig->x, 900, 11)};
	DAT_LMR_TRIPLET into[2] = {dt_seg(&rig->y, 0, 20), dt_seg(&rig->y, 100, 20)};

	const uint64_t before = (uint64_t)rig->attr_a.max_request_dtos - 1;

	assert_int_equal(rig->ia.provider.iov_ownership_on_return, DAT_IOV_CONSUMER);
	/* too much is queued before it: the array has not been used when the call returns */
	for (uint64_t i = 0; i < before; i++)
		post_send(&rig->a, dt_seg(&rig->x, 0, 4000), i + 10, 0);
	dt_ok(dat_ep_post_send(rig->a.ep, 3, iov, dt_cookie(1), 0));
	memset(iov, 0xff, sizeof(iov));
	dt_stays_empty(rig->a.request);
	for (uint64_t i = 0; i < before; i++) {
		post_recv(&rig->b, dt_seg(&rig->y, 1000, 4000), i + 10);
		expect_received(&rig->b, i + 10, 4000);
		expect_sent(&rig->a, i + 10, 4000);
	}
	dt_ok(dat_ep_post_recv(rig->b.ep, 2, into, dt_cookie(2), 0));
	memset(into, 0xff, sizeof(into));
	expect_received(&rig->b, 2, 30);
	expect_sent(&rig->a, 1, 30);
	assert_memory_equal(rig->y.p, rig->x.p, 9);
	assert_memory_equal(rig->y.p + 9, rig->x.p + 90, 10);
	assert_memory_equal(rig->y.p + 19, rig->x.p + 900, 1);
	assert_memory_equal(rig->y.p + 100, rig->x.p + 901, 10);
}

/* EP-RECV-09: a Receive is posted long before its message */
static void post_recv__array_overwritten_at_return__no_effect(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET into[2] = {dt_seg(&rig->y, 0, 20), dt_seg(&rig->y, 100, 20)};

	dt_ok(dat_ep_post_recv(rig->b.ep, 2, into, dt_cookie(2), 0));
	memset(into, 0xff, sizeof(into));
	post_send(&rig->a, dt_seg(&rig->x, 0, 30), 1, 0);
	expect_received(&rig->b, 2, 30);
	assert_memory_equal(rig->y.p, rig->x.p, 20);
	assert_memory_equal(rig->y.p + 100, rig->x.p + 20, 10);
	dt_check_bytes(rig->y.p + 20, 80, RIG_FILL);
}

/* EP-SEND-12 EP-RECV-10 */
static void post_send__done__array_and_buffer_unchanged(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 4000), dt_seg(&rig->x, 4100, 30000)};
	DAT_LMR_TRIPLET into[2] = {dt_seg(&rig->y, 0, 10), dt_seg(&rig->y, 10, 40000)};
	DAT_LMR_TRIPLET iov_before[2], into_before[2];

	iov[0].pad = into[1].pad = 0x12345678;
	memcpy(iov_before, iov, sizeof(iov));
	memcpy(into_before, into, sizeof(into));
	dt_ok(dat_ep_post_recv(rig->b.ep, 2, into, dt_cookie(1), 0));
	assert_memory_equal(into, into_before, sizeof(into));
	dt_ok(dat_ep_post_send(rig->a.ep, 2, iov, dt_cookie(2), 0));
	assert_memory_equal(iov, iov_before, sizeof(iov));
	expect_received(&rig->b, 1, 34000);
	expect_sent(&rig->a, 2, 34000);
	assert_memory_equal(into, into_before, sizeof(into));
	assert_memory_equal(iov, iov_before, sizeof(iov));
	dt_check_pattern(rig->x.p, RIG_LEN, RIG_SEED);
}

/*
 * EP-SEND-13 EP-SEND-16 DTO-104: a full queue of large Sends is posted to a peer without Receives
 */
static void post_send__peer_without_receives__returns_and_waits(void **state)
{
	struct rig *rig = *state;
	const DAT_COUNT n = rig->attr_a.max_request_dtos;
	const size_t len = 5000;

	for (DAT_COUNT i = 0; i < n; i++)
		post_send(&rig->a, dt_seg(&rig->x, (size_t)i * 100, len), (uint64_t)i, 0);
	dt_stays_empty(rig->a.request);
	dt_no_event(rig->a.conn);
	for (DAT_COUNT i = 0; i < n; i++) {
		post_recv(&rig->b, dt_seg(&rig->y, 0, len), (uint64_t)i);
		expect_received(&rig->b, (uint64_t)i, len);
		assert_memory_equal(rig->y.p, rig->x.p + i * 100, len);
		expect_sent(&rig->a, (uint64_t)i, len);
	}
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
}

/* DTO-09: after the completion the buffer may be reused and its region freed */
static void post_send__completion_taken__buffer_is_free(void **state)
{
	struct rig *rig = *state;
	struct dt_buf own;

	for (unsigned i = 0; i < 50; i++) {
		dt_buf_create(&rig->ia, rig->ia.pz, &own, 9000, DAT_MEM_PRIV_LOCAL_READ_FLAG);
		dt_fill(own.p, own.len, i);
		post_recv(&rig->b, dt_seg(&rig->y, 0, 9000), i);
		post_send(&rig->a, dt_seg(&own, 0, 9000), i, 0);
		expect_sent(&rig->a, i, 9000);
		memset(own.p, 0, own.len);
		dt_buf_free(&own);
		expect_received(&rig->b, i, 9000);
		dt_check_pattern(rig->y.p, 9000, i);
	}
}

/* DTO-52: a completed Send is received even if the sender disconnects */
static void post_send__completed_then_sender_disconnects__received(void **state)
{
	struct rig *rig = *state;

	for (int how = 0; how < 3; how++) {
		dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
		dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
		dt_ep_link(&rig->ia, &rig->a, &rig->b);
		post_recv(&rig->b, dt_seg(&rig->y, 0, 20000), 1);
		post_recv(&rig->b, dt_seg(&rig->y, 0, 20000), 2);
		post_send(&rig->a, dt_seg(&rig->x, (size_t)how, 20000), 3, 0);
		expect_sent(&rig->a, 3, 20000);
		if (how < 2)
			dt_ok(dat_ep_disconnect(rig->a.ep, how ? DAT_CLOSE_GRACEFUL_FLAG
							       : DAT_CLOSE_ABRUPT_FLAG));
		else
			dt_ok(dat_ep_free(rig->a.ep));
		expect_received(&rig->b, 1, 20000);
		assert_memory_equal(rig->y.p, rig->x.p + how, 20000);
		expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		expect_recv_flushed(&rig->b, 2);
	}
}

/* EP-CREATE-64: as an attribute of the endpoint SUPPRESS has no effect */
static void post_send__suppress_as_attribute__completes(void **state)
{
	struct rig *rig = *state;

	rig->attr_a.request_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	rig_link(rig);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 1);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 2, 0);
	expect_sent(&rig->a, 2, 8);
	expect_received(&rig->b, 1, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post_send__several_segments__joined_in_order),
		rig_test(post_send__no_segments__message_of_size_zero),
		rig_test(post_send__array_overwritten_at_return__no_effect),
		rig_test(post_recv__array_overwritten_at_return__no_effect),
		rig_test(post_send__done__array_and_buffer_unchanged),
		rig_test(post_send__peer_without_receives__returns_and_waits),
		rig_test(post_send__completion_taken__buffer_is_free),
		rig_test_bare(post_send__completed_then_sender_disconnects__received),
		rig_test_bare(post_send__suppress_as_attribute__completes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
