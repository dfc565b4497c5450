// SPDX-License-Identifier: BSD-2-Clause
/*
 * Set-up of a connection on one host: REQUEST (with the segment and the key table), ACCEPT (with
 * the key table) or REJECT, READY; without descriptors where an earlier connection has left them
 * (keep.c). The calls of the consumer only send; whatever comes back, and
 * whatever fails, is told by the service thread. A peer that says nothing, or nonsense, is dropped.
 */
#include "soft/shm/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/mem/pz.h"
#include "core/base/slab.h"
#include "soft/address.h"
#include "soft/fds.h"

#define RETRY_NS 2000000u

/* A number that no other endpoint on the host has now: the process, and a count within it. */
static uint64_t new_port(void)
{
	static _Atomic uint32_t count;

	/* relaxed: only the difference counts */
	return UINT64_C(1) << 63 | (uint64_t)(uint32_t)getpid() << 32 |
	       atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

/* --- what the sides tell each other --- */

static void tell_side(struct shm_conn *conn, struct core_ep *ep,
		      const struct transport_conn_param *param, struct shm_wire_side *side)
{
	struct shm_engine *engine = conn->engine;

	/* the passive side's is the qualifier that was asked for, which the core has set */
	conn->port = conn->self == SHM_ACTIVE ? new_port() : ep->local_port;
	conn->read_limit = param->read_out;
	ep->local_port = conn->port;
	side->port = conn->port;
	side->token_address = (uintptr_t)engine->token;
	memcpy(side->token, engine->token, sizeof(side->token));
	side->read_in = param->read_in;
	side->read_out = param->read_out;
	side->pz = ep->pz->id;
	side->ability = conn->remote.has_pull ? SHM_ABLE_PULL : 0;
}

/*
 * The table of our keys tells where our memory is, which is not for other users: they get an empty
 * descriptor in its place. A listed descriptor that is not ours to close, or, if close_out is set,
 * one that is; -errno.
 */
static int keys_to_show(struct shm_conn *conn, int *close_out)
{
	int fd;

	*close_out = -1;
	if (conn->remote.is_same_user)
		return soft_keys_fd(conn->engine->adapter->keys);
	soft_fd_begin();
	fd = soft_fd_end(open("/dev/null", O_RDONLY | O_CLOEXEC));
	*close_out = fd;
	return fd;
}

/* Gets to know the peer's engine; can we read and write its memory? */
static int learn_engine(struct shm_conn *conn, const struct shm_wire_side *side, int keys_fd)
{
	struct shm_remote *remote = &conn->remote;
	uint64_t copy = conn->engine->settings.copy;
	int rc;

	memcpy(remote->token, side->token, sizeof(remote->token));
	if (!remote->is_same_user)
		return 0; /* rings only; its table is not ours to see (keys_to_show) */
	rc = soft_view_get(keys_fd, &remote->view);
	if (rc == -EINVAL) {
		/* no table: it takes us for another user, as where one of us listened before it
		 * changed its user; rings only then, for both */
		remote->is_same_user = false;
		return 0;
	}
	if (rc < 0 || copy == CORE_COPY_RING)
		return rc;
	remote->has_cma = soft_copy_probe(remote->pid, side->token_address, side->token);
	remote->has_pull = remote->has_cma;
	return 0;
}

/* Takes what the peer says of its endpoint. */
static void learn_side(struct shm_conn *conn, const struct shm_wire_side *side)
{
	struct shm_remote *remote = &conn->remote;
	uint64_t copy = conn->engine->settings.copy;

	remote->pz = side->pz;
	conn->peer_read_in = side->read_in;
	conn->peer_read_out = side->read_out;
	remote->alive_ns = shm_now_ns();
	if (remote->view && (copy == CORE_COPY_AUTO || copy == CORE_COPY_MAP))
		remote->maps =
			core_slab_alloc(SHM_MAPS * sizeof(*remote->maps)); /* NULL: no mapping */
}

/* The connection stands. */
static void established(struct shm_conn *conn, struct core_ep *ep,
			const struct transport_conn_param *peer)
{
	conn->was_established = true;
	shm_conn_at(conn, 0);
	if (conn->read_limit > conn->peer_read_in)
		conn->read_limit = conn->peer_read_in;
	conn->tx_next = ep->req.tail;
	conn->tx_ack = ep->req.tail;
	conn->tx_data = ep->req.tail;
	shm_conn_set_state(conn, SHM_ESTABLISHED);
	core_ep_established(ep, peer);
	if (shm_conn_state(conn) != SHM_ESTABLISHED)
		return; /* a watermark has broken it: the service thread tells the end */
	shm_engine_activate(conn->engine, conn);
	shm_conn_pass(conn, ep);
}

/* --- active side --- */

static void fill_request(struct shm_conn *conn, struct core_ep *ep, DAT_CONN_QUAL qual,
			 const struct transport_conn_param *param, union shm_wire *wire)
{
	const union core_sockaddr *own = &ep->ia->address;
	struct shm_wire_request *request = &wire->request;

	shm_wire_prepare(wire, conn->is_kept ? SHM_WIRE_REQUEST_KEPT : SHM_WIRE_REQUEST);
	request->qual = qual;
	request->family = own->sa.sa_family;
	if (own->sa.sa_family == AF_INET) {
		memcpy(request->address, &own->in.sin_addr, sizeof(own->in.sin_addr));
	} else {
		memcpy(request->address, &own->in6.sin6_addr, sizeof(own->in6.sin6_addr));
		request->scope = own->in6.sin6_scope_id;
	}
	tell_side(conn, ep, param, &request->side);
	request->private_size = param->private_data_size;
	memcpy(request->private_data, param->private_data ? param->private_data : "",
	       param->private_data_size);
}

static void fail_later(struct shm_conn *conn, DAT_EVENT_NUMBER number)
{
	conn->failure = number;
	shm_conn_later(conn);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void call_failed(struct shm_conn *conn, int error)
{
	switch (error) {
	case -EAGAIN:	    /* the listener's queue of callers is full */
	case -ETOOMANYREFS: /* too many descriptors are on their way to somebody */
	case -ENOBUFS:
	case -EMFILE:
	case -EINTR: /* nobody is refused for such a reason */
		conn->retry_ns = shm_now_ns() + RETRY_NS;
		shm_conn_at(conn, earlier(conn->retry_ns, conn->give_up_ns));
		break;
	default:
		fail_later(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	}
}

static void wait_for_answer(struct shm_conn *conn)
{
	shm_conn_set_state(conn, SHM_REQUESTED);
	shm_conn_at(conn, conn->give_up_ns == UINT64_MAX ? 0 : conn->give_up_ns);
}

/* Rings at the listener's door once; EP locked. */
static void call_listener(struct shm_conn *conn)
{
	int fds[SHM_WIRE_FDS_MAX] = {conn->segment_fd, -1};
	int empty_fd, rc;

	/* a second call after the first was connected, but could not send, finds it connected */
	if (connect(conn->fd, conn->peer_name, conn->peer_name_len) < 0 && errno != EISCONN) {
		call_failed(conn, -errno);
		return;
	}
	shm_conn_identify(conn);
	fds[1] = keys_to_show(conn, &empty_fd);
	rc = fds[1] < 0 ? fds[1] : shm_conn_send(conn, conn->request, fds, SHM_WIRE_FDS_MAX);
	soft_fd_close(empty_fd);
	if (rc < 0) {
		call_failed(conn, rc);
		return;
	}
	if (shm_conn_watch(conn) < 0) {
		fail_later(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	soft_fd_close(conn->segment_fd);
	conn->segment_fd = -1;
	core_slab_free(conn->request, sizeof(*conn->request));
	conn->request = NULL;
	wait_for_answer(conn);
}

void shm_setup_retry(struct shm_conn *conn, uint64_t now)
{
	if (now >= conn->retry_ns)
		call_listener(conn);
	else
		shm_conn_at(conn, earlier(conn->retry_ns, conn->give_up_ns));
}

static int try_caller(struct shm_engine *engine, const struct sockaddr_un *name, socklen_t name_len,
		      struct shm_conn **conn_out)
{
	struct shm_conn *conn;
	int fd, rc;

	soft_fd_begin();
	fd = soft_fd_end(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return fd;
	rc = shm_conn_create(engine, fd, SHM_ACTIVE, &conn);
	if (rc < 0) {
		soft_fd_close(fd);
		return rc;
	}
	rc = shm_conn_make_segment(conn, &conn->segment_fd);
	if (rc < 0)
		goto err;
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

/* What is kept makes room for it. */
static int make_caller(struct shm_engine *engine, const struct sockaddr_un *name,
		       socklen_t name_len, struct shm_conn **conn_out)
{
	int rc = try_caller(engine, name, name_len, conn_out);

	if (rc != -EMFILE && rc != -ENFILE && rc != -ENOMEM)
		return rc;
	shm_keep_expire(engine, UINT64_MAX);
	return try_caller(engine, name, name_len, conn_out);
}

void shm_setup_anew(struct shm_conn *conn, struct core_ep *ep)
{
	struct shm_conn *next;

	if (make_caller(conn->engine, conn->peer_name, conn->peer_name_len, &next) < 0) {
		fail_later(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	*next->request = *conn->request;
	next->request->head.type = SHM_WIRE_REQUEST;
	next->give_up_ns = conn->give_up_ns;
	next->port = conn->port;
	next->read_limit = conn->read_limit;
	shm_conn_at(conn, 0);
	shm_conn_drop(conn, ep);
	shm_conn_attach(next, ep);
	call_listener(next);
}

/* On the socket of an earlier connection to the same service point, or on a new one. */
static void call(struct shm_conn *conn, struct core_ep *ep)
{
	if (!conn->is_kept) {
		call_listener(conn);
		return;
	}
	/* sent last: the peer must not see two requests */
	if (shm_conn_watch(conn) < 0 || shm_conn_send(conn, conn->request, NULL, 0) < 0)
		shm_setup_anew(conn, ep);
	else
		wait_for_answer(conn);
}

int shm_connect(struct shm_engine *engine, struct core_ep *ep, const union core_sockaddr *address,
		DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us,
		const struct transport_conn_param *param)
{
	struct shm_conn *conn;
	struct sockaddr_un name;
	socklen_t name_len;
	int where = 0, rc;

	/* its own address is where most peers are; to ask the system takes two sockets */
	if (!soft_address_is_same(address, &ep->ia->address))
		where = soft_address_find(address);
	if (where < 0 && where != -EHOSTUNREACH)
		return where;
	name_len = shm_listen_name(address, qual, &name);
	conn = where < 0 ? NULL : shm_keep_take(engine, &name, name_len);
	rc = conn ? 0 : make_caller(engine, &name, name_len, &conn);
	if (rc < 0)
		return rc;
	if (timeout_us != DAT_TIMEOUT_INFINITE)
		conn->give_up_ns = shm_now_ns() + (uint64_t)timeout_us * 1000;
	fill_request(conn, ep, qual, param, conn->request);
	shm_conn_attach(conn, ep);
	if (where < 0)
		fail_later(conn, DAT_CONNECTION_EVENT_UNREACHABLE);
	else
		call(conn, ep);
	return 0;
}

/* ACCEPT: the other side is ready when we say that we are. */
static int answered(struct shm_conn *conn, struct core_ep *ep, const union shm_wire *wire,
		    const int *fds)
{
	const struct shm_wire_accept *accept = &wire->accept;
	const struct transport_conn_param peer = {
		.read_in = accept->side.read_in,
		.read_out = accept->side.read_out,
		.private_data = accept->private_data,
		.private_data_size = accept->private_size,
	};
	int rc;

	if (conn->is_kept != (accept->head.type == SHM_WIRE_ACCEPT_KEPT))
		return -EPROTO;
	rc = conn->is_kept ? 0 : learn_engine(conn, &accept->side, fds[0]);
	if (rc < 0)
		return rc;
	learn_side(conn, &accept->side);
	core_slab_free(conn->request, sizeof(*conn->request)); /* it need not be asked again */
	conn->request = NULL;
	conn->remote.is_pulling =
		conn->remote.is_same_user && (accept->side.ability & SHM_ABLE_PULL);
	rc = shm_conn_send_word(conn, SHM_WIRE_READY, conn->remote.has_pull ? SHM_ABLE_PULL : 0);
	if (rc < 0)
		return rc;
	established(conn, ep, &peer);
	return 0;
}

int shm_setup_answer(struct shm_conn *conn, struct core_ep *ep, const union shm_wire *wire,
		     const int *fds)
{
	const struct transport_conn_param peer = {.read_in = conn->peer_read_in,
						  .read_out = conn->peer_read_out};
	enum shm_state state = shm_conn_state(conn);

	if (wire->head.type == SHM_WIRE_READY && state == SHM_ACCEPTED) {
		conn->remote.is_pulling =
			conn->remote.is_same_user && (wire->word.word & SHM_ABLE_PULL);
		established(conn, ep, &peer);
		return 0;
	}
	if (state != SHM_REQUESTED)
		return -EPROTO;
	if (wire->head.type == SHM_WIRE_ACCEPT || wire->head.type == SHM_WIRE_ACCEPT_KEPT)
		return answered(conn, ep, wire, fds);
	if (wire->head.type != SHM_WIRE_REJECT ||
	    (wire->word.word == SHM_WHY_KEPT && !conn->is_kept))
		return -EPROTO;
	if (wire->word.word == SHM_WHY_KEPT) {
		shm_setup_anew(conn, ep);
		return 0;
	}
	shm_conn_fail_setup(conn, ep,
			    wire->word.word == SHM_WHY_CONSUMER
				    ? DAT_CONNECTION_EVENT_PEER_REJECTED
				    : DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	return 0;
}

/* --- passive side --- */

void shm_setup_drop_silent(struct shm_conn *conn)
{
	shm_conn_unwatch(conn);
	shm_conn_at(conn, 0);
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

/* The first request on a socket brings descriptors. */
static int meet(struct shm_conn *conn, const struct shm_wire_request *wire, const int *fds)
{
	int rc = shm_conn_map_segment(conn, fds[0]);

	if (rc < 0)
		return rc;
	shm_conn_identify(conn);
	return learn_engine(conn, &wire->side, fds[1]);
}

/*
 * A good request: offers it to the core. 0: the connection belongs to the core now. -EAGAIN: the
 * peer shall call on another socket.
 */
static int offer(struct shm_conn *conn, const struct shm_wire_request *wire, const int *fds)
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
	rc = conn->is_kept ? shm_keep_resume(conn) : meet(conn, wire, fds);
	if (rc < 0)
		return rc;
	learn_side(conn, &wire->side);
	request_address(wire, &request.remote_address);
	/* from here on the consumer may take all the time it wants */
	shm_conn_unwatch(conn);
	shm_conn_at(conn, 0);
	shm_listener_forget(conn);
	shm_conn_set_state(conn, SHM_OFFERED);
	return core_sp_request(sp, &request);
}

void shm_setup_arrived(struct shm_conn *conn, const union shm_wire *wire, const int *fds)
{
	if (wire && wire->head.type == (conn->is_kept ? SHM_WIRE_REQUEST_KEPT : SHM_WIRE_REQUEST)) {
		int rc = offer(conn, &wire->request, fds);

		if (!rc)
			return;
		shm_conn_send_word(conn, SHM_WIRE_REJECT,
				   conn->is_kept && rc == -EAGAIN ? SHM_WHY_KEPT
								  : SHM_WHY_PROVIDER);
	} else if (wire && conn->is_kept) {
		return; /* of the connection before */
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
		keys_fd = keys_to_show(conn, &empty_fd);
		if (keys_fd < 0)
			return keys_fd;
	}
	shm_wire_prepare(&wire, conn->is_kept ? SHM_WIRE_ACCEPT_KEPT : SHM_WIRE_ACCEPT);
	wire.accept.private_size = param->private_data_size;
	memcpy(wire.accept.private_data, param->private_data ? param->private_data : "",
	       param->private_data_size);
	tell_side(conn, ep, param, &wire.accept.side);
	shm_conn_attach(conn, ep);
	/* events wait for the endpoint's lock, which the caller holds */
	rc = shm_conn_watch(conn);
	if (rc < 0) {
		mine->conn = NULL;
		atomic_store(&conn->has_ep, false);
		goto out;
	}
	conn->give_up_ns = shm_now_ns() + conn->engine->settings.setup_timeout_ms * 1000000u;
	shm_conn_set_state(conn, SHM_ACCEPTED);
	if (shm_conn_send(conn, &wire, &keys_fd, keys_fd >= 0) < 0)
		fail_later(conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	else
		shm_conn_at(conn, conn->give_up_ns);
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
