// SPDX-License-Identifier: BSD-2-Clause
/* For programs that link a provider but not libdat: the functions of libdat that it calls. */
#include <dat/dat_registry.h>

DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	(void)provider;
	(void)info;
	return DAT_SUCCESS;
}

DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	(void)provider;
	(void)info;
	return DAT_SUCCESS;
}
