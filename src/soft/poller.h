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

#include "core/base/tls.h"

/* The thread that polled last; zeroed: none. */
struct soft_poller {
	_Atomic int32_t id; /* the kernel's number of it; relaxed, because it is a hint */
};

/* Its processor time at a certain moment. */
struct soft_poller_time {
	int32_t id; /* 0: unknown */
	uint64_t cpu_ns;
};

/* The number of this thread; -1: not asked yet. */
extern __thread int32_t soft_poller_self CORE_TLS_FAST;

void soft_poller_set(struct soft_poller *poller);

/* Records that this thread polls. */
static inline void soft_poller_note(struct soft_poller *poller)
{
	if (atomic_load_explicit(&poller->id, memory_order_relaxed) != soft_poller_self)
		soft_poller_set(poller);
}

struct soft_poller_time soft_poller_time(const struct soft_poller *poller);

/*
 * Is that thread runnable, and has it used less than most_ns of processor time since then? False
 * also if the kernel does not tell.
 */
bool soft_poller_is_preempted(const struct soft_poller_time *since, uint64_t most_ns);

#endif
