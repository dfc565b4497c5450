// SPDX-License-Identifier: BSD-2-Clause
/* Connection requests: dat_cr_query, dat_cr_accept, dat_cr_reject, dat_cr_handoff. */
#include "core/conn/cr.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/log.h"
#include "core/base/slab.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/conn/sp.h"
#include "core/ep/ep_state.h"

static void cr_free(struct core_cr *cr)
{
	core_slab_free(cr, sizeof(*cr) + (size_t)cr->private_data_size);
}

struct core_cr *core_cr_new(struct core_ia *ia, const struct transport_request *request)
{
	const struct transport_conn_param *param = &request->param;
	struct core_cr *cr = core_slab_alloc(sizeof(*cr) + param->private_data_size);

	if (!cr)
		return NULL;
	cr->ia = ia;
	cr->conn_qual = request->conn_qual;
	cr->remote_address = request->remote_address;
	cr->remote_port = request->remote_port;
	cr->peer_read_in = param->read_in;
	cr->peer_read_out = param->read_out;
	cr->transport = request->transport;
	cr->private_data = (uint8_t *)(cr + 1);
	cr->private_data_size = (DAT_COUNT)param->private_data_size;
	if (param->private_data_size)
		memcpy(cr->private_data, param->private_data, param->private_data_size);
	cr->cell = core_handle_alloc(&ia->adapter->provider, ia, cr);
	if (cr->cell)
		return cr;
	cr_free(cr);
	return NULL;
}

bool core_cr_publish(struct core_cr *cr, DAT_EP_HANDLE ep_handle, struct core_ref ep)
{
	cr->ep_handle = ep_handle;
	cr->ep = ep;
	return core_ia_add(cr->ia, cr->cell, DAT_HANDLE_TYPE_CR) == DAT_SUCCESS;
}

void core_cr_discard(struct core_cr *cr)
{
	core_handle_release(cr->cell);
	cr_free(cr);
}

void core_cr_delete(struct core_cr *cr)
{
	struct core_handle *cell = cr->cell;
	struct core_ia *ia = cr->ia;

	core_lock_acquire(&cell->lock);
	core_handle_kill_locked(cell);
	core_lock_release(&cell->lock);
	cr_free(cr);
	core_ia_remove(ia, cell, DAT_HANDLE_TYPE_CR);
	core_handle_release(cell);
}

/* Releases the endpoint of a CR to the consumer, or destroys it if it was created for the CR. */
static void cr_release_ep(struct core_ref ref)
{
	struct core_ep *ep = ref.cell ? core_ep_enter(ref) : NULL;

	if (!ep)
		return;
	if (ep->state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
		core_ep_destroy_locked(ep);
		return;
	}
	if (core_ep_can_move(ep, CORE_EP_RELEASE))
		(void)core_ep_move(ep, CORE_EP_RELEASE);
	core_ep_leave(ep);
}

static void log_answer(const struct core_cr *cr, const char *what, const char *whom)
{
	core_log(CORE_LOG_CONN, "%s: %s %s", core_object_name(cr->cell, DAT_HANDLE_TYPE_CR).text,
		 what, whom);
}

static void cr_refuse_locked(struct core_cr *cr, enum transport_reject why, const void *data,
			     DAT_COUNT size)
{
	struct core_ref ep = cr->ep;

	core_handle_kill_locked(cr->cell);
	core_handle_unlock(cr->cell);
	if (why == TRANSPORT_REJECT_CONSUMER)
		core_ia_count(cr->ia, CORE_COUNT_REJECT);
	log_answer(cr, "rejected by", why == TRANSPORT_REJECT_CONSUMER ? "the program" : "OpenDAT");
	transport_this->reject(cr->transport, why, data, (uint32_t)size);
	cr_release_ep(ep);
	core_cr_delete(cr);
}

void core_cr_refuse_locked(struct core_cr *cr, enum transport_reject why)
{
	cr_refuse_locked(cr, why, NULL, 0);
}

void core_cr_abandon(DAT_CR_HANDLE handle)
{
	struct core_cr *cr = core_handle_lock(handle, DAT_HANDLE_TYPE_CR);

	if (cr)
		core_cr_refuse_locked(cr, TRANSPORT_REJECT_PROVIDER);
}

