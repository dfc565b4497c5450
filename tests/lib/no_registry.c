// SPDX-License-Identifier: BSD-2-Clause
/* For programs that link a provider but not libdat: a registry that accepts everything. */
#include "core/ia/registry.h"

static DAT_RETURN agree(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	(void)provider;
	(void)info;
	return DAT_SUCCESS;
}

__attribute__((constructor)) static void link_registry(void)
{
	core_registry_linked = (struct core_registry){.add = agree, .remove = agree};
}
