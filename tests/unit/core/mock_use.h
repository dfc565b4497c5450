// SPDX-License-Identifier: BSD-2-Clause
/* An instance of the mock transport for each test, with nothing of a test's own. */
#ifndef TESTS_MOCK_USE_H
#define TESTS_MOCK_USE_H

#include "mock.h"

static struct mock_ia ia;

static inline int setup(void **state)
{
	(void)state;
	mock_open(&ia);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	mock.on_poll = NULL;
	mock_close(&ia);
	return 0;
}

#endif
