// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_reset: back to UNCONNECTED; no completion is lost and nothing of the old connection
 * remains.
 */
#include "ep_lab.h"

/* EP-RESET-01 EP-RESET-10 EP-RESET-11 EP-RESET-16 */
static void ep_reset__disconnected__unconnected_and_configured_as_before(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM before, after;

	ep_lab_open(lab, DAT_EP_STATE_DISCONNECTED);
	before = ep_query(lab->ep.ep);
	dt_ok(dat_ep_reset(lab->ep.ep));
	after = ep_query(lab->ep.ep);
	assert_int_equal(after.ep_state, DAT_EP_STATE_UNCONNECTED);
	ep_check_same_config(&before, &after);
	dt_stays_empty(lab->ep.conn);
	ep_lab_no_events(lab);
}

/* EP-RESET-02 EP-RESET-03 EP-RESET-15: Receives posted before stay, and new ones are accepted */
static void ep_reset__unconnected__receives_stay_posted(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ok(ep_recv_empty(lab->ep.ep, 1));
	dt_ok(dat_ep_reset(lab->ep.ep));
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_UNCONNECTED);
	assert_false(ep_is_recv_idle(lab->ep.ep));
	ep_lab_no_events(lab);
	dt_ep_link(&lab->ia, &lab->ep, &lab->peer);
	dt_ok(ep_send_empty(lab->peer.ep, 9));
	dt_expect_dto(lab->ep.recv, lab->ep.ep, 1, DAT_DTO_SUCCESS, 0);
	ep_unlink(&lab->ep, &lab->peer);
	dt_ok(dat_ep_reset(lab->ep.ep));
	dt_ok(dat_ep_reset(lab->peer.ep));
	dt_ok(ep_recv_empty(lab->ep.ep, 2));
	assert_false(ep_is_recv_idle(lab->ep.ep));
	dt_ep_link(&lab->ia, &lab->peer, &lab->ep);
	dt_drain(lab->peer.request);
	dt_ok(ep_send_empty(lab->peer.ep, 9));
	dt_expect_dto(lab->ep.recv, lab->ep.ep, 2, DAT_DTO_SUCCESS, 0);
}

/* EP-RESET-04: in the seven other states, without effect on posted Receives */
static void ep_reset__other_states__invalid_state(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		if (!ep_lasts(ep_states[i]))
			continue;
		if (ep_states[i] == DAT_EP_STATE_UNCONNECTED ||
		    ep_states[i] == DAT_EP_STATE_DISCONNECTED)
			continue;
		ep_lab_open(lab, ep_states[i]);
		if (ep_states[i] == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
			ep_lab_equip(lab);
		dt_ok(ep_recv_empty(lab->ep.ep, 1));
		dt_returns(dat_ep_reset(lab->ep.ep), dt_state_error(ep_states[i]));
		assert_int_equal(dt_ep_state(lab->ep.ep), ep_states[i]);
		assert_false(ep_is_recv_idle(lab->ep.ep));
		ep_lab_no_events(lab);
		ep_lab_close(lab);
	}
}

static void check_flushed_now(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	DAT_EVENT event;

	dt_ok(dat_evd_dequeue(evd, &event));
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
}

/*
 * EP-RESET-06 EP-RESET-07 EP-RESET-08: the order of dapltest: reset first, then drain, then count
 */
static void ep_reset__completions_not_dequeued__all_there_afterwards(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	for (uint64_t i = 0; i < 4; i++) {
		dt_ok(ep_recv_empty(lab->ep.ep, i));
		dt_ok(ep_send_empty(lab->ep.ep, i));
	}
	ep_unlink(&lab->ep, &lab->peer);
	/* markers */
	dt_ok(ep_recv_empty(lab->ep.ep, 77));
	dt_ok(ep_send_empty(lab->ep.ep, 78));
	dt_ok(dat_ep_reset(lab->ep.ep));
	for (uint64_t i = 0; i < 4; i++) {
		check_flushed_now(lab->ep.recv, i);
		check_flushed_now(lab->ep.request, i);
	}
	check_flushed_now(lab->ep.recv, 77);
	check_flushed_now(lab->ep.request, 78);
	dt_stays_empty(lab->ep.recv);
	dt_stays_empty(lab->ep.request);
}

