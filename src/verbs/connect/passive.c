// SPDX-License-Identifier: BSD-2-Clause
/*
 * The passive side of a set-up.
 *
 * Listening. A service point claims its qualifier by an abstract local socket whose name has the
 * adapter's address and all 64 bits. So a qualifier is used once on a host, and is free again when
 * the process dies. Its port is the qualifier itself or, if that is not available, one of a short
 * sequence. The header of a request has the qualifier; without a header it is the port.
 */
#include "verbs/connect/passive.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/settings.h"
#include "core/ep/ep.h"
#include "core/transport.h"
#include "shared/cm.h"
#include "shared/fd.h"
#include "verbs/connect/setup.h"
#include "verbs/device/adapter.h"
#include "verbs/device/cq.h"
#include "verbs/device/tuning.h"
#include "verbs/transfer/conn.h"

/* The first part of an attempt's private data. Used by the service thread only. */
struct part {
	bool is_used;
	uint32_t nonce;
	union core_sockaddr from;
	uint8_t size;
	uint8_t data[CM_PRIVATE_MAX];
};

struct vrb_listener {
	struct vrb_peer peer; /* first */
	_Atomic uint32_t refs;
	struct vrb_adapter *adapter;
	struct core_ref sp;
	DAT_CONN_QUAL qual;
	struct rdma_cm_id *id;
	int claim_fd;
	struct part parts[VRB_PARTS];
	unsigned next_part; /* index of the oldest, modulo VRB_PARTS */
};

void vrb_listener_get(struct vrb_listener *listener)
{
	/* relaxed: the caller holds a reference, or an event that keeps the listener alive */
	atomic_fetch_add_explicit(&listener->refs, 1, memory_order_relaxed);
}

void vrb_listener_put(struct vrb_listener *listener)
{
	if (atomic_fetch_sub_explicit(&listener->refs, 1, memory_order_acq_rel) != 1)
		return;
	vrb_adapter_put(listener->adapter);
	free(listener);
}

/* --- the qualifier --- */

/* Returns a socket, or -EADDRINUSE or another error. */
static int claim_qualifier(const union core_sockaddr *address, DAT_CONN_QUAL qual)
{
	char text[INET6_ADDRSTRLEN] = "";
	struct sockaddr_un name;
	socklen_t size;
	int fd, rc;

	if (address->sa.sa_family == AF_INET)
		inet_ntop(AF_INET, &address->in.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &address->in6.sin6_addr, text, sizeof(text));
	memset(&name, 0, sizeof(name));
	name.sun_family = AF_UNIX;
	/* a zero in front makes the name abstract; the one at the end is not part of it */
	rc = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "opendat.verbs.1/%s/%" PRIx64,
		      text, (uint64_t)qual);
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)rc);
	/* a stream that does not listen: nobody can send anything to it, nor a descriptor */
	fd = opendat_fd_move(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&name, size))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* Listens on a port; 0: any. */
static int listen_on(struct vrb_listener *listener, uint16_t port)
{
	struct vrb_adapter *adapter = listener->adapter;
	union core_sockaddr address = adapter->ia->address;
	int rc;

	if (address.sa.sa_family == AF_INET6)
		address.in6.sin6_port = htons(port);
	else
		address.in.sin_port = htons(port);
	if (rdma_create_id(adapter->channel, &listener->id, listener, RDMA_PS_TCP)) {
		listener->id = NULL;
		return -errno;
	}
	if (!rdma_bind_addr(listener->id, &address.sa) && !rdma_listen(listener->id, VRB_BACKLOG))
		return 0;
	rc = -errno;
	(void)rdma_destroy_id(listener->id);
	listener->id = NULL;
	return rc;
}

/* Is the port in use, reserved or privileged, so that another one has to be tried? */
static bool is_port_unavailable(int rc)
{
	return rc == -EADDRINUSE || rc == -EACCES || rc == -EADDRNOTAVAIL || rc == -EPERM;
}

static int listen_given(struct vrb_listener *listener)
{
	int rc = -EADDRINUSE;

	listener->claim_fd = claim_qualifier(&listener->adapter->ia->address, listener->qual);
	if (listener->claim_fd < 0)
		return listener->claim_fd;
	for (unsigned index = 0; index < CM_PORTS && is_port_unavailable(rc); index++) {
		uint16_t port = cm_port(listener->qual, index);

		if (port)
			rc = listen_on(listener, port);
	}
	if (rc)
		close(listener->claim_fd);
	return is_port_unavailable(rc) ? -ENOSPC : rc;
}

