// SPDX-License-Identifier: BSD-2-Clause
/* dat_cr_handoff: passes a request on to another service point of the same adapter. */
#include "conn_util.h"

/* Sends a request with private data from endpoint a; returns its CR and its parameters. */
struct request {
	DAT_CR_HANDLE cr;
	DAT_PORT_QUAL port;
};

#define DATA_SEED 11
#define DATA_LEN 48

static struct request request_connection(struct conn_fixture *f, DAT_TIMEOUT timeout)
{
	struct conn_args args = conn_args_of(f);
	unsigned char data[DATA_LEN];
	struct request request;

	dt_fill(data, sizeof(data), DATA_SEED);
	args.data = data;
	args.size = sizeof(data);
	args.timeout = timeout;
	dt_ok(conn_try(f->a.ep, &args));
	request.cr = dt_request(&f->listener);
	request.port = conn_cr_query(request.cr).remote_port_qual;
	return request;
}

/* The new request on that EVD has the parameters of the old one. */
static DAT_CR_ARRIVAL_EVENT_DATA expect_handed(struct conn_fixture *f, DAT_EVD_HANDLE evd,
					       const struct request *old)
{
	const DAT_EVENT event = conn_request_event(evd);
	const DAT_CR_ARRIVAL_EVENT_DATA data = event.event_data.cr_arrival_event_data;
	const DAT_CR_PARAM param = conn_cr_query(data.cr_handle);
	DAT_CR_PARAM gone;

	assert_true(param.remote_port_qual == old->port);
	conn_check_same_address((struct sockaddr *)param.remote_ia_address_ptr,
				(struct sockaddr *)f->ia.attr.ia_address_ptr);
	assert_int_equal(param.private_data_size, DATA_LEN);
	dt_check_pattern(param.private_data, DATA_LEN, DATA_SEED);
	assert_ptr_not_equal(data.cr_handle, old->cr);
	dt_fails_with(dat_cr_query(old->cr, DAT_CR_FIELD_ALL, &gone), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CR);
	dt_no_event(evd);
	return data;
}

/* CR-HANDOFF-01 CR-HANDOFF-02 CR-HANDOFF-03 CR-HANDOFF-04 CR-HANDOFF-05 */
static void cr_handoff__to_another_psp__arrives_and_can_be_answered(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_listener target;

	dt_listen(&f->ia, &target);
	for (int is_accept = 0; is_accept < 2; is_accept++) {
		const struct request old = request_connection(f, DAT_TIMEOUT_INFINITE);
		DAT_CR_ARRIVAL_EVENT_DATA data;

		dt_ok(dat_cr_handoff(old.cr, target.qual));
		data = expect_handed(f, target.evd, &old);
		assert_ptr_equal(data.sp_handle.psp_handle, target.psp);
		assert_true(data.conn_qual == target.qual);
		dt_no_event(f->listener.evd);
		conn_stays_quiet(&f->a);
		assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
		if (!is_accept) {
			dt_ok(dat_cr_reject(data.cr_handle));
			conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
			dt_ok(dat_ep_reset(f->a.ep));
			continue;
		}
		dt_ok(dat_cr_accept(data.cr_handle, f->b.ep, 0, NULL));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		conn_transfer(f, &f->a, &f->b);
	}
}

/* CR-HANDOFF-05 */
static void cr_handoff__not_answered__timeout_keeps_running(void **state)
{
	struct conn_fixture *f = *state;
	const uint64_t start = dt_now_us();
	const struct request old = request_connection(f, 2 * CONN_SHORT_US);
	DAT_CR_ARRIVAL_EVENT_DATA data;

	dt_ok(dat_cr_handoff(old.cr, f->listener.qual));
	data = expect_handed(f, f->listener.evd, &old);
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_TIMED_OUT);
	assert_true(dt_now_us() - start >= 2 * CONN_SHORT_US);
	dt_ok(dat_cr_accept(data.cr_handle, f->b.ep, 0, NULL));
	conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

