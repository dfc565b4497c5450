// SPDX-License-Identifier: BSD-2-Clause
/* The software RNIC of one adapter instance: its keys and its engine. */
#ifndef SOFT_SOFT_H
#define SOFT_SOFT_H

#include "core/base/instance.h"
#include "soft/key.h"

struct shm_engine;

/* core_ia.transport */
struct soft_adapter {
	struct core_ia *ia;
	struct soft_keys *keys;
	struct shm_engine *shm;
};

/* Copies the counters of the engine (enum shm_counter, all of them); for tests. */
void soft_counters(const struct core_ia *ia, uint64_t *counters_out);

#endif
