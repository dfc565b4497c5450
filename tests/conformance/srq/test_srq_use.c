// SPDX-License-Identifier: BSD-2-Clause
/*
 * How endpoints use an SRQ: when an endpoint takes a buffer, and what happens to the buffer when
 * the connection ends.
 */
#include "ep_util.h"
#include "srq_util.h"

/* --- taking --- */

/* SRQ-USE-01: an unconnected endpoint takes no buffer, also if its attempt fails */
static void srq__attempt_fails__buffers_stay(void **state)
{
	struct bench *bench = *state;

	bench_give_many(bench, 0, 1); /* there already when the endpoint is created */
	srq_ep_make(&bench->ia, bench->ia.pz, bench->srq, &bench->attr, &bench->to[0]);
	srq_counts(bench->srq, 1, 1);
	bench_give_many(bench, 1, 2);
	ep_fail(&bench->ia, &bench->to[0]);
	assert_int_equal(dt_ep_state(bench->to[0].ep), DAT_EP_STATE_DISCONNECTED);
	srq_counts(bench->srq, 3, 3);
	dt_no_event(bench->to[0].recv);
	dt_ok(dat_ep_reset(bench->to[0].ep));
	srq_counts(bench->srq, 3, 3);
	dt_ok(dat_ep_free(bench->to[0].ep));
	srq_counts(bench->srq, 3, 3);
}

static bool is_discpending_empty(void *arg)
{
	DAT_EVENT event;

	return DAT_GET_TYPE(dat_evd_dequeue(arg, &event)) == DAT_SUCCESS;
}

/* SRQ-USE-01 SRQ-USE-02: also while a graceful disconnect is under way */
static void srq__endpoint_disconnecting__still_takes(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	/* its own message finds no Receive, so that the disconnect cannot end */
	dt_ok(dat_ep_post_send(bench->to[0].ep, 0, NULL, dt_cookie(1), 0));
	dt_ok(dat_ep_disconnect(bench->to[0].ep, DAT_CLOSE_GRACEFUL_FLAG));
	assert_int_equal(dt_ep_state(bench->to[0].ep), DAT_EP_STATE_DISCONNECT_PENDING);
	bench_give_many(bench, 0, 2);
	bench_send(bench, 0, 5);
	bench_receive(bench, 0, 5);
	srq_counts(bench->srq, 1, 1);
	assert_int_equal(dt_ep_state(bench->to[0].ep), DAT_EP_STATE_DISCONNECT_PENDING);
	dt_ok(ep_recv_empty(bench->from[0].ep, 2));
	dt_until(is_discpending_empty, bench->from[0].recv);
	expect_ended(&bench->to[0], DAT_CONNECTION_EVENT_DISCONNECTED);
	srq_counts(bench->srq, 1, 1);
}

static bool holds_nothing(void *ep)
{
	DAT_COUNT held = 5, span = 5;

	dt_ok(dat_ep_recv_query(ep, &held, NULL));
	dt_ok(dat_ep_recv_query(ep, NULL, &span));
	return held == 0 && span == 0;
}

/* SRQ-USE-02 SRQ-USE-03 SRQ-QUERY-06 EP-STATUS-09 EP-RECVQ-03 EP-RECVQ-04 EP-RECVQ-14 */
static void srq__connected_but_idle__nothing_taken(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 4);
	bench_give_many(bench, 0, 8);
	srq_counts(bench->srq, 8, 8);
	for (unsigned i = 0; i < 4; i++) {
		srq_expect_held(&bench->ia, bench->to[i].ep, 0);
		assert_true(ep_is_recv_idle(bench->to[i].ep));
	}
	for (DAT_COUNT i = 0; i < 4; i++) {
		bench_send(bench, (unsigned)i, (uint64_t)i);
		srq_until(bench->srq, 7 - i);
		srq_counts(bench->srq, 7 - i, 8);
		/* completed: the endpoint holds it no more, although nothing was dequeued */
		if (srq_shows_held(&bench->ia))
			dt_until(holds_nothing, bench->to[i].ep);
		srq_counts(bench->srq, 7 - i, 8);
	}
	for (unsigned i = 0; i < 4; i++)
		bench_receive(bench, i, i);
	for (unsigned i = 0; i < 4; i++)
		srq_expect_held(&bench->ia, bench->to[i].ep, 0);
	srq_counts(bench->srq, 4, 4);
}

