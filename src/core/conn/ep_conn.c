// SPDX-License-Identifier: BSD-2-Clause
/*
 * Connecting and disconnecting endpoints: dat_ep_connect, dat_ep_dup_connect, dat_ep_disconnect,
 * dat_ep_reset, and the reports of the transport (conn.h).
 */
#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/log.h"
#include "core/base/probe.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/conn/ep_conn.h"
#include "core/ep/ep.h"
#include "core/ep/ep_queue.h"
#include "core/ep/ep_state.h"
#include "core/event/evd_queue.h"
#include "shared/names.h"

/* --- connect --- */

struct conn_args {
	union core_sockaddr address;
	DAT_CONN_QUAL qual;
	DAT_TIMEOUT timeout_us;
	DAT_COUNT private_data_size;
	const void *private_data;
	DAT_CONNECT_FLAGS flags;
};

/* These parameters of the call, for errors. */
struct conn_names {
	struct core_arg timeout, size, data, qos;
};

#define CONN_NAMES(call, first)                                                                    \
	{                                                                                          \
		CORE_ARG_INIT(call, first, timeout),                                               \
			CORE_ARG_INIT(call, first + 1, private_data_size),                         \
			CORE_ARG_INIT(call, first + 2, private_data),                              \
			CORE_ARG_INIT(call, first + 3, quality_of_service)                         \
	}

static DAT_RETURN conn_check_common(const struct core_ia *ia, const struct conn_args *args,
				    const struct conn_names *names, DAT_QOS qos)
{
	if (!args->timeout_us)
		return core_bad_arg(&names->timeout, "0");
	if (args->private_data_size < 0 ||
	    args->private_data_size > ia->provider_attr.max_private_data_size)
		return core_bad_range(&names->size, args->private_data_size, 0,
				      ia->provider_attr.max_private_data_size);
	if (args->private_data_size && !args->private_data)
		return core_bad_null(&names->data);
	if (qos != DAT_QOS_BEST_EFFORT)
		return core_unsupported(&names->qos, "not DAT_QOS_BEST_EFFORT");
	return DAT_SUCCESS;
}

static DAT_RETURN conn_bad_family(unsigned int family)
{
	(void)core_bad_arg(CORE_ARG(ep_connect, 2, remote_ia_address),
			   "address family %u is neither AF_INET nor AF_INET6", family);
	return core_error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
}

/* Copies a socket address. Accepts the families that the transports support. */
static DAT_RETURN conn_copy_address(const struct sockaddr *from, union core_sockaddr *to)
{
	memset(to, 0, sizeof(*to));
	if (from->sa_family == AF_INET)
		memcpy(&to->in, from, sizeof(to->in));
	else if (from->sa_family == AF_INET6)
		memcpy(&to->in6, from, sizeof(to->in6));
	else
		return conn_bad_family(from->sa_family);
	return DAT_SUCCESS;
}

static DAT_RETURN conn_not_ready(const struct core_ep *ep, const char *missing, DAT_RETURN ret)
{
	core_log(CORE_LOG_ERROR, "%s: cannot connect: the endpoint has no %s",
		 core_object_name(ep->cell, DAT_HANDLE_TYPE_EP).text, missing);
	return ret;
}

/* A step of the set-up, with the peer's address. */
static void conn_log(const struct core_ep *ep, const char *what, const union core_sockaddr *address,
		     uint64_t port)
{
	if (core_log_has(CORE_LOG_CONN))
		core_log(CORE_LOG_CONN, "%s: %s %s",
			 core_object_name(ep->cell, DAT_HANDLE_TYPE_EP).text, what,
			 core_address_text(address, port).text);
}

