// SPDX-License-Identifier: BSD-2-Clause
/* Operations of extensions. DAT 1.2 has none (calls_1.c). */
#ifndef REGISTRY_EXTEND_H
#define REGISTRY_EXTEND_H

#include "dynamic.h"

/* Asks a foreign provider whether the adapter has extensions, by an instance of it (D2-REG-24). */
void registry_extension_learn(struct registry_registration *registration, DAT_IA_HANDLE ia_handle);

#endif
