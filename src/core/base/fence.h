// SPDX-License-Identifier: BSD-2-Clause
/*
 * Asymmetric fences. Two sides each store to a word of their own and then load the other side's
 * word. Each side needs a full fence between its store and its load; otherwise both may miss the
 * other's store. When one side does this for every message and the other rarely, the rare side can
 * pay for both: it has the kernel run a full fence on every thread (membarrier). The frequent side
 * then needs a compiler barrier only, the light fence. This saves much on a busy connection: a full
 * fence, like any atomic read-modify-write, waits until all earlier stores own their cache lines,
 * and those lines are usually in the other processor's cache.
 *
 * The frequent side uses light fences only after core_fence_is_supported() returned true and after
 * it has announced them; a full fence follows the announcement. The rare side reads the
 * announcement after its own full fence, and calls core_fence_heavy() if it is set. The frequent side
 * counts its uses with a full fence and announces after so many (enum core_fence_after, tuning.h).
 *
 * The thread sanitizer runs the same code. It takes no order from fences, light, full or heavy, and
 * needs none: a fence only ensures that one of the two sides sees the other's word and gives way.
 * What one side did before that is passed to the other by a release store and an acquire load of
 * such a word (`inside` of a lock, the place of a pin, an announcement). If a fence fails to keep
 * the two sides apart, their accesses are unordered, and the sanitizer reports them.
 *
 * models/ has models of the protocols that use these fences, with store buffers (models/memory.pml)
 * and in the C11 memory model (models/litmus/protocols.py).
 */
#ifndef CORE_FENCE_H
#define CORE_FENCE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/tuning.h"

enum core_fence_scope {
	CORE_FENCE_PROCESS, /* the other threads of this process */
	CORE_FENCE_HOST,    /* those of other processes that are registered, too */
};

/*
 * May the frequent side use light fences? The first call registers the process with the kernel;
 * later calls return the cached answer.
 */
bool core_fence_is_supported(enum core_fence_scope scope);

/*
 * Runs a full fence on every thread in scope, the caller included, before it returns. A sandbox
 * that was entered after the registration may forbid membarrier. Then this sleeps for longer than
 * any processor keeps a store in its store buffer, and core_fence_is_supported() returns false from
 * then on.
 */
void core_fence_heavy(enum core_fence_scope scope);

/* The fence of the frequent side. `is_light`: light fences have been announced. */
static inline void core_fence_light(bool is_light)
{
	if (is_light)
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

#endif
