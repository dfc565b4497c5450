// SPDX-License-Identifier: BSD-2-Clause
/*
 * Only in a static provider library: gives the provider to libdat before main runs, because there
 * is no shared library that libdat could load. Meson defines CORE_LIBRARY, the shared library that
 * it replaces, and CORE_LINK_SYMBOL.
 */
#include <dat/udat.h>
#include <dat/dat_registry.h>

#include "core/base/handle.h"
#include "core/ia/ia.h"
#include "core/ia/registry.h"
#include "shared/opendat.h"

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);

/* The linker takes this file from the library when it is called with -u and this name. */
__attribute__((visibility("default"))) extern const char CORE_LINK_SYMBOL[];
const char CORE_LINK_SYMBOL[] = CORE_LIBRARY;

__attribute__((constructor)) static void link_provider(void)
{
	static struct opendat_linked linked = {
		.library = CORE_LIBRARY,
		.init = dat_provider_init,
		.fini = dat_provider_fini,
		.arena = &opendat_handle_arena,
		.extension = &core_provider_extension,
	};

	core_registry_linked = (struct core_registry){
		.add = dat_registry_add_provider,
		.remove = dat_registry_remove_provider,
	};
	opendat_link_provider(&linked);
}
