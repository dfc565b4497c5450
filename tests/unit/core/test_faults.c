// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes every allocation of the create calls, and every transport slot that they use, fail in turn.
 * The call must return DAT_INSUFFICIENT_RESOURCES and leak nothing, and the next call must succeed.
 */
#include "faults.h"
#include "mock.h"

#include <errno.h>

static struct mock_ia ia;

static int setup(void **state)
{
	(void)state;
	mock_open(&ia);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	faults_clear();
	mock_close(&ia);
	return 0;
}

static void fail_slot(const char *slot, DAT_RETURN (*make)(void), void (*undo)(void))
{
	int before = faults.live;

	mock.failing = slot;
	mock.error = -ENOMEM;
	assert_int_equal(mock_code(make()), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(faults.live, before);
	mock.failing = NULL;
	assert_int_equal(make(), DAT_SUCCESS);
	undo();
}

static DAT_HANDLE made;

static DAT_RETURN make_pz(void)
{
	return core_pz_create(ia.ia, &made);
}

static void undo_pz(void)
{
	assert_int_equal(core_pz_free(made), DAT_SUCCESS);
}

/* PZ-CREATE-07 GEN-20 */
static void pz_create__no_memory__nothing_left(void **state)
{
	(void)state;
	faults_each(make_pz, undo_pz);
	fail_slot("pz_create", make_pz, undo_pz);
}

static DAT_RETURN make_evd(void)
{
	return core_evd_create(ia.ia, 10, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &made);
}

static void undo_evd(void)
{
	assert_int_equal(core_evd_free(made), DAT_SUCCESS);
}

/* EVD-CREATE-21 EVD-CREATE-24 */
static void evd_create__no_memory__nothing_left(void **state)
{
	(void)state;
	faults_each(make_evd, undo_evd);
	faults.allocation = 1;
	made = &ia;
	assert_int_equal(mock_code(make_evd()), DAT_INSUFFICIENT_RESOURCES);
	assert_ptr_equal(made, DAT_HANDLE_NULL);
}

static DAT_RETURN make_ep(void)
{
	return core_ep_create(ia.ia, ia.pz, ia.evd, ia.evd, ia.evd, NULL, &made);
}

static void undo_ep(void)
{
	assert_int_equal(core_ep_free(made), DAT_SUCCESS);
}

/* EP-CREATE-69: after a failure the zone and the EVD can be freed. */
static void ep_create__no_memory__nothing_left(void **state)
{
	(void)state;
	faults_each(make_ep, undo_ep);
	fail_slot("ep_create", make_ep, undo_ep);
	assert_int_equal(core_evd_free(ia.evd), DAT_SUCCESS);
	assert_int_equal(core_pz_free(ia.pz), DAT_SUCCESS);
}

static unsigned char memory[4096];

static DAT_RETURN make_lmr(void)
{
	DAT_REGION_DESCRIPTION region = {.for_va = memory};

	return core_lmr_create(ia.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), ia.pz,
			       DAT_MEM_PRIV_ALL_FLAG, &made, NULL, NULL, NULL, NULL);
}

static void undo_lmr(void)
{
	assert_int_equal(core_lmr_free(made), DAT_SUCCESS);
}

/* LMR-CREATE-58 */
static void lmr_create__no_memory__nothing_left(void **state)
{
	(void)state;
	faults.allocation = 1; /* the first chunk of the table, which is never freed */
	assert_int_equal(mock_code(make_lmr()), DAT_INSUFFICIENT_RESOURCES);
	faults.allocation = 0;
	for (int i = 0; i < 8; i++) { /* freed slots are quarantined, so the table grows at first */
		assert_int_equal(make_lmr(), DAT_SUCCESS);
		undo_lmr();
	}
	fail_slot("lmr_create", make_lmr, undo_lmr);
	assert_int_equal(core_pz_free(ia.pz), DAT_SUCCESS);
}

