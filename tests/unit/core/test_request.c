// SPDX-License-Identifier: BSD-2-Clause
/*
 * Connection requests that arrive before the call that creates the service point has returned.
 */
#include "mock_use.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_t requester;
static struct core_ref listening_sp;
static _Atomic bool is_requesting;
static int request_ret;

static void *send_request(void *arg)
{
	const struct transport_request arrived = {.conn_qual = 77, .transport = &mock};

	(void)arg;
	atomic_store(&is_requesting, true);
	request_ret = core_sp_request(listening_sp, &arrived);
	return NULL;
}

/* Sends a request from another thread, as a transport's thread does, before listen() returns. */
static void request_during_listen(struct core_ref sp)
{
	listening_sp = sp;
	atomic_store(&is_requesting, false);
	assert_int_equal(pthread_create(&requester, NULL, send_request, NULL), 0);
	while (!atomic_load(&is_requesting))
		;
}

static void expect_request(DAT_HANDLE sp)
{
	DAT_EVENT event;

	assert_int_equal(pthread_join(requester, NULL), 0);
	assert_int_equal(request_ret, 0);
	event = mock_event(ia.evd);
	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	assert_ptr_equal(event.event_data.cr_arrival_event_data.sp_handle.psp_handle, sp);
	assert_int_equal(event.event_data.cr_arrival_event_data.conn_qual, 77);
	mock_no_event(ia.evd);
	assert_int_equal(mock.rejects, 0);
}

/* PSP-CREATE-25 */
static void psp_create__request_during_the_call__not_lost(void **state)
{
	DAT_PSP_HANDLE psp;

	(void)state;
	mock.on_listen = request_during_listen;
	assert_int_equal(core_psp_create(ia.ia, 77, ia.evd, DAT_PSP_CONSUMER_FLAG, &psp),
			 DAT_SUCCESS);
	expect_request(psp);
}

/* The endpoint is reserved before the service point listens. */
static void rsp_create__request_during_the_call__not_lost(void **state)
{
	DAT_EP_HANDLE ep = mock_ep(&ia);
	DAT_EP_STATE ep_state;
	DAT_RSP_HANDLE rsp;

	(void)state;
	mock.on_listen = request_during_listen;
	assert_int_equal(core_rsp_create(ia.ia, 77, ep, ia.evd, &rsp), DAT_SUCCESS);
	expect_request(rsp);
	assert_int_equal(core_ep_get_status(ep, &ep_state, NULL, NULL), DAT_SUCCESS);
	assert_int_equal(ep_state, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(psp_create__request_during_the_call__not_lost),
		T(rsp_create__request_during_the_call__not_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
