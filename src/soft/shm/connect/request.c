// SPDX-License-Identifier: BSD-2-Clause
/*
 * The active side of a set-up: it creates the socket and sends the request. The answer brings the
 * segment.
 */
#include "core/base/clock.h"
#include "soft/shm/connect/setup.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/base/log.h"
#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/address.h"
#include "soft/fds.h"
#include "soft/shm/connect/dir.h"
#include "soft/shm/connect/identity.h"
#include "soft/shm/connect/name.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/state.h"
#include "soft/shm/wire.h"

static void fill_request(struct shm_conn *conn, struct core_ep *ep, DAT_CONN_QUAL qual,
			 const struct transport_conn_param *param, union shm_wire *wire)
{
	const union core_sockaddr *own = &ep->ia->address;
	struct shm_wire_request *request = &wire->request;

	shm_wire_prepare(wire, SHM_WIRE_REQUEST);
	request->qual = qual;
	request->family = own->sa.sa_family;
	if (own->sa.sa_family == AF_INET) {
		memcpy(request->address, &own->in.sin_addr, sizeof(own->in.sin_addr));
	} else {
		memcpy(request->address, &own->in6.sin6_addr, sizeof(own->in6.sin6_addr));
		request->scope = own->in6.sin6_scope_id;
	}
	shm_setup_fill_side(conn, ep, param, &request->side);
	request->private_size = param->private_data_size;
	memcpy(request->private_data, param->private_data ? param->private_data : "",
	       param->private_data_size);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void connect_failed(struct shm_conn *conn, int error)
{
	switch (error) {
	case -EAGAIN: /* the listener's backlog is full */
	case -ENOBUFS:
	case -EINTR: /* none of these errors fails a request */
		conn->retry_ns = core_now_ns() + SHM_RETRY_NS;
		shm_conn_set_deadline(conn, earlier(conn->retry_ns, conn->give_up_ns));
		break;
	default:
		shm_setup_fail_later(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	}
}

static void wait_for_answer(struct shm_conn *conn)
{
	shm_conn_set_state(conn, SHM_REQUESTED);
	shm_conn_set_deadline(conn, conn->give_up_ns == UINT64_MAX ? 0 : conn->give_up_ns);
}

/* Connects to the service point; -errno. */
static int connect_socket(struct shm_conn *conn)
{
	const struct sockaddr_un *name = conn->peer_name;

	if (name->sun_path[0])
		return shm_dir_connect(conn->engine->dir, conn->fd, name->sun_path);
	return connect(conn->fd, conn->peer_name, conn->peer_name_len) < 0 ? -errno : 0;
}

/* Tries to connect to the listener and to send the request; EP locked. */
static void connect_listener(struct shm_conn *conn)
{
	int rc = connect_socket(conn);

	/* an earlier attempt connected, but could not send; or call_in_dir did */
	if (rc < 0 && rc != -EISCONN) {
		connect_failed(conn, rc);
		return;
	}
	shm_identify(conn);
	(void)shm_socket_name_senders(conn->fd);
	shm_identity_prove(conn, NULL);
	if (shm_identity_is_barred(conn)) {
		shm_setup_fail_later(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	/* it was not known before who listens */
	conn->request->request.side.token_address = shm_setup_token_address(conn);
	rc = shm_conn_send(conn, conn->request, NULL, 0);
	if (rc < 0) {
		connect_failed(conn, rc);
		return;
	}
	if (shm_conn_epoll_add(conn) < 0) {
		shm_setup_fail_later(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	core_slab_free(conn->request, sizeof(*conn->request));
	conn->request = NULL;
	wait_for_answer(conn);
}

void shm_setup_retry(struct shm_conn *conn, uint64_t now)
{
	if (now >= conn->retry_ns)
		connect_listener(conn);
	else
		shm_conn_set_deadline(conn, earlier(conn->retry_ns, conn->give_up_ns));
}

static int create_active(struct shm_engine *engine, const struct sockaddr_un *name,
			 socklen_t name_len, struct shm_conn **conn_out)
{
	struct shm_conn *conn;
	int fd = soft_fd_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK);
	int rc;

	if (fd < 0)
		return fd;
	rc = shm_conn_create(engine, fd, SHM_ACTIVE, &conn);
	if (rc < 0) {
		soft_fd_close(fd);
		return rc;
	}
	rc = -ENOMEM;
	conn->request = core_slab_alloc(sizeof(*conn->request));
	conn->peer_name = core_slab_alloc(sizeof(*name));
	if (!conn->request || !conn->peer_name)
		goto err;
	memcpy(conn->peer_name, name, sizeof(*name));
	conn->peer_name_len = name_len;
	rc = shm_engine_add(engine, SHM_SLOT_CONN, conn, &conn->id);
	if (rc < 0)
		goto err;
	*conn_out = conn;
	return 0;
err:
	shm_conn_put(conn);
	return rc;
}

/*
 * A connection to a service point of another network namespace that has a name in the directory.
 * -EHOSTUNREACH: nobody listens there, which only an attempt to connect shows.
 */
static int call_in_dir(struct shm_engine *engine, const union core_sockaddr *address,
		       DAT_CONN_QUAL qual, struct shm_conn **conn_out)
{
	struct sockaddr_un name;
	int rc;

	if (engine->dir < 0 || !shm_dir_can_name(address))
		return -EHOSTUNREACH;
	shm_name_file(address, qual, &name);
	rc = create_active(engine, &name, sizeof(name), conn_out);
	if (rc < 0)
		return rc;
	rc = connect_socket(*conn_out);
	if (rc == 0 || rc == -EAGAIN) /* -EAGAIN: its backlog is full */
		return 0;
	core_log(CORE_LOG_CONN, "socket_dir: %s: %s", name.sun_path, strerror(-rc));
	shm_conn_put(*conn_out);
	return shm_is_shortage(rc) ? rc : -EHOSTUNREACH;
}

int shm_connect(struct shm_engine *engine, struct core_ep *ep, const union core_sockaddr *address,
		DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us,
		const struct transport_conn_param *param)
{
	struct shm_conn *conn;
	struct sockaddr_un name;
	socklen_t name_len;
	bool is_nowhere;
	int where = 0, rc;

	/* most peers have our own address; asking the system takes two sockets */
	if (!soft_address_is_same(address, &ep->ia->address))
		where = soft_address_find(address);
	if (where < 0 && where != -EHOSTUNREACH)
		return where;
	name_len = shm_name_abstract(address, qual, &name);
	rc = where < 0 ? call_in_dir(engine, address, qual, &conn)
		       : create_active(engine, &name, name_len, &conn);
	is_nowhere = rc == -EHOSTUNREACH && engine->settings.transport == CORE_TRANSPORT_SHM;
	if (is_nowhere)
		rc = create_active(engine, &name, name_len, &conn);
	if (rc < 0)
		return rc;
	if (timeout_us != DAT_TIMEOUT_INFINITE)
		conn->give_up_ns = core_now_ns() + (uint64_t)timeout_us * 1000;
	fill_request(conn, ep, qual, param, conn->request);
	shm_conn_attach(conn, ep);
	if (is_nowhere)
		shm_setup_fail_later(conn, DAT_CONNECTION_EVENT_UNREACHABLE);
	else
		connect_listener(conn);
	return 0;
}

/* Takes the descriptors of the answer: the segment and the key table, or -1. */
static int learn_peer(struct shm_conn *conn, const struct shm_packet *packet)
{
	int rc;

	shm_identity_prove(conn, &packet->sender);
	if (shm_identity_is_barred(conn))
		return -EPROTO;
	shm_setup_learn_process(conn, &packet->wire.accept.side);
	shm_setup_probe_process(conn);
	/* after the probe: without a key table that can be read there is no direct access */
	rc = shm_setup_take_trust(conn, packet->wire.accept.side.ability, packet->fds[1]);
	if (rc < 0)
		return rc;
	return shm_conn_map_segment(conn, packet->fds[0]);
}

/* Says that the connection is established, with our key table if the peer has sent its own. */
static int send_ready(struct shm_conn *conn)
{
	const int keys_fd = shm_setup_keys_fd(conn);
	union shm_wire wire;
	int rc;

	shm_wire_prepare(&wire, SHM_WIRE_READY);
	wire.word.word = shm_setup_ability(conn);
	rc = shm_conn_send(conn, &wire, &keys_fd, keys_fd >= 0);
	if (rc != -ETOOMANYREFS)
		return rc;
	/* too many descriptors are in flight: the peer uses the rings, and fetches nothing from us
	 */
	conn->remote.is_pulling = false;
	return shm_conn_send(conn, &wire, NULL, 0);
}

/* May the consumer get them? The peer's adapter may allow longer ones (CONN-GEN-11). */
static bool takes_private(const struct shm_conn *conn, uint32_t size)
{
	if (size <= conn->engine->private_max)
		return true;
	core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
		 "process %d accepts with %u bytes of private data, this adapter takes %u: refused",
		 (int)conn->remote.pid, size, conn->engine->private_max);
	return false;
}

int shm_setup_accepted(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet)
{
	const struct shm_wire_accept *accept = &packet->wire.accept;
	const struct transport_conn_param peer = {
		.read_in = accept->side.read_in,
		.read_out = accept->side.read_out,
		.private_data = accept->private_data,
		.private_data_size = accept->private_size,
	};
	int rc;

	if (!takes_private(conn, accept->private_size))
		return -EPROTO;
	rc = learn_peer(conn, packet);
	if (rc < 0)
		return rc;
	shm_packet_close_fds(packet);
	shm_setup_learn_endpoint(conn, &accept->side);
	core_slab_free(conn->request, sizeof(*conn->request)); /* the request is not sent again */
	conn->request = NULL;
	conn->remote.is_pulling = conn->remote.is_trusted && (accept->side.ability & SHM_ABLE_PULL);
	rc = send_ready(conn);
	if (rc < 0)
		return rc;
	shm_setup_established(conn, ep, &peer);
	return 0;
}
