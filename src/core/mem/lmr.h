// SPDX-License-Identifier: BSD-2-Clause
/* Local memory regions: the objects behind the slots of the memory table (mem.h). */
#ifndef CORE_LMR_H
#define CORE_LMR_H

#include "core/mem/mem.h"

/* Destroys a live region, its lock held; no lock is held at return. */
void core_lmr_destroy_locked(struct core_lmr *lmr);

#endif
