// SPDX-License-Identifier: BSD-2-Clause
/* Asynchronous events (async.h). */
#include "core/event/async.h"

#include <string.h>

#include "core/event/evd.h"

void core_ia_async_event(struct core_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE object,
			 DAT_COUNT reason)
{
	struct core_evd *evd = core_handle_lock_ref(ia->async_ref, DAT_HANDLE_TYPE_EVD);
	struct core_handle *cell;
	DAT_EVENT event;

	if (!evd)
		return;
	cell = evd->cell;
	memset(&event, 0, sizeof(event));
	event.event_number = number;
	event.event_data.asynch_error_event_data.dat_handle = object;
	event.event_data.asynch_error_event_data.reason = reason;
	core_evd_post_locked(evd, &event);
	core_handle_unlock(cell);
}