/* SRQ-USE-02: RDMA takes none */
static void srq__rdma__takes_no_buffer(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	bench_give_many(bench, 0, 2);
	post_write(&bench->from[0], dt_seg(&bench->x, 0, 8), dt_rseg(&bench->y, 0, 8), 1, 0);
	post_read(&bench->from[0], dt_seg(&bench->x, 0, 8), dt_rseg(&bench->y, 0, 8), 2, 0);
	expect_sent(&bench->from[0], 1, 8);
	expect_sent(&bench->from[0], 2, 8);
	srq_counts(bench->srq, 2, 2);
	dt_no_event(bench->to[0].recv);
}

/* SRQ-USE-04 EP-CRSRQ-05 SRQ-RECV-27: one recv EVD for all */
static void srq__endpoints_with_one_recv_evd__events_name_their_own(void **state)
{
	struct bench *bench = *state;
	const DAT_EVD_HANDLE evd = dt_evd_create(&bench->ia, 64, DAT_EVD_DTO_FLAG);
	uint64_t count[3] = {0};

	for (int i = 0; i < 3; i++) {
		struct dt_ep *to = &bench->to[i];

		*to = (struct dt_ep){.recv = evd,
				     .conn = dt_evd_create(&bench->ia, 8, DAT_EVD_CONNECTION_FLAG)};
		bench->attr.max_request_dtos = 0;
		dt_ok(dat_ep_create_with_srq(bench->ia.ia, bench->ia.pz, evd, DAT_HANDLE_NULL,
					     to->conn, bench->srq, &bench->attr, &to->ep));
		dt_ep_create(&bench->ia, bench->ia.pz, &bench->from_attr, &bench->from[i]);
		dt_ep_link(&bench->ia, &bench->from[i], to);
	}
	bench_give_many(bench, 0, 12);
	for (uint64_t i = 0; i < 12; i++)
		bench_send(bench, i % 3, i / 3 * 100 + i % 3);
	for (int i = 0; i < 12; i++) {
		const DAT_EVENT event = dt_event(evd);
		const DAT_EP_HANDLE ep = event.event_data.dto_completion_event_data.ep_handle;
		const unsigned pair = ep == bench->to[0].ep ? 0 : ep == bench->to[1].ep ? 1 : 2;
		const uint64_t cookie = bench_check_event(&event, bench->to[pair].ep);

		/* each its own message, in its own order */
		assert_true(bench_read(bench, cookie) == count[pair]++ * 100 + pair);
	}
	dt_no_event(evd);
}

/* SRQ-USE-16 SRQ-RECV-02 */
static void srq__fewer_buffers_than_endpoints__works(void **state)
{
	struct bench *bench = *state;

	bench->srq = srq_make(&bench->ia, 2, 1);
	bench_add(bench, SRQ_PAIRS);
	for (uint64_t round = 0; round < 20; round++) {
		bench_give(bench, round);
		bench_send(bench, round % SRQ_PAIRS, round);
		assert_true(bench_receive(bench, round % SRQ_PAIRS, round) == round);
	}
	srq_counts(bench->srq, 0, 0);
}

/* SRQ-USE-13 EP-CRSRQ-17 EP-CRSRQ-16 EP-CRSRQ-18: as the attribute says */
static void srq__endpoints_of_different_zones__share_it(void **state)
{
	struct bench *bench = *state;
	DAT_PZ_HANDLE pz[3];

	for (unsigned i = 0; i < 3; i++) {
		dt_ok(dat_pz_create(bench->ia.ia, &pz[i]));
		if (!srq_takes_other_zones(&bench->ia)) {
			srq_refuses_zone(&bench->ia, pz[i], bench->srq, &bench->attr);
			dt_ok(dat_pz_free(pz[i]));
			continue;
		}
		dt_ep_create(&bench->ia, bench->ia.pz, &bench->from_attr, &bench->from[i]);
		srq_ep_make(&bench->ia, pz[i], bench->srq, &bench->attr, &bench->to[i]);
		dt_ep_link(&bench->ia, &bench->from[i], &bench->to[i]);
		bench->pairs++;
	}
	if (!srq_takes_other_zones(&bench->ia)) {
		bench_add(bench, 1); /* the SRQ's own */
		bench_works(bench);
		return;
	}
	bench_works(bench);
	/* a long one too, which is placed piece by piece */
	dt_fill(bench->x.p, RIG_LEN, 5);
	dt_ok(srq_post(bench->srq, dt_seg(&bench->y, 0, RIG_LEN), 4));
	post_send(&bench->from[1], dt_seg(&bench->x, 0, RIG_LEN), 5, 0);
	expect_received(&bench->to[1], 4, RIG_LEN);
	dt_check_pattern(bench->y.p, RIG_LEN, 5);
	/* incoming RDMA follows the EP's zone */
	post_write(&bench->from[2], dt_seg(&bench->x, 0, 8), dt_rseg(&bench->y, 0, 8), 6, 0);
	expect_request(&bench->from[2], 6, DAT_DTO_ERR_REMOTE_ACCESS);
	expect_ended(&bench->to[2], DAT_CONNECTION_EVENT_BROKEN);
}