/*
 * Uses a port that the kernel chooses. Its number may be the qualifier of a service point that
 * listens on another port.
 */
static int listen_any(struct vrb_listener *listener)
{
	for (int i = 0; i < VRB_CHOOSE_MAX; i++) {
		int rc = listen_on(listener, 0);

		if (rc)
			return is_port_unavailable(rc) ? -EADDRNOTAVAIL : rc;
		listener->qual = ntohs(rdma_get_src_port(listener->id));
		listener->claim_fd =
			claim_qualifier(&listener->adapter->ia->address, listener->qual);
		if (listener->claim_fd >= 0)
			return 0;
		(void)rdma_destroy_id(listener->id);
		listener->id = NULL;
		if (listener->claim_fd != -EADDRINUSE)
			return listener->claim_fd;
	}
	return -EADDRNOTAVAIL;
}

int vrb_listen(struct core_ia *ia, struct core_ref sp, DAT_CONN_QUAL *qual, void **listener_out)
{
	struct vrb_adapter *adapter = vrb_adapter_of(ia);
	struct vrb_listener *listener;
	int rc = vrb_object_create(adapter, sizeof(*listener), (void **)&listener);

	if (rc)
		return rc;
	listener->peer.kind = VRB_KIND_LISTENER;
	listener->adapter = adapter;
	listener->sp = sp;
	listener->qual = *qual;
	atomic_init(&listener->refs, 1);
	vrb_adapter_get(adapter);
	rc = *qual ? listen_given(listener) : listen_any(listener);
	if (rc) {
		vrb_listener_put(listener);
		return rc;
	}
	*qual = listener->qual;
	*listener_out = listener;
	return 0;
}

void vrb_unlisten(struct core_ia *ia, void *object)
{
	struct vrb_listener *listener = object;

	(void)ia;
	(void)rdma_destroy_id(listener->id);
	close(listener->claim_fd);
	vrb_listener_put(listener);
}

/* --- requests --- */

static void refuse_with(struct vrb_conn *conn, enum cm_reason reason, const void *data,
			uint32_t data_size)
{
	uint8_t bytes[CM_REJECT_MAX];
	size_t size = cm_put_reject(reason, data, data_size, bytes);

	/* a foreign peer gets no header; this fails if the peer has given up */
	(void)rdma_reject(conn->id, conn->is_opendat ? bytes : data,
			  (uint8_t)(conn->is_opendat ? size : data_size));
	vrb_conn_release(conn);
}

static void refuse_request(struct vrb_conn *conn, enum cm_reason reason)
{
	refuse_with(conn, reason, NULL, 0);
}

/* A request that is answered keeps its identifier (take_over), so it is marked before. */
static void request_mark(struct vrb_conn *conn, enum vrb_mark mark)
{
	pthread_mutex_lock(&conn->adapter->lock);
	conn->mark = mark;
	pthread_mutex_unlock(&conn->adapter->lock);
}

void vrb_reject(void *request, enum transport_reject why, const void *private_data, uint32_t size)
{
	request_mark(request, VRB_ANSWERED);
	refuse_with(request,
		    why == TRANSPORT_REJECT_CONSUMER ? CM_REASON_CONSUMER : CM_REASON_PROVIDER,
		    private_data, size);
}

static bool is_same_host(const union core_sockaddr *a, const union core_sockaddr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
}

static void peer_address(union core_sockaddr *to, struct rdma_cm_id *id)
{
	const struct sockaddr *from = rdma_get_peer_addr(id);

	memset(to, 0, sizeof(*to));
	memcpy(to, from, from->sa_family == AF_INET6 ? sizeof(to->in6) : sizeof(to->in));
}

static void part_keep(struct vrb_listener *listener, const struct cm_request *request,
		      const union core_sockaddr *from)
{
	struct part *part = &listener->parts[listener->next_part++ % VRB_PARTS];

	part->is_used = true;
	part->nonce = request->nonce;
	part->from = *from;
	part->size = request->data_size;
	memcpy(part->data, request->data, request->data_size);
}

