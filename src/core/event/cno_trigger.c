// SPDX-License-Identifier: BSD-2-Clause
/*
 * The queue of triggers of a CNO. A trigger goes to the longest waiting thread, or is queued until
 * the next wait. In both cases the agent is called, if one is armed.
 */
#include "core/event/cno_trigger.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/instance.h"
#include "core/base/log.h"
#include "core/event/evd.h"

/* --- consumers that sleep outside the library --- */

void core_cno_remove_sleeper(struct core_cno *cno)
{
	if (atomic_exchange(&cno->is_sleeper, false))
		atomic_fetch_sub(&cno->ia->sleepers, 1);
}

void core_cno_add_sleeper(struct core_cno *cno)
{
	if (!atomic_exchange(&cno->is_sleeper, true))
		atomic_fetch_add(&cno->ia->sleepers, 1);
}

void core_cno_request_arm(struct core_cno *cno)
{
	core_cno_remove_sleeper(cno);
	atomic_store(&cno->has_arm_request, true);
}

/* --- the queue of triggers --- */

/* The consumer has closed the descriptor: its number may belong to another file soon. */
static void cno_fd_forget_locked(struct core_cno *cno)
{
	core_log(CORE_LOG_ERROR | CORE_LOG_WARNING,
		 "notification descriptor %d: closed by the program", cno->fd);
	cno->fd = -1;
}

/* Makes the descriptor readable. The write never blocks, because the counter is at most 1. */
static void cno_fd_set_locked(struct core_cno *cno)
{
	int state, saved = errno;
	uint64_t one = 1;

	if (cno->fd < 0)
		return;
	state = core_cancel_off();
	if (write(cno->fd, &one, sizeof(one)) < 0 && errno == EBADF)
		cno_fd_forget_locked(cno);
	core_cancel_restore(state);
	errno = saved;
}

static void cno_fd_clear_locked(struct core_cno *cno)
{
	int state, saved = errno;
	uint64_t value;
	ssize_t taken;

	if (cno->fd < 0)
		return;
	state = core_cancel_off();
	taken = read(cno->fd, &value, sizeof(value));
	/* EAGAIN: it was not readable, because the trigger went straight to a waiter */
	if (taken < 0 && errno == EBADF)
		cno_fd_forget_locked(cno);
	core_cancel_restore(state);
	errno = saved;
	if (taken > 0)
		core_cno_request_arm(cno);
}

static struct core_trigger **trigger_link(struct core_cno *cno, const struct core_trigger *trigger)
{
	struct core_trigger **link = &cno->first;

	while (*link != trigger)
		link = &(*link)->next;
	return link;
}

static struct core_trigger *trigger_find_detached(struct core_cno *cno, DAT_EVD_HANDLE evd)
{
	struct core_trigger *trigger = cno->first;

	while (trigger && !(trigger->is_detached && trigger->evd == evd))
		trigger = trigger->next;
	return trigger;
}

/* Inserts at the end of the queue, or at its head. */
static void trigger_insert(struct core_cno *cno, struct core_trigger *trigger, bool is_first)
{
	struct core_trigger **link = is_first || !cno->last ? &cno->first : &cno->last->next;

	trigger->is_queued = true;
	trigger->next = *link;
	*link = trigger;
	if (!trigger->next)
		cno->last = trigger;
}

/* Removes a trigger from the queue, if it is queued. Frees a detached one. */
static void trigger_remove(struct core_cno *cno, struct core_trigger *trigger)
{
	struct core_trigger *previous = NULL;

	if (!trigger->is_queued)
		return;
	for (struct core_trigger *i = cno->first; i != trigger; i = i->next)
		previous = i;
	if (previous)
		previous->next = trigger->next;
	else
		cno->first = trigger->next;
	if (cno->last == trigger)
		cno->last = previous;
	trigger->is_queued = false;
	if (trigger->is_detached)
		free(trigger);
	if (!cno->first)
		cno_fd_clear_locked(cno);
}

/* Puts `to` in the place of `from` in the queue. */
static void trigger_replace(struct core_cno *cno, struct core_trigger *from,
			    struct core_trigger *to)
{
	*trigger_link(cno, from) = to;
	to->next = from->next;
	to->is_queued = true;
	from->is_queued = false;
	if (cno->last == from)
		cno->last = to;
}

static void trigger_init_detached(struct core_trigger *detached, struct core_evd *evd)
{
	detached->evd = evd->cell;
	detached->is_detached = true;
	evd->has_detached_triggers = true;
}

DAT_EVD_HANDLE core_cno_pop_trigger_locked(struct core_cno *cno)
{
	DAT_EVD_HANDLE evd = cno->first->evd;

	trigger_remove(cno, cno->first);
	return evd;
}

/* --- waiters and the agent --- */

void core_cno_release_all_locked(struct core_cno *cno)
{
	for (struct core_cno_waiter *waiter = cno->waiters; waiter; waiter = waiter->next) {
		waiter->is_released = true;
		waiter->evd = DAT_HANDLE_NULL;
		core_waker_wake_locked(&waiter->waker);
	}
	cno->waiters = NULL;
}

void core_cno_call_agent_locked(struct core_cno *cno, DAT_EVD_HANDLE evd)
{
	struct core_agent_call *call = cno->agent;

	cno->agent = NULL; /* one-shot: CNO-CREATE-07 */
	if (!call)
		return;
	core_cno_request_arm(cno);
	core_agent_run(cno->ia, call, evd);
}

