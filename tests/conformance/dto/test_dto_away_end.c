// SPDX-License-Identifier: BSD-2-Clause
/*
 * What ends a message to a receiver that makes no call while it arrives (away.h): it is too
 * long, its region is freed, or the connection ends directly behind it.
 */
#include "away.h"

/* The connection has ended. The kernel ends TCP connections of a dead process in order, so the
 * other side gets DISCONNECTED there (EP-STATE-44). */
static void expect_death(const struct dt_ep *ep)
{
	const DAT_EVENT event = dt_event(ep->conn);

	assert_true(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
		    event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_ptr_equal(event.event_data.connect_event_data.ep_handle, ep->ep);
}

static void tell_end(struct away *away, enum away_what what, DAT_CLOSE_FLAGS how)
{
	(void)away_tell(away, 0, &(struct away_order){.what = what, .how = how});
}

/* --- the sender, or the receiver, ends the connection --- */

enum end {
	SENDER_ABRUPT,
	SENDER_GRACEFUL,
	SENDER_FREES,
	SENDER_DIES,
	RECEIVER_ABRUPT,
	RECEIVER_GRACEFUL,
	ENDS,
};

static void end_connection(struct away *away, enum end end)
{
	struct dt_ep *ep = &away->ep[0];
	const bool is_graceful = end == SENDER_GRACEFUL || end == RECEIVER_GRACEFUL;
	const DAT_CLOSE_FLAGS how = is_graceful ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG;

	switch (end) {
	case SENDER_ABRUPT:
	case SENDER_GRACEFUL:
		tell_end(away, AWAY_DISCONNECT, how);
		break;
	case SENDER_FREES:
		tell_end(away, AWAY_FREE_EP, 0);
		break;
	case SENDER_DIES:
		dt_peer_kill(&away->peer[0]);
		expect_death(ep);
		return;
	default:
		dt_ok(dat_ep_disconnect(ep->ep, how));
		tell_end(away, AWAY_ENDED, 0);
	}
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* DTO-06 DTO-52 EP-DISC-15 EP-DISC-16 EP-DISC-35 EP-FREE-19 */
static void end_behind_message(enum end end)
{
	struct away away;
	uint64_t number, next;

	away_open(&away, &rig_of_test, 1);
	number = away_post(&away, 0, AWAY_LEN);
	next = away_post(&away, 0, AWAY_LEN);
	away_send(&away, 0, AWAY_LEN, 0);
	away_spin(&away, 0, number, AWAY_LEN); /* iWARP places it later */
	end_connection(&away, end);
	away_take(&away, 0, AWAY_LEN);
	expect_recv_flushed(&away.ep[0], away_cookie(0, next));
	assert_int_equal(dt_ep_state(away.ep[0].ep), DAT_EP_STATE_DISCONNECTED);
	dt_check_bytes(away_at(&away, 0, next), AWAY_LEN, AWAY_FILL);
	expect_quiet(&away.ep[0]);
	away_close(&away);
}

static void connection_ends__directly_behind_a_message__receive_succeeds_once(void **state)
{
	(void)state;
	for (enum end end = 0; end < ENDS; end++)
		end_behind_message(end);
}

/* EP-FREE-19 EP-FREE-20 EP-FREE-22 EP-FREE-23: the receiver frees its endpoint */
static void ep_free__directly_behind_a_message__no_event_and_no_byte_follows(void **state)
{
	struct rig *rig = &rig_of_test;
	struct away away;
	uint64_t number;
	DAT_EVENT event;

	(void)state;
	away_open(&away, rig, 1);
	number = away_post(&away, 0, AWAY_LEN);
	(void)away_post(&away, 0, AWAY_LEN);
	away_send(&away, 0, AWAY_LEN, 0);
	dt_ok(dat_ep_free(away.ep[0].ep));
	memset(rig->x.p, 0x99, RIG_LEN);
	if (dat_evd_dequeue(away.ep[0].recv, &event) == DAT_SUCCESS)
		assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 ==
			    away_cookie(0, number));
	tell_end(&away, AWAY_ENDED, 0);
	dt_no_event(away.ep[0].recv);
	dt_no_event(away.ep[0].conn);
	dt_check_bytes(rig->x.p, RIG_LEN, 0x99);
	away_close(&away);
}

/* DTO-06 DTO-53 DTO-60: the receiver dies; this process is the sender */
static void post_send__receiver_dies_directly_behind__send_completes_once(void **state)
{
	struct rig *rig = &rig_of_test;
	const struct away_order post = {.what = AWAY_POST, .len = AWAY_LEN};
	struct away away;
	struct dt_ep *ep;

	(void)state;
	away_open(&away, rig, 1);
	ep = &away.ep[0];
	(void)away_tell(&away, 0, &post);
	post_send(ep, dt_seg(&rig->x, 0, AWAY_LEN), 1, 0);
	expect_sent(ep, 1, AWAY_LEN);
	dt_peer_kill(&away.peer[0]);
	expect_death(ep);
	post_send(ep, dt_seg(&rig->x, 0, AWAY_LEN), 99, 0);
	expect_request(ep, 99, DAT_DTO_ERR_FLUSHED);
	expect_quiet(ep);
	away_close(&away);
}

/* --- Receives that cannot take the message --- */

/* DTO-54 DTO-59 DTO-79 DTO-116: nothing outside the Receive changes */
static void send__longer_than_the_receive__length_error_and_both_break(void **state)
{
	DAT_DTO_COMPLETION_STATUS status;
	struct away away;
	struct dt_ep *ep;
	uint64_t number;

	away_open(&away, *state, 1);
	ep = &away.ep[0];
	number = away_post(&away, 0, AWAY_LEN - 1);
	(void)away_post(&away, 0, AWAY_LEN);
	status = away_send_as(&away, 0, (struct away_order){.len = AWAY_LEN});
	if (status != DAT_DTO_SUCCESS) /* iWARP */
		assert_int_equal(status, DAT_DTO_ERR_REMOTE_RESPONDER);
	dt_expect_dto(ep->recv, ep->ep, away_cookie(0, number), DAT_DTO_ERR_LOCAL_LENGTH,
		      DT_ANY_LEN);
	expect_recv_flushed(ep, away_cookie(0, number + 1));
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_BROKEN);
	tell_end(&away, AWAY_BROKEN, 0);
	dt_check_bytes(away_at(&away, 0, number) + AWAY_LEN - 1, AWAY_SLOT - AWAY_LEN + 1,
		       AWAY_FILL);
	expect_quiet(ep);
	away_close(&away);
}

