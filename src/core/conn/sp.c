// SPDX-License-Identifier: BSD-2-Clause
/*
 * Service points: the common part of PSPs and RSPs. An arriving request is turned into a CR and an
 * event while the service point is locked. So a concurrent free takes effect either before, and the
 * request is refused, or after, and the CR stays.
 */
#include "core/conn/sp.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/conn/cr.h"
#include "core/ep/ep_state.h"
#include "core/event/evd_queue.h"

#define LARGE_FIRST 65536u

/* 0: any qualifier that fits in 16 bits. */
static int sp_try_listen(struct core_sp *sp, DAT_CONN_QUAL qual)
{
	struct core_ia *ia = sp->ia;
	int rc;

	core_lock_acquire(&sp->cell->lock); /* a request waits until conn_qual is set */
	sp->conn_qual = qual;
	rc = transport_this->listen(ia, core_handle_ref(sp->cell), &sp->conn_qual, &sp->listener);
	core_lock_release(&sp->cell->lock);
	return rc;
}

static int sp_listen_until(struct core_sp *sp, DAT_CONN_QUAL qual, uint64_t end)
{
	int rc = sp_try_listen(sp, qual);

	while (rc == -EBUSY && core_now_ns() < end) {
		poll(NULL, 0, 1); /* unlocked */
		rc = sp_try_listen(sp, qual);
	}
	return rc;
}

/*
 * A random qualifier above 65535 (PSP-CRANY-18). Of these there are too many for anybody to hold
 * them all. A peer with header=off could not connect to it.
 */
static int sp_listen_large(struct core_sp *sp)
{
	uint32_t number;

	if (sp->ia->settings.header == CORE_HEADER_OFF)
		return -EADDRNOTAVAIL;
	for (unsigned i = 0; i < CORE_LISTEN_TRIES; i++) {
		int rc;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			break;
		rc = sp_try_listen(sp, number | LARGE_FIRST);
		/* -ENOSPC: none of the ports where it would be found is free */
		if (rc != -EADDRINUSE && rc != -EADDRNOTAVAIL && rc != -EBUSY && rc != -ENOSPC)
			return rc;
	}
	return -EADDRNOTAVAIL;
}

static DAT_RETURN sp_listen(struct core_sp *sp, const struct core_sp_args *args)
{
	int rc = sp_listen_until(sp, args->is_any ? 0 : args->qual, core_now_ns() + CORE_LISTEN_NS);

	if (args->is_any && (rc == -EBUSY || rc == -EADDRNOTAVAIL))
		rc = sp_listen_large(sp);
	if (rc == -EADDRNOTAVAIL && args->is_any)
		return core_error(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE);
	return core_status_from_errno(rc == -EBUSY ? -EADDRINUSE : rc);
}

static DAT_RETURN sp_attach(struct core_sp *sp, const struct core_arg *name, DAT_EVD_HANDLE handle)
{
	switch (core_evd_attach(handle, sp->ia, DAT_EVD_CR_FLAG, CORE_STREAM_PLAIN, &sp->evd)) {
	case CORE_EVD_UNFIT:
		return core_bad_handle(name, DAT_INVALID_HANDLE_EVD_CR, handle);
	case CORE_EVD_CONFLICT:
		return core_bad_arg(name,
				    "%s receives events that need "
				    "DAT_COMPLETION_SOLICITED_WAIT_FLAG",
				    core_handle_name(handle).text);
	case CORE_EVD_FITS:
	default:
		return DAT_SUCCESS;
	}
}

DAT_RETURN core_sp_new(struct core_ia *ia, DAT_EVD_HANDLE evd_handle,
		       const struct core_sp_args *args, struct core_sp **sp_out)
{
	struct core_sp *sp = calloc(1, sizeof(*sp));
	DAT_RETURN ret = core_no_resources(DAT_RESOURCE_MEMORY);

	if (!sp)
		return ret;
	sp->ia = ia;
	sp->flags = args->flags;
	sp->is_rsp = args->is_rsp;
	sp->ep_handle = args->ep_handle;
	sp->ep = args->ep;
	ret = sp_attach(sp, args->evd_name, evd_handle);
	if (ret != DAT_SUCCESS)
		goto free_sp;
	ret = core_no_resources(DAT_RESOURCE_MEMORY);
	sp->cell = core_handle_alloc(&ia->adapter->provider, ia, sp);
	if (!sp->cell)
		goto detach;
	ret = core_ia_add(ia, sp->cell, core_sp_type(sp));
	if (ret != DAT_SUCCESS)
		goto release_cell;
	ret = sp_listen(sp, args);
	if (ret != DAT_SUCCESS)
		goto remove;
	core_ia_count(ia, args->is_rsp	 ? CORE_COUNT_RSP
			  : args->is_any ? CORE_COUNT_PSP_ANY
					 : CORE_COUNT_PSP);
	*sp_out = sp;
	return DAT_SUCCESS;

remove:
	core_lock_acquire(&sp->cell->lock);
	core_handle_kill_locked(sp->cell);
	core_lock_release(&sp->cell->lock);
	core_ia_take_back(ia, sp->cell, core_sp_type(sp));
release_cell:
	core_handle_release(sp->cell);
detach:
	core_evd_detach(sp->evd, CORE_STREAM_PLAIN);
free_sp:
	free(sp);
	return ret;
}

