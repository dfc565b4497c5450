// SPDX-License-Identifier: BSD-2-Clause
/* The adapters that are registered: each stands in front of another one. */
#ifndef CHECK_ADAPTER_H
#define CHECK_ADAPTER_H

#include <dat/dat_registry.h>
#include <dat/udat.h>

#include <stdbool.h>

struct check_adapter {
	DAT_PROVIDER_INFO info;
	char below[DAT_NAME_MAX_LENGTH]; /* the name of the adapter that it opens */
	DAT_PROVIDER provider;
	struct check_adapter *next;
};

const struct check_adapter *check_adapter_find(const char *name, bool is_thread_safe);

/* libdat tells which handle the program has for an instance (shared/opendat.h). */
void check_ia_set_consumer_handle(DAT_IA_HANDLE ia_handle, DAT_IA_HANDLE consumer);

#endif