static DAT_RETURN conn_start_locked(struct core_ep *ep, const struct conn_args *args)
{
	const struct transport_conn_param param = {
		.read_in = (uint32_t)ep->attr.max_rdma_read_in,
		.read_out = (uint32_t)ep->attr.max_rdma_read_out,
		.private_data = args->private_data,
		.private_data_size = (uint32_t)args->private_data_size,
		.takes = ep->takes,
	};
	DAT_EP_STATE before = ep->state;
	DAT_RETURN ret;
	int rc;

	if (core_ep_check_call(ep, CORE_CALL_CONNECT) != CORE_EP_OK)
		return core_ep_bad_state(ep);
	if (!ep->connect_evd)
		return conn_not_ready(ep, "connect_evd_handle",
				      core_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN));
	if (!ep->pz)
		return conn_not_ready(ep, "pz_handle",
				      core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY));
	(void)core_ep_move(ep, CORE_EP_CONNECT);
	CORE_PROBE3(connect, ep->cell, core_handle_number(ep->cell), args->qual);
	conn_log(ep, "connects to", &args->address, args->qual);
	rc = transport_this->connect(ep, &args->address, args->qual, args->timeout_us, &param);
	ret = core_status_from_errno(rc);
	if (ret != DAT_SUCCESS) {
		core_ep_restore_state(ep, before);
		return ret;
	}
	ep->remote_address = args->address;
	ep->remote_port = args->qual;
	ep->connect_flags = args->flags;
	ep->private_data_size = 0;
	ep->counts.connects++;
	return DAT_SUCCESS;
}

DAT_RETURN core_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
			   DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
			   DAT_COUNT private_data_size, const DAT_PVOID private_data,
			   DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags)
{
	CORE_NO_CANCELLATION;
	static const struct conn_names names = CONN_NAMES(ep_connect, 4);
	struct conn_args args = {.qual = remote_conn_qual,
				 .timeout_us = timeout,
				 .private_data_size = private_data_size,
				 .private_data = private_data,
				 .flags = connect_flags};
	struct core_ep *ep = core_handle_lock(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret;

	if (!ep)
		return core_bad_handle(CORE_ARG(ep_connect, 1, ep_handle), DAT_INVALID_HANDLE_EP,
				       ep_handle);
	if (!remote_ia_address)
		ret = core_bad_null(CORE_ARG(ep_connect, 2, remote_ia_address));
	else if (connect_flags & ~DAT_CONNECT_MULTIPATH_FLAG)
		ret = core_bad_bits(CORE_ARG(ep_connect, 8, connect_flags), connect_flags,
				    DAT_CONNECT_MULTIPATH_FLAG);
	else
		ret = conn_check_common(ep->ia, &args, &names, quality_of_service);
	if (ret == DAT_SUCCESS && connect_flags && !ep->ia->provider_attr.supports_multipath)
		ret = core_unsupported(CORE_ARG(ep_connect, 8, connect_flags),
				       "the adapter has no multipath");
	if (ret == DAT_SUCCESS)
		ret = conn_copy_address((const struct sockaddr *)remote_ia_address, &args.address);
	if (ret == DAT_SUCCESS)
		ret = conn_start_locked(ep, &args);
	core_handle_unlock(ep->cell);
	return ret;
}

/* Reads the remote address and qualifier of the connected endpoint. */
static DAT_RETURN conn_read_source(DAT_EP_HANDLE handle, const struct core_ia **ia_out,
				   struct conn_args *args)
{
	struct core_ep *source = core_handle_lock(handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!source)
		return core_bad_handle(CORE_ARG(ep_dup_connect, 2, ep_dup_handle),
				       DAT_INVALID_HANDLE_EP, handle);
	*ia_out = source->ia;
	if (core_ep_check_call(source, CORE_CALL_DUP_SOURCE) != CORE_EP_OK)
		ret = core_ep_bad_state(source);
	args->address = source->remote_address;
	args->qual = source->remote_port;
	args->flags = source->connect_flags;
	core_handle_unlock(source->cell);
	return ret;
}

DAT_RETURN core_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
			       DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
			       const DAT_PVOID private_data, DAT_QOS quality_of_service)
{
	CORE_NO_CANCELLATION;
	static const struct conn_names names = CONN_NAMES(ep_dup_connect, 3);
	struct conn_args args = {.timeout_us = timeout,
				 .private_data_size = private_data_size,
				 .private_data = private_data};
	const struct core_ia *source_ia = NULL;
	DAT_RETURN source_ret = conn_read_source(ep_dup_handle, &source_ia, &args);
	struct core_ep *ep = core_handle_lock(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret;

	if (!ep)
		return core_bad_handle(CORE_ARG(ep_dup_connect, 1, ep_handle),
				       DAT_INVALID_HANDLE_EP, ep_handle);
	if (!source_ia)
		ret = source_ret;
	else if (source_ia != ep->ia)
		ret = core_bad_handle(CORE_ARG(ep_dup_connect, 2, ep_dup_handle),
				      DAT_INVALID_HANDLE_EP, ep_dup_handle);
	else
		ret = conn_check_common(ep->ia, &args, &names, quality_of_service);
	if (ret == DAT_SUCCESS)
		ret = source_ret;
	if (ret == DAT_SUCCESS)
		ret = conn_start_locked(ep, &args);
	core_handle_unlock(ep->cell);
	return ret;
}

/* --- disconnect, reset --- */

static void conn_disconnect_locked(struct core_ep *ep, bool is_graceful)
{
	if (ep->state == DAT_EP_STATE_CONNECTED)
		(void)core_ep_move(ep, is_graceful ? CORE_EP_DISCONNECT_GRACEFUL
						   : CORE_EP_DISCONNECT_ABRUPT);
	else
		is_graceful = false; /* EP-DISC-20 */
	transport_this->disconnect(ep, is_graceful);
}

DAT_RETURN core_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags)
{
	CORE_NO_CANCELLATION;
	bool is_graceful = close_flags == DAT_CLOSE_GRACEFUL_FLAG;
	struct core_ep *ep = core_handle_lock(ep_handle, DAT_HANDLE_TYPE_EP);
	enum core_ep_verdict verdict;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return core_bad_handle(CORE_ARG(ep_disconnect, 1, ep_handle), DAT_INVALID_HANDLE_EP,
				       ep_handle);
	verdict = core_ep_check_call(ep, is_graceful ? CORE_CALL_DISCONNECT_GRACEFUL
						     : CORE_CALL_DISCONNECT_ABRUPT);
	if (!is_graceful && close_flags != DAT_CLOSE_ABRUPT_FLAG)
		ret = core_bad_arg(
			CORE_ARG(ep_disconnect, 2, close_flags),
			"0x%x is neither DAT_CLOSE_GRACEFUL_FLAG nor DAT_CLOSE_ABRUPT_FLAG",
			(unsigned int)close_flags);
	else if (verdict == CORE_EP_NO)
		ret = core_ep_bad_state(ep);
	else if (verdict == CORE_EP_OK)
		conn_disconnect_locked(ep, is_graceful);
	if (ret == DAT_SUCCESS)
		ep->counts.disconnects++;
	core_handle_unlock(ep->cell);
	return ret;
}

