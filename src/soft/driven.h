// SPDX-License-Identifier: BSD-2-Clause
/*
 * Does a thread of the consumer drive the connections, so that the service thread can leave the
 * work to it? A thread that polls for completions in a loop does. A thread that dequeues now and
 * then, for example after it has seen the last byte of a message in its memory, does not: the next
 * message would wait until the service thread notices (COMPAT-46). So the time that a group of
 * polls takes decides.
 *
 * Time in which the thread had no processor does not count for a group; but time in which it slept
 * does.
 */
#ifndef SOFT_DRIVEN_H
#define SOFT_DRIVEN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "soft/mark.h"

#define SOFT_DRIVEN_GROUP 1000000u /* nanoseconds that a group of polls may take */
#define SOFT_DRIVEN_AFTER 2000000u /* so long such a group counts */

/* Written by threads that poll. Relaxed: hints, and polls at the same time may be lost. */
struct soft_driven {
	_Atomic uint64_t polls;	    /* by all threads */
	_Atomic uint64_t group;	    /* `polls` when the group began */
	_Atomic uint64_t began_ns;  /* the time of that */
	_Atomic uint64_t last_ns;   /* when a group last ended in time; 0: never */
	_Atomic uint64_t marked_ns; /* when such an end last moved the mark */
	struct soft_mark mark;	    /* where a group last ended late, or at that time */
};

void soft_driven_end_group(struct soft_driven *driven, uint64_t polls, uint32_t least);

/* Would the next poll end a group? */
static inline bool soft_driven_is_due(const struct soft_driven *driven, uint32_t least)
{
	return atomic_load_explicit(&driven->polls, memory_order_relaxed) + 1 -
		       atomic_load_explicit(&driven->group, memory_order_relaxed) >=
	       least;
}

/*
 * Counts polls of this thread. A group is at least `least` polls, which may change. True: a group
 * has ended.
 */
static inline bool soft_driven_count(struct soft_driven *driven, uint32_t polls, uint32_t least)
{
	uint64_t total = atomic_load_explicit(&driven->polls, memory_order_relaxed) + polls;

	atomic_store_explicit(&driven->polls, total, memory_order_relaxed);
	/* also when another thread, which had no processor, has stepped the total back */
	if (total - atomic_load_explicit(&driven->group, memory_order_relaxed) < least)
		return false;
	soft_driven_end_group(driven, total, least);
	return true;
}

/* As if a group had just ended in time: a thread is expected to poll. */
void soft_driven_begin(struct soft_driven *driven, uint64_t now);

/*
 * For how many nanoseconds the service thread may leave the work to the thread that polls before it
 * asks again; 0: no thread drives the connections.
 */
uint64_t soft_driven_left(const struct soft_driven *driven, uint64_t now);

/* When polls were last so frequent. */
static inline uint64_t soft_driven_last(const struct soft_driven *driven)
{
	return atomic_load_explicit(&driven->last_ns, memory_order_relaxed);
}

#endif
