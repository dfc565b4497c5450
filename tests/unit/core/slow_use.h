// SPDX-License-Identifier: BSD-2-Clause
/*
 * An instance of the mock transport, and the slow_reasons of its objects.
 */
#ifndef TESTS_SLOW_USE_H
#define TESTS_SLOW_USE_H

#include "mock_use.h"

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
