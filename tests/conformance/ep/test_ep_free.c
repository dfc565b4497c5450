// SPDX-License-Identifier: BSD-2-Clause
/* dat_ep_free: in each state, what the peer is notified of, and what ends with the endpoint. */
#include "ep_lab.h"

static bool can_be_freed(DAT_EP_STATE state)
{
	return state != DAT_EP_STATE_RESERVED && state != DAT_EP_STATE_PASSIVE_CONNECTION_PENDING &&
	       state != DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
}

/*
 * EP-FREE-01 EP-FREE-04 EP-FREE-05 EP-FREE-06 EP-FREE-07 EP-FREE-08 EP-FREE-09 EP-FREE-10
 * EP-FREE-11 EP-FREE-12 EP-FREE-22 EP-FREE-24 EP-FREE-25 EP-STATE-46: with Receives posted, in each
 * state; afterwards no object is in use and no event arrives
 */
static void ep_free__each_state__freed_or_invalid_state(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		if (!ep_lasts(ep_states[i]))
			continue;
		ep_lab_open(lab, ep_states[i]);
		if (ep_states[i] == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
			ep_lab_equip(lab);
		dt_ok(ep_recv(lab->ep.ep, &lab->buf, 0, 64, 1));
		dt_drain(lab->ep.recv); /* of the DISCONNECTED state */
		if (!can_be_freed(ep_states[i])) {
			dt_returns(dat_ep_free(lab->ep.ep), dt_state_error(ep_states[i]));
			assert_int_equal(dt_ep_state(lab->ep.ep), ep_states[i]);
			assert_false(ep_is_recv_idle(lab->ep.ep));
			ep_lab_close(lab);
			continue;
		}
		dt_ok(dat_ep_free(lab->ep.ep));
		dt_fails_with(dat_ep_get_status(lab->ep.ep, NULL, NULL, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		dt_fails_with(dat_ep_free(lab->ep.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		dt_stays_empty(lab->ep.conn);
		ep_lab_no_events(lab);
		dt_ok(dat_evd_free(lab->ep.recv));
		dt_ok(dat_evd_free(lab->ep.request));
		dt_ok(dat_evd_free(lab->ep.conn));
		dt_ok(dat_ep_free(lab->peer.ep));
		dt_ok(dat_lmr_free(lab->buf.lmr));
		dt_ok(dat_pz_free(lab->ia.pz));
		ep_lab_close(lab);
	}
}

/* EP-FREE-13 */
static void ep_free__reserved_then_rsp_freed__accepted(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_RESERVED);
	dt_fails_with(dat_ep_free(lab->ep.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED);
	dt_ok(dat_rsp_free(lab->rsp));
	dt_ok(dat_ep_free(lab->ep.ep));
}

/* EP-FREE-14 */
static void ep_free__passive_then_request_rejected__accepted(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	dt_fails_with(dat_ep_free(lab->ep.ep), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_PASSCONNPENDING);
	dt_ok(dat_cr_reject(lab->cr));
	dt_ok(dat_ep_free(lab->ep.ep));
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* EP-FREE-15 */
static void ep_free__tentative_after_reject__invalid_handle(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	dt_ok(dat_cr_reject(lab->cr));
	dt_fails_with(dat_ep_free(lab->ep.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

/* EP-FREE-16 EP-FREE-17: the request waits at the peer, whose accept fails */
static void ep_free__attempt_pending__accept_completion_error_at_peer(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	dt_ok(dat_ep_free(lab->ep.ep));
	dt_ok(dat_cr_accept(lab->cr, lab->peer.ep, 0, NULL));
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	assert_int_equal(dt_ep_state(lab->peer.ep), DAT_EP_STATE_DISCONNECTED);
	dt_stays_empty(lab->peer.conn);
	ep_lab_no_events(lab);
}

/* The process of the next test: whichever event it gets, it does not end connected. */
static void refused_process(struct dt_peer *peer, void *arg)
{
	struct dt_ia ia;
	struct dt_ep ep;
	DAT_CONN_QUAL qual;
	DAT_EVENT event;

	(void)arg;
	dt_peer_recv(peer, &qual, sizeof(qual));
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_connect(&ia, ep.ep, qual);
	dt_peer_sync(peer);
	event = dt_event(ep.conn);
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		event = dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	else
		assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	assert_int_equal(dt_ep_state(ep.ep), DAT_EP_STATE_DISCONNECTED);
	dt_ia_abort(&ia);
}

/* EP-FREE-18 EP-FREE-16 EP-FREE-29: the active side is stopped meanwhile */
static void ep_free__completion_pending__stopped_active_side_notified(void **state)
{
	struct ep_lab *lab = *state;
	struct dt_peer process;
	uint64_t start;

	dt_peer_start(&process, refused_process, NULL);
	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	lab->process = process;
	ep_lab_completion(lab);
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_COMPLETION_PENDING);
	start = dt_now_us();
	dt_ok(dat_ep_free(lab->ep.ep));
	assert_true(dt_now_us() - start < 6000000);
	dt_peer_continue(&lab->process);
	dt_peer_join(&lab->process);
	dt_stays_empty(lab->ep.conn);
}

/* EP-FREE-19: freed while CONNECTED and while DISCONNECT_PENDING, with requests outstanding */
static void ep_free__connected__peer_disconnected(void **state)
{
	static const DAT_EP_STATE states[] = {DAT_EP_STATE_CONNECTED,
					      DAT_EP_STATE_DISCONNECT_PENDING};
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < COUNT_OF(states); i++) {
		ep_lab_open(lab, states[i]);
		dt_ok(ep_send(lab->peer.ep, &lab->buf, 0, 64, 1));
		dt_ok(dat_ep_free(lab->ep.ep));
		dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		assert_int_equal(dt_ep_state(lab->peer.ep), DAT_EP_STATE_DISCONNECTED);
		dt_expect_dto(lab->peer.request, lab->peer.ep, 1, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
		dt_stays_empty(lab->peer.conn);
		ep_lab_close(lab);
	}
}

/* EP-FREE-21 EP-FREE-22 */
static void ep_free__completions_queued__kept_and_no_event_follows(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	for (uint64_t i = 0; i < 3; i++) {
		dt_ok(ep_recv_empty(lab->ep.ep, i));
		dt_ok(ep_send_empty(lab->peer.ep, i));
		dt_expect_dto(lab->peer.request, lab->peer.ep, i, DAT_DTO_SUCCESS, 0);
	}
	dt_ok(ep_recv_empty(lab->ep.ep, 99)); /* outstanding: may produce no event */
	dt_expect_dto(lab->ep.recv, lab->ep.ep, 0, DAT_DTO_SUCCESS, 0);
	/* the first is taken; the others are queued, because their Sends succeeded before */
	dt_ok(dat_ep_free(lab->ep.ep));
	for (uint64_t i = 1; i < 3; i++) {
		DAT_EVENT event;

		dt_ok(dat_evd_dequeue(lab->ep.recv, &event));
		assert_ptr_equal(event.event_data.dto_completion_event_data.ep_handle, lab->ep.ep);
		assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, i);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_SUCCESS);
	}
	dt_stays_empty(lab->ep.recv);
	ep_lab_no_events(lab);
}

/* EP-FREE-23: neither a message nor an RDMA Write of the peer changes memory any more */
static void ep_free__peer_sends_and_writes__memory_unchanged(void **state)
{
	struct ep_lab *lab = *state;

	for (int round = 0; round < 10; round++) {
		ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
		memset(lab->buf.p + 32768, 0x77, 16384);
		for (uint64_t i = 0; i < 4; i++)
			dt_ok(ep_recv(lab->ep.ep, &lab->buf, 4096 * i, 4096, i));
		for (uint64_t i = 0; i < 4; i++) {
			dt_ok(ep_send(lab->peer.ep, &lab->buf, 32768, 4096, i));
			dt_ok(ep_write(lab->peer.ep, &lab->buf, 32768, &lab->buf, 16384, 16384,
				       10 + i));
		}
		dt_ok(dat_ep_free(lab->ep.ep));
		memset(lab->buf.p, 0x11, 32768);
		dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_check_bytes(lab->buf.p, 32768, 0x11);
		ep_lab_close(lab);
	}
}

/* EP-FREE-23: its own requests do not access local memory any more */
static void ep_free__own_read_outstanding__memory_unchanged(void **state)
{
	struct ep_lab *lab = *state;

	for (int round = 0; round < 10; round++) {
		ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
		memset(lab->buf.p + 32768, 0x77, 16384);
		for (uint64_t i = 0; i < 4; i++)
			dt_ok(ep_read(lab->ep.ep, &lab->buf, 0, &lab->buf, 32768, 16384, i));
		dt_ok(dat_ep_free(lab->ep.ep));
		memset(lab->buf.p, 0x11, 16384);
		dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_check_bytes(lab->buf.p, 16384, 0x11);
		ep_lab_close(lab);
	}
}

struct user {
	_Atomic uintptr_t ep;
	const struct dt_buf *buf;
	atomic_bool stop;
	_Atomic unsigned int failures;
};

static bool is_allowed(DAT_RETURN ret)
{
	const DAT_RETURN type = DAT_GET_TYPE(ret);

	return ret == DAT_SUCCESS || type == DAT_INVALID_HANDLE || type == DAT_INVALID_STATE ||
	       type == DAT_INSUFFICIENT_RESOURCES;
}

static void *use_endpoint(void *arg)
{
	struct user *user = arg;

	while (!atomic_load(&user->stop)) {
		DAT_EP_HANDLE ep = (DAT_EP_HANDLE)atomic_load(&user->ep);
		DAT_EP_STATE ep_state;
		DAT_EP_PARAM param;
		DAT_COUNT nbufs, span;
		bool is_good = true;

		is_good &= is_allowed(ep_recv(ep, user->buf, 0, 64, 1));
		is_good &= is_allowed(ep_send(ep, user->buf, 0, 64, 2));
		is_good &= is_allowed(dat_ep_get_status(ep, &ep_state, NULL, NULL));
		is_good &= is_allowed(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
		is_good &= is_allowed(dat_ep_modify(ep, 0, &param));
		is_good &= is_allowed(dat_ep_recv_query(ep, &nbufs, &span));
		is_good &= is_allowed(dat_ep_reset(ep));
		is_good &= is_allowed(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
		if (!is_good)
			atomic_fetch_add(&user->failures, 1);
	}
	return NULL;
}

/* EP-FREE-28 EP-FREE-27 EP-MODIFY-55 EP-GEN-10 EP-GEN-03 */
static void ep_free__other_threads_use_it__before_it_or_invalid_handle(void **state)
{
	struct ep_lab *lab = *state;
	struct user user;
	struct dt_ep connected[2];
	pthread_t threads[2];

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &connected[0]);
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &connected[1]);
	dt_ep_link(&lab->ia, &connected[0], &connected[1]);
	memset(&user, 0, sizeof(user));
	user.buf = &lab->buf;
	atomic_store(&user.ep, (uintptr_t)lab->ep.ep);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_endpoint, &user), 0);
	for (int i = 0; i < 60; i++) {
		DAT_EP_HANDLE old = (DAT_EP_HANDLE)atomic_load(&user.ep), fresh;

		dt_ok(dat_ep_create(lab->ia.ia, lab->ia.pz, lab->ep.recv, lab->ep.request,
				    lab->ep.conn, NULL, &fresh));
		atomic_store(&user.ep, (uintptr_t)fresh);
		dt_ok(dat_ep_free(old));
		/* other objects are not affected */
		ep_check_traffic(&connected[i & 1], &connected[!(i & 1)], &lab->buf);
		dt_drain(lab->ep.recv);
		dt_drain(lab->ep.request);
	}
	atomic_store(&user.stop, true);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(user.failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(ep_free__each_state__freed_or_invalid_state),
		ep_test(ep_free__reserved_then_rsp_freed__accepted),
		ep_test(ep_free__passive_then_request_rejected__accepted),
		ep_test(ep_free__tentative_after_reject__invalid_handle),
		ep_test(ep_free__attempt_pending__accept_completion_error_at_peer),
		ep_test(ep_free__completion_pending__stopped_active_side_notified),
		ep_test(ep_free__connected__peer_disconnected),
		ep_test(ep_free__completions_queued__kept_and_no_event_follows),
		ep_test(ep_free__peer_sends_and_writes__memory_unchanged),
		ep_test(ep_free__own_read_outstanding__memory_unchanged),
		ep_test(ep_free__other_threads_use_it__before_it_or_invalid_handle),
	};

	return cmocka_run_group_tests_name("ep_free", tests, NULL, NULL);
}
