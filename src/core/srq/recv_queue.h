// SPDX-License-Identifier: BSD-2-Clause
/*
 * The ring of posted Receives that endpoints and shared receive queues use. The lock of the owner
 * guards it.
 */
#ifndef CORE_RECV_QUEUE_H
#define CORE_RECV_QUEUE_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include <dat/udat.h>

#include "core/base/line.h"

/* One posted Receive, in one cache line if it has one segment. */
struct core_wqe {
	alignas(CORE_LINE) uint32_t segments;
	DAT_COMPLETION_FLAGS flags;
	DAT_LMR_TRIPLET *iov; /* our copy, without empty segments: `first`, or in the queue's iov */
	DAT_VLEN len;	      /* total bytes of the segments */
	DAT_DTO_COOKIE cookie;
	DAT_LMR_TRIPLET first;
};

static_assert(sizeof(struct core_wqe) == CORE_LINE, "one line");

struct core_recv_queue {
	struct core_wqe *slots;
	DAT_LMR_TRIPLET *iov; /* of Receives of several segments, iov_max for each slot */
	uint32_t capacity;    /* Receives that may be outstanding; 0 without recv EVD */
	uint32_t mask;	      /* slots - 1 */
	uint32_t iov_max;
	uint64_t head; /* the Receive that the current or next message fills */
	uint64_t tail;
};

/* The smallest power of two that is at least the capacity. */
uint32_t core_queue_slots(DAT_COUNT capacity);
bool core_recv_queue_alloc(struct core_recv_queue *queue, DAT_COUNT capacity, DAT_COUNT iov_max);
void core_recv_queue_free(struct core_recv_queue *queue);
/* The slot of that number, with room for so many segments in its iov. */
struct core_wqe *core_recv_queue_slot(const struct core_recv_queue *queue, uint64_t number,
				      uint32_t segments);
/* Copies a Receive to one whose iov has room for its segments. */
void core_wqe_copy(struct core_wqe *to, const struct core_wqe *from);
/* Copies a Receive into the slot of that number. */
void core_recv_queue_put(struct core_recv_queue *queue, uint64_t number,
			 const struct core_wqe *from);
/* Appends the Receives of `from` to `to`, which must have room and hold as many segments. */
void core_recv_queue_move(struct core_recv_queue *to, const struct core_recv_queue *from);
/*
 * Copies the segments up to a total of `len` bytes and leaves out empty ones. Returns the number of
 * segments copied.
 */
uint32_t core_copy_segments(DAT_LMR_TRIPLET *to, const DAT_LMR_TRIPLET *from, DAT_COUNT count,
			    DAT_VLEN len);

#endif
