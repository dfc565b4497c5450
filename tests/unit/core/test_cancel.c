// SPDX-License-Identifier: BSD-2-Clause
/* Each call of CORE_CONTROL_CALLS disables cancellation, and restores the state of the caller. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/base/calls.h"

/* Any call with the invalid handle 0. Surplus arguments are ignored by the calling convention. */
typedef DAT_RETURN (*call_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
			      uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

struct call {
	const char *name;
	void (*function)(void);
};

#define CALL(name) {#name, (void (*)(void))core_##name},
static const struct call control_calls[] = {CORE_CONTROL_CALLS(CALL)};

static unsigned int disabled; /* calls of pthread_setcancelstate that disable cancellation */

int __real_pthread_setcancelstate(int state, int *old);
int __wrap_pthread_setcancelstate(int state, int *old);

int __wrap_pthread_setcancelstate(int state, int *old)
{
	if (state == PTHREAD_CANCEL_DISABLE)
		disabled++;
	return __real_pthread_setcancelstate(state, old);
}

static void must_be_enabled(const char *name)
{
	int state;

	__real_pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	if (state != PTHREAD_CANCEL_ENABLE)
		fail_msg("%s leaves cancellation disabled", name);
}

static void call_with_null(const struct call *call)
{
	disabled = 0;
	assert_int_equal(
		DAT_GET_TYPE(((call_fn)call->function)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
		DAT_INVALID_HANDLE);
	must_be_enabled(call->name);
}

/* GEN-26 */
static void control_calls__invalid_handle__disable_cancellation(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(control_calls) / sizeof(control_calls[0]); i++) {
		call_with_null(&control_calls[i]);
		if (!disabled)
			fail_msg("%s does not disable cancellation", control_calls[i].name);
	}
}

/* GEN-26: the adapter is not registered */
static void ia_open__unknown_name__disables_cancellation(void **state)
{
	__typeof__(core_ia_open_safe) *const opens[] = {core_ia_open_safe, core_ia_open_unsafe};
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		disabled = 0;
		assert_int_not_equal(opens[i]((DAT_NAME_PTR) "none", 8, &evd, &ia), DAT_SUCCESS);
		must_be_enabled("ia_open");
		assert_true(disabled > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_calls__invalid_handle__disable_cancellation),
		cmocka_unit_test(ia_open__unknown_name__disables_cancellation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
