// SPDX-License-Identifier: BSD-2-Clause
/*
 * A front header: the generation of the API that a registry serves. All sources of this folder are
 * compiled with this one for libdat.so.1 and with front_2.h for libdat2.so.2. api.h includes this
 * one unless the compiler was told to include the other before.
 */
#ifndef REGISTRY_FRONT_H
#define REGISTRY_FRONT_H

#pragma GCC visibility push(default)
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <dat/opendat.h>
#pragma GCC visibility pop

#include "shared/opendat.h"

#define REGISTRY_NAME "libdat"
#define REGISTRY_EXTENSION_MAGIC OPENDAT_EXTENSION_MAGIC

/* The registry of the other generation, which may be in the process, too. */
#define REGISTRY_OTHER_LIBRARY "libdat2.so" /* how its file name begins */
#define REGISTRY_OTHER_MAJOR 2u

/* A provider stores the consumer's handle of an instance in what a query fills, and translates its
 * own handle by dats_get_ia_handle. */
#define REGISTRY_PROVIDER_TRANSLATES false

/* How the built-in adapters are listed. */
#define REGISTRY_SOFT_LISTED "soft-"
#define REGISTRY_VERBS_LISTED "verbs-"

/* A list with room for fewer entries than there are is an error. */
#define REGISTRY_LIST_MUST_FIT true

/* Foreign providers rely on it that their symbols, and those of the registry, can be found by all. */
#define REGISTRY_PUBLISHES_FOREIGN false

/* The name of a type far above the others, or NULL. DAT_NOT_IMPLEMENTED has had three values, two of
 * which have the same type (GEN-11). */
#define REGISTRY_FAR_TYPE(type) ((type) == 0x0fff0000u ? "DAT_NOT_IMPLEMENTED" : NULL)

#endif
