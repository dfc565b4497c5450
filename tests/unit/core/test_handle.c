// SPDX-License-Identifier: BSD-2-Clause
/* Cells and references: a reference finds its object only, and a doomed handle is refused. */
#include "core/base/handle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define REUSE_MAX 100000u /* a freed cell is reused after some 1,000 others */

static const DAT_PROVIDER provider;

/* GEN-16: a reference to a freed object does not find the next object in the same cell */
static void lock_ref__cell_reused__finds_nothing(void **state)
{
	int first = 0, second = 0;
	struct core_handle *cell = core_handle_alloc(&provider, NULL, &first);
	struct core_ref old;
	unsigned int tries;

	(void)state;
	if (CORE_CELL_QUARANTINE >= REUSE_MAX)
		skip(); /* under the thread sanitizer */
	assert_non_null(cell);
	core_handle_publish(cell, DAT_HANDLE_TYPE_PZ);
	old = core_handle_ref(cell);
	assert_ptr_equal(core_handle_lock_ref(old, DAT_HANDLE_TYPE_PZ), &first);
	core_handle_kill_locked(cell);
	core_handle_unlock(cell);
	core_handle_release(cell);
	for (tries = 0; tries < REUSE_MAX; tries++) {
		struct core_handle *next = core_handle_alloc(&provider, NULL, &second);

		assert_non_null(next);
		if (next == cell)
			break;
		core_handle_release(next);
	}
	assert_in_range(tries, 1000, REUSE_MAX - 1);
	core_handle_publish(cell, DAT_HANDLE_TYPE_PZ);
	assert_null(core_handle_lock_ref(old, DAT_HANDLE_TYPE_PZ));
	assert_ptr_equal(core_handle_lock_ref(core_handle_ref(cell), DAT_HANDLE_TYPE_PZ), &second);
	core_handle_unlock(cell);
	core_handle_release(cell);
}

/* IA-CLOSE-27: while the instance is closed, every call refuses the handle */
static void lock__doomed__refused(void **state)
{
	int object = 0;
	struct core_handle *cell = core_handle_alloc(&provider, NULL, &object);
	DAT_HANDLE_TYPE type;

	(void)state;
	assert_non_null(cell);
	core_handle_publish(cell, DAT_HANDLE_TYPE_CNO);
	assert_ptr_equal(core_handle_lock_any(cell, &type), cell);
	assert_int_equal(type, DAT_HANDLE_TYPE_CNO);
	core_handle_unlock(cell);
	core_handle_doom(cell);
	assert_null(core_handle_lock_any(cell, &type));
	assert_null(core_handle_lock(cell, DAT_HANDLE_TYPE_CNO));
	assert_null(core_handle_lock_ref(core_handle_ref(cell), DAT_HANDLE_TYPE_CNO));
	assert_ptr_equal(core_handle_lock_doomed(cell), &object);
	core_handle_unlock(cell);
	core_handle_release(cell);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock_ref__cell_reused__finds_nothing),
		cmocka_unit_test(lock__doomed__refused),
	};

	return cmocka_run_group_tests_name("core handle", tests, NULL, NULL);
}
