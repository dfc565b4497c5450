// SPDX-License-Identifier: BSD-2-Clause
/*
 * Opening and closing adapters of the mock providers.
 */
#ifndef TESTS_REGISTRY_MOCK_USE_H
#define TESTS_REGISTRY_MOCK_USE_H

#include "child.h"
#include "mock.h"

#include <dlfcn.h>
#include <stdbool.h>

static inline DAT_RETURN open_as(const char *name, DAT_UINT32 major, DAT_UINT32 minor,
				 DAT_BOOLEAN is_thread_safe, DAT_IA_HANDLE *ia_out)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	return dat_ia_openv((DAT_NAME_PTR)name, 8, &evd, ia_out, major, minor, is_thread_safe);
}

static inline DAT_RETURN open_simply(const char *name, DAT_IA_HANDLE *ia_out)
{
	return open_as(name, DAT_VERSION_MAJOR, 2, DAT_FALSE, ia_out);
}

static inline void close_must(DAT_IA_HANDLE ia)
{
	must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS);
}

static inline bool is_loaded(const char *variable)
{
	void *handle = dlopen(library_get(variable), RTLD_LAZY | RTLD_NOLOAD);

	if (handle)
		dlclose(handle);
	return handle != NULL;
}

#define LINE(name, version, safety) name " " version " " safety " default %s mock.1 \"data\" \"\"\n"

static inline void foreign_conf(const char *lines)
{
	conf_set_library(lines, library_get("MOCK_FOREIGN"));
}

static inline void single_conf(void)
{
	foreign_conf(LINE("mock", U "2", "nonthreadsafe"));
}

#endif