/* EP-RESET-07: one EVD for Receives and requests, markers of both kinds */
static void ep_reset__marker_on_a_shared_evd__last_of_its_stream(void **state)
{
	struct ep_lab *lab = *state;
	unsigned int recvs = 0, sends = 0;
	DAT_EVD_HANDLE evd;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	evd = dt_evd_create(&lab->ia, 64, DAT_EVD_DTO_FLAG);
	dt_ok(dat_ep_free(lab->ep.ep));
	dt_ok(dat_ep_create(lab->ia.ia, lab->ia.pz, evd, evd, lab->ep.conn, NULL, &lab->ep.ep));
	dt_ep_link(&lab->ia, &lab->ep, &lab->peer);
	for (uint64_t i = 0; i < 5; i++) {
		dt_ok(ep_recv_empty(lab->ep.ep, 1));
		dt_ok(ep_send_empty(lab->ep.ep, 2));
	}
	ep_unlink(&lab->ep, &lab->peer);
	dt_ok(ep_recv_empty(lab->ep.ep, 77));
	dt_ok(ep_send_empty(lab->ep.ep, 78));
	dt_ok(dat_ep_reset(lab->ep.ep));
	for (int i = 0; i < 12; i++) {
		DAT_EVENT event;
		uint64_t cookie;

		dt_ok(dat_evd_dequeue(evd, &event));
		cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;
		recvs += cookie == 1;
		sends += cookie == 2;
		if (cookie == 77)
			assert_int_equal(recvs, 5);
		if (cookie == 78)
			assert_int_equal(sends, 5);
	}
	dt_no_event(evd);
}

