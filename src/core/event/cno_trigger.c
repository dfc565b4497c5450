// SPDX-License-Identifier: BSD-2-Clause
/*
 * The triggers that a CNO keeps: which EVDs triggered, in which order, and who is told. A trigger
 * goes to the thread that waits longest, or is kept until the next wait; and in any case to the
 * agent, if one is armed.
 */
#include "core/event/cno_trigger.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/instance.h"
#include "core/event/evd.h"

/* --- whoever sleeps elsewhere --- */

void core_cno_wakes(struct core_cno *cno)
{
	if (atomic_exchange(&cno->is_sleeper, false))
		atomic_fetch_sub(&cno->ia->sleepers, 1);
}

void core_cno_sleeps(struct core_cno *cno)
{
	if (!atomic_exchange(&cno->is_sleeper, true))
		atomic_fetch_add(&cno->ia->sleepers, 1);
}

void core_cno_told(struct core_cno *cno)
{
	core_cno_wakes(cno);
	atomic_store(&cno->has_told, true);
}

/* --- the list of triggers --- */

/* The descriptor follows the list of triggers. It never blocks: one value is written at most. */
static void cno_fd_set_locked(const struct core_cno *cno)
{
	uint64_t one = 1;
	ssize_t written;
	int state;

	if (cno->fd < 0)
		return;
	state = core_cancel_off();
	written = write(cno->fd, &one, sizeof(one));
	core_cancel_restore(state);
	assert(written >= 0);
	(void)written;
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
	/* EAGAIN: it was not set, because the trigger went to a waiter at once */
	assert(taken >= 0 || errno == EAGAIN);
	core_cancel_restore(state);
	errno = saved;
	if (taken > 0)
		core_cno_told(cno);
}

static struct core_trigger **trigger_link(struct core_cno *cno, const struct core_trigger *trigger)
{
	struct core_trigger **link = &cno->first;

	while (*link != trigger)
		link = &(*link)->next;
	return link;
}

static struct core_trigger *trigger_past(struct core_cno *cno, DAT_EVD_HANDLE evd)
{
	struct core_trigger *trigger = cno->first;

	while (trigger && !(trigger->is_past && trigger->evd == evd))
		trigger = trigger->next;
	return trigger;
}

/* Puts it last, or first. */
static void trigger_insert(struct core_cno *cno, struct core_trigger *trigger, bool is_first)
{
	struct core_trigger **link = is_first || !cno->last ? &cno->first : &cno->last->next;

	trigger->is_kept = true;
	trigger->next = *link;
	*link = trigger;
	if (!trigger->next)
		cno->last = trigger;
}

/* Takes it off the list, if it is there, and frees it if it is a past one. */
static void trigger_remove(struct core_cno *cno, struct core_trigger *trigger)
{
	struct core_trigger *previous = NULL;

	if (!trigger->is_kept)
		return;
	for (struct core_trigger *i = cno->first; i != trigger; i = i->next)
		previous = i;
	if (previous)
		previous->next = trigger->next;
	else
		cno->first = trigger->next;
	if (cno->last == trigger)
		cno->last = previous;
	trigger->is_kept = false;
	if (trigger->is_past)
		free(trigger);
	if (!cno->first)
		cno_fd_clear_locked(cno);
}

/* Puts `to` in the place of `from`. */
static void trigger_replace(struct core_cno *cno, struct core_trigger *from,
			    struct core_trigger *to)
{
	*trigger_link(cno, from) = to;
	to->next = from->next;
	to->is_kept = true;
	from->is_kept = false;
	if (cno->last == from)
		cno->last = to;
}

static struct core_trigger *trigger_new_past(struct core_evd *evd)
{
	struct core_trigger *past = calloc(1, sizeof(*past));

	if (!past)
		return NULL;
	past->evd = evd->cell;
	past->is_past = true;
	evd->has_past_triggers = true;
	return past;
}

DAT_EVD_HANDLE core_cno_take_locked(struct core_cno *cno)
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
	core_cno_told(cno);
	core_agent_run(cno->ia, call, evd);
}

