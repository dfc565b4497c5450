// SPDX-License-Identifier: BSD-2-Clause
/* Messages that wait for a buffer of an SRQ: their order, and which endpoint gets the next buffer.
 */
#include "ep_util.h"
#include "srq_util.h"

/* SRQ-USE-08 DTO-107 DTO-104 DTO-105 SRQ-RECV-23 */
static void srq__empty__message_waits_in_order(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 2);
	for (uint64_t i = 0; i < 4; i++)
		post_send(&bench->from[0], dt_seg(&bench->x, 0, 8), 10 + i, 0);
	dt_stays_empty(bench->from[0].request);
	dt_no_event(bench->to[0].recv);
	dt_no_event(bench->to[0].conn);
	for (uint64_t i = 0; i < 4; i++) {
		bench_give(bench, i);
		expect_received(&bench->to[0], i, 8);
		expect_sent(&bench->from[0], 10 + i, 8);
	}
	dt_no_event(bench->to[0].recv);
	bench_works(bench);
}

/* SRQ-USE-09: each endpoint has one message and gets one buffer */
static void srq__all_wait__each_served_once(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, SRQ_PAIRS);
	for (unsigned i = 0; i < SRQ_PAIRS; i++)
		bench_send(bench, i, i);
	dt_stays_empty(bench->to[0].recv);
	bench_give_many(bench, 0, SRQ_PAIRS);
	for (unsigned i = 0; i < SRQ_PAIRS; i++)
		bench_receive(bench, i, i);
	srq_counts(bench->srq, 0, 0);
}

/* One completion on any of the endpoints; its pair. */
static unsigned next_served(struct bench *bench)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;

	while (dt_now_us() < end) {
		for (unsigned i = 0; i < bench->pairs; i++) {
			DAT_EVENT event;

			if (dat_evd_dequeue(bench->to[i].recv, &event) == DAT_SUCCESS)
				return i;
		}
	}
	fail();
	return 0;
}

/* The device decides which endpoint is next: the quiet one comes before the flood ends. */
static void check_served_at_all(struct bench *bench, unsigned quiet, unsigned flood)
{
	bool is_served = false;

	for (unsigned n = 0; n < flood && !is_served; n++) {
		bench_give(bench, n);
		is_served = next_served(bench) == quiet;
	}
	assert_true(is_served);
}

/* SRQ-USE-09: buffers one at a time; the quiet one is served within as many as there are EPs */
static void srq__others_flood__quiet_one_served_within_n(void **state)
{
	struct bench *bench = *state;
	const unsigned quiet = 5;

	bench_add(bench, SRQ_PAIRS);
	for (unsigned i = 0; i < SRQ_PAIRS; i++)
		for (uint64_t n = 0; n < 100 && i != quiet; n++)
			bench_send(bench, i, n);
	if (!srq_shows_held(&bench->ia)) {
		bench_send(bench, quiet, 0);
		check_served_at_all(bench, quiet, (SRQ_PAIRS - 1) * 100);
		return;
	}
	for (unsigned round = 0; round < 10; round++) {
		bool is_served = false;

		bench_send(bench, quiet, round);
		bench_await_line(bench);
		for (unsigned n = 0; n < SRQ_PAIRS; n++) {
			bench_give(bench, n);
			if (next_served(bench) != quiet)
				continue;
			assert_false(is_served); /* it has one message only */
			is_served = true;
		}
		assert_true(is_served);
	}
}

/* SRQ-USE-09: the same for one that waited already when the others came */
static void srq__others_flood_later__quiet_one_served_within_n(void **state)
{
	struct bench *bench = *state;
	const unsigned quiet = 2;
	unsigned served = 0;

	bench_add(bench, SRQ_PAIRS);
	bench_send(bench, quiet, 0);
	bench_await_line(bench);
	for (unsigned i = 0; i < SRQ_PAIRS; i++)
		for (uint64_t n = 0; n < 30 && i != quiet; n++)
			bench_send(bench, i, n);
	bench_await_line(bench);
	if (!srq_shows_held(&bench->ia)) {
		check_served_at_all(bench, quiet, (SRQ_PAIRS - 1) * 30);
		return;
	}
	for (unsigned n = 0; n < SRQ_PAIRS; n++) {
		bench_give(bench, n);
		served += next_served(bench) == quiet;
	}
	assert_int_equal(served, 1);
	/* each of the others likewise */
	for (unsigned n = 0; n < 2 * (SRQ_PAIRS - 1); n++) {
		bench_give(bench, n);
		served += next_served(bench) == 7;
	}
	assert_true(served > 1);
}

/* SRQ-USE-09 SRQ-USE-10: one that leaves the line does not hold up the others */
static void srq__waiting_endpoint_goes__next_served(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 6);
	for (unsigned i = 0; i < 6; i++) {
		bench_send(bench, i, i);
		bench_await_line(bench); /* in this order */
	}
	bench_cut(bench, 0);
	dt_ok(dat_ep_free(bench->to[2].ep));
	dt_ok(dat_ep_disconnect(bench->to[4].ep, DAT_CLOSE_ABRUPT_FLAG));
	bench_give_many(bench, 0, 3);
	for (unsigned i = 1; i < 6; i += 2)
		bench_receive(bench, i, i);
	srq_counts(bench->srq, 0, 0);
	dt_no_event(bench->to[0].recv);
	dt_no_event(bench->to[2].recv);
	dt_no_event(bench->to[4].recv);
}

/* DTO-105 SRQ-USE-08: what waits does not hold up connections without the SRQ */
static void srq__message_waits__other_connections_work(void **state)
{
	struct bench *bench = *state;
	struct dt_ep c, d;

	bench_add(bench, 1);
	bench_send(bench, 0, 1);
	dt_stays_empty(bench->to[0].recv);
	dt_ep_create(&bench->ia, bench->ia.pz, NULL, &c);
	dt_ep_create(&bench->ia, bench->ia.pz, NULL, &d);
	dt_ep_link(&bench->ia, &c, &d);
	ep_check_traffic(&c, &d, &bench->x);
	post_send(&bench->to[0], dt_seg(&bench->x, 0, 8), 3, 0); /* nor the other direction */
	post_recv(&bench->from[0], dt_seg(&bench->x, 8, 8), 4);
	expect_received(&bench->from[0], 4, 8);
	expect_sent(&bench->to[0], 3, 8);
	bench_give(bench, 2);
	expect_received(&bench->to[0], 2, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(srq__empty__message_waits_in_order),
		bench_test(srq__all_wait__each_served_once),
		bench_test(srq__others_flood__quiet_one_served_within_n),
		bench_test(srq__others_flood_later__quiet_one_served_within_n),
		bench_test(srq__waiting_endpoint_goes__next_served),
		bench_test(srq__message_waits__other_connections_work),
	};

	return cmocka_run_group_tests_name("srq_empty", tests, NULL, NULL);
}
