// SPDX-License-Identifier: BSD-2-Clause
/*
 * An instance of the mock transport, and the slow_reasons of its objects.
 */
#ifndef TESTS_SLOW_USE_H
#define TESTS_SLOW_USE_H

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

static inline unsigned int reasons(DAT_HANDLE handle)
{
	struct core_handle *cell = handle;
	unsigned int found;

	core_lock_acquire(&cell->lock);
	found = cell->slow_reasons;
	core_lock_release(&cell->lock);
	return found;
}

#endif
