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

/*
 * What generations after DAT 1.2 tell of a completion beyond it. It is kept in the padding of
 * DAT_EVENT, so a queued event takes a cache line for all of them; a consumer of DAT 1.2 does not
 * look at it.
 */
struct core_note {
	DAT_EVENT_NUMBER event_number;
	uint32_t op; /* enum core_op, or enum core_received */
	DAT_EVD_HANDLE evd_handle;
	DAT_EP_HANDLE ep_handle;
	DAT_DTO_COOKIE user_cookie;
	DAT_DTO_COMPLETION_STATUS status;
	uint32_t value; /* of the operations that have one */
	DAT_VLEN transfered_length;
};

#define CORE_NOTE_CHECK(member, place)                                                             \
	_Static_assert(offsetof(struct core_note, member) == offsetof(DAT_EVENT, place),           \
		       "the layout of DAT_EVENT");
CORE_NOTE_CHECK(evd_handle, evd_handle)
CORE_NOTE_CHECK(ep_handle, event_data.dto_completion_event_data.ep_handle)
CORE_NOTE_CHECK(user_cookie, event_data.dto_completion_event_data.user_cookie)
CORE_NOTE_CHECK(status, event_data.dto_completion_event_data.status)
CORE_NOTE_CHECK(transfered_length, event_data.dto_completion_event_data.transfered_length)
#undef CORE_NOTE_CHECK

/* The operations of completed Receives; those of requests have the values of enum core_op. */
enum core_received {
	CORE_RECEIVED = 8,
	CORE_RECEIVED_IMMEDIATE,  /* a Write's immediate data: the value */
	CORE_RECEIVED_INVALIDATE, /* a message that has killed the key in the value */
};

/* What a completion tells beyond DAT 1.2. */
struct core_done {
	uint32_t op;
	uint32_t value;
};
#define CORE_DONE(op) ((struct core_done){op, 0})

/* The note of a completion. */
static inline struct core_note *core_event_note(DAT_EVENT *event)
{
	return (struct core_note *)event;
}

/* What a poll by a dequeue on the fast path found (data_path.h). */
enum transport_poll {
	TRANSPORT_POLL_FOUND, /* a completion; the event is filled in */
	TRANSPORT_POLL_EMPTY, /* nothing */
	TRANSPORT_POLL_SLOW,  /* work that needs the slow path: progress() */
	TRANSPORT_POLLS,
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
	 * The endpoint that a poll of the transport on the fast path checks first, or NULL. Its
	 * cell may hold another object by now
	 */
	struct core_handle *last_ep;
	struct core_cno *cno; /* or NULL */
	/* calls of dat_evd_dequeue: FOUND and EMPTY; those that were SLOW are counted again */
	uint64_t dequeues[TRANSPORT_POLLS];
	bool is_enabled;
	bool is_waitable;
	bool is_overflowed; /* an overflow was reported and no event taken since (EVD-STREAM-31) */
	bool is_dying;	    /* the handle is dead; waiters and pollers must leave */
	uint32_t users[CORE_STREAM_KINDS];

	/* the direct waiter */
	bool has_waiter;
	enum core_release release; /* why it has to return */
	DAT_COUNT threshold;
	uint64_t wakeups;	  /* of waiters so far, for dat_stat */
	uint64_t waits;		  /* calls of dat_evd_wait with valid parameters */
	uint64_t blocked;	  /* those that found too few events */
	uint64_t *counted_before; /* what its generation has reset; or NULL */
	struct core_waker waker;

	struct core_trigger trigger; /* guarded by the lock of `cno` */
	bool has_detached_triggers;  /* CNOs that it used before may have queued triggers of it */

	uint32_t busy;	     /* threads that use the EVD without its lock */
	pthread_cond_t idle; /* busy fell to 0 while dying */
};

/* Creates an EVD, for dat_evd_create and for the core's own asynchronous EVD. */
DAT_RETURN core_evd_new(struct core_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags,
			struct core_cno *cno, struct core_evd **evd_out);
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

/* Do its events wake a thread that waits, or trigger a CNO? Not locked: the answer may be old. */
static inline bool core_evd_is_watched(const struct core_evd *evd)
{
	return !core_is_same_32(&evd->cell->state, CORE_TAG(DAT_HANDLE_TYPE_EVD));
}

static inline uint32_t core_evd_count_locked(const struct core_evd *evd)
{
	return (uint32_t)(evd->tail - evd->head);
}

#endif
