// SPDX-License-Identifier: BSD-2-Clause
/*
 * The memory that the two sides of a connection on one host share. The passive side creates it,
 * seals it against any change of size, and passes it when it accepts. Each side writes its own
 * `struct shm_side` and its own two rings, and reads the other's. Everything that the other side
 * writes is untrusted: it is read once, checked against our own limits, and only the copy is used.
 */
#ifndef SHM_SEGMENT_H
#define SHM_SEGMENT_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/tsan.h"

/*
 * If both sides are in one process, each reaches a word of the segment by its own address. The
 * thread sanitizer tracks order by address, so it does not see that a load on one side reads the
 * store of the other. These macros report that order by an object that the stored value selects, so
 * that few connections share one.
 */
#ifdef CORE_HAS_TSAN
void __tsan_acquire(void *object);
void __tsan_release(void *object);
#define SHM_TSAN_ORDERS 4096u
extern uint64_t shm_tsan_orders[SHM_TSAN_ORDERS];
#define SHM_TSAN_ORDER(value) (&shm_tsan_orders[(value) % SHM_TSAN_ORDERS])
#define SHM_TSAN_ACQUIRE(value) __tsan_acquire(SHM_TSAN_ORDER(value))
#define SHM_TSAN_RELEASE(value) __tsan_release(SHM_TSAN_ORDER(value))
#else
#define SHM_TSAN_ACQUIRE(value) ((void)0)
#define SHM_TSAN_RELEASE(value) ((void)0)
#endif

#define SHM_LINE 64
#define SHM_PAGE 4096

/*
 * Bytes of the rings that a connection begins with, and of the one that replaces a ring that was
 * full often. A connection that sends little touches little memory.
 */
#define SHM_REQUEST_RING 16384u
#define SHM_RESPONSE_RING 8192u
#define SHM_LARGE_RING 262144u

/* Longest payload of one entry: a quarter of the ring, */
#define SHM_REQUEST_PAYLOAD 4096u
#define SHM_RESPONSE_PAYLOAD 2048u
/* and in a large ring less, so that one side copies in while the other one copies out. */
#define SHM_LARGE_PAYLOAD 16384u

enum shm_index {
	SHM_ACTIVE = 0,	 /* the side that connected */
	SHM_PASSIVE = 1, /* the side that accepted */
};

/* Written by one side only. Each line has one purpose, so that no line has two frequent writers. */
struct shm_side {
	/* what this side has taken from the other's rings and gives back */
	alignas(SHM_LINE) _Atomic uint32_t request_consumed;
	_Atomic uint32_t response_consumed;

	/*
	 * messages and ring writes of the other side that are carried out; an entry in a ring of
	 * this side may have reported more already
	 */
	alignas(SHM_LINE) _Atomic uint32_t done;
	_Atomic uint32_t failed; /* SHM_FAILED(): why the next one failed; written after `done` */
	_Atomic uint32_t waits;	 /* enum shm_waits: what this side waits for */

	/* odd: this side sleeps. Each odd value is answered by one packet that wakes it */
	alignas(SHM_LINE) _Atomic uint32_t armed;
	/* not 0: `armed` is even, and this side has the kernel run a fence on the other side before
	 * it changes `armed`. So the other side may omit its own fence (core/base/fence.h) */
	_Atomic uint32_t is_polled;
	/* not 0: the other side must not access this side's memory any more */
	_Atomic uint32_t revoked;
	/*
	 * a thread of this side sleeps on `bell`, or is about to; a hint. The other side may ring
	 * instead of sending the packet
	 */
	_Atomic uint32_t sleeps;
	_Atomic uint32_t bell; /* futex; incremented each time it is rung */

	/* the key of the other side's memory that this side is copying from or to, else 0 */
	alignas(SHM_LINE) _Atomic uint32_t announce;
	/* not 0: this side executes no fence after an announcement; the other side has the kernel
	 * run one */
	_Atomic uint32_t is_unfenced;
};

enum shm_waits {
	SHM_WAITS_RECEIVE = 1, /* a message is at the head of the ring, and no Receive is posted */
	SHM_WAITS_DRAIN = 2,   /* a graceful disconnect waits for its requests */
};

/* What `failed` names: the oldest message that is not done, or the oldest unanswered RDMA Read. */
enum shm_failed_kind {
	SHM_FAILED_MESSAGE = 1,
	SHM_FAILED_READ = 2,
};
#define SHM_FAILED(kind, status) ((uint32_t)(kind) << 16 | (uint32_t)(status))
#define SHM_FAILED_KIND(word) ((word) >> 16)
#define SHM_FAILED_STATUS(word) ((word)&0xffffu)

/* The index of a ring is the side that writes it. Its large ring is behind it. */
struct shm_segment {
	struct shm_side side[2];
	alignas(SHM_PAGE) uint8_t request[2][SHM_REQUEST_RING + SHM_LARGE_RING];
	uint8_t response[2][SHM_RESPONSE_RING + SHM_LARGE_RING];
};

static_assert(sizeof(struct shm_side) == 4 * SHM_LINE, "one line per purpose");
static_assert(offsetof(struct shm_side, done) == 1 * SHM_LINE, "no padding inside");
static_assert(offsetof(struct shm_side, armed) == 2 * SHM_LINE, "no padding inside");
static_assert(offsetof(struct shm_side, announce) == 3 * SHM_LINE, "no padding inside");
static_assert(offsetof(struct shm_segment, request) == SHM_PAGE, "the words have their page");
static_assert(sizeof(struct shm_segment) ==
		      SHM_PAGE + 2 * (SHM_REQUEST_RING + SHM_RESPONSE_RING) + 4 * SHM_LARGE_RING,
	      "no padding inside");
static_assert(SHM_PAGE + 2 * (SHM_REQUEST_RING + SHM_RESPONSE_RING) <= 56 * 1024,
	      "what a connection that sends little can touch");
static_assert(ATOMIC_INT_LOCK_FREE == 2, "words are shared between processes");

/*
 * Copies bytes that the peer may change meanwhile. Each is loaded once, so that what is checked is
 * what is used. `from` is aligned to 8 bytes, and `size` a multiple of 8.
 */
static inline void shm_read_once(void *to, const void *from, size_t size)
{
	const uint64_t *words = from;

	for (size_t i = 0; i < size / sizeof(*words); i++) {
		/* relaxed atomic: the compiler may repeat the loads of memcpy, but not this one */
		uint64_t word = __atomic_load_n(&words[i], __ATOMIC_RELAXED);

		memcpy((uint8_t *)to + i * sizeof(word), &word, sizeof(word));
	}
}

#endif
