// SPDX-License-Identifier: BSD-2-Clause
/*
 * The shared receive queue (SRQ). An endpoint takes a buffer when a message arrives. If no buffer
 * is available, the endpoint joins a first-in, first-out wait list. When n buffers are available,
 * each of the first n waiting endpoints may take one; an endpoint that does not wait may take one
 * only if fewer than n wait. So no endpoint starves (SRQ-USE-09). A queue entry stays occupied
 * until the completion of its Receive is dequeued. The lock of the SRQ's cell (rank 4) guards all
 * members. models/srq.pml models the wait list.
 */
#ifndef CORE_SRQ_H
#define CORE_SRQ_H

#include "core/base/instance.h"
#include "core/srq/recv_queue.h"

struct core_pz;

/* The part of an endpoint that uses an SRQ. */
struct core_srq_user {
	struct core_handle *cell; /* the endpoint's; set at creation */
	/* guarded by the endpoint's lock */
	struct core_wqe taken; /* the buffer taken for the current message */
	bool has_taken;
	bool has_asked; /* core_srq_take was called since an offer began */
	/* the wait list: guarded by the SRQ's lock */
	struct core_srq_user *next;
	bool is_waiting;
	bool is_offered; /* a buffer was offered since it began to wait */
};

/*
 * For an SRQ whose device assigns buffers to messages (transport is not NULL). Its buffers are
 * slots of `queue`, referred to by index. The lists store index + 1; 0 ends a list.
 */
struct core_srq_device {
	uint32_t *next; /* for each slot: the next slot of the same list */
	uint32_t slots;
	uint32_t first_free;
	uint32_t first_waiting; /* not passed to the device yet: its queue is full */
	uint32_t last_waiting;
	uint32_t available;
};

struct core_srq {
	/* set at creation */
	struct core_handle *cell;
	struct core_ia *ia;
	struct core_pz *pz;
	uint32_t iov_max; /* maximum number of segments of a buffer */
	void *transport;  /* the device's queue; NULL: the core assigns the buffers */

	struct core_recv_queue queue; /* the available buffers */
	bool has_failed;	      /* DAT_SRQ_STATE_ERROR */
	uint32_t outstanding;	      /* buffers available, taken, or completed but not dequeued */
	DAT_COUNT low_watermark;
	bool is_armed;	/* the low watermark is set and its event was not raised yet */
	uint32_t users; /* endpoints created with this SRQ */
	/* the wait list of endpoints */
	struct core_srq_user *first_waiting;
	struct core_srq_user *last_waiting;
	uint32_t waiting;
	struct core_srq_device device;
};

static inline uint32_t core_srq_available_locked(const struct core_srq *srq)
{
	return srq->transport ? srq->device.available
			      : (uint32_t)(srq->queue.tail - srq->queue.head);
}

/*
 * Counts one more endpoint of the SRQ. Returns DAT_INVALID_HANDLE, or DAT_INSUFFICIENT_RESOURCES if
 * the SRQ already has max_ep_per_srq endpoints.
 */
DAT_RETURN core_srq_use(DAT_SRQ_HANDLE handle, struct core_ia *ia, struct core_srq **srq_out);
void core_srq_unuse(struct core_srq *srq);
/*
 * Takes a buffer into user->taken, for a message that arrived on the endpoint. EP locked. Returns
 * false if the endpoint has to wait: it is put on the wait list, and core_hooks.srq_offer is called
 * when a buffer is available for it.
 */
bool core_srq_take(struct core_srq *srq, struct core_srq_user *user);
/*
 * Removes the endpoint from the wait list. If buffers are available, calls kick, so that the
 * next endpoint is offered one. EP locked.
 */
void core_srq_cancel_wait(struct core_srq *srq, struct core_srq_user *user);
/*
 * Ends an offer. An endpoint that did not call core_srq_take() since user->has_asked was cleared,
 * because its connection is ending, is removed from the wait list, where it would keep the buffer
 * from the endpoints after it. EP locked.
 */
void core_srq_end_offer(struct core_srq *srq, struct core_srq_user *user);
/* Offers the available buffers to the waiting endpoints. No lock held. */
void core_srq_serve(struct core_ref srq);
/* Calls core_srq_serve() for every SRQ of the instance. A transport does this after kick. No
 * lock held. */
void core_srq_serve_all(struct core_ia *ia);
/* Frees an entry whose completion was dequeued or discarded. No lock above rank 3 held. */
void core_srq_return(struct core_ref ref);
/* core_srq_return for a caller that keeps the SRQ alive. */
void core_srq_return_one(struct core_srq *srq);
/* The device has reported that it serves the SRQ no longer: raises the event. No lock held. */
void core_srq_failed(struct core_ref ref);
/* The device placed a message of the endpoint into this buffer. EP locked. */
void core_srq_fill(struct core_srq *srq, struct core_srq_user *user, uint32_t index);
/* The device used this buffer for an endpoint that no longer exists. No lock above rank 3 held. */
void core_srq_discard(struct core_ref srq, uint32_t index);

/* Destroys an SRQ. Its lock is held at entry and no lock at return. */
void core_srq_destroy_locked(struct core_srq *srq);

#endif
