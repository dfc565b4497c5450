// SPDX-License-Identifier: BSD-2-Clause
/* Opening and closing an adapter instance, and the names that adapters are registered under. */
#ifndef CORE_IA_H
#define CORE_IA_H

#include "core/base/instance.h"

/* The registered adapter of that name and thread safety, and a copy of its instance data (the
 * caller's to free); NULL if there is none, or no memory. */
struct core_adapter *core_adapter_find(const char *name, DAT_BOOLEAN is_thread_safe,
				       char **instance_data_out);

/* Frees an instance whose handle is dead and whose objects are gone. */
void core_ia_delete(struct core_ia *ia);

#endif
