// SPDX-License-Identifier: BSD-2-Clause
/* The software RNIC of one adapter instance: its keys and its engine. */
#ifndef SOFT_SOFT_H
#define SOFT_SOFT_H

#include "core/base/instance.h"
#include "soft/key.h"

struct iw_engine;
struct shm_engine;

/* core_ia.transport */
struct soft_adapter {
	struct core_ia *ia;
	struct soft_keys *keys;
	struct shm_engine *shm;
	struct iw_engine *tcp;
};

static inline struct soft_adapter *soft_adapter_of(const struct core_ia *ia)
{
	return ia->transport;
}

/* Polls by threads of the consumer so far, in either engine. */
uint64_t soft_polls(const struct soft_adapter *adapter);
/* Has the last thread that polled armed the engines, and sleeps? */
bool soft_is_unattended(const struct soft_adapter *adapter);

#endif
