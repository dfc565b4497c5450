// SPDX-License-Identifier: BSD-2-Clause
/*
 * The event dispatcher: a bounded ring of events, allocated at creation, and at most one direct
 * waiter. All members are guarded by the lock of its cell (rank 7) unless marked otherwise.
 */
#ifndef CORE_EVD_H
#define CORE_EVD_H

#include "core/base/handle.h"
#include "core/base/waker.h"
#include "core/event/cno.h"

struct core_ia;

/*
 * The kinds of stream that feed an EVD. SOLICITED streams share it with their like only
 * (EP-CREATE-71 to -75). Waiting with a threshold needs PLAIN streams throughout (EVD-WAIT-13).
 */
enum core_stream {
	CORE_STREAM_PLAIN,	 /* default or EVD_THRESHOLD flags; events of every other kind */
	CORE_STREAM_UNSIGNALLED, /* completions of an UNSIGNALLED queue */
	CORE_STREAM_SOLICITED,	 /* Receive completions of a SOLICITED_WAIT queue */
	CORE_STREAM_KINDS,
};

/* Reasons against the fast path of a dispatcher: core_handle.slow_reasons. */
enum core_evd_slow {
	CORE_EVD_SLOW_WAITER = 1, /* a thread waits for its events */
	CORE_EVD_SLOW_CNO = 2,	  /* a notification object is to be triggered */
};

/* A queued event. */
struct core_event {
	DAT_EVENT event;
	struct core_ref
		srq; /* a completed Receive of this SRQ: its entry is free when this is taken */
};

enum core_release {
	CORE_RELEASE_NONE,
	CORE_RELEASE_EVENT,	 /* a notifying event reached the threshold */
	CORE_RELEASE_UNWAITABLE, /* dat_evd_set_unwaitable, even if it was cleared again since */
};

struct core_evd {
	/* set at creation */
	struct core_handle *cell;
	struct core_ia *ia;
	DAT_EVD_FLAGS flags;

	struct core_event *ring;
	uint32_t capacity; /* what evd_qlen reports */
	uint32_t mask;	   /* slots of the ring - 1; a power of two of them, at least capacity */
	uint64_t head, tail;
	struct core_cno *cno; /* or NULL */
	bool is_enabled;
	bool is_waitable;
	bool is_overflowed; /* a loss was told and no event was taken since (EVD-STREAM-31) */
	bool is_dying;	    /* the handle is dead; waiters and pollers leave */
	uint32_t users[CORE_STREAM_KINDS];

	/* the direct waiter */
	bool has_waiter;
	enum core_release release; /* why it has to leave */
	DAT_COUNT threshold;
	struct core_waker waker;

	struct core_trigger trigger; /* guarded by the lock of `cno` */
	bool has_past_triggers;	     /* there may be some in other CNOs */

	uint32_t busy;	     /* threads that drive the transport or wait, without the lock */
	pthread_cond_t gone; /* busy fell to 0 while dying */
};

/* Makes an EVD; the core's own use (asynchronous EVD) and that of dat_evd_create. */
DAT_RETURN core_evd_new(struct core_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags,
			struct core_cno *cno, struct core_evd **evd_out);
/* A trigger of that EVD, if it lives, was named to a thread that never took it. */
void core_evd_give_back(DAT_EVD_HANDLE handle, struct core_cno *cno);
/* Destroys an EVD whose cell is dead: waiters leave, queued requests are refused. */
void core_evd_destroy(struct core_evd *evd);

/* Is it a live EVD of the instance with all of `need`? Changes nothing. */
bool core_evd_suits(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need);
/*
 * Ties a stream to the EVD behind the handle. Fails with `bad` when the handle is no live EVD of
 * the instance with all of `need`, with DAT_INVALID_PARAMETER / arg when its streams do not agree.
 */
DAT_RETURN core_evd_attach(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need,
			   enum core_stream stream, DAT_RETURN bad, unsigned int arg,
			   struct core_evd **evd_out);
void core_evd_reattach(struct core_evd *evd, enum core_stream stream);
void core_evd_detach(struct core_evd *evd, enum core_stream stream);

/* Ties the asynchronous events of `ia` to an EVD of another instance of the adapter, and unties. */
DAT_RETURN core_evd_borrow(DAT_EVD_HANDLE handle, struct core_ia *ia);
void core_evd_unborrow(struct core_ia *ia);

/* Queues an event (evd_handle is filled in). A full queue is an overflow. Any lock of a smaller
 * rank may be held. */
void core_evd_post(struct core_evd *evd, DAT_EVENT *event, bool is_notifying);
/* The same with the EVD locked; an overflow is dropped in silence (asynchronous EVD). */
void core_evd_post_locked(struct core_evd *evd, DAT_EVENT *event);
/* The same, but a full queue is just reported. */
bool core_evd_try_post(struct core_evd *evd, DAT_EVENT *event);

/* A notifying event was queued. */
void core_evd_notify_locked(struct core_evd *evd);
/* There is no room for an event. Unlocks. */
void core_evd_overflow_locked(struct core_evd *evd, struct core_ref srq);

/*
 * dat_evd_wait's and dat_evd_dequeue's common part: takes the first event. Locked, not empty. The
 * caller gives the result to core_srq_return() when it holds no lock any more.
 */
struct core_ref core_evd_take_locked(struct core_evd *evd, DAT_EVENT *event);

