// SPDX-License-Identifier: BSD-2-Clause
/*
 * Listing the registered providers into blocks that show which of them were written.
 */
#ifndef TESTS_REGISTRY_LIST_USE_H
#define TESTS_REGISTRY_LIST_USE_H

#include "child.h"
#include "mock.h"

#define ROOM 40

static DAT_PROVIDER_INFO blocks[ROOM];
static DAT_PROVIDER_INFO *slots[ROOM];
static DAT_COUNT count;

static inline DAT_RETURN list(DAT_COUNT max)
{
	int i;

	memset(blocks, 0xee, sizeof(blocks));
	for (i = 0; i < ROOM; i++)
		slots[i] = &blocks[i];
	count = -1;
	return dat_registry_list_providers(max, &count, slots);
}

static inline DAT_RETURN open_simply(const char *name)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	return dat_ia_openv((DAT_NAME_PTR)name, 8, &evd, &ia, DAT_VERSION_MAJOR, 2, DAT_FALSE);
}

#endif
