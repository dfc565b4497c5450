// SPDX-License-Identifier: BSD-2-Clause
/* dat_evd_wait on an EVD that another thread changes while the wait polls for the first time. */
#include "mock_use.h"

#define THRESHOLD 2

static DAT_COUNT new_qlen;

/* progress: the EVD is not locked. */
static void resize(void)
{
	mock.on_progress = NULL;
	assert_int_equal(core_evd_resize(ia.evd, new_qlen), DAT_SUCCESS);
}

static DAT_RETURN wait_while_resized(DAT_COUNT qlen)
{
	DAT_EVENT event;
	DAT_COUNT more;

	new_qlen = qlen;
	mock.on_progress = resize;
	return core_evd_wait(ia.evd, 1000, THRESHOLD, &event, &more);
}

/* EVD-WAIT-12 EVD-RESIZE-11: no thread sleeps until more events are queued than fit. */
static void evd_wait__resized_below_the_threshold__refused(void **state)
{
	(void)state;
	assert_int_equal(wait_while_resized(THRESHOLD),
			 DAT_CLASS_ERROR | DAT_TIMEOUT_EXPIRED | DAT_NO_SUBTYPE);
	assert_int_equal(wait_while_resized(THRESHOLD - 1),
			 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(evd_wait__resized_below_the_threshold__refused,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("core evd_wait", tests, NULL, NULL);
}
