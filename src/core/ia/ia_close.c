// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ia_close. Both kinds of close make the instance refuse new objects and wait for calls that
 * create one. A graceful close then fails if the consumer still has objects. An abrupt close
 * destroys all objects, each before the objects that it refers to.
 */
#include <sched.h>
#include <stdlib.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/conn/cr.h"
#include "core/conn/sp.h"
#include "core/event/agent.h"
#include "core/event/cno.h"
#include "core/event/evd.h"
#include "core/ia/ia.h"
#include "core/mem/lmr.h"
#include "core/mem/pz.h"
#include "core/mem/rmr.h"
#include "core/srq/srq.h"

/* Does another instance deliver its asynchronous events to our EVD? */
static bool ia_async_is_shared(struct core_ia *ia)
{
	struct core_evd *evd;
	bool is_shared;

	if (!ia->async_is_ours)
		return false;
	evd = core_handle_lock_ref(ia->async_ref, DAT_HANDLE_TYPE_EVD);
	if (!evd)
		return false;
	is_shared = evd->users[CORE_STREAM_PLAIN] > 1;
	core_handle_unlock(evd->cell);
	return is_shared;
}

/* IA-CLOSE-04, -16: are there objects that the consumer has to free first, or another instance
 * that uses our EVD? IA locked. */
static bool ia_is_in_use_locked(struct core_ia *ia)
{
	static const DAT_HANDLE_TYPE types[] = {
		DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_RMR, DAT_HANDLE_TYPE_PZ,  DAT_HANDLE_TYPE_CNO,
		DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_SRQ,
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (ia->objects[types[i]].count)
			return true;
	if (ia->objects[DAT_HANDLE_TYPE_EP].count > ia->tentative_eps)
		return true;
	return ia->objects[DAT_HANDLE_TYPE_EVD].count > (ia->async_is_ours ? 1u : 0u) ||
	       ia_async_is_shared(ia);
}

/* Refuses new objects and waits for the calls that create one. IA locked. */
static void ia_quiesce_locked(struct core_ia *ia)
{
	ia->is_closing = true;
	while (ia->active_calls)
		core_lock_wait(&ia->cell->lock, &ia->idle);
}

/* IA-CLOSE-27: makes every handle of the instance invalid. */
static void ia_doom_all(struct core_ia *ia)
{
	core_lock_acquire(&ia->cell->lock);
	for (int type = 0; type < CORE_TYPE_COUNT; type++)
		for (struct core_handle *cell = ia->objects[type].first; cell; cell = cell->next)
			core_handle_doom(cell);
	core_lock_release(&ia->cell->lock);
}

/*
 * Locks the next object of that type. NULL: there is none. If core_handle_lock_doomed() fails,
 * another thread is freeing the object and removes it from the list itself.
 */
static void *ia_lock_next(struct core_ia *ia, DAT_HANDLE_TYPE type)
{
	struct core_handle *cell;
	void *object;

	for (;;) {
		core_lock_acquire(&ia->cell->lock);
		cell = ia->objects[type].first;
		core_lock_release(&ia->cell->lock);
		if (!cell)
			return NULL;
		object = core_handle_lock_doomed(cell);
		if (object)
			return object;
		sched_yield();
	}
}

static void ia_destroy_all(struct core_ia *ia, DAT_HANDLE_TYPE type, void (*destroy)(void *object))
{
	void *object;

	while ((object = ia_lock_next(ia, type)))
		destroy(object);
}

/* Each of these gets a locked object and unlocks it. */
static void close_sp(void *object)
{
	struct core_sp *sp = object;

	core_handle_kill_locked(sp->cell);
	core_handle_unlock(sp->cell);
	core_sp_destroy(sp);
}

static void close_cr(void *object)
{
	core_cr_refuse_locked(object, TRANSPORT_REJECT_PROVIDER);
}

static void close_ep(void *object)
{
	core_ep_destroy_locked(object);
}

static void close_rmr(void *object)
{
	core_rmr_destroy_locked(object);
}

static void close_lmr(void *object)
{
	core_lmr_destroy_locked(object);
}

static void close_srq(void *object)
{
	core_srq_destroy_locked(object);
}

static void close_pz(void *object)
{
	core_pz_destroy_locked(object);
}

static void close_evd(void *object)
{
	struct core_evd *evd = object;

	core_handle_kill_locked(evd->cell);
	core_handle_unlock(evd->cell);
	core_evd_destroy(evd);
}

static void close_cno(void *object)
{
	core_cno_destroy_locked(object);
}

/*
 * Starts to end the connections of all endpoints before the first endpoint is destroyed. Destroying
 * an endpoint may wait, up to the peer time-out, for a peer that is stopped in the middle of a
 * copy. Started together, these time-outs run in parallel (IA-CLOSE-13).
 */
static void ia_detach_eps(struct core_ia *ia)
{
	struct core_object_list *list = &ia->objects[DAT_HANDLE_TYPE_EP];
	struct core_ref *refs;
	uint32_t count = 0;

	core_lock_acquire(&ia->cell->lock);
	refs = malloc(list->count * sizeof(*refs)); /* NULL: the time-outs run one after another */
	for (struct core_handle *cell = refs ? list->first : NULL; cell; cell = cell->next)
		refs[count++] = core_handle_ref(cell);
	core_lock_release(&ia->cell->lock);
	while (count--) {
		struct core_handle *cell = refs[count].cell;
		struct core_ep *ep = core_handle_lock_doomed(cell);

		if (ep && cell->generation == refs[count].generation)
			transport_this->ep_detach(ep);
		if (ep)
			core_handle_unlock(cell);
	}
	free(refs);
}

static void ia_destroy(struct core_ia *ia)
{
	ia_doom_all(ia);
	core_agents_closing(ia);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_RSP, close_sp);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_PSP, close_sp);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_CR, close_cr);
	ia_detach_eps(ia);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_EP, close_ep);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_RMR, close_rmr);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_LMR, close_lmr);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_SRQ, close_srq);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_PZ, close_pz);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_EVD, close_evd);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_CNO, close_cno);
	core_agents_stop(ia);
	if (!ia->async_is_ours)
		core_evd_unborrow(ia);
	transport_this->ia_close(ia);
	core_ia_delete(ia);
}

