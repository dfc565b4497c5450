// SPDX-License-Identifier: BSD-2-Clause
/*
 * The order in which DTOs of one connection take effect and complete, and what a waiting message
 * delays. Posts by several threads are in test_dto_threads.c.
 */
#include "dto_util.h"

/* Sizes on both sides of the thresholds between small and large messages. */
static const size_t mixed[] = {4, 5000, 8, 64, 30000, 4096, 4097, 17, 16384, 100};

static void put_number(unsigned char *p, uint32_t number)
{
	memcpy(p, &number, sizeof(number));
}

static uint32_t get_number(const unsigned char *p)
{
	uint32_t number;

	memcpy(&number, p, sizeof(number));
	return number;
}

#define MESSAGES 2000u
#define MESSAGE_SLOTS 16u
#define MESSAGE_MAX 2048u

/* EP-RECV-14 DTO-34 DTO-35 DTO-36 DTO-37 DTO-50: sequence numbers at both ends of each message */
static void post_send__long_stream__received_in_order(void **state)
{
	struct rig *rig = *state;
	uint32_t sent = 0, sent_done = 0, received = 0;

	for (uint32_t i = 0; i < MESSAGE_SLOTS; i++)
		post_recv(&rig->b, dt_seg(&rig->y, i * MESSAGE_MAX, MESSAGE_MAX), i);
	while (received < MESSAGES) {
		while (sent < MESSAGES && sent - sent_done < MESSAGE_SLOTS) {
			const size_t at = sent % MESSAGE_SLOTS * MESSAGE_MAX;
			const size_t len = 8 + sent * 37 % (MESSAGE_MAX - 8);

			put_number(rig->x.p + at, sent);
			put_number(rig->x.p + at + len - 4, ~sent);
			post_send(&rig->a, dt_seg(&rig->x, at, len), sent, 0);
			sent++;
		}
		const size_t at = received % MESSAGE_SLOTS * MESSAGE_MAX;
		const size_t len = 8 + received * 37 % (MESSAGE_MAX - 8);

		expect_received(&rig->b, received, len);
		assert_int_equal(get_number(rig->y.p + at), received);
		assert_int_equal(get_number(rig->y.p + at + len - 4), ~received);
		received++;
		post_recv(&rig->b, dt_seg(&rig->y, at, MESSAGE_MAX), received + MESSAGE_SLOTS - 1);
		expect_sent(&rig->a, sent_done, 8 + sent_done * 37 % (MESSAGE_MAX - 8));
		sent_done++;
	}
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
}

/*
 * EP-RDMAR-36 DTO-37 DTO-42 DTO-43 DTO-119: one queue with requests of all kinds, delayed by its
 * first Send
 */
static void post__all_kinds_mixed__complete_in_posting_order(void **state)
{
	struct rig *rig = *state;
	const uint64_t n = (uint64_t)rig->attr_a.max_request_dtos - 1;
	uint64_t sends = 0;

	for (int round = 0; round < 10; round++) {
		post_send(&rig->a, dt_seg(&rig->x, 0, 10), 1000, 0);
		for (uint64_t i = 0; i < n; i++) {
			const size_t len = i % 5 == 0 ? 0 : mixed[(i + (size_t)round) % 10] / 2;

			if (i % 3 == 0 && ++sends)
				post_send(&rig->a, dt_seg(&rig->x, 0, len), i, 0);
			else if (i % 3 == 1)
				post_write(&rig->a, dt_seg(&rig->x, 0, len),
					   dt_rseg(&rig->y, 20000, len), i, 0);
			else
				post_read(&rig->a, dt_seg(&rig->x, 40000, len),
					  dt_rseg(&rig->y, 40000, len), i, 0);
		}
		if (round == 0)
			dt_stays_empty(rig->a.request);
		for (uint64_t i = 0; i < sends + 1; i++)
			post_recv(&rig->b, dt_seg(&rig->y, 0, 20000), i);
		expect_sent(&rig->a, 1000, 10);
		for (uint64_t i = 0; i < n; i++)
			expect_request(&rig->a, i, DAT_DTO_SUCCESS);
		for (uint64_t i = 0; i < sends + 1; i++)
			expect_received(&rig->b, i, DT_ANY_LEN);
		sends = 0;
	}
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
}

/* DTO-38 DTO-39: the data by RDMA Write, the notification by Send, without waiting in between */
static void post_send__after_writes__data_are_visible(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < 200; round++) {
		const size_t big = mixed[round % COUNT_OF(mixed)];

		post_recv(&rig->b, dt_seg(&rig->y, 0, 64), round);
		dt_fill(rig->x.p + 100, big, round);
		dt_fill(rig->x.p + 60000, 200, ~round);
		post_write(&rig->a, dt_seg(&rig->x, 100, big), dt_rseg(&rig->y, 100, big), 1, 0);
		post_write(&rig->a, dt_seg(&rig->x, 60000, 200), dt_rseg(&rig->y, 60000, 200), 2,
			   DAT_COMPLETION_SUPPRESS_FLAG);
		post_send(&rig->a, dt_seg(&rig->x, 0, round % 2 ? 64 : 0), 3, 0);
		expect_received(&rig->b, round, round % 2 ? 64 : 0);
		dt_check_pattern(rig->y.p + 100, big, round);
		dt_check_pattern(rig->y.p + 60000, 200, ~round);
		expect_sent(&rig->a, 1, big);
		expect_sent(&rig->a, 3, round % 2 ? 64 : 0);
	}
}

