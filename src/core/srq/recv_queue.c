// SPDX-License-Identifier: BSD-2-Clause
/* The ring of posted Receives (recv_queue.h). */
#include "core/srq/recv_queue.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/line.h"

uint32_t core_queue_slots(DAT_COUNT capacity)
{
	uint32_t slots = 1;

	while (slots < (uint32_t)capacity)
		slots *= 2;
	return slots;
}

bool core_recv_queue_alloc(struct core_recv_queue *queue, DAT_COUNT capacity, DAT_COUNT iov_max)
{
	uint32_t slots = core_queue_slots(capacity);

	memset(queue, 0, sizeof(*queue));
	queue->capacity = (uint32_t)capacity;
	queue->mask = slots - 1;
	queue->iov_max = (uint32_t)iov_max;
	if (!queue->capacity)
		return true;
	queue->slots = core_line_alloc(slots, sizeof(*queue->slots));
	if (queue->iov_max > 1)
		queue->iov = calloc((size_t)slots * queue->iov_max, sizeof(*queue->iov));
	if (queue->slots && (queue->iov || queue->iov_max <= 1))
		return true;
	core_recv_queue_free(queue);
	return false;
}

void core_recv_queue_free(struct core_recv_queue *queue)
{
	core_line_free(queue->slots);
	free(queue->iov);
}

struct core_wqe *core_recv_queue_slot(const struct core_recv_queue *queue, uint64_t number,
				      uint32_t segments)
{
	const uint64_t at = number & queue->mask;
	struct core_wqe *wqe = &queue->slots[at];

	wqe->iov = segments > 1 ? queue->iov + at * queue->iov_max : &wqe->first;
	return wqe;
}

void core_wqe_copy(struct core_wqe *to, const struct core_wqe *from)
{
	DAT_LMR_TRIPLET *iov = to->iov;

	*to = *from;
	to->iov = iov;
	for (uint32_t i = 0; i < from->segments; i++)
		iov[i] = from->iov[i];
}

void core_recv_queue_put(struct core_recv_queue *queue, uint64_t number,
			 const struct core_wqe *from)
{
	core_wqe_copy(core_recv_queue_slot(queue, number, from->segments), from);
}

void core_recv_queue_move(struct core_recv_queue *to, const struct core_recv_queue *from)
{
	for (uint64_t i = from->head; i != from->tail; i++)
		core_recv_queue_put(to, to->tail++, &from->slots[i & from->mask]);
}

uint32_t core_copy_segments(DAT_LMR_TRIPLET *to, const DAT_LMR_TRIPLET *from, DAT_COUNT count,
			    DAT_VLEN len)
{
	uint32_t used = 0;

	for (DAT_COUNT i = 0; i < count && len; i++) {
		if (!from[i].segment_length)
			continue;
		to[used] = from[i];
		if (to[used].segment_length > len)
			to[used].segment_length = len;
		len -= to[used].segment_length;
		used++;
	}
	return used;
}
