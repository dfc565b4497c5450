// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pins on registered regions. Each thread notes the regions that it is copying from or to in a set
 * of its own, so that a pin is a plain store; who revokes a region looks through the sets of all
 * threads. The two meet as in Dekker's algorithm: a user notes the region, then reads its key; the
 * owner clears the key, then reads the notes. The fence between the two is cheap for a thread that
 * pins often (fence.h). A pin is taken off by the thread that took it.
 */
#ifndef CORE_PINS_H
#define CORE_PINS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/fence.h"
#include "core/lock.h"

struct core_lmr;

#define CORE_PINS_MOST 16u  /* of one thread; more are counted in the region */
#define CORE_PINS_OFTEN 64u /* pins after which a thread's fences become cheap */

/* One thread's. */
struct core_pins {
	_Atomic(struct core_lmr *) regions[CORE_PINS_MOST]; /* the newest is at used - 1 */
	_Atomic bool is_light; /* announced: this thread passes no fence */
	/* the thread's own */
	bool is_listed;
	bool is_over; /* the thread is ending: it is listed no more */
	uint16_t used;
	uint32_t since; /* pins since that was decided */
	/* the list of all sets, under its lock */
	struct core_pins *next;
};

extern __thread struct core_pins core_pins_own __attribute__((tls_model("initial-exec")));

/* The ways of a thread whose set is not listed yet or is full, and of what is not on top. */
void core_pin_slow(struct core_lmr *lmr);
void core_unpin_slow(struct core_lmr *lmr);
/* Decides anew about fences. */
void core_pins_decide(struct core_pins *pins);

/* Before the region's key is read. */
CORE_INLINE void core_pin(struct core_lmr *lmr)
{
	struct core_pins *pins = &core_pins_own;

	if (!pins->is_listed || pins->used == CORE_PINS_MOST) {
		core_pin_slow(lmr);
		return;
	}
	if (atomic_load_explicit(&pins->is_light, memory_order_relaxed)) {
		/* release: what was done with the region before in this place is over */
		atomic_store_explicit(&pins->regions[pins->used++], lmr, memory_order_release);
		atomic_signal_fence(memory_order_seq_cst);
	} else {
		/* sequentially consistent, and a full fence: see above */
		atomic_exchange(&pins->regions[pins->used++], lmr);
	}
	if (++pins->since == CORE_PINS_OFTEN)
		core_pins_decide(pins);
}

CORE_INLINE void core_unpin(struct core_lmr *lmr)
{
	struct core_pins *pins = &core_pins_own;

	/* relaxed: only this thread writes there */
	if (!pins->used ||
	    atomic_load_explicit(&pins->regions[pins->used - 1], memory_order_relaxed) != lmr) {
		core_unpin_slow(lmr);
		return;
	}
	/* release: pairs with the acquire in core_pins_wait, else our copy could be seen after it
	 */
	atomic_store_explicit(&pins->regions[--pins->used], NULL, memory_order_release);
}

/* The region's key is dead already: nobody has it pinned any more when this returns. */
void core_pins_wait(struct core_lmr *lmr);

#endif