/* DTO-40 */
static void post_rdma_write__same_bytes_twice__later_data_remain(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < 100; round++) {
		const size_t len = mixed[round % COUNT_OF(mixed)];

		memset(rig->x.p, (int)(round % 100), len);
		memset(rig->x.p + 32000, (int)(round % 100 + 100), len);
		post_write(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, 0, len), 1, 0);
		post_write(&rig->a, dt_seg(&rig->x, 32000, len), dt_rseg(&rig->y, 0, len), 2, 0);
		expect_sent(&rig->a, 1, len);
		expect_sent(&rig->a, 2, len);
		dt_check_bytes(rig->y.p, len, (unsigned char)(round % 100 + 100));
	}
}

/* DTO-41 */
static void post_rdma_read__after_write__returns_written_data(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < 100; round++) {
		const size_t len = mixed[round % COUNT_OF(mixed)];

		dt_fill(rig->x.p, len, round);
		memset(rig->x.p + 32000, 0, len);
		post_write(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, 0, len), 1, 0);
		post_read(&rig->a, dt_seg(&rig->x, 32000, len), dt_rseg(&rig->y, 0, len), 2, 0);
		expect_sent(&rig->a, 1, len);
		expect_sent(&rig->a, 2, len);
		dt_check_pattern(rig->x.p + 32000, len, round);
	}
}

/* --- a shared EVD --- */

#define SHARED_EPS 4

/* DTO-47 EVD-STREAM-01 COMPAT-08: four endpoints, receive and request streams, one EVD */
static void evd_dequeue__many_streams__each_in_order(void **state)
{
	struct rig *rig = *state;
	DAT_EVD_HANDLE evd = dt_evd_create(&rig->ia, 1000, DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE conn = dt_evd_create(&rig->ia, 64, DAT_EVD_CONNECTION_FLAG);
	struct dt_ep ep[SHARED_EPS];
	uint64_t next[SHARED_EPS][2] = {{0}};
	DAT_DTO_COMPLETION_EVENT_DATA dto;

	for (int i = 0; i < SHARED_EPS; i++) {
		ep[i] = (struct dt_ep){.recv = evd, .request = evd, .conn = conn};
		dt_ok(dat_ep_create(rig->ia.ia, rig->ia.pz, evd, evd, conn, &rig->attr_a,
				    &ep[i].ep));
	}
	/* the harness cannot distinguish their connection events: one pair after the other */
	for (int i = 0; i < SHARED_EPS; i += 2) {
		struct dt_listener listener;

		dt_listen(&rig->ia, &listener);
		dt_connect(&rig->ia, ep[i].ep, listener.qual);
		dt_ok(dat_cr_accept(dt_request(&listener), ep[i + 1].ep, 0, NULL));
		assert_int_equal(dt_event(conn).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
		assert_int_equal(dt_event(conn).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_unlisten(&listener);
	}
	for (uint64_t n = 0; n < 20; n++)
		for (int i = 0; i < SHARED_EPS; i++)
			post_recv(&ep[i], dt_seg(&rig->y, 64 * (size_t)i, 64), n);
	for (uint64_t n = 0; n < 20; n++)
		for (int i = 0; i < SHARED_EPS; i++)
			post_send(&ep[i], dt_seg(&rig->x, 0, n), 1000 + n, 0);
	for (int events = 0; events < 20 * SHARED_EPS * 2; events++) {
		int i = 0;

		dto = dt_event(evd).event_data.dto_completion_event_data;
		while (i < SHARED_EPS && ep[i].ep != dto.ep_handle)
			i++;
		assert_true(i < SHARED_EPS);
		const bool is_send = dto.user_cookie.as_64 >= 1000;
		const uint64_t n = next[i][is_send]++;

		assert_int_equal(dto.status, DAT_DTO_SUCCESS);
		assert_true(dto.user_cookie.as_64 == (is_send ? 1000 + n : n));
		assert_true(dto.transfered_length == n);
	}
	dt_stays_empty(evd);
}

/* --- what a waiting message delays --- */

/* DTO-105 DTO-104 COMPAT-04: later Sends of the endpoint wait, other connections do not */
static void post_send__message_waits__other_connections_work(void **state)
{
	struct rig *rig = *state;
	struct rig other = *rig;

	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &other.a);
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &other.b);
	dt_ep_link(&rig->ia, &other.a, &other.b);
	for (uint64_t i = 0; i < 20; i++)
		post_send(&rig->a, dt_seg(&rig->x, 0, 3000), i, 0);
	for (int i = 0; i < 50; i++)
		rig_works(&other);
	dt_no_event(rig->a.request);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 3000), 0); /* each Receive takes one message */
	expect_received(&rig->b, 0, 3000);
	expect_sent(&rig->a, 0, 3000);
	dt_stays_empty(rig->a.request);
	dt_no_event(rig->b.recv);
	for (uint64_t i = 1; i < 20; i++) {
		post_recv(&rig->b, dt_seg(&rig->y, 0, 3000), i);
		expect_received(&rig->b, i, 3000);
		expect_sent(&rig->a, i, 3000);
	}
}

