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

/* dat_opendat_cno_fd. */
DAT_RETURN core_cno_fd(DAT_CNO_HANDLE handle, int *fd);
/* The descriptor that it has made, if the CNO has no agent; -1: none. */
int core_cno_proxy_fd(DAT_CNO_HANDLE handle);
/* Destroys a live CNO even if threads wait on it. Called with its lock held, which it releases. */
void core_cno_destroy_locked(struct core_cno *cno);

#endif
