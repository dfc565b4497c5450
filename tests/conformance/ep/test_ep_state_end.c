// SPDX-License-Identifier: BSD-2-Clause
/*
 * The end of connections: one event and the state DISCONNECTED on each side, whatever ends the
 * connection. What happens to posted operations is in test_ep_state_posted.c.
 */
#include "ep_lab.h"

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

/* A process that is connected to, reports that, and lives until it is killed or released. */
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

/* Posts a Send for which the other process has no Receive, and a Receive. */
static void post_both(struct ep_lab *lab)
{
	dt_ok(ep_recv(lab->ep.ep, &lab->buf, 0, 64, 1));
	dt_ok(ep_send(lab->ep.ep, &lab->buf, 64, 64, 2));
}

/* Both have failed before the event arrives; there is no second event. */
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

/* EP-STATE-80: a failed request ends a graceful disconnect, and is reported as a disconnect */
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

/* --- independence, destruction --- */

/* EP-STATE-55 DTO-103: a break of one connection does not affect a second one */
static void ep__another_endpoint_breaks__connection_continues(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(ep__connection_ends__exactly_one_event_on_each_side),
		ep_test(ep__peer_process_killed__broken),
		ep_test(ep__peer_process_killed_during_disconnect__disconnected),
		ep_test(ep__request_fails_during_disconnect__disconnected),
		ep_test(ep__another_endpoint_breaks__connection_continues),
	};

	return cmocka_run_group_tests_name("ep_state_end", tests, NULL, NULL);
}
