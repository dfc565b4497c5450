// SPDX-License-Identifier: BSD-2-Clause
/*
 * The transitions of the endpoint state machine, seen from outside: state values, the event that
 * belongs to each transition, and its absence. Ways into DISCONNECTED are in
 * test_ep_state_posted.c, legality of calls in test_ep_state_matrix.c.
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

/* EP-STATE-03 EP-STATE-05 EP-STATE-07 EP-STATE-08 EP-STATE-10 EP-STATE-11 EP-STATE-12 EP-STATE-13
 * EP-STATE-15 EP-STATE-16 EP-STATE-23 EP-STATE-25 EP-STATE-28 EP-STATE-31 EP-STATE-35
 * EP-STATUS-07: each state is reached as its row says, without an event of the endpoint's own, and
 * lasts */
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

/* EP-STATE-02 EP-STATE-04 EP-STATE-06 EP-STATE-09 EP-STATE-54: no zone, no EVDs: the same states,
 * and connecting or accepting fails without a change */
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

/* EP-STATE-54: with only the zone or only the connect EVD missing, actively and passively */
static void ep__one_thing_missing__no_connection(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_HANDLE no_zone, no_evd;

	ep_lab_open(lab, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	dt_ok(dat_ep_create(lab->ia.ia, DAT_HANDLE_NULL, lab->peer.recv, lab->peer.request,
			    lab->peer.conn, NULL, &no_zone));
	dt_ok(dat_ep_create(lab->ia.ia, lab->ia.pz, lab->peer.recv, lab->peer.request,
			    DAT_HANDLE_NULL, NULL, &no_evd));
	dt_fails_with(dat_ep_connect(no_zone, lab->ia.attr.ia_address_ptr, lab->qual,
				     DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
				     DAT_CONNECT_DEFAULT_FLAG),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
	dt_fails_with(dat_ep_connect(no_evd, lab->ia.attr.ia_address_ptr, lab->qual,
				     DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
				     DAT_CONNECT_DEFAULT_FLAG),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	dt_fails_with(dat_cr_accept(lab->cr, no_zone, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	dt_fails_with(dat_cr_accept(lab->cr, no_evd, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	assert_int_equal(dt_ep_state(no_zone), DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(dt_ep_state(no_evd), DAT_EP_STATE_UNCONNECTED);
	dt_stays_empty(lab->sp_evd);
	dt_ok(dat_cr_accept(lab->cr, lab->peer.ep, 0, NULL));
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
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

/* --- COMPLETION_PENDING, held by a stopped process --- */

/* Makes the process ask on lab->qual, stops it, and takes the request. */
static void ask_and_stop(struct ep_lab *lab)
{
	dt_peer_send(&lab->process, &lab->qual, sizeof(lab->qual));
	dt_peer_sync(&lab->process);
	lab->cr = ep_next_request(lab->sp_evd);
	dt_peer_stop(&lab->process);
}

/* The accept leads to COMPLETION_PENDING and, when the process goes on, to CONNECTED. */
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
	ask_and_stop(lab);
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	check_completion(lab, DAT_HANDLE_NULL);
}

/* EP-STATE-31 EP-STATE-32 */
static void cr_accept__named_endpoint__completion_pending_then_connected(void **state)
{
	struct ep_lab *lab = *state;

	open_with_process(lab);
	ep_lab_listen(lab);
	ask_and_stop(lab);
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
	ask_and_stop(lab);
	dt_ok(dat_cr_query(lab->cr, DAT_CR_FIELD_ALL, &param));
	dt_ok(dat_ep_free(lab->ep.ep));
	lab->ep.ep = param.local_ep_handle;
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	ep_lab_equip(lab);
	check_completion(lab, DAT_HANDLE_NULL);
}

/* EP-STATE-33 EP-STATE-50: the asking side disconnects before it is complete */
static void cr_accept__asking_side_disconnects__one_end(void **state)
{
	static const char disconnect = 'd';
	struct ep_lab *lab = *state;
	DAT_EVENT event;

	ep_lab_open(lab, DAT_EP_STATE_COMPLETION_PENDING);
	dt_peer_send(&lab->process, &disconnect, 1);
	dt_peer_continue(&lab->process);
	event = dt_event(lab->ep.conn);
	/* complete before the news came: then it was a connection, which ended (CONN-EVT-57) */
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		event = dt_event(lab->ep.conn);
		assert_true(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
			    event.event_number == DAT_CONNECTION_EVENT_BROKEN);
	} else {
		assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	}
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_DISCONNECTED);
	dt_stays_empty(lab->ep.conn);
	dt_peer_join(&lab->process);
}

/* EP-STATE-48: the asking side gives up in each way; the passive endpoint notices nothing yet */
static void ep__asking_side_gives_up_before_accept__state_kept(void **state)
{
	struct ep_lab *lab = *state;

	for (int is_freed = 0; is_freed < 2; is_freed++) {
		ep_lab_open(lab, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
		if (is_freed) {
			dt_ok(dat_ep_free(lab->peer.ep));
		} else {
			dt_ok(dat_ep_disconnect(lab->peer.ep, DAT_CLOSE_ABRUPT_FLAG));
			dt_expect_conn(lab->peer.conn, lab->peer.ep,
				       DAT_CONNECTION_EVENT_DISCONNECTED);
		}
		dt_stays_empty(lab->ep.conn);
		assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
		dt_ok(dat_cr_accept(lab->cr, DAT_HANDLE_NULL, 0, NULL));
		dt_expect_conn(lab->ep.conn, lab->ep.ep,
			       DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_DISCONNECTED);
		ep_lab_close(lab);
	}
}

/* --- the end of connections --- */

/* EP-STATE-52 EP-STATE-38 EP-STATE-39 EP-STATE-41: both sides of each kind of end */
static void ep__connection_ends__exactly_one_event_on_each_side(void **state)
{
	struct ep_lab *lab = *state;

	for (int kind = 0; kind < 4; kind++) {
		DAT_EVENT_NUMBER event =
			kind == 3 ? DAT_CONNECTION_EVENT_BROKEN : DAT_CONNECTION_EVENT_DISCONNECTED;

		ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
		if (kind < 2)
			dt_ok(dat_ep_disconnect(lab->ep.ep, kind ? DAT_CLOSE_GRACEFUL_FLAG
								 : DAT_CLOSE_ABRUPT_FLAG));
		if (kind == 2) {
			dt_ok(dat_ep_disconnect(lab->ep.ep, DAT_CLOSE_ABRUPT_FLAG));
			dt_ok(dat_ep_disconnect(lab->peer.ep, DAT_CLOSE_ABRUPT_FLAG));
		}
		if (kind == 3) { /* a message that is too large */
			dt_ok(ep_recv(lab->peer.ep, &lab->buf, 0, 1, 1));
			dt_ok(ep_send(lab->ep.ep, &lab->buf, 0, 64, 2));
		}
		dt_expect_conn(lab->ep.conn, lab->ep.ep, event);
		dt_expect_conn(lab->peer.conn, lab->peer.ep, event);
		assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_DISCONNECTED);
		assert_int_equal(dt_ep_state(lab->peer.ep), DAT_EP_STATE_DISCONNECTED);
		dt_stays_empty(lab->ep.conn);
		dt_stays_empty(lab->peer.conn);
		dt_no_event(lab->ia.async);
		ep_lab_close(lab);
	}
}

/* A process that is connected to, says so, and lives until it is killed or told to end. */
static void connected_process(struct dt_peer *peer, void *arg)
{
	struct dt_ia ia;
	struct dt_ep ep;
	DAT_CONN_QUAL qual;
	char command;

	(void)arg;
	dt_peer_recv(peer, &qual, sizeof(qual));
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_connect(&ia, ep.ep, qual);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_sync(peer);
	dt_peer_recv(peer, &command, 1);
	dt_ia_abort(&ia);
}

static void open_connected_to_process(struct ep_lab *lab)
{
	struct dt_peer process;

	dt_peer_start(&process, connected_process, NULL);
	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	lab->process = process;
	ep_lab_listen(lab);
	dt_peer_send(&lab->process, &lab->qual, sizeof(lab->qual));
	dt_ok(dat_cr_accept(ep_next_request(lab->sp_evd), lab->ep.ep, 0, NULL));
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_sync(&lab->process);
}

/* A Send that the other process has no Receive for, and a Receive. */
static void post_both(struct ep_lab *lab)
{
	dt_ok(ep_recv(lab->ep.ep, &lab->buf, 0, 64, 1));
	dt_ok(ep_send(lab->ep.ep, &lab->buf, 64, 64, 2));
}

/* Both are completed without success by the time the event is there; no second event. */
static void check_both_failed(struct ep_lab *lab)
{
	DAT_EVENT event;

	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_DISCONNECTED);
	dt_ok(dat_evd_dequeue(lab->ep.recv, &event));
	assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	dt_ok(dat_evd_dequeue(lab->ep.request, &event));
	assert_int_not_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	dt_stays_empty(lab->ep.conn);
	ep_lab_no_events(lab);
}

/* EP-STATE-44 EP-STATE-52 EP-STATE-53 EP-STATE-74 */
static void ep__peer_process_killed__broken(void **state)
{
	struct ep_lab *lab = *state;

	open_connected_to_process(lab);
	post_both(lab);
	dt_peer_kill(&lab->process);
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_BROKEN);
	check_both_failed(lab);
}

/* EP-STATE-80 EP-STATE-52 */
static void ep__peer_process_killed_during_disconnect__disconnected(void **state)
{
	struct ep_lab *lab = *state;

	open_connected_to_process(lab);
	post_both(lab);
	dt_ok(dat_ep_disconnect(lab->ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_peer_kill(&lab->process);
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	check_both_failed(lab);
}

/* EP-STATE-80: an error of a request ends a graceful disconnect, as a disconnect */
static void ep__request_fails_during_disconnect__disconnected(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	dt_ok(ep_send(lab->ep.ep, &lab->buf, 0, 64, 1));
	dt_ok(ep_send(lab->ep.ep, &lab->buf, 0, 64, 2));
	dt_ok(dat_ep_disconnect(lab->ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_ok(ep_recv(lab->peer.ep, &lab->buf, 4096, 1, 3)); /* too small */
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_dto(lab->ep.request, lab->ep.ep, 1, DAT_DTO_ERR_REMOTE_RESPONDER, DT_ANY_LEN);
	dt_expect_dto(lab->ep.request, lab->ep.ep, 2, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
	dt_stays_empty(lab->ep.conn);
	ep_lab_no_events(lab);
}

/* EP-STATE-40: both sides at once, each with messages the other does not take */
static void ep_disconnect__graceful_on_both_sides__one_event_each(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_DISCONNECT_PENDING);
	dt_ok(ep_send(lab->peer.ep, &lab->buf, 0, 64, 1));
	dt_ok(dat_ep_disconnect(lab->peer.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_dto(lab->ep.request, lab->ep.ep, 0xd15c, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
	dt_expect_dto(lab->peer.request, lab->peer.ep, 1, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
	dt_stays_empty(lab->ep.conn);
	dt_no_event(lab->peer.conn);
}

/* --- independence, destruction --- */

/* EP-STATE-55: every other end of the table of ends leaves a second connection alone */
static void ep__another_endpoint_breaks__connection_keeps_running(void **state)
{
	struct ep_lab *lab = *state;
	struct dt_ep a, b;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &a);
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &b);
	dt_ep_link(&lab->ia, &a, &b);
	ep_check_traffic(&a, &b, &lab->buf);
	dt_ok(ep_recv(lab->peer.ep, &lab->buf, 64, 1, 1));
	dt_ok(ep_send(lab->ep.ep, &lab->buf, 128, 64, 2));
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_BROKEN);
	ep_check_traffic(&a, &b, &lab->buf);
	dt_ok(dat_ep_free(lab->ep.ep));
	dt_ok(dat_ep_reset(lab->peer.ep));
	ep_check_traffic(&b, &a, &lab->buf);
	assert_int_equal(dt_ep_state(a.ep), DAT_EP_STATE_CONNECTED);
	dt_no_event(a.conn);
	dt_no_event(b.conn);
}

/* EP-STATE-45 EP-STATE-49: a whole life, state by state, several times */
static void ep__connect_disconnect_reset__only_the_states_of_the_chapter(void **state)
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

/* EP-STATE-81 EP-GEN-12 EP-FREE-05 EP-FREE-06: in any state an abrupt close takes the endpoint
 * along; a graceful one is refused for endpoints of the consumer */
static void ia_close__endpoint_in_each_state__gone(void **state)
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

/* EP-STATE-81: graceful, with the endpoint of a request that nobody answered */
static void ia_close__graceful_with_tentative_endpoint__gone(void **state)
{
	struct ep_lab *lab = *state;
	struct dt_listener listener;
	DAT_CR_PARAM param;
	DAT_EP_HANDLE ep;
	struct dt_ia other;
	struct dt_ep asking;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ia_open(&other);
	listener.evd = dt_evd_create(&other, 8, DAT_EVD_CR_FLAG);
	dt_ok(dat_psp_create_any(other.ia, &listener.qual, listener.evd, DAT_PSP_PROVIDER_FLAG,
				 &listener.psp));
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &asking);
	dt_connect(&lab->ia, asking.ep, listener.qual);
	dt_ok(dat_cr_query(ep_next_request(listener.evd), DAT_CR_FIELD_ALL, &param));
	ep = param.local_ep_handle;
	assert_int_equal(dt_ep_state(ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	dt_unlisten(&listener);
	dt_ia_close(&other);
	dt_fails_with(dat_ep_get_status(ep, NULL, NULL, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	dt_expect_conn(asking.conn, asking.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ep_states__values__those_of_the_header),
		ep_test(ep__driven_into_each_state__reported_without_event),
		ep_test(ep__unconfigured__ordinary_states_but_no_connection),
		ep_test(ep__one_thing_missing__no_connection),
		ep_test(ep_connect__accepted__established_once_on_each_side),
		ep_test(cr_accept__reserved_endpoint__completion_pending_then_connected),
		ep_test(cr_accept__named_endpoint__completion_pending_then_connected),
		ep_test(cr_accept__provider_made_endpoint__completion_pending_then_connected),
		ep_test(cr_accept__asking_side_disconnects__one_end),
		ep_test(ep__asking_side_gives_up_before_accept__state_kept),
		ep_test(ep__connection_ends__exactly_one_event_on_each_side),
		ep_test(ep__peer_process_killed__broken),
		ep_test(ep__peer_process_killed_during_disconnect__disconnected),
		ep_test(ep__request_fails_during_disconnect__disconnected),
		ep_test(ep_disconnect__graceful_on_both_sides__one_event_each),
		ep_test(ep__another_endpoint_breaks__connection_keeps_running),
		ep_test(ep__connect_disconnect_reset__only_the_states_of_the_chapter),
		ep_test(ia_close__endpoint_in_each_state__gone),
		ep_test(ia_close__graceful_with_tentative_endpoint__gone),
	};

	return cmocka_run_group_tests_name("ep_state", tests, NULL, NULL);
}
