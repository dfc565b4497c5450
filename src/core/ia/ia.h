// SPDX-License-Identifier: BSD-2-Clause
/* Opening and closing an instance of an adapter, and finding an adapter by its name. */
#ifndef CORE_IA_H
#define CORE_IA_H

#include "core/base/instance.h"

/* Finds the registered adapter of that generation, name and thread safety. Also returns a copy of
 * its instance data, which the caller frees. NULL: there is none, or no memory. */
struct core_adapter *core_adapter_find(const struct core_front *front, const char *name,
				       DAT_BOOLEAN is_thread_safe, char **instance_data_out);

/* dat_ia_open for a generation. */
DAT_RETURN core_ia_open(const struct core_front *front, const DAT_NAME_PTR name,
			DAT_BOOLEAN is_thread_safe, DAT_COUNT async_evd_qlen,
			DAT_EVD_HANDLE *async_evd_handle, DAT_IA_HANDLE *ia_handle);

/*
 * Opens an instance that only has its attributes (is_query), and closes it. Its handle is that of no
 * live object. core_ia_close_query returns false if it is not the handle of such an instance.
 */
DAT_RETURN core_ia_open_query(const struct core_front *front, const char *name,
			      struct core_ia **ia_out);
bool core_ia_close_query(DAT_HANDLE handle);

/* Frees an instance whose handle is dead and whose objects are destroyed. */
void core_ia_delete(struct core_ia *ia);

#endif
