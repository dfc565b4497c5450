// SPDX-License-Identifier: BSD-2-Clause
/* Local memory regions: the objects in the slots of the memory table (mem.h). */
#ifndef CORE_LMR_H
#define CORE_LMR_H

#include "core/mem/mem.h"

/* Destroys a live region. Called with its lock held, which it releases. */
void core_lmr_destroy_locked(struct core_lmr *lmr);

#endif
