// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues: the dat_srq calls, the wait list, and queues of a device (srq.h). */
#include "core/srq/srq.h"

#include <stdlib.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/hooks.h"
#include "core/base/probe.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/event/evd_queue.h"
#include "core/mem/mem.h"
#include "core/mem/pz.h"

/* --- buffers --- */

/* SRQ-LW-02: one event each time the watermark is set. */
static void srq_check_watermark_locked(struct core_srq *srq)
{
	if (!srq->is_armed || (DAT_COUNT)core_srq_available_locked(srq) >= srq->low_watermark)
		return;
	srq->is_armed = false;
	core_ia_async_event(srq->ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, srq->cell,
			    DAT_SRQ_LOW_WATERMARK_EVENT);
}

static void srq_copy_buffer_locked(struct core_srq_user *user, const struct core_wqe *wqe)
{
	core_wqe_copy(&user->taken, wqe);
	user->has_taken = true;
}

/* --- the wait list --- */

/* The number of waiting endpoints ahead of this one: all of them, if it is not on the list. */
static uint32_t srq_place_locked(const struct core_srq *srq, const struct core_srq_user *user)
{
	uint32_t place = 0;

	if (!user->is_waiting)
		return srq->waiting;
	for (const struct core_srq_user *i = srq->first_waiting; i != user; i = i->next)
		place++;
	return place;
}

static void srq_add_waiter_locked(struct core_srq *srq, struct core_srq_user *user)
{
	user->is_offered = false;
	if (user->is_waiting)
		return;
	user->is_waiting = true;
	user->next = NULL;
	if (srq->last_waiting)
		srq->last_waiting->next = user;
	else
		srq->first_waiting = user;
	srq->last_waiting = user;
	srq->waiting++;
}

static void srq_remove_waiter_locked(struct core_srq *srq, struct core_srq_user *user)
{
	struct core_srq_user *previous = NULL;

	if (!user->is_waiting)
		return;
	for (struct core_srq_user *i = srq->first_waiting; i != user; i = i->next)
		previous = i;
	if (previous)
		previous->next = user->next;
	else
		srq->first_waiting = user->next;
	if (srq->last_waiting == user)
		srq->last_waiting = previous;
	user->is_waiting = false;
	srq->waiting--;
}

/* The first endpoint that may take a buffer and was not offered one yet. */
static struct core_ref srq_offer_next_locked(struct core_srq *srq)
{
	uint32_t entitled = core_srq_available_locked(srq);
	struct core_ref none = {NULL, 0};

	for (struct core_srq_user *i = srq->first_waiting; i && entitled; i = i->next, entitled--) {
		if (i->is_offered)
			continue;
		i->is_offered = true;
		return core_handle_ref(i->cell);
	}
	return none;
}

void core_srq_end_offer(struct core_srq *srq, struct core_srq_user *user)
{
	/* it waits again: is_offered may belong to the next offer, of another thread */
	if (user->has_asked)
		return;
	core_lock_acquire(&srq->cell->lock);
	if (user->is_offered)
		srq_remove_waiter_locked(srq, user);
	core_lock_release(&srq->cell->lock);
}

void core_srq_serve(struct core_ref srq_ref)
{
	struct core_srq *srq;
	struct core_ref user;

	while ((srq = core_handle_lock_ref(srq_ref, DAT_HANDLE_TYPE_SRQ))) {
		user = srq_offer_next_locked(srq);
		core_handle_unlock(srq_ref.cell);
		if (!user.cell)
			return;
		core_hooks.srq_offer(user);
	}
}

void core_srq_serve_all(struct core_ia *ia)
{
	struct core_ref ref;
	uint64_t removed;

	do { /* repeats if an SRQ was freed meanwhile, because the next one may have been skipped */
		removed = core_ia_removed(ia, DAT_HANDLE_TYPE_SRQ);
		for (uint32_t i = 0; core_ia_nth(ia, DAT_HANDLE_TYPE_SRQ, i, &ref); i++)
			core_srq_serve(ref);
	} while (core_ia_removed(ia, DAT_HANDLE_TYPE_SRQ) != removed);
}

