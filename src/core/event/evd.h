// SPDX-License-Identifier: BSD-2-Clause
/*
 * The EVD (event dispatcher): a bounded ring of events, allocated at creation, and at most one
 * direct waiter. The lock of its cell (rank 7) guards all members unless marked otherwise.
 */
#ifndef CORE_EVD_H
#define CORE_EVD_H

#include "core/base/handle.h"
#include "core/base/waker.h"
#include "core/event/cno.h"

struct core_ia;

/*
 * The kinds of stream that feed an EVD. An EVD with a SOLICITED stream may have no stream of
 * another kind (EP-CREATE-71 to -75). Waiting with a threshold needs PLAIN streams only
 * (EVD-WAIT-13).
 */
enum core_stream {
	CORE_STREAM_PLAIN, /* completions of a default or EVD_THRESHOLD queue; all other events */
	CORE_STREAM_UNSIGNALLED, /* completions of an UNSIGNALLED queue */
	CORE_STREAM_SOLICITED,	 /* Receive completions of a SOLICITED_WAIT queue */
	CORE_STREAM_KINDS,
};

/* The slow_reasons (core_handle) of an EVD. */
enum core_evd_slow {
	CORE_EVD_SLOW_WAITER = 1, /* a thread waits on it */
	CORE_EVD_SLOW_CNO = 2,	  /* it has a CNO, which events must trigger */
};

/* A queued event. */
struct core_event {
	DAT_EVENT event;
	/* of a Receive from an SRQ: that SRQ, which gets the entry back when the event is taken */
	struct core_ref srq;
};

enum core_release {
	CORE_RELEASE_NONE,
	CORE_RELEASE_EVENT,	 /* a notifying event reached the threshold */
	CORE_RELEASE_UNWAITABLE, /* dat_evd_set_unwaitable; a later clear changes nothing */
};

struct core_evd {
	/* set at creation */
	struct core_handle *cell;
	struct core_ia *ia;
	DAT_EVD_FLAGS flags;

	struct core_event *ring;
	uint32_t capacity; /* what evd_qlen reports */
	uint32_t mask;	   /* ring size - 1; the size is a power of two, at least capacity */
	uint64_t head, tail;
	/*
	 * The endpoint whose completion a poll on the fast path last gave to its caller, or NULL.
	 * Polls of the transport check it first. Its cell may hold another object by now
	 */
	struct core_handle *last_ep;
	struct core_cno *cno;  /* or NULL */
	bool is_last_repeated; /* the last poll found work there, and others were active */
	bool is_enabled;
	bool is_waitable;
	bool is_overflowed; /* an overflow was reported and no event taken since (EVD-STREAM-31) */
	bool is_dying;	    /* the handle is dead; waiters and pollers must leave */
	uint32_t users[CORE_STREAM_KINDS];

	/* the direct waiter */
	bool has_waiter;
	enum core_release release; /* why it has to return */
	DAT_COUNT threshold;
	uint64_t wakeups; /* of waiters so far, for dat_stat */
	struct core_waker waker;

	struct core_trigger trigger; /* guarded by the lock of `cno` */
	bool has_detached_triggers;  /* CNOs that it used before may have queued triggers of it */

	uint32_t busy;	     /* threads that use the EVD without its lock */
	pthread_cond_t idle; /* busy fell to 0 while dying */
};

/* Creates an EVD, for dat_evd_create and for the core's own asynchronous EVD. */
DAT_RETURN core_evd_new(struct core_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags,
			struct core_cno *cno, struct core_evd **evd_out);
/* Requeues a trigger of the EVD, if that is still live: the waiter that had it was cancelled. */
void core_evd_return_trigger(DAT_EVD_HANDLE handle, struct core_cno *cno);
/* Destroys an EVD whose handle is dead. Releases waiters, rejects queued connection requests. */
void core_evd_destroy(struct core_evd *evd);

/* Is it a live EVD of the instance with all the flags of `need`? */
bool core_evd_suits(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need);
enum core_evd_fit {
	CORE_EVD_FITS,
	CORE_EVD_UNFIT,	   /* the handle is not a live EVD of the instance with the needed flags */
	CORE_EVD_CONFLICT, /* its other streams are incompatible */
};

