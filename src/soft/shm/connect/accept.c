// SPDX-License-Identifier: BSD-2-Clause
/*
 * The passive side of a set-up: a request arrives, the core decides.
 */
#include "core/base/clock.h"
#include "soft/shm/connect/setup.h"

#include <errno.h>
#include <string.h>

#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/fds.h"
#include "soft/shm/connect/identity.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/state.h"
#include "soft/shm/wire.h"

void shm_setup_drop_silent(struct shm_conn *conn)
{
	shm_conn_epoll_remove(conn);
	shm_conn_set_deadline(conn, 0);
	shm_listener_forget(conn);
	shm_conn_put(conn);
}

static void request_address(const struct shm_wire_request *request, union core_sockaddr *address)
{
	memset(address, 0, sizeof(*address));
	address->sa.sa_family = request->family;
	if (request->family == AF_INET) {
		memcpy(&address->in.sin_addr, request->address, sizeof(address->in.sin_addr));
	} else {
		memcpy(&address->in6.sin6_addr, request->address, sizeof(address->in6.sin6_addr));
		address->in6.sin6_scope_id = request->scope;
	}
}

/* -ECONNREFUSED: the setting `peers` forbids the peer. */
static int meet(struct shm_conn *conn, const struct shm_packet *packet)
{
	shm_identify(conn);
	conn->remote.sender = packet->sender;
	shm_setup_learn_process(conn, &packet->wire.request.side);
	if (conn->engine->settings.peers == CORE_PEERS_USER)
		shm_identity_prove(conn, &conn->remote.sender);
	return shm_identity_is_barred(conn) ? -ECONNREFUSED : 0;
}

/* Offers a valid request to the core. 0: the connection belongs to the core now. */
static int offer_request(struct shm_conn *conn, const struct shm_packet *packet)
{
	const struct shm_wire_request *wire = &packet->wire.request;
	struct core_ref sp = shm_listener_sp(conn->listener);
	struct transport_request request = {
		.remote_port = wire->side.port,
		.conn_qual = wire->qual,
		.param = {.read_in = wire->side.read_in,
			  .read_out = wire->side.read_out,
			  .private_data = wire->private_data,
			  .private_data_size = wire->private_size},
		.transport = conn,
	};
	int rc;

	if (wire->qual != shm_listener_qual(conn->listener))
		return -ECONNREFUSED;
	rc = meet(conn, packet);
	if (rc < 0)
		return rc;
	shm_setup_learn_endpoint(conn, &wire->side);
	request_address(wire, &request.remote_address);
	/* from here on the consumer may take any time */
	shm_conn_epoll_remove(conn);
	shm_conn_set_deadline(conn, 0);
	soft_callers_set(&conn->engine->callers, &conn->caller, SOFT_CALLER_OFFERED);
	shm_conn_set_state(conn, SHM_OFFERED);
	return core_sp_request(sp, &request);
}

void shm_setup_arrived(struct shm_conn *conn, const struct shm_packet *packet)
{
	if (packet && packet->wire.head.type == SHM_WIRE_REQUEST) {
		if (!offer_request(conn, packet))
			return;
		shm_conn_send_word(conn, SHM_WIRE_REJECT, SHM_WHY_PROVIDER);
	}
	shm_setup_drop_silent(conn);
}

/* What an accept needs that can fail; an attempt that has failed can be repeated. */
static int prepare_accept(struct shm_conn *conn)
{
	int rc = conn->segment ? 0 : shm_conn_make_segment(conn, &conn->segment_fd);

	if (rc < 0)
		return rc;
	if (!conn->request)
		conn->request = core_slab_alloc(sizeof(*conn->request));
	if (!conn->request)
		return -ENOMEM;
	/* the consumer may have taken any time: who is it now? */
	shm_identity_prove(conn, &conn->remote.sender);
	shm_setup_probe_process(conn);
	/* the peer is of our user: it sends its key table, and memory files later */
	if (conn->remote.is_trusted && shm_socket_refuse_fds(conn->fd, false))
		conn->is_refusing = false;
	return 0;
}

void shm_setup_send_accept(struct shm_conn *conn)
{
	int fds[SHM_WIRE_FDS_MAX] = {conn->segment_fd, shm_setup_keys_fd(conn)};
	int rc = shm_conn_send(conn, conn->request, fds, fds[1] >= 0 ? 2 : 1);

	if (rc == -ETOOMANYREFS || rc == -ENOBUFS) {
		conn->retry_ns = core_now_ns() + SHM_RETRY_NS;
		shm_conn_set_deadline(conn, conn->retry_ns);
		return;
	}
	soft_fd_close(conn->segment_fd);
	conn->segment_fd = -1;
	core_slab_free(conn->request, sizeof(*conn->request));
	conn->request = NULL;
	if (rc < 0)
		shm_setup_fail_later(conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	else
		shm_conn_set_deadline(conn, conn->give_up_ns);
}

int shm_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param)
{
	struct shm_conn *conn = request;
	struct shm_ep *mine = ep->transport;
	int rc = prepare_accept(conn);
	union shm_wire *wire = conn->request;

	if (rc < 0)
		return rc;
	shm_wire_prepare(wire, SHM_WIRE_ACCEPT);
	wire->accept.private_size = param->private_data_size;
	memcpy(wire->accept.private_data, param->private_data ? param->private_data : "",
	       param->private_data_size);
	shm_setup_fill_side(conn, ep, param, &wire->accept.side);
	shm_conn_attach(conn, ep);
	/* the service thread waits for the endpoint's lock, which the caller holds */
	rc = shm_conn_epoll_add(conn);
	if (rc < 0) {
		mine->conn = NULL;
		atomic_store(&conn->has_ep, false);
		return rc;
	}
	shm_listener_forget(conn);
	conn->give_up_ns = core_now_ns() + conn->engine->settings.setup_timeout_ms * 1000000u;
	shm_conn_set_state(conn, SHM_ACCEPTED);
	if (shm_identity_is_barred(conn)) /* it has changed its user since the request */
		shm_setup_fail_later(conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	else
		shm_setup_send_accept(conn);
	return 0;
}

void shm_reject(void *request, enum transport_reject why)
{
	struct shm_conn *conn = request;

	shm_conn_send_word(conn, SHM_WIRE_REJECT,
			   why == TRANSPORT_REJECT_CONSUMER ? SHM_WHY_CONSUMER : SHM_WHY_PROVIDER);
	shm_conn_put(conn);
}
