// SPDX-License-Identifier: BSD-2-Clause
/*
 * Upward calls between the folders of the core. Each folder includes and calls only the folders
 * below it. The few calls in the other direction go through this table, which
 * src/core/ia/provider.c fills before there is any object.
 */
#ifndef CORE_HOOKS_H
#define CORE_HOOKS_H

#include "core/base/handle.h"

struct core_hooks {
	/* event to conn: an EVD was freed with this request in its queue (EVD-FREE-12) */
	void (*cr_abandon)(DAT_CR_HANDLE cr);
	/* event to srq: the completion event of a Receive of that SRQ was dequeued or lost. No lock
	 * of a rank above 3 held */
	void (*srq_return)(struct core_ref srq);
	/* srq to ep: a buffer is available for that endpoint, which waits for one. No lock held */
	void (*srq_offer)(struct core_ref ep);
};

extern struct core_hooks core_hooks;

#endif
