// SPDX-License-Identifier: BSD-2-Clause
/* The protection zone: a number that endpoints, memory regions and windows have in common. */
#ifndef CORE_PZ_H
#define CORE_PZ_H

#include "core/base/handle.h"

struct core_pz {
	struct core_handle *cell;
	struct core_ia *ia;
	uint32_t id;	 /* unique among the live and recent zones of the process, not 0 */
	void *transport; /* the transport's side */
	uint32_t users;	 /* EPs, LMRs, RMRs, SRQs in it; guarded by the cell's lock */
};

/* Counts a user of the zone. Fails with NULL when the handle is no live zone of the instance. */
struct core_pz *core_pz_use(DAT_PZ_HANDLE handle, struct core_ia *ia);
/* Destroys a zone, its lock held, whoever uses it; no lock is held at return. */
void core_pz_destroy_locked(struct core_pz *pz);
void core_pz_unuse(struct core_pz *pz);

#endif
