// SPDX-License-Identifier: BSD-2-Clause
/* What requests of connections and their ends tell a program of DAT 2.0. */
#include <string.h>

#include "conn_util.h"

#undef dat_cr_reject

#define POISON 0x5a
#define SHORT_US 20000u

/* D2-CR-05: until the endpoint is reset; the request, its listener and its EVD are gone by then */
static void cr_reject__other_side_gone__data_still_there(void **state)
{
	static const char data[] = "no";
	struct conn_fixture *f = *state;
	const DAT_CONNECTION_EVENT_DATA *found;
	struct dt_listener listener;
	DAT_EVENT event;
	DAT_CR_HANDLE cr;

	dt_listen(&f->ia, &listener);
	dt_connect(&f->ia, f->a.ep, listener.qual);
	cr = dt_request(&listener);
	dt_ok(dat_cr_reject(cr, sizeof(data), (DAT_PVOID)(uintptr_t)data));
	event = dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	found = &event.event_data.connect_event_data;
	dt_unlisten(&listener);
	assert_int_equal(found->private_data_size, sizeof(data));
	assert_string_equal(found->private_data, data);
	dt_ok(dat_ep_reset(f->a.ep));
}

static void expect_bare(struct conn_fixture *f, DAT_EVENT_NUMBER number)
{
	const DAT_EVENT event = dt_expect_conn(f->a.conn, f->a.ep, number);
	const DAT_CONNECTION_EVENT_DATA *found = &event.event_data.connect_event_data;

	assert_int_equal(found->private_data_size, 0);
	assert_null(found->private_data);
	dt_ok(dat_ep_reset(f->a.ep));
}

/* D2-CR-07: nobody listens, nobody answers, and an address for documentation, which nobody has */
static void ep_connect__fails__event_without_data(void **state)
{
	struct conn_fixture *f = *state;
	union conn_address address = {.in = {.sin_family = AF_INET}};
	struct conn_args args = conn_args_of(f);
	DAT_RETURN ret;

	dt_connect(&f->ia, f->a.ep, dt_unused_qual());
	expect_bare(f, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	conn_start_timed(f, f->a.ep, SHORT_US);
	expect_bare(f, DAT_CONNECTION_EVENT_TIMED_OUT);
	address.in.sin_addr.s_addr = htonl(0xc0000201);
	args.address = conn_dat_address(&address);
	ret = conn_try(f->a.ep, &args);
	if (ret != DAT_SUCCESS)
		dt_fails_with(ret, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	else
		expect_bare(f, DAT_CONNECTION_EVENT_UNREACHABLE);
	dt_ok(dat_cr_reject(dt_request(&f->listener), 0, NULL)); /* of the second attempt */
}

/* D2-CR-08 D2-CR-10 */
static void request__of_our_own_peer__whole_and_queried(void **state)
{
	struct conn_fixture *f = *state;
	DAT_CR_PARAM all, some;
	DAT_EVENT event;
	DAT_CR_HANDLE cr;

	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	event = dt_event(f->listener.evd);
	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	assert_int_equal(event.event_data.cr_arrival_event_data.truncate_flag, DAT_FALSE);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	memset(&some, POISON, sizeof(some));
	dt_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &all));
	dt_ok(dat_cr_query(cr, (DAT_CR_PARAM_MASK)DAT_CSP_FIELD_ALL, &some));
	assert_int_equal(DAT_CSP_FIELD_ALL, 0x0f);
	assert_ptr_equal(some.remote_ia_address_ptr, all.remote_ia_address_ptr);
	assert_int_equal(some.remote_port_qual, all.remote_port_qual);
	assert_int_equal(some.private_data_size, all.private_data_size);
	assert_ptr_equal(some.private_data, all.private_data);
	dt_ok(dat_cr_reject(cr, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(cr_reject__other_side_gone__data_still_there),
		conn_test(ep_connect__fails__event_without_data),
		conn_test(request__of_our_own_peer__whole_and_queried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
