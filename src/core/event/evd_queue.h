// SPDX-License-Identifier: BSD-2-Clause
/*
 * The queue of events of an EVD: posting, dequeuing, and the asynchronous events of an instance,
 * which are errors and watermarks that neither a call nor a completion reports.
 */
#ifndef CORE_EVD_QUEUE_H
#define CORE_EVD_QUEUE_H

#include "core/event/evd.h"

/* Queues an event and fills in its evd_handle. A full queue is an overflow. Locks of a smaller rank
 * may be held. */
void core_evd_post(struct core_evd *evd, DAT_EVENT *event, bool is_notifying);
/* core_evd_post, but returns false if the queue is full. */
bool core_evd_try_post(struct core_evd *evd, DAT_EVENT *event);

/* Notifies the waiter or the CNO of an event that was queued. */
void core_evd_notify_locked(struct core_evd *evd);
/* An event was lost because the queue is full. Reports it and unlocks the EVD. */
void core_evd_overflow_locked(struct core_evd *evd, struct core_ref srq);

/*
 * Takes the first event of a locked EVD, which is not empty. If the result has a cell, the caller
 * passes it to core_hooks.srq_return() once it holds no lock.
 */
struct core_ref core_evd_take_locked(struct core_evd *evd, DAT_EVENT *event);

/* Takes the first event for a dequeue and unlocks the EVD. This and the next function are not
 * inlined, because they would enlarge the stack frame of the fast path. */
__attribute__((noinline)) DAT_RETURN core_evd_take_queued(struct core_evd *evd, DAT_EVENT *event);
/* The slow path of dat_evd_dequeue: drives the transport if the queue is empty, then takes an
 * event. */
__attribute__((noinline, cold)) DAT_RETURN core_evd_dequeue_slow(DAT_EVD_HANDLE handle,
								 DAT_EVENT *event);

/* A thread calls these before and after it uses the EVD without its lock. The EVD is not freed in
 * between. */
void core_evd_busy_locked(struct core_evd *evd);
void core_evd_idle_locked(struct core_evd *evd);

/* Drives the transport, and arms it as for a thread that goes to sleep. False: there was new work
 * each time. No lock held. */
bool core_evd_drive_and_arm(struct core_ia *ia);

/* Drives the transport once. Releases the lock meanwhile; it is held again at return. False: the
 * EVD was freed meanwhile. */
bool core_evd_drive_locked(struct core_evd *evd);

/* Requeues a trigger of the EVD, if that is still live: the waiter that had it was cancelled. */
void core_evd_return_trigger(DAT_EVD_HANDLE handle, struct core_cno *cno);
/*
 * Posts an event about the whole adapter, or about one object, to the instance's asynchronous EVD.
 * Dropped if there is none. No lock of a rank above 4 held.
 */
void core_ia_async_event(struct core_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE object,
			 DAT_COUNT reason);

/* The next slot for an event. The queue must not be full. */
CORE_INLINE struct core_event *core_evd_slot_locked(struct core_evd *evd)
{
	return &evd->ring[evd->tail++ & evd->mask];
}

/*
 * Stores member by member. The compiler must not copy members in wider pieces: a wide load of
 * members that were just stored one by one is not forwarded from the store buffer. It waits until
 * all earlier stores, such as those of a message just sent, have reached the cache.
 */
CORE_INLINE void core_event_fill_dto(DAT_EVENT *event, DAT_EVD_HANDLE evd_handle,
				     DAT_EP_HANDLE ep_handle, struct core_done done,
				     DAT_DTO_COOKIE cookie, DAT_DTO_COMPLETION_STATUS status,
				     DAT_VLEN len)
{
	DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;

	event->event_number = DAT_DTO_COMPLETION_EVENT;
	core_event_note(event)->op = done.op;
	/* the fast paths have none, and store none */
	if (!__builtin_constant_p(done.value) || done.value)
		core_event_note(event)->value = done.value;
	/* relaxed: only keeps the compiler from combining the stores */
	__atomic_store_n(&event->evd_handle, evd_handle, __ATOMIC_RELAXED);
	__atomic_store_n(&data->ep_handle, ep_handle, __ATOMIC_RELAXED);
	data->user_cookie = cookie;
	data->status = status;
	data->transfered_length = len;
}

/* Queues the completion of a transfer. The queue must not be full. `srq`: the SRQ of a Receive. */
CORE_INLINE void core_evd_put_dto_locked(struct core_evd *evd, DAT_EP_HANDLE ep_handle,
					 struct core_done done, DAT_DTO_COOKIE cookie,
					 DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len,
					 struct core_ref srq)
{
	struct core_event *slot = core_evd_slot_locked(evd);

	core_event_fill_dto(&slot->event, evd->cell, ep_handle, done, cookie, status, len);
	slot->srq = srq;
}

/* Queues a completion in an EVD that it locks, full or not; notifies the waiter or the CNO. */
CORE_INLINE void core_evd_post_dto(struct core_evd *evd, DAT_EP_HANDLE ep_handle,
				   struct core_done done, DAT_DTO_COOKIE cookie,
				   DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len,
				   bool is_notifying, struct core_ref srq)
{
	struct core_handle *cell = evd->cell;

	core_lock_acquire(&cell->lock);
	if (core_evd_count_locked(evd) >= evd->capacity) {
		core_evd_overflow_locked(evd, srq);
		return;
	}
	core_evd_put_dto_locked(evd, ep_handle, done, cookie, status, len, srq);
	if (cell->slow_reasons && is_notifying)
		core_evd_notify_locked(evd);
	core_lock_release(&cell->lock);
}

/*
 * A dequeue on the fast path. It has locked an EVD whose queue was empty. The first completion goes
 * directly to the caller.
 */
struct core_dequeue {
	struct core_handle *cell; /* of the EVD */
	DAT_EVENT *event;	  /* the caller's */
	bool is_filled;
};

/* core_evd_deliver_dto for a completion that must be queued. `locked`: the EVD that the dequeue has
 * locked. */
bool core_evd_deliver_dto_queued(struct core_evd *evd, const struct core_handle *locked,
				 DAT_EP_HANDLE ep_handle, struct core_done done,
				 DAT_DTO_COOKIE cookie, DAT_VLEN len);

/* Does the next completion of this EVD go directly to the caller of the dequeue? */
CORE_INLINE bool core_evd_is_direct(const struct core_evd *evd, const struct core_dequeue *dequeue)
{
	return evd->cell == dequeue->cell && !dequeue->is_filled;
}

/*
 * Delivers a successful completion that a dequeue found while polling: to its caller if it is the
 * first one for the EVD of the dequeue, else to the queue of the EVD. False, with nothing changed:
 * the queue is full, or the completion is for another EVD that cannot be entered on its fast path.
 */
CORE_INLINE bool core_evd_deliver_dto(struct core_evd *evd, struct core_dequeue *dequeue,
				      DAT_EP_HANDLE ep_handle, struct core_done done,
				      DAT_DTO_COOKIE cookie, DAT_VLEN len)
{
	if (!core_evd_is_direct(evd, dequeue))
		return core_evd_deliver_dto_queued(evd, dequeue->cell, ep_handle, done, cookie,
						   len);
	core_event_fill_dto(dequeue->event, dequeue->cell, ep_handle, done, cookie, DAT_DTO_SUCCESS,
			    len);
	dequeue->is_filled = true;
	return true;
}

#endif
