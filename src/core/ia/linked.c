// SPDX-License-Identifier: BSD-2-Clause
/*
 * Only in a static provider library: gives the provider to libdat or libdat2 before main runs,
 * because there is no shared library that it could load. Meson defines CORE_LIBRARY, the shared
 * library that it replaces, and CORE_LINK_SYMBOL.
 */
#include <dat/udat.h>
#include <dat/dat_registry.h>

#include "core/base/front.h"
#include "core/base/handle.h"
#include "core/ia/registry.h"
#include "shared/opendat.h"

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);
DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p);

/* The linker takes this file from the library when it is called with -u and this name. */
__attribute__((visibility("default"))) extern const char CORE_LINK_SYMBOL[];
const char CORE_LINK_SYMBOL[] = CORE_LIBRARY;

#define GENERATIONS 2

__attribute__((constructor)) static void link_provider(void)
{
	static struct opendat_linked linked[GENERATIONS];

	core_registry_linked = (struct core_registry){
		.add = dat_registry_add_provider,
		.remove = dat_registry_remove_provider,
		.ia_handle = dats_get_ia_handle,
	};
	for (int i = 0; i < GENERATIONS && core_fronts[i]; i++) {
		linked[i] = (struct opendat_linked){
			.library = CORE_LIBRARY,
			.init = dat_provider_init,
			.fini = dat_provider_fini,
			.arena = &opendat_handle_arena,
			.extension = core_fronts[i]->table.provider.extension,
		};
		opendat_link_provider(&linked[i]);
	}
}
