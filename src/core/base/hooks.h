// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls from a room to one above it. Each room includes and calls only rooms below it; where
 * something must go the other way it goes through this table, which src/core/ia/hooks.c fills.
 */
#ifndef CORE_HOOKS_H
#define CORE_HOOKS_H

#include "core/base/handle.h"

struct core_hooks {
	/* event to conn: the EVD is freed with a connection request in its queue (EVD-FREE-12) */
	void (*cr_abandon)(DAT_CR_HANDLE cr);
	/* event to srq: the event of a Receive of that SRQ was taken, or is lost. No lock above
	 * rank 3 held */
	void (*srq_return)(struct core_ref srq);
	/* srq to ep: a buffer is available for that endpoint, which waits in line. No lock held */
	void (*srq_offer)(struct core_ref ep);
};

extern const struct core_hooks core_hooks;

#endif
