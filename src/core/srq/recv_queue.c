// SPDX-License-Identifier: BSD-2-Clause
/* The ring of posted Receives (recv_queue.h). */
#include "core/srq/recv_queue.h"

#include <stdlib.h>
#include <string.h>

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
	queue->slots = calloc(slots, sizeof(*queue->slots));
	queue->iov =
		calloc((size_t)slots * (queue->iov_max ? queue->iov_max : 1), sizeof(*queue->iov));
	if (!queue->slots || !queue->iov) {
		core_recv_queue_free(queue);
		return false;
	}
	for (uint32_t i = 0; i < slots; i++)
		queue->slots[i].iov = queue->iov + (size_t)i * queue->iov_max;
	return true;
}

void core_recv_queue_free(struct core_recv_queue *queue)
{
	free(queue->slots);
	free(queue->iov);
}

void core_recv_queue_move(struct core_recv_queue *to, const struct core_recv_queue *from)
{
	for (uint64_t i = from->head; i != from->tail; i++) {
		const struct core_wqe *old = &from->slots[i & from->mask];
		struct core_wqe *wqe = &to->slots[to->tail++ & to->mask];
		DAT_LMR_TRIPLET *iov = wqe->iov;

		*wqe = *old;
		wqe->iov = iov;
		memcpy(iov, old->iov, old->segments * sizeof(*iov));
	}
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
