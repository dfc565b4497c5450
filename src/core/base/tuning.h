// SPDX-License-Identifier: BSD-2-Clause
/*
 * The times and counts that steer the core's behaviour, with the reason for each. What a user may
 * want to change is a setting instead (settings.h).
 */
#ifndef CORE_TUNING_H
#define CORE_TUNING_H

#include <stdint.h>

#include "core/base/tsan.h"

/*
 * Uses with a full fence, after which a side leaves it out (fence.h). A full fence costs up to 0.1
 * us, and the heavy one that the other side then needs 1 to 5 us in a process, 20 to 100 us on the
 * host. An announced copy of mapped memory needs no count: memory is mapped after many uses only
 * (soft/shm/transfer/direct.c).
 */
enum core_fence_after {
	/* acquisitions of a lock in a row by one thread; doubled after revocations (lock.c) */
	CORE_FENCE_AFTER_LOCKS = 64,
	/* pins of one region (pins.c): most regions of MPI libraries are used less often */
	CORE_FENCE_AFTER_PINS = 64,
	/* entries of a ring that were taken without a sleep (soft/shm/transfer/publish.c): each
	 * sleep then costs a heavy fence on the host */
	CORE_FENCE_AFTER_ENTRIES = 512,
};

/* How often CORE_FENCE_AFTER_LOCKS doubles: then a lock that threads share stays a mutex. */
#define CORE_LOCK_LOSSES_MAX 20u
/* A revocation this soon after the previous one doubles it: threads take turns, and share it. */
#define CORE_LOCK_LOSS_WINDOW_MS 10u

/* Without membarrier: longer than any processor keeps a store in its store buffer. */
#define CORE_FENCE_SLEEP_NS 20000000

/*
 * A wait for another thread that is about to finish (core_wait_turn, clock.h): so many times it
 * lets others run, which is enough for a copy or for a thread that was preempted. Then it sleeps,
 * because the other one may have a lower priority, for not much longer than a sleep itself takes.
 */
#define CORE_WAIT_YIELDS 100u
#define CORE_WAIT_SLEEP_NS 20000

/* The largest delay of a cancellation: a waiting thread wakes so often for it. */
#define CORE_CANCEL_SLICE_NS 100000000u

/* Attempts to arm the transport in one dequeue; new work makes one fail, and a later dequeue tries
 * again. */
#define CORE_ARM_TRIES 4

/* How long to wait for a qualifier that a listener of this process is about to give back. */
#define CORE_LISTEN_NS UINT64_C(500000000)
/* Qualifiers above 65535 to try where each shorter one is taken. They are random. */
#define CORE_LISTEN_TRIES 16u

/* Free slots of the memory table that wait before one is reused, so that a stale key stays so. */
#define CORE_MEM_QUARANTINE 1024u
/*
 * The same for cells of handles. The thread sanitizer identifies a lock by its address and never
 * forgets its place in the order of locks. A cell that is reused for a type of another rank would
 * be reported as a cycle. So under it cells are practically never reused.
 */
#ifdef CORE_HAS_TSAN
#define CORE_CELL_QUARANTINE (1u << 20)
#else
#define CORE_CELL_QUARANTINE 1024u
#endif

#endif
