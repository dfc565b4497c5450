// SPDX-License-Identifier: BSD-2-Clause
/*
 * The active side of a set-up. An attempt may take several requests, each with an identifier of its
 * own: one for each port that the qualifier may be found at, one more if the private data does not
 * fit into one request, and one more whenever the manager times out before the consumer's time is
 * over.
 */
#include "verbs/connect/active.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#include <rdma/rdma_cma.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/ep/ep.h"
#include "core/transport.h"
#include "shared/cm.h"
#include "verbs/connect/setup.h"
#include "verbs/device/adapter.h"
#include "verbs/device/device.h"
#include "verbs/device/tuning.h"
#include "verbs/transfer/conn.h"

/* Reasons for a reject, which InfiniBand defines and the event reports as its status. */
#define REJECT_NO_LISTENER 8
#define REJECT_STALE 10
#define REJECT_CONSUMER 28

/* --- an attempt --- */

static void set_port(union core_sockaddr *address, uint16_t port)
{
	if (address->sa.sa_family == AF_INET6)
		address->in6.sin6_port = htons(port);
	else
		address->in.sin_port = htons(port);
}

/* Starts a request with a new identifier, bound to our address, to the port that is tried. */
static int attempt_start(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	union core_sockaddr from = adapter->ia->address;

	if (conn->id)
		(void)rdma_destroy_id(conn->id);
	conn->id = NULL;
	conn->state = VRB_RESOLVING;
	if (atomic_load(&adapter->is_dead))
		return -ENODEV;
	if (rdma_create_id(adapter->channel, &conn->id, conn, RDMA_PS_TCP)) {
		conn->id = NULL;
		return -errno;
	}
	set_port(&from, 0);
	set_port(&conn->attempt.address, cm_port(conn->setup.request.qual, conn->attempt.port));
	if (rdma_bind_addr(conn->id, &from.sa) ||
	    rdma_resolve_addr(conn->id, NULL, &conn->attempt.address.sa, VRB_RESOLVE_MS))
		return -errno;
	return 0;
}

/* Takes the part of the private data that goes into this request. */
static void take_part(const struct vrb_conn *conn, struct cm_request *part)
{
	size_t first = conn->adapter->limits.request_room - CM_REQUEST_HEAD;

	*part = conn->setup.request;
	part->data_size = part->size;
	if (part->size <= first)
		return;
	if (conn->attempt.is_continued) {
		part->flags |= CM_CONTINUED;
		part->data_size = (uint8_t)(part->size - first);
		memcpy(part->data, conn->setup.request.data + first, part->data_size);
	} else {
		part->flags |= CM_MORE;
		part->data_size = (uint8_t)first;
	}
}

/* Sends the request. A request with the first part of the private data needs no queue pair, because
 * it is always rejected. */
static int attempt_request(struct vrb_conn *conn, struct core_ep *ep)
{
	bool is_iwarp = conn->adapter->is_iwarp;
	struct rdma_conn_param param;
	struct cm_request part;
	uint8_t bytes[CM_MAX];
	int rc;

	take_part(conn, &part);
	if (!(part.flags & CM_MORE) && !conn->rq.is_open) {
		rc = vrb_qp_to_init(conn, ep);
		if (rc)
			return rc;
	}
	memset(&param, 0, sizeof(param));
	param.private_data = bytes;
	param.private_data_len = (uint8_t)cm_put_request(&part, bytes);
	param.responder_resources = vrb_at_least_one(conn->read_in, is_iwarp);
	param.initiator_depth = vrb_at_least_one(conn->read_out, is_iwarp);
	param.retry_count = VRB_RETRY_COUNT;
	param.rnr_retry_count = VRB_RNR_FOR_EVER;
	param.srq = ep->srq != NULL;
	param.qp_num = conn->qp->qp_num;
	conn->state = VRB_CONNECTING;
	return rdma_connect(conn->id, &param) ? -errno : 0;
}

static DAT_EVENT_NUMBER failure_of(int error)
{
	switch (error) {
	case -ENETUNREACH:
	case -EHOSTUNREACH:
	case -ENODEV:
	case -ENONET:
	case -EADDRNOTAVAIL:
		return DAT_CONNECTION_EVENT_UNREACHABLE;
	default:
		return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
	}
}

/* Starts another request, to the current port. EP locked. */
static DAT_EVENT_NUMBER attempt_restart(struct vrb_conn *conn, struct core_ep *ep)
{
	int rc = conn->rq.is_open ? vrb_qp_renew(conn, ep) : 0;

	if (!rc)
		rc = attempt_start(conn);
	return rc ? failure_of(rc) : VRB_GOES_ON;
}

static unsigned first_port_index(DAT_CONN_QUAL qual)
{
	return cm_port(qual, 0) ? 0 : 1;
}

/* Tries the next port, because this one does not serve the qualifier. If some port has not answered
 * at all, all ports are tried again. */
