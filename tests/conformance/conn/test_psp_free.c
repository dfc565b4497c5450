// SPDX-License-Identifier: BSD-2-Clause
/* dat_psp_free and dat_psp_query. */
#include <pthread.h>
#include <stdatomic.h>

#include "conn_util.h"

static DAT_RETURN free_psp(DAT_HANDLE handle, void *arg)
{
	(void)arg;
	return dat_psp_free(handle);
}

static DAT_PSP_HANDLE freed_psp(struct conn_fixture *f)
{
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;

	dt_ok(dat_psp_create_any(f->ia.ia, &qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_ok(dat_psp_free(psp));
	return psp;
}

/* PSP-FREE-01 PSP-FREE-09 */
static void psp_free__bad_handle__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;
	DAT_RSP_HANDLE rsp;

	conn_refuses_handles(free_psp, NULL, f->a.ep, freed_psp(f), DAT_INVALID_HANDLE_PSP);
	dt_ok(dat_rsp_create(f->ia.ia, dt_unused_qual(), f->b.ep, f->listener.evd, &rsp));
	dt_fails_with(dat_psp_free(rsp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_RESERVED);
	dt_ok(dat_rsp_free(rsp));
	conn_link(f, &f->a, &f->b);
}

/* PSP-FREE-02 PSP-FREE-06 PSP-FREE-07 CONN-EVT-26 */
static void psp_free__listening__qualifier_and_evd_free(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 4, DAT_EVD_CR_FLAG);
	const DAT_CONN_QUAL qual = dt_unused_qual();
	DAT_PSP_HANDLE psp;

	dt_ok(dat_psp_create(f->ia.ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	for (unsigned int i = 0; i < 20; i++) {
		dt_ok(dat_psp_free(psp));
		dt_connect(&f->ia, f->a.ep, qual);
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_psp_create(f->ia.ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	}
	dt_connect(&f->ia, f->a.ep, qual);
	dt_ok(dat_cr_reject(conn_request(evd)));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_psp_free(psp));
	dt_ok(dat_evd_free(evd));
}

/* PSP-FREE-04 CR-REJECT-09 */
static void psp_free__requests_open__still_answerable(void **state)
{
	struct conn_fixture *f = *state;

	for (int is_accept = 0; is_accept < 2; is_accept++) {
		DAT_PORT_QUAL port;
		DAT_CONN_QUAL qual;
		DAT_PSP_HANDLE psp;
		DAT_EVENT event;
		DAT_CR_HANDLE cr;
		struct dt_ep late;

		dt_ok(dat_psp_create_any(f->ia.ia, &qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG,
					 &psp));
		dt_ep_create(&f->ia, f->ia.pz, NULL, &late);
		dt_connect(&f->ia, f->a.ep, qual);
		port = conn_ep_query(f->a.ep).local_port_qual;
		/*
		 * a second EP shows that the event of the first one is queued when the PSP is freed
		 */
		event = conn_request_event(f->listener.evd);
		dt_connect(&f->ia, late.ep, qual);
		dt_ok(dat_cr_reject(dt_request(&f->listener)));
		dt_expect_conn(late.conn, late.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_ok(dat_psp_free(psp));
		cr = event.event_data.cr_arrival_event_data.cr_handle;
		assert_true(conn_cr_query(cr).remote_port_qual == port);
		if (is_accept) {
			dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
			dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
			dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
			conn_transfer(f, &f->a, &f->b);
		} else {
			dt_ok(dat_cr_reject(cr));
			conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
			dt_ok(dat_ep_reset(f->a.ep));
		}
		dt_ep_free(&late);
	}
}

/* PSP-FREE-03 PSP-FREE-04: both sides agree on the result of the race */
static void psp_free__request_under_way__event_or_refusal(void **state)
{
	struct conn_fixture *f = *state;

	for (unsigned int i = 0; i < 100; i++) {
		const DAT_CONN_QUAL qual = dt_unused_qual();
		DAT_PSP_HANDLE psp;
		DAT_EVENT event;

		dt_ok(dat_psp_create(f->ia.ia, qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
		dt_connect(&f->ia, f->a.ep, qual);
		if (i & 1)
			usleep(i * 20); /* from before its arrival to long after */
		dt_ok(dat_psp_free(psp));
		if (dat_evd_dequeue(f->listener.evd, &event) == DAT_SUCCESS) {
			const DAT_CR_ARRIVAL_EVENT_DATA *data =
				&event.event_data.cr_arrival_event_data;

			assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
			assert_true(data->conn_qual == qual);
			dt_ok(dat_cr_reject(data->cr_handle));
			conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		} else {
			conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		}
		dt_no_event(f->listener.evd);
		dt_ok(dat_ep_reset(f->a.ep));
	}
}

/* PSP-FREE-05 */
static void psp_free__connections_made_through_it__stay_connected(void **state)
{
	struct conn_fixture *f = *state;

	conn_link(f, &f->a, &f->b);
	dt_unlisten(&f->listener);
	conn_transfer(f, &f->a, &f->b);
	conn_stays_quiet(&f->a);
	conn_stays_quiet(&f->b);
}

/* COMPAT-16 */
static void free_calls__work_outstanding__succeed(void **state)
{
	struct conn_fixture *f = *state;

	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 1);
	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	conn_link(f, &f->a, &f->b);
	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 2);
	conn_post_send(f->a.ep, &f->buf, CONN_A_SENDS_AT, 3);
	dt_expect_dto(f->b.recv, f->b.ep, 1, DAT_DTO_SUCCESS, CONN_BUF_LEN);
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	/* at once: the events of the Send, the flushes and the disconnect may still arrive */
	dt_ok(dat_lmr_free(f->buf.lmr));
	f->buf.lmr = DAT_HANDLE_NULL;
	dt_ep_free(&f->a);
	conn_await_state(f->b.ep, DAT_EP_STATE_DISCONNECTED);
	dt_ep_free(&f->b);
	dt_unlisten(&f->listener);
	dt_mem_free(f->buf.p, f->buf.mapped);
	f->buf.mapped = 0;
	dt_ia_close(&f->ia);
	f->is_open = false;
}

/* --- threads --- */

struct flipper {
	pthread_t thread;
	struct conn_fixture *f;
	DAT_CONN_QUAL qual;
	_Atomic(DAT_PSP_HANDLE) psp;
	atomic_bool stop;
};

static void *free_always(void *arg)
{
	struct flipper *flipper = arg;

	while (!atomic_load(&flipper->stop)) {
		const DAT_PSP_HANDLE psp = atomic_exchange(&flipper->psp, DAT_HANDLE_NULL);

		if (psp)
			dt_ok(dat_psp_free(psp));
	}
	return NULL;
}

/* PSP-FREE-08 */
static void psp_free__while_another_thread_creates__no_crash(void **state)
{
	struct conn_fixture *f = *state;
	struct flipper flipper = {.f = f, .qual = dt_unused_qual()};
	DAT_PSP_HANDLE psp;

	assert_int_equal(pthread_create(&flipper.thread, NULL, free_always, &flipper), 0);
	for (unsigned int i = 0; i < 300; i++) {
		const DAT_RETURN ret = dat_psp_create(f->ia.ia, flipper.qual, f->listener.evd,
						      DAT_PSP_CONSUMER_FLAG, &psp);

		if (ret == DAT_SUCCESS)
			atomic_store(&flipper.psp, psp);
		else
			dt_fails(ret, DAT_CONN_QUAL_IN_USE);
	}
	atomic_store(&flipper.stop, true);
	assert_int_equal(pthread_join(flipper.thread, NULL), 0);
	psp = atomic_load(&flipper.psp);
	if (psp)
		dt_ok(dat_psp_free(psp));
	dt_ok(dat_psp_create(f->ia.ia, flipper.qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
}

/* --- query --- */

static DAT_PSP_PARAM query(DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask)
{
	DAT_PSP_PARAM param;

	memset(&param, 0x5a, sizeof(param));
	dt_ok(dat_psp_query(psp, mask, &param));
	return param;
}

/* PSP-QUERY-01 PSP-QUERY-02 */
static void psp_query__all_and_each_field__as_created(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL qual = (DAT_CONN_QUAL)getpid() << 35;
	DAT_PSP_HANDLE psp;
	DAT_PSP_PARAM param;

	dt_ok(dat_psp_create(f->ia.ia, qual, f->listener.evd, DAT_PSP_PROVIDER_FLAG, &psp));
	param = query(psp, DAT_PSP_FIELD_ALL);
	assert_ptr_equal(param.ia_handle, f->ia.ia);
	assert_true(param.conn_qual == qual);
	assert_ptr_equal(param.evd_handle, f->listener.evd);
	assert_int_equal(param.psp_flags, DAT_PSP_PROVIDER_FLAG);
	assert_ptr_equal(query(psp, DAT_PSP_FIELD_IA_HANDLE).ia_handle, f->ia.ia);
	assert_true(query(psp, DAT_PSP_FIELD_CONN_QUAL).conn_qual == qual);
	assert_ptr_equal(query(psp, DAT_PSP_FIELD_EVD_HANDLE).evd_handle, f->listener.evd);
	assert_int_equal(query(psp, DAT_PSP_FIELD_PSP_FLAGS).psp_flags, DAT_PSP_PROVIDER_FLAG);
	param = query(f->listener.psp, DAT_PSP_FIELD_ALL);
	assert_true(param.conn_qual == f->listener.qual);
	assert_int_equal(param.psp_flags, DAT_PSP_CONSUMER_FLAG);
	query(psp, (DAT_PSP_PARAM_MASK)0);
}

/* PSP-QUERY-04 PSP-QUERY-05 */
static void psp_query__bad_argument__invalid_parameter(void **state)
{
	static const unsigned int masks[] = {0x10, 0x1f, 0x80000000};
	struct conn_fixture *f = *state;
	DAT_PSP_PARAM param;

	for (size_t i = 0; i < COUNT_OF(masks); i++)
		dt_fails_with(dat_psp_query(f->listener.psp, (DAT_PSP_PARAM_MASK)masks[i], &param),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_psp_query(f->listener.psp, DAT_PSP_FIELD_ALL, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

static DAT_RETURN query_psp(DAT_HANDLE handle, void *arg)
{
	DAT_PSP_PARAM param;

	(void)arg;
	return dat_psp_query(handle, DAT_PSP_FIELD_ALL, &param);
}

/* PSP-QUERY-06 */
static void psp_query__bad_handle__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;
	DAT_RSP_HANDLE rsp;

	conn_refuses_handles(query_psp, NULL, f->listener.evd, freed_psp(f),
			     DAT_INVALID_HANDLE_PSP);
	dt_ok(dat_rsp_create(f->ia.ia, dt_unused_qual(), f->b.ep, f->listener.evd, &rsp));
	dt_fails_with(query_psp(rsp, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	dt_ok(dat_rsp_free(rsp));
}

static void *query_often(void *arg)
{
	struct conn_fixture *f = arg;

	for (unsigned int i = 0; i < 500; i++) {
		DAT_PSP_PARAM param;

		dt_ok(dat_psp_query(f->listener.psp, DAT_PSP_FIELD_ALL, &param));
		if (param.conn_qual != f->listener.qual)
			return f;
	}
	return NULL;
}

/* PSP-QUERY-07 */
static void psp_query__from_threads__works(void **state)
{
	struct conn_fixture *f = *state;
	pthread_t threads[4];

	for (size_t i = 0; i < COUNT_OF(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, query_often, f), 0);
	for (unsigned int i = 0; i < 10; i++) {
		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		dt_ok(dat_cr_reject(dt_request(&f->listener)));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
	}
	for (size_t i = 0; i < COUNT_OF(threads); i++) {
		void *result;

		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_null(result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(psp_free__bad_handle__invalid_handle),
		conn_test(psp_free__listening__qualifier_and_evd_free),
		conn_test(psp_free__requests_open__still_answerable),
		conn_test(psp_free__request_under_way__event_or_refusal),
		conn_test(psp_free__connections_made_through_it__stay_connected),
		conn_test(free_calls__work_outstanding__succeed),
		conn_test(psp_free__while_another_thread_creates__no_crash),
		conn_test(psp_query__all_and_each_field__as_created),
		conn_test(psp_query__bad_argument__invalid_parameter),
		conn_test(psp_query__bad_handle__invalid_handle),
		conn_test(psp_query__from_threads__works),
	};

	return cmocka_run_group_tests_name("psp_free", tests, NULL, NULL);
}
