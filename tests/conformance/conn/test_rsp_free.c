// SPDX-License-Identifier: BSD-2-Clause
/* dat_rsp_free and dat_rsp_query. */
#include <pthread.h>

#include "reserved.h"

/* --- free --- */

static DAT_RETURN free_rsp(DAT_HANDLE handle, void *arg)
{
	(void)arg;
	return dat_rsp_free(handle);
}

static DAT_RSP_HANDLE freed_rsp(struct conn_fixture *f)
{
	const struct reserved reserved = reserve(f, f->b.ep);

	dt_ok(dat_rsp_free(reserved.rsp));
	return reserved.rsp;
}

/* RSP-FREE-01 RSP-FREE-10 */
static void rsp_free__bad_handle__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;

	conn_refuses_handles(free_rsp, NULL, f->b.ep, freed_rsp(f), DAT_INVALID_HANDLE_RSP);
	dt_fails_with(dat_rsp_free(f->listener.psp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	conn_link(f, &f->a, &f->b);
}

/* RSP-FREE-02 RSP-FREE-03 RSP-FREE-07 RSP-FREE-09 EP-STATE-24 EP-STATE-69 EP-FREE-10 EP-FREE-13 */
static void rsp_free__no_request_yet__ep_unconnected_again(void **state)
{
	struct conn_fixture *f = *state;
	struct reserved reserved = reserve(f, f->b.ep);

	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 7);
	dt_fails_with(dat_ep_free(f->b.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED);
	dt_ok(dat_rsp_free(reserved.rsp));
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_UNCONNECTED);
	dt_connect(&f->ia, f->a.ep, reserved.qual);
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_ok(dat_ep_reset(f->a.ep));
	dt_ok(dat_rsp_create(f->ia.ia, reserved.qual, f->b.ep, f->listener.evd, &reserved.rsp));
	dt_ok(dat_rsp_free(reserved.rsp));
	conn_stays_quiet(&f->b);
	assert_false(conn_recv_is_idle(f->b.ep));
	conn_link(f, &f->b, &f->a);
	conn_post_send(f->a.ep, &f->buf, CONN_A_SENDS_AT, 1);
	dt_expect_dto(f->b.recv, f->b.ep, 7, DAT_DTO_SUCCESS, CONN_BUF_LEN);
	dt_expect_dto(f->a.request, f->a.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
	dt_ep_free(&f->b);
}

/* RSP-FREE-04 RSP-FREE-06 */
static void rsp_free__at_each_later_step__connection_unaffected(void **state)
{
	enum { REQUESTED, ACCEPTED, TRANSFERRED, REJECTED, STEPS };
	struct conn_fixture *f = *state;

	for (int step = 0; step < STEPS; step++) {
		const struct reserved reserved = reserve(f, f->b.ep);
		const DAT_CR_HANDLE cr = request_connection(f, &reserved);

		if (step == REJECTED) {
			dt_ok(dat_cr_reject(cr));
			dt_ok(dat_rsp_free(reserved.rsp));
			conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
			assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_UNCONNECTED);
			continue;
		}
		if (step == REQUESTED)
			dt_ok(dat_rsp_free(reserved.rsp));
		assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
		assert_ptr_equal(conn_cr_query(cr).local_ep_handle, f->b.ep);
		dt_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
		if (step == ACCEPTED)
			dt_ok(dat_rsp_free(reserved.rsp));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		conn_transfer(f, &f->a, &f->b);
		if (step == TRANSFERRED)
			dt_ok(dat_rsp_free(reserved.rsp));
		conn_transfer(f, &f->a, &f->b);
		dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
}

/* RSP-FREE-05 RSP-FREE-06 */
static void rsp_free__request_under_way__event_or_refusal(void **state)
{
	struct conn_fixture *f = *state;

	for (unsigned int i = 0; i < 100; i++) {
		const struct reserved reserved = reserve(f, f->b.ep);
		DAT_EVENT event;

		dt_connect(&f->ia, f->a.ep, reserved.qual);
		if (i & 1)
			usleep(i * 20); /* from before its arrival to long after */
		dt_ok(dat_rsp_free(reserved.rsp));
		if (dat_evd_dequeue(f->listener.evd, &event) == DAT_SUCCESS) {
			assert_int_equal(dt_ep_state(f->b.ep),
					 DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
			dt_ok(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle));
			conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		} else {
			assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_UNCONNECTED);
			conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		}
		assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_UNCONNECTED);
		dt_no_event(f->listener.evd);
		dt_ok(dat_ep_reset(f->a.ep));
	}
}

/* --- query --- */

static DAT_RSP_PARAM query(DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask)
{
	DAT_RSP_PARAM param;

	memset(&param, 0x5a, sizeof(param));
	dt_ok(dat_rsp_query(rsp, mask, &param));
	return param;
}

