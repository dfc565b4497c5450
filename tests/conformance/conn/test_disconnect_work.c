// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_disconnect with operations posted: what completes, how, and in which order relative to the
 * DISCONNECTED event; graceful disconnects from a slow peer.
 */
#include "conn_util.h"

#define OPS 8

/* All streams of the endpoint use this EVD. */
static void make_with_one_evd(struct conn_fixture *f, struct dt_ep *ep_out)
{
	ep_out->recv = dt_evd_create(
		&f->ia, 256, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_EVD_CONNECTION_FLAG);
	ep_out->request = ep_out->recv;
	ep_out->conn = ep_out->recv;
	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, ep_out->recv, ep_out->request, ep_out->conn, NULL,
			    &ep_out->ep));
}

/* Counts the completions of OPS operations posted in order, with cookies from `first`. */
struct tally {
	uint64_t next;
	unsigned int succeeded, failed;
};

/* They arrive in posting order, and none succeeds after a failure. */
static void tally_add(struct tally *tally, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;

	assert_int_equal(event->event_number, DAT_DTO_COMPLETION_EVENT);
	assert_true(dto->user_cookie.as_64 == tally->next);
	tally->next++;
	if (dto->status != DAT_DTO_SUCCESS) {
		tally->failed++;
		return;
	}
	assert_int_equal(tally->failed, 0);
	tally->succeeded++;
}

static void tally_evd(struct tally *tally, DAT_EVD_HANDLE evd, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		DAT_EVENT event;

		dt_ok(dat_evd_dequeue(evd, &event)); /* queued before the DISCONNECTED event */
		tally_add(tally, &event);
	}
	dt_no_event(evd);
}

static void post_sends(struct conn_fixture *f, struct dt_ep *from, uint64_t first,
		       unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		conn_post_send(from->ep, &f->buf, CONN_A_SENDS_AT, first + i);
}

static void post_recvs(struct conn_fixture *f, struct dt_ep *to, uint64_t first, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		conn_post_recv(to->ep, &f->buf, CONN_B_RECEIVES_AT, first + i);
}

/* --- abrupt --- */

/* EP-DISC-09 EP-DISC-10 EP-DISC-12 EP-DISC-33 EP-DISC-35 EP-STATE-53 EP-STATE-73 EP-STATE-74
 * EP-STATE-76 EP-STATE-72 */
