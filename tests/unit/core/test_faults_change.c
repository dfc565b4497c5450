// SPDX-License-Identifier: BSD-2-Clause
/*
 * As test_faults.c, for the calls that resize or modify, and for shared receive queues, memory
 * windows and CNOs. A failed call must leave existing objects unchanged.
 */
#include "core/event/cno_trigger.h"
#include "faults.h"
#include "mock.h"

#include <errno.h>
#include <semaphore.h>
#include <unistd.h>

static struct mock_ia ia;
static DAT_HANDLE made;

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

/* --- EVDs --- */

static void post_numbers(intptr_t first, intptr_t count)
{
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	for (intptr_t i = first; i < first + count; i++) {
		event.event_data.software_event_data.pointer = (void *)i;
		assert_int_equal(core_evd_post_se(ia.evd, &event), DAT_SUCCESS);
	}
}

static void expect_numbers(intptr_t first, intptr_t count)
{
	for (intptr_t i = first; i < first + count; i++)
		assert_ptr_equal(mock_event(ia.evd).event_data.software_event_data.pointer,
				 (void *)i);
}

static DAT_RETURN grow_evd(void)
{
	return core_evd_resize(ia.evd, 500);
}

static void evd_is_as_before(void)
{
	DAT_EVD_PARAM param;

	assert_int_equal(core_evd_query(ia.evd, DAT_EVD_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(param.evd_qlen, 64);
}

/* EVD-RESIZE-10 GEN-20: length and events are unchanged, and a later resize succeeds. */
static void evd_resize__no_memory__unchanged(void **state)
{
	(void)state;
	post_numbers(1, 10);
	expect_numbers(1, 5);
	post_numbers(11, 50);
	faults.allocation = 1;
	assert_int_equal(mock_code(grow_evd()), DAT_INSUFFICIENT_RESOURCES);
	evd_is_as_before();
	faults_each_unchanged(grow_evd, evd_is_as_before);
	expect_numbers(6, 55);
	mock_no_event(ia.evd);
}

/* --- endpoints --- */

static DAT_EP_HANDLE changed_ep;

static DAT_RETURN grow_ep(void)
{
	DAT_EP_PARAM param = {.ep_attr = {.max_recv_dtos = 300, .max_request_dtos = 400}};

	return core_ep_modify(
		changed_ep,
		DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param);
}

static void ep_is_as_before(void)
{
	DAT_EP_PARAM param;

	assert_int_equal(core_ep_query(changed_ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(param.ep_attr.max_recv_dtos, 16);
	assert_int_equal(param.ep_attr.max_request_dtos, 16);
	assert_ptr_equal(param.pz_handle, ia.pz);
	assert_ptr_equal(param.recv_evd_handle, ia.evd);
	assert_ptr_equal(param.request_evd_handle, ia.evd);
	assert_ptr_equal(param.connect_evd_handle, ia.evd);
}

/* EP-MODIFY-54 GEN-20: the lengths are unchanged, and EVD and zone count the endpoint once. */
static void ep_modify__no_memory_for_longer_queues__unchanged(void **state)
{
	DAT_DTO_COOKIE user = {.as_64 = 7};

	(void)state;
	changed_ep = mock_ep(&ia);
	assert_int_equal(core_ep_post_recv(changed_ep, 0, NULL, user, 0), DAT_SUCCESS);
	faults_each_unchanged(grow_ep, ep_is_as_before);
	assert_int_equal(core_evd_free(ia.evd),
			 core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE));
	assert_int_equal(core_pz_free(ia.pz),
			 core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE));
	assert_int_equal(core_ep_free(changed_ep), DAT_SUCCESS);
	assert_int_equal(core_evd_free(ia.evd), DAT_SUCCESS);
	assert_int_equal(core_pz_free(ia.pz), DAT_SUCCESS);
}

/* --- shared receive queues --- */

static DAT_RETURN make_srq(void)
{
	DAT_SRQ_ATTR attr = {.max_recv_dtos = 20, .max_recv_iov = 2};

	return core_srq_create(ia.ia, ia.pz, &attr, &made);
}

static void undo_srq(void)
{
	assert_int_equal(core_srq_free(made), DAT_SUCCESS);
}

/* SRQ-CREATE-22: after a failure the zone can be freed. */
static void srq_create__no_memory__nothing_left(void **state)
{
	(void)state;
	faults_each(make_srq, undo_srq);
	assert_int_equal(core_pz_free(ia.pz), DAT_SUCCESS);
}

/* SRQ-CREATE-22 */
static void srq_create__one_more_than_max_srqs__insufficient_resources(void **state)
{
	DAT_HANDLE all[MOCK_OBJECTS];
	int before;

	(void)state;
	for (int i = 0; i < MOCK_OBJECTS; i++) {
		assert_int_equal(make_srq(), DAT_SUCCESS);
		all[i] = made;
	}
	before = faults.live;
	assert_int_equal(mock_code(make_srq()), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(faults.live, before);
	for (int i = 0; i < MOCK_OBJECTS; i++)
		assert_int_equal(core_srq_free(all[i]), DAT_SUCCESS);
	assert_int_equal(core_pz_free(ia.pz), DAT_SUCCESS);
}

static DAT_RETURN grow_srq(void)
{
	return core_srq_resize(made, 500);
}

static void srq_is_as_before(void)
{
	DAT_SRQ_PARAM param;

	assert_int_equal(core_srq_query(made, DAT_SRQ_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(param.max_recv_dtos, 20);
	assert_int_equal(param.available_dto_count, 3);
}

/* SRQ-RESIZE-09 GEN-20: size and buffers are unchanged. */
static void srq_resize__no_memory__unchanged(void **state)
{
	DAT_DTO_COOKIE user = {.as_64 = 1};

	(void)state;
	assert_int_equal(make_srq(), DAT_SUCCESS);
	for (int i = 0; i < 3; i++)
		assert_int_equal(core_srq_post_recv(made, 0, NULL, user), DAT_SUCCESS);
	faults_each_unchanged(grow_srq, srq_is_as_before);
}

/* SRQ-RECV-24: no post allocates, not even one that is refused. */
static void srq_post_recv__any_number__allocates_nothing(void **state)
{
	DAT_DTO_COOKIE user = {.as_64 = 1};
	int before;

	(void)state;
	assert_int_equal(make_srq(), DAT_SUCCESS);
	before = faults.live;
	faults.allocation = 1;
	for (int i = 0; i < 20; i++)
		assert_int_equal(core_srq_post_recv(made, 0, NULL, user), DAT_SUCCESS);
	assert_int_equal(mock_code(core_srq_post_recv(made, 0, NULL, user)),
			 DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(faults.allocation, 1);
	assert_int_equal(faults.live, before);
}

static DAT_SRQ_HANDLE the_srq;

static DAT_EP_ATTR srq_ep_attr;

static DAT_RETURN make_srq_ep(void)
{
	return core_ep_create_with_srq(ia.ia, ia.pz, ia.evd, ia.evd, ia.evd, the_srq, &srq_ep_attr,
				       &made);
}

/* The default attributes, with the default watermarks. */
static void init_srq_ep_attr(void)
{
	DAT_EP_HANDLE other = mock_ep(&ia);
	DAT_EP_PARAM param;

	assert_int_equal(core_ep_query(other, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(core_ep_free(other), DAT_SUCCESS);
	srq_ep_attr = param.ep_attr;
	srq_ep_attr.max_recv_dtos = DAT_HW_DEFAULT;
	srq_ep_attr.srq_soft_hw = DAT_HW_DEFAULT;
}

static void undo_ep(void)
{
	assert_int_equal(core_ep_free(made), DAT_SUCCESS);
}

/* EP-CRSRQ-45: after a failure zone, EVD and SRQ can be freed. */
static void ep_create_with_srq__no_memory__nothing_left(void **state)
{
	(void)state;
	assert_int_equal(make_srq(), DAT_SUCCESS);
	the_srq = made;
	init_srq_ep_attr();
	faults_each(make_srq_ep, undo_ep);
	assert_int_equal(core_srq_free(the_srq), DAT_SUCCESS);
	assert_int_equal(core_evd_free(ia.evd), DAT_SUCCESS);
	assert_int_equal(core_pz_free(ia.pz), DAT_SUCCESS);
}

/* --- memory windows --- */

static DAT_RETURN make_rmr(void)
{
	return core_rmr_create(ia.pz, &made);
}

static void undo_rmr(void)
{
	assert_int_equal(core_rmr_free(made), DAT_SUCCESS);
}

/* RMR-CREATE-09: after a failure the zone can be freed. */
static void rmr_create__no_resources__nothing_left(void **state)
{
	DAT_HANDLE all[MOCK_OBJECTS];

	(void)state;
	faults_each(make_rmr, undo_rmr);
	for (int i = 0; i < MOCK_OBJECTS; i++) {
		assert_int_equal(make_rmr(), DAT_SUCCESS);
		all[i] = made;
	}
	assert_int_equal(mock_code(make_rmr()), DAT_INSUFFICIENT_RESOURCES);
	for (int i = 0; i < MOCK_OBJECTS; i++)
		assert_int_equal(core_rmr_free(all[i]), DAT_SUCCESS);
	assert_int_equal(core_pz_free(ia.pz), DAT_SUCCESS);
}

static unsigned char memory[4096];
static DAT_LMR_TRIPLET segment;
static DAT_EP_HANDLE bind_ep;

static DAT_RETURN bind_window(void)
{
	const DAT_RMR_COOKIE cookie = {.as_64 = 3};
	DAT_RMR_CONTEXT context;

	return core_rmr_bind(made, &segment, DAT_MEM_PRIV_REMOTE_READ_FLAG, bind_ep, cookie,
			     DAT_COMPLETION_DEFAULT_FLAG, &context);
}

/* RMR-BIND-50 GEN-20: region, window and endpoint are unchanged. */
static void rmr_bind__transport_without_windows__model_not_supported(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = memory};
	DAT_LMR_HANDLE lmr;
	DAT_RMR_PARAM param;
	int before;

	(void)state;
	bind_ep = mock_connected(&ia);
	assert_int_equal(core_lmr_create(ia.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), ia.pz,
					 DAT_MEM_PRIV_ALL_FLAG, &lmr, &segment.lmr_context, NULL,
					 NULL, NULL),
			 DAT_SUCCESS);
	segment.virtual_address = (uintptr_t)memory;
	segment.segment_length = sizeof(memory);
	assert_int_equal(make_rmr(), DAT_SUCCESS);
	mock.req = NULL;
	before = faults.live;
	assert_int_equal(mock_code(bind_window()), DAT_MODEL_NOT_SUPPORTED);
	faults.allocation = 1;
	assert_int_equal(mock_code(bind_window()), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(faults.live, before);
	assert_null(mock.req);
	mock_no_event(ia.evd);
	assert_int_equal(core_rmr_query(made, DAT_RMR_FIELD_LMR_TRIPLET, &param),
			 core_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	assert_int_equal(core_rmr_free(made), DAT_SUCCESS);
}

/* --- CNOs --- */

static sem_t called;

static void count_call(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	(void)data;
	(void)evd;
	sem_post(&called);
}

static const DAT_OS_WAIT_PROXY_AGENT agent = {.proxy_agent_func = count_call};

static DAT_RETURN make_cno(void)
{
	return core_cno_create(ia.ia, agent, &made);
}

static void undo_cno(void)
{
	assert_int_equal(core_cno_free(made), DAT_SUCCESS);
}

/* CNO-CREATE-12: the agent thread, once created, is kept. */
static void cno_create__no_resources__nothing_left(void **state)
{
	int before = faults.live;

	(void)state;
	faults.thread = true;
	assert_int_equal(mock_code(make_cno()), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(faults.live, before);
	faults.thread = false;
	for (int n = 1; n < 4; n++) { /* the CNO, its agent, the agents of the instance */
		faults.allocation = n;
		assert_int_equal(mock_code(make_cno()), DAT_INSUFFICIENT_RESOURCES);
		faults.allocation = 0;
	}
	assert_int_equal(make_cno(), DAT_SUCCESS);
	undo_cno();
	faults_each(make_cno, undo_cno);
}

static DAT_RETURN set_agent(void)
{
	return core_cno_modify_agent(made, agent);
}

static void cno_has_no_agent(void)
{
	DAT_CNO_PARAM param;

	assert_int_equal(core_cno_query(made, DAT_CNO_FIELD_ALL, &param), DAT_SUCCESS);
	assert_true(!param.agent.proxy_agent_func);
}

/* GEN-20: after failures the CNO has no agent; then one is set and called. */
static void cno_modify_agent__no_resources__unchanged(void **state)
{
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	(void)state;
	sem_init(&called, 0, 0);
	assert_int_equal(core_cno_create(ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &made), DAT_SUCCESS);
	faults.thread = true;
	assert_int_equal(mock_code(set_agent()), DAT_INSUFFICIENT_RESOURCES);
	cno_has_no_agent();
	faults.thread = false;
	faults.allocation = 1;
	assert_int_equal(mock_code(set_agent()), DAT_INSUFFICIENT_RESOURCES);
	cno_has_no_agent();
	assert_int_equal(set_agent(), DAT_SUCCESS);
	assert_int_equal(core_evd_modify_cno(ia.evd, made), DAT_SUCCESS);
	assert_int_equal(core_evd_post_se(ia.evd, &event), DAT_SUCCESS);
	assert_int_equal(sem_wait(&called), 0);
	sem_destroy(&called);
}

/* GEN-20: the next attempt succeeds. */
static void cno_fd__no_descriptors__insufficient_resources(void **state)
{
	int fd = -7;

	(void)state;
	assert_int_equal(core_cno_create(ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &made), DAT_SUCCESS);
	faults.eventfd = true;
	assert_int_equal(mock_code(core_cno_fd(made, &fd)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(fd, -7);
	faults.eventfd = false;
	assert_int_equal(core_cno_fd(made, &fd), DAT_SUCCESS);
	assert_true(fd >= 0);
	undo_cno();
}

/* --- triggers --- */

static DAT_CNO_HANDLE cno_made(void)
{
	DAT_CNO_HANDLE cno;

	assert_int_equal(core_cno_create(ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), DAT_SUCCESS);
	return cno;
}

static void expect_trigger(DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE evd;

	assert_int_equal(core_cno_wait(cno, 0, &evd), DAT_SUCCESS);
	assert_ptr_equal(evd, ia.evd);
}

/* EVD-MODIFY-CNO-03 EVD-MODIFY-CNO-05 GEN-20: the trigger stays, and so does the CNO. */
static void evd_modify_cno__no_memory__unchanged(void **state)
{
	DAT_CNO_HANDLE old = cno_made(), new = cno_made();
	DAT_EVD_PARAM param;

	(void)state;
	assert_int_equal(core_evd_modify_cno(ia.evd, old), DAT_SUCCESS);
	post_numbers(1, 1);
	faults.allocation = 1;
	assert_int_equal(mock_code(core_evd_modify_cno(ia.evd, new)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(core_evd_query(ia.evd, DAT_EVD_FIELD_ALL, &param), DAT_SUCCESS);
	assert_ptr_equal(param.cno_handle, old);
	assert_int_equal(core_cno_free(new), DAT_SUCCESS);
	expect_trigger(old);
}

/* EVD-MODIFY-CNO-03: the EVD has moved, and the thread that had its trigger was cancelled. */
static void cno_return_trigger__no_memory__the_new_cno_triggers(void **state)
{
	DAT_CNO_HANDLE old = cno_made(), new = cno_made();
	struct core_evd *evd;

	(void)state;
	assert_int_equal(core_evd_modify_cno(ia.evd, new), DAT_SUCCESS);
	evd = core_handle_lock(ia.evd, DAT_HANDLE_TYPE_EVD);
	faults.allocation = 1;
	core_cno_return_trigger(((struct core_handle *)old)->object, evd);
	core_handle_unlock(ia.evd);
	assert_int_equal(faults.allocation, 0);
	expect_trigger(new);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(evd_resize__no_memory__unchanged),
		T(ep_modify__no_memory_for_longer_queues__unchanged),
		T(srq_create__no_memory__nothing_left),
		T(srq_create__one_more_than_max_srqs__insufficient_resources),
		T(srq_resize__no_memory__unchanged),
		T(srq_post_recv__any_number__allocates_nothing),
		T(ep_create_with_srq__no_memory__nothing_left),
		T(rmr_create__no_resources__nothing_left),
		T(rmr_bind__transport_without_windows__model_not_supported),
		T(cno_create__no_resources__nothing_left),
		T(cno_modify_agent__no_resources__unchanged),
		T(cno_fd__no_descriptors__insufficient_resources),
		T(evd_modify_cno__no_memory__unchanged),
		T(cno_return_trigger__no_memory__the_new_cno_triggers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
