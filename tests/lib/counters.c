// SPDX-License-Identifier: BSD-2-Clause
/*
 * The part of the test build of the soft provider that the installed library lacks: tests read how
 * often each way of moving bytes was taken (copy_path.c). All other objects are those of the
 * installed library.
 */
#include "core/base/handle.h"
#include "soft/shm/engine/engine.h"
#include "soft/soft.h"

#include "copy_path.h"

__attribute__((visibility("default"))) void
opendat_test_counters(DAT_HANDLE handle, struct copy_path_counts *counts_out)
{
	uint64_t counters[SHM_COUNT_END];

	soft_counters(((const struct core_handle *)handle)->ia, counters);
	*counts_out = (struct copy_path_counts){
		.map = counters[SHM_COUNT_MAP],
		.cma = counters[SHM_COUNT_CMA],
		.ring = counters[SHM_COUNT_RING],
	};
}
