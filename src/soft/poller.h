// SPDX-License-Identifier: BSD-2-Clause
/*
 * The thread of the consumer that polls, as the service thread sees it. If there are more threads
 * than processors, it often has none for several milliseconds. It looks as if it had stopped
 * polling, but it continues where it was. The kernel knows the difference: such a thread is
 * runnable, and its processor time stands still.
 */
#ifndef SOFT_POLLER_H
#define SOFT_POLLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Written by the thread that polls. Relaxed: hints, which two threads may mix. */
struct soft_poller {
	_Atomic int32_t id;	 /* the kernel's number of the thread; 0: none */
	_Atomic uint64_t cpu_ns; /* its processor time when it stored this */
};

/* Stores the number and the processor time of this thread. Two system calls. */
void soft_poller_store(struct soft_poller *poller);
void soft_poller_clear(struct soft_poller *poller);

/* How far a thread was at some time. Written by the thread that polls, like struct soft_poller. */
struct soft_mark {
	struct soft_poller at;
	_Atomic int64_t sleeps; /* how often it had given up the processor to wait */
};

/*
 * Sets *used_ns to the processor time of this thread since the mark, and sets the mark again.
 * False: another thread set it, or this one has slept since. Three system calls.
 */
bool soft_mark_move(struct soft_mark *mark, uint64_t *used_ns);

/*
 * Is that thread runnable, and has it used less than most_ns of processor time since then? False
 * also if the kernel does not tell.
 */
bool soft_poller_is_preempted(const struct soft_poller *poller, uint64_t most_ns);

#endif
