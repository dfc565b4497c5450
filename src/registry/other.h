// SPDX-License-Identifier: BSD-2-Clause
/*
 * The registry of the other generation of the API, if the process has it. The two libraries do not
 * need each other. A provider of another project may import from the one what it wants from the
 * other, because its imports have no version; and the handles of instances are unique over both.
 */
#ifndef REGISTRY_OTHER_H
#define REGISTRY_OTHER_H

#include "api.h"

#include <stdbool.h>

typedef DAT_RETURN (*registry_other_register)(const DAT_PROVIDER *provider,
					      const DAT_PROVIDER_INFO *provider_info);

/* The call of the other registry of that name, or NULL. Takes the lock of the dynamic loader, so
 * the caller has none of the registry's. */
void *registry_other_call(const char *name);

/*
 * Translates by the other registry, as dats_get_ia_handle. False: there is none, or it does not know
 * the handle. It asks back if it knows nothing; that ends here. No lock of the registry is held.
 */
bool registry_other_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p);

/* Makes the symbols of a loaded library visible to the libraries that are loaded from now on. */
void registry_other_publish(const char *path);

/*
 * Makes the calls of this library visible to the libraries that are loaded from now on, also if it
 * was loaded with RTLD_LOCAL: a provider may import them without naming the library (D2-REG-18).
 */
void registry_other_publish_self(void);

#endif