DAT_RETURN core_cr_reject_with(DAT_CR_HANDLE cr_handle, DAT_COUNT size, const void *private_data)
{
	CORE_NO_CANCELLATION;
	/* not of DAT 1.2 */
	static const struct core_arg size_arg = {"dat_cr_reject", "private_data_size", 2};
	static const struct core_arg data_arg = {"dat_cr_reject", "private_data", 3};
	struct core_cr *cr = core_handle_lock(cr_handle, DAT_HANDLE_TYPE_CR);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!cr)
		return core_bad_handle(CORE_ARG(cr_reject, 1, cr_handle), DAT_INVALID_HANDLE_CR,
				       cr_handle);
	if (size < 0 || size > cr->ia->provider_attr.max_private_data_size)
		ret = core_bad_range(&size_arg, size, 0,
				     cr->ia->provider_attr.max_private_data_size);
	else if (size && !private_data)
		ret = core_bad_null(&data_arg);
	if (ret != DAT_SUCCESS)
		core_handle_unlock(cr->cell);
	else
		cr_refuse_locked(cr, TRANSPORT_REJECT_CONSUMER, private_data, size);
	return ret;
}

DAT_RETURN core_cr_reject(DAT_CR_HANDLE cr_handle)
{
	return core_cr_reject_with(cr_handle, 0, NULL);
}

DAT_RETURN core_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	CORE_NO_CANCELLATION;
	struct core_cr *cr = core_handle_lock(cr_handle, DAT_HANDLE_TYPE_CR);
	DAT_RETURN ret;

	if (!cr)
		return core_bad_handle(CORE_ARG(cr_query, 1, cr_handle), DAT_INVALID_HANDLE_CR,
				       cr_handle);
	ret = core_check_query(CORE_ARG(cr_query, 2, cr_param_mask), mask, DAT_CR_FIELD_ALL,
			       CORE_ARG(cr_query, 3, cr_param), param);
	if (ret == DAT_SUCCESS) {
		param->remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&cr->remote_address.sa;
		param->remote_port_qual = cr->remote_port;
		param->private_data_size = cr->private_data_size;
		param->private_data = cr->private_data;
		param->local_ep_handle = cr->ep_handle;
	}
	core_handle_unlock(cr->cell);
	return ret;
}

/* --- accept --- */

static DAT_RETURN accept_bad_ep(DAT_EP_HANDLE handle)
{
	return core_bad_handle(CORE_ARG(cr_accept, 2, ep_handle), DAT_INVALID_HANDLE_EP, handle);
}

/* Finds the endpoint to connect and locks it. */
static DAT_RETURN accept_find_ep(struct core_cr *cr, DAT_EP_HANDLE ep_handle,
				 struct core_ep **ep_out)
{
	bool has_own = cr->ep_handle != DAT_HANDLE_NULL;
	struct core_ep *ep;

	if (has_own != (ep_handle == DAT_HANDLE_NULL)) /* CR-ACCEPT-05, -06 */
		return accept_bad_ep(ep_handle);
	ep = has_own ? core_ep_enter(cr->ep)
		     : core_handle_lock_in(ep_handle, DAT_HANDLE_TYPE_EP, cr->ia);
	if (!ep)
		return accept_bad_ep(ep_handle);
	*ep_out = ep;
	return DAT_SUCCESS;
}

static DAT_RETURN accept_check(const struct core_cr *cr, const struct core_ep *ep, DAT_COUNT size,
			       const void *private_data)
{
	bool has_own = cr->ep_handle != DAT_HANDLE_NULL;

	if (!ep->pz || !ep->connect_evd)
		return accept_bad_ep(ep->cell);
	if (size < 0 || size > cr->ia->provider_attr.max_private_data_size)
		return core_bad_range(CORE_ARG(cr_accept, 3, private_data_size), size, 0,
				      cr->ia->provider_attr.max_private_data_size);
	if (size && !private_data)
		return core_bad_null(CORE_ARG(cr_accept, 4, private_data));
	if (core_ep_check_call(ep, has_own ? CORE_CALL_ACCEPT_OWN : CORE_CALL_ACCEPT_NAMED) !=
	    CORE_EP_OK)
		return core_ep_bad_state(ep);
	return DAT_SUCCESS;
}