static void sp_stop_locked(struct core_sp *sp)
{
	if (sp->listener)
		transport_this->unlisten(sp->ia, sp->listener);
	sp->listener = NULL;
}

void core_sp_unreserve(struct core_ref ref)
{
	struct core_ep *ep = core_ep_enter(ref);

	if (!ep)
		return;
	if (core_ep_can_move(ep, CORE_EP_UNRESERVE))
		(void)core_ep_move(ep, CORE_EP_UNRESERVE);
	core_ep_leave(ep);
}

void core_sp_destroy(struct core_sp *sp)
{
	struct core_handle *cell = sp->cell;
	DAT_HANDLE_TYPE type = core_sp_type(sp);
	struct core_ia *ia = sp->ia;

	core_lock_acquire(&cell->lock);
	if (sp->is_rsp && sp->listener) /* no request has arrived: the endpoint is still RESERVED */
		core_sp_unreserve(sp->ep);
	sp_stop_locked(sp);
	core_lock_release(&cell->lock);
	core_evd_detach(sp->evd, CORE_STREAM_PLAIN);
	core_ia_remove(ia, cell, type); /* before the free: sp_find() reads listed objects */
	free(sp);
	core_handle_release(cell);
}

DAT_RETURN core_sp_free(const struct core_arg *name, DAT_HANDLE handle, DAT_HANDLE_TYPE type,
			DAT_RETURN_SUBTYPE subtype)
{
	struct core_sp *sp = core_handle_lock(handle, type);

	if (!sp)
		return core_bad_handle(name, subtype, handle);
	core_handle_kill_locked(sp->cell);
	core_handle_unlock(sp->cell);
	core_sp_destroy(sp);
	return DAT_SUCCESS;
}

/* --- requests --- */

/* Gets the endpoint for the CR and locks it. Returns 0 with NULL if the CR needs none. */
static int sp_get_ep(struct core_sp *sp, struct core_ep **ep_out)
{
	const struct core_ep_args args = {.pz = DAT_HANDLE_NULL, .is_provider_made = true};
	bool needs_ep =
		sp->is_rsp ? sp->ep_handle == DAT_HANDLE_NULL : sp->flags == DAT_PSP_PROVIDER_FLAG;
	struct core_ep *ep = NULL;

	*ep_out = NULL;
	if (sp->is_rsp && sp->ep_handle != DAT_HANDLE_NULL) {
		ep = core_ep_enter(sp->ep);
		if (ep && !core_ep_can_move(ep, CORE_EP_REQUEST)) {
			core_ep_leave(ep);
			ep = NULL;
		}
	} else if (!needs_ep) {
		return 0;
	} else if (core_ep_new(sp->ia, &args, &ep) == DAT_SUCCESS) {
		core_lock_acquire(&ep->cell->lock);
	}
	*ep_out = ep;
	return ep ? 0 : -ECONNREFUSED;
}

static void sp_fill_event(const struct core_sp *sp, const struct core_cr *cr, DAT_EVENT *event)
{
	DAT_CR_ARRIVAL_EVENT_DATA *data = &event->event_data.cr_arrival_event_data;

	memset(event, 0, sizeof(*event));
	event->event_number = DAT_CONNECTION_REQUEST_EVENT;
	if (sp->is_rsp)
		data->sp_handle.rsp_handle = sp->cell;
	else
		data->sp_handle.psp_handle = sp->cell;
	data->local_ia_address_ptr = sp->ia->attr.ia_address_ptr;
	data->conn_qual = sp->conn_qual;
	data->cr_handle = cr->cell;
}

