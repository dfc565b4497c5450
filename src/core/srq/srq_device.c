// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared receive queues whose device assigns buffers to messages. The core keeps each buffer in a
 * slot and posts the slot's index to the device. The transport reports the index when a message has
 * filled the buffer, in any order. Buffers that the device's queue has no room for wait here. All
 * functions but the last two are called with the SRQ locked.
 */
#include "core/srq/srq.h"

#include <stdlib.h>

#include "core/base/transport_ops.h"

bool core_srq_device_init(struct core_srq *srq)
{
	struct core_srq_device *device = &srq->device;

	if (!srq->transport)
		return true;
	device->next = calloc(srq->queue.capacity, sizeof(*device->next));
	if (!device->next)
		return false;
	device->slots = srq->queue.capacity;
	for (uint32_t i = device->slots; i; i--) {
		device->next[i - 1] = device->first_free;
		device->first_free = i;
	}
	return true;
}

void core_srq_device_fini(struct core_srq *srq)
{
	free(srq->device.next);
}

struct core_wqe *core_srq_device_slot(struct core_srq *srq, uint32_t segments, uint32_t *index_out)
{
	*index_out = srq->device.first_free - 1; /* the caller checked `outstanding` */
	assert(srq->device.first_free);
	return core_recv_queue_slot(&srq->queue, *index_out, segments);
}

static void slot_free(struct core_srq_device *device, uint32_t index)
{
	device->next[index] = device->first_free;
	device->first_free = index + 1;
}

/* Posts waiting buffers until the device's queue is full. */
static void device_refill(struct core_srq *srq)
{
	struct core_srq_device *device = &srq->device;

	while (device->first_waiting) {
		uint32_t index = device->first_waiting - 1;

		if (srq->ia->ops->srq_post(srq, index, &srq->queue.slots[index]))
			return;
		device->first_waiting = device->next[index];
		if (!device->first_waiting)
			device->last_waiting = 0;
	}
}

void core_srq_device_add(struct core_srq *srq, uint32_t index)
{
	struct core_srq_device *device = &srq->device;

	device->first_free = device->next[index];
	device->next[index] = 0;
	if (device->last_waiting)
		device->next[device->last_waiting - 1] = index + 1;
	else
		device->first_waiting = index + 1;
	device->last_waiting = index + 1;
	device->available++;
	device_refill(srq);
}

/* The buffers keep their indices, because the device knows them. */
bool core_srq_device_grow(struct core_srq *srq, uint32_t size)
{
	struct core_srq_device *device = &srq->device;
	struct core_recv_queue queue;
	uint32_t *next;

	if (size <= device->slots)
		return true;
	if (!core_recv_queue_alloc(&queue, (DAT_COUNT)size, (DAT_COUNT)srq->iov_max))
		return false;
	next = realloc(device->next, size * sizeof(*next));
	if (!next) {
		core_recv_queue_free(&queue);
		return false;
	}
	device->next = next;
	for (uint32_t i = 0; i < device->slots; i++)
		core_recv_queue_put(&queue, i, &srq->queue.slots[i]);
	for (uint32_t i = size; i > device->slots; i--)
		slot_free(device, i - 1);
	device->slots = size;
	core_recv_queue_free(&srq->queue);
	srq->queue = queue;
	return true;
}

/* --- calls from the transport --- */

void core_srq_fill(struct core_srq *srq, struct core_srq_user *user, uint32_t index)
{
	core_lock_acquire(&srq->cell->lock);
	core_srq_copy_buffer_locked(user, &srq->queue.slots[index]);
	slot_free(&srq->device, index);
	srq->device.available--;
	device_refill(srq);
	core_srq_check_watermark_locked(srq);
	core_lock_release(&srq->cell->lock);
}

void core_srq_discard(struct core_ref ref, uint32_t index)
{
	struct core_srq *srq = core_handle_lock_ref(ref, DAT_HANDLE_TYPE_SRQ);

	if (!srq)
		return;
	slot_free(&srq->device, index);
	srq->device.available--;
	srq->outstanding--;
	device_refill(srq);
	core_srq_check_watermark_locked(srq);
	core_handle_unlock(ref.cell);
}
