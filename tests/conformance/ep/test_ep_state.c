// SPDX-License-Identifier: BSD-2-Clause
/*
 * The transitions of the endpoint state machine: state values, the event of each transition, and
 * the absence of other events. The end of connections is in test_ep_state_end.c, all transitions to
 * DISCONNECTED in test_ep_state_posted.c, the calls allowed in each state in
 * test_ep_state_matrix.c.
 */
#include "ep_lab.h"

/* EP-STATE-01 EP-STATE-02 EP-STATE-03 EP-STATE-04 EP-STATE-05 EP-STATE-06 EP-STATE-07 EP-STATE-08
 * EP-STATE-09 EP-STATE-10 EP-STATE-11 EP-STATE-12 EP-STATE-13 EP-STATE-14 */
static void ep_states__values__those_of_the_header(void **state)
{
	(void)state;
	assert_int_equal(DAT_EP_STATE_UNCONNECTED, 0);
	assert_int_equal(DAT_EP_STATE_UNCONFIGURED_UNCONNECTED, 1);
	assert_int_equal(DAT_EP_STATE_RESERVED, 2);
	assert_int_equal(DAT_EP_STATE_UNCONFIGURED_RESERVED, 3);
	assert_int_equal(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, 4);
	assert_int_equal(DAT_EP_STATE_UNCONFIGURED_PASSIVE, 5);
	assert_int_equal(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, 6);
	assert_int_equal(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, 7);
	assert_int_equal(DAT_EP_STATE_UNCONFIGURED_TENTATIVE, 8);
	assert_int_equal(DAT_EP_STATE_CONNECTED, 9);
	assert_int_equal(DAT_EP_STATE_DISCONNECT_PENDING, 10);
	assert_int_equal(DAT_EP_STATE_DISCONNECTED, 11);
	assert_int_equal(DAT_EP_STATE_COMPLETION_PENDING, 12);
	assert_int_equal(DAT_EP_STATE_ERROR, DAT_EP_STATE_DISCONNECTED);
}

/*
 * EP-STATE-03 EP-STATE-05 EP-STATE-07 EP-STATE-08 EP-STATE-10 EP-STATE-11 EP-STATE-12 EP-STATE-13
 * EP-STATE-15 EP-STATE-16 EP-STATE-23 EP-STATE-25 EP-STATE-28 EP-STATE-31 EP-STATE-35 EP-STATUS-07:
 * each state is reached as its row says, without an event of the endpoint, and lasts
 */
static void ep__driven_into_each_state__reported_without_event(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		if (!ep_lasts(ep_states[i]))
			continue;
		ep_lab_open(lab, ep_states[i]);
		dt_stays_empty(lab->ep.conn);
		ep_lab_no_events(lab);
		assert_int_equal(dt_ep_state(lab->ep.ep), ep_states[i]);
		assert_int_equal(ep_query(lab->ep.ep).ep_state, ep_states[i]);
		ep_lab_close(lab);
	}
}

/*
 * EP-STATE-02 EP-STATE-04 EP-STATE-06 EP-STATE-09 EP-STATE-54: without zone and EVDs: the same
 * states, and connecting or accepting fails without a change
 */
