// SPDX-License-Identifier: BSD-2-Clause
/*
 * The passive side of a set-up: a request arrives, the core decides.
 */
#include "soft/shm/connect/setup.h"

#include <errno.h>
#include <string.h>

#include "core/transport.h"
#include "soft/fds.h"
#include "soft/shm/connect/keep.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/state.h"
#include "soft/shm/wire.h"

void shm_setup_drop_silent(struct shm_conn *conn)
{
	shm_conn_epoll_remove(conn);
	shm_conn_set_deadline(conn, 0);
	shm_listener_remove_silent(conn);
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

/* Takes the descriptors of the first request on a socket. */
static int learn_peer(struct shm_conn *conn, const struct shm_wire_request *wire, const int *fds)
{
	int rc = shm_conn_map_segment(conn, fds[0]);

	if (rc < 0)
		return rc;
	shm_conn_identify(conn);
	return shm_setup_learn_process(conn, &wire->side, fds[1]);
}

/*
 * Offers a valid request to the core. 0: the connection belongs to the core now. -EAGAIN: the peer
 * has to request on another socket.
 */
static int offer_request(struct shm_conn *conn, const struct shm_wire_request *wire, const int *fds)
{
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
	rc = conn->is_kept ? shm_keep_resume(conn) : learn_peer(conn, wire, fds);
	if (rc < 0)
		return rc;
	shm_setup_learn_endpoint(conn, &wire->side);
	request_address(wire, &request.remote_address);
	/* from here on the consumer may take any time */
	shm_conn_epoll_remove(conn);
	shm_conn_set_deadline(conn, 0);
	shm_listener_remove_silent(conn);
	shm_conn_set_state(conn, SHM_OFFERED);
	return core_sp_request(sp, &request);
}

void shm_setup_arrived(struct shm_conn *conn, const union shm_wire *wire, const int *fds)
{
	if (wire && wire->head.type == (conn->is_kept ? SHM_WIRE_REQUEST_KEPT : SHM_WIRE_REQUEST)) {
		int rc = offer_request(conn, &wire->request, fds);

		if (!rc)
			return;
		shm_conn_send_word(conn, SHM_WIRE_REJECT,
				   conn->is_kept && rc == -EAGAIN ? SHM_WHY_KEPT
								  : SHM_WHY_PROVIDER);
	} else if (wire && conn->is_kept) {
		return; /* a late packet of the earlier connection */
	}
	shm_setup_drop_silent(conn);
}

int shm_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param)
{
	struct shm_conn *conn = request;
	struct shm_ep *mine = ep->transport;
	int empty_fd = -1, keys_fd = -1, rc;
	union shm_wire wire;

	if (!conn->is_kept) {
		keys_fd = shm_setup_keys_fd(conn, &empty_fd);
		if (keys_fd < 0)
			return keys_fd;
	}
	shm_wire_prepare(&wire, conn->is_kept ? SHM_WIRE_ACCEPT_KEPT : SHM_WIRE_ACCEPT);
	wire.accept.private_size = param->private_data_size;
	memcpy(wire.accept.private_data, param->private_data ? param->private_data : "",
	       param->private_data_size);
	shm_setup_fill_side(conn, ep, param, &wire.accept.side);
	shm_conn_attach(conn, ep);
	/* the service thread waits for the endpoint's lock, which the caller holds */
	rc = shm_conn_epoll_add(conn);
	if (rc < 0) {
		mine->conn = NULL;
		atomic_store(&conn->has_ep, false);
		goto out;
	}
	conn->give_up_ns = shm_now_ns() + conn->engine->settings.setup_timeout_ms * 1000000u;
	shm_conn_set_state(conn, SHM_ACCEPTED);
	if (shm_conn_send(conn, &wire, &keys_fd, keys_fd >= 0) < 0)
		shm_setup_fail_later(conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	else
		shm_conn_set_deadline(conn, conn->give_up_ns);
out:
	soft_fd_close(empty_fd);
	return rc;
}

void shm_reject(void *request, enum transport_reject why)
{
	struct shm_conn *conn = request;

	shm_conn_send_word(conn, SHM_WIRE_REJECT,
			   why == TRANSPORT_REJECT_CONSUMER ? SHM_WHY_CONSUMER : SHM_WHY_PROVIDER);
	shm_conn_put(conn);
}
