// SPDX-License-Identifier: BSD-2-Clause
/* dat_rmr_bind, and how a bind takes effect (bind.h, mem/rmr.h). */
#include "core/ep/bind.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/probe.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/ep/ep_queue.h"
#include "core/ep/ep_state.h"
#include "core/event/evd.h"
#include "core/mem/pz.h"
#include "core/mem/rmr.h"

#define BIND_FLAGS                                                                                 \
	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |                          \
	 DAT_COMPLETION_BARRIER_FENCE_FLAG)
#define BIND_REMOTE                                                                                \
	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG |                          \
	 CORE_MEM_PRIV_REMOTE_ATOMIC)

/* Counts the binding as a use of the region: dat_lmr_free refuses a region in use. False: the
 * region is being freed. */
static bool binding_hold_lmr(struct core_binding *binding, struct core_lmr *lmr)
{
	struct core_lmr *live = core_handle_lock(lmr->cell, DAT_HANDLE_TYPE_LMR);

	if (!live)
		return false;
	if (live == lmr) {
		atomic_fetch_add(&lmr->bound, 1);
		binding->lmr = lmr;
	}
	core_handle_unlock(live->cell);
	return binding->lmr;
}

/* RMR-BIND-20, -21: remote access through the window needs the same local access to the region. */
static DAT_RETURN binding_check_priv(const struct core_lmr *lmr, DAT_MEM_PRIV_FLAGS priv)
{
	DAT_MEM_PRIV_FLAGS read = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;

	if ((priv & DAT_MEM_PRIV_REMOTE_READ_FLAG) && !(lmr->priv & read))
		return core_error(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ);
	if ((priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG) && !(lmr->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return core_error(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	if (priv & ~lmr->priv & CORE_MEM_PRIV_REMOTE_ATOMIC) /* D2-RMR-16 */
		return core_error(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	return DAT_SUCCESS;
}

CORE_COLD static DAT_RETURN binding_no_region(const DAT_LMR_TRIPLET *triplet)
{
	return core_bad_arg(CORE_ARG(rmr_bind, 2, lmr_triplet),
			    "0x%" PRIx64 " and %" PRIu64
			    " bytes are not inside a live region of lmr_context 0x%x",
			    triplet->virtual_address, triplet->segment_length,
			    triplet->lmr_context);
}

/* Sets the region of the binding. The region is pinned. */
static DAT_RETURN binding_set_lmr(const struct core_ep *ep, struct core_binding *binding,
				  struct core_lmr *lmr, const struct core_pz *pz)
{
	DAT_RETURN ret;

	if (lmr->pz != pz || ep->pz != pz)
		return core_error(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	ret = binding_check_priv(lmr, binding->priv);
	if (ret != DAT_SUCCESS)
		return ret;
	return binding_hold_lmr(binding, lmr) ? DAT_SUCCESS : binding_no_region(&binding->triplet);
}

static DAT_RETURN binding_init(struct core_ep *ep, struct core_binding *binding,
			       const struct core_pz *pz)
{
	struct core_lmr *lmr;
	DAT_RETURN ret;

	if (!binding->triplet.segment_length)
		return ep->pz == pz ? DAT_SUCCESS
				    : core_error(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	lmr = core_mem_get_registered(ep->ia->mem, &binding->triplet);
	if (!lmr)
		return binding_no_region(&binding->triplet); /* RMR-BIND-31, -32 */
	ret = binding_set_lmr(ep, binding, lmr, pz);
	core_mem_put(lmr);
	return ret;
}

/* --- bind --- */

struct bind_args {
	const DAT_LMR_TRIPLET *triplet;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_RMR_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	const DAT_RMR_CONTEXT *context;
};

static DAT_RETURN bind_check(const struct core_ep *ep, const struct bind_args *args)
{
	DAT_MEM_PRIV_FLAGS all = ep->ia->adapter->front->mem_priv;

	if (!args->triplet)
		return core_bad_null(CORE_ARG(rmr_bind, 2, lmr_triplet));
	if (args->priv & ~all)
		return core_bad_bits(CORE_ARG(rmr_bind, 3, mem_priv), args->priv, all);
	if (args->flags & ~BIND_FLAGS)
		return core_bad_bits(CORE_ARG(rmr_bind, 6, completion_flags), args->flags,
				     BIND_FLAGS);
	if ((args->flags & DAT_COMPLETION_UNSIGNALLED_FLAG) &&
	    !(ep->attr.request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG))
		return core_bad_arg(CORE_ARG(rmr_bind, 6, completion_flags),
				    "DAT_COMPLETION_UNSIGNALLED_FLAG, which "
				    "request_completion_flags of the endpoint lacks");
	if (!args->context && args->triplet->segment_length)
		return core_bad_null(CORE_ARG(rmr_bind, 7, context));
	return DAT_SUCCESS;
}

static DAT_RETURN bind_check_state(const struct core_ep *ep)
{
	if (core_ep_check_call(ep, CORE_CALL_POST_REQUEST) == CORE_EP_NO)
		return core_ep_bad_state(ep);
	if (ep->request_evd && !(ep->request_evd->flags & DAT_EVD_RMR_BIND_FLAG))
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_REQUEST);
	if (core_req_is_full(&ep->req))
		return core_no_resources(DAT_RESOURCE_TEP);
	return DAT_SUCCESS;
}

/* The last step that can fail, because a transport may post part of the bind here. */
static DAT_RETURN bind_make_key(struct core_ep *ep, const struct bind_args *args,
				struct core_binding *binding)
{
	const struct transport_window window = {
		.lmr = binding->lmr,
		.address = binding->triplet.virtual_address,
		.length = binding->triplet.segment_length,
		.priv = binding->priv & BIND_REMOTE,
		.flags = args->flags,
	};

	if (!binding->lmr)
		return DAT_SUCCESS;
	return core_status_from_errno(
		transport_this->rmr_key_create(ep, &window, &binding->key, &binding->rkey));
}

static void bind_post(struct core_ep *ep, const struct bind_args *args,
		      struct core_binding *binding)
{
	struct core_req *req = core_req_take(ep, CORE_OP_BIND, args->flags);

	core_req_count(ep, CORE_OP_BIND, 0);
	core_req_clear_transport(req);
	req->len = 0;
	req->segments = 0;
	req->cookie = args->cookie;
	req->binding = binding;
	req->bound_rmr = binding->rmr;
	CORE_PROBE4(request_post, ep->cell, req->op, req->cookie.as_64, req->len);
	if (core_ep_check_call(ep, CORE_CALL_POST_REQUEST) == CORE_EP_FLUSH)
		core_req_done(ep, req, DAT_DTO_ERR_FLUSHED, 0);
	else
		transport_this->post_request(ep, req);
}

static DAT_RETURN bind_locked(struct core_ep *ep, struct core_ref rmr, const struct core_pz *pz,
			      const struct bind_args *args, DAT_RMR_CONTEXT *context)
{
	struct core_binding *binding;
	DAT_RETURN ret = bind_check(ep, args);

	if (ret != DAT_SUCCESS)
		return ret;
	binding = calloc(1, sizeof(*binding));
	if (!binding)
		return core_no_resources(DAT_RESOURCE_MEMORY);
	binding->rmr = rmr;
	binding->triplet = *args->triplet;
	binding->priv = args->priv;
	ret = binding_init(ep, binding, pz);
	if (ret == DAT_SUCCESS)
		ret = bind_check_state(ep);
	if (ret == DAT_SUCCESS)
		ret = bind_make_key(ep, args, binding);
	if (ret != DAT_SUCCESS) {
		core_binding_free(ep->ia, binding);
		return ret;
	}
	if (context && binding->key)
		*context = binding->rkey;
	bind_post(ep, args, binding);
	return DAT_SUCCESS;
}

DAT_RETURN core_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *lmr_triplet,
			 DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle,
			 DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
			 DAT_RMR_CONTEXT *context)
{
	CORE_NO_CANCELLATION;
	const struct bind_args args = {lmr_triplet, mem_priv, user_cookie, completion_flags,
				       context};
	struct core_ep *ep = core_handle_lock(ep_handle, DAT_HANDLE_TYPE_EP);
	struct core_rmr *rmr = core_handle_lock(rmr_handle, DAT_HANDLE_TYPE_RMR);
	const struct core_pz *pz = NULL;
	struct core_ia *ia = NULL;
	struct core_ref ref;
	DAT_RETURN ret;

	if (rmr) {
		ref = core_handle_ref(rmr->cell);
		pz = rmr->pz;
		ia = rmr->ia;
		core_handle_unlock(rmr->cell);
	}
	if (ep && rmr && ep->ia == ia && core_req_is_full(&ep->req))
		ep = core_ep_drive(ep);
	if (!rmr || (ep && ep->ia != ia))
		ret = core_bad_handle(CORE_ARG(rmr_bind, 1, rmr_handle), DAT_INVALID_HANDLE_RMR,
				      rmr_handle);
	else if (!ep)
		ret = core_bad_handle(CORE_ARG(rmr_bind, 4, ep_handle), DAT_INVALID_HANDLE_EP,
				      ep_handle);
	else
		ret = bind_locked(ep, ref, pz, &args, context);
	if (ep)
		core_ep_leave(ep);
	return ret;
}

/* --- execution --- */

/*
 * Revokes the key of the current binding, and removes the binding when no peer copies through it
 * any more. Until then the binding stays current, so that core_bind_drop() can restore it.
 */
static bool rmr_try_unbind_locked(struct core_rmr *rmr)
{
	struct core_binding *old = rmr->current;

	if (old && !transport_this->rmr_key_revoke(rmr->ia, old->key))
		return false;
	rmr->current = NULL;
	core_binding_free(rmr->ia, old);
	return true;
}

struct bind_kill {
	const struct core_pz *pz;
	DAT_RMR_CONTEXT rkey;
	bool is_unbound;
};

/* Is it the window? Then it is unbound. */
static bool rmr_kill(void *object, void *arg)
{
	struct core_rmr *rmr = object;
	struct bind_kill *kill = arg;

	if (!rmr->current || rmr->current->rkey != kill->rkey || rmr->pz != kill->pz ||
	    !(rmr->current->priv & BIND_REMOTE))
		return false;
	kill->is_unbound = rmr_try_unbind_locked(rmr);
	return true;
}

enum core_kill core_bind_kill(struct core_ep *ep, DAT_RMR_CONTEXT rkey)
{
	struct bind_kill kill = {.pz = ep->pz, .rkey = rkey};

	if (!core_ia_find(ep->ia, DAT_HANDLE_TYPE_RMR, rmr_kill, &kill))
		return CORE_KILL_NONE;
	return kill.is_unbound ? CORE_KILL_DONE : CORE_KILL_WAIT;
}

/* RMR-FREE-12: the window was freed after the bind was posted. */
static enum core_bind bind_run_freed(struct core_ep *ep, struct core_req *req, bool is_ready)
{
	if (!is_ready)
		return CORE_BIND_ORDERED;
	core_bind_drop(ep, req);
	core_req_done(ep, req, DAT_DTO_SUCCESS, 0);
	return CORE_BIND_DONE;
}

/* Starts to invalidate the current key. True: later requests need not wait for the bind. */
static bool rmr_retire_locked(struct core_ep *ep, const struct core_rmr *rmr)
{
	return !rmr->current || transport_this->rmr_key_retire(ep, rmr->current->key);
}

enum core_bind core_bind_run(struct core_ep *ep, struct core_req *req, bool is_ready)
{
	struct core_binding *binding = req->binding;
	struct core_rmr *rmr = core_handle_lock_ref(req->bound_rmr, DAT_HANDLE_TYPE_RMR);
	bool is_ordered;

	assert(req->sequence == ep->req.head); /* else an earlier failure could flush it */
	if (!rmr)
		return bind_run_freed(ep, req, is_ready);
	binding->is_begun = true;
	is_ordered = rmr_retire_locked(ep, rmr);
	if (!is_ready || !rmr_try_unbind_locked(rmr)) {
		core_handle_unlock(rmr->cell);
		return is_ordered ? CORE_BIND_ORDERED : CORE_BIND_BLOCKED;
	}
	req->binding = NULL; /* the window takes it over */
	if (binding->lmr) {
		rmr->current = binding;
		transport_this->rmr_key_activate(ep->ia, binding->key);
	} else {
		core_binding_free(ep->ia, binding);
	}
	core_handle_unlock(rmr->cell);
	core_req_done(ep, req, DAT_DTO_SUCCESS, 0);
	return CORE_BIND_DONE;
}

void core_bind_drop(struct core_ep *ep, struct core_req *req)
{
	struct core_binding *binding = req->binding;
	struct core_rmr *rmr = NULL;

	req->binding = NULL;
	if (binding->is_begun)
		rmr = core_handle_lock_ref(req->bound_rmr, DAT_HANDLE_TYPE_RMR);
	if (rmr) {
		if (rmr->current) /* RMR-BIND-39; a later pending bind revokes it again */
			transport_this->rmr_key_activate(ep->ia, rmr->current->key);
		core_handle_unlock(rmr->cell);
	}
	core_binding_free(ep->ia, binding);
}