static void ep_disconnect__abrupt_with_work__each_completes_once(void **state)
{
	struct conn_fixture *f = *state;

	for (unsigned int willing = 0; willing <= OPS; willing += OPS / 2) {
		struct tally sent = {.next = 100}, received = {.next = 200}, own = {.next = 300};
		struct tally theirs = {.next = 400};

		conn_link(f, &f->a, &f->b);
		post_recvs(f, &f->b, 200, willing);
		post_recvs(f, &f->a, 300, OPS);
		post_sends(f, &f->a, 100, OPS);
		dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		tally_evd(&sent, f->a.request, OPS);
		tally_evd(&own, f->a.recv, OPS);
		assert_int_equal(own.failed, OPS);
		assert_true(sent.succeeded <= willing);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		tally_evd(&received, f->b.recv, willing);
		/* a Send succeeds only after its message was received (DTO-52) */
		assert_true(received.succeeded >= sent.succeeded);
		tally_evd(&theirs, f->b.request, 0);
		conn_stays_quiet(&f->a);
		conn_stays_quiet(&f->b);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
}

/* EP-DISC-10: requests that had not started are flushed with that status */
static void ep_disconnect__abrupt_not_started__flushed(void **state)
{
	struct conn_fixture *f = *state;

	conn_link(f, &f->a, &f->b);
	post_sends(f, &f->a, 1, OPS);
	post_sends(f, &f->b, 51, OPS);
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (uint64_t i = 0; i < OPS; i++) {
		dt_expect_dto(f->a.request, f->a.ep, 1 + i, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
		dt_expect_dto(f->b.request, f->b.ep, 51 + i, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
	}
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
}

/* --- graceful --- */

/* Starts a graceful disconnect of a with OPS Sends for which b has no Receive. */
static void begin_graceful(struct conn_fixture *f)
{
	conn_link(f, &f->a, &f->b);
	post_recvs(f, &f->a, 300, 2);
	post_sends(f, &f->a, 100, OPS);
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
}

/* EP-DISC-13 EP-DISC-14 EP-DISC-15 EP-DISC-16 EP-DISC-41 EP-STATE-35 EP-STATE-36 EP-STATE-75 */
static void ep_disconnect__graceful_willing_peer__all_succeed(void **state)
{
	struct conn_fixture *f = *state;
	struct tally received = {.next = 200};

	begin_graceful(f);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_CONNECTED);
	post_recvs(f, &f->b, 200, OPS + 2);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (uint64_t i = 0; i < OPS; i++)
		dt_expect_dto(f->a.request, f->a.ep, 100 + i, DAT_DTO_SUCCESS, DT_ANY_LEN);
	conn_expect_flushes(&f->a, 300, 2);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	tally_evd(&received, f->b.recv, OPS + 2);
	assert_int_equal(received.succeeded, OPS);
	assert_int_equal(received.failed, 2);
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
}

/* EP-DISC-18 EP-STATE-37 EP-DISC-41 */
static void ep_disconnect__abrupt_while_graceful__ends_now(void **state)
{
	struct conn_fixture *f = *state;
	struct tally sent = {.next = 100};

	begin_graceful(f);
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	tally_evd(&sent, f->a.request, OPS);
	assert_int_equal(sent.failed, OPS);
	conn_expect_flushes(&f->a, 300, 2);
	conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
}

/* EP-DISC-19 EP-STATE-61 */
static void ep_disconnect__graceful_twice__no_effect(void **state)
{
	struct conn_fixture *f = *state;

	begin_graceful(f);
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	conn_stays_quiet(&f->a);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	post_recvs(f, &f->b, 200, OPS);
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (uint64_t i = 0; i < OPS; i++)
		dt_expect_dto(f->a.request, f->a.ep, 100 + i, DAT_DTO_SUCCESS, DT_ANY_LEN);
	conn_expect_flushes(&f->a, 300, 2);
	conn_stays_quiet(&f->a);
}

/* EP-DISC-13: RDMA is carried out before the end too */
static void ep_disconnect__graceful_with_rdma__data_there(void **state)
{
	struct conn_fixture *f = *state;

	for (uint32_t round = 1; round <= 20; round++) {
		DAT_LMR_TRIPLET from = dt_seg(&f->buf, CONN_A_SENDS_AT, CONN_BUF_LEN);
		DAT_LMR_TRIPLET into = dt_seg(&f->buf, CONN_A_RECEIVES_AT, CONN_BUF_LEN);
		const DAT_RMR_TRIPLET to = dt_rseg(&f->buf, CONN_B_RECEIVES_AT, CONN_BUF_LEN);
		const DAT_RMR_TRIPLET source = dt_rseg(&f->buf, CONN_B_SENDS_AT, CONN_BUF_LEN);

		conn_link(f, &f->a, &f->b);
		dt_fill(f->buf.p + CONN_A_SENDS_AT, CONN_BUF_LEN, round);
		dt_fill(f->buf.p + CONN_B_SENDS_AT, CONN_BUF_LEN, round + 100);
		dt_ok(dat_ep_post_rdma_write(f->a.ep, 1, &from, dt_cookie(1), &to,
					     DAT_COMPLETION_DEFAULT_FLAG));
		dt_ok(dat_ep_post_rdma_read(f->a.ep, 1, &into, dt_cookie(2), &source,
					    DAT_COMPLETION_DEFAULT_FLAG));
		dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_expect_dto(f->a.request, f->a.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
		dt_expect_dto(f->a.request, f->a.ep, 2, DAT_DTO_SUCCESS, DT_ANY_LEN);
		conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_check_pattern(f->buf.p + CONN_B_RECEIVES_AT, CONN_BUF_LEN, round);
		dt_check_pattern(f->buf.p + CONN_A_RECEIVES_AT, CONN_BUF_LEN, round + 100);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
}

/* EP-DISC-16: the messages are received before the disconnect is reported */
static void ep_disconnect__graceful_after_sends__messages_come_first(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_ep one;

	make_with_one_evd(f, &one);
	for (unsigned int round = 0; round < 20; round++) {
		conn_link(f, &f->a, &one);
		post_recvs(f, &one, 1, OPS + 1);
		post_sends(f, &f->a, 100, OPS);
		dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
		for (uint64_t i = 1; i <= OPS; i++)
			dt_expect_dto(one.recv, one.ep, i, DAT_DTO_SUCCESS, CONN_BUF_LEN);
		dt_expect_dto(one.recv, one.ep, OPS + 1, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
		conn_expect_failure(&one, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_drain(f->a.request);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(one.ep));
	}
}

/* EP-DISC-21 EP-DISC-22 EP-DISC-35 CONN-EVT-06 CONN-EVT-58 CR-ACCEPT-24 */
static void ep_disconnect__one_evd_for_all__disconnected_is_last(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_ep a, b;

	make_with_one_evd(f, &a);
	make_with_one_evd(f, &b);
	for (unsigned int round = 0; round < 20; round++) {
		struct dt_ep *const sides[] = {&a, &b};

		post_recvs(f, &b, 500, OPS);
		conn_link(f, &a, &b); /* ESTABLISHED is the first event on both */
		post_recvs(f, &a, 500, OPS);
		post_sends(f, &a, 100, OPS / 2);
		post_sends(f, &b, 100, OPS / 2);
		dt_ok(dat_ep_disconnect(sides[round & 1]->ep, DAT_CLOSE_ABRUPT_FLAG));
		for (size_t side = 0; side < COUNT_OF(sides); side++) {
			struct tally sent = {.next = 100}, received = {.next = 500};

			for (unsigned int i = 0; i < OPS + OPS / 2; i++) {
				const DAT_EVENT event = dt_event(sides[side]->recv);
				const bool is_recv = event.event_data.dto_completion_event_data
							     .user_cookie.as_64 >= 500;

				tally_add(is_recv ? &received : &sent, &event);
			}
			conn_expect_failure(sides[side], DAT_CONNECTION_EVENT_DISCONNECTED);
			dt_stays_empty(sides[side]->recv);
		}
		dt_ok(dat_ep_reset(a.ep));
		dt_ok(dat_ep_reset(b.ep));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(ep_disconnect__abrupt_with_work__each_completes_once),
		conn_test(ep_disconnect__abrupt_not_started__flushed),
		conn_test(ep_disconnect__graceful_willing_peer__all_succeed),
		conn_test(ep_disconnect__abrupt_while_graceful__ends_now),
		conn_test(ep_disconnect__graceful_twice__no_effect),
		conn_test(ep_disconnect__graceful_with_rdma__data_there),
		conn_test(ep_disconnect__graceful_after_sends__messages_come_first),
		conn_test(ep_disconnect__one_evd_for_all__disconnected_is_last),
	};

	return cmocka_run_group_tests_name("ep_disconnect_work", tests, NULL, NULL);
}
