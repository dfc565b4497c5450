// SPDX-License-Identifier: BSD-2-Clause
#include "other.h"

#include <dlfcn.h>
#include <link.h>

static _Thread_local bool is_asking;

/*
 * The thread sanitizer does not see the lock of the dynamic linker, which protects the name. Nothing
 * that it watches may read the end of the name.
 */
__attribute__((no_sanitize("thread"))) static bool is_other_library(const char *path)
{
	const char *file = path;

	for (const char *at = path; *at; at++)
		if (*at == '/')
			file = at + 1;
	for (size_t i = 0; i < sizeof(REGISTRY_OTHER_LIBRARY) - 1; i++)
		if (file[i] != REGISTRY_OTHER_LIBRARY[i])
			return false;
	return true;
}

/* Finds the loaded library without a search of the file system, which dlopen would begin. */
static int path_find(struct dl_phdr_info *info, size_t size, void *path_out)
{
	(void)size;
	if (!is_other_library(info->dlpi_name))
		return 0;
	*(const char **)path_out = info->dlpi_name;
	return 1;
}

void *registry_other_call(const char *name)
{
	const char *path = NULL;
	void *library, *call;

	if (!dl_iterate_phdr(path_find, &path))
		return NULL;
	library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return NULL;
	call = dlsym(library, name);
	dlclose(library); /* ours is never unloaded */
	return call;
}

bool registry_other_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p)
{
	union {
		void *address;
		DAT_RETURN (*translate)(unsigned long handle, DAT_IA_HANDLE *ia_handle_p);
	} other;
	bool is_known = false;

	if (is_asking)
		return false;
	other.address = registry_other_call("dats_get_ia_handle");
	if (!other.address)
		return false;
	is_asking = true;
	is_known = other.translate(handle, ia_handle_p) == DAT_SUCCESS;
	is_asking = false;
	return is_known;
}

void registry_other_publish(const char *path)
{
	void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);

	if (library)
		dlclose(library);
}

void registry_other_publish_self(void)
{
	static const char anchor;
	Dl_info self;

	if (dladdr(&anchor, &self) && self.dli_fname)
		registry_other_publish(self.dli_fname);
}
