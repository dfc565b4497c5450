// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_evd_wait on EVDs that take completions: thresholds with each kind of completion flags, and
 * completions that do not notify.
 */
#include <stdlib.h>

#include "evd_util.h"

struct flags_case {
	DAT_COMPLETION_FLAGS recv, request;
	bool is_recv_controlled, is_request_controlled;
};

/* A pair whose side a has these flags. */
static void pair_open(struct dt_pair *pair, DAT_COMPLETION_FLAGS recv, DAT_COMPLETION_FLAGS request)
{
	struct dt_ia probe;
	DAT_EP_ATTR attr;

	dt_ia_open(&probe);
	dt_ep_attr(&probe, &attr);
	dt_ia_close(&probe);
	attr.recv_completion_flags = recv;
	attr.request_completion_flags = request;
	dt_pair_open_with(pair, &attr, NULL);
}

/* The waiter was released with the completion of that cookie; nmore others were queued. */
static void expect_released(struct evd_waiter *waiter, uint64_t cookie, DAT_COUNT nmore)
{
	dt_ok(evd_waiter_join(waiter));
	assert_int_equal(waiter->event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(waiter->event.event_data.dto_completion_event_data.user_cookie.as_64,
			 cookie);
	assert_int_equal(waiter->nmore, nmore);
}

static void check_threshold(DAT_EVD_HANDLE evd, bool is_controlled)
{
	const DAT_RETURN expected =
		is_controlled ? DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD)
			      : DT_ERROR(DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE);
	DAT_EVENT event;
	DAT_COUNT nmore;

	dt_fails(dat_evd_wait(evd, 0, 1, &event, &nmore), DAT_TIMEOUT_EXPIRED);
	dt_returns(dat_evd_wait(evd, 0, 2, &event, &nmore), expected);
	dt_returns(dat_evd_wait(evd, 0, 16, &event, &nmore), expected);
	dt_fails_with(dat_evd_wait(evd, 0, 0, &event, &nmore), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
}

/* EVD-WAIT-13 EVD-WAIT-14 */
static void evd_wait__consumer_controlled_stream__threshold_must_be_one(void **state)
{
	static const struct flags_case cases[] = {
		{DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG, true, false},
		{DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG, true, false},
		{DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG, false, true},
		{DAT_COMPLETION_EVD_THRESHOLD_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG, false,
		 false},
		{DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_DEFAULT_FLAG, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dt_pair pair;

		pair_open(&pair, cases[i].recv, cases[i].request);
		check_threshold(pair.a.recv, cases[i].is_recv_controlled);
		check_threshold(pair.a.request, cases[i].is_request_controlled);
		check_threshold(pair.a.conn, false);
		dt_pair_close(&pair);
	}
}

/* EVD-WAIT-13: The rule ends with the endpoint. */
static void evd_wait__controlled_stream_gone__any_threshold(void **state)
{
	struct evd_fixture *f = *state;
	struct dt_ep ep;
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	DAT_COUNT nmore;

	dt_ep_attr(&f->ia, &attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	dt_ep_create(&f->ia, f->ia.pz, &attr, &ep);
	dt_fails_with(dat_evd_wait(ep.request, 0, 2, &event, &nmore), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD);
	dt_ok(dat_ep_free(ep.ep));
	dt_fails(dat_evd_wait(ep.request, 0, 2, &event, &nmore), DAT_TIMEOUT_EXPIRED);
}

/* An endpoint whose Receives and requests complete on one EVD, connected to b. */
struct mixed {
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;
	struct dt_ep b;
};

static void mixed_open(struct mixed *mixed, struct evd_fixture *f, DAT_COMPLETION_FLAGS recv,
		       DAT_COMPLETION_FLAGS request)
{
	struct dt_ep a;
	DAT_EP_ATTR attr;

	dt_ep_attr(&f->ia, &attr);
	attr.recv_completion_flags = recv;
	attr.request_completion_flags = request;
	mixed->evd = dt_evd_create(&f->ia, 64, DAT_EVD_DEFAULT_FLAG);
	a = (struct dt_ep){.recv = mixed->evd, .request = mixed->evd};
	a.conn = dt_evd_create(&f->ia, 4, DAT_EVD_CONNECTION_FLAG);
	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, a.recv, a.request, a.conn, &attr, &a.ep));
	mixed->ep = a.ep;
	dt_ep_create(&f->ia, f->ia.pz, NULL, &mixed->b);
	dt_ep_link(&f->ia, &a, &mixed->b);
}

/* A Send whose Receive at b is complete. */
static void mixed_send(struct mixed *mixed, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	dt_ok(dat_ep_post_recv(mixed->b.ep, 0, NULL, dt_cookie(0), DAT_COMPLETION_DEFAULT_FLAG));
	dt_ok(dat_ep_post_send(mixed->ep, 0, NULL, dt_cookie(cookie), flags));
	dt_expect_dto(mixed->b.recv, mixed->b.ep, 0, DAT_DTO_SUCCESS, 0);
}

/* A Receive that a Send of b completes. */
static void mixed_recv(struct mixed *mixed, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	dt_ok(dat_ep_post_recv(mixed->ep, 0, NULL, dt_cookie(cookie), flags));
	dt_ok(dat_ep_post_send(mixed->b.ep, 0, NULL, dt_cookie(0), DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(mixed->b.request, mixed->b.ep, 0, DAT_DTO_SUCCESS, 0);
}

/* EP-CREATE-71 EP-CREATE-72 EVD-WAIT-28 EVD-WAIT-29: Receives wake, unsignalled requests do not */
static void evd_wait__unsignalled_requests_beside_receives__each_by_its_flags(void **state)
{
	struct evd_waiter waiter = {0};
	struct mixed mixed;

	mixed_open(&mixed, *state, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG);
	evd_waiter_start(&waiter, mixed.evd, DAT_TIMEOUT_INFINITE, 1);
	mixed_send(&mixed, 1, DAT_COMPLETION_UNSIGNALLED_FLAG);
	mixed_send(&mixed, 2, DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_SUPPRESS_FLAG);
	evd_waiter_stays(&waiter);
	mixed_recv(&mixed, 3, DAT_COMPLETION_DEFAULT_FLAG);
	expect_released(&waiter, 1, 1);
	dt_expect_dto(mixed.evd, mixed.ep, 3, DAT_DTO_SUCCESS, 0);
	/* a signalled one wakes */
	memset(&waiter, 0, sizeof(waiter));
	evd_waiter_start(&waiter, mixed.evd, DAT_TIMEOUT_INFINITE, 1);
	mixed_send(&mixed, 4, DAT_COMPLETION_DEFAULT_FLAG);
	dt_ok(evd_waiter_join(&waiter));
	assert_int_equal(waiter.event.event_data.dto_completion_event_data.user_cookie.as_64, 4);
	dt_no_event(mixed.evd);
}

/* EP-CREATE-71 EP-CREATE-72 EVD-WAIT-28 EVD-WAIT-29: requests wake, unsignalled Receives do not */
static void evd_wait__unsignalled_receives_beside_requests__each_by_its_flags(void **state)
{
	struct evd_waiter waiter = {0};
	struct mixed mixed;

	mixed_open(&mixed, *state, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG);
	evd_waiter_start(&waiter, mixed.evd, DAT_TIMEOUT_INFINITE, 1);
	mixed_recv(&mixed, 1, DAT_COMPLETION_UNSIGNALLED_FLAG);
	evd_waiter_stays(&waiter);
	mixed_send(&mixed, 2, DAT_COMPLETION_DEFAULT_FLAG);
	expect_released(&waiter, 1, 1);
	dt_expect_dto(mixed.evd, mixed.ep, 2, DAT_DTO_SUCCESS, 0);
	dt_no_event(mixed.evd);
}

/* EP-CREATE-72 EVD-WAIT-13 DTO-29: as long as one of the streams is unsignalled */
static void evd_wait__one_of_the_streams_unsignalled__threshold_must_be_one(void **state)
{
	struct evd_fixture *f = *state;
	const DAT_RETURN refused =
		DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD);
	DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 16, DAT_EVD_DEFAULT_FLAG);
	DAT_EP_HANDLE first, second;
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	DAT_COUNT nmore;

	dt_ep_attr(&f->ia, &attr);
	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, evd, evd, evd, &attr, &first));
	dt_fails(dat_evd_wait(evd, 0, 2, &event, &nmore), DAT_TIMEOUT_EXPIRED);
	for (int i = 0; i < 2; i++) {
		attr.recv_completion_flags = i ? DAT_COMPLETION_UNSIGNALLED_FLAG : 0;
		attr.request_completion_flags = i ? 0 : DAT_COMPLETION_UNSIGNALLED_FLAG;
		dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, evd, evd, evd, &attr, &second));
		dt_returns(dat_evd_wait(evd, 0, 2, &event, &nmore), refused);
		dt_fails(dat_evd_wait(evd, 0, 1, &event, &nmore), DAT_TIMEOUT_EXPIRED);
		dt_ok(dat_ep_free(second));
		dt_fails(dat_evd_wait(evd, 0, 2, &event, &nmore), DAT_TIMEOUT_EXPIRED);
	}
	dt_ok(dat_ep_free(first));
}