/* Attaches a stream to the EVD, which must have all the flags of `need`. */
enum core_evd_fit core_evd_attach(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need,
				  enum core_stream stream, struct core_evd **evd_out);
/*
 * The same for an endpoint that replaces its streams. `leaving` counts those that it will detach
 * from the EVD, by kind. They do not conflict with the new one.
 */
enum core_evd_fit core_evd_attach_for(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need,
				      enum core_stream stream,
				      const uint32_t leaving[CORE_STREAM_KINDS],
				      struct core_evd **evd_out);
void core_evd_reattach(struct core_evd *evd, enum core_stream stream);
void core_evd_detach(struct core_evd *evd, enum core_stream stream);

/* Uses an EVD of another instance of the same adapter for the asynchronous events of `ia`, and ends
 * that. */
DAT_RETURN core_evd_borrow(DAT_EVD_HANDLE handle, struct core_ia *ia);
void core_evd_unborrow(struct core_ia *ia);

/* Queues an event and fills in its evd_handle. A full queue is an overflow. Locks of a smaller rank
 * may be held. */
void core_evd_post(struct core_evd *evd, DAT_EVENT *event, bool is_notifying);
/* The same for a locked EVD. Drops the event silently if the queue is full (asynchronous EVD). */
void core_evd_post_locked(struct core_evd *evd, DAT_EVENT *event);
/* The same, but returns false if the queue is full. */
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

/* Takes the first event and unlocks the EVD. This and the next function are not inlined, because
 * they would enlarge the stack frame of the fast path. */
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

/* Do its events wake a thread that waits, or trigger a CNO? Not locked: the answer may be old. */
static inline bool core_evd_is_watched(const struct core_evd *evd)
{
	return !core_is_same_32(&evd->cell->state, CORE_TAG(DAT_HANDLE_TYPE_EVD));
}

static inline uint32_t core_evd_count_locked(const struct core_evd *evd)
{
	return (uint32_t)(evd->tail - evd->head);
}

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
				     DAT_EP_HANDLE ep_handle, DAT_DTO_COOKIE cookie,
				     DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len)
{
	DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;

	event->event_number = DAT_DTO_COMPLETION_EVENT;
	/* relaxed: only keeps the compiler from combining the stores */
	__atomic_store_n(&event->evd_handle, evd_handle, __ATOMIC_RELAXED);
	__atomic_store_n(&data->ep_handle, ep_handle, __ATOMIC_RELAXED);
	data->user_cookie = cookie;
	data->status = status;
	data->transfered_length = len;
}

/* Queues the completion of a transfer. The queue must not be full. `srq`: the SRQ of a Receive. */
CORE_INLINE void core_evd_put_dto_locked(struct core_evd *evd, DAT_EP_HANDLE ep_handle,
					 DAT_DTO_COOKIE cookie, DAT_DTO_COMPLETION_STATUS status,
					 DAT_VLEN len, struct core_ref srq)
{
	struct core_event *slot = core_evd_slot_locked(evd);

	core_event_fill_dto(&slot->event, evd->cell, ep_handle, cookie, status, len);
	slot->srq = srq;
}

/* The same, but handles a full queue and notifies the waiter or the CNO. Locks the EVD itself. */
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

/* What a poll by a dequeue on the fast path found (data_path.h). */
enum transport_poll {
	TRANSPORT_POLL_FOUND, /* a completion; the event is filled in */
	TRANSPORT_POLL_EMPTY, /* nothing */
	TRANSPORT_POLL_SLOW,  /* work that needs the slow path: progress() */
};

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
				 DAT_EP_HANDLE ep_handle, DAT_DTO_COOKIE cookie, DAT_VLEN len);

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
				      DAT_EP_HANDLE ep_handle, DAT_DTO_COOKIE cookie, DAT_VLEN len)
{
	if (!core_evd_is_direct(evd, dequeue))
		return core_evd_deliver_dto_queued(evd, dequeue->cell, ep_handle, cookie, len);
	core_event_fill_dto(dequeue->event, dequeue->cell, ep_handle, cookie, DAT_DTO_SUCCESS, len);
	dequeue->is_filled = true;
	return true;
}

#endif