bool core_srq_take(struct core_srq *srq, struct core_srq_user *user)
{
	bool is_entitled;

	user->has_asked = true;
	core_lock_acquire(&srq->cell->lock);
	is_entitled = srq_place_locked(srq, user) < core_srq_available_locked(srq);
	if (is_entitled) {
		srq_remove_waiter_locked(srq, user);
		srq_copy_buffer_locked(user,
				       &srq->queue.slots[srq->queue.head++ & srq->queue.mask]);
		srq_check_watermark_locked(srq);
	} else {
		srq_add_waiter_locked(srq, user);
	}
	core_lock_release(&srq->cell->lock);
	return is_entitled;
}

void core_srq_cancel_wait(struct core_srq *srq, struct core_srq_user *user)
{
	bool is_next_entitled;

	core_lock_acquire(&srq->cell->lock);
	is_next_entitled = user->is_waiting && core_srq_available_locked(srq);
	srq_remove_waiter_locked(srq, user);
	core_lock_release(&srq->cell->lock);
	if (is_next_entitled) /* no endpoint can be locked here, so kick serves the next one */
		transport_this->kick(srq->ia);
}

/*
 * --- queues of a device that assigns buffers to messages ---
 *
 * The core keeps each buffer in a slot and posts the slot's index to the device. The transport
 * reports the index when a message has filled the buffer, in any order. Buffers that the device's
 * queue has no room for wait here. All functions but core_srq_fill and core_srq_discard are called
 * with the SRQ locked, or not yet published.
 */

static bool srq_device_init(struct core_srq *srq)
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

static void srq_device_fini(struct core_srq *srq)
{
	free(srq->device.next);
}

/* A free slot for the next buffer, of so many segments. srq_device_add has to follow. */
static struct core_wqe *srq_device_slot(struct core_srq *srq, uint32_t segments,
					uint32_t *index_out)
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

		if (transport_this->srq_post(srq, index, &srq->queue.slots[index]))
			return;
		device->first_waiting = device->next[index];
		if (!device->first_waiting)
			device->last_waiting = 0;
	}
}

static void srq_device_add(struct core_srq *srq, uint32_t index)
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

/* Adds slots. The buffers keep their indices, because the device knows them. */
static bool srq_device_grow(struct core_srq *srq, uint32_t size)
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

void core_srq_fill(struct core_srq *srq, struct core_srq_user *user, uint32_t index)
{
	core_lock_acquire(&srq->cell->lock);
	srq_copy_buffer_locked(user, &srq->queue.slots[index]);
	slot_free(&srq->device, index);
	srq->device.available--;
	device_refill(srq);
	srq_check_watermark_locked(srq);
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
	srq_check_watermark_locked(srq);
	core_handle_unlock(ref.cell);
}

/* --- creation --- */

static const struct core_arg srq_recv_dtos = {"dat_srq_create", "srq_attr: max_recv_dtos", 3};
static const struct core_arg srq_recv_iov = {"dat_srq_create", "srq_attr: max_recv_iov", 3};

static DAT_RETURN srq_check_attr(const struct core_ia *ia, const DAT_SRQ_ATTR *attr,
				 const DAT_SRQ_HANDLE *handle)
{
	if (!attr)
		return core_bad_null(CORE_ARG(srq_create, 3, srq_attr));
	if (!handle)
		return core_bad_null(CORE_ARG(srq_create, 4, srq_handle));
	if (attr->max_recv_dtos <= 0 || attr->max_recv_dtos > ia->attr.max_recv_per_srq)
		return core_bad_range(&srq_recv_dtos, attr->max_recv_dtos, 1,
				      ia->attr.max_recv_per_srq);
	if (attr->max_recv_iov <= 0 || attr->max_recv_iov > ia->attr.max_iov_segments_per_dto)
		return core_bad_range(&srq_recv_iov, attr->max_recv_iov, 1,
				      ia->attr.max_iov_segments_per_dto);
	return attr->low_watermark == DAT_SRQ_LW_DEFAULT
		       ? DAT_SUCCESS
		       : core_bad_arg(CORE_ARG(srq_create, 3, srq_attr),
				      "low_watermark %d is not DAT_SRQ_LW_DEFAULT",
				      (int)attr->low_watermark);
}

