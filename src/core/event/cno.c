// SPDX-License-Identifier: BSD-2-Clause
/*
 * Notification objects: dat_cno_create, dat_cno_modify_agent, dat_cno_query, dat_cno_free,
 * dat_cno_wait. A trigger goes to the thread that waits longest, or is kept until the next wait;
 * and in any case to the agent, if one is armed.
 */
#include "core/event/cno.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/instance.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/event/evd.h"
#include "core/event/wait.h"

/* --- whoever sleeps elsewhere --- */

static void cno_wakes(struct core_cno *cno)
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
	cno_wakes(cno);
	atomic_store(&cno->has_told, true);
}

/* --- creation --- */

static bool agent_is_good(const DAT_OS_WAIT_PROXY_AGENT *agent)
{
	return agent->proxy_agent_func || !agent->instance_data;
}

/* Makes the pending call for an agent; NULL for none. */
static DAT_RETURN agent_prepare(struct core_ia *ia, const DAT_OS_WAIT_PROXY_AGENT *agent,
				DAT_CNO_HANDLE cno, struct core_agent_call **call_out)
{
	*call_out = NULL;
	if (!agent->proxy_agent_func)
		return DAT_SUCCESS;
	*call_out = core_agent_arm(ia, agent, cno);
	return *call_out ? DAT_SUCCESS : core_no_resources(DAT_RESOURCE_MEMORY);
}

static DAT_RETURN cno_new(struct core_ia *ia, const DAT_OS_WAIT_PROXY_AGENT *agent,
			  struct core_cno **cno_out)
{
	struct core_cno *cno = calloc(1, sizeof(*cno));
	DAT_RETURN ret = core_no_resources(DAT_RESOURCE_MEMORY);

	if (!cno)
		return ret;
	cno->ia = ia;
	cno->fd = -1;
	pthread_cond_init(&cno->gone, NULL);
	cno->cell = core_handle_alloc(&ia->adapter->provider, ia, cno);
	if (!cno->cell)
		goto free_cno;
	ret = agent_prepare(ia, agent, cno->cell, &cno->agent);
	if (ret != DAT_SUCCESS)
		goto release_cell;
	if (cno->agent)
		core_cno_told(cno);
	ret = core_ia_add(ia, cno->cell, DAT_HANDLE_TYPE_CNO);
	if (ret != DAT_SUCCESS)
		goto free_agent;
	*cno_out = cno;
	return DAT_SUCCESS;

free_agent:
	free(cno->agent);
release_cell:
	core_handle_release(cno->cell);
free_cno:
	pthread_cond_destroy(&cno->gone);
	free(cno);
	return ret;
}

DAT_RETURN core_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			   DAT_CNO_HANDLE *cno_handle)
{
	struct core_ia *ia = core_ia_enter(ia_handle);
	struct core_cno *cno = NULL;
	DAT_RETURN ret;

	if (!ia)
		return core_bad_handle(DAT_INVALID_HANDLE_IA);
	if (!agent_is_good(&agent))
		ret = core_bad_arg(2);
	else if (!cno_handle)
		ret = core_bad_arg(3);
	else
		ret = cno_new(ia, &agent, &cno);
	if (ret == DAT_SUCCESS)
		*cno_handle = cno->cell;
	core_ia_leave(ia);
	return ret;
}

DAT_RETURN core_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	struct core_cno *cno = core_handle_lock(cno_handle, DAT_HANDLE_TYPE_CNO);
	struct core_agent_call *call, *old;
	struct core_ref ref;
	struct core_ia *ia;
	DAT_RETURN ret;

	if (!cno)
		return core_bad_handle(DAT_INVALID_HANDLE_CNO);
	ref = core_handle_ref(cno->cell);
	ia = cno->ia;
	cno->busy++; /* the instance must not go while the thread is made without this lock */
	core_handle_unlock(ref.cell);
	ret = agent_is_good(&agent) ? agent_prepare(ia, &agent, cno_handle, &call)
				    : core_bad_arg(2);
	core_lock_acquire(&ref.cell->lock);
	if (!--cno->busy && cno->is_dying)
		pthread_cond_signal(&cno->gone);
	if (ret == DAT_SUCCESS && cno->is_dying) {
		free(call);
		ret = core_bad_handle(DAT_INVALID_HANDLE_CNO);
	} else if (ret == DAT_SUCCESS) {
		old = cno->agent;
		cno->agent = call;
		if (call)
			core_cno_told(cno);
		free(old);
	}
	core_handle_unlock(ref.cell);
	return ret;
}