DAT_RETURN core_ep_reset(DAT_EP_HANDLE ep_handle)
{
	CORE_NO_CANCELLATION;
	struct core_ep *ep = core_handle_lock(ep_handle, DAT_HANDLE_TYPE_EP);
	enum core_ep_verdict verdict;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return core_bad_handle(CORE_ARG(ep_reset, 1, ep_handle), DAT_INVALID_HANDLE_EP,
				       ep_handle);
	verdict = core_ep_check_call(ep, CORE_CALL_RESET);
	if (verdict == CORE_EP_NO) {
		ret = core_ep_bad_state(ep);
	} else if (verdict == CORE_EP_OK) {
		ep->is_breaking = false; /* before core_ep_move(), which updates slow_reasons */
		ep->private_data_size = 0;
		ep->local_port = 0;
		core_ep_set_path(ep, OPENDAT_PATH_NONE);
		(void)core_ep_move(ep, CORE_EP_RESET);
	}
	core_handle_unlock(ep->cell);
	return ret;
}

/* --- calls from the transport --- */

static void conn_raise(struct core_ep *ep, DAT_EVENT_NUMBER number, DAT_COUNT size)
{
	DAT_CONNECTION_EVENT_DATA *data;
	DAT_EVENT event;

	if (!number || !ep->connect_evd)
		return;
	memset(&event, 0, sizeof(event));
	event.event_number = number;
	data = &event.event_data.connect_event_data;
	data->ep_handle = ep->cell;
	data->private_data_size = size;
	data->private_data = size ? ep->private_data : NULL;
	core_evd_post(ep->connect_evd, &event, true);
}

/*
 * D2-SRQ-03: an endpoint that takes no buffer of its SRQ any more reports that behind the end of its
 * connection. D2-SRQ-04: over all endpoints of the instance both are in one order, so its lock is
 * held.
 */
static void conn_raise_end(struct core_ep *ep, DAT_EVENT_NUMBER number, bool was_connected)
{
	struct core_lock *lock = &ep->ia->cell->lock;

	if (!was_connected || !ep->srq || !ep->ia->adapter->front->tells_srq_end) {
		conn_raise(ep, number, 0);
		return;
	}
	core_lock_acquire(lock);
	conn_raise(ep, number, 0);
	core_ia_async_event(ep->ia, DAT_ASYNC_ERROR_EP_BROKEN, ep->cell, DAT_EP_OTHER_ERROR);
	core_lock_release(lock);
}

