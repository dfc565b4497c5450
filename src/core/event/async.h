// SPDX-License-Identifier: BSD-2-Clause
/* Asynchronous events: errors and watermarks that neither a call nor a completion reports. */
#ifndef CORE_ASYNC_H
#define CORE_ASYNC_H

#include "core/base/instance.h"

/*
 * Posts an event about the whole adapter, or about one object, to the instance's asynchronous EVD.
 * Dropped if there is none. No lock of a rank above 4 held.
 */
void core_ia_async_event(struct core_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE object,
			 DAT_COUNT reason);

#endif
