// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pins on registered regions. Each thread notes the regions that it is copying from or to in a set
 * of its own, so that a pin is a plain store; who revokes a region looks through the sets of all
 * threads. The two meet as in Dekker's algorithm: a user notes the region, then reads its key; the
 * owner clears the key, then reads the notes. Both need a fence between the two. A region that is
 * pinned often gets a mark: users of it go without from then on, and its owner has the kernel run
 * their fences when it revokes it (fence.h), which is dear. So a region that is used a few times
 * and freed costs neither side a system call. A pin is taken off by the thread that took it.
 */
#ifndef CORE_PINS_H
#define CORE_PINS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/fence.h"
#include "core/base/lock.h"

#define CORE_PINS_MOST 16u  /* of one thread; more are counted in the region */
#define CORE_PINS_OFTEN 64u /* pins after which a region is marked */

/* A region's. Nothing of it is set back while the region's key lives. */
struct core_pinned {
	_Atomic uint32_t others; /* pins that no thread has noted itself */
	_Atomic uint32_t fenced; /* pins with a fence; relaxed, and may miss some */
	_Atomic bool is_light;	 /* the mark: pins pass no fence any more */
};

/* One thread's. */
struct core_pins {
	_Atomic(struct core_pinned *) regions[CORE_PINS_MOST]; /* the newest is at used - 1 */
	/* the thread's own */
	bool is_listed;
	bool is_over; /* the thread is ending: it is listed no more */
	uint16_t used;
	/* the list of all sets, under its lock */
	struct core_pins *next;
};

extern __thread struct core_pins core_pins_own __attribute__((tls_model("initial-exec")));

/* Before the region's key is set: nobody has pinned it often yet. */
void core_pins_begin(struct core_pinned *region);

/* The ways of a pin with a fence, of a set that is not listed yet or is full, and of what is not on
 * top. */
void core_pin_slow(struct core_pinned *region);
void core_unpin_slow(struct core_pinned *region);

/* Before the region's key is read, which the caller knows to have lived already. */
CORE_INLINE void core_pin(struct core_pinned *region)
{
	struct core_pins *pins = &core_pins_own;

	/* sequentially consistent, as the look at the key that follows: if we see the mark, and
	 * then the key live, who clears the key sees the mark too (core_pins_wait) */
	if (!pins->is_listed || pins->used == CORE_PINS_MOST || !atomic_load(&region->is_light)) {
		core_pin_slow(region);
		return;
	}
	/* release: what was done with the region before in this place is over */
	atomic_store_explicit(&pins->regions[pins->used++], region, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
}

CORE_INLINE void core_unpin(struct core_pinned *region)
{
	struct core_pins *pins = &core_pins_own;

	/* relaxed: only this thread writes there */
	if (!pins->used ||
	    atomic_load_explicit(&pins->regions[pins->used - 1], memory_order_relaxed) != region) {
		core_unpin_slow(region);
		return;
	}
	/* release: pairs with the acquire in core_pins_wait, else our copy could be seen after it
	 */
	atomic_store_explicit(&pins->regions[--pins->used], NULL, memory_order_release);
}

/* The region's key is dead already: nobody has it pinned any more when this returns. */
void core_pins_wait(struct core_pinned *region);

#endif
