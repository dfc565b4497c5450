// SPDX-License-Identifier: BSD-2-Clause
/*
 * What happens to posted operations in each transition of the endpoint state machine. One table
 * lists all transitions to DISCONNECTED; the same checks run for each.
 */
#include "ep_lab.h"

#define RECVS 4
#define SENDS 3
#define RECV_COOKIE 100
#define SEND_COOKIE 200
#define GRACEFUL_COOKIE 0xd15c /* cookie of the Send that ep_lab keeps in DISCONNECT_PENDING */

struct ending {
	const char *name;
	DAT_EP_STATE from;
	DAT_EVENT_NUMBER event;
	void (*end)(struct ep_lab *lab);
	unsigned int sends; /* posted before the end, without a Receive for them */
	uint64_t success;   /* cookie of a request that succeeds, if any */
	uint64_t failure;   /* cookie of the request that ends the connection, if any */
};

/* --- transitions to DISCONNECTED --- */

static void end_rejected(struct ep_lab *lab)
{
	dt_ok(dat_cr_reject(lab->cr));
}

static void end_no_listener(struct ep_lab *lab)
{
	dt_connect(&lab->ia, lab->ep.ep, ep_free_qual(&lab->ia));
}

static void end_timed_out(struct ep_lab *lab)
{
	ep_lab_listen(lab);
	dt_ok(dat_ep_connect(lab->ep.ep, lab->ia.attr.ia_address_ptr, lab->qual, 50000, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static void end_abrupt(struct ep_lab *lab)
{
	dt_ok(dat_ep_disconnect(lab->ep.ep, DAT_CLOSE_ABRUPT_FLAG));
}

static void end_graceful(struct ep_lab *lab)
{
	dt_ok(dat_ep_disconnect(lab->ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
}

static void end_active_side_killed(struct ep_lab *lab)
{
	dt_peer_kill(&lab->process);
}

static void end_active_side_gave_up(struct ep_lab *lab)
{
	dt_ok(dat_ep_disconnect(lab->peer.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_cr_accept(lab->cr, DAT_HANDLE_NULL, 0, NULL));
}

static void end_peer_abrupt(struct ep_lab *lab)
{
	dt_ok(dat_ep_disconnect(lab->peer.ep, DAT_CLOSE_ABRUPT_FLAG));
}

static void end_peer_graceful(struct ep_lab *lab)
{
	dt_ok(dat_ep_disconnect(lab->peer.ep, DAT_CLOSE_GRACEFUL_FLAG));
}

static void end_peer_freed(struct ep_lab *lab)
{
	dt_ok(dat_ep_free(lab->peer.ep));
}

static void end_peer_receives(struct ep_lab *lab)
{
	dt_ok(ep_recv(lab->peer.ep, &lab->buf, 8192, 64, 1));
}

static void end_bad_context(struct ep_lab *lab)
{
	DAT_LMR_TRIPLET seg = dt_seg(&lab->buf, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&lab->buf, 0, 8);
	struct dt_buf gone;

	dt_buf_create(&lab->ia, lab->ia.pz, &gone, 4096, DAT_MEM_PRIV_ALL_FLAG);
	remote.rmr_context = gone.rkey;
	remote.target_address = (uintptr_t)gone.p;
	dt_buf_free(&gone);
	dt_ok(dat_ep_post_rdma_write(lab->ep.ep, 1, &seg, dt_cookie(0xbad), &remote,
				     DAT_COMPLETION_DEFAULT_FLAG));
}

#define U DAT_EP_STATE_UNCONNECTED
#define P DAT_EP_STATE_PASSIVE_CONNECTION_PENDING
#define A DAT_EP_STATE_ACTIVE_CONNECTION_PENDING
#define C DAT_EP_STATE_COMPLETION_PENDING
#define X DAT_EP_STATE_CONNECTED
#define G DAT_EP_STATE_DISCONNECT_PENDING
#define DISCONNECTED DAT_CONNECTION_EVENT_DISCONNECTED
#define ACCEPT_ERROR DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR

static const struct ending endings[] = {
	{"rejected", A, DAT_CONNECTION_EVENT_PEER_REJECTED, end_rejected, 0, 0, 0},
	{"no listener", U, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, end_no_listener, 0, 0, 0},
	{"timed out", U, DAT_CONNECTION_EVENT_TIMED_OUT, end_timed_out, 0, 0, 0},
	{"attempt ended abruptly", A, DISCONNECTED, end_abrupt, 0, 0, 0},
	{"attempt ended gracefully", A, DISCONNECTED, end_graceful, 0, 0, 0},
	{"accept ended abruptly", C, DISCONNECTED, end_abrupt, 0, 0, 0},
	{"accept ended gracefully", C, DISCONNECTED, end_graceful, 0, 0, 0},
	{"active process killed", C, ACCEPT_ERROR, end_active_side_killed, 0, 0, 0},
	{"active side gave up", P, ACCEPT_ERROR, end_active_side_gave_up, 0, 0, 0},
	{"abrupt", X, DISCONNECTED, end_abrupt, SENDS, 0, 0},
	{"peer abrupt", X, DISCONNECTED, end_peer_abrupt, SENDS, 0, 0},
	{"peer graceful", X, DISCONNECTED, end_peer_graceful, SENDS, 0, 0},
	{"peer freed", X, DISCONNECTED, end_peer_freed, SENDS, 0, 0},
	{"graceful, idle", X, DISCONNECTED, end_graceful, 0, 0, 0},
	{"refused write", X, DAT_CONNECTION_EVENT_BROKEN, end_bad_context, 0, 0, 0xbad},
	{"abrupt during graceful", G, DISCONNECTED, end_abrupt, 0, 0, 0},
	{"peer abrupt during graceful", G, DISCONNECTED, end_peer_abrupt, 0, 0, 0},
	{"peer graceful during graceful", G, DISCONNECTED, end_peer_graceful, 0, 0, 0},
	{"peer freed during graceful", G, DISCONNECTED, end_peer_freed, 0, 0, 0},
	{"graceful finishes", G, DISCONNECTED, end_peer_receives, 0, GRACEFUL_COOKIE, 0},
};

static void post_and_end(struct ep_lab *lab, const struct ending *ending)
{
	for (uint64_t i = 0; i < RECVS; i++)
		dt_ok(ep_recv(lab->ep.ep, &lab->buf, 64 * i, 64, RECV_COOKIE + i));
	for (uint64_t i = 0; i < ending->sends; i++)
		dt_ok(ep_send(lab->ep.ep, &lab->buf, 64 * i, 64, SEND_COOKIE + i));
	dt_no_event(lab->ep.recv);
	dt_no_event(lab->ep.request);
	ending->end(lab);
}

static void begin(struct ep_lab *lab, const struct ending *ending)
{
	ep_lab_open(lab, ending->from);
	post_and_end(lab, ending);
}

/* Takes the next completion, which is queued already. */
static DAT_DTO_COMPLETION_EVENT_DATA completion_now(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep)
{
	DAT_EVENT event;

	dt_ok(dat_evd_dequeue(evd, &event));
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_ptr_equal(event.event_data.dto_completion_event_data.ep_handle, ep);
	return event.event_data.dto_completion_event_data;
}

/* All completions are queued by now, each once and in posting order. */
static void check_completions(struct ep_lab *lab, const struct ending *ending)
{
	DAT_DTO_COMPLETION_EVENT_DATA dto;

	for (uint64_t i = 0; i < RECVS; i++) {
		dto = completion_now(lab->ep.recv, lab->ep.ep);
		assert_int_equal(dto.user_cookie.as_64, RECV_COOKIE + i);
		assert_int_equal(dto.status, DAT_DTO_ERR_FLUSHED);
	}
	if (ending->from == G) {
		dto = completion_now(lab->ep.request, lab->ep.ep);
		assert_int_equal(dto.user_cookie.as_64, GRACEFUL_COOKIE);
		assert_int_equal(dto.status == DAT_DTO_SUCCESS, ending->success == GRACEFUL_COOKIE);
	}
	for (uint64_t i = 0; i < ending->sends; i++) {
		dto = completion_now(lab->ep.request, lab->ep.ep);
		assert_int_equal(dto.user_cookie.as_64, SEND_COOKIE + i);
		assert_int_not_equal(dto.status, DAT_DTO_SUCCESS);
	}
	if (ending->failure) {
		dto = completion_now(lab->ep.request, lab->ep.ep);
		assert_int_equal(dto.user_cookie.as_64, ending->failure);
		assert_int_equal(dto.status, DAT_DTO_ERR_REMOTE_ACCESS);
	}
	dt_no_event(lab->ep.recv);
	dt_no_event(lab->ep.request);
}

/*
 * EP-STATE-18 EP-STATE-19 EP-STATE-21 EP-STATE-22 EP-STATE-33 EP-STATE-34 EP-STATE-36 EP-STATE-37
 * EP-STATE-38 EP-STATE-39 EP-STATE-40 EP-STATE-41 EP-STATE-48 EP-STATE-50 EP-STATE-51 EP-STATE-52
 * EP-STATE-53 EP-STATE-72 EP-STATE-73 EP-STATE-74 EP-STATE-75 EP-STATE-76 EP-STATE-79: for each
 * transition to DISCONNECTED one event, and with it the new state and all completions
 */
static void ep__every_way_into_disconnected__one_event_and_all_completions(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < COUNT_OF(endings); i++) {
		print_message("# %s\n", endings[i].name);
		begin(lab, &endings[i]);
		dt_expect_conn(lab->ep.conn, lab->ep.ep, endings[i].event);
		assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_DISCONNECTED);
		check_completions(lab, &endings[i]);
		assert_true(ep_is_recv_idle(lab->ep.ep));
		assert_true(ep_is_request_idle(lab->ep.ep));
		dt_stays_empty(lab->ep.conn);
		ep_lab_no_events(lab);
		dt_ok(dat_ep_reset(lab->ep.ep));
		assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_UNCONNECTED);
		ep_lab_no_events(lab);
		ep_lab_close(lab);
	}
}

/* EP-STATE-83 EP-STATE-73 EP-STATE-72: by the state alone, without waiting for an event */
static void ep__state_reads_disconnected__every_completion_is_queued(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < COUNT_OF(endings); i++) {
		print_message("# %s\n", endings[i].name);
		begin(lab, &endings[i]);
		dt_until(ep_is_disconnected, lab->ep.ep);
		check_completions(lab, &endings[i]);
		dt_expect_conn(lab->ep.conn, lab->ep.ep, endings[i].event);
		ep_lab_close(lab);
	}
}

/*
 * EP-STATE-53 EP-STATE-73 EP-STATE-72: with one EVD for all streams the order is certain: all
 * completions precede the event
 */
static void ep__one_evd_for_all__completions_before_the_event(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < COUNT_OF(endings); i++) {
		unsigned int completions = RECVS + endings[i].sends + (endings[i].from == G) +
					   (endings[i].failure != 0);

		print_message("# %s\n", endings[i].name);
		ep_lab_open_shared(lab, endings[i].from);
		post_and_end(lab, &endings[i]);
		while (completions-- > 0)
			assert_int_equal(dt_event(lab->ep.conn).event_number,
					 DAT_DTO_COMPLETION_EVENT);
		dt_expect_conn(lab->ep.conn, lab->ep.ep, endings[i].event);
		dt_stays_empty(lab->ep.conn);
		ep_lab_close(lab);
	}
}

/* EP-STATE-77: posted in DISCONNECTED after completions that are still queued */
static void ep__posted_in_disconnected__flushed_after_earlier_ones(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < COUNT_OF(endings); i++) {
		begin(lab, &endings[i]);
		dt_expect_conn(lab->ep.conn, lab->ep.ep, endings[i].event);
		dt_ok(ep_recv(lab->ep.ep, &lab->buf, 0, 64, 1));
		dt_ok(ep_send(lab->ep.ep, &lab->buf, 0, 64, 2));
		dt_ok(ep_write(lab->ep.ep, &lab->buf, 0, &lab->buf, 4096, 64, 3));
		dt_ok(ep_read(lab->ep.ep, &lab->buf, 4096, &lab->buf, 0, 64, 4));
		for (uint64_t k = 0; k < RECVS; k++)
			completion_now(lab->ep.recv, lab->ep.ep);
		dt_expect_dto(lab->ep.recv, lab->ep.ep, 1, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
		for (unsigned int k = 0;
		     k < endings[i].sends + (endings[i].from == G) + (endings[i].failure != 0); k++)
			completion_now(lab->ep.request, lab->ep.ep);
		for (uint64_t cookie = 2; cookie <= 4; cookie++)
			dt_expect_dto(lab->ep.request, lab->ep.ep, cookie, DAT_DTO_ERR_FLUSHED,
				      DT_ANY_LEN);
		ep_lab_close(lab);
	}
}

/* --- transitions that keep Receives --- */

/* Four Receives that were posted before take the first four messages, in posting order. */
static void check_preposted(struct ep_lab *lab, struct dt_ep *from)
{
	for (uint64_t i = 0; i < RECVS; i++) {
		memset(lab->buf.p + 8192, (int)(i + 1), 64);
		dt_ok(ep_send(from->ep, &lab->buf, 8192, 64, i));
		dt_expect_dto(from->request, from->ep, i, DAT_DTO_SUCCESS, 64);
		dt_expect_dto(lab->ep.recv, lab->ep.ep, RECV_COOKIE + i, DAT_DTO_SUCCESS, 64);
		dt_check_bytes(lab->buf.p + 64 * i, 64, (unsigned char)(i + 1));
	}
	dt_no_event(lab->ep.recv);
}

static void prepost(struct ep_lab *lab)
{
	for (uint64_t i = 0; i < RECVS; i++)
		dt_ok(ep_recv(lab->ep.ep, &lab->buf, 64 * i, 64, RECV_COOKIE + i));
}

/*
 * EP-STATE-68: kept through RESERVED and the arrival of a connection request, one Receive posted in
 * each
 */
static void ep__receives_posted_on_the_way__kept_through_reserve_and_accept(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ok(ep_recv(lab->ep.ep, &lab->buf, 0, 64, RECV_COOKIE));
	lab->qual = ep_reserve(&lab->ia, lab->ep.ep, lab->sp_evd, &lab->rsp);
	dt_ok(ep_recv(lab->ep.ep, &lab->buf, 64, 64, RECV_COOKIE + 1));
	dt_connect(&lab->ia, lab->peer.ep, lab->qual);
	lab->cr = ep_next_request(lab->sp_evd);
	dt_ok(ep_recv(lab->ep.ep, &lab->buf, 128, 64, RECV_COOKIE + 2));
	dt_ok(dat_cr_accept(lab->cr, DAT_HANDLE_NULL, 0, NULL));
	dt_ok(ep_recv(lab->ep.ep, &lab->buf, 192, 64, RECV_COOKIE + 3));
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	check_preposted(lab, &lab->peer);
}

static void check_kept(struct ep_lab *lab)
{
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_UNCONNECTED);
	assert_false(ep_is_recv_idle(lab->ep.ep));
	dt_stays_empty(lab->ep.recv);
	ep_lab_no_events(lab);
}

