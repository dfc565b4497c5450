// SPDX-License-Identifier: BSD-2-Clause
/* dat_evd_free: which objects keep an EVD in use, and what happens to queued events. */
#include "evd_util.h"

/* EVD-FREE-01 EVD-FREE-02 EVD-FREE-11 */
static void evd_free__events_queued__gone_with_them(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVENT event;

	evd_post_range(f->evd, 1, 3);
	dt_ok(dat_evd_free(f->evd));
	dt_fails(dat_evd_free(f->evd), DAT_INVALID_HANDLE);
	dt_fails(dat_evd_dequeue(f->evd, &event), DAT_INVALID_HANDLE);
	dt_fails(evd_try_post(f->evd, 1), DAT_INVALID_HANDLE);
	dt_no_event(f->ia.async);
	dt_ia_close(&f->ia);
	f->is_open = false;
}

enum role { RECV, REQUEST, CONN, ROLES };

/* EVD-FREE-03 EVD-FREE-05 EVD-FREE-06 EVD-FREE-07: each role of an endpoint by itself */
static void evd_free__endpoint_feeds_it__invalid_state_until_it_is_gone(void **state)
{
	struct evd_fixture *f = *state;

	for (int role = 0; role < ROLES; role++) {
		DAT_EVD_FLAGS flag = role == CONN ? DAT_EVD_CONNECTION_FLAG : DAT_EVD_DTO_FLAG;
		DAT_EVD_HANDLE evd[ROLES] = {DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL};
		DAT_EP_ATTR attr;
		DAT_EP_HANDLE ep;

		evd[role] = dt_evd_create(&f->ia, 8, flag);
		dt_ep_attr(&f->ia, &attr);
		if (role != RECV)
			attr.max_recv_dtos = 0;
		if (role != REQUEST)
			attr.max_request_dtos = 0;
		dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, evd[RECV], evd[REQUEST], evd[CONN], &attr,
				    &ep));
		dt_fails_with(dat_evd_free(evd[role]), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_EVD_IN_USE);
		dt_no_event(evd[role]);
		dt_ok(dat_ep_free(ep));
		dt_ok(dat_evd_free(evd[role]));
	}
}

