// SPDX-License-Identifier: BSD-2-Clause
/*
 * The shared receive queue. Endpoints take a buffer when a message arrives. When there is none they
 * line up; a buffer belongs to the endpoint whose place in the line is below the number of
 * available buffers, so that nobody waits for ever while others are served (SRQ-USE-09). An entry
 * stays occupied until its completion is dequeued. Members are guarded by the lock of its cell
 * (rank 4).
 */
#ifndef CORE_SRQ_H
#define CORE_SRQ_H

#include "core/base/instance.h"
#include "core/srq/recv_queue.h"

struct core_pz;

/* What an endpoint with a shared receive queue has of it. */
struct core_srq_user {
	struct core_handle *cell; /* the endpoint's; set at creation */
	/* guarded by the endpoint's lock */
	struct core_wqe taken; /* the buffer that a message is placed into */
	bool has_taken;
	/* its place in the line: guarded by the SRQ's lock */
	struct core_srq_user *next;
	bool is_waiting;
	bool is_called; /* it was offered a buffer */
};

/* Where the transport's device hands the buffers out (srq_device.c): slots of `queue` by index. */
struct core_srq_device {
	uint32_t *next; /* index + 1 of the one behind it in its list; 0: none */
	uint32_t slots;
	uint32_t first_free;	/* index + 1 */
	uint32_t first_waiting; /* the device's queue has no room for them yet */
	uint32_t last_waiting;
	uint32_t available;
};

struct core_srq {
	/* set at creation */
	struct core_handle *cell;
	struct core_ia *ia;
	struct core_pz *pz;
	uint32_t iov_max; /* segments of a buffer */
	void *transport;  /* the device's queue; NULL: the core hands the buffers out itself */

	struct core_recv_queue queue; /* the available buffers */
	uint32_t outstanding;	      /* available, taken, or completed and not dequeued */
	DAT_COUNT low_watermark;
	bool is_armed;	/* the low watermark was not passed since it was set */
	uint32_t users; /* endpoints tied to it */
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

/* Ties an endpoint to it. DAT_INVALID_HANDLE, or DAT_INSUFFICIENT_RESOURCES at max_ep_per_srq. */
DAT_RETURN core_srq_use(DAT_SRQ_HANDLE handle, struct core_ia *ia, struct core_srq **srq_out);
void core_srq_unuse(struct core_srq *srq);
/*
 * Takes a buffer for a message that arrived on the endpoint (locked) into user->taken. False: no
 * buffer is available; the endpoint waits in line and is offered one by core_hooks.srq_offer.
 */
bool core_srq_take(struct core_srq *srq, struct core_srq_user *user);
/* The endpoint (locked) waits no longer. */
void core_srq_leave_line(struct core_srq *srq, struct core_srq_user *user);
/*
 * The endpoint (locked) was offered a buffer and took none, because its connection is ending. It
 * leaves the line, so that it does not keep the buffer from those behind it.
 */
void core_srq_pass_over(struct core_srq *srq, struct core_srq_user *user);
/* Offers available buffers to the endpoints in line. No lock held. */
void core_srq_serve(struct core_ref srq);
/* The same, on every SRQ of the instance: what ops->kick asks for. */
void core_srq_serve_all(struct core_ia *ia);
/* An entry is free again: its completion was dequeued, or will never be seen. No lock above rank 3.
 */
void core_srq_return(struct core_ref ref);
void core_srq_return_one(struct core_srq *srq);
/* Raises the low watermark's event if it is due. Locked. */
void core_srq_watch_locked(struct core_srq *srq);

/* Copies a buffer to the endpoint that takes it. SRQ and endpoint locked. */
void core_srq_hand_over_locked(struct core_srq_user *user, const struct core_wqe *wqe);

/* All locked; the first also before the SRQ is published. */
bool core_srq_device_init(struct core_srq *srq);
void core_srq_device_fini(struct core_srq *srq);
/* The free slot that the next buffer goes to, and then adds it. */
struct core_wqe *core_srq_device_slot(struct core_srq *srq, uint32_t *index_out);
void core_srq_device_add(struct core_srq *srq, uint32_t index);
bool core_srq_device_grow(struct core_srq *srq, uint32_t size);

/* The device has filled that buffer for a message of the endpoint (locked). */
void core_srq_fill(struct core_srq *srq, struct core_srq_user *user, uint32_t index);
/* The same, but the endpoint is gone. No lock above rank 3 held. */
void core_srq_lost(struct core_ref srq, uint32_t index);

/* Destroys an SRQ, its lock held; no lock is held at return. */
void core_srq_destroy_locked(struct core_srq *srq);

#endif