/* EP-STATE-69 EP-STATE-24 */
static void rsp_free__receives_posted__stay(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_RESERVED);
	prepost(lab);
	dt_ok(dat_rsp_free(lab->rsp));
	check_kept(lab);
	dt_ep_link(&lab->ia, &lab->peer, &lab->ep);
	check_preposted(lab, &lab->peer);
}

/* EP-STATE-70 EP-STATE-27 */
static void cr_reject__receives_posted__stay(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	prepost(lab);
	dt_ok(dat_cr_reject(lab->cr));
	check_kept(lab);
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_ep_reset(lab->peer.ep));
	dt_ep_link(&lab->ia, &lab->ep, &lab->peer);
	check_preposted(lab, &lab->peer);
}

/* EP-STATE-70 EP-STATE-47 */
static void cr_handoff__receives_posted__stay(void **state)
{
	struct ep_lab *lab = *state;
	struct dt_listener listener;
	struct dt_ep fresh;

	ep_lab_open(lab, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	prepost(lab);
	dt_listen(&lab->ia, &listener);
	dt_ok(dat_cr_handoff(lab->cr, listener.qual));
	check_kept(lab);
	dt_no_event(lab->peer.conn);
	dt_ok(dat_cr_reject(dt_request(&listener)));
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &fresh);
	dt_ep_link(&lab->ia, &fresh, &lab->ep);
	check_preposted(lab, &fresh);
}