/* --- the end of a connection --- */

/* SRQ-USE-07 EP-STATE-78: disconnect, break, reset, free */
static void srq__connections_end__its_buffers_stay(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 3);
	bench_give_many(bench, 0, 5);
	bench_cut(bench, 0);
	srq_counts(bench->srq, 5, 5);
	/* an error of the peer */
	post_write(&bench->from[1], dt_seg(&bench->x, 0, 8),
		   (DAT_RMR_TRIPLET){.rmr_context = 0x1234, .segment_length = 8}, 1, 0);
	expect_request(&bench->from[1], 1, DAT_DTO_ERR_REMOTE_ACCESS);
	expect_ended(&bench->to[1], DAT_CONNECTION_EVENT_BROKEN);
	srq_counts(bench->srq, 5, 5);
	dt_ok(dat_ep_reset(bench->to[0].ep));
	dt_ok(dat_ep_free(bench->to[1].ep));
	srq_counts(bench->srq, 5, 5);
	dt_no_event(bench->to[0].recv);
	dt_no_event(bench->to[1].recv);
	bench_send(bench, 2, 7);
	bench_receive(bench, 2, 7);
	srq_counts(bench->srq, 4, 4);
}

/* SRQ-USE-12 EP-CRSRQ-38 EP-RESET-11 EP-CRSRQ-42 */
static void srq__reset_and_connected_again__same_queue(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 2);
	for (int round = 0; round < 3; round++) {
		bench_works(bench);
		bench_cut(bench, 0);
		dt_ok(dat_ep_reset(bench->to[0].ep));
		dt_ok(dat_ep_reset(bench->from[0].ep));
		assert_ptr_equal(ep_query(bench->to[0].ep).srq_handle, bench->srq);
		dt_ep_link(&bench->ia, &bench->to[0], &bench->from[0]); /* in the other direction */
	}
	bench_works(bench);
}

/*
 * Calls `check` while the endpoint holds a buffer, until it returns true. On a device that does not
 * show what an endpoint holds, the message may have completed each time.
 */
static void check_caught(struct bench *bench, bool (*check)(struct catch *c))
{
	const bool shows_held = srq_shows_held(&bench->ia);
	struct catch c;

	bench_add(bench, 1);
	catch_begin(&c, bench, 0);
	for (int tries = 0; tries < (shows_held ? CATCH_TRIES : 5); tries++) {
		if (!catch_try(&c)) {
			catch_missed(&c);
		} else if (check(&c)) {
			catch_end(&c);
			return;
		}
	}
	if (shows_held) {
		print_error("never seen in progress\n");
		fail();
	}
	catch_end(&c);
}

/* The endpoint is DISCONNECTED, and the Receive of cookie 77 has completed or is flushed. */
static bool check_ended(struct catch *c)
{
	struct bench *bench = c->bench;
	DAT_EVENT event;

	/* a device flushes the buffer in its own time, and does not show it before */
	if (!srq_shows_held(&bench->ia))
		srq_until_outstanding(bench->srq, 1);
	srq_counts(bench->srq, 0, 1); /* not put back, occupied until it is dequeued */
	dt_ok(dat_evd_dequeue(bench->to[0].recv, &event));
	srq_counts(bench->srq, 0, 0);
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_ptr_equal(event.event_data.dto_completion_event_data.ep_handle, bench->to[0].ep);
	assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == 77);
	dt_no_event(bench->to[0].recv);
	if (event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED)
		return true;
	assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	/* again */
	dt_ok(dat_ep_reset(bench->to[0].ep));
	dt_ok(dat_ep_reset(bench->from[0].ep));
	dt_drain(bench->from[0].request);
	dt_ep_link(&bench->ia, &bench->from[0], &bench->to[0]);
	return false;
}