DAT_RETURN core_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags)
{
	CORE_NO_CANCELLATION;
	bool is_graceful = flags == DAT_CLOSE_GRACEFUL_FLAG;
	struct core_ia *ia = core_handle_lock(ia_handle, DAT_HANDLE_TYPE_IA);
	bool is_refused = false;

	if (!ia)
		return core_bad_handle(CORE_ARG(ia_close, 1, ia_handle), DAT_INVALID_HANDLE_IA,
				       ia_handle);
	if (!is_graceful && flags != DAT_CLOSE_ABRUPT_FLAG) {
		core_handle_unlock(ia->cell);
		return core_bad_arg(
			CORE_ARG(ia_close, 2, close_flags),
			"0x%x is neither DAT_CLOSE_GRACEFUL_FLAG nor DAT_CLOSE_ABRUPT_FLAG",
			(unsigned int)flags);
	}
	if (ia->is_closing) { /* another thread is closing it */
		core_handle_unlock(ia->cell);
		return core_bad_handle(CORE_ARG(ia_close, 1, ia_handle), DAT_INVALID_HANDLE_IA,
				       ia_handle);
	}
	if (is_graceful)
		is_refused = ia_is_in_use_locked(ia);
	if (!is_refused) {
		ia_quiesce_locked(ia);
		is_refused = is_graceful && ia_is_in_use_locked(ia);
		ia->is_closing = !is_refused;
	}
	if (!is_refused)
		core_handle_kill_locked(ia->cell);
	core_handle_unlock(ia->cell);
	if (is_refused)
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
	ia_destroy(ia);
	return DAT_SUCCESS;
}
