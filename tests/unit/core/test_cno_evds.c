// SPDX-License-Identifier: BSD-2-Clause
/*
 * The last EVD of a CNO is freed while dat_evd_create is about to attach another one. The
 * allocation of a handle is replaced at link time (--wrap, see meson.build) and frees the EVD.
 */
#include <pthread.h>
#include <sched.h>

#include "core/event/cno.h"
#include "mock.h"

#define WAIT_US 10000000u /* ends a wait that should have been released */

static struct mock_ia ia;
static DAT_CNO_HANDLE cno;
static DAT_EVD_HANDLE last; /* freed by the next allocation of a handle */
static bool lacks_memory;   /* that allocation fails */
static DAT_EVD_HANDLE released_by;
static DAT_RETURN waiter_ret;

struct core_handle *__real_core_handle_alloc(const DAT_PROVIDER *provider, struct core_ia *owner,
					     void *object);
struct core_handle *__wrap_core_handle_alloc(const DAT_PROVIDER *provider, struct core_ia *owner,
					     void *object);
struct core_handle *__wrap_core_handle_alloc(const DAT_PROVIDER *provider, struct core_ia *owner,
					     void *object)
{
	if (!last)
		return __real_core_handle_alloc(provider, owner, object);
	assert_int_equal(core_evd_free(last), DAT_SUCCESS);
	last = DAT_HANDLE_NULL;
	return lacks_memory ? NULL : __real_core_handle_alloc(provider, owner, object);
}

static DAT_RETURN try_evd(DAT_EVD_HANDLE *evd)
{
	return core_evd_create(ia.ia, 8, cno, DAT_EVD_DTO_FLAG, evd);
}

static int setup(void **state)
{
	DAT_OS_WAIT_PROXY_AGENT no_agent = {NULL, NULL};
	DAT_EVD_HANDLE evd;

	(void)state;
	mock_open(&ia);
	assert_int_equal(core_cno_create(ia.ia, no_agent, &cno), DAT_SUCCESS);
	assert_int_equal(try_evd(&evd), DAT_SUCCESS);
	last = evd;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	last = DAT_HANDLE_NULL;
	mock_close(&ia);
	return 0;
}

static void *wait_on_cno(void *arg)
{
	released_by = ia.evd;
	waiter_ret = core_cno_wait(cno, WAIT_US, &released_by);
	return arg;
}

static bool has_waiter(void)
{
	struct core_handle *cell = cno;
	bool is_waiting;

	core_lock_acquire(&cell->lock);
	is_waiting = ((struct core_cno *)cell->object)->waiters;
	core_lock_release(&cell->lock);
	return is_waiting;
}

/* Has a thread wait on the CNO while an EVD is created on it. */
static DAT_RETURN create_while_waiting(DAT_EVD_HANDLE *evd)
{
	pthread_t waiter;
	DAT_RETURN ret;

	assert_int_equal(pthread_create(&waiter, NULL, wait_on_cno, NULL), 0);
	while (!has_waiter())
		sched_yield();
	ret = try_evd(evd);
	pthread_join(waiter, NULL);
	return ret;
}

static void expect_released(void)
{
	assert_int_equal(waiter_ret, DAT_SUCCESS);
	assert_ptr_equal(released_by, DAT_HANDLE_NULL);
}

/* CNO-WAIT-14 EVD-FREE-10: an EVD that never came to use the CNO does not keep the waiter. */
static void evd_free__last_while_a_create_fails__waiter_released(void **state)
{
	DAT_EVD_HANDLE evd;

	(void)state;
	lacks_memory = true;
	assert_int_equal(mock_code(create_while_waiting(&evd)), DAT_INSUFFICIENT_RESOURCES);
	expect_released();
	assert_int_equal(core_cno_free(cno), DAT_SUCCESS);
}

/* CNO-WAIT-14 CNO-WAIT-16 EVD-FREE-10: nor one that uses it later. */
static void evd_free__last_while_another_is_created__waiter_released(void **state)
{
	DAT_EVD_HANDLE evd;

	(void)state;
	lacks_memory = false;
	assert_int_equal(create_while_waiting(&evd), DAT_SUCCESS);
	expect_released();
	assert_int_equal(core_cno_free(cno),
			 DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_CNO_IN_USE);
	assert_int_equal(core_evd_free(evd), DAT_SUCCESS);
	assert_int_equal(core_cno_free(cno), DAT_SUCCESS);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(evd_free__last_while_a_create_fails__waiter_released),
		T(evd_free__last_while_another_is_created__waiter_released),
	};

	return cmocka_run_group_tests_name("core cno_evds", tests, NULL, NULL);
}