static bool end_here(struct catch *c)
{
	struct bench *bench = c->bench;

	dt_ok(dat_ep_disconnect(bench->to[0].ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_ended(&bench->to[0], DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(bench->from[0].conn, bench->from[0].ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	return check_ended(c);
}

static bool end_there(struct catch *c)
{
	struct bench *bench = c->bench;

	dt_ok(dat_ep_disconnect(bench->from[0].ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_ended(&bench->to[0], DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(bench->from[0].conn, bench->from[0].ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	return check_ended(c);
}

/* SRQ-USE-05 SRQ-USE-06 EP-STATE-78 SRQ-QUERY-11 SRQ-USE-03 EP-RECVQ-03 EP-RECVQ-06 EP-RECVQ-08 */
static void srq__disconnect_while_receiving__buffer_flushed(void **state)
{
	check_caught(*state, end_here);
}

/* SRQ-USE-05 SRQ-USE-06 EP-STATE-78 */
static void srq__peer_disconnects_while_receiving__buffer_flushed(void **state)
{
	check_caught(*state, end_there);
}

static bool check_held(struct catch *c)
{
	struct bench *bench = c->bench;
	DAT_COUNT held = 0, span = 0;
	DAT_BOOLEAN idle = DAT_TRUE;

	if (!srq_shows_held(&bench->ia)) {
		assert_int_equal(srq_query(bench->srq).outstanding_dto_count, 1);
		catch_missed(c);
		srq_counts(bench->srq, 0, 0);
		return true;
	}
	dt_ok(dat_ep_get_status(bench->to[0].ep, NULL, &idle, NULL));
	dt_ok(dat_ep_recv_query(bench->to[0].ep, &held, &span));
	srq_counts(bench->srq, 0, 1);
	if (held) { /* still, so that it was not idle before */
		assert_int_equal(idle, DAT_FALSE);
		assert_int_equal(span, 1);
	}
	catch_missed(c);
	assert_true(ep_is_recv_idle(bench->to[0].ep));
	srq_counts(bench->srq, 0, 0);
	return held;
}

/* SRQ-QUERY-11 EP-STATUS-09 EP-RECVQ-03 EP-RECVQ-06 EP-RECVQ-15 */
static void srq__receiving__held_and_outstanding(void **state)
{
	check_caught(*state, check_held);
}

static bool free_it(struct catch *c)
{
	struct bench *bench = c->bench;

	dt_ok(dat_ep_free(bench->to[0].ep));
	dt_expect_conn(bench->from[0].conn, bench->from[0].ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	if (srq_query(bench->srq).outstanding_dto_count) { /* it completed just before */
		expect_received(&bench->to[0], 77, c->len);
		srq_counts(bench->srq, 0, 0);
		dt_ok(dat_ep_reset(bench->from[0].ep));
		dt_drain(bench->from[0].request);
		srq_ep_make(&bench->ia, bench->ia.pz, bench->srq, &bench->attr, &bench->to[0]);
		dt_ep_link(&bench->ia, &bench->from[0], &bench->to[0]);
		return false;
	}
	srq_counts(bench->srq, 0, 0);
	dt_no_event(bench->to[0].recv);
	dt_ok(dat_srq_free(bench->srq));
	return true;
}

/* EP-FREE-26 EP-FREE-20: the buffer is consumed, without a completion */
static void ep_free__while_receiving__buffer_consumed(void **state)
{
	check_caught(*state, free_it);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(srq__attempt_fails__buffers_stay),
		bench_test(srq__endpoint_disconnecting__still_takes),
		bench_test(srq__connected_but_idle__nothing_taken),
		bench_test(srq__rdma__takes_no_buffer),
		bench_test(srq__endpoints_with_one_recv_evd__events_name_their_own),
		bench_test(srq__fewer_buffers_than_endpoints__works),
		bench_test(srq__endpoints_of_different_zones__share_it),
		bench_test(srq__connections_end__its_buffers_stay),
		bench_test(srq__reset_and_connected_again__same_queue),
		bench_test(srq__disconnect_while_receiving__buffer_flushed),
		bench_test(srq__peer_disconnects_while_receiving__buffer_flushed),
		bench_test(srq__receiving__held_and_outstanding),
		bench_test(ep_free__while_receiving__buffer_consumed),
	};

	return cmocka_run_group_tests_name("srq_use", tests, NULL, NULL);
}
