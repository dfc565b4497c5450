// SPDX-License-Identifier: BSD-2-Clause
/* dat_cr_reject and dat_cr_query. */
#include <pthread.h>

#include "conn_util.h"

static DAT_CR_HANDLE request_connection(struct conn_fixture *f)
{
	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	return dt_request(&f->listener);
}

/* --- reject --- */

/* CR-REJECT-01 CR-REJECT-02 CR-REJECT-03 CR-REJECT-06 CR-REJECT-08 */
static void cr_reject__consumer_psp__active_side_notified_request_gone(void **state)
{
	struct conn_fixture *f = *state;

	for (unsigned int i = 0; i < 3; i++) {
		const DAT_CR_HANDLE cr = request_connection(f);
		DAT_CR_PARAM param;

		dt_ok(dat_cr_reject(cr));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_fails_with(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_CR);
		dt_fails_with(dat_cr_reject(cr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
		dt_fails_with(dat_cr_accept(cr, f->b.ep, 0, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_CR);
		dt_stays_empty(f->listener.evd);
		conn_no_events(&f->b);
		conn_no_events(&f->a);
		dt_ok(dat_ep_reset(f->a.ep));
	}
	conn_link(f, &f->a, &f->b);
}

static DAT_RETURN reject(DAT_HANDLE handle, void *arg)
{
	(void)arg;
	return dat_cr_reject(handle);
}

/* CR-REJECT-10 */
static void cr_reject__bad_handle__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;

	conn_refuses_handles(reject, NULL, f->listener.psp, conn_freed_cr(f),
			     DAT_INVALID_HANDLE_CR);
	conn_link(f, &f->a, &f->b);
}

/* --- query --- */

/* CR-QUERY-01 CR-QUERY-05 CR-QUERY-07 */
static void cr_query__each_field_and_again__same_values(void **state)
{
	static const DAT_CR_PARAM_MASK masks[] = {
		DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR,
		DAT_CR_FIELD_REMOTE_PORT_QUAL,
		DAT_CR_FIELD_PRIVATE_DATA_SIZE | DAT_CR_FIELD_PRIVATE_DATA,
		DAT_CR_FIELD_LOCAL_EP_HANDLE,
		DAT_CR_FIELD_ALL,
		(DAT_CR_PARAM_MASK)0,
	};
	struct conn_fixture *f = *state;
	struct conn_args args = conn_args_of(f);
	unsigned char data[40];
	DAT_PORT_QUAL port;
	DAT_CR_HANDLE cr;

	dt_fill(data, sizeof(data), 3);
	args.data = data;
	args.size = sizeof(data);
	dt_ok(conn_try(f->a.ep, &args));
	port = conn_ep_query(f->a.ep).local_port_qual;
	cr = dt_request(&f->listener);
	for (size_t i = 0; i < 3 * COUNT_OF(masks); i++) {
		const DAT_CR_PARAM_MASK mask = masks[i % COUNT_OF(masks)];
		DAT_CR_PARAM param;

		memset(&param, 0xa5, sizeof(param));
		dt_ok(dat_cr_query(cr, mask, &param));
		if (mask & DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR)
			conn_check_same_address((struct sockaddr *)param.remote_ia_address_ptr,
						(struct sockaddr *)f->ia.attr.ia_address_ptr);
		if (mask & DAT_CR_FIELD_REMOTE_PORT_QUAL)
			assert_true(param.remote_port_qual == port);
		if (mask & DAT_CR_FIELD_PRIVATE_DATA) {
			assert_int_equal(param.private_data_size, sizeof(data));
			dt_check_pattern(param.private_data, sizeof(data), 3);
		}
		if (mask & DAT_CR_FIELD_LOCAL_EP_HANDLE)
			assert_null(param.local_ep_handle);
	}
}

/* CR-QUERY-06: the data of other requests do not overwrite these */
static void cr_query__other_requests_arrive__data_unchanged(void **state)
{
	struct conn_fixture *f = *state;
	struct conn_args args = conn_args_of(f);
	unsigned char data[64];
	DAT_CR_PARAM first, second;
	DAT_CR_HANDLE cr;

	args.data = data;
	args.size = sizeof(data);
	dt_fill(data, sizeof(data), 1);
	dt_ok(conn_try(f->a.ep, &args));
	first = conn_cr_query(dt_request(&f->listener));
	dt_fill(data, sizeof(data), 2);
	dt_ok(conn_try(f->b.ep, &args));
	cr = dt_request(&f->listener);
	second = conn_cr_query(cr);
	dt_check_pattern(second.private_data, sizeof(data), 2);
	dt_ok(dat_cr_reject(cr));
	dt_check_pattern(first.private_data, sizeof(data), 1);
	conn_check_same_address((struct sockaddr *)first.remote_ia_address_ptr,
				(struct sockaddr *)f->ia.attr.ia_address_ptr);
}

/* CR-QUERY-09 CR-QUERY-10 */
static void cr_query__bad_argument__invalid_parameter(void **state)
{
	static const unsigned int masks[] = {0x20, 0x3f, 0x80000000};
	struct conn_fixture *f = *state;
	const DAT_CR_HANDLE cr = request_connection(f);
	DAT_CR_PARAM param;

	for (size_t i = 0; i < COUNT_OF(masks); i++)
		dt_fails_with(dat_cr_query(cr, (DAT_CR_PARAM_MASK)masks[i], &param),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_cr_query(cr, DAT_CR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static DAT_RETURN query(DAT_HANDLE handle, void *arg)
{
	DAT_CR_PARAM param;

	(void)arg;
	return dat_cr_query(handle, DAT_CR_FIELD_ALL, &param);
}

/* CR-QUERY-11 */
static void cr_query__bad_handle__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;

	conn_refuses_handles(query, NULL, f->listener.psp, conn_freed_cr(f), DAT_INVALID_HANDLE_CR);
}

struct reader {
	pthread_t thread;
	DAT_CR_HANDLE cr;
	DAT_PORT_QUAL port;
	unsigned int mismatches;
};

static void *query_often(void *arg)
{
	struct reader *reader = arg;

	for (unsigned int i = 0; i < 2000; i++) {
		DAT_CR_PARAM param;

		dt_ok(dat_cr_query(reader->cr, DAT_CR_FIELD_ALL, &param));
		reader->mismatches += param.remote_port_qual != reader->port;
	}
	return NULL;
}

/* CR-QUERY-13 */
static void cr_query__from_threads__same_values(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CR_HANDLE cr = request_connection(f);
	struct reader readers[4];

	for (size_t i = 0; i < COUNT_OF(readers); i++) {
		readers[i] =
			(struct reader){.cr = cr, .port = conn_ep_query(f->a.ep).local_port_qual};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, query_often, &readers[i]),
				 0);
	}
	for (size_t i = 0; i < COUNT_OF(readers); i++) {
		assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
		assert_int_equal(readers[i].mismatches, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(cr_reject__consumer_psp__active_side_notified_request_gone),
		conn_test(cr_reject__bad_handle__invalid_handle),
		conn_test(cr_query__each_field_and_again__same_values),
		conn_test(cr_query__other_requests_arrive__data_unchanged),
		conn_test(cr_query__bad_argument__invalid_parameter),
		conn_test(cr_query__bad_handle__invalid_handle),
		conn_test(cr_query__from_threads__same_values),
	};

	return cmocka_run_group_tests_name("cr_reject", tests, NULL, NULL);
}