static void ep__unconfigured__ordinary_states_but_no_connection(void **state)
{
	struct ep_lab *lab = *state;
	struct dt_listener listener;
	DAT_EP_HANDLE bare;
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_ep_create(lab->ia.ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
			    DAT_HANDLE_NULL, NULL, &bare));
	assert_int_equal(dt_ep_state(bare), DAT_EP_STATE_UNCONNECTED);
	dt_listen(&lab->ia, &listener);
	assert_int_not_equal(dat_ep_connect(bare, lab->ia.attr.ia_address_ptr, listener.qual,
					    DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
					    DAT_CONNECT_DEFAULT_FLAG),
			     DAT_SUCCESS);
	assert_int_equal(dt_ep_state(bare), DAT_EP_STATE_UNCONNECTED);
	dt_connect(&lab->ia, lab->ep.ep, listener.qual);
	cr = dt_request(&listener);
	dt_fails_with(dat_cr_accept(cr, bare, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	assert_int_equal(dt_ep_state(bare), DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_cr_reject(cr));
	lab->qual = ep_reserve(&lab->ia, bare, lab->sp_evd, &rsp);
	assert_int_equal(dt_ep_state(bare), DAT_EP_STATE_RESERVED);
	dt_connect(&lab->ia, lab->peer.ep, lab->qual);
	cr = ep_next_request(lab->sp_evd);
	assert_int_equal(dt_ep_state(bare), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	dt_fails_with(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	assert_int_equal(dt_ep_state(bare), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	dt_ok(dat_cr_reject(cr));
	assert_int_equal(dt_ep_state(bare), DAT_EP_STATE_UNCONNECTED);
}

/* EP-STATE-17 EP-STATE-32 EP-STATE-51 EP-STATE-50 */
static void ep_connect__accepted__established_once_on_each_side(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	dt_stays_empty(lab->ep.conn);
	dt_ok(dat_cr_accept(lab->cr, lab->peer.ep, 0, NULL));
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_CONNECTED);
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(dt_ep_state(lab->peer.ep), DAT_EP_STATE_CONNECTED);
	dt_stays_empty(lab->ep.conn);
	dt_no_event(lab->peer.conn);
}

/* --- COMPLETION_PENDING while the other process is stopped --- */

/* Makes the process request a connection on lab->qual, stops it, and takes the request. */
static void request_and_stop(struct ep_lab *lab)
{
	dt_peer_send(&lab->process, &lab->qual, sizeof(lab->qual));
	dt_peer_sync(&lab->process);
	lab->cr = ep_next_request(lab->sp_evd);
	dt_peer_stop(&lab->process);
}

/* The accept leads to COMPLETION_PENDING and, when the process continues, to CONNECTED. */
static void check_completion(struct ep_lab *lab, DAT_EP_HANDLE named)
{
	static const char expect = 'e';

	dt_ok(dat_cr_accept(lab->cr, named, 0, NULL));
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_COMPLETION_PENDING);
	dt_stays_empty(lab->ep.conn);
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_COMPLETION_PENDING);
	dt_peer_continue(&lab->process);
	dt_peer_send(&lab->process, &expect, 1);
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_CONNECTED);
	dt_ok(dat_ep_disconnect(lab->ep.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_peer_join(&lab->process);
}

static void open_with_process(struct ep_lab *lab)
{
	struct dt_peer process;

	dt_peer_start(&process, ep_lab_connector, NULL);
	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	lab->process = process;
}

/* EP-STATE-26 EP-STATE-32 */
static void cr_accept__reserved_endpoint__completion_pending_then_connected(void **state)
{
	struct ep_lab *lab = *state;

	open_with_process(lab);
	lab->qual = ep_reserve(&lab->ia, lab->ep.ep, lab->sp_evd, &lab->rsp);
	request_and_stop(lab);
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	check_completion(lab, DAT_HANDLE_NULL);
}

/* EP-STATE-31 EP-STATE-32 */
static void cr_accept__named_endpoint__completion_pending_then_connected(void **state)
{
	struct ep_lab *lab = *state;

	open_with_process(lab);
	ep_lab_listen(lab);
	request_and_stop(lab);
	check_completion(lab, lab->ep.ep);
}

/* EP-STATE-29 EP-STATE-32 */
static void cr_accept__provider_made_endpoint__completion_pending_then_connected(void **state)
{
	struct ep_lab *lab = *state;
	DAT_CR_PARAM param;

	open_with_process(lab);
	dt_ok(dat_psp_create_any(lab->ia.ia, &lab->qual, lab->sp_evd, DAT_PSP_PROVIDER_FLAG,
				 &lab->psp));
	request_and_stop(lab);
	dt_ok(dat_cr_query(lab->cr, DAT_CR_FIELD_ALL, &param));
	dt_ok(dat_ep_free(lab->ep.ep));
	lab->ep.ep = param.local_ep_handle;
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	ep_lab_equip(lab);
	check_completion(lab, DAT_HANDLE_NULL);
}

/* EP-STATE-45 EP-STATE-49: a complete cycle, state by state, several times */
static void ep__connect_disconnect_reset__only_the_specified_states(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_UNCONNECTED);
		dt_ep_link(&lab->ia, i & 1 ? &lab->ep : &lab->peer, i & 1 ? &lab->peer : &lab->ep);
		assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_CONNECTED);
		ep_check_traffic(&lab->ep, &lab->peer, &lab->buf);
		ep_unlink(i & 2 ? &lab->ep : &lab->peer, i & 2 ? &lab->peer : &lab->ep);
		assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_DISCONNECTED);
		dt_ok(dat_ep_reset(lab->ep.ep));
		dt_ok(dat_ep_reset(lab->peer.ep));
		ep_lab_no_events(lab);
	}
}

/*
 * EP-STATE-81 EP-GEN-12 EP-FREE-05 EP-FREE-06: an abrupt close frees the endpoint in any state; a
 * graceful one is refused while the consumer has endpoints
 */
static void ia_close__endpoint_in_each_state__freed(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		DAT_EP_HANDLE ep;

		if (!ep_lasts(ep_states[i]))
			continue;
		ep_lab_open(lab, ep_states[i]);
		ep = lab->ep.ep;
		dt_fails_with(dat_ia_close(lab->ia.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_IA_IN_USE);
		assert_int_equal(dt_ep_state(ep), ep_states[i]);
		dt_ia_abort(&lab->ia);
		dt_fails_with(dat_ep_get_status(ep, NULL, NULL, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		dt_fails_with(dat_ep_free(ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		ep_lab_close(lab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ep_states__values__those_of_the_header),
		ep_test(ep__driven_into_each_state__reported_without_event),
		ep_test(ep__unconfigured__ordinary_states_but_no_connection),
		ep_test(ep_connect__accepted__established_once_on_each_side),
		ep_test(cr_accept__reserved_endpoint__completion_pending_then_connected),
		ep_test(cr_accept__named_endpoint__completion_pending_then_connected),
		ep_test(cr_accept__provider_made_endpoint__completion_pending_then_connected),
		ep_test(ep__connect_disconnect_reset__only_the_specified_states),
		ep_test(ia_close__endpoint_in_each_state__freed),
	};

	return cmocka_run_group_tests_name("ep_state", tests, NULL, NULL);
}
