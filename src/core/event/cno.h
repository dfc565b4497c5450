// SPDX-License-Identifier: BSD-2-Clause
/*
 * The CNO (notification object): a thread waits on it for many EVDs. An EVD triggers its CNO when a
 * notifying event arrives. The CNO queues each EVD that has triggered, in the order of the first
 * trigger, until a wait returns that EVD. It may have an agent, a function of the consumer that the
 * next trigger calls once (agent.h). The lock of the CNO's cell (rank 8) guards all members.
 */
#ifndef CORE_CNO_H
#define CORE_CNO_H

#include "core/base/handle.h"
#include "core/base/waker.h"
#include "core/event/agent.h"

struct core_evd;
struct core_ia;

/* An EVD in a CNO's queue of triggers. Guarded by the CNO's lock. */
struct core_trigger {
	struct core_trigger *next;
	DAT_EVD_HANDLE evd;
	bool is_queued;
	bool is_detached; /* allocated when the EVD moved to another CNO while it was queued here */
};

/* A thread in dat_cno_wait; lives on its stack. */
struct core_cno_waiter {
	struct core_cno *cno;
	struct core_cno_waiter *next;
	bool is_released;
	DAT_EVD_HANDLE evd; /* the EVD to return; DAT_HANDLE_NULL: the CNO has no EVDs any more */
	struct core_waker waker;
};

struct core_cno {
	/* set at creation */
	struct core_handle *cell;
	struct core_ia *ia;

	struct core_agent_call *agent; /* the next trigger calls it; or NULL */
	struct core_trigger *first;    /* the queue: EVDs that no wait has returned yet */
	struct core_trigger *last;
	struct core_cno_waiter *waiters; /* the longest waiting thread first */
	int fd; /* eventfd, readable while the queue is not empty; -1: not created yet */
	/*
	 * the descriptor or an agent notifies the consumer, which sleeps outside the library once
	 * it has found its EVDs empty. So the next dequeue from an empty EVD must arm the
	 * transport. Atomic, because threads also use it without the lock
	 */
	_Atomic bool has_arm_request;
	_Atomic bool is_sleeper; /* counted in ia->sleepers; atomic for the same reason */
	uint32_t users;		 /* EVDs that use it, and those that are about to */
	uint32_t entering;	 /* of these, EVDs that are not attached yet */
	uint32_t busy;		 /* threads that use the CNO without its lock */
	bool is_dying;
	bool is_freed;	     /* by dat_cno_free */
	pthread_cond_t idle; /* busy fell to 0 while dying */
};

/*
 * Called when a dequeue finds an EVD of the CNO empty. cno may be NULL. True: a descriptor or an
 * agent notifies the consumer, which may sleep after this dequeue, so the caller must arm the
 * transport. Clears the request, so that a consumer that keeps polling and takes no triggers pays
 * for this only once.
 */
static inline bool core_cno_take_arm_request(struct core_cno *cno)
{
	/* relaxed: a notification that sets it at the same time causes another dequeue */
	return cno && atomic_load_explicit(&cno->has_arm_request, memory_order_relaxed) &&
	       atomic_exchange_explicit(&cno->has_arm_request, false, memory_order_relaxed);
}

/* The transport was armed for its consumer: counts it in ia->sleepers until it is notified. */
void core_cno_add_sleeper(struct core_cno *cno);
/* Has the next dequeue from an empty EVD arm the transport. The consumer no longer counts as a
 * sleeper. */
void core_cno_request_arm(struct core_cno *cno);

/* dat_opendat_cno_fd. */
DAT_RETURN core_cno_fd(DAT_CNO_HANDLE handle, int *fd);
/* Counts an EVD that will use the CNO: core_cno_enter or core_cno_disuse follows. NULL: the handle
 * is not a live CNO of the instance. */
struct core_cno *core_cno_use(DAT_CNO_HANDLE handle, struct core_ia *ia);
/* Reverts core_cno_use for an EVD that was not attached after all. */
void core_cno_disuse(struct core_cno *cno);
/* Attaches the EVD, which is locked, or not yet known to the consumer. */
void core_cno_enter(struct core_cno *cno, struct core_evd *evd);
/* A trigger for core_cno_leave; NULL: no memory. */
struct core_trigger *core_cno_new_trigger(void);
/* Detaches the EVD, which is locked. A trigger that is still queued stays in the queue
 * (EVD-MODIFY-CNO-03, -05): `spare` takes its place. Frees `spare` if it is not needed. */
void core_cno_leave(struct core_cno *cno, struct core_evd *evd, struct core_trigger *spare);
/* The EVD was freed. If it was the last one, waiters and agent are notified (CNO-WAIT-14, -15). No
 * lock held. */
void core_cno_evd_freed(struct core_cno *cno, struct core_evd *evd);
/* Removes the triggers that a freed EVD left in CNOs that it used before. No lock held. */
void core_cno_drop_evd(struct core_ia *ia, DAT_EVD_HANDLE evd);
/* A notifying event arrived at the EVD, which is locked. */
void core_cno_trigger(struct core_cno *cno, struct core_evd *evd);
/* Requeues a trigger of the EVD, which is locked: the waiter that it was given to was cancelled.
 * Without memory for that, triggers the CNO that the EVD uses now. */
void core_cno_return_trigger(struct core_cno *cno, struct core_evd *evd);
/* Destroys a live CNO even if threads wait on it. Called with its lock held, which it releases. */
void core_cno_destroy_locked(struct core_cno *cno);

#endif