static DAT_RETURN srq_new(struct core_ia *ia, struct core_pz *pz, const DAT_SRQ_ATTR *attr,
			  struct core_srq **srq_out)
{
	struct core_srq *srq = calloc(1, sizeof(*srq));
	DAT_RETURN ret = core_no_resources(DAT_RESOURCE_SRQ);

	if (!srq)
		return ret;
	srq->ia = ia;
	srq->pz = pz;
	srq->iov_max = (uint32_t)attr->max_recv_iov;
	if (!core_recv_queue_alloc(&srq->queue, attr->max_recv_dtos, attr->max_recv_iov))
		goto free_srq;
	srq->cell = core_handle_alloc(&ia->adapter->provider, ia, srq);
	if (!srq->cell)
		goto free_queue;
	ret = core_status_from_errno(transport_this->srq_create(srq));
	if (ret != DAT_SUCCESS)
		goto release_cell;
	ret = core_no_resources(DAT_RESOURCE_SRQ);
	if (!srq_device_init(srq))
		goto destroy_transport;
	ret = core_ia_add(ia, srq->cell, DAT_HANDLE_TYPE_SRQ);
	if (ret != DAT_SUCCESS)
		goto fini_device;
	*srq_out = srq;
	return DAT_SUCCESS;

fini_device:
	srq_device_fini(srq);
destroy_transport:
	transport_this->srq_destroy(srq);
release_cell:
	core_handle_release(srq->cell);
free_queue:
	core_recv_queue_free(&srq->queue);
free_srq:
	free(srq);
	return ret;
}

DAT_RETURN core_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *srq_attr,
			   DAT_SRQ_HANDLE *srq_handle)
{
	CORE_NO_CANCELLATION;
	struct core_ia *ia = core_ia_enter(ia_handle);
	struct core_srq *srq = NULL;
	struct core_pz *pz;
	DAT_RETURN ret;

	if (!ia)
		return core_bad_handle(CORE_ARG(srq_create, 1, ia_handle), DAT_INVALID_HANDLE_IA,
				       ia_handle);
	if (!ia->provider_attr.srq_supported) { /* SRQ-GEN-02 */
		core_ia_leave(ia);
		return core_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	}
	pz = core_pz_use(pz_handle, ia);
	if (!pz) {
		core_ia_leave(ia);
		return core_bad_handle(CORE_ARG(srq_create, 2, pz_handle), DAT_INVALID_HANDLE_PZ,
				       pz_handle);
	}
	ret = srq_check_attr(ia, srq_attr, srq_handle);
	if (ret == DAT_SUCCESS)
		ret = srq_new(ia, pz, srq_attr, &srq);
	if (ret == DAT_SUCCESS)
		*srq_handle = srq->cell;
	else
		core_pz_unuse(pz);
	core_ia_leave(ia);
	return ret;
}

void core_srq_destroy_locked(struct core_srq *srq)
{
	struct core_handle *cell = srq->cell;
	struct core_ia *ia = srq->ia;

	core_handle_kill_locked(cell);
	core_handle_unlock(cell);
	transport_this->srq_destroy(srq);
	srq_device_fini(srq);
	core_pz_unuse(srq->pz);
	core_recv_queue_free(&srq->queue);
	free(srq);
	core_ia_remove(ia, cell, DAT_HANDLE_TYPE_SRQ);
	core_handle_release(cell);
}

DAT_RETURN core_srq_free(DAT_SRQ_HANDLE srq_handle)
{
	CORE_NO_CANCELLATION;
	struct core_srq *srq = core_handle_lock(srq_handle, DAT_HANDLE_TYPE_SRQ);

	if (!srq)
		return core_bad_handle(CORE_ARG(srq_free, 1, srq_handle), DAT_INVALID_HANDLE_SRQ,
				       srq_handle);
	if (srq->users) {
		core_handle_unlock(srq->cell);
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	}
	core_srq_destroy_locked(srq);
	return DAT_SUCCESS;
}

/* --- endpoints --- */