static DAT_RETURN accept_start(struct core_cr *cr, struct core_ep *ep, DAT_COUNT size,
			       const void *private_data)
{
	const struct transport_conn_param param = {
		.read_in = (uint32_t)ep->attr.max_rdma_read_in,
		.read_out = (uint32_t)ep->attr.max_rdma_read_out,
		.private_data = private_data,
		.private_data_size = (uint32_t)size,
		.takes = ep->takes,
	};
	DAT_EP_STATE before = ep->state;
	int rc;

	/* all of this before accept(), which lets the transport call up */
	(void)core_ep_move(ep, CORE_EP_ACCEPT);
	log_answer(cr, "accepted by", core_object_name(ep->cell, DAT_HANDLE_TYPE_EP).text);
	ep->remote_address = cr->remote_address;
	ep->remote_port = cr->remote_port;
	ep->local_port = cr->conn_qual; /* EP-QUERY-17: as in the request */
	ep->connect_flags = DAT_CONNECT_DEFAULT_FLAG;
	rc = transport_this->accept(cr->transport, ep, &param);
	if (rc)
		core_ep_restore_state(ep, before);
	else if (before == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
		core_ia_count_tentative(ep->ia, -1);
	return core_status_from_errno(rc);
}

DAT_RETURN core_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			  DAT_COUNT private_data_size, const DAT_PVOID private_data)
{
	CORE_NO_CANCELLATION;
	struct core_cr *cr = core_handle_lock(cr_handle, DAT_HANDLE_TYPE_CR);
	struct core_ep *ep = NULL;
	DAT_RETURN ret;

	if (!cr)
		return core_bad_handle(CORE_ARG(cr_accept, 1, cr_handle), DAT_INVALID_HANDLE_CR,
				       cr_handle);
	ret = accept_find_ep(cr, ep_handle, &ep);
	if (ret == DAT_SUCCESS) {
		ret = accept_check(cr, ep, private_data_size, private_data);
		if (ret == DAT_SUCCESS)
			ret = accept_start(cr, ep, private_data_size, private_data);
		core_ep_leave(ep);
	}
	if (ret == DAT_SUCCESS) {
		core_ia_count(cr->ia, CORE_COUNT_ACCEPT);
		core_handle_kill_locked(cr->cell);
	}
	core_handle_unlock(cr->cell);
	if (ret == DAT_SUCCESS)
		core_cr_delete(cr);
	return ret;
}

/* --- handoff --- */

DAT_RETURN core_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff)
{
	CORE_NO_CANCELLATION;
	struct core_cr *cr = core_handle_lock(cr_handle, DAT_HANDLE_TYPE_CR);
	struct transport_request request;
	struct core_ref ref, ep;
	struct core_ia *ia;
	struct core_sp *sp;
	bool is_taken = false;

	if (!cr)
		return core_bad_handle(CORE_ARG(cr_handoff, 1, cr_handle), DAT_INVALID_HANDLE_CR,
				       cr_handle);
	ref = core_handle_ref(cr->cell);
	ia = core_ia_enter(cr->ia->cell);
	core_handle_unlock(cr->cell); /* the lock of the service point has to be taken first */
	if (!ia)
		return core_bad_handle(CORE_ARG(cr_handoff, 1, cr_handle), DAT_INVALID_HANDLE_CR,
				       cr_handle);
	sp = core_sp_lock_by_qual(ia, handoff);
	cr = core_handle_lock_ref(ref, DAT_HANDLE_TYPE_CR);
	if (cr && sp) {
		request = (struct transport_request){
			.remote_address = cr->remote_address,
			.remote_port = cr->remote_port,
			.conn_qual = handoff,
			.param = {cr->peer_read_in, cr->peer_read_out, cr->private_data,
				  (uint32_t)cr->private_data_size},
			.transport = cr->transport,
		};
		is_taken = core_sp_take_request_locked(sp, &request);
		ep = cr->ep;
	}
	if (is_taken)
		core_handle_kill_locked(cr->cell);
	if (cr)
		core_handle_unlock(cr->cell);
	if (sp)
		core_handle_unlock(sp->cell);
	if (is_taken) {
		cr_release_ep(ep);
		core_cr_delete(cr);
	}
	core_ia_leave(ia);
	if (!cr)
		return core_bad_handle(CORE_ARG(cr_handoff, 1, cr_handle), DAT_INVALID_HANDLE_CR,
				       cr_handle);
	if (!is_taken)
		return core_bad_arg(
			CORE_ARG(cr_handoff, 2, handoff),
			"no service point of the instance takes requests for 0x%" PRIx64, handoff);
	return DAT_SUCCESS;
}