void core_cno_idle_locked(struct core_cno *cno)
{
	if (!--cno->busy && cno->is_dying)
		pthread_cond_signal(&cno->idle);
}

/* --- EVDs --- */

struct core_cno *core_cno_use(DAT_CNO_HANDLE handle, struct core_ia *ia)
{
	struct core_cno *cno = core_handle_lock_in(handle, DAT_HANDLE_TYPE_CNO, ia);

	if (!cno)
		return NULL;
	cno->users++;
	cno->entering++;
	core_handle_unlock(cno->cell);
	return cno;
}

void core_cno_disuse(struct core_cno *cno)
{
	core_lock_acquire(&cno->cell->lock);
	cno->users--;
	cno->entering--;
	core_lock_release(&cno->cell->lock);
}

void core_cno_enter(struct core_cno *cno, struct core_evd *evd)
{
	struct core_trigger *detached;

	core_lock_acquire(&cno->cell->lock);
	cno->entering--;
	detached = trigger_find_detached(cno, evd->cell);
	if (detached) { /* it is still queued from before: one trigger per EVD */
		trigger_replace(cno, detached, &evd->trigger);
		free(detached);
	}
	core_lock_release(&cno->cell->lock);
}

struct core_trigger *core_cno_new_trigger(void)
{
	return calloc(1, sizeof(struct core_trigger));
}

void core_cno_leave(struct core_cno *cno, struct core_evd *evd, struct core_trigger *spare)
{
	struct core_handle *cell = cno->cell;

	core_lock_acquire(&cell->lock);
	if (evd->trigger.is_queued) {
		trigger_init_detached(spare, evd);
		trigger_replace(cno, &evd->trigger, spare);
	} else {
		free(spare);
	}
	cno->users--;
	core_lock_release(&cell->lock);
}

void core_cno_evd_freed(struct core_cno *cno, struct core_evd *evd)
{
	struct core_handle *cell = cno->cell;

	core_lock_acquire(&cell->lock);
	trigger_remove(cno, &evd->trigger);
	if (--cno->users == cno->entering) { /* no EVD is attached any more */
		core_cno_release_all_locked(cno);
		core_cno_call_agent_locked(cno, DAT_HANDLE_NULL);
	}
	core_lock_release(&cell->lock);
}

void core_cno_drop_evd(struct core_ia *ia, DAT_EVD_HANDLE evd)
{
	struct core_handle *cell;

	core_lock_acquire(&ia->cell->lock); /* keeps the list stable, not the CNOs in it */
	for (cell = ia->objects[DAT_HANDLE_TYPE_CNO].first; cell; cell = cell->next) {
		struct core_cno *cno = core_handle_lock(cell, DAT_HANDLE_TYPE_CNO);
		struct core_trigger *detached = cno ? trigger_find_detached(cno, evd) : NULL;

		if (detached)
			trigger_remove(cno, detached);
		if (cno)
			core_handle_unlock(cell);
	}
	core_lock_release(&ia->cell->lock);
}

/* Gives the first EVD in the queue to the longest waiting thread, if there are both. */
static void cno_deliver_locked(struct core_cno *cno)
{
	struct core_cno_waiter *waiter = cno->waiters;

	if (!waiter || !cno->first)
		return;
	cno->waiters = waiter->next;
	waiter->is_released = true;
	waiter->evd = core_cno_pop_trigger_locked(cno);
	core_waker_wake_locked(&waiter->waker);
}

/* Queues a trigger and delivers it to a waiter, if there is one. */
static void cno_queue_trigger_locked(struct core_cno *cno, struct core_trigger *trigger,
				     bool is_first)
{
	bool was_empty = !cno->first;

	trigger_insert(cno, trigger, is_first);
	cno_deliver_locked(cno);
	if (was_empty && cno->first)
		cno_fd_set_locked(cno);
}

void core_cno_trigger(struct core_cno *cno, struct core_evd *evd)
{
	core_lock_acquire(&cno->cell->lock);
	core_cno_call_agent_locked(cno, evd->cell);
	if (!evd->trigger.is_queued)
		cno_queue_trigger_locked(cno, &evd->trigger, false);
	core_lock_release(&cno->cell->lock);
}

/* Requeues the trigger of an EVD that uses another CNO by now. False: no memory for a trigger in
 * the queue of this CNO. */
static bool cno_return_detached_locked(struct core_cno *cno, struct core_evd *evd)
{
	struct core_trigger *later = trigger_find_detached(cno, evd->cell);
	struct core_trigger *trigger = core_cno_new_trigger();

	if (!trigger)
		return later;
	if (later)
		trigger_remove(cno, later);
	trigger_init_detached(trigger, evd);
	cno_queue_trigger_locked(cno, trigger, true);
	return true;
}

void core_cno_return_trigger(struct core_cno *cno, struct core_evd *evd)
{
	bool is_kept = true;

	/* an EVD that has triggered again meanwhile keeps the earlier place in the queue. No agent
	 * is called, because the first trigger has called it */
	core_lock_acquire(&cno->cell->lock);
	if (evd->cno == cno) {
		trigger_remove(cno, &evd->trigger);
		cno_queue_trigger_locked(cno, &evd->trigger, true);
	} else {
		is_kept = cno_return_detached_locked(cno, evd);
	}
	core_lock_release(&cno->cell->lock);
	if (!is_kept && evd->cno) /* EVD-MODIFY-CNO-03: either CNO may be notified */
		core_cno_trigger(evd->cno, evd);
}