/* Puts the first part in front of the rest. False: it is not stored, or not any more. */
static bool part_join(struct vrb_listener *listener, struct cm_request *request,
		      const union core_sockaddr *from)
{
	for (unsigned i = 0; i < VRB_PARTS; i++) {
		struct part *part = &listener->parts[i];

		if (!part->is_used || part->nonce != request->nonce ||
		    !is_same_host(&part->from, from) ||
		    part->size + request->data_size != request->size)
			continue;
		memmove(request->data + part->size, request->data, request->data_size);
		memcpy(request->data, part->data, part->size);
		request->data_size = request->size;
		part->is_used = false;
		return true;
	}
	return false;
}

/* A request without header: the connection manager has its parameters. */
static void read_foreign_request(struct vrb_conn *conn, const struct vrb_cm_event *event)
{
	struct cm_request *request = &conn->setup.request;

	request->qual = ntohs(rdma_get_src_port(conn->id));
	request->port = ntohs(rdma_get_dst_port(conn->id));
	request->read_in = event->param.initiator_depth;
	request->read_out = event->param.responder_resources;
}

/* Returns 0, or the reason to reject the request. */
static unsigned take_request(struct vrb_listener *listener, struct vrb_conn *conn,
			     const struct vrb_cm_event *event, const union core_sockaddr *from)
{
	struct cm_request *request = &conn->setup.request;
	int rc = cm_get_request(event->data, event->size, listener->adapter->limits.request_room,
				request);

	conn->is_opendat = rc != 0;
	if (rc < 0)
		return CM_REASON_PROVIDER;
	if (!rc)
		read_foreign_request(conn, event);
	if (request->qual != listener->qual)
		return CM_REASON_NOT_HERE;
	if (rc && (request->flags & CM_MORE)) {
		part_keep(listener, request, from);
		return CM_REASON_MORE;
	}
	if (rc && (request->flags & CM_CONTINUED) && !part_join(listener, request, from))
		return CM_REASON_PROVIDER;
	conn->setup.peer_read_in = request->read_in;
	conn->setup.peer_read_out = request->read_out;
	conn->setup.peer_takes =
		rc ? (uint8_t)cm_takes_of(request->flags) : vrb_foreign_takes(conn->adapter);
	return 0;
}

/* Does the first request still wait for its answer, and is the second a repetition of it? */
static bool is_same_request(const struct vrb_conn *a, const struct vrb_conn *b)
{
	union core_sockaddr from_a, from_b;

	if (a->mark != VRB_REPORTED || !a->is_opendat ||
	    a->setup.request.nonce != b->setup.request.nonce ||
	    a->setup.request.qual != b->setup.request.qual)
		return false;
	peer_address(&from_a, a->id);
	peer_address(&from_b, b->id);
	return is_same_host(&from_a, &from_b);
}

/*
 * An active side whose connection manager times out repeats its request. If the consumer here has
 * not answered the first request, that one continues with the identifier of the second, which is
 * not reported. True: done, and `conn` is released.
 */
static bool take_over(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	struct vrb_conn *first;

	pthread_mutex_lock(&adapter->lock);
	for (first = adapter->first; first; first = first->next)
		if (is_same_request(first, conn))
			break;
	if (first) {
		struct rdma_cm_id *id = first->id;

		first->id = conn->id;
		first->id->context = first;
		atomic_store(&first->setup.is_peer_gone, false);
		conn->id = id;
		conn->id->context = conn;
	}
	pthread_mutex_unlock(&adapter->lock);
	if (!first)
		return false;
	core_log(CORE_LOG_CONN, "connection %u: requested again", first->key);
	vrb_conn_release(conn);
	return true;
}

void vrb_listener_event(struct vrb_listener *listener, const struct vrb_cm_event *event,
			struct vrb_conn *conn)
{
	struct transport_request request = {.transport = conn};
	unsigned reason;

	conn->id = event->id;
	peer_address(&request.remote_address, conn->id);
	reason = take_request(listener, conn, event, &request.remote_address);
	if (!reason && conn->is_opendat && take_over(conn))
		return;
	if (!reason) {
		request_mark(conn, VRB_REPORTED);
		request.remote_port = conn->setup.request.port;
		request.conn_qual = conn->setup.request.qual;
		request.param.read_in = conn->setup.peer_read_in;
		request.param.read_out = conn->setup.peer_read_out;
		/* all that a foreign peer has sent, however long */
		request.param.private_data =
			conn->is_opendat ? conn->setup.request.data : event->data;
		request.param.private_data_size =
			conn->is_opendat ? conn->setup.request.data_size : event->size;
		if (core_sp_request(listener->sp, &request))
			reason = CM_REASON_PROVIDER;
	}
	if (reason)
		refuse_request(conn, (enum cm_reason)reason);
}