/* RSP-QUERY-01 RSP-CREATE-22 */
static void rsp_query__before_and_after_the_request__as_created(void **state)
{
	struct conn_fixture *f = *state;
	const struct reserved reserved = reserve(f, f->b.ep);

	for (int is_spent = 0; is_spent < 2; is_spent++) {
		const DAT_RSP_PARAM param = query(reserved.rsp, DAT_RSP_FIELD_ALL);

		assert_ptr_equal(param.ia_handle, f->ia.ia);
		assert_true(param.conn_qual == reserved.qual);
		assert_ptr_equal(param.evd_handle, f->listener.evd);
		assert_ptr_equal(param.ep_handle, f->b.ep);
		if (!is_spent)
			dt_ok(dat_cr_accept(request_connection(f, &reserved), DAT_HANDLE_NULL, 0,
					    NULL));
	}
	assert_ptr_equal(query(reserved.rsp, DAT_RSP_FIELD_IA_HANDLE).ia_handle, f->ia.ia);
	assert_true(query(reserved.rsp, DAT_RSP_FIELD_CONN_QUAL).conn_qual == reserved.qual);
	assert_ptr_equal(query(reserved.rsp, DAT_RSP_FIELD_EVD_HANDLE).evd_handle, f->listener.evd);
	assert_ptr_equal(query(reserved.rsp, DAT_RSP_FIELD_EP_HANDLE).ep_handle, f->b.ep);
	query(reserved.rsp, (DAT_RSP_PARAM_MASK)0);
	dt_ok(dat_rsp_free(reserved.rsp));
}

/* RSP-QUERY-03 RSP-QUERY-04 */
static void rsp_query__bad_argument__invalid_parameter(void **state)
{
	static const unsigned int masks[] = {0x10, 0x1f, 0x80000000};
	struct conn_fixture *f = *state;
	const struct reserved reserved = reserve(f, f->b.ep);
	DAT_RSP_PARAM param;

	for (size_t i = 0; i < COUNT_OF(masks); i++)
		dt_fails_with(dat_rsp_query(reserved.rsp, (DAT_RSP_PARAM_MASK)masks[i], &param),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_rsp_query(reserved.rsp, DAT_RSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_ok(dat_rsp_free(reserved.rsp));
}

static DAT_RETURN query_rsp(DAT_HANDLE handle, void *arg)
{
	DAT_RSP_PARAM param;

	(void)arg;
	return dat_rsp_query(handle, DAT_RSP_FIELD_ALL, &param);
}

/* RSP-QUERY-05 */
static void rsp_query__bad_handle__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;

	conn_refuses_handles(query_rsp, NULL, f->listener.evd, freed_rsp(f),
			     DAT_INVALID_HANDLE_RSP);
	dt_fails_with(query_rsp(f->listener.psp, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
}

/* --- threads --- */

struct creator {
	pthread_t thread;
	struct conn_fixture *f;
	struct dt_ep ep;
	const struct reserved *shared;
	unsigned int mismatches;
};

static void *create_query_free(void *arg)
{
	struct creator *creator = arg;
	const DAT_CONN_QUAL qual = ((DAT_CONN_QUAL)getpid() << 35) + (uintptr_t)creator;

	for (unsigned int i = 0; i < 50; i++) {
		DAT_RSP_HANDLE rsp;

		dt_ok(dat_rsp_create(creator->f->ia.ia, qual, creator->ep.ep,
				     creator->f->listener.evd, &rsp));
		if (query(rsp, DAT_RSP_FIELD_ALL).conn_qual != qual ||
		    query(creator->shared->rsp, DAT_RSP_FIELD_ALL).conn_qual !=
			    creator->shared->qual)
			creator->mismatches++;
		dt_ok(dat_rsp_free(rsp));
	}
	return NULL;
}

/* RSP-CREATE-24 RSP-QUERY-06 */
static void rsp_create__from_many_threads__works(void **state)
{
	struct conn_fixture *f = *state;
	const struct reserved shared = reserve(f, f->b.ep);
	struct creator creators[4];

	for (size_t i = 0; i < COUNT_OF(creators); i++) {
		creators[i] = (struct creator){.f = f, .shared = &shared};
		dt_ep_create(&f->ia, f->ia.pz, NULL, &creators[i].ep);
		assert_int_equal(
			pthread_create(&creators[i].thread, NULL, create_query_free, &creators[i]),
			0);
	}
	for (size_t i = 0; i < COUNT_OF(creators); i++) {
		assert_int_equal(pthread_join(creators[i].thread, NULL), 0);
		assert_int_equal(creators[i].mismatches, 0);
	}
	dt_ok(dat_rsp_free(shared.rsp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(rsp_free__bad_handle__invalid_handle),
		conn_test(rsp_free__no_request_yet__ep_unconnected_again),
		conn_test(rsp_free__at_each_later_step__connection_unaffected),
		conn_test(rsp_free__request_under_way__event_or_refusal),
		conn_test(rsp_query__before_and_after_the_request__as_created),
		conn_test(rsp_query__bad_argument__invalid_parameter),
		conn_test(rsp_query__bad_handle__invalid_handle),
		conn_test(rsp_create__from_many_threads__works),
	};

	return cmocka_run_group_tests_name("rsp_free", tests, NULL, NULL);
}
