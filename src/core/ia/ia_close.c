// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ia_close. Both kinds first make the instance refuse new objects and wait for calls that are
 * making one; a graceful close then looks whether anything of the consumer's is left, an abrupt one
 * destroys all, in an order in which nothing refers to what is already gone.
 */
#include <sched.h>
#include <stdlib.h>

#include "core/base/calls.h"
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

/* Does anything exist that the consumer has to free first (IA-CLOSE-04, -16)? Locked. */
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
	return ia->objects[DAT_HANDLE_TYPE_EVD].count > (ia->async_is_ours ? 1u : 0u);
}

/* Refuses new objects and waits until no call is making one. Locked. */
static void ia_quiesce_locked(struct core_ia *ia)
{
	ia->is_closing = true;
	while (ia->active_calls)
		core_lock_wait(&ia->cell->lock, &ia->idle);
}

/* True when another instance has its asynchronous events delivered to our EVD. */
static bool ia_async_is_lent(struct core_ia *ia)
{
	struct core_evd *evd;
	bool is_lent;

	if (!ia->async_is_ours)
		return false;
	evd = core_handle_lock_ref(ia->async_ref, DAT_HANDLE_TYPE_EVD);
	if (!evd)
		return false;
	is_lent = evd->users[CORE_STREAM_PLAIN] > 1;
	core_handle_unlock(evd->cell);
	return is_lent;
}

/* From here on every handle of the instance is refused, whoever holds it (IA-CLOSE-27). */
static void ia_doom_all(struct core_ia *ia)
{
	core_lock_acquire(&ia->cell->lock);
	for (int type = 0; type < CORE_TYPE_COUNT; type++)
		for (struct core_handle *cell = ia->objects[type].first; cell; cell = cell->next)
			core_handle_doom(cell);
	core_lock_release(&ia->cell->lock);
}

/*
 * The next object of that type, locked; NULL when the list is empty. One that is not doomed is
 * being freed by another thread, which takes it off the list itself.
 */
static void *ia_next_victim(struct core_ia *ia, DAT_HANDLE_TYPE type)
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

	while ((object = ia_next_victim(ia, type)))
		destroy(object);
}

/* The victims come locked; each destroyer unlocks. */
static void victim_sp(void *object)
{
	struct core_sp *sp = object;

	core_handle_kill_locked(sp->cell);
	core_handle_unlock(sp->cell);
	core_sp_destroy(sp);
}

static void victim_cr(void *object)
{
	core_cr_refuse_locked(object, TRANSPORT_REJECT_PROVIDER);
}

static void victim_ep(void *object)
{
	core_ep_destroy_locked(object);
}

static void victim_rmr(void *object)
{
	core_rmr_destroy_locked(object);
}

static void victim_lmr(void *object)
{
	core_lmr_destroy_locked(object);
}

static void victim_srq(void *object)
{
	core_srq_destroy_locked(object);
}

static void victim_pz(void *object)
{
	core_pz_destroy_locked(object);
}

static void victim_evd(void *object)
{
	struct core_evd *evd = object;

	core_handle_kill_locked(evd->cell);
	core_handle_unlock(evd->cell);
	core_evd_destroy(evd);
}

static void victim_cno(void *object)
{
	core_cno_destroy_locked(object);
}

/*
 * Ends the connections of all endpoints before the first is waited for: a peer that is stopped in
 * the middle of a copy may hold each for the peer time-out, but all of them together (IA-CLOSE-13).
 */
static void ia_detach_eps(struct core_ia *ia)
{
	struct core_object_list *list = &ia->objects[DAT_HANDLE_TYPE_EP];
	struct core_ref *refs;
	uint32_t count = 0;

	core_lock_acquire(&ia->cell->lock);
	refs = malloc(list->count * sizeof(*refs)); /* NULL: they are waited for in turn */
	for (struct core_handle *cell = refs ? list->first : NULL; cell; cell = cell->next)
		refs[count++] = core_handle_ref(cell);
	core_lock_release(&ia->cell->lock);
	while (count--) {
		struct core_handle *cell = refs[count].cell;
		struct core_ep *ep = core_handle_lock_doomed(cell);

		if (ep && cell->generation == refs[count].generation)
			ia->ops->ep_detach(ep);
		if (ep)
			core_handle_unlock(cell);
	}
	free(refs);
}

static void ia_destroy(struct core_ia *ia)
{
	ia_doom_all(ia);
	core_agents_closing(ia);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_RSP, victim_sp);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_PSP, victim_sp);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_CR, victim_cr);
	ia_detach_eps(ia);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_EP, victim_ep);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_RMR, victim_rmr);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_LMR, victim_lmr);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_SRQ, victim_srq);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_PZ, victim_pz);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_EVD, victim_evd);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_CNO, victim_cno);
	core_agents_stop(ia);
	if (!ia->async_is_ours)
		core_evd_unborrow(ia);
	ia->ops->ia_close(ia);
	core_ia_delete(ia);
}

DAT_RETURN core_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags)
{
	bool is_graceful = flags == DAT_CLOSE_GRACEFUL_FLAG;
	struct core_ia *ia = core_handle_lock(ia_handle, DAT_HANDLE_TYPE_IA);
	bool is_refused = false;

	if (!ia)
		return core_bad_handle(DAT_INVALID_HANDLE_IA);
	if (!is_graceful && flags != DAT_CLOSE_ABRUPT_FLAG) {
		core_handle_unlock(ia->cell);
		return core_bad_arg(2);
	}
	if (ia->is_closing) { /* another thread got here first */
		core_handle_unlock(ia->cell);
		return core_bad_handle(DAT_INVALID_HANDLE_IA);
	}
	if (is_graceful)
		is_refused = ia_is_in_use_locked(ia);
	if (!is_refused) {
		ia_quiesce_locked(ia);
		is_refused = is_graceful && (ia_is_in_use_locked(ia) || ia_async_is_lent(ia));
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
