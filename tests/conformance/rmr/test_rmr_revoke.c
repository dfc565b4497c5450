// SPDX-License-Identifier: BSD-2-Clause
/*
 * The end of a window (dat_rmr_free, a bind elsewhere, an unbind) while another process writes
 * through it. test_rmr_held.c tests processes that are stopped or held.
 */
#include "window_owner.h"

#include <stdlib.h>

/* RMR-FREE-06 RMR-FREE-08 RMR-BIND-10 RMR-BIND-29 RMR-FREE-03 RMR-FREE-14 DTO-99 */
static void window_ended__process_writing__no_byte_changes_afterwards(void **state)
{
	(void)state;
	for (int round = 0; round < 3 * WAYS; round++) {
		struct stage *stage = stage_open();

		start_writing(stage);
		end_window(stage, round % WAYS);
		snapshot(stage);
		assert_int_equal(await_status(stage), DAT_DTO_ERR_REMOTE_ACCESS);
		writer_broken(stage);
		assert_int_equal(changed_since(stage), 0);
		check_after(stage);
		stage_close(stage);
	}
}

int main(void)
{
	/* before the first open: with the default of 5 s the tests would take long */
	setenv("DAT_PEER_TIMEOUT_MS", "700", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_ended__process_writing__no_byte_changes_afterwards),
	};

	return cmocka_run_group_tests_name("rmr revoke", tests, NULL, NULL);
}