/* DTO-117: requests of the side where a message waits complete, Reads included */
static void post__incoming_message_waits__requests_complete(void **state)
{
	struct rig *rig = *state;
	static const size_t sizes[] = {1024, 20000, 60000};

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		for (int n = 0; n < 3; n++)
			post_send(&rig->a, dt_seg(&rig->x, 0, sizes[i]), 1, 0);
		post_read(&rig->b, dt_seg(&rig->y, 0, 30000), dt_rseg(&rig->x, 0, 30000), 2, 0);
		expect_sent(&rig->b, 2, 30000);
		assert_memory_equal(rig->y.p, rig->x.p, 30000);
		post_write(&rig->b, dt_seg(&rig->y, 0, 4000), dt_rseg(&rig->x, 61000, 4000), 3, 0);
		expect_sent(&rig->b, 3, 4000);
		post_recv(&rig->a, dt_seg(&rig->x, 65000, 100), 4);
		post_send(&rig->b, dt_seg(&rig->y, 0, 100), 5, 0);
		expect_sent(&rig->b, 5, 100);
		expect_received(&rig->a, 4, 100);
		dt_no_event(rig->a.request);
		for (int n = 0; n < 3; n++) {
			post_recv(&rig->b, dt_seg(&rig->y, 0, RIG_LEN), 6);
			expect_received(&rig->b, 6, sizes[i]);
			expect_sent(&rig->a, 1, sizes[i]);
		}
	}
}

/* DTO-117: a waiting message does not delay a disconnect there */
static void ep_disconnect__incoming_message_waits__completes(void **state)
{
	struct rig *rig = *state;

	for (int flags = 0; flags < 2; flags++) {
		rig_link(rig);
		for (int n = 0; n < 3; n++)
			post_send(&rig->a, dt_seg(&rig->x, 0, 10000), 1, 0);
		dt_ok(dat_ep_disconnect(rig->b.ep, (DAT_CLOSE_FLAGS)flags));
		expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
		for (int n = 0; n < 3; n++)
			expect_request(&rig->a, 1, DAT_DTO_ERR_FLUSHED);
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
	}
}

#define ANSWERS 8u

/* Polls for the next event, as a server does that answers at once. */
static void poll_for(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	DAT_EVENT event;

	while (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) == DAT_QUEUE_EMPTY)
		assert_true(dt_now_us() < end);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
}

static void send_to_b(struct rig *rig, uint64_t cookie)
{
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), cookie);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), cookie, 0);
	poll_for(rig->b.recv, cookie);
}

/*
 * DTO-117: a's Sends complete although b's answers wait for Receives that a posts only after its
 * Sends complete.
 */
static void send__answers_wait_for_receives__completes(void **state)
{
	struct rig *rig = *state;

	/* until polling has put both sides on the fast path */
	for (uint64_t i = 0; i < 3000; i++) {
		send_to_b(rig, i);
		post_recv(&rig->a, dt_seg(&rig->x, 1000, 8), i);
		post_send(&rig->b, dt_seg(&rig->y, 1000, 8), i, 0);
		poll_for(rig->a.recv, i);
		poll_for(rig->a.request, i);
		poll_for(rig->b.request, i);
	}
	post_send(&rig->b, dt_seg(&rig->y, 1000, 8), 0xB00, 0);
	for (uint64_t i = 0; i < ANSWERS; i++) {
		send_to_b(rig, 0xA00 + i);
		post_send(&rig->b, dt_seg(&rig->y, 1000, 8), 0xB01 + i, 0);
		poll_for(rig->a.request, 0xA00 + i);
	}
	for (uint64_t i = 0; i <= ANSWERS; i++) {
		post_recv(&rig->a, dt_seg(&rig->x, 1000, 8), 0xD00 + i);
		expect_received(&rig->a, 0xD00 + i, 8);
		expect_sent(&rig->b, 0xB00 + i, 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post_send__long_stream__received_in_order),
		rig_test(post__all_kinds_mixed__complete_in_posting_order),
		rig_test(post_send__after_writes__data_are_visible),
		rig_test(post_rdma_write__same_bytes_twice__later_data_remain),
		rig_test(post_rdma_read__after_write__returns_written_data),
		rig_test_bare(evd_dequeue__many_streams__each_in_order),
		rig_test(post_send__message_waits__other_connections_work),
		rig_test(post__incoming_message_waits__requests_complete),
		rig_test_bare(ep_disconnect__incoming_message_waits__completes),
		rig_test(send__answers_wait_for_receives__completes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
