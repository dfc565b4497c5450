// SPDX-License-Identifier: BSD-2-Clause
/* Do the completions of an endpoint wake anybody? (core_ep_is_watched) */
#include <pthread.h>
#include <sched.h>

#include "mock_use.h"

static DAT_EVD_HANDLE evds[2]; /* of Receives, of requests */
static DAT_EP_HANDLE handle;

static struct core_ep *object_of(DAT_EP_HANDLE ep)
{
	return ((struct core_handle *)ep)->object;
}

static void create(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request)
{
	assert_int_equal(core_ep_create(ia.ia, ia.pz, recv, request, ia.evd, NULL, &handle),
			 DAT_SUCCESS);
}

static int open_evds(void **state)
{
	(void)setup(state);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			core_evd_create(ia.ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evds[i]),
			DAT_SUCCESS);
	create(evds[0], evds[1]);
	return 0;
}

static void watched__cno__either_evd(void **state)
{
	DAT_CNO_HANDLE cno;

	(void)state;
	assert_int_equal(core_cno_create(ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), DAT_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		assert_false(core_ep_is_watched(object_of(handle)));
		assert_int_equal(core_evd_modify_cno(evds[i], cno), DAT_SUCCESS);
		assert_true(core_ep_is_watched(object_of(handle)));
		assert_int_equal(core_evd_modify_cno(evds[i], DAT_HANDLE_NULL), DAT_SUCCESS);
	}
	assert_false(core_ep_is_watched(object_of(handle)));
}

static void *wait_on(void *evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	(void)core_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
	return NULL;
}

static void watched__thread_waits__either_evd(void **state)
{
	pthread_t thread;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_false(core_ep_is_watched(object_of(handle)));
		assert_int_equal(pthread_create(&thread, NULL, wait_on, evds[i]), 0);
		while (!core_ep_is_watched(object_of(handle)))
			sched_yield();
		assert_int_equal(core_evd_set_unwaitable(evds[i]), DAT_SUCCESS);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	assert_false(core_ep_is_watched(object_of(handle)));
}

static void watched__no_evd__not(void **state)
{
	(void)state;
	create(DAT_HANDLE_NULL, DAT_HANDLE_NULL);
	assert_false(core_ep_is_watched(object_of(handle)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(watched__cno__either_evd, open_evds, teardown),
		cmocka_unit_test_setup_teardown(watched__thread_waits__either_evd, open_evds,
						teardown),
		cmocka_unit_test_setup_teardown(watched__no_evd__not, open_evds, teardown),
	};

	return cmocka_run_group_tests_name("core watched", tests, NULL, NULL);
}
