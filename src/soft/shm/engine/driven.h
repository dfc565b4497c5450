// SPDX-License-Identifier: BSD-2-Clause
/*
 * Does a thread of the consumer drive the connections, so that the service thread can leave the
 * work to it? One that looks for completions again and again does. One that dequeues now and then,
 * say after it has seen the last byte of a message in its memory, does not: what comes next would
 * wait for a tick (COMPAT-46). So it is the number of polls in a while that counts.
 */
#ifndef SHM_DRIVEN_H
#define SHM_DRIVEN_H

#include <stdbool.h>
#include <stdint.h>

#define SHM_DRIVEN_POLLS 512u	   /* in a window; a thread that polls makes thousands */
#define SHM_DRIVEN_WINDOW 1000000u /* nanoseconds */
#define SHM_DRIVEN_AFTER 2000000u  /* as long as that one window counts */

/* The service thread's alone. */
struct shm_driven {
	uint64_t polls; /* how many there were when the window began, */
	uint64_t since; /* and when that was */
	uint64_t last;	/* when there were many */
	bool is_any;	/* ... if ever */
};

/*
 * `polls`: all there were until `now`. A window that is closed late must have had as many in each
 * of its parts. The thread may share its processor with us: what it did a moment ago counts, or we
 * would take all its work and its time away.
 */
static inline bool shm_is_driven(struct shm_driven *driven, uint64_t polls, uint64_t now)
{
	uint64_t count = polls - driven->polls;
	uint64_t time = now - driven->since;
	bool is_many =
		count >= SHM_DRIVEN_POLLS && count >= time / (SHM_DRIVEN_WINDOW / SHM_DRIVEN_POLLS);

	if (is_many) {
		driven->last = now;
		driven->is_any = true;
	}
	if (is_many || time >= SHM_DRIVEN_WINDOW) {
		driven->polls = polls;
		driven->since = now;
	}
	return driven->is_any && now - driven->last < SHM_DRIVEN_AFTER;
}

#endif