DAT_RETURN core_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param)
{
	struct core_cno *cno = core_handle_lock(cno_handle, DAT_HANDLE_TYPE_CNO);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!cno)
		return core_bad_handle(DAT_INVALID_HANDLE_CNO);
	if (mask & ~(DAT_CNO_PARAM_MASK)DAT_CNO_FIELD_ALL) {
		ret = core_bad_arg(2);
	} else if (!param) {
		ret = core_bad_arg(3);
	} else {
		param->ia_handle = cno->ia->cell;
		param->agent = cno->agent ? cno->agent->agent : DAT_OS_WAIT_PROXY_AGENT_NULL;
	}
	core_handle_unlock(cno->cell);
	return ret;
}

DAT_RETURN core_cno_fd(DAT_CNO_HANDLE handle, int *fd)
{
	struct core_cno *cno = core_handle_lock(handle, DAT_HANDLE_TYPE_CNO);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!cno)
		return core_bad_handle(DAT_INVALID_HANDLE_CNO);
	if (!fd) {
		ret = core_bad_arg(2);
	} else {
		if (cno->fd < 0)
			cno->fd = eventfd(cno->first ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (cno->fd < 0)
			ret = core_no_resources(DAT_RESOURCE_DEVICE);
		else
			core_cno_told(cno);
	}
	if (ret == DAT_SUCCESS)
		*fd = cno->fd;
	core_handle_unlock(cno->cell);
	return ret;
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

/* The dispatcher that triggered first; its trigger is used up. There is one. */
static DAT_EVD_HANDLE trigger_take(struct core_cno *cno)
{
	DAT_EVD_HANDLE evd = cno->first->evd;

	trigger_remove(cno, cno->first);
	return evd;
}

/* --- destruction --- */

/* Lets go of everybody who waits, naming no dispatcher. */
static void cno_release_all_locked(struct core_cno *cno)
{
	for (struct core_cno_waiter *waiter = cno->waiters; waiter; waiter = waiter->next) {
		waiter->is_released = true;
		waiter->evd = DAT_HANDLE_NULL;
		core_waker_wake_locked(&waiter->waker);
	}
	cno->waiters = NULL;
}

static void cno_call_agent_locked(struct core_cno *cno, DAT_EVD_HANDLE evd)
{
	struct core_agent_call *call = cno->agent;

	cno->agent = NULL; /* one-shot: CNO-CREATE-07 */
	if (!call)
		return;
	core_cno_told(cno);
	core_agent_run(cno->ia, call, evd);
}

/* The CNO's handle is dead, its agent disarmed. */
static void cno_delete(struct core_cno *cno)
{
	struct core_handle *cell = cno->cell;
	struct core_ia *ia = cno->ia;

	core_lock_acquire(&cell->lock);
	while (cno->busy)
		core_lock_wait(&cell->lock, &cno->gone);
	while (cno->first) /* of dispatchers that refer to other CNOs */
		(void)trigger_take(cno);
	core_lock_release(&cell->lock);
	cno_wakes(cno);
	pthread_cond_destroy(&cno->gone);
	if (cno->fd >= 0)
		close(cno->fd);
	free(cno->agent);
	free(cno);
	core_ia_remove(ia, cell, DAT_HANDLE_TYPE_CNO);
	core_handle_release(cell);
}

void core_cno_destroy_locked(struct core_cno *cno)
{
	struct core_handle *cell = cno->cell;

	core_handle_kill_locked(cell);
	cno->is_dying = true;
	cno_release_all_locked(cno);
	cno_call_agent_locked(cno, DAT_HANDLE_NULL);
	core_handle_unlock(cell);
	cno_delete(cno);
}

DAT_RETURN core_cno_free(DAT_CNO_HANDLE cno_handle)
{
	struct core_cno *cno = core_handle_lock(cno_handle, DAT_HANDLE_TYPE_CNO);
	struct core_wait_cancel cancel;
	struct core_ia *ia;

	if (!cno)
		return core_bad_handle(DAT_INVALID_HANDLE_CNO);
	if (cno->users || cno->waiters) {
		core_handle_unlock(cno->cell);
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
	}
	ia = cno->ia;
	core_handle_kill_locked(cno->cell);
	cno->is_dying = true;
	cno->is_freed = true;
	core_handle_unlock(cno->cell);
	core_wait_cancel_off(&cancel); /* waiting for others, with locks held, is no place to end */
	core_agent_forget(ia, cno_handle);
	cno_delete(cno);
	core_wait_cancel_restore(&cancel);
	return DAT_SUCCESS;
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
		cno_release_all_locked(cno);
		cno_call_agent_locked(cno, DAT_HANDLE_NULL);
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
	waiter->evd = trigger_take(cno);
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
	cno_call_agent_locked(cno, evd->cell);
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

/* --- waiting --- */

static void waiter_unlink_locked(struct core_cno_waiter *waiter)
{
	struct core_cno_waiter **link = &waiter->cno->waiters;

	while (*link && *link != waiter)
		link = &(*link)->next;
	if (*link)
		*link = waiter->next;
}

static void waiter_leave_locked(struct core_cno_waiter *waiter)
{
	struct core_cno *cno = waiter->cno;

	if (!--cno->busy && cno->is_dying)
		pthread_cond_signal(&cno->gone);
}

static bool waiter_is_over(void *arg)
{
	const struct core_cno_waiter *waiter = arg;

	return waiter->is_released;
}

/* CNO-WAIT-28: what it was given goes to the next waiter, or is kept. */
static void waiter_cancelled(void *arg)
{
	struct core_cno_waiter *waiter = arg;
	struct core_handle *cell = waiter->cno->cell;

	core_lock_acquire(&cell->lock);
	waiter_unlink_locked(waiter);
	if (waiter->is_released && waiter->evd != DAT_HANDLE_NULL) {
		core_lock_release(&cell->lock); /* the dispatcher's lock comes first */
		core_evd_give_back(waiter->evd, waiter->cno);
		core_lock_acquire(&cell->lock);
	}
	waiter_leave_locked(waiter);
	core_lock_release(&cell->lock);
	core_waker_fini(&waiter->waker);
}

static void waiter_append_locked(struct core_cno_waiter *waiter)
{
	struct core_cno_waiter **link = &waiter->cno->waiters;

	while (*link)
		link = &(*link)->next;
	waiter->next = NULL;
	*link = waiter;
}

/* Blocks until released. Locked. DAT_SUCCESS with waiter->evd, or the reason. */
static DAT_RETURN cno_block_locked(struct core_cno *cno, DAT_TIMEOUT timeout_us,
				   struct core_cno_waiter *waiter)
{
	struct core_wait wait = {.ia = cno->ia,
				 .lock = &cno->cell->lock,
				 .waker = &waiter->waker,
				 .is_over = waiter_is_over,
				 .cancelled = waiter_cancelled,
				 .arg = waiter};

	waiter_append_locked(waiter);
	cno->busy++;
	core_wait_start(&wait, timeout_us);
	core_wait_locked(&wait);
	waiter_unlink_locked(waiter);
	waiter_leave_locked(waiter);
	if (waiter->is_released)
		return DAT_SUCCESS;
	if (wait.is_interrupted)
		return core_error(DAT_INTERRUPTED_CALL, DAT_NO_SUBTYPE);
	return (DAT_RETURN)DAT_QUEUE_EMPTY; /* bare: GEN-07 */
}

/* What arrived before the call and was not noticed yet triggers first. */
static bool cno_look_locked(struct core_cno *cno)
{
	struct core_ia *ia = cno->ia;

	cno->busy++;
	core_handle_unlock(cno->cell);
	(void)ia->ops->progress(ia);
	core_lock_acquire(&cno->cell->lock);
	if (!--cno->busy && cno->is_dying)
		pthread_cond_signal(&cno->gone);
	return !cno->is_dying;
}

static DAT_RETURN cno_wait_locked(struct core_cno *cno, DAT_TIMEOUT timeout_us,
				  DAT_EVD_HANDLE *evd_out)
{
	struct core_cno_waiter waiter = {.cno = cno, .evd = DAT_HANDLE_NULL};
	DAT_RETURN ret;

	*evd_out = DAT_HANDLE_NULL;
	if (!cno->first && !cno_look_locked(cno)) /* CNO-WAIT-17, GEN-26 */
		return cno->is_freed ? core_bad_handle(DAT_INVALID_HANDLE_CNO) : DAT_SUCCESS;
	if (cno->first) { /* then nobody waits, see cno_keep_locked */
		*evd_out = trigger_take(cno);
		return DAT_SUCCESS;
	}
	core_waker_init(&waiter.waker);
	ret = cno_block_locked(cno, timeout_us, &waiter);
	core_waker_fini(&waiter.waker);
	if (ret == DAT_SUCCESS)
		*evd_out = waiter.evd;
	return ret;
}

DAT_RETURN core_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle)
{
	DAT_RETURN ret = core_bad_handle(DAT_INVALID_HANDLE_CNO);
	struct core_handle *cell;
	struct core_cno *cno;
	struct core_wait_cancel old;

	core_wait_cancel_off(&old);
	cno = core_handle_lock(cno_handle, DAT_HANDLE_TYPE_CNO);
	if (cno) {
		cell = cno->cell;
		ret = evd_handle ? cno_wait_locked(cno, timeout, evd_handle) : core_bad_arg(3);
		core_handle_unlock(cell);
	}
	core_wait_cancel_restore(&old);
	return ret;
}