/* Keeps the acceptor's private data for the endpoint; returns their size. */
static uint32_t conn_keep_private(struct core_ep *ep, const struct transport_conn_param *peer)
{
	uint32_t size = peer->private_data_size;

	/* a defect of the transport, which has to refuse them: none is better than a part */
	if (size > CORE_PRIVATE_MAX) {
		core_log(CORE_LOG_ERROR, "%s: %u bytes of private data dropped, the limit is %u",
			 core_object_name(ep->cell, DAT_HANDLE_TYPE_EP).text, size,
			 CORE_PRIVATE_MAX);
		return 0;
	}
	if (size)
		memcpy(ep->private_data, peer->private_data, size);
	return size;
}

void core_ep_established(struct core_ep *ep, const struct transport_conn_param *peer)
{
	bool is_active = ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	uint32_t size = is_active ? conn_keep_private(ep, peer) : 0;

	ep->private_data_size = (DAT_COUNT)size;
	ep->peer_read_in = peer->read_in;
	ep->peer_takes = (uint8_t)peer->takes;
	ep->counts.connections++;
	core_ia_count(ep->ia, is_active ? CORE_COUNT_ACTIVE : CORE_COUNT_PASSIVE);
	CORE_PROBE2(established, ep->cell, core_handle_number(ep->cell));
	conn_log(ep, "connected with", &ep->remote_address, ep->remote_port);
	conn_raise(ep, core_ep_move(ep, CORE_EP_ESTABLISH), (DAT_COUNT)size);
	(void)core_ep_check_watermarks(ep); /* EP-WMARK-10 */
}

static enum core_ep_change conn_failure(DAT_EVENT_NUMBER number)
{
	switch (number) {
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		return CORE_EP_PEER_REJECT;
	case DAT_CONNECTION_EVENT_UNREACHABLE:
		return CORE_EP_UNREACHABLE;
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		return CORE_EP_TIME_OUT;
	case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
		return CORE_EP_ACCEPT_FAIL;
	default:
		return CORE_EP_NON_PEER_REJECT;
	}
}

/* Logs the end of a connection or of an attempt: with whom, and how. */
static void conn_log_end(const struct core_ep *ep, unsigned int kinds, const char *what,
			 DAT_EVENT_NUMBER number)
{
	core_log(kinds, "%s: %s %s: %s", core_object_name(ep->cell, DAT_HANDLE_TYPE_EP).text, what,
		 core_address_text(&ep->remote_address, ep->remote_port).text,
		 opendat_event_name(number));
}

void core_ep_keep_rejection(struct core_ep *ep, const void *private_data, uint32_t size)
{
	const struct transport_conn_param peer = {.private_data = private_data,
						  .private_data_size = size};

	if (ep->ia->adapter->front->tells_reject_data)
		ep->private_data_size = (DAT_COUNT)conn_keep_private(ep, &peer);
}

void core_ep_connect_failed(struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	DAT_COUNT size = number == DAT_CONNECTION_EVENT_PEER_REJECTED ? ep->private_data_size : 0;

	CORE_PROBE3(connect_failed, ep->cell, core_handle_number(ep->cell), number);
	conn_log_end(ep, CORE_LOG_CONN | CORE_LOG_ERROR, "no connection with", number);
	core_ep_flush(ep);
	conn_raise(ep, core_ep_move(ep, conn_failure(number)), size);
}

void core_ep_ended(struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	bool was_connected =
		ep->state == DAT_EP_STATE_CONNECTED || ep->state == DAT_EP_STATE_DISCONNECT_PENDING;
	enum core_ep_change change =
		number == DAT_CONNECTION_EVENT_BROKEN ? CORE_EP_BREAK : CORE_EP_END;

	CORE_PROBE3(ended, ep->cell, core_handle_number(ep->cell), number);
	conn_log_end(ep,
		     number == DAT_CONNECTION_EVENT_BROKEN ? CORE_LOG_CONN | CORE_LOG_ERROR
							   : CORE_LOG_CONN,
		     "end of the connection with", number);
	core_ep_flush(ep);
	conn_raise_end(ep, core_ep_move(ep, change), was_connected);
}
