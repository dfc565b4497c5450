// SPDX-License-Identifier: BSD-2-Clause
/*
 * Between the files of the mock provider library: its table, and the slots that do more than record
 * the call.
 */
#ifndef TESTS_REGISTRY_MOCK_SLOTS_H
#define TESTS_REGISTRY_MOCK_SLOTS_H

#include <dat/udat.h>
#include <dat/dat_registry.h>

/* Hidden: several mocks are loaded at a time, each with its own table. */
#pragma GCC visibility push(hidden)
extern DAT_PROVIDER mock_table;
DAT_RETURN mock_ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			DAT_IA_HANDLE *ia);
DAT_RETURN mock_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags);
#pragma GCC visibility pop

#endif