/* EP-RESET-09: what the old peer wrote and sent does not reach the buffers */
static void ep_reset__peer_had_requests_in_progress__memory_unchanged(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	memset(lab->buf.p, 0x11, 8192);
	/* requests of the peer that are in progress when this side ends the connection */
	for (uint64_t i = 0; i < 8; i++)
		ep_write(lab->peer.ep, &lab->buf, 8192, &lab->buf, 0, 8192, i);
	dt_ok(ep_send(lab->peer.ep, &lab->buf, 8192, 64, 9));
	dt_ok(dat_ep_disconnect(lab->ep.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(lab->ep.ep));
	memset(lab->buf.p, 0x22, 8192);
	dt_ok(ep_recv(lab->ep.ep, &lab->buf, 0, 64, 1));
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_stays_empty(lab->ep.recv);
	dt_check_bytes(lab->buf.p, 8192, 0x22);
	assert_false(ep_is_recv_idle(lab->ep.ep));
}

/* EP-RESET-12 EP-RESET-13 EP-RESET-16: repeatedly, without a pause, in each role in turn */
static void ep_reset__repeatedly__connects_accepts_and_reserves(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	for (int i = 0; i < 15; i++) {
		if (i % 3 == 0) {
			dt_ep_link(&lab->ia, &lab->ep, &lab->peer);
		} else if (i % 3 == 1) {
			dt_ep_link(&lab->ia, &lab->peer, &lab->ep);
		} else {
			lab->qual = ep_reserve(&lab->ia, lab->ep.ep, lab->sp_evd, &lab->rsp);
			dt_connect(&lab->ia, lab->peer.ep, lab->qual);
			dt_ok(dat_cr_accept(ep_next_request(lab->sp_evd), DAT_HANDLE_NULL, 0,
					    NULL));
			dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
			dt_expect_conn(lab->peer.conn, lab->peer.ep,
				       DAT_CONNECTION_EVENT_ESTABLISHED);
			dt_ok(dat_rsp_free(lab->rsp));
		}
		ep_check_traffic(&lab->ep, &lab->peer, &lab->buf);
		ep_check_traffic(&lab->peer, &lab->ep, &lab->buf);
		ep_unlink(i & 1 ? &lab->ep : &lab->peer, i & 1 ? &lab->peer : &lab->ep);
		dt_ok(dat_ep_reset(lab->ep.ep));
		dt_ok(dat_ep_reset(lab->peer.ep));
	}
}

/*
 * EP-RESET-18 EP-RESET-10: the reset is tried from the start; when it succeeds, the event is
 * queued, and none follows
 */
static void ep_reset__races_with_the_event__refused_or_event_queued(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	for (int i = 0; i < 50; i++) {
		uint64_t end = dt_now_us() + DT_WAIT_US;
		struct dt_ep *passive = &lab->peer;
		DAT_EVENT event;
		DAT_RETURN ret;

		dt_ep_link(&lab->ia, &lab->ep, passive);
		dt_ok(dat_ep_disconnect(passive->ep, DAT_CLOSE_ABRUPT_FLAG));
		do {
			ret = dat_ep_reset(lab->ep.ep);
			if (ret != DAT_SUCCESS)
				dt_fails_with(ret, DAT_INVALID_STATE,
					      DAT_INVALID_STATE_EP_CONNECTED);
			assert_true(dt_now_us() < end);
		} while (ret != DAT_SUCCESS);
		dt_ok(dat_evd_dequeue(lab->ep.conn, &event));
		assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_no_event(lab->ep.conn);
		dt_expect_conn(passive->conn, passive->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(passive->ep));
	}
	dt_stays_empty(lab->ep.conn);
}

struct resetter {
	DAT_EP_HANDLE ep;
	atomic_bool stop;
	unsigned int failures;
};

static void *reset_all_the_time(void *arg)
{
	struct resetter *resetter = arg;

	while (!atomic_load(&resetter->stop)) {
		DAT_RETURN ret = dat_ep_reset(resetter->ep);

		if (ret != DAT_SUCCESS && DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
			resetter->failures++;
	}
	return NULL;
}

/*
 * EP-RESET-17 EP-RESET-18: another thread resets whenever that is allowed; each connection still
 * raises its events
 */
static void ep_reset__another_thread_resets__every_connection_works(void **state)
{
	struct ep_lab *lab = *state;
	struct resetter resetter = {0};
	pthread_t thread;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	resetter.ep = lab->ep.ep;
	assert_int_equal(pthread_create(&thread, NULL, reset_all_the_time, &resetter), 0);
	for (int i = 0; i < 30; i++) {
		dt_ep_link(&lab->ia, i & 1 ? &lab->ep : &lab->peer, i & 1 ? &lab->peer : &lab->ep);
		ep_check_traffic(&lab->ep, &lab->peer, &lab->buf);
		ep_unlink(&lab->peer, &lab->ep);
		dt_ok(dat_ep_reset(lab->peer.ep));
		dt_ok(dat_ep_reset(lab->ep.ep));
	}
	atomic_store(&resetter.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(resetter.failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(ep_reset__disconnected__unconnected_and_configured_as_before),
		ep_test(ep_reset__unconnected__receives_stay_posted),
		ep_test(ep_reset__other_states__invalid_state),
		ep_test(ep_reset__completions_not_dequeued__all_there_afterwards),
		ep_test(ep_reset__marker_on_a_shared_evd__last_of_its_stream),
		ep_test(ep_reset__peer_had_requests_in_progress__memory_unchanged),
		ep_test(ep_reset__repeatedly__connects_accepts_and_reserves),
		ep_test(ep_reset__races_with_the_event__refused_or_event_queued),
		ep_test(ep_reset__another_thread_resets__every_connection_works),
	};

	return cmocka_run_group_tests_name("ep_reset", tests, NULL, NULL);
}
