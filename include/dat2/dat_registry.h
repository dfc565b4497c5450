/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface between a provider library and the registry. The library exports dat_provider_init
 * and dat_provider_fini, and registers its adapters with the calls below.
 */
#ifndef _UDAT_H_
#include <dat2/udat.h>
#endif

#ifndef _DAT_REGISTRY_H_
#define _DAT_REGISTRY_H_

#include <dat2/udat_redirection.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The names of the two functions that a provider library exports. */
#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init

#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"

typedef void (*DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO *provider_info,
				       const char *instance_data);

typedef void (*DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO *provider_info);

/* Whether two adapters are paths to one network interface, see dat_registry_providers_related. */
typedef enum dat_ha_relationship {
	DAT_HA_FALSE = 0,
	DAT_HA_TRUE = 1,
	DAT_HA_UNKNOWN = 2,
	DAT_HA_CONFLICTING = 3,
	DAT_HA_EXTENSION_BASE = 4,
} DAT_HA_RELATIONSHIP;

/* ---- calls ---- */

extern DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *provider,
					    const DAT_PROVIDER_INFO *provider_info);

extern DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *provider,
					       const DAT_PROVIDER_INFO *provider_info);

extern DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR name1, const DAT_NAME_PTR name2,
						 DAT_HA_RELATIONSHIP *relationship);

#ifdef __cplusplus
}
#endif

#endif /* _DAT_REGISTRY_H_ */