DAT_RETURN core_srq_use(DAT_SRQ_HANDLE handle, struct core_ia *ia, struct core_srq **srq_out)
{
	struct core_srq *srq = core_handle_lock_in(handle, DAT_HANDLE_TYPE_SRQ, ia);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!srq)
		return core_bad_handle(CORE_ARG(ep_create_with_srq, 6, srq_handle),
				       DAT_INVALID_HANDLE_SRQ, handle);
	if (srq->users >= (uint32_t)ia->attr.max_ep_per_srq)
		ret = core_no_resources(DAT_RESOURCE_SRQ);
	else
		srq->users++;
	core_handle_unlock(srq->cell);
	if (ret == DAT_SUCCESS)
		*srq_out = srq;
	return ret;
}

void core_srq_unuse(struct core_srq *srq)
{
	core_lock_acquire(&srq->cell->lock);
	srq->users--;
	core_lock_release(&srq->cell->lock);
}

/* SRQ-USE-15 */
void core_srq_failed(struct core_ref ref)
{
	struct core_srq *srq = core_handle_lock_ref(ref, DAT_HANDLE_TYPE_SRQ);

	if (!srq)
		return;
	if (!srq->has_failed)
		core_ia_async_event(srq->ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, srq->cell,
				    DAT_SRQ_OTHER_ERROR);
	srq->has_failed = true;
	core_handle_unlock(ref.cell);
}

void core_srq_return_one(struct core_srq *srq)
{
	core_lock_acquire(&srq->cell->lock);
	srq->outstanding--;
	core_lock_release(&srq->cell->lock);
}

void core_srq_return(struct core_ref ref)
{
	struct core_srq *srq = core_handle_lock_ref(ref, DAT_HANDLE_TYPE_SRQ);

	if (!srq)
		return;
	srq->outstanding--;
	core_handle_unlock(ref.cell);
}

/* --- posting --- */

static DAT_RETURN srq_check_segments(struct core_srq *srq, DAT_COUNT count,
				     const DAT_LMR_TRIPLET *iov, DAT_VLEN *len_out)
{
	DAT_RETURN ret;

	*len_out = 0;
	if (count < 0 || (uint32_t)count > srq->iov_max)
		return core_bad_range(CORE_ARG(srq_post_recv, 2, num_segments), count, 0,
				      srq->iov_max);
	if (count && !iov)
		return core_bad_null(CORE_ARG(srq_post_recv, 3, local_iov));
	for (DAT_COUNT i = 0; i < count; i++) {
		ret = core_mem_check(srq->ia->mem, &iov[i], srq->pz, CORE_MEM_TARGET);
		if (ret != DAT_SUCCESS)
			return ret;
		*len_out += iov[i].segment_length; /* no overflow: see dto_check_iov */
	}
	return DAT_SUCCESS;
}

static DAT_RETURN srq_post_locked(struct core_srq *srq, DAT_COUNT count, const DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie)
{
	struct core_recv_queue *queue = &srq->queue;
	struct core_wqe *wqe;
	uint32_t index = 0;
	DAT_RETURN ret;
	DAT_VLEN len;

	ret = srq_check_segments(srq, count, iov, &len);
	if (ret != DAT_SUCCESS)
		return ret;
	if (srq->outstanding >= queue->capacity)
		return core_no_resources(DAT_RESOURCE_SRQ);
	wqe = srq->transport ? srq_device_slot(srq, (uint32_t)count, &index)
			     : core_recv_queue_slot(queue, queue->tail, (uint32_t)count);
	wqe->segments = core_copy_segments(wqe->iov, iov, count, len);
	wqe->len = len;
	wqe->cookie = cookie;
	wqe->flags = DAT_COMPLETION_DEFAULT_FLAG;
	CORE_PROBE3(srq_post, srq->cell, cookie.as_64, len);
	if (srq->transport)
		srq_device_add(srq, index);
	else
		queue->tail++;
	srq->outstanding++;
	return DAT_SUCCESS;
}

DAT_RETURN core_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
			      DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie)
{
	struct core_srq *srq = core_handle_lock(srq_handle, DAT_HANDLE_TYPE_SRQ);
	bool has_waiting = false;
	struct core_ref ref;
	DAT_RETURN ret;

	if (!srq)
		return core_bad_handle(CORE_ARG(srq_post_recv, 1, srq_handle),
				       DAT_INVALID_HANDLE_SRQ, srq_handle);
	ref = core_handle_ref(srq->cell);
	ret = srq_post_locked(srq, num_segments, local_iov, user_cookie);
	has_waiting = srq->waiting;
	core_handle_unlock(ref.cell);
	if (ret == DAT_SUCCESS && has_waiting)
		core_srq_serve(ref);
	return ret;
}

