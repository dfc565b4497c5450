// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pins on registered regions, as hazard pointers. Each thread stores the regions that it copies
 * from or to in a set of its own, so that a pin is a plain store. A thread that revokes a region
 * searches the sets of all threads. The two sides synchronize as in Dekker's algorithm: a user
 * stores the pin, then loads the key; the revoker clears the key, then loads the pins. Both need a
 * full fence in between.
 *
 * After many pins a region switches to light pins, without that fence. Revoking it then costs
 * a membarrier system call (fence.h), which is expensive. So a region that is used a few times and
 * freed costs neither side a system call. The thread that took a pin must remove it. The fast path
 * has a pin of its own for one copy, which takes one store.
 *
 * models/pins.pml models these functions, core_mem_pin and core_mem_revoke.
 */
#ifndef CORE_PINS_H
#define CORE_PINS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/fence.h"
#include "core/base/lock.h"
#include "core/base/tls.h"

#define CORE_PINS_MAX 16u /* in the set of a thread; further pins go to `others` */

/* The state of a region. No member is reset while the region's key is live. */
struct core_pinned {
	_Atomic uint32_t others; /* pins that are in no set */
	_Atomic uint32_t fenced; /* number of pins with a fence; relaxed and approximate */
	_Atomic bool is_light;	 /* pins use a light fence from now on */
};

/* The set of a thread. */
struct core_pins {
	_Atomic(struct core_pinned *) one; /* the pin of core_pin_one, or NULL */
	bool is_listed;			   /* the set is in the list of all sets */
	/* the other pins; the newest is at used - 1 */
	_Atomic(struct core_pinned *) regions[CORE_PINS_MAX];
	/* used by the thread only */
	uint32_t used;
	bool has_exited; /* the set was removed because the thread exits; it is not added again */
	/* guarded by the lock of the list */
	struct core_pins *next;
};

/*
 * Used without a pointer to it: UBSan's check of that pointer fails at random in a static program.
 */
extern __thread struct core_pins core_pins_own CORE_TLS_FAST;

/* Resets the count of pins. Call before the region's key becomes live. */
void core_pins_begin(struct core_pinned *region);

/* Pins the region. Call before loading its key. The key that the caller expects was live before, so
 * core_pins_begin has run for it. */
void core_pin(struct core_pinned *region);
void core_unpin(struct core_pinned *region);

/*
 * The fast path: a light pin for one copy, during which the thread takes no other pin of this kind.
 * False: the region has no light pins yet; use core_pin.
 */
CORE_INLINE bool core_pin_one(struct core_pinned *region)
{
	/*
	 * sequentially consistent, as is the caller's load of the key that follows. If both
	 * is_light and the live key are seen here, a thread that clears the key afterwards sees
	 * is_light too, and runs the fence for us (core_pins_wait).
	 */
	if (!core_pins_own.is_listed || !atomic_load(&region->is_light))
		return false;
	/* release: pairs with the acquire in core_pins_wait; a copy under an earlier pin is
	 * complete when the new one is seen */
	atomic_store_explicit(&core_pins_own.one, region, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

CORE_INLINE void core_unpin_one(void)
{
	/* release: pairs with the acquire in core_pins_wait, else the region could be freed before
	 * our copy is complete */
	atomic_store_explicit(&core_pins_own.one, NULL, memory_order_release);
}

/* Waits until no thread has the region pinned. The region's key must be cleared already. */
void core_pins_wait(struct core_pinned *region);

#endif
