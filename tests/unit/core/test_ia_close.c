// SPDX-License-Identifier: BSD-2-Clause
/*
 * A graceful dat_ia_close during a call that creates an object. The allocation of its handle is
 * replaced at link time (--wrap, see meson.build) and has another thread close the instance.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "mock.h"

static struct mock_ia ia;
static DAT_IA_HANDLE borrower;	 /* an instance that uses the asynchronous EVD of the first one */
static bool must_close;		 /* the next allocation of a handle closes the first instance */
static bool was_closing;	 /* other calls were refused meanwhile */
static void (*on_closing)(void); /* called when they are, if not NULL */
static DAT_RETURN close_ret;
static _Atomic bool is_closed;
static pthread_t closer;

static void *close_ia(void *arg)
{
	close_ret = core_ia_close(ia.ia, DAT_CLOSE_GRACEFUL_FLAG);
	atomic_store(&is_closed, true);
	return arg;
}

static bool is_closing(void)
{
	struct core_handle *cell = ia.ia;
	bool result;

	core_lock_acquire(&cell->lock);
	result = ((struct core_ia *)cell->object)->is_closing;
	core_lock_release(&cell->lock);
	return result;
}

struct core_handle *__real_core_handle_alloc(const DAT_PROVIDER *provider, struct core_ia *owner,
					     void *object);
struct core_handle *__wrap_core_handle_alloc(const DAT_PROVIDER *provider, struct core_ia *owner,
					     void *object);
struct core_handle *__wrap_core_handle_alloc(const DAT_PROVIDER *provider, struct core_ia *owner,
					     void *object)
{
	if (must_close) {
		must_close = false;
		assert_int_equal(pthread_create(&closer, NULL, close_ia, NULL), 0);
		while (!atomic_load(&is_closed) && !was_closing) {
			was_closing = is_closing();
			sched_yield();
		}
		if (was_closing && on_closing)
			on_closing();
	}
	return __real_core_handle_alloc(provider, owner, object);
}

static int setup(void **state)
{
	(void)state;
	was_closing = false;
	on_closing = NULL;
	atomic_store(&is_closed, false);
	mock_open(&ia);
	assert_int_equal(core_evd_free(ia.evd), DAT_SUCCESS);
	assert_int_equal(core_pz_free(ia.pz), DAT_SUCCESS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	must_close = false;
	assert_int_equal(core_ia_close(borrower, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	mock_close(&ia);
	return 0;
}

static void borrow(void)
{
	assert_int_equal(core_ia_open_safe((DAT_NAME_PTR) "mock", 8, &ia.async, &borrower),
			 DAT_SUCCESS);
}

/* Returns the result of the call that creates. */
static DAT_RETURN close_during_a_create(void)
{
	DAT_PZ_HANDLE pz;
	DAT_RETURN ret;

	must_close = true;
	ret = core_pz_create(ia.ia, &pz);
	assert_int_equal(pthread_join(closer, NULL), 0);
	assert_int_equal(close_ret,
			 DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_IA_IN_USE);
	return ret;
}

/* IA-CLOSE-16: the close is refused at once. Other calls never find a closing instance. */
static void ia_close__async_evd_shared_during_a_create__refused_at_once(void **state)
{
	(void)state;
	borrow();
	assert_int_equal(close_during_a_create(), DAT_SUCCESS);
	assert_false(was_closing);
}

/* IA-CLOSE-05 IA-CLOSE-16: the EVD is shared while the close waits for the call. The instance
 * stays open and works. */
static void ia_close__async_evd_shared_during_the_close__instance_stays_open(void **state)
{
	DAT_PZ_HANDLE pz;

	(void)state;
	on_closing = borrow;
	close_during_a_create();
	assert_true(was_closing);
	assert_int_equal(core_pz_create(ia.ia, &pz), DAT_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			ia_close__async_evd_shared_during_a_create__refused_at_once, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			ia_close__async_evd_shared_during_the_close__instance_stays_open, setup,
			teardown),
	};

	return cmocka_run_group_tests_name("core ia_close", tests, NULL, NULL);
}