/* LMR-CREATE-58: too many objects is found when the memory is registered already. */
static void lmr_create__too_many__not_left_registered(void **state)
{
	DAT_LMR_HANDLE first;

	(void)state;
	mock.ia->objects[DAT_HANDLE_TYPE_LMR].max = 1;
	assert_int_equal(make_lmr(), DAT_SUCCESS);
	first = made;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mock_code(make_lmr()), DAT_INSUFFICIENT_RESOURCES);
		assert_int_equal(mock.registered, 1);
	}
	assert_int_equal(core_lmr_free(first), DAT_SUCCESS);
	assert_int_equal(mock.registered, 0);
	assert_int_equal(make_lmr(), DAT_SUCCESS);
	undo_lmr();
	assert_int_equal(core_pz_free(ia.pz), DAT_SUCCESS);
}

static DAT_RETURN make_psp(void)
{
	return core_psp_create(ia.ia, 77, ia.evd, DAT_PSP_CONSUMER_FLAG, &made);
}

static void undo_psp(void)
{
	assert_int_equal(core_psp_free(made), DAT_SUCCESS);
}

/* PSP-CREATE-21: after a failure the EVD can be freed. */
static void psp_create__no_memory__nothing_left(void **state)
{
	(void)state;
	faults_each(make_psp, undo_psp);
	fail_slot("listen", make_psp, undo_psp);
	assert_int_equal(core_evd_free(ia.evd), DAT_SUCCESS);
}

/* PSP-CREATE-16 PSP-CRANY-05: the errors of listen about qualifiers. */
static void psp_create__qualifier_in_use__reported(void **state)
{
	DAT_CONN_QUAL qual;

	(void)state;
	mock.failing = "listen";
	mock.error = -EADDRINUSE;
	assert_int_equal(mock_code(make_psp()), DAT_CONN_QUAL_IN_USE);
	mock.error = -EADDRNOTAVAIL;
	assert_int_equal(
		mock_code(core_psp_create_any(ia.ia, &qual, ia.evd, DAT_PSP_CONSUMER_FLAG, &made)),
		DAT_CONN_QUAL_UNAVAILABLE);
}

static DAT_RETURN make_rsp(void)
{
	return core_rsp_create(ia.ia, 78, mock.ep ? mock.ep->cell : NULL, ia.evd, &made);
}

static void undo_rsp(void)
{
	assert_int_equal(core_rsp_free(made), DAT_SUCCESS);
}

/* RSP-CREATE-16 RSP-CREATE-18: the endpoint stays UNCONNECTED. */
static void rsp_create__fails__endpoint_stays_unconnected(void **state)
{
	DAT_EP_HANDLE ep = mock_ep(&ia);
	DAT_EP_STATE ep_state;

	(void)state;
	mock.ep = ((struct core_handle *)ep)->object;
	faults_each(make_rsp, undo_rsp);
	mock.failing = "listen";
	mock.error = -EADDRINUSE;
	assert_int_equal(mock_code(make_rsp()), DAT_CONN_QUAL_IN_USE);
	assert_int_equal(core_ep_get_status(ep, &ep_state, NULL, NULL), DAT_SUCCESS);
	assert_int_equal(ep_state, DAT_EP_STATE_UNCONNECTED);
}

