// SPDX-License-Identifier: BSD-2-Clause
/*
 * What ends a message to a receiver that makes no call while it arrives (placing.h): it is too
 * long, its region is freed, or the connection ends directly behind it.
 */
#include "placing.h"

/* The connection has ended. The kernel ends TCP connections of a dead process in order, so the
 * other side gets DISCONNECTED there (EP-STATE-44). */
static void expect_death(const struct dt_ep *ep)
{
	const DAT_EVENT event = dt_event(ep->conn);

	assert_true(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
		    event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_ptr_equal(event.event_data.connect_event_data.ep_handle, ep->ep);
}

static void tell_end(struct placing *placing, enum placing_what what, DAT_CLOSE_FLAGS how)
{
	(void)placing_tell(placing, 0, &(struct placing_order){.what = what, .how = how});
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

static void end_connection(struct placing *placing, enum end end)
{
	struct dt_ep *ep = &placing->ep[0];
	const bool is_graceful = end == SENDER_GRACEFUL || end == RECEIVER_GRACEFUL;
	const DAT_CLOSE_FLAGS how = is_graceful ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG;

	switch (end) {
	case SENDER_ABRUPT:
	case SENDER_GRACEFUL:
		tell_end(placing, PLACING_DISCONNECT, how);
		break;
	case SENDER_FREES:
		tell_end(placing, PLACING_FREE_EP, 0);
		break;
	case SENDER_DIES:
		dt_peer_kill(&placing->peer[0]);
		expect_death(ep);
		return;
	default:
		dt_ok(dat_ep_disconnect(ep->ep, how));
		tell_end(placing, PLACING_ENDED, 0);
	}
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* DTO-06 DTO-52 EP-DISC-15 EP-DISC-16 EP-DISC-35 EP-FREE-19 */
static bool end_behind_message(struct rig *rig, const void *arg)
{
	const enum end end = *(const enum end *)arg;
	struct placing placing;
	uint64_t number, next;
	bool is_placed;

	placing_open(&placing, rig, 1);
	placing_warm(&placing, 0);
	number = placing_post(&placing, 0, PLACING_LEN);
	next = placing_post(&placing, 0, PLACING_LEN);
	is_placed = placing_send(&placing, 0, PLACING_LEN, 0);
	placing_spin(&placing, 0, number, PLACING_LEN); /* iWARP places it later */
	end_connection(&placing, end);
	placing_take(&placing, 0, PLACING_LEN);
	expect_recv_flushed(&placing.ep[0], placing_cookie(0, next));
	assert_int_equal(dt_ep_state(placing.ep[0].ep), DAT_EP_STATE_DISCONNECTED);
	dt_check_bytes(placing_at(&placing, 0, next), PLACING_LEN, PLACING_FILL);
	expect_quiet(&placing.ep[0]);
	placing_close(&placing);
	return is_placed;
}

static void connection_ends__directly_behind_a_message__receive_succeeds_once(void **state)
{
	(void)state;
	for (enum end end = 0; end < ENDS; end++)
		placing_repeat(end_behind_message, &end);
}

/* EP-FREE-19 EP-FREE-20 EP-FREE-22 EP-FREE-23: the receiver frees its endpoint */
static bool free_behind_message(struct rig *rig, const void *unused)
{
	struct placing placing;
	uint64_t number;
	bool is_placed;
	DAT_EVENT event;

	(void)unused;
	placing_open(&placing, rig, 1);
	placing_warm(&placing, 0);
	number = placing_post(&placing, 0, PLACING_LEN);
	(void)placing_post(&placing, 0, PLACING_LEN);
	is_placed = placing_send(&placing, 0, PLACING_LEN, 0);
	dt_ok(dat_ep_free(placing.ep[0].ep));
	memset(rig->x.p, 0x99, RIG_LEN);
	if (dat_evd_dequeue(placing.ep[0].recv, &event) == DAT_SUCCESS)
		assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 ==
			    placing_cookie(0, number));
	tell_end(&placing, PLACING_ENDED, 0);
	dt_no_event(placing.ep[0].recv);
	dt_no_event(placing.ep[0].conn);
	dt_check_bytes(rig->x.p, RIG_LEN, 0x99);
	placing_close(&placing);
	return is_placed;
}

static void ep_free__directly_behind_a_message__no_event_and_no_byte_follows(void **state)
{
	(void)state;
	placing_repeat(free_behind_message, NULL);
}

/* DTO-06 DTO-53 DTO-60: the receiver dies; this process is the sender */
static bool receiver_dies(struct rig *rig, const void *unused)
{
	const struct placing_order post = {.what = PLACING_POST, .len = PLACING_LEN};
	const struct placing_order take = {.what = PLACING_TAKE, .len = PLACING_LEN};
	struct placing placing;
	bool is_placed = false;
	struct dt_ep *ep;

	(void)unused;
	placing_open(&placing, rig, 1);
	ep = &placing.ep[0];
	for (unsigned i = 0; i < PLACING_ROUNDS_MAX && !is_placed; i++) {
		const uint64_t before = placing_count(ep->ep);

		if (i)
			(void)placing_tell(&placing, 0, &take);
		(void)placing_tell(&placing, 0, &post);
		post_send(ep, dt_seg(&rig->x, 0, PLACING_LEN), i, 0);
		expect_sent(ep, i, PLACING_LEN);
		is_placed = placing_count(ep->ep) != before;
	}
	dt_peer_kill(&placing.peer[0]);
	expect_death(ep);
	post_send(ep, dt_seg(&rig->x, 0, PLACING_LEN), 99, 0);
	expect_request(ep, 99, DAT_DTO_ERR_FLUSHED);
	expect_quiet(ep);
	placing_close(&placing);
	return is_placed;
}

static void post_send__receiver_dies_directly_behind__send_completes_once(void **state)
{
	(void)state;
	placing_repeat(receiver_dies, NULL);
}

/* --- Receives that cannot take the message --- */

/* DTO-54 DTO-59 DTO-79 DTO-116: nothing outside the Receive changes */
static void send__longer_than_the_receive__length_error_and_both_break(void **state)
{
	struct placing_reply reply;
	struct placing placing;
	struct dt_ep *ep;
	uint64_t number;

	placing_open(&placing, *state, 1);
	ep = &placing.ep[0];
	placing_warm(&placing, 0);
	number = placing_post(&placing, 0, PLACING_LEN - 1);
	(void)placing_post(&placing, 0, PLACING_LEN);
	reply = placing_send_as(&placing, 0, (struct placing_order){.len = PLACING_LEN});
	assert_false(reply.is_placed);
	if (reply.status != DAT_DTO_SUCCESS) /* iWARP */
		assert_int_equal(reply.status, DAT_DTO_ERR_REMOTE_RESPONDER);
	dt_expect_dto(ep->recv, ep->ep, placing_cookie(0, number), DAT_DTO_ERR_LOCAL_LENGTH,
		      DT_ANY_LEN);
	expect_recv_flushed(ep, placing_cookie(0, number + 1));
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_BROKEN);
	tell_end(&placing, PLACING_BROKEN, 0);
	dt_check_bytes(placing_at(&placing, 0, number) + PLACING_LEN - 1,
		       PLACING_SLOT - PLACING_LEN + 1, PLACING_FILL);
	expect_quiet(ep);
	placing_close(&placing);
}

/* LMR-FREE-06 LMR-FREE-17 DTO-56 DTO-96: and the memory does not change any more */
static void lmr_free__receive_posted__it_fails_and_no_byte_changes(void **state)
{
	struct rig *rig = *state;
	struct placing_reply reply;
	struct placing placing;
	struct dt_buf own;
	struct dt_ep *ep;

	placing_open(&placing, rig, 1);
	ep = &placing.ep[0];
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, PLACING_LEN, DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
		      &own);
	placing_warm(&placing, 0);
	post_recv(ep, dt_seg(&own, 0, PLACING_LEN), 1);
	dt_ok(dat_lmr_free(own.lmr));
	memset(rig->y.p, 0x99, PLACING_LEN);
	reply = placing_send_as(&placing, 0, (struct placing_order){.len = PLACING_LEN});
	assert_false(reply.is_placed);
	dt_expect_dto(ep->recv, ep->ep, 1, DAT_DTO_ERR_LOCAL_PROTECTION, DT_ANY_LEN);
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_BROKEN);
	tell_end(&placing, PLACING_BROKEN, 0);
	dt_check_bytes(rig->y.p, PLACING_LEN, 0x99);
	placing_close(&placing);
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
