// SPDX-License-Identifier: BSD-2-Clause
/* Asynchronous events: errors and watermarks that no call and no completion reports. */
#ifndef CORE_ASYNC_H
#define CORE_ASYNC_H

#include "core/base/instance.h"

/*
 * Raises an event about the whole adapter, or about one object, on the instance's asynchronous
 * EVD. Dropped when there is none. No lock above rank 4 held.
 */
void core_ia_async_event(struct core_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE object,
			 DAT_COUNT reason);

#endif