/* EVD-WAIT-15 */
static void evd_wait__threshold_flag_or_default__third_completion_releases(void **state)
{
	static const DAT_COMPLETION_FLAGS flags[] = {DAT_COMPLETION_DEFAULT_FLAG,
						     DAT_COMPLETION_EVD_THRESHOLD_FLAG};
	struct evd_fixture *f = *state;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		DAT_EVD_HANDLE recv = dt_evd_create(&f->ia, 8, DAT_EVD_DTO_FLAG);
		DAT_EVD_HANDLE conn = dt_evd_create(&f->ia, 8, DAT_EVD_CONNECTION_FLAG);
		struct evd_waiter waiter = {0};
		DAT_EP_HANDLE ep;
		DAT_EP_ATTR attr;

		dt_ep_attr(&f->ia, &attr);
		attr.max_request_dtos = 0;
		attr.recv_completion_flags = flags[i];
		ep = evd_flusher(&f->ia, recv, conn, &attr);
		evd_waiter_start(&waiter, recv, DAT_TIMEOUT_INFINITE, 3);
		evd_flush(ep, 1);
		evd_flush(ep, 2);
		evd_waiter_stays(&waiter);
		evd_flush(ep, 3);
		expect_released(&waiter, 1, 2);
	}
}

/* Sends from a to a Receive of b. Returns when b has received it. */
static void send_one(struct dt_pair *pair, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	dt_ok(dat_ep_post_recv(pair->b.ep, 0, NULL, dt_cookie(0), DAT_COMPLETION_DEFAULT_FLAG));
	dt_ok(dat_ep_post_send(pair->a.ep, 0, NULL, dt_cookie(cookie), flags));
	dt_expect_dto(pair->b.recv, pair->b.ep, 0, DAT_DTO_SUCCESS, 0);
}

