// SPDX-License-Identifier: BSD-2-Clause
/*
 * How DTOs end that are not carried out: flushes, their order, and that nothing is lost, completed
 * twice, or successful after a failure.
 */
#include <stdlib.h>

#include "dto_util.h"

/* DTO-62 DTO-64 DTO-51 DTO-53 DTO-54: values of the statuses */
static void dto_status__values__as_in_the_header(void **state)
{
	(void)state;
	assert_int_equal(DAT_DTO_SUCCESS, 0);
	assert_int_equal(DAT_DTO_ERR_FLUSHED, 1);
	assert_int_equal(DAT_DTO_ERR_LOCAL_LENGTH, 2);
	assert_int_equal(DAT_DTO_ERR_LOCAL_EP, 3);
	assert_int_equal(DAT_DTO_ERR_LOCAL_PROTECTION, 4);
	assert_int_equal(DAT_DTO_ERR_BAD_RESPONSE, 5);
	assert_int_equal(DAT_DTO_ERR_REMOTE_ACCESS, 6);
	assert_int_equal(DAT_DTO_ERR_REMOTE_RESPONDER, 7);
	assert_int_equal(DAT_DTO_ERR_TRANSPORT, 8);
	assert_int_equal(DAT_DTO_ERR_RECEIVER_NOT_READY, 9);
	assert_int_equal(DAT_DTO_ERR_PARTIAL_PACKET, 10);
	assert_int_equal(DAT_RMR_OPERATION_FAILED, 11);
	assert_int_equal(DAT_DTO_LENGTH_ERROR, DAT_DTO_ERR_LOCAL_LENGTH);
	assert_int_equal(DAT_DTO_FAILURE, DAT_DTO_ERR_FLUSHED);
	assert_int_equal(DAT_RMR_BIND_SUCCESS, DAT_DTO_SUCCESS);
	assert_int_equal(DAT_RMR_BIND_FAILURE, DAT_DTO_ERR_FLUSHED);
	assert_int_equal(DAT_DTO_COMPLETION_EVENT, 0x00001);
	assert_int_equal(DAT_RMR_BIND_COMPLETION_EVENT, 0x01001);
}

#define HELD 9u

/*
 * Posts requests of all kinds and sizes after a Send that finds no Receive; cookies 0 to HELD - 1.
 */
static void post_held_requests(struct rig *rig)
{
	const size_t sizes[] = {100, 0, 20000};

	for (uint64_t i = 0; i < HELD; i++) {
		const size_t len = sizes[i / 3];
		const DAT_COMPLETION_FLAGS flags = i % 2 ? DAT_COMPLETION_SUPPRESS_FLAG : 0;

		if (i % 3 == 0)
			post_send(&rig->a, dt_seg(&rig->x, 0, len), i, flags);
		else if (i % 3 == 1)
			post_write(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, 0, len), i,
				   flags);
		else
			post_read(&rig->a, dt_seg(&rig->x, 30000, len), dt_rseg(&rig->y, 0, len), i,
				  flags);
	}
}

/* All of them complete in order and without success; the Sends are flushed. */
static void expect_held_flushed(struct rig *rig)
{
	for (uint64_t i = 0; i < HELD; i++) {
		const DAT_EVENT event = dt_event_poll(rig->a.request);
		const DAT_DTO_COMPLETION_EVENT_DATA *dto =
			&event.event_data.dto_completion_event_data;

		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_ptr_equal(dto->ep_handle, rig->a.ep);
		assert_true(dto->user_cookie.as_64 == i);
		assert_int_equal(dto->status, DAT_DTO_ERR_FLUSHED);
	}
}

