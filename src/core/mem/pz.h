// SPDX-License-Identifier: BSD-2-Clause
/* The protection zone: endpoints may use the memory regions and windows of their own zone only. */
#ifndef CORE_PZ_H
#define CORE_PZ_H

#include "core/base/handle.h"

struct core_pz {
	struct core_handle *cell;
	struct core_ia *ia;
	uint32_t id;	 /* unique among the live and recent zones of the process, not 0 */
	void *transport; /* for the transport */
	uint32_t users;	 /* EPs, LMRs, RMRs and SRQs in it; guarded by the cell's lock */
};

/* Counts a user of the zone. NULL: the handle is not a live zone of the instance. */
struct core_pz *core_pz_use(DAT_PZ_HANDLE handle, struct core_ia *ia);
/* Destroys a zone even if it has users. Called with its lock held, which it releases. */
void core_pz_destroy_locked(struct core_pz *pz);
void core_pz_unuse(struct core_pz *pz);

#endif