/* --- query, resize, watermark --- */

DAT_RETURN core_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	CORE_NO_CANCELLATION;
	struct core_srq *srq = core_handle_lock(srq_handle, DAT_HANDLE_TYPE_SRQ);
	DAT_RETURN ret;

	if (!srq)
		return core_bad_handle(CORE_ARG(srq_query, 1, srq_handle), DAT_INVALID_HANDLE_SRQ,
				       srq_handle);
	ret = core_check_query(CORE_ARG(srq_query, 2, srq_param_mask), mask, DAT_SRQ_FIELD_ALL,
			       CORE_ARG(srq_query, 3, srq_param), param);
	if (ret == DAT_SUCCESS) {
		param->ia_handle = srq->ia->cell;
		param->srq_state =
			srq->has_failed ? DAT_SRQ_STATE_ERROR : DAT_SRQ_STATE_OPERATIONAL;
		param->pz_handle = srq->pz->cell;
		param->max_recv_dtos = (DAT_COUNT)srq->queue.capacity;
		param->max_recv_iov = (DAT_COUNT)srq->iov_max;
		param->low_watermark = srq->low_watermark;
		param->available_dto_count = (DAT_COUNT)core_srq_available_locked(srq);
		param->outstanding_dto_count = (DAT_COUNT)srq->outstanding;
	}
	core_handle_unlock(srq->cell);
	return ret;
}

static DAT_RETURN srq_resize_locked(struct core_srq *srq, DAT_COUNT size)
{
	struct core_recv_queue queue;

	if (size <= 0 || size > srq->ia->attr.max_recv_per_srq)
		return core_bad_range(CORE_ARG(srq_resize, 2, srq_max_recv_dto), size, 1,
				      srq->ia->attr.max_recv_per_srq);
	if ((uint32_t)size < srq->outstanding || size < srq->low_watermark)
		return core_error(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	if ((uint32_t)size == srq->queue.capacity)
		return DAT_SUCCESS;
	if (srq->transport) {
		if (!srq_device_grow(srq, (uint32_t)size))
			return core_no_resources(DAT_RESOURCE_SRQ);
		srq->queue.capacity = (uint32_t)size;
		return DAT_SUCCESS;
	}
	if (!core_recv_queue_alloc(&queue, size, (DAT_COUNT)srq->iov_max))
		return core_no_resources(DAT_RESOURCE_SRQ);
	core_recv_queue_move(&queue, &srq->queue);
	core_recv_queue_free(&srq->queue);
	srq->queue = queue;
	return DAT_SUCCESS;
}

DAT_RETURN core_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto)
{
	CORE_NO_CANCELLATION;
	struct core_srq *srq = core_handle_lock(srq_handle, DAT_HANDLE_TYPE_SRQ);
	DAT_RETURN ret;

	if (!srq)
		return core_bad_handle(CORE_ARG(srq_resize, 1, srq_handle), DAT_INVALID_HANDLE_SRQ,
				       srq_handle);
	ret = srq_resize_locked(srq, srq_max_recv_dto);
	core_handle_unlock(srq->cell);
	return ret;
}

DAT_RETURN core_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark)
{
	CORE_NO_CANCELLATION;
	struct core_srq *srq = core_handle_lock(srq_handle, DAT_HANDLE_TYPE_SRQ);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!srq)
		return core_bad_handle(CORE_ARG(srq_set_lw, 1, srq_handle), DAT_INVALID_HANDLE_SRQ,
				       srq_handle);
	if (low_watermark < 0 || (uint32_t)low_watermark > srq->queue.capacity) {
		ret = core_bad_range(CORE_ARG(srq_set_lw, 2, low_watermark), low_watermark, 0,
				     srq->queue.capacity);
	} else {
		srq->low_watermark = low_watermark;
		srq->is_armed = low_watermark != DAT_SRQ_LW_DEFAULT;
		srq_check_watermark_locked(srq);
	}
	core_handle_unlock(srq->cell);
	return ret;
}
