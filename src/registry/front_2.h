// SPDX-License-Identifier: BSD-2-Clause
/*
 * A front header: DAT 2.0, for libdat2.so.2. front_1.h describes the names. The compiler includes
 * this file before each source file; from then on <dat/udat.h> declares nothing, as both
 * generations have the same include guards.
 */
#ifndef REGISTRY_FRONT_H
#define REGISTRY_FRONT_H

#pragma GCC visibility push(default)
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/opendat.h>
#pragma GCC visibility pop

#include "shared/opendat.h"

#define REGISTRY_NAME "libdat2"
#define REGISTRY_EXTENSION_MAGIC OPENDAT_EXTENSION_2_MAGIC

#define REGISTRY_OTHER_LIBRARY "libdat.so"
#define REGISTRY_OTHER_MAJOR 1u

#define REGISTRY_PROVIDER_TRANSLATES true /* D2-REG-16 */

#define REGISTRY_SOFT_LISTED "ofa-v2-"
#define REGISTRY_VERBS_LISTED "ofa-v2-"

#define REGISTRY_LIST_MUST_FIT false /* D2-OPEN-13 */

#define REGISTRY_PUBLISHES_FOREIGN true /* D2-REG-18 D2-REG-22 */

#define REGISTRY_FAR_TYPE(type) ((type) >= DAT_EXTENSION_BASE ? "DAT_EXTENSION_BASE" : NULL)

#endif
