/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a provider library and the registry say to each other: the library exports
 * dat_provider_init and dat_provider_fini, and registers its adapters with the calls below.
 */

#ifndef _UDAT_H_
#include <dat/udat.h>
#endif

#ifndef _DAT_REGISTRY_H_
#define _DAT_REGISTRY_H_

#include <dat/udat_redirection.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- calls: providers ---- */

#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"

/*
 * Register the adapter of a registry entry. A provider library exports this function; the
 * registry calls it before the first open of an adapter, one call at a time. If it does not
 * register the adapter by dat_registry_add_provider, the open fails.
 *
 * provider_info [in]    the registry entry; valid during the call
 * instance_data [in]    the seventh field of the entry, never NULL; valid during the call
 *
 * Calls are serialized. May block. Specification: registry.md, dat_provider_init.
 */
typedef void (*DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO *provider_info,
				       const char *instance_data);

/*
 * Take the registration of an adapter back. A provider library exports this function; the
 * registry calls it after the last instance of an adapter is closed, before it lets the library
 * go. It calls dat_registry_remove_provider.
 *
 * provider_info [in]    as dat_provider_init got it
 *
 * Calls are serialized. May block. Specification: registry.md, dat_provider_fini.
 */
typedef void (*DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO *provider_info);

/*
 * Register an adapter with the registry of this process. Works at any time, from
 * dat_provider_init and library constructors too.
 *
 * provider [in]         the table, which stays in place until the registration is removed
 * provider_info [in]    name, version and thread safety; copied
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_PARAMETER / DAT_INVALID_ARG1, 2:
 *     NULL; NULL, or a name that is empty or has no end
 *   DAT_PROVIDER_ALREADY_REGISTERED: there is one that agrees in all of provider_info
 *   DAT_INSUFFICIENT_RESOURCES: memory is used up
 * Thread safe. Does not block. Specification: registry.md, dat_registry_add_provider.
 */
extern DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *provider,
					    const DAT_PROVIDER_INFO *provider_info);

/*
 * Take a registration back.
 *
 * provider [in]         the table that was registered
 * provider_info [in]    as it was registered
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_PARAMETER / DAT_INVALID_ARG1, 2:
 *     NULL or another table; NULL, or no such registration
 *   DAT_PROVIDER_IN_USE: an instance is open
 * Thread safe. Does not block. Specification: registry.md, dat_registry_remove_provider.
 */
extern DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *provider,
					       const DAT_PROVIDER_INFO *provider_info);

#ifdef __cplusplus
}
#endif

#endif /* _DAT_REGISTRY_H_ */