/* LMR-FREE-06 LMR-FREE-17 DTO-56 DTO-96: and the memory does not change any more */
static void lmr_free__receive_posted__it_fails_and_no_byte_changes(void **state)
{
	struct rig *rig = *state;
	struct away away;
	struct dt_buf own;
	struct dt_ep *ep;

	away_open(&away, rig, 1);
	ep = &away.ep[0];
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, AWAY_LEN, DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
		      &own);
	post_recv(ep, dt_seg(&own, 0, AWAY_LEN), 1);
	dt_ok(dat_lmr_free(own.lmr));
	memset(rig->y.p, 0x99, AWAY_LEN);
	(void)away_send_as(&away, 0, (struct away_order){.len = AWAY_LEN});
	dt_expect_dto(ep->recv, ep->ep, 1, DAT_DTO_ERR_LOCAL_PROTECTION, DT_ANY_LEN);
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_BROKEN);
	tell_end(&away, AWAY_BROKEN, 0);
	dt_check_bytes(rig->y.p, AWAY_LEN, 0x99);
	away_close(&away);
}

static int only_state(void **state)
{
	*state = &rig_of_test;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_ends__directly_behind_a_message__receive_succeeds_once),
		cmocka_unit_test(ep_free__directly_behind_a_message__no_event_and_no_byte_follows),
		cmocka_unit_test(post_send__receiver_dies_directly_behind__send_completes_once),
		cmocka_unit_test_setup(send__longer_than_the_receive__length_error_and_both_break,
				       only_state),
		cmocka_unit_test_setup(lmr_free__receive_posted__it_fails_and_no_byte_changes,
				       only_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