/* Posts work of all kinds on both queues of a, then a or its peer disconnects. */
static void check_flush(struct rig *rig, bool by_peer)
{
	struct dt_ep *who = by_peer ? &rig->b : &rig->a;

	rig_link(rig);
	for (uint64_t i = 0; i < 10; i++)
		post_recv(&rig->a, dt_seg(&rig->x, 60000, i), 100 + i);
	post_held_requests(rig);
	dt_no_event(rig->a.request);
	dt_ok(dat_ep_disconnect(who->ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_held_flushed(rig);
	for (uint64_t i = 0; i < 10; i++)
		expect_recv_flushed(&rig->a, 100 + i);
	dt_stays_empty(rig->a.request);
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);
}

/* DTO-06 DTO-07 DTO-48 DTO-53 DTO-67 DTO-68 DTO-73 DTO-74 DTO-119 EP-STATE-74 */
static void ep_disconnect__work_outstanding__flushed_in_order(void **state)
{
	check_flush(*state, false);
	check_flush(*state, true);
}

/* DTO-67 DTO-70 EP-RESET-07: work posted after the end is flushed last in its stream */
static void post__after_the_end__flushed_after_earlier_ones(void **state)
{
	struct rig *rig = *state;

	for (uint64_t i = 0; i < 10; i++)
		post_recv(&rig->a, dt_seg(&rig->x, 60000, 100), 100 + i);
	post_held_requests(rig);
	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	post_recv(&rig->a, dt_seg(&rig->x, 0, 1), 200);
	post_send(&rig->a, dt_seg(&rig->x, 0, 1), 201, 0);
	post_write(&rig->a, dt_seg(&rig->x, 0, 1), dt_rseg(&rig->y, 0, 1), 202,
		   DAT_COMPLETION_SUPPRESS_FLAG);
	expect_held_flushed(rig);
	expect_request(&rig->a, 201, DAT_DTO_ERR_FLUSHED);
	expect_request(&rig->a, 202, DAT_DTO_ERR_FLUSHED);
	for (uint64_t i = 0; i < 10; i++)
		expect_recv_flushed(&rig->a, 100 + i);
	expect_recv_flushed(&rig->a, 200);
	expect_quiet(&rig->a);
}

/*
 * DTO-48 DTO-53 DTO-58 DTO-65 DTO-67: all requests after the failed one are flushed, none succeeds
 */
static void post__after_a_failure__never_succeeds(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_TRIPLET outside = dt_rseg(&rig->y, RIG_LEN - 1, 2);
	DAT_DTO_COMPLETION_STATUS status;

	post_recv(&rig->a, dt_seg(&rig->x, 0, 8), 100);
	for (uint64_t i = 0; i < 3; i++)
		post_recv(&rig->b, dt_seg(&rig->y, 0, 8), i);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 0, 0);
	post_write(&rig->a, dt_seg(&rig->x, 0, 2), outside, 1, 0);
	/* these posts must not be refused: they are accepted until the end is known */
	for (uint64_t i = 2; i < 10; i++)
		dt_ok(dto_post_byte(rig, i % 2 ? DTO_WRITE : DTO_SEND, i, 0));
	expect_sent(&rig->a, 0, 8);
	expect_request(&rig->a, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	for (uint64_t i = 2; i < 10; i++) {
		const DAT_EVENT event = dt_event(rig->a.request);

		status = event.event_data.dto_completion_event_data.status;
		assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == i);
		assert_int_not_equal(status, DAT_DTO_SUCCESS);
	}
	expect_recv_flushed(&rig->a, 100);
	expect_broken(rig);
	dt_no_event(rig->a.request);
	dt_no_event(rig->a.recv);
}

/* DTO-49: the Receives after a failed one fail although messages for them are on the way */
static void post_recv__after_a_failure__never_succeeds(void **state)
{
	struct rig *rig = *state;

	for (uint64_t i = 0; i < 6; i++)
		post_send(&rig->a, dt_seg(&rig->x, 0, i == 1 ? 100 : 10), i, 0);
	for (uint64_t i = 0; i < 6; i++)
		post_recv(&rig->b, dt_seg(&rig->y, 0, 50), i);
	expect_received(&rig->b, 0, 10);
	dt_expect_dto(rig->b.recv, rig->b.ep, 1, DAT_DTO_ERR_LOCAL_LENGTH, DT_ANY_LEN);
	for (uint64_t i = 2; i < 6; i++)
		expect_recv_flushed(&rig->b, i);
	expect_sent(&rig->a, 0, 10);
	expect_request(&rig->a, 1, DAT_DTO_ERR_REMOTE_RESPONDER);
	for (uint64_t i = 2; i < 6; i++) {
		const DAT_EVENT event = dt_event(rig->a.request);

		assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == i);
		assert_int_not_equal(event.event_data.dto_completion_event_data.status,
				     DAT_DTO_SUCCESS);
	}
	expect_broken(rig);
}

#define STORM_ROUNDS 20

struct storm {
	struct rig *rig;
	pthread_t thread;
	_Atomic uint64_t done; /* completions taken: at most one queue length is not taken */
	uint64_t posted;
};

/* Posts Writes and small Sends until the endpoint refuses them. */
static void *storm_run(void *arg)
{
	struct storm *storm = arg;
	const uint64_t end = dt_now_us() + DT_WAIT_US;

	while (dt_now_us() < end && dt_ep_state(storm->rig->a.ep) != DAT_EP_STATE_DISCONNECTED) {
		const enum dto_kind kind = storm->posted % 4 ? DTO_WRITE : DTO_SEND;

		if (storm->posted - storm->done >= 32)
			sched_yield();
		else if (dto_post_byte(storm->rig, kind, storm->posted, 0) == DAT_SUCCESS)
			storm->posted++;
	}
	return NULL;
}

/* Takes the next completion, which must be that of the next post. */
static DAT_DTO_COMPLETION_STATUS storm_take(struct storm *storm)
{
	const DAT_EVENT event = dt_event_poll(storm->rig->a.request);

	assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == storm->done);
	storm->done++;
	return event.event_data.dto_completion_event_data.status;
}