static DAT_EVENT_NUMBER attempt_next_port(struct vrb_conn *conn, struct core_ep *ep)
{
	conn->attempt.port++;
	if (conn->attempt.port == CM_PORTS && conn->attempt.had_timeout) {
		conn->attempt.had_timeout = false;
		conn->attempt.port = first_port_index(conn->setup.request.qual);
	}
	conn->attempt.is_continued = false;
	if (conn->attempt.port < CM_PORTS)
		return attempt_restart(conn, ep);
	return conn->attempt.refused_at < CM_PORTS ? DAT_CONNECTION_EVENT_PEER_REJECTED
						   : DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
}

/*
 * The connection manager has timed out earlier than the consumer's timeout (EP-CONNECT-25), so the
 * attempt goes on. Over iWARP the port may belong to another kind of server, which does not answer,
 * so the next port is tried. Otherwise the request is repeated.
 */
static DAT_EVENT_NUMBER attempt_timed_out(struct vrb_conn *conn, struct core_ep *ep)
{
	if (conn->adapter->is_iwarp) {
		conn->attempt.had_timeout = true;
		return attempt_next_port(conn, ep);
	}
	conn->attempt.is_continued = false;
	return attempt_restart(conn, ep);
}

static void fill_request(struct vrb_conn *conn, DAT_CONN_QUAL qual,
			 const struct transport_conn_param *param)
{
	struct cm_request *request = &conn->setup.request;
	const struct vrb_limits *limits = &conn->adapter->limits;

	conn->read_in = vrb_at_most(param->read_in, limits->reads_in);
	conn->read_out = vrb_at_most(param->read_out, limits->reads_out);
	request->qual = qual;
	request->size = (uint8_t)param->private_data_size;
	request->read_in = conn->read_in;
	request->read_out = conn->read_out;
	conn->takes = (uint8_t)(param->takes & conn->adapter->takes);
	request->flags = cm_flags_of(conn->takes);
	if (param->private_data_size)
		memcpy(request->data, param->private_data, param->private_data_size);
	if (getrandom(&request->nonce, sizeof(request->nonce), GRND_NONBLOCK) < 0)
		request->nonce = (uint32_t)core_now_ns() ^ conn->key;
}

int vrb_connect(struct core_ep *ep, const union core_sockaddr *address, DAT_CONN_QUAL qual,
		DAT_TIMEOUT timeout_us, const struct transport_conn_param *param)
{
	struct vrb_adapter *adapter = vrb_adapter_of(ep->ia);
	struct vrb_conn *conn;
	int rc = vrb_address_check(address);

	if (rc)
		return rc;
	if (atomic_load(&adapter->is_dead))
		return -ENODEV;
	rc = vrb_conn_create(adapter, VRB_RESOLVING, &conn);
	if (rc)
		return rc;
	conn->attempt.address = *address;
	fill_request(conn, qual, param);
	conn->attempt.port = first_port_index(qual);
	rc = vrb_qp_create(conn, ep);
	if (rc) {
		vrb_conn_release(conn);
		return rc;
	}
	if (timeout_us != DAT_TIMEOUT_INFINITE)
		conn->setup.give_up_ns = core_now_ns() + (uint64_t)timeout_us * 1000;
	vrb_conn_attach(conn, ep);
	rc = attempt_start(conn);
	if (rc)
		conn->setup.failure = failure_of(rc);
	conn->setup.request.port = conn->id ? ntohs(rdma_get_src_port(conn->id)) : 0;
	ep->local_port = conn->setup.request.port ? conn->setup.request.port : 1;
	vrb_conn_set_deadline(conn, rc ? 0 : conn->setup.give_up_ns);
	return 0;
}

/* --- answers --- */

/* Reads the answer of the passive side. False: it is invalid. */
static bool take_answer(struct vrb_conn *conn, const struct vrb_cm_event *event)
{
	int rc = cm_get_accept(event->data, event->size, &conn->setup.answer);

	conn->is_opendat = rc > 0;
	if (rc > 0) {
		conn->setup.peer_read_in = conn->setup.answer.read_in;
		conn->setup.peer_takes = (uint8_t)cm_takes_of(conn->setup.answer.flags);
	} else if (!rc) {
		conn->setup.peer_read_in = event->param.responder_resources;
		conn->setup.peer_takes = vrb_foreign_takes(conn->adapter);
	}
	return rc >= 0;
}

static DAT_EVENT_NUMBER answered(struct vrb_conn *conn, struct core_ep *ep,
				 const struct vrb_cm_event *event)
{
	int rc = -EPROTO;

	if (take_answer(conn, event)) {
		conn->read_out = vrb_at_most(conn->read_out, conn->setup.peer_read_in);
		rc = vrb_qp_to_send(conn, conn->read_in, conn->read_out);
		if (!rc && event->type == RDMA_CM_EVENT_CONNECT_RESPONSE)
			rc = rdma_establish(conn->id) ? -errno : 0;
	}
	if (!rc && conn->is_opendat)
		vrb_conn_established(conn, ep, conn->setup.answer.data, conn->setup.answer.size);
	else if (!rc) /* all that a foreign peer has sent, however long */
		vrb_conn_established(conn, ep, event->data, event->size);
	if (!rc)
		return VRB_GOES_ON;
	core_log(CORE_LOG_CONN, "connect: answer not usable: %s", strerror(-rc));
	return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
}

