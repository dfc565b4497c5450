// SPDX-License-Identifier: BSD-2-Clause
/*
 * How far the thread that polls was at some time. If there are more threads than processors, time
 * passes in which it has none; its own processor time tells the difference.
 */
#ifndef SOFT_MARK_H
#define SOFT_MARK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Written by the thread that polls. Relaxed: hints, which two threads may mix. */
struct soft_mark {
	_Atomic int32_t id;	 /* the kernel's number of the thread; 0: none */
	_Atomic uint64_t cpu_ns; /* its processor time */
	_Atomic int64_t sleeps;	 /* how often it had given up the processor to wait */
};

/*
 * Sets *used_ns to the processor time of this thread since the mark, and sets the mark again.
 * False: another thread set it, or this one has slept since. Three system calls.
 */
bool soft_mark_move(struct soft_mark *mark, uint64_t *used_ns);

#endif
