// SPDX-License-Identifier: BSD-2-Clause
/*
 * All 64 bits of a cookie come back, whichever path the completion takes: found by the dequeue that
 * drives the transfer, queued before, waited for, or flushed. Both halves of a cookie differ from
 * each other and from those of all other cookies.
 */
#include "bind_util.h"
#include "srq_util.h"

#define ROUNDS 300u /* a connection that is polled often may change to the fast path */
#define LONG_LEN 9000u
#define BATCH 4u

/* The ways to take a completion. */
enum way {
	WAY_DEQUEUE,
	WAY_WAIT,
};

static uint64_t new_cookie(void)
{
	static uint32_t count;

	count++;
	return (uint64_t)(0xC3000000u + count * 7u) << 32 | (0x5A000000u + count * 3u);
}

static DAT_EVENT take(DAT_EVD_HANDLE evd, enum way way)
{
	return way == WAY_DEQUEUE ? dt_event_poll(evd) : dt_event(evd);
}

static void expect_cookie(DAT_EVD_HANDLE evd, enum way way, uint64_t cookie)
{
	const DAT_EVENT event = take(evd, way);
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(data->status, DAT_DTO_SUCCESS);
	if (data->user_cookie.as_64 != cookie)
		print_error("0x%llx came back as 0x%llx\n", (unsigned long long)cookie,
			    (unsigned long long)data->user_cookie.as_64);
	assert_true(data->user_cookie.as_64 == cookie);
}

/* Posts one message and one RDMA of each kind, and takes each completion before the next post. */
static void one_by_one(struct rig *rig, enum way way, size_t len)
{
	const uint64_t received = new_cookie(), sent = new_cookie();
	const uint64_t written = new_cookie(), read = new_cookie();

	post_recv(&rig->b, dt_seg(&rig->y, 0, len), received);
	post_send(&rig->a, dt_seg(&rig->x, 0, len), sent, DAT_COMPLETION_DEFAULT_FLAG);
	expect_cookie(rig->b.recv, way, received);
	expect_cookie(rig->a.request, way, sent);
	post_write(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, 0, len), written,
		   DAT_COMPLETION_DEFAULT_FLAG);
	expect_cookie(rig->a.request, way, written);
	post_read(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, 0, len), read,
		  DAT_COMPLETION_DEFAULT_FLAG);
	expect_cookie(rig->a.request, way, read);
}

/*
 * EP-SEND-10 EP-RECV-08 EP-RDMAR-12 EP-RDMAW-12: the dequeue finds the EVD empty and drives the
 * transfer
 */
static void dat_evd_dequeue__drives_the_transfer__cookie_unchanged(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < ROUNDS; round++)
		one_by_one(rig, WAY_DEQUEUE, round % 16 == 15 ? LONG_LEN : 8);
}

/* a waiting thread drives the transfer */
static void dat_evd_wait__drives_the_transfer__cookie_unchanged(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < ROUNDS; round++)
		one_by_one(rig, WAY_WAIT, round % 16 == 15 ? LONG_LEN : 8);
}

/* Several requests of each kind complete before the first completion is taken. */
static void many_at_once(struct rig *rig, enum way way)
{
	uint64_t received[BATCH], requests[3 * BATCH];
	unsigned posted = 0;

	for (unsigned i = 0; i < BATCH; i++) {
		received[i] = new_cookie();
		post_recv(&rig->b, dt_seg(&rig->y, 8 * i, 8), received[i]);
	}
	for (unsigned i = 0; i < BATCH; i++) {
		requests[posted] = new_cookie();
		post_send(&rig->a, dt_seg(&rig->x, 8 * i, 8), requests[posted++], 0);
		requests[posted] = new_cookie();
		post_write(&rig->a, dt_seg(&rig->x, 8 * i, 8), dt_rseg(&rig->y, 64, 8),
			   requests[posted++], 0);
		requests[posted] = new_cookie();
		post_read(&rig->a, dt_seg(&rig->x, 8 * i, 8), dt_rseg(&rig->y, 64, 8),
			  requests[posted++], 0);
	}
	/* polling another EVD drives them all */
	for (unsigned i = 0; i < 20; i++)
		dt_no_event(rig->b.request);
	for (unsigned i = 0; i < BATCH; i++)
		expect_cookie(rig->b.recv, way, received[i]);
	for (unsigned i = 0; i < posted; i++)
		expect_cookie(rig->a.request, way, requests[i]);
}