/* DTO-06 DTO-07 DTO-48 DTO-67 COMPAT-28 EP-DISC-12 EP-STATE-74: disconnect under traffic */
static void ep_disconnect__under_traffic__each_post_completes_once(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < STORM_ROUNDS; round++) {
		/* no more than the 32 Receives of b allow; then either side disconnects */
		const uint64_t before = 20 * round < 90 ? 20 * round : 90;
		struct storm storm = {.rig = rig};
		bool has_failed = false;

		rig_link(rig);
		for (uint64_t i = 0; i < 32; i++)
			post_recv(&rig->b, dt_seg(&rig->y, 1000, 1), i);
		assert_int_equal(pthread_create(&storm.thread, NULL, storm_run, &storm), 0);
		while (storm.done < before)
			assert_int_equal(storm_take(&storm), DAT_DTO_SUCCESS);
		dt_ok(dat_ep_disconnect(round % 2 ? rig->a.ep : rig->b.ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_expect_conn(rig->a.conn, rig->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		assert_int_equal(pthread_join(storm.thread, NULL), 0);
		while (storm.done < storm.posted) {
			if (storm_take(&storm) != DAT_DTO_SUCCESS)
				has_failed = true;
			else
				assert_false(has_failed);
		}
		dt_no_event(rig->a.request);
		dt_expect_conn(rig->b.conn, rig->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
	}
}

#define WRITE_ROUNDS 10
#define WRITE_LEN 40000u

static void *writer_run(void *arg)
{
	struct storm *storm = arg;
	DAT_LMR_TRIPLET seg = dt_seg(&storm->rig->x, 0, WRITE_LEN);
	const DAT_RMR_TRIPLET remote = dt_rseg(&storm->rig->y, 0, WRITE_LEN);
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	DAT_RETURN ret;

	do {
		ret = dat_ep_post_rdma_write(storm->rig->a.ep, 1, &seg, dt_cookie(1), &remote,
					     DAT_COMPLETION_SUPPRESS_FLAG);
	} while ((ret == DAT_SUCCESS || DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES) &&
		 dt_ep_state(storm->rig->a.ep) != DAT_EP_STATE_DISCONNECTED && dt_now_us() < end);
	return NULL;
}

/* DTO-120 EP-DISC-35: after the event the memory of the target does not change */
static void ep_disconnect__event_taken__memory_unchanged(void **state)
{
	struct rig *rig = *state;

	memset(rig->x.p, 0x42, RIG_LEN);
	for (int round = 0; round < WRITE_ROUNDS; round++) {
		struct storm storm = {.rig = rig};

		rig_link(rig);
		memset(rig->y.p, RIG_FILL, WRITE_LEN);
		post_recv(&rig->b, dt_seg(&rig->y, 50000, 100), 1);
		assert_int_equal(pthread_create(&storm.thread, NULL, writer_run, &storm), 0);
		dt_until(dto_is_written, rig->y.p + WRITE_LEN - 1);
		dt_ok(dat_ep_disconnect(rig->b.ep, DAT_CLOSE_ABRUPT_FLAG));
		expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		memset(rig->y.p, 0x99, RIG_LEN);
		assert_int_equal(pthread_join(storm.thread, NULL), 0);
		expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_check_bytes(rig->y.p, RIG_LEN, 0x99);
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
	}
}

/*
 * DTO-61 DTO-106 CONN-EVT-38: with a limit set, a message that finds no Receive breaks the
 * connection
 */
static void post_send__receiver_not_ready_limit__connection_breaks(void **state)
{
	struct rig *rig = *state;

	setenv("DAT_RNR_TIMEOUT_MS", "300", 1);
	rig_begin(rig);
	unsetenv("DAT_RNR_TIMEOUT_MS");
	rig_link(rig);
	/* a Receive within the limit is used */
	post_send(&rig->a, dt_seg(&rig->x, 0, 3000), 1, 0);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 3000), 2);
	expect_received(&rig->b, 2, 3000);
	expect_sent(&rig->a, 1, 3000);

	const uint64_t start = dt_now_us();

	post_send(&rig->a, dt_seg(&rig->x, 0, 3000), 3, DAT_COMPLETION_SUPPRESS_FLAG);
	post_send(&rig->a, dt_seg(&rig->x, 0, 3000), 4, 0);
	expect_request(&rig->a, 3, DAT_DTO_ERR_RECEIVER_NOT_READY);
	assert_true(dt_now_us() - start >= 290000);
	expect_request(&rig->a, 4, DAT_DTO_ERR_FLUSHED);
	expect_broken(rig);
	rig_end(rig);
}

static int only_state(void **state)
{
	*state = &rig_of_test;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dto_status__values__as_in_the_header),
		rig_test_bare(ep_disconnect__work_outstanding__flushed_in_order),
		rig_test(post__after_the_end__flushed_after_earlier_ones),
		rig_test(post__after_a_failure__never_succeeds),
		rig_test(post_recv__after_a_failure__never_succeeds),
		rig_test_bare(ep_disconnect__under_traffic__each_post_completes_once),
		rig_test_bare(ep_disconnect__event_taken__memory_unchanged),
		cmocka_unit_test_setup(post_send__receiver_not_ready_limit__connection_breaks,
				       only_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