/* --- dispatchers --- */

struct core_cno *core_cno_use(DAT_CNO_HANDLE handle, struct core_ia *ia)
{
	struct core_cno *cno = core_handle_lock(handle, DAT_HANDLE_TYPE_CNO);
	struct core_handle *cell;

	if (!cno)
		return NULL;
	cell = cno->cell;
	if (cno->ia == ia)
		cno->users++;
	else
		cno = NULL;
	core_handle_unlock(cell);
	return cno;
}

void core_cno_disuse(struct core_cno *cno)
{
	core_lock_acquire(&cno->cell->lock);
	cno->users--;
	core_lock_release(&cno->cell->lock);
}

void core_cno_enter(struct core_cno *cno, struct core_evd *evd)
{
	struct core_trigger *past;

	core_lock_acquire(&cno->cell->lock);
	past = trigger_past(cno, evd->cell);
	if (past) { /* it was here before: a trigger is named once */
		trigger_replace(cno, past, &evd->trigger);
		free(past);
	}
	core_lock_release(&cno->cell->lock);
}

void core_cno_leave(struct core_cno *cno, struct core_evd *evd)
{
	struct core_handle *cell = cno->cell;
	struct core_trigger *past;

	core_lock_acquire(&cell->lock);
	past = evd->trigger.is_kept ? trigger_new_past(evd) : NULL;
	if (past)
		trigger_replace(cno, &evd->trigger, past);
	else /* not kept, or no memory: the consumer has to look at the queue anyway */
		trigger_remove(cno, &evd->trigger);
	cno->users--;
	core_lock_release(&cell->lock);
}

void core_cno_evd_freed(struct core_cno *cno, struct core_evd *evd)
{
	struct core_handle *cell = cno->cell;

	core_lock_acquire(&cell->lock);
	trigger_remove(cno, &evd->trigger);
	if (!--cno->users) {
		core_cno_release_all_locked(cno);
		core_cno_call_agent_locked(cno, DAT_HANDLE_NULL);
	}
	core_lock_release(&cell->lock);
}

void core_cno_forget_evd(struct core_ia *ia, DAT_EVD_HANDLE evd)
{
	struct core_handle *cell;

	core_lock_acquire(&ia->cell->lock); /* keeps the list, not the CNOs */
	for (cell = ia->objects[DAT_HANDLE_TYPE_CNO].first; cell; cell = cell->next) {
		struct core_cno *cno = core_handle_lock(cell, DAT_HANDLE_TYPE_CNO);
		struct core_trigger *past = cno ? trigger_past(cno, evd) : NULL;

		if (past)
			trigger_remove(cno, past);
		if (cno)
			core_handle_unlock(cell);
	}
	core_lock_release(&ia->cell->lock);
}

/* Names the dispatcher that triggered first to the thread that waits longest. */
static void cno_deliver_locked(struct core_cno *cno)
{
	struct core_cno_waiter *waiter = cno->waiters;

	if (!waiter || !cno->first)
		return;
	cno->waiters = waiter->next;
	waiter->is_released = true;
	waiter->evd = core_cno_take_locked(cno);
	core_waker_wake_locked(&waiter->waker);
}

/* Adds a trigger and hands it on. */
static void cno_keep_locked(struct core_cno *cno, struct core_trigger *trigger, bool is_first)
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
	if (!evd->trigger.is_kept)
		cno_keep_locked(cno, &evd->trigger, false);
	core_lock_release(&cno->cell->lock);
}

void core_cno_give_back(struct core_cno *cno, struct core_evd *evd)
{
	struct core_trigger *trigger, *later;

	core_lock_acquire(&cno->cell->lock);
	trigger = evd->cno == cno ? &evd->trigger : trigger_new_past(evd);
	later = evd->cno == cno ? &evd->trigger : trigger_past(cno, evd->cell);
	if (later && trigger) /* it has triggered again: its place is that of the first time */
		trigger_remove(cno, later);
	if (trigger) /* the agents have been told the first time */
		cno_keep_locked(cno, trigger, true);
	core_lock_release(&cno->cell->lock);
}