/* A call that finds the event queued takes it, although it did not notify. */
static bool takes_one_queued(void *arg)
{
	DAT_EVENT event;
	DAT_COUNT nmore = 0;

	return dat_evd_wait(arg, 0, 1, &event, &nmore) == DAT_SUCCESS;
}

/* EVD-WAIT-28: neither released nor lost */
static void evd_wait__unsignalled_completion__times_out_and_counts_it(void **state)
{
	struct dt_pair pair;
	struct evd_waiter waiter = {0};

	(void)state;
	pair_open(&pair, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG);
	evd_waiter_start(&waiter, pair.a.request, 1000000, 1);
	send_one(&pair, 1, DAT_COMPLETION_UNSIGNALLED_FLAG);
	dt_fails(evd_waiter_join(&waiter), DAT_TIMEOUT_EXPIRED);
	assert_int_equal(waiter.nmore, 1);
	dt_expect_dto(pair.a.request, pair.a.ep, 1, DAT_DTO_SUCCESS, 0);
	dt_pair_close(&pair);
}

/* EVD-WAIT-28 EVD-WAIT-29 */
static void evd_wait__notifying_after_unsignalled__released_with_the_first(void **state)
{
	struct dt_pair pair;
	struct evd_waiter waiter = {0};

	(void)state;
	pair_open(&pair, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG);
	evd_waiter_start(&waiter, pair.a.request, DAT_TIMEOUT_INFINITE, 1);
	send_one(&pair, 1, DAT_COMPLETION_UNSIGNALLED_FLAG);
	evd_waiter_stays(&waiter);
	send_one(&pair, 2, DAT_COMPLETION_DEFAULT_FLAG);
	expect_released(&waiter, 1, 1);
	dt_expect_dto(pair.a.request, pair.a.ep, 2, DAT_DTO_SUCCESS, 0);
	dt_pair_close(&pair);
}

