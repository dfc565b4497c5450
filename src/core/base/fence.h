// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fences of which one side is nearly free. Where two sides each store a word and then look at the
 * other's, both need a full fence between the two, so that one of them at least sees the other. If
 * one side does that for each message and the other hardly ever, the kernel can run the fence of
 * the first on behalf of the second (membarrier): the first then only keeps its compiler from
 * swapping the two accesses. On a busy connection this is worth a lot, because a fence, like any
 * atomic read-modify-write, waits until all stores before it have got their cache lines, and those
 * the other processor has.
 *
 * The frequent side may do so only after it has announced it, with a full fence behind the
 * announcement: core_fence_can() says whether the kernel is able to. The rare side looks for the
 * announcement behind its own full fence, and calls core_fence_everywhere() if there is one.
 */
#ifndef CORE_FENCE_H
#define CORE_FENCE_H

#include <stdatomic.h>
#include <stdbool.h>

#if defined(__SANITIZE_THREAD__)
#define CORE_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CORE_UNDER_TSAN 1
#endif
#endif
#ifndef CORE_UNDER_TSAN
#define CORE_UNDER_TSAN 0
#endif

enum core_fence_scope {
	CORE_FENCE_PROCESS, /* the other threads of this process */
	CORE_FENCE_HOST,    /* those of other processes that have asked core_fence_can() as well */
};

/*
 * May the frequent side go without a fence? Asks the kernel once, and no more when it has refused.
 * Never under the thread sanitizer, which knows no membarrier.
 */
bool core_fence_can(enum core_fence_scope scope);

/*
 * Every thread in scope has passed a full fence when it returns; the caller too. A sandbox that was
 * closed meanwhile may forbid the call: then this waits for longer than any machine keeps a store
 * to itself, and core_fence_can() says no from then on.
 */
void core_fence_everywhere(enum core_fence_scope scope);

/* The fence of the frequent side: is_light as announced. */
static inline void core_fence(bool is_light)
{
	if (is_light)
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

#endif
