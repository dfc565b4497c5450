// SPDX-License-Identifier: BSD-2-Clause
/* A program of DAT 2.0 that is to be checked learns that it is not. */
#include <stdlib.h>

#include "dt.h"
#include "log_util.h"

static unsigned count(const char *text, const char *piece)
{
	unsigned found = 0;

	for (; (text = strstr(text, piece)) != NULL; text += strlen(piece))
		found++;
	return found;
}

/* CHECK-GEN-08: one warning, at the first open; the second is silent. */
static void dat_check__two_opens__said_once(void **state)
{
	struct dt_ia first, second;
	const char *text;

	(void)state;
	log_begin();
	dt_ia_open(&first);
	dt_ia_open(&second);
	dt_ia_close(&second);
	dt_ia_close(&first);
	text = log_end();
	assert_int_equal(count(text, "warning: DAT_CHECK or DAT_TRACE is set"), 1);
	assert_int_equal(count(text, "error"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dat_check__two_opens__said_once),
	};

	log_capture_start();
	unsetenv("DAT_DBG_TYPE"); /* no kind is selected */
	setenv("DAT_CHECK", "1", 1);
	return cmocka_run_group_tests_name("checked", tests, NULL, NULL);
}