/* EVD-WAIT-30 */
static void evd_wait__unsignalled_event_queued_before__returned_at_once(void **state)
{
	struct dt_pair pair;
	DAT_EVENT event;
	DAT_COUNT nmore;

	(void)state;
	pair_open(&pair, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG);
	send_one(&pair, 1, DAT_COMPLETION_UNSIGNALLED_FLAG);
	dt_until(takes_one_queued, pair.a.request);
	dt_fails(dat_evd_wait(pair.a.request, 0, 1, &event, &nmore), DAT_TIMEOUT_EXPIRED);
	dt_pair_close(&pair);
}

/* EVD-WAIT-28 EVD-WAIT-29: Receives that the sender does not solicit */
static void evd_wait__unsolicited_receive__waits_for_a_solicited_one(void **state)
{
	struct dt_pair pair;
	struct evd_waiter waiter = {0};

	(void)state;
	pair_open(&pair, DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG);
	for (uint64_t i = 1; i <= 2; i++)
		dt_ok(dat_ep_post_recv(pair.a.ep, 0, NULL, dt_cookie(i),
				       DAT_COMPLETION_DEFAULT_FLAG));
	evd_waiter_start(&waiter, pair.a.recv, DAT_TIMEOUT_INFINITE, 1);
	dt_ok(dat_ep_post_send(pair.b.ep, 0, NULL, dt_cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(pair.b.request, pair.b.ep, 1, DAT_DTO_SUCCESS, 0);
	evd_waiter_stays(&waiter);
	dt_ok(dat_ep_post_send(pair.b.ep, 0, NULL, dt_cookie(2),
			       DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	dt_ok(evd_waiter_join(&waiter));
	assert_int_equal(waiter.event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	dt_expect_dto(pair.a.recv, pair.a.ep, 2, DAT_DTO_SUCCESS, 0);
	dt_expect_dto(pair.b.request, pair.b.ep, 2, DAT_DTO_SUCCESS, 0);
	dt_pair_close(&pair);
}

/* EVD-WAIT-29 DTO-22 DTO-74: A failure notifies with any flags. */
static void evd_wait__unsignalled_receive_flushed__released(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE recv = dt_evd_create(&f->ia, 8, DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE conn = dt_evd_create(&f->ia, 8, DAT_EVD_CONNECTION_FLAG);
	struct evd_waiter waiter = {0};
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	dt_ep_attr(&f->ia, &attr);
	attr.max_request_dtos = 0;
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	ep = evd_flusher(&f->ia, recv, conn, &attr);
	evd_waiter_start(&waiter, recv, DAT_TIMEOUT_INFINITE, 1);
	dt_ok(dat_ep_post_recv(ep, 0, NULL, dt_cookie(1), DAT_COMPLETION_UNSIGNALLED_FLAG));
	dt_ok(evd_waiter_join(&waiter));
	assert_int_equal(waiter.event.event_data.dto_completion_event_data.status,
			 DAT_DTO_ERR_FLUSHED);
}

#define UNSEEN_ROUNDS 100
#define UNSEEN_POLLS 2000 /* after which a process is known to poll */

/*
 * Is one round that finds the message enough? Polls are too slow under a sanitizer, and the kernel may
 * deliver a segment of TCP long after it was sent, in every round if others use the processors.
 */
static bool unseen_is_rare(void)
{
	const char *transport = getenv("DAT_TRANSPORT");

	return DT_SLOW || (transport && strcmp(transport, "tcp") == 0);
}

/*
 * EVD-WAIT-30 EVD-WAIT-31: what has arrived counts as queued although no call has seen it yet, so
 * that a completion that releases no waiter still satisfies the call. Not in every round: a thread
 * of the library may be about to queue it at this very moment.
 */
static void arrived_unseen(bool is_disabled)
{
	struct dt_pair pair;
	struct dt_buf buf;
	DAT_EVENT event;
	DAT_COUNT nmore;
	bool is_rare = unseen_is_rare();
	int found = 0;

	pair_open(&pair, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG);
	dt_buf_create(&pair.ia, pair.ia.pz, &buf, 64, DAT_MEM_PRIV_ALL_FLAG);
	if (is_disabled)
		dt_ok(dat_evd_disable(pair.a.recv));
	for (uint64_t i = 0; is_rare ? !found && i < 20 * UNSEEN_ROUNDS : i < UNSEEN_ROUNDS; i++) {
		DAT_LMR_TRIPLET to = dt_seg(&buf, 0, 8), from = dt_seg(&buf, 32, 8);
		DAT_RETURN ret;

		dt_ok(dat_ep_post_recv(pair.a.ep, 1, &to, dt_cookie(i),
				       DAT_COMPLETION_UNSIGNALLED_FLAG));
		/* a polling process is not woken for the next message */
		for (unsigned polls = 0; polls < UNSEEN_POLLS; polls++)
			dt_no_event(pair.a.recv);
		dt_ok(dat_ep_post_send(pair.b.ep, 1, &from, dt_cookie(i),
				       DAT_COMPLETION_DEFAULT_FLAG));
		if (dt_is_verbs()) /* only now it has arrived for sure */
			dt_expect_dto(pair.b.request, pair.b.ep, i, DAT_DTO_SUCCESS, 8);
		ret = dat_evd_wait(pair.a.recv, i % 8 ? 0 : 1000, 1, &event, &nmore);
		if (ret == DAT_SUCCESS) {
			assert_int_equal(nmore, 0);
			found++;
		} else {
			dt_fails(ret, DAT_TIMEOUT_EXPIRED);
			event = dt_event_poll(pair.a.recv);
		}
		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == i);
		if (!dt_is_verbs())
			dt_expect_dto(pair.b.request, pair.b.ep, i, DAT_DTO_SUCCESS, 8);
	}
	assert_true(found >= (is_rare ? 1 : UNSEEN_ROUNDS / 2));
	dt_buf_free(&buf);
	dt_pair_close(&pair);
}

static void evd_wait__unsignalled_message_unseen__returned_at_once(void **state)
{
	(void)state;
	arrived_unseen(false);
}

static void evd_wait__disabled_and_message_unseen__returned_at_once(void **state)
{
	(void)state;
	arrived_unseen(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evd_wait__consumer_controlled_stream__threshold_must_be_one),
		evd_test(evd_wait__controlled_stream_gone__any_threshold),
		evd_test(evd_wait__unsignalled_requests_beside_receives__each_by_its_flags),
		evd_test(evd_wait__unsignalled_receives_beside_requests__each_by_its_flags),
		evd_test(evd_wait__one_of_the_streams_unsignalled__threshold_must_be_one),
		evd_test(evd_wait__threshold_flag_or_default__third_completion_releases),
		cmocka_unit_test(evd_wait__unsignalled_completion__times_out_and_counts_it),
		cmocka_unit_test(evd_wait__notifying_after_unsignalled__released_with_the_first),
		cmocka_unit_test(evd_wait__unsignalled_event_queued_before__returned_at_once),
		cmocka_unit_test(evd_wait__unsolicited_receive__waits_for_a_solicited_one),
		evd_test(evd_wait__unsignalled_receive_flushed__released),
		cmocka_unit_test(evd_wait__unsignalled_message_unseen__returned_at_once),
		cmocka_unit_test(evd_wait__disabled_and_message_unseen__returned_at_once),
	};

	return cmocka_run_group_tests_name("evd_wait_flags", tests, NULL, NULL);
}
