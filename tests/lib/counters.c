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
	const struct core_ia *ia = ((const struct core_handle *)handle)->ia;
	_Atomic uint64_t *counters = soft_adapter_of(ia)->shm->counters;

	*counts_out = (struct copy_path_counts){
		.map = atomic_load(&counters[SHM_COUNT_MAP]),
		.cma = atomic_load(&counters[SHM_COUNT_CMA]),
		.ring = atomic_load(&counters[SHM_COUNT_RING]),
	};
}
