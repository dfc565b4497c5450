// SPDX-License-Identifier: BSD-2-Clause
#include "core/ia/registry.h"

#include <dlfcn.h>
#include <stddef.h>

struct core_registry core_registry_linked;

/* musl has no look-up by version; a name with a version is found there by the name alone. */
static void *find(void *library, const char *name, const char *version)
{
#ifdef __GLIBC__
	if (version)
		return dlvsym(library, name, version);
#else
	(void)version;
#endif
	return dlsym(library, name);
}

static void take(struct core_registry *registry, void *library, const char *version)
{
	*(void **)&registry->add = find(library, "dat_registry_add_provider", version);
	*(void **)&registry->remove = find(library, "dat_registry_remove_provider", version);
	*(void **)&registry->ia_handle = find(library, "dats_get_ia_handle", version);
}

void core_registry_find(const void *caller, DAT_UINT32 major, struct core_registry *registry_out)
{
	void *library = NULL;
	Dl_info info;

	*registry_out = core_registry_linked;
	if (registry_out->add)
		return;
	/* without RTLD_LOCAL or RTLD_GLOBAL: what it was opened with does not change */
	if (dladdr(caller, &info) && info.dli_fname)
		library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (library) {
		take(registry_out, library, NULL);
		dlclose(library);
	}
	if (!registry_out->add)
		take(registry_out, RTLD_DEFAULT,
		     major == DAT_VERSION_MAJOR ? "DAT_1.2" : "DAT_2.0");
}