/* EP-SEND-10 EP-RECV-08 EP-RDMAR-12 EP-RDMAW-12 */
static void dat_evd_dequeue__completions_queued_before__cookies_unchanged(void **state)
{
	for (unsigned round = 0; round < ROUNDS / BATCH; round++) {
		many_at_once(*state, WAY_DEQUEUE);
		many_at_once(*state, WAY_WAIT);
	}
}

/* completions that a disconnect flushes */
static void dat_ep_disconnect__work_posted__flushed_with_unchanged_cookies(void **state)
{
	struct rig *rig = *state;
	uint64_t cookies[BATCH], sent = new_cookie();

	for (unsigned i = 0; i < BATCH; i++) {
		cookies[i] = new_cookie();
		post_recv(&rig->a, dt_seg(&rig->x, 8 * i, 8), cookies[i]);
	}
	/* no Receive is posted for it */
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), sent, 0);
	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	for (unsigned i = 0; i < BATCH; i++)
		expect_recv_flushed(&rig->a, cookies[i]);
	expect_request(&rig->a, sent, DAT_DTO_ERR_FLUSHED);
	cookies[0] = new_cookie();
	post_recv(&rig->a, dt_seg(&rig->x, 0, 8), cookies[0]);
	expect_recv_flushed(&rig->a, cookies[0]);
}

/* DTO-05 */
static void dat_rmr_bind__completes__cookie_unchanged(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);

	for (unsigned round = 0; round < 40; round++) {
		const enum way way = round % 2 ? WAY_DEQUEUE : WAY_WAIT;
		const uint64_t cookies[2] = {new_cookie(), new_cookie()};
		DAT_EVENT event;

		bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_REMOTE, cookies[0], 0);
		if (round % 4 < 2) {
			event = take(rig->b.request, way);
			bind_check_event(&event, rmr, cookies[0], DAT_DTO_SUCCESS);
		}
		unbind_post(&rig->b, rmr, cookies[1]);
		if (round % 4 >= 2) {
			event = take(rig->b.request, way);
			bind_check_event(&event, rmr, cookies[0], DAT_DTO_SUCCESS);
		}
		event = take(rig->b.request, way);
		bind_check_event(&event, rmr, cookies[1], DAT_DTO_SUCCESS);
	}
	dt_ok(dat_rmr_free(rmr));
}

/* SRQ-RECV-09 */
static void dat_srq_post_recv__message_taken__cookie_unchanged(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 2);
	for (unsigned round = 0; round < ROUNDS; round++) {
		const enum way way = round % 2 ? WAY_DEQUEUE : WAY_WAIT;
		const uint64_t cookie = new_cookie();

		dt_ok(srq_post(bench->srq, bench_slot(bench, round), cookie));
		bench_send(bench, round % 2, round);
		/* polling another EVD drives it: its completion is queued before it is taken */
		for (unsigned i = 0; round % 4 < 2 && i < 20; i++)
			dt_no_event(bench->to[round % 2].request);
		expect_cookie(bench->to[round % 2].recv, way, cookie);
	}
}

/* the message arrives before its buffer */
static void dat_srq_post_recv__message_waits__cookie_unchanged(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	for (unsigned round = 0; round < 20; round++) {
		const uint64_t cookie = new_cookie();

		bench_send(bench, 0, round);
		dt_no_event(bench->to[0].recv);
		dt_ok(srq_post(bench->srq, bench_slot(bench, round), cookie));
		expect_cookie(bench->to[0].recv, round % 2 ? WAY_DEQUEUE : WAY_WAIT, cookie);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(dat_evd_dequeue__drives_the_transfer__cookie_unchanged),
		rig_test(dat_evd_wait__drives_the_transfer__cookie_unchanged),
		rig_test(dat_evd_dequeue__completions_queued_before__cookies_unchanged),
		rig_test(dat_ep_disconnect__work_posted__flushed_with_unchanged_cookies),
		rig_test(dat_rmr_bind__completes__cookie_unchanged),
		bench_test(dat_srq_post_recv__message_taken__cookie_unchanged),
		bench_test(dat_srq_post_recv__message_waits__cookie_unchanged),
	};

	return cmocka_run_group_tests_name("dto cookies", tests, NULL, NULL);
}
