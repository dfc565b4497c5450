// SPDX-License-Identifier: BSD-2-Clause
/*
 * Does a thread of the consumer drive the connections, so that the service thread can leave the
 * work to it? A thread that polls for completions in a loop does. A thread that dequeues now and
 * then, for example after it has seen the last byte of a message in its memory, does not: the next
 * message would wait for a tick (COMPAT-46). So the number of polls within a time window decides.
 */
#ifndef SOFT_DRIVEN_H
#define SOFT_DRIVEN_H

#include <stdbool.h>
#include <stdint.h>

#define SOFT_DRIVEN_WINDOW 1000000u /* nanoseconds */
#define SOFT_DRIVEN_AFTER 2000000u  /* a window with enough polls counts for so long */

/* Used by the service thread only. */
struct soft_driven {
	uint32_t least; /* polls that a window needs; the caller may change it between two calls */
	uint64_t polls; /* total of polls when the window began, and */
	uint64_t since; /* when it began */
	uint64_t last;	/* when a window last had enough polls */
	bool is_any;	/* `last` is set */
};

/*
 * `polls` is the total until `now`. A window that is closed late must have had enough polls for
 * each part of its length. Polls of a moment ago still count, because the polling thread may share
 * its processor with the caller. Otherwise the caller would take over its work and its processor
 * time.
 */
static inline bool soft_is_driven(struct soft_driven *driven, uint64_t polls, uint64_t now)
{
	/* concurrent polls may step the total back */
	uint64_t count = polls > driven->polls ? polls - driven->polls : 0;
	uint64_t time = now - driven->since;
	bool is_many =
		count >= driven->least && count >= time / (SOFT_DRIVEN_WINDOW / driven->least);

	if (is_many) {
		driven->last = now;
		driven->is_any = true;
	}
	if (is_many || time >= SOFT_DRIVEN_WINDOW) {
		driven->polls = polls;
		driven->since = now;
	}
	return driven->is_any && now - driven->last < SOFT_DRIVEN_AFTER;
}

#endif