/*
 * A reject without header comes from a consumer of another library, from a kernel that cleans up
 * after a closed listener or a dead process, or because nothing listens. The first two cannot be
 * distinguished, so the request is repeated: only a consumer rejects it again.
 */
static DAT_EVENT_NUMBER rejected_without_header(struct vrb_conn *conn, struct core_ep *ep,
						int status)
{
	bool is_iwarp = conn->adapter->is_iwarp;
	bool has_no_listener = status == (is_iwarp ? -ECONNREFUSED : REJECT_NO_LISTENER);

	if (has_no_listener) {
		if (conn->attempt.refused_at == conn->attempt.port)
			conn->attempt.refused_at = CM_PORTS;
		return attempt_next_port(conn, ep);
	}
	if (status == REJECT_STALE)
		return attempt_restart(conn, ep);
	if (!is_iwarp && status != REJECT_CONSUMER)
		return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
	if (conn->attempt.refused_at != conn->attempt.port) {
		conn->attempt.refused_at = conn->attempt.port;
		return attempt_restart(conn, ep);
	}
	/* over iWARP the port may belong to another kind of server, which closes streams too */
	return is_iwarp ? attempt_next_port(conn, ep) : DAT_CONNECTION_EVENT_PEER_REJECTED;
}

static DAT_EVENT_NUMBER rejected(struct vrb_conn *conn, struct core_ep *ep,
				 const struct vrb_cm_event *event)
{
	const void *data = NULL;
	uint32_t size;

	switch (cm_get_reject(event->data, event->size)) {
	case CM_REASON_CONSUMER:
		size = cm_reject_data(event->data, event->size, &data);
		core_ep_keep_rejection(ep, data, size);
		return DAT_CONNECTION_EVENT_PEER_REJECTED;
	case CM_REASON_MORE:
		if (conn->attempt.is_continued)
			return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
		conn->attempt.is_continued = true;
		return attempt_restart(conn, ep);
	case CM_REASON_NOT_HERE:
		return attempt_next_port(conn, ep);
	case 0:
		return rejected_without_header(conn, ep, event->status);
	default:
		return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
	}
}

/*
 * The connection manager chose a local port that is free among its own. TCP may use it all the
 * same, for a socket of this host or for a stream in TIME_WAIT. Then an iWARP device cannot connect
 * from it, and the attempt goes on from another port.
 */
static bool is_local_port_taken(struct vrb_conn *conn, int error)
{
	if (!conn->adapter->is_iwarp || (error != -EADDRINUSE && error != -EADDRNOTAVAIL))
		return false;
	return conn->attempt.local_ports++ < VRB_LOCAL_PORTS_MAX;
}

static DAT_EVENT_NUMBER resolved(struct vrb_conn *conn, struct core_ep *ep,
				 const struct vrb_cm_event *event)
{
	int rc;

	if (conn->id->verbs->device != conn->adapter->context->device)
		rc = -ENETUNREACH; /* the route leads over another device */
	else if (event->type == RDMA_CM_EVENT_ADDR_RESOLVED)
		rc = rdma_resolve_route(conn->id, VRB_RESOLVE_MS) ? -errno : 0;
	else
		rc = attempt_request(conn, ep);
	if (rc == -ECONNREFUSED && conn->adapter->is_iwarp)
		return rejected_without_header(conn, ep, rc); /* siw connects TCP in the call */
	if (conn->state == VRB_CONNECTING && is_local_port_taken(conn, rc))
		return attempt_restart(conn, ep);
	return rc ? failure_of(rc) : VRB_GOES_ON;
}

DAT_EVENT_NUMBER vrb_active_event(struct vrb_conn *conn, struct core_ep *ep,
				  const struct vrb_cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return resolved(conn, ep, event);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
		return answered(conn, ep, event);
	case RDMA_CM_EVENT_REJECTED:
		return rejected(conn, ep, event);
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return DAT_CONNECTION_EVENT_UNREACHABLE;
	case RDMA_CM_EVENT_UNREACHABLE:
		if (event->status == -ETIMEDOUT)
			return attempt_timed_out(conn, ep);
		return DAT_CONNECTION_EVENT_UNREACHABLE;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DISCONNECTED:
		return failure_of(event->status);
	default:
		return VRB_GOES_ON;
	}
}

DAT_EVENT_NUMBER vrb_active_due(struct vrb_conn *conn, uint64_t now_ns)
{
	if (conn->setup.failure)
		return conn->setup.failure;
	if (atomic_load(&conn->adapter->is_dead))
		return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
	if (now_ns >= conn->setup.give_up_ns)
		return DAT_CONNECTION_EVENT_TIMED_OUT;
	vrb_conn_set_deadline(conn, conn->setup.give_up_ns);
	return VRB_GOES_ON;
}