/* CR-HANDOFF-06 */
static void cr_handoff__to_an_rsp__new_request_has_its_ep(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL qual = dt_unused_qual();
	const struct request old = request_connection(f, DAT_TIMEOUT_INFINITE);
	DAT_CR_ARRIVAL_EVENT_DATA data;
	DAT_RSP_HANDLE rsp;

	dt_ok(dat_rsp_create(f->ia.ia, qual, f->b.ep, f->listener.evd, &rsp));
	dt_ok(dat_cr_handoff(old.cr, qual));
	data = expect_handed(f, f->listener.evd, &old);
	assert_ptr_equal(data.sp_handle.rsp_handle, rsp);
	assert_true(data.conn_qual == qual);
	assert_ptr_equal(conn_cr_query(data.cr_handle).local_ep_handle, f->b.ep);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	dt_ok(dat_cr_accept(data.cr_handle, DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	conn_transfer(f, &f->a, &f->b);
	dt_ok(dat_rsp_free(rsp));
}

/* Creates a service point on that qualifier. */
static void listen_on(struct conn_fixture *f, DAT_CONN_QUAL qual, struct dt_listener *listener)
{
	listener->evd = dt_evd_create(&f->ia, 8, DAT_EVD_CR_FLAG);
	listener->qual = qual;
	dt_ok(dat_psp_create(f->ia.ia, qual, listener->evd, DAT_PSP_CONSUMER_FLAG, &listener->psp));
}

/* COMPAT-05 CONN-GEN-08 CR-HANDOFF-08: all bits of a qualifier count */
static void cr_handoff__qualifiers_alike_in_one_half__arrives_at_the_one_named(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL qual = dt_unused_qual();
	/* two share its bits below 32, one its bits above 31 */
	const DAT_CONN_QUAL quals[] = {qual, qual ^ UINT64_C(1) << 61, qual ^ UINT64_C(1) << 60,
				       qual ^ UINT64_C(1) << 23};
	struct dt_listener listeners[COUNT_OF(quals)];
	struct request request = request_connection(f, DAT_TIMEOUT_INFINITE);

	/* each time one more of them has a listener; the request is refused by the others */
	for (size_t listening = 0; listening <= COUNT_OF(quals); listening++) {
		for (size_t i = 0; i < COUNT_OF(quals); i++) {
			DAT_CR_ARRIVAL_EVENT_DATA data;

			if (i >= listening) {
				dt_fails_with(dat_cr_handoff(request.cr, quals[i]),
					      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
				continue;
			}
			dt_ok(dat_cr_handoff(request.cr, quals[i]));
			data = expect_handed(f, listeners[i].evd, &request);
			assert_ptr_equal(data.sp_handle.psp_handle, listeners[i].psp);
			assert_true(data.conn_qual == quals[i]);
			request.cr = data.cr_handle;
		}
		if (listening < COUNT_OF(quals))
			listen_on(f, quals[listening], &listeners[listening]);
	}
	dt_ok(dat_cr_reject(request.cr));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* CR-HANDOFF-06 CR-HANDOFF-07 EP-STATE-47 */
static void cr_handoff__between_points_with_eps__old_released_new_reserved(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL reserved = dt_unused_qual();
	DAT_CONN_QUAL offering;
	DAT_CR_ARRIVAL_EVENT_DATA data;
	DAT_EP_HANDLE offered;
	DAT_EP_STATE ep_state;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	struct request old;

	dt_ok(dat_psp_create_any(f->ia.ia, &offering, f->listener.evd, DAT_PSP_PROVIDER_FLAG,
				 &psp));
	dt_ok(dat_rsp_create(f->ia.ia, reserved, f->b.ep, f->listener.evd, &rsp));
	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 7);
	/* to the reserved endpoint, on to one of the provider, on to none */
	old = request_connection(f, DAT_TIMEOUT_INFINITE);
	dt_ok(dat_cr_handoff(old.cr, reserved));
	old.cr = expect_handed(f, f->listener.evd, &old).cr_handle;
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	dt_ok(dat_cr_handoff(old.cr, offering));
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_UNCONNECTED);
	data = expect_handed(f, f->listener.evd, &old);
	assert_ptr_equal(data.sp_handle.psp_handle, psp);
	offered = conn_cr_query(data.cr_handle).local_ep_handle;
	assert_non_null(offered);
	assert_int_equal(dt_ep_state(offered), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	old.cr = data.cr_handle;
	dt_ok(dat_cr_handoff(old.cr, f->listener.qual));
	dt_fails_with(dat_ep_get_status(offered, &ep_state, NULL, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	data = expect_handed(f, f->listener.evd, &old);
	assert_null(conn_cr_query(data.cr_handle).local_ep_handle);
	conn_stays_quiet(&f->b);
	assert_false(conn_recv_is_idle(f->b.ep)); /* the Receive is still posted (EP-STATE-70) */
	conn_no_events(&f->a);
	dt_ok(dat_cr_accept(data.cr_handle, f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_rsp_free(rsp));
}

/* CR-HANDOFF-09 */
static void cr_handoff__to_its_own_qualifier__new_request(void **state)
{
	struct conn_fixture *f = *state;
	struct request old = request_connection(f, DAT_TIMEOUT_INFINITE);

	for (unsigned int i = 0; i < 3; i++) {
		DAT_CR_ARRIVAL_EVENT_DATA data;

		dt_ok(dat_cr_handoff(old.cr, f->listener.qual));
		data = expect_handed(f, f->listener.evd, &old);
		assert_ptr_equal(data.sp_handle.psp_handle, f->listener.psp);
		old.cr = data.cr_handle;
	}
	dt_ok(dat_cr_accept(old.cr, f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void check_refused(struct conn_fixture *f, const struct request *request, DAT_CONN_QUAL qual)
{
	const DAT_CR_PARAM before = conn_cr_query(request->cr);
	DAT_CR_PARAM after;

	dt_fails_with(dat_cr_handoff(request->cr, qual), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	after = conn_cr_query(request->cr);
	assert_ptr_equal(after.local_ep_handle, before.local_ep_handle);
	assert_true(after.remote_port_qual == before.remote_port_qual);
	dt_check_pattern(after.private_data, DATA_LEN, DATA_SEED);
	conn_no_events(&f->a);
	dt_no_event(f->ia.async);
}

/* CR-HANDOFF-08 */
static void cr_handoff__no_room_or_no_listener__request_unchanged(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EVD_HANDLE full =
		dt_evd_create(&f->ia, 1, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG);
	const struct request request = request_connection(f, DAT_TIMEOUT_INFINITE);
	const DAT_CONN_QUAL reserved = dt_unused_qual();
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;

	check_refused(f, &request, reserved);
	check_refused(f, &request, 0);
	dt_ok(dat_psp_create_any(f->ia.ia, &qual, full, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_ok(dat_rsp_create(f->ia.ia, reserved, f->b.ep, full, &rsp));
	dt_ok(dat_evd_post_se(full, &event));
	check_refused(f, &request, qual);
	check_refused(f, &request, reserved);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_RESERVED);
	dt_ok(dat_rsp_free(rsp));
	conn_stays_quiet(&f->a);
	dt_ok(dat_cr_accept(request.cr, f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_psp_free(psp));
}

static DAT_RETURN handoff(DAT_HANDLE handle, void *arg)
{
	struct conn_fixture *f = arg;

	return dat_cr_handoff(handle, f->listener.qual);
}

/* CR-HANDOFF-10 CR-HANDOFF-04 */
static void cr_handoff__bad_handle__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;

	conn_refuses_handles(handoff, f, f->listener.psp, conn_freed_cr(f), DAT_INVALID_HANDLE_CR);
	dt_stays_empty(f->listener.evd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(cr_handoff__to_another_psp__arrives_and_can_be_answered),
		conn_test(cr_handoff__not_answered__timeout_keeps_running),
		conn_test(cr_handoff__to_an_rsp__new_request_has_its_ep),
		conn_test(cr_handoff__qualifiers_alike_in_one_half__arrives_at_the_one_named),
		conn_test(cr_handoff__between_points_with_eps__old_released_new_reserved),
		conn_test(cr_handoff__to_its_own_qualifier__new_request),
		conn_test(cr_handoff__no_room_or_no_listener__request_unchanged),
		conn_test(cr_handoff__bad_handle__invalid_handle),
	};

	return cmocka_run_group_tests_name("cr_handoff", tests, NULL, NULL);
}
