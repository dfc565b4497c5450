// SPDX-License-Identifier: BSD-2-Clause
/* The providers that are linked into the program. None unless libdat is linked statically. */
#ifndef REGISTRY_LINKED_H
#define REGISTRY_LINKED_H

#include "api.h"
#include "shared/opendat.h"

/* The provider that replaces the library of that path, which may be a file name alone, or NULL. */
const struct opendat_linked *registry_linked_find(const char *path);

/* The linked provider that a provider table belongs to, or NULL. */
const struct opendat_linked *registry_linked_of(const DAT_PROVIDER *provider);

#endif