/* Assigns the endpoint to the request, before the event is visible. */
static void sp_assign_ep(const struct core_sp *sp, struct core_ep *ep,
			 const struct transport_request *request)
{
	if (core_ep_can_move(ep, CORE_EP_REQUEST))
		(void)core_ep_move(ep, CORE_EP_REQUEST);
	ep->remote_address = request->remote_address;
	ep->remote_port = request->remote_port;
	ep->local_port = sp->conn_qual;
}

static bool sp_raise(struct core_sp *sp, const struct core_cr *cr)
{
	DAT_EVENT event;

	sp_fill_event(sp, cr, &event);
	return core_evd_try_post(sp->evd, &event);
}

/* Undoes sp_get_ep() and sp_assign_ep(). EP locked at entry, not at return. */
static void sp_put_ep(struct core_ep *ep, DAT_EP_STATE before)
{
	/* created by sp_get_ep(), not one that was accepted earlier and belongs to the consumer */
	if (before == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
		core_ep_destroy_locked(ep);
	} else {
		core_ep_restore_state(ep, before);
		core_ep_leave(ep);
	}
}

static void log_request(const struct core_sp *sp, const struct core_cr *cr,
			const struct transport_request *request)
{
	if (core_log_has(CORE_LOG_CONN))
		core_log(CORE_LOG_CONN, "%s on %llu: request %s from %s",
			 core_object_name(sp->cell, core_sp_type(sp)).text,
			 (unsigned long long)sp->conn_qual,
			 core_object_name(cr->cell, DAT_HANDLE_TYPE_CR).text,
			 core_address_text(&request->remote_address, request->remote_port).text);
}

bool core_sp_take_request_locked(struct core_sp *sp, const struct transport_request *request)
{
	struct core_cr *cr = sp->listener ? core_cr_new(sp->ia, request) : NULL;
	DAT_EP_STATE before = DAT_EP_STATE_UNCONNECTED;
	struct core_ref ref = {NULL, 0};
	bool is_live = false, is_taken = false;
	struct core_ep *ep;

	if (!cr)
		return false;
	if (sp_get_ep(sp, &ep))
		goto drop_cr;
	if (ep) {
		ref = core_handle_ref(ep->cell);
		before = ep->state;
		sp_assign_ep(sp, ep, request);
	}
	log_request(sp, cr, request);
	is_live = core_cr_publish(cr, ep ? ep->cell : DAT_HANDLE_NULL, ref);
	is_taken = is_live && sp_raise(sp, cr);
	if (ep && is_taken)
		core_ep_leave(ep);
	else if (ep)
		sp_put_ep(ep, before);
	if (!is_taken)
		goto drop_cr;
	if (sp->is_rsp)
		sp_stop_locked(sp); /* RSP-CREATE-22, -23: an RSP takes one request */
	return true;

drop_cr:
	if (is_live)
		core_cr_delete(cr);
	else
		core_cr_discard(cr);
	return false;
}

int core_sp_request(struct core_ref ref, const struct transport_request *request)
{
	struct core_sp *sp = core_handle_lock_ref(ref, DAT_HANDLE_TYPE_PSP);
	bool is_taken;

	if (!sp)
		sp = core_handle_lock_ref(ref, DAT_HANDLE_TYPE_RSP);
	if (!sp)
		return -ECONNREFUSED;
	is_taken = core_sp_take_request_locked(sp, request);
	core_handle_unlock(ref.cell);
	return is_taken ? 0 : -ECONNREFUSED;
}

/* A reference to a service point with that qualifier. It is not locked, because the lock of the
 * list has the larger rank. */
static struct core_ref sp_find(struct core_ia *ia, DAT_HANDLE_TYPE type, DAT_CONN_QUAL qual)
{
	struct core_ref ref = {NULL, 0};

	core_lock_acquire(&ia->cell->lock);
	for (struct core_handle *cell = ia->objects[type].first; cell && !ref.cell;
	     cell = cell->next) {
		const struct core_sp *sp = cell->object;

		if (sp->conn_qual == qual)
			ref = core_handle_ref(cell);
	}
	core_lock_release(&ia->cell->lock);
	return ref;
}

struct core_sp *core_sp_lock_by_qual(struct core_ia *ia, DAT_CONN_QUAL qual)
{
	static const DAT_HANDLE_TYPE types[] = {DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP};
	struct core_sp *sp;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		sp = core_handle_lock_ref(sp_find(ia, types[i], qual), types[i]);
		if (sp && sp->listener)
			return sp;
		if (sp)
			core_handle_unlock(sp->cell);
	}
	return NULL;
}