/* EP-STATE-71 EP-STATE-30 EP-STATE-47: reject and handoff */
static void cr_reject__provider_made_endpoint__receives_removed_with_it(void **state)
{
	struct ep_lab *lab = *state;

	for (int is_handoff = 0; is_handoff < 2; is_handoff++) {
		struct dt_listener listener;

		ep_lab_open(lab, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
		ep_lab_equip(lab);
		prepost(lab);
		dt_listen(&lab->ia, &listener);
		dt_ok(is_handoff ? dat_cr_handoff(lab->cr, listener.qual) : dat_cr_reject(lab->cr));
		dt_fails_with(dat_ep_get_status(lab->ep.ep, NULL, NULL, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		dt_fails_with(dat_ep_free(lab->ep.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		dt_stays_empty(lab->ep.recv);
		ep_lab_no_events(lab);
		/* the EVDs are no longer in use */
		dt_ok(dat_evd_free(lab->ep.recv));
		dt_ok(dat_evd_free(lab->ep.request));
		dt_ok(dat_evd_free(lab->ep.conn));
		ep_lab_close(lab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(ep__every_way_into_disconnected__one_event_and_all_completions),
		ep_test(ep__state_reads_disconnected__every_completion_is_queued),
		ep_test(ep__one_evd_for_all__completions_before_the_event),
		ep_test(ep__posted_in_disconnected__flushed_after_earlier_ones),
		ep_test(ep__receives_posted_on_the_way__kept_through_reserve_and_accept),
		ep_test(rsp_free__receives_posted__stay),
		ep_test(cr_reject__receives_posted__stay),
		ep_test(cr_handoff__receives_posted__stay),
		ep_test(cr_reject__provider_made_endpoint__receives_removed_with_it),
	};

	return cmocka_run_group_tests_name("ep_state_posted", tests, NULL, NULL);
}