/* Takes the first event, and unlocks the dispatcher. Not inlined, nor is the next: they would make
 * the frame of the fast path larger. */
__attribute__((noinline)) DAT_RETURN core_evd_take_queued(struct core_evd *evd, DAT_EVENT *event);
/* dat_evd_dequeue without its fast path: drives the transport if nothing is queued, then takes what
 * is there. */
__attribute__((noinline, cold)) DAT_RETURN core_evd_dequeue_any(DAT_EVD_HANDLE handle,
								DAT_EVENT *event);

/* Bracket work without the lock on an EVD that must not vanish meanwhile. */
void core_evd_busy_locked(struct core_evd *evd);
void core_evd_idle_locked(struct core_evd *evd);

/* Drives the transport once, without the lock. False: the EVD died meanwhile (lock still held). */
bool core_evd_drive_locked(struct core_evd *evd);

static inline uint32_t core_evd_count_locked(const struct core_evd *evd)
{
	return (uint32_t)(evd->tail - evd->head);
}

/* A slot for an event, when there is room. */
CORE_INLINE struct core_event *core_evd_slot_locked(struct core_evd *evd)
{
	return &evd->ring[evd->tail++ & evd->mask];
}

/*
 * Written member by member: copied in longer pieces the data would wait until everything that was
 * stored before has left the processor, what was sent included.
 */
CORE_INLINE void core_event_fill_dto(DAT_EVENT *event, DAT_EVD_HANDLE evd_handle,
				     DAT_EP_HANDLE ep_handle, DAT_DTO_COOKIE cookie,
				     DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len)
{
	DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;

	event->event_number = DAT_DTO_COMPLETION_EVENT;
	/* relaxed: this is only to keep the compiler from joining them */
	__atomic_store_n(&event->evd_handle, evd_handle, __ATOMIC_RELAXED);
	__atomic_store_n(&data->ep_handle, ep_handle, __ATOMIC_RELAXED);
	data->user_cookie = cookie;
	data->status = status;
	data->transfered_length = len;
}

/* Queues the completion of a transfer, for which there is room; `srq`: of a Receive of that SRQ. */
CORE_INLINE void core_evd_put_dto_locked(struct core_evd *evd, DAT_EP_HANDLE ep_handle,
					 DAT_DTO_COOKIE cookie, DAT_DTO_COMPLETION_STATUS status,
					 DAT_VLEN len, struct core_ref srq)
{
	struct core_event *slot = core_evd_slot_locked(evd);

	core_event_fill_dto(&slot->event, evd->cell, ep_handle, cookie, status, len);
	slot->srq = srq;
}

/* The same, if there is room, and with the notification that is due. */
CORE_INLINE void core_evd_post_dto(struct core_evd *evd, DAT_EP_HANDLE ep_handle,
				   DAT_DTO_COOKIE cookie, DAT_DTO_COMPLETION_STATUS status,
				   DAT_VLEN len, bool is_notifying, struct core_ref srq)
{
	struct core_handle *cell = evd->cell;

	core_lock_acquire(&cell->lock);
	if (core_evd_count_locked(evd) >= evd->capacity) {
		core_evd_overflow_locked(evd, srq);
		return;
	}
	core_evd_put_dto_locked(evd, ep_handle, cookie, status, len, srq);
	if (cell->slow_reasons && is_notifying)
		core_evd_notify_locked(evd);
	core_lock_release(&cell->lock);
}

/* What a dequeue on its fast path has found (data_path.h). */
enum transport_poll {
	TRANSPORT_POLL_FOUND,	/* the event is filled */
	TRANSPORT_POLL_EMPTY,	/* nothing, and there is nothing to do */
	TRANSPORT_POLL_GENERAL, /* something that progress() has to do */
};

/*
 * A dequeue on its fast path: the dispatcher that it has locked, whose queue was empty, and where
 * its caller wants the event.
 */
struct core_dequeue {
	struct core_handle *cell; /* the dispatcher's */
	DAT_EVENT *event;
	bool is_filled;
};

/* core_evd_give_dto for what does not go straight to the caller; `locked` is the dequeue's. */
bool core_evd_give_dto_queued(struct core_evd *evd, const struct core_handle *locked,
			      DAT_EP_HANDLE ep_handle, DAT_DTO_COOKIE cookie, DAT_VLEN len);

/* Does the caller of that dequeue want the next completion of that dispatcher? */
CORE_INLINE bool core_evd_is_asked(const struct core_evd *evd, const struct core_dequeue *dequeue)
{
	return evd->cell == dequeue->cell && !dequeue->is_filled;
}

/*
 * Gives a good completion that such a dequeue has found to its dispatcher: straight to the caller
 * if it is the first of that dispatcher, else into the queue. False: the queue is full, or the
 * dispatcher is another one that is not on its fast path; nothing has changed.
 */
CORE_INLINE bool core_evd_give_dto(struct core_evd *evd, struct core_dequeue *dequeue,
				   DAT_EP_HANDLE ep_handle, DAT_DTO_COOKIE cookie, DAT_VLEN len)
{
	if (!core_evd_is_asked(evd, dequeue))
		return core_evd_give_dto_queued(evd, dequeue->cell, ep_handle, cookie, len);
	core_event_fill_dto(dequeue->event, dequeue->cell, ep_handle, cookie, DAT_DTO_SUCCESS, len);
	dequeue->is_filled = true;
	return true;
}

#endif
