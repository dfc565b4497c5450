// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_rsp_create, and the requests that arrive at an RSP. dat_rsp_free and dat_rsp_query are in
 * test_rsp_free.c.
 */
#include "reserved.h"

/* --- requests --- */

/* RSP-CREATE-01 RSP-CREATE-02 RSP-CREATE-04 RSP-CREATE-05 RSP-CREATE-06 RSP-CREATE-08 CONN-EVT-11
 * CONN-EVT-14 CONN-EVT-16 CR-ACCEPT-04 CR-QUERY-05 EP-STATE-23 EP-STATE-25 EP-STATE-26 */
static void rsp_create__request_accepted__reserved_ep_connected(void **state)
{
	struct conn_fixture *f = *state;
	const struct reserved reserved = reserve(f, f->b.ep);
	const DAT_CR_ARRIVAL_EVENT_DATA *data;
	DAT_EVENT event;

	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_RESERVED);
	conn_no_events(&f->b);
	dt_connect(&f->ia, f->a.ep, reserved.qual);
	event = conn_request_event(f->listener.evd);
	data = &event.event_data.cr_arrival_event_data;
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	assert_ptr_equal(data->sp_handle.rsp_handle, reserved.rsp);
	assert_true(data->conn_qual == reserved.qual);
	conn_check_same_address((struct sockaddr *)data->local_ia_address_ptr,
				(struct sockaddr *)f->ia.attr.ia_address_ptr);
	assert_ptr_equal(conn_cr_query(data->cr_handle).local_ep_handle, f->b.ep);
	dt_stays_empty(f->listener.evd);
	dt_ok(dat_cr_accept(data->cr_handle, DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	conn_transfer(f, &f->a, &f->b);
}

/* RSP-CREATE-03 RSP-CREATE-22 RSP-CREATE-23 */
static void rsp__request_arrived__used_up_and_qualifier_free(void **state)
{
	struct conn_fixture *f = *state;
	const struct reserved reserved = reserve(f, f->b.ep);
	const DAT_CR_HANDLE cr = request_connection(f, &reserved);
	struct dt_ep c;
	DAT_RSP_PARAM param;
	DAT_RSP_HANDLE next;
	DAT_PSP_HANDLE psp;

	dt_ep_create(&f->ia, f->ia.pz, NULL, &c);
	dt_connect(&f->ia, c.ep, reserved.qual);
	conn_expect_failure(&c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_ok(dat_ep_reset(c.ep));
	dt_no_event(f->listener.evd);
	dt_ok(dat_rsp_query(reserved.rsp, DAT_RSP_FIELD_ALL, &param));
	assert_true(param.conn_qual == reserved.qual);
	/* the qualifier can be used by others although the old RSP still exists */
	dt_ok(dat_psp_create(f->ia.ia, reserved.qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG,
			     &psp));
	dt_connect(&f->ia, c.ep, reserved.qual);
	dt_ok(dat_cr_reject(dt_request(&f->listener)));
	conn_expect_failure(&c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_psp_free(psp));
	dt_ok(dat_ep_reset(c.ep));
	dt_ok(dat_rsp_create(f->ia.ia, reserved.qual, c.ep, f->listener.evd, &next));
	/* freeing the used-up RSP does not end the new one */
	dt_ok(dat_rsp_free(reserved.rsp));
	assert_int_equal(dt_ep_state(c.ep), DAT_EP_STATE_RESERVED);
	dt_ok(dat_cr_reject(cr));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_ep_reset(f->a.ep));
	dt_connect(&f->ia, f->a.ep, reserved.qual);
	dt_ok(dat_cr_accept(dt_request(&f->listener), DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(c.conn, c.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_rsp_free(next));
}

/* RSP-CREATE-07 CR-ACCEPT-05 CR-ACCEPT-18 */
static void cr_accept__rsp_request_with_another_ep__refused(void **state)
{
	struct conn_fixture *f = *state;
	const struct reserved reserved = reserve(f, f->b.ep);
	const DAT_CR_HANDLE cr = request_connection(f, &reserved);
	struct dt_ep c;

	dt_ep_create(&f->ia, f->ia.pz, NULL, &c);
	dt_fails_with(dat_cr_accept(cr, c.ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	dt_fails_with(dat_cr_accept(cr, f->b.ep, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	assert_int_equal(dt_ep_state(c.ep), DAT_EP_STATE_UNCONNECTED);
	assert_ptr_equal(conn_cr_query(cr).local_ep_handle, f->b.ep);
	conn_stays_quiet(&f->a);
	dt_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_rsp_free(reserved.rsp));
}

/* RSP-CREATE-09 CR-REJECT-04 EP-STATE-27 EP-STATE-70 EP-FREE-14 */
static void cr_reject__rsp_request__ep_unconnected_again(void **state)
{
	struct conn_fixture *f = *state;
	const struct reserved reserved = reserve(f, f->b.ep);
	struct reserved again;

	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 7);
	dt_ok(dat_cr_reject(request_connection(f, &reserved)));
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_UNCONNECTED);
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
	conn_stays_quiet(&f->b);
	assert_false(conn_recv_is_idle(f->b.ep));
	dt_ok(dat_rsp_free(reserved.rsp));
	dt_ok(dat_ep_reset(f->a.ep));
	/* the endpoint can be reserved, rejected and connected */
	again = reserve(f, f->b.ep);
	dt_ok(dat_cr_reject(request_connection(f, &again)));
	dt_ok(dat_rsp_free(again.rsp));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_ep_reset(f->a.ep));
	conn_link(f, &f->b, &f->a);
	conn_post_send(f->a.ep, &f->buf, CONN_A_SENDS_AT, 1);
	dt_expect_dto(f->b.recv, f->b.ep, 7, DAT_DTO_SUCCESS, CONN_BUF_LEN);
}

/* Accepts the request with the endpoint that the provider supplied, which gets the EVDs of b. */
static struct dt_ep accept_with_supplied(struct conn_fixture *f, DAT_CR_HANDLE cr)
{
	struct dt_ep supplied = f->b;
	DAT_EP_PARAM param = {
		.pz_handle = f->ia.pz,
		.recv_evd_handle = f->b.recv,
		.request_evd_handle = f->b.request,
		.connect_evd_handle = f->b.conn,
	};

	supplied.ep = conn_cr_query(cr).local_ep_handle;
	assert_non_null(supplied.ep);
	assert_int_equal(dt_ep_state(supplied.ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	dt_ok(dat_ep_modify(supplied.ep,
			    DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
				    DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				    DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			    &param));
	dt_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(supplied.conn, supplied.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	return supplied;
}

/* RSP-CREATE-10 CR-ACCEPT-04 CR-QUERY-05 */
static void rsp_create__no_ep__provider_supplies_one(void **state)
{
	struct conn_fixture *f = *state;
	const struct reserved reserved = reserve(f, DAT_HANDLE_NULL);
	struct dt_ep supplied = accept_with_supplied(f, request_connection(f, &reserved));

	conn_transfer(f, &f->a, &supplied);
	dt_ok(dat_rsp_free(reserved.rsp));
}

/* RSP-CREATE-19 */
static void rsp_create__several_on_one_evd__each_its_own_ep(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_ep eps[4], active[4];
	struct reserved points[4];

	for (size_t i = 0; i < COUNT_OF(eps); i++) {
		dt_ep_create(&f->ia, f->ia.pz, NULL, &eps[i]);
		dt_ep_create(&f->ia, f->ia.pz, NULL, &active[i]);
		points[i] = reserve(f, eps[i].ep);
	}
	for (size_t i = COUNT_OF(eps); i-- > 0;) {
		DAT_CR_HANDLE cr;

		dt_connect(&f->ia, active[i].ep, points[i].qual);
		cr = dt_request(&f->listener);
		assert_ptr_equal(conn_cr_query(cr).local_ep_handle, eps[i].ep);
		dt_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
		dt_expect_conn(eps[i].conn, eps[i].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(active[i].conn, active[i].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		conn_transfer(f, &active[i], &eps[i]);
		dt_ok(dat_rsp_free(points[i].rsp));
	}
}

/* RSP-CREATE-20 CR-ACCEPT-10 CR-ACCEPT-18: the EVD is set while reserved or pending */
static void rsp_create__ep_without_connect_evd__can_be_set_later(void **state)
{
	struct conn_fixture *f = *state;
	DAT_EP_PARAM param = {.connect_evd_handle = f->b.conn};

	for (int is_late = 0; is_late < 2; is_late++) {
		struct dt_ep bare = f->b;
		struct reserved reserved;
		DAT_CR_HANDLE cr;

		dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, f->b.recv, f->b.request, DAT_HANDLE_NULL,
				    NULL, &bare.ep));
		reserved = reserve(f, bare.ep);
		if (!is_late)
			dt_ok(dat_ep_modify(bare.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
		cr = request_connection(f, &reserved);
		if (is_late) {
			dt_fails_with(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL),
				      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
			assert_int_equal(dt_ep_state(bare.ep),
					 DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
			dt_ok(dat_ep_modify(bare.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
		}
		dt_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
		dt_expect_conn(bare.conn, bare.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_ok(dat_rsp_free(reserved.rsp));
		dt_ok(dat_ep_free(bare.ep));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(f->a.ep));
	}
}

/* RSP-CREATE-20 CR-ACCEPT-10: without a zone the endpoint can only be released */
static void rsp_create__ep_without_zone__can_only_be_released(void **state)
{
	struct conn_fixture *f = *state;
	DAT_EP_PARAM param = {.pz_handle = f->ia.pz};
	struct reserved reserved;
	struct dt_ep bare;
	DAT_CR_HANDLE cr;

	dt_ep_create(&f->ia, DAT_HANDLE_NULL, NULL, &bare);
	reserved = reserve(f, bare.ep);
	dt_fails_with(dat_ep_modify(bare.ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_RESERVED);
	cr = request_connection(f, &reserved);
	dt_fails_with(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	dt_ok(dat_cr_reject(cr));
	assert_int_equal(dt_ep_state(bare.ep), DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_rsp_free(reserved.rsp));
	dt_ep_free(&bare);
}

/* RSP-CREATE-21 RSP-FREE-08 */
static void rsp__exists__evd_in_use(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 4, DAT_EVD_CR_FLAG);
	const DAT_CONN_QUAL qual = dt_unused_qual();
	DAT_RSP_HANDLE rsp;

	dt_ok(dat_rsp_create(f->ia.ia, qual, f->b.ep, evd, &rsp));
	dt_fails_with(dat_evd_free(evd), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	dt_connect(&f->ia, f->a.ep, qual);
	dt_ok(dat_cr_reject(conn_request(evd)));
	dt_fails_with(dat_evd_free(evd), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	dt_ok(dat_rsp_free(rsp));
	dt_ok(dat_evd_free(evd));
}

/* The requests of a to an RSP for this endpoint are refused while the EVD of the RSP is full. */
static void check_evd_full(struct conn_fixture *f, const struct dt_ep *ep)
{
	const DAT_EVD_HANDLE evd =
		dt_evd_create(&f->ia, 1, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG);
	const DAT_CONN_QUAL qual = dt_unused_qual();
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
	DAT_RSP_HANDLE rsp;

	dt_ok(dat_evd_post_se(evd, &event));
	dt_ok(dat_rsp_create(f->ia.ia, qual, ep->ep, evd, &rsp));
	for (unsigned int i = 0; i < 2; i++) {
		dt_connect(&f->ia, f->a.ep, qual);
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		assert_int_equal(dt_ep_state(ep->ep), DAT_EP_STATE_RESERVED);
	}
	dt_no_event(f->ia.async);
	dt_ok(dat_evd_dequeue(evd, &event));
	assert_int_equal(event.event_number, DAT_SOFTWARE_EVENT);
	dt_connect(&f->ia, f->a.ep, qual);
	dt_ok(dat_cr_accept(conn_request(evd), DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_rsp_free(rsp));
}

/* RSP-CREATE-25 CONN-EVT-56 */
static void rsp__evd_full__request_refused_and_still_listening(void **state)
{
	struct conn_fixture *f = *state;

	check_evd_full(f, &f->b);
}

/* RSP-CREATE-25: an endpoint that the provider once supplied for a request and the consumer then
 * accepted is the consumer's */
static void rsp__evd_full_and_ep_once_supplied__ep_still_reserved(void **state)
{
	struct conn_fixture *f = *state;
	const struct reserved reserved = reserve(f, DAT_HANDLE_NULL);
	const struct dt_ep supplied = accept_with_supplied(f, request_connection(f, &reserved));

	dt_ok(dat_rsp_free(reserved.rsp));
	dt_ok(dat_ep_disconnect(supplied.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(supplied.conn, supplied.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(supplied.ep));
	dt_ok(dat_ep_reset(f->a.ep));
	check_evd_full(f, &supplied);
}

/* --- refused creation --- */

static DAT_RETURN create_with_ia(DAT_HANDLE handle, void *arg)
{
	struct conn_fixture *f = arg;
	DAT_RSP_HANDLE rsp;

	return dat_rsp_create(handle, 5, f->b.ep, f->listener.evd, &rsp);
}

static DAT_RETURN create_with_evd(DAT_HANDLE handle, void *arg)
{
	struct conn_fixture *f = arg;
	DAT_RSP_HANDLE rsp;

	return dat_rsp_create(f->ia.ia, dt_unused_qual(), f->b.ep, handle, &rsp);
}

static DAT_RETURN create_with_ep(DAT_HANDLE handle, void *arg)
{
	struct conn_fixture *f = arg;
	DAT_RSP_HANDLE rsp;

	return dat_rsp_create(f->ia.ia, dt_unused_qual(), handle, f->listener.evd, &rsp);
}

/* RSP-CREATE-11 RSP-CREATE-12 RSP-CREATE-13 GEN-17 */
static void rsp_create__bad_handle__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EVD_HANDLE wrong_kind =
		dt_evd_create(&f->ia, 4, DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
	const DAT_HANDLE bad_eps[] = {DT_NEVER_A_HANDLE, f->a.conn, conn_freed_ep(&f->ia)};
	struct dt_ia other;
	struct dt_ep foreign;
	DAT_IA_HANDLE closed;

	dt_ia_open(&other);
	closed = other.ia;
	dt_ia_close(&other);
	dt_ia_open(&other);
	dt_ep_create(&other, other.pz, NULL, &foreign);
	conn_refuses_handles(create_with_ia, f, f->a.ep, closed, DAT_INVALID_HANDLE_IA);
	conn_refuses_handles(create_with_evd, f, f->a.ep, conn_freed_evd(&f->ia),
			     DAT_INVALID_HANDLE_EVD_CR);
	dt_fails_with(create_with_evd(wrong_kind, f), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EVD_CR);
	for (size_t i = 0; i < COUNT_OF(bad_eps); i++)
		dt_fails_with(create_with_ep(bad_eps[i], f), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
	dt_fails_with(create_with_ep(foreign.ep, f), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	assert_int_equal(dt_ep_state(foreign.ep), DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_UNCONNECTED);
	dt_ia_abort(&other);
}

static void check_refused(struct conn_fixture *f, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep,
			  DAT_RETURN code)
{
	const DAT_EP_STATE before = dt_ep_state(ep);
	DAT_RSP_HANDLE rsp;

	dt_returns(dat_rsp_create(f->ia.ia, qual, ep, f->listener.evd, &rsp), code);
	assert_int_equal(dt_ep_state(ep), before);
}

/* RSP-CREATE-14 EP-STATE-57 */
static void rsp_create__ep_not_unconnected__invalid_state(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL other = dt_unused_qual();
	const struct reserved reserved = reserve(f, f->b.ep);
	DAT_CR_HANDLE cr;

	check_refused(f, other, f->b.ep,
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED));
	cr = request_connection(f, &reserved);
	check_refused(f, other, f->b.ep,
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PASSCONNPENDING));
	check_refused(f, other, f->a.ep,
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_ACTCONNPENDING));
	dt_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	check_refused(f, other, f->a.ep,
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED));
	check_refused(f, other, f->b.ep,
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED));
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	conn_await_state(f->a.ep, DAT_EP_STATE_DISCONNECTED);
	check_refused(f, other, f->a.ep,
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED));
	/* the refused calls left no listener */
	dt_ok(dat_ep_reset(f->a.ep));
	dt_drain(f->a.conn);
	dt_connect(&f->ia, f->a.ep, other);
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_ok(dat_rsp_free(reserved.rsp));
}

/* RSP-CREATE-15 RSP-CREATE-16 RSP-CREATE-17 */
static void rsp_create__bad_parameter__refused(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL qual = dt_unused_qual();
	const struct reserved reserved = reserve(f, f->a.ep);
	DAT_RSP_HANDLE rsp;

	check_refused(f, 0, f->b.ep, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	check_refused(f, f->listener.qual, f->b.ep, DT_ERROR(DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE));
	check_refused(f, reserved.qual, f->b.ep, DT_ERROR(DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE));
	dt_fails_with(dat_rsp_create(f->ia.ia, qual, f->b.ep, f->listener.evd, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_rsp_create(f->ia.ia, qual, f->b.ep, f->listener.evd, &rsp));
	dt_ok(dat_rsp_free(rsp));
	dt_ok(dat_rsp_free(reserved.rsp));
}

/* RSP-CREATE-18 */
static void rsp_create__no_descriptors__insufficient_resources(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 4, DAT_EVD_CR_FLAG);
	const DAT_CONN_QUAL qual = dt_unused_qual();
	struct rlimit limit = conn_descriptors_take();
	DAT_RSP_HANDLE rsp;
	const DAT_RETURN ret = dat_rsp_create(f->ia.ia, qual, f->b.ep, evd, &rsp);

	conn_descriptors_give(&limit);
	dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_evd_free(evd));
	dt_ok(dat_rsp_create(f->ia.ia, qual, f->b.ep, f->listener.evd, &rsp));
	dt_ok(dat_rsp_free(rsp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(rsp_create__request_accepted__reserved_ep_connected),
		conn_test(rsp__request_arrived__used_up_and_qualifier_free),
		conn_test(cr_accept__rsp_request_with_another_ep__refused),
		conn_test(cr_reject__rsp_request__ep_unconnected_again),
		conn_test(rsp_create__no_ep__provider_supplies_one),
		conn_test(rsp_create__several_on_one_evd__each_its_own_ep),
		conn_test(rsp_create__ep_without_connect_evd__can_be_set_later),
		conn_test(rsp_create__ep_without_zone__can_only_be_released),
		conn_test(rsp__exists__evd_in_use),
		conn_test(rsp__evd_full__request_refused_and_still_listening),
		conn_test(rsp__evd_full_and_ep_once_supplied__ep_still_reserved),
		conn_test(rsp_create__bad_handle__invalid_handle),
		conn_test(rsp_create__ep_not_unconnected__invalid_state),
		conn_test(rsp_create__bad_parameter__refused),
		conn_test(rsp_create__no_descriptors__insufficient_resources),
	};

	return cmocka_run_group_tests_name("rsp", tests, NULL, NULL);
}