static DAT_RETURN connect_ep(DAT_EP_HANDLE ep)
{
	struct sockaddr_in address = {.sin_family = AF_INET};

	return core_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&address, 7, 1000000, 0, NULL,
			       DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/* EP-CONNECT-42 EP-CONNECT-43: no event, still UNCONNECTED, Receives still posted. */
static void ep_connect__fails_at_once__no_effect(void **state)
{
	DAT_EP_HANDLE ep = mock_ep(&ia);
	DAT_DTO_COOKIE user = {.as_64 = 1};
	DAT_BOOLEAN recv_idle;
	DAT_EP_STATE ep_state;

	(void)state;
	assert_int_equal(core_ep_post_recv(ep, 0, NULL, user, 0), DAT_SUCCESS);
	mock.failing = "connect";
	mock.error = -EMFILE;
	assert_int_equal(mock_code(connect_ep(ep)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(core_ep_get_status(ep, &ep_state, &recv_idle, NULL), DAT_SUCCESS);
	assert_int_equal(ep_state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(recv_idle, DAT_FALSE);
	mock_no_event(ia.evd);
	mock.failing = NULL;
	assert_int_equal(connect_ep(ep), DAT_SUCCESS);
}

static DAT_CR_HANDLE request(void)
{
	const struct transport_request arrived = {.conn_qual = 77, .transport = &mock};

	assert_int_equal(core_sp_request(mock.sp, &arrived), 0);
	return mock_event(ia.evd).event_data.cr_arrival_event_data.cr_handle;
}

/* CR-ACCEPT-18 CR-ACCEPT-28: the CR and the endpoint are unchanged and can be used again. */
static void cr_accept__fails_in_the_transport__no_effect(void **state)
{
	DAT_EP_HANDLE ep = mock_ep(&ia);
	DAT_EP_STATE ep_state;
	DAT_CR_HANDLE cr;

	(void)state;
	assert_int_equal(make_psp(), DAT_SUCCESS);
	cr = request();
	mock.failing = "accept";
	mock.error = -ENOMEM;
	assert_int_equal(mock_code(core_cr_accept(cr, ep, 0, NULL)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(core_ep_get_status(ep, &ep_state, NULL, NULL), DAT_SUCCESS);
	assert_int_equal(ep_state, DAT_EP_STATE_UNCONNECTED);
	mock.failing = NULL;
	assert_int_equal(core_cr_accept(cr, ep, 0, NULL), DAT_SUCCESS);
	assert_int_equal(mock.rejects, 0);
}

/* PSP-CREATE-27: the request is refused without an event, and the PSP takes the next one. */
static void request__no_memory_for_the_endpoint__refused(void **state)
{
	const struct transport_request arrived = {.conn_qual = 77, .transport = &mock};
	int before;
	int n = 0;

	(void)state;
	assert_int_equal(core_psp_create(ia.ia, 77, ia.evd, DAT_PSP_PROVIDER_FLAG, &made),
			 DAT_SUCCESS);
	before = faults.live;
	do {
		faults.allocation = ++n;
		if (!core_sp_request(mock.sp, &arrived))
			break;
		faults.allocation = 0;
		mock_no_event(ia.evd);
		assert_int_equal(faults.live, before);
	} while (n < 100);
	assert_true(n > 1 && n < 100);
	assert_int_equal(mock_event(ia.evd).event_number, DAT_CONNECTION_REQUEST_EVENT);
}

/* IA-OPEN-33 IA-OPEN-34 */
static void ia_open__no_memory__nothing_left(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE handle = &ia;
	int before = faults.live;
	DAT_RETURN ret;
	int n = 0;

	(void)state;
	do {
		faults.allocation = ++n;
		ret = core_ia_open_safe((DAT_NAME_PTR) "mock", 8, &async, &handle);
		if (ret == DAT_SUCCESS)
			break;
		faults.allocation = 0;
		assert_ptr_equal(handle, DAT_HANDLE_NULL);
		assert_int_equal(faults.live, before);
	} while (n < 100);
	assert_true(n > 1 && n < 100);
	faults.allocation = 0;
	assert_int_equal(core_ia_close(handle, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	assert_int_equal(faults.live, before);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(pz_create__no_memory__nothing_left),
		T(evd_create__no_memory__nothing_left),
		T(ep_create__no_memory__nothing_left),
		T(lmr_create__no_memory__nothing_left),
		T(lmr_create__too_many__not_left_registered),
		T(psp_create__no_memory__nothing_left),
		T(psp_create__qualifier_in_use__reported),
		T(rsp_create__fails__endpoint_stays_unconnected),
		T(ep_connect__fails_at_once__no_effect),
		T(cr_accept__fails_in_the_transport__no_effect),
		T(request__no_memory_for_the_endpoint__refused),
		T(ia_open__no_memory__nothing_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