/* EVD-FREE-03 EVD-FREE-07 */
static void evd_free__psp_feeds_it__invalid_state_until_it_is_gone(void **state)
{
	struct evd_fixture *f = *state;
	struct dt_listener listener;

	dt_listen(&f->ia, &listener);
	dt_fails_with(dat_evd_free(listener.evd), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	dt_ok(dat_psp_free(listener.psp));
	dt_ok(dat_evd_free(listener.evd));
}

/* An RSP on an unused qualifier. */
static DAT_RSP_HANDLE reserve(struct dt_ia *ia, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
			      DAT_CONN_QUAL *qual)
{
	DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;

	for (int tries = 0; tries < 100; tries++) {
		struct dt_listener listener;
		DAT_RETURN ret;

		dt_listen(ia, &listener);
		*qual = listener.qual;
		dt_unlisten(&listener);
		ret = dat_rsp_create(ia->ia, *qual, ep, evd, &rsp);
		if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
			continue; /* another process was faster */
		dt_ok(ret);
		return rsp;
	}
	fail();
	return rsp;
}

/* EVD-FREE-03 EVD-FREE-07 EVD-FREE-04 */
static void evd_free__rsp_feeds_it__invalid_state_until_it_is_gone(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 8, DAT_EVD_CR_FLAG);
	struct dt_ep ep;
	DAT_CONN_QUAL qual;
	DAT_RSP_HANDLE rsp;

	dt_ep_create(&f->ia, f->ia.pz, NULL, &ep);
	rsp = reserve(&f->ia, ep.ep, evd, &qual);
	dt_fails_with(dat_evd_free(evd), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	dt_ok(dat_rsp_free(rsp));
	dt_ok(dat_evd_free(evd));
}

/* EVD-FREE-04 EVD-FREE-05: Its events still arrive. */
static void evd_free__asynchronous_evd__invalid_state(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE recv = dt_evd_create(&f->ia, 1, DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE conn = dt_evd_create(&f->ia, 8, DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE ep = evd_flusher(&f->ia, recv, conn, NULL);

	dt_fails_with(dat_evd_free(f->ia.async), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	evd_flush(ep, 1);
	evd_flush(ep, 2);
	assert_int_equal(dt_event(f->ia.async).event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
}

/* EVD-FREE-06: An EVD that the endpoint no longer feeds can be freed; the endpoint's other
 * streams continue. */
static void evd_free__replaced_evd__other_streams_work(void **state)
{
	struct evd_fixture *f = *state;
	struct dt_pair pair;
	DAT_EVD_HANDLE fresh;
	DAT_EP_PARAM param;

	(void)f;
	dt_ia_open(&pair.ia);
	dt_ep_create(&pair.ia, pair.ia.pz, NULL, &pair.a);
	dt_ep_create(&pair.ia, pair.ia.pz, NULL, &pair.b);
	fresh = dt_evd_create(&pair.ia, 64, DAT_EVD_DTO_FLAG);
	memset(&param, 0, sizeof(param));
	param.recv_evd_handle = fresh;
	dt_ok(dat_ep_modify(pair.b.ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param));
	dt_ok(dat_evd_free(pair.b.recv));
	pair.b.recv = fresh;
	dt_ep_link(&pair.ia, &pair.a, &pair.b);
	dt_ok(dat_ep_post_recv(pair.b.ep, 0, NULL, dt_cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	dt_ok(dat_ep_post_send(pair.a.ep, 0, NULL, dt_cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(pair.b.recv, pair.b.ep, 1, DAT_DTO_SUCCESS, 0);
	dt_expect_dto(pair.a.request, pair.a.ep, 2, DAT_DTO_SUCCESS, 0);
	dt_pair_close(&pair);
}

static bool request_is_queued(void *arg)
{
	DAT_EVENT event;
	DAT_COUNT nmore = 0;

	/* a threshold above what is there: nothing is taken, the queue is counted */
	return DAT_GET_TYPE(dat_evd_wait(arg, 0, 2, &event, &nmore)) == DAT_TIMEOUT_EXPIRED &&
	       nmore == 1;
}

/* EVD-FREE-12 EP-STATE-82: No call can answer the request any more. */
static void evd_free__request_of_psp_queued__requester_refused(void **state)
{
	struct evd_fixture *f = *state;
	static const DAT_PSP_FLAGS flags[] = {DAT_PSP_CONSUMER_FLAG, DAT_PSP_PROVIDER_FLAG};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 8, DAT_EVD_CR_FLAG);
		DAT_CONN_QUAL qual;
		DAT_PSP_HANDLE psp;
		struct dt_ep ep;

		dt_ok(dat_psp_create_any(f->ia.ia, &qual, evd, flags[i], &psp));
		dt_ep_create(&f->ia, f->ia.pz, NULL, &ep);
		dt_connect(&f->ia, ep.ep, qual);
		dt_until(request_is_queued, evd);
		dt_ok(dat_psp_free(psp));
		dt_stays_empty(ep.conn);
		dt_ok(dat_evd_free(evd));
		dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		dt_ep_free(&ep);
	}
	/* an endpoint made by the provider is freed, too */
	dt_ok(dat_evd_free(f->evd));
	dt_ia_close(&f->ia);
	f->is_open = false;
}

/* EVD-FREE-12 EP-STATE-82: The reserved endpoint becomes free again. */
static void evd_free__request_of_rsp_queued__endpoint_unconnected(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 8, DAT_EVD_CR_FLAG);
	struct dt_ep ep, reserved;
	DAT_CONN_QUAL qual;
	DAT_RSP_HANDLE rsp;

	dt_ep_create(&f->ia, f->ia.pz, NULL, &ep);
	dt_ep_create(&f->ia, f->ia.pz, NULL, &reserved);
	rsp = reserve(&f->ia, reserved.ep, evd, &qual);
	dt_connect(&f->ia, ep.ep, qual);
	dt_until(request_is_queued, evd);
	dt_ok(dat_rsp_free(rsp));
	assert_int_equal(dt_ep_state(reserved.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	dt_ok(dat_evd_free(evd));
	assert_int_equal(dt_ep_state(reserved.ep), DAT_EP_STATE_UNCONNECTED);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_no_event(reserved.conn);
	dt_ok(dat_ep_reset(ep.ep));
	dt_ep_link(&f->ia, &ep, &reserved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(evd_free__events_queued__gone_with_them),
		evd_test(evd_free__endpoint_feeds_it__invalid_state_until_it_is_gone),
		evd_test(evd_free__psp_feeds_it__invalid_state_until_it_is_gone),
		evd_test(evd_free__rsp_feeds_it__invalid_state_until_it_is_gone),
		evd_test(evd_free__asynchronous_evd__invalid_state),
		evd_test(evd_free__replaced_evd__other_streams_work),
		evd_test(evd_free__request_of_psp_queued__requester_refused),
		evd_test(evd_free__request_of_rsp_queued__endpoint_unconnected),
	};

	return cmocka_run_group_tests_name("evd_free", tests, NULL, NULL);
}
