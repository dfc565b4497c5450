// SPDX-License-Identifier: BSD-2-Clause
/*
 * The notification object: one place to wait for many event dispatchers. It keeps those that
 * triggered since a wait last named them, in the order of their first trigger, and at most one
 * agent, a function of the consumer that the next trigger calls once (agent.h). Members are guarded
 * by the lock of its cell (rank 8).
 */
#ifndef CORE_CNO_H
#define CORE_CNO_H

#include "core/base/handle.h"
#include "core/base/waker.h"
#include "core/event/agent.h"

struct core_evd;
struct core_ia;

/* A dispatcher in the list of those that triggered. Guarded by the CNO's lock. */
struct core_trigger {
	struct core_trigger *next;
	DAT_EVD_HANDLE evd;
	bool is_kept; /* it is in the list */
	bool is_past; /* the dispatcher refers to another CNO since; made for this list alone */
};

/* A thread in dat_cno_wait; lives on its stack. */
struct core_cno_waiter {
	struct core_cno *cno;
	struct core_cno_waiter *next;
	bool is_released;
	DAT_EVD_HANDLE evd; /* what released it; DAT_HANDLE_NULL: there is no dispatcher any more */
	struct core_waker waker;
};

struct core_cno {
	/* set at creation */
	struct core_handle *cell;
	struct core_ia *ia;

	struct core_agent_call *agent; /* what the next trigger calls, or NULL */
	struct core_trigger *first;    /* what no wait has named yet */
	struct core_trigger *last;
	struct core_cno_waiter *waiters; /* who waits longest comes first */
	int fd; /* event descriptor, readable while `first` is set; -1: nobody asked for it */
	/* somebody was told, or will be, by the descriptor or an agent, and sleeps elsewhere when
	 * the dispatchers are empty. May be used without the lock */
	_Atomic bool has_told;
	_Atomic bool is_sleeper; /* it is counted in ia->sleepers, likewise */
	uint32_t users;		 /* dispatchers that refer to it */
	uint32_t busy;		 /* threads inside a wait */
	bool is_dying;
	bool is_freed;	     /* by dat_cno_free */
	pthread_cond_t gone; /* busy fell to 0 while dying */
};

/*
 * A dispatcher that may refer to it was found empty. True, once: the consumer learns of events by
 * a descriptor or an agent, so this is the last look before it sleeps. Who looks at the dispatcher
 * all the time, and leaves triggers where they are, is told "true" no more.
 */
static inline bool core_cno_goes_to_sleep(struct core_cno *cno)
{
	/* relaxed: who is told meanwhile will look again */
	return cno && atomic_load_explicit(&cno->has_told, memory_order_relaxed) &&
	       atomic_exchange_explicit(&cno->has_told, false, memory_order_relaxed);
}

/* The transport is armed for it: it counts among ia->sleepers until it is told. */
void core_cno_sleeps(struct core_cno *cno);
/* The next look at an empty dispatcher is the last one before the consumer sleeps. */
void core_cno_told(struct core_cno *cno);

/* dat_opendat_cno_fd. */
DAT_RETURN core_cno_fd(DAT_CNO_HANDLE handle, int *fd);
/* Counts a dispatcher that refers to the CNO. NULL: no live CNO of the instance. */
struct core_cno *core_cno_use(DAT_CNO_HANDLE handle, struct core_ia *ia);
/* Takes core_cno_use back: the dispatcher never came to refer to it. */
void core_cno_disuse(struct core_cno *cno);
/* The dispatcher refers to it from now on. The EVD is locked. */
void core_cno_enter(struct core_cno *cno, struct core_evd *evd);
/* The dispatcher, which is locked, refers to it no more. A trigger that no wait has named is still
 * due (EVD-MODIFY-CNO-03, -05). */
void core_cno_leave(struct core_cno *cno, struct core_evd *evd);
/* The dispatcher was freed. When it was the last one, waiters and agent are told (CNO-WAIT-14,
 * -15). No lock held. */
void core_cno_evd_freed(struct core_cno *cno, struct core_evd *evd);
/* Drops what a freed dispatcher has left in the CNOs that it referred to before. No lock held. */
void core_cno_forget_evd(struct core_ia *ia, DAT_EVD_HANDLE evd);
/* A notifying event arrived on the dispatcher, whose lock is held. */
void core_cno_trigger(struct core_cno *cno, struct core_evd *evd);
/* A trigger of the dispatcher, which is locked, was named to a thread that never took it. */
void core_cno_give_back(struct core_cno *cno, struct core_evd *evd);
/* Destroys a live CNO, its lock held, whatever waits on it; no lock is held at return. */
void core_cno_destroy_locked(struct core_cno *cno);

#endif
