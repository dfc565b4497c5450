/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface between a provider library and the registry. The library exports dat_provider_init
 * and dat_provider_fini, and registers its adapters with the calls below.
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

/* The names of the two functions that a provider library exports. */
#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init  /* as an identifier */
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini  /* as an identifier */
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init" /* as a string */
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini" /* as a string */

/*
 * Register the adapter of a registry entry. A provider library exports this function; the
 * registry calls it before the first open of an adapter. If it does not register the adapter with
 * dat_registry_add_provider, the open fails.
 *
 * provider_info [in]    the registry entry; valid during the call
 * instance_data [in]    the seventh field of the entry, never NULL; valid during the call
 *
 * Calls are serialized. May block. Specification: registry.md, dat_provider_init.
 */
typedef void (*DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO *provider_info,
				       const char *instance_data);

/*
 * Remove the registration of an adapter. A provider library exports this function; the registry
 * calls it after the last instance of the adapter was closed, before it unloads the library. The
 * function calls dat_registry_remove_provider.
 *
 * provider_info [in]    the argument of dat_provider_init
 *
 * Calls are serialized. May block. Specification: registry.md, dat_provider_fini.
 */
typedef void (*DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO *provider_info);

/*
 * Register an adapter with the registry of this process. It may be called at any time, also in
 * dat_provider_init and in constructors of libraries.
 *
 * provider [in]         the table, which must exist until the registration is removed
 * provider_info [in]    name, version and thread safety; copied
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_PARAMETER, provider: NULL
 *   DAT_INVALID_PARAMETER, provider_info: NULL, or a name that is empty or not terminated
 *   DAT_PROVIDER_ALREADY_REGISTERED: a registration with the same provider_info exists
 *   DAT_INSUFFICIENT_RESOURCES: memory is exhausted
 * Thread safe. Does not block. Specification: registry.md, dat_registry_add_provider.
 */
extern DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *provider,
					    const DAT_PROVIDER_INFO *provider_info);

/*
 * Remove a registration.
 *
 * provider [in]         the registered table
 * provider_info [in]    the registered name, version and thread safety
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_PARAMETER, provider: NULL or another table
 *   DAT_INVALID_PARAMETER, provider_info: NULL, or no such registration
 *   DAT_PROVIDER_IN_USE: an instance is open
 * Thread safe. Does not block. Specification: registry.md, dat_registry_remove_provider.
 */
extern DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *provider,
					       const DAT_PROVIDER_INFO *provider_info);

#ifdef __cplusplus
}
#endif

#endif /* _DAT_REGISTRY_H_ */