/* --- the answer --- */

static int accept_now(struct vrb_conn *conn, struct core_ep *ep)
{
	bool is_iwarp = conn->adapter->is_iwarp;
	struct rdma_conn_param param;
	uint8_t bytes[CM_MAX];
	int rc;

	rc = vrb_qp_to_init(conn, ep);
	if (!rc)
		rc = vrb_qp_to_send(conn, conn->read_in, conn->read_out);
	if (rc)
		return rc;
	memset(&param, 0, sizeof(param));
	param.private_data = bytes;
	if (conn->is_opendat) {
		param.private_data_len = (uint8_t)cm_put_accept(&conn->setup.answer, bytes);
	} else {
		memcpy(bytes, conn->setup.answer.data, conn->setup.answer.size);
		param.private_data_len = conn->setup.answer.size;
	}
	param.responder_resources = vrb_at_least_one(conn->read_in, is_iwarp);
	param.initiator_depth = vrb_at_least_one(conn->read_out, is_iwarp);
	param.rnr_retry_count = VRB_RNR_FOR_EVER;
	param.srq = ep->srq != NULL;
	param.qp_num = conn->qp->qp_num;
	return rdma_accept(conn->id, &param) ? -errno : 0;
}

int vrb_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param)
{
	struct vrb_conn *conn = request;
	struct vrb_adapter *adapter = conn->adapter;
	int rc;

	if (atomic_load(&adapter->is_dead))
		return -ENODEV;
	request_mark(conn, VRB_ANSWERED);
	rc = vrb_qp_create(conn, ep);
	if (rc)
		return rc;
	conn->read_in = vrb_at_most(param->read_in, adapter->limits.reads_in);
	conn->read_out = vrb_at_most(vrb_at_most(param->read_out, adapter->limits.reads_out),
				     conn->setup.peer_read_in);
	conn->takes = (uint8_t)(param->takes & adapter->takes);
	conn->setup.answer.read_in = conn->read_in;
	conn->setup.answer.flags = cm_flags_of(conn->takes);
	conn->setup.answer.wants_confirmation = vrb_confirm_is_needed(conn, ep);
	conn->setup.answer.size = (uint8_t)param->private_data_size;
	if (param->private_data_size)
		memcpy(conn->setup.answer.data, param->private_data, param->private_data_size);
	conn->setup.give_up_ns =
		core_now_ns() + adapter->ia->settings.setup_timeout_ms * VRB_NS_PER_MS;
	conn->state = VRB_ACCEPTED;
	vrb_conn_attach(conn, ep);
	rc = atomic_load(&conn->setup.is_peer_gone) ? -ECONNRESET : accept_now(conn, ep);
	if (rc) {
		core_log(CORE_LOG_CONN, "accept: %s", strerror(-rc));
		conn->setup.failure = DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
	}
	/* a thread that saw the peer go before the connection was attached found no endpoint, so
	 * the deadline reports that */
	vrb_conn_set_deadline(
		conn, rc || atomic_load(&conn->setup.is_peer_gone) ? 0 : conn->setup.give_up_ns);
	return 0;
}

DAT_EVENT_NUMBER vrb_passive_event(struct vrb_conn *conn, struct core_ep *ep,
				   const struct vrb_cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!conn->setup.is_unconfirmed)
			vrb_conn_established(conn, ep, NULL, 0);
		return VRB_GOES_ON;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
		return DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
	default:
		return VRB_GOES_ON;
	}
}

DAT_EVENT_NUMBER vrb_passive_due(struct vrb_conn *conn, uint64_t now_ns)
{
	if (atomic_load(&conn->setup.is_peer_gone) || conn->setup.failure ||
	    now_ns >= conn->setup.give_up_ns || atomic_load(&conn->adapter->is_dead))
		return DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
	vrb_conn_set_deadline(conn, conn->setup.give_up_ns);
	return VRB_GOES_ON;
}
