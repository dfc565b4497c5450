// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which events of endpoints notify a CNO.
 */
#include "cno_util.h"
#include "ep_util.h"

static DAT_CNO_HANDLE notify(struct dt_ia *ia, DAT_EVD_HANDLE evd)
{
	DAT_CNO_HANDLE cno = cno_create(ia);

	dt_ok(dat_evd_modify_cno(evd, cno));
	return cno;
}

static void notify_no_more(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE evd)
{
	dt_ok(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	dt_ok(dat_cno_free(cno));
}

static void expect_conn(DAT_CNO_HANDLE cno, struct dt_ep *ep, DAT_EVENT_NUMBER number)
{
	cno_expect(cno, ep->conn);
	dt_expect_conn(ep->conn, ep->ep, number);
}

/* CONN-EVT-09 EVD-STREAM-20 EVD-STREAM-21: ESTABLISHED, DISCONNECTED, rejection, request */
static void cno_wait__connection_events__each_notifies(void **state)
{
	struct dt_listener listener;
	struct dt_ep ep[2];
	DAT_CNO_HANDLE cno[3];
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	dt_listen(&ia, &listener);
	cno[2] = notify(&ia, listener.evd);
	for (int i = 0; i < 2; i++) {
		dt_ep_create(&ia, ia.pz, NULL, &ep[i]);
		cno[i] = notify(&ia, ep[i].conn);
	}
	dt_connect(&ia, ep[0].ep, listener.qual);
	cno_expect(cno[2], listener.evd);
	dt_ok(dat_cr_reject(dt_request(&listener)));
	expect_conn(cno[0], &ep[0], DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_ep_reset(ep[0].ep));
	dt_connect(&ia, ep[0].ep, listener.qual);
	cno_expect(cno[2], listener.evd);
	dt_ok(dat_cr_accept(dt_request(&listener), ep[1].ep, 0, NULL));
	for (int i = 0; i < 2; i++)
		expect_conn(cno[i], &ep[i], DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_ep_disconnect(ep[0].ep, DAT_CLOSE_ABRUPT_FLAG));
	for (int i = 0; i < 2; i++) {
		expect_conn(cno[i], &ep[i], DAT_CONNECTION_EVENT_DISCONNECTED);
		cno_is_quiet(cno[i]);
		notify_no_more(cno[i], ep[i].conn);
		dt_ep_free(&ep[i]);
	}
	notify_no_more(cno[2], listener.evd);
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* A pair whose sides have these flags: a for its requests, b for its receives. */
static void open_pair(struct dt_pair *pair, DAT_COMPLETION_FLAGS request, DAT_COMPLETION_FLAGS recv)
{
	DAT_EP_ATTR a, b;
	struct dt_ia probe;

	dt_ia_open(&probe);
	dt_ep_attr(&probe, &a);
	dt_ia_close(&probe);
	b = a;
	a.request_completion_flags = request;
	b.recv_completion_flags = recv;
	dt_pair_open_with(pair, &a, &b);
}

/* Takes a completion without becoming a direct waiter. */
static void take_dto(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	DAT_EVENT event = dt_event_poll(evd);

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

/* Messages of which only every second triggers the CNO of `watched`. */
static void check_every_second_notifies(struct dt_pair *pair, DAT_EVD_HANDLE watched,
					DAT_EVD_HANDLE other, DAT_COMPLETION_FLAGS silent,
					DAT_COMPLETION_FLAGS notifying)
{
	const DAT_CNO_HANDLE cno = notify(&pair->ia, watched);

	for (uint64_t i = 0; i < 3; i++) {
		cno_send(pair, 10 + i, silent);
		take_dto(other, 10 + i);
		cno_stays_quiet(cno);
		cno_send(pair, 20 + i, notifying);
		cno_expect(cno, watched);
		take_dto(watched, 10 + i);
		take_dto(watched, 20 + i);
		take_dto(other, 20 + i);
		cno_is_quiet(cno);
	}
	notify_no_more(cno, watched);
}

/* DTO-18: The CNO is not triggered; the next signalled completion triggers it. */
static void cno_wait__unsignalled_completion__not_notified(void **state)
{
	struct dt_pair pair;

	(void)state;
	open_pair(&pair, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG);
	check_every_second_notifies(&pair, pair.a.request, pair.b.recv,
				    DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG);
	dt_pair_close(&pair);
}

/* DTO-23 DTO-24 */
static void cno_wait__solicited_wait__only_solicited_notify(void **state)
{
	struct dt_pair pair;

	(void)state;
	open_pair(&pair, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	check_every_second_notifies(&pair, pair.b.recv, pair.a.request, DAT_COMPLETION_DEFAULT_FLAG,
				    DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	dt_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cno_wait__connection_events__each_notifies),
		cmocka_unit_test(cno_wait__unsignalled_completion__not_notified),
		cmocka_unit_test(cno_wait__solicited_wait__only_solicited_notify),
	};

	return cmocka_run_group_tests_name("cno_events", tests, NULL, NULL);
}
