// SPDX-License-Identifier: BSD-2-Clause
/*
 * Set-up of a connection (setup.h): who the peer is, what both sides do, the active side, which
 * creates the socket and sends the request, and the passive side, where a request arrives and the
 * core decides.
 */
#include "soft/shm/connect/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dat/opendat.h>

#include "core/transport.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/slab.h"
#include "core/mem/pz.h"
#include "shared/fd.h"
#include "soft/address.h"
#include "soft/claim.h"
#include "soft/copy.h"
#include "soft/fds.h"
#include "soft/key.h"
#include "soft/shm/instance.h"
#include "soft/shm/socket.h"
#include "soft/shm/state.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/bytes/wire.h"
#include "soft/shm/connect/dir.h"
#include "soft/shm/connect/revoke.h"
#include "soft/shm/transfer/map.h"

/* --- who the peer is --- */

bool shm_identity_shares(const struct shm_engine *engine)
{
	return prctl(PR_GET_DUMPABLE) == 1 && engine->settings.copy != CORE_COPY_RING;
}

/* Was the packet sent by a process of our user? */
static bool is_of_our_user(const struct shm_packet *packet)
{
	uid_t uid = packet->sender.uid;

	if (uid == geteuid() && !shm_is_nobody(uid))
		return true;
	core_log(CORE_LOG_CONN, "process %d is of user %u: no shared memory with it",
		 (int)packet->sender.pid, (unsigned)uid);
	return false;
}

void shm_identity_learn(struct shm_conn *conn, const struct shm_packet *packet)
{
	struct shm_remote *remote = &conn->remote;

	remote->sender = packet->sender;
	shm_conn_set_reach(conn, packet->sender.pid > 0 && shm_identity_shares(conn->engine)
					 ? SHM_REACH_DIRECT
					 : SHM_REACH_RING);
}

bool shm_identity_is_same(const struct shm_conn *conn, const struct shm_packet *packet)
{
	const struct ucred *first = &conn->remote.sender;

	return packet->sender.pid == first->pid && packet->sender.uid == first->uid;
}

void shm_identity_tell(const struct shm_conn *conn, struct transport_peer *peer_out)
{
	const struct ucred *sender = &conn->remote.sender;

	*peer_out = (struct transport_peer){
		.flags = DAT_OPENDAT_PEER_USER | DAT_OPENDAT_PEER_PROVEN |
			 (sender->pid > 0 ? DAT_OPENDAT_PEER_PROCESS : 0),
		.uid = sender->uid,
		.gid = sender->gid,
		.pid = (uint32_t)sender->pid,
	};
}

/* --- both sides --- */

/* A number that no other endpoint on the host uses: the process, and a count within it. */
static uint64_t new_port(void)
{
	static _Atomic uint32_t count;

	/* relaxed: the numbers only have to differ */
	return UINT64_C(1) << 63 | (uint64_t)(uint32_t)getpid() << 32 |
	       atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

/* Describes our endpoint and process to the peer. */
static void fill_side(struct shm_conn *conn, struct core_ep *ep,
		      const struct transport_conn_param *param, struct shm_wire_side *side)
{
	struct shm_engine *engine = conn->engine;

	/* on the passive side it is the requested qualifier, which the core has set */
	if (!conn->setup->listener)
		ep->local_port = new_port();
	conn->tx.read_limit = param->read_out;
	side->port = ep->local_port;
	side->token_address = shm_identity_shares(engine) ? (uintptr_t)engine->token : 0;
	memcpy(side->token, engine->token, sizeof(side->token));
	side->read_in = param->read_in;
	side->read_out = param->read_out;
	side->takes = param->takes;
	conn->takes = param->takes;
	conn->pz = ep->pz->id;
	side->pz = conn->pz;
}

/* The descriptor of our key table, which says where our memory is; -1: the peer does not get it. */
static int keys_fd_of(const struct shm_conn *conn)
{
	return shm_conn_reach(conn) >= SHM_REACH_DIRECT ? soft_keys_fd(conn->engine->adapter->keys)
							: -1;
}

/*
 * Can we read and write the peer's memory? The kernel finds it by the number of any thread. That of
 * the guard's holder is the peer's as long as the guard is no orphan, while the main thread, whose
 * number is that of the process, may end before the others.
 */
static void probe_process(struct shm_conn *conn)
{
	const struct shm_wire_side *peer = &conn->setup->peer;
	struct shm_remote *remote = &conn->remote;
	pid_t thread = soft_view_thread(remote->view);

	/* the peer says which thread that is, and the kernel whether it is one of the peer */
	if (!thread || syscall(SYS_tgkill, remote->sender.pid, thread, 0) ||
	    !soft_copy_probe(thread, peer->token_address, peer->token))
		return;
	remote->thread = thread;
	shm_conn_set_reach(conn, SHM_REACH_KERNEL);
}

int shm_setup_take_keys(struct shm_conn *conn, int keys_fd)
{
	int rc;

	if (shm_conn_reach(conn) < SHM_REACH_DIRECT || keys_fd < 0)
		return 0;
	rc = soft_view_get(keys_fd, &conn->remote.view);
	if (rc == 0)
		probe_process(conn);
	return rc == -EINVAL ? 0 : rc;
}

void shm_setup_learn_side(struct shm_conn *conn, const struct shm_wire_side *side)
{
	conn->remote.pz = side->pz;
	conn->setup->peer = *side;
}

static void make_maps(struct shm_conn *conn)
{
	struct shm_remote *remote = &conn->remote;
	uint64_t copy = conn->engine->settings.copy;

	if (remote->view && (copy == CORE_COPY_AUTO || copy == CORE_COPY_MAP))
		remote->maps =
			core_slab_alloc(SHM_MAPS * sizeof(*remote->maps)); /* NULL: no mapping */
}

/* The connection is established; a pass has to follow. */
static void establish(struct shm_conn *conn, struct core_ep *ep,
		      const struct transport_conn_param *peer)
{
	make_maps(conn);
	shm_conn_set_deadline(conn, 0);
	if (conn->tx.read_limit > conn->setup->peer.read_in)
		conn->tx.read_limit = conn->setup->peer.read_in;
	conn->tx.next = ep->req.tail;
	conn->tx.ack_from = ep->req.tail;
	conn->tx.data_from = ep->req.tail;
	shm_conn_set_state(conn, SHM_ESTABLISHED);
	core_ep_set_path(ep, OPENDAT_PATH_RING);
	core_log(CORE_LOG_CONN, "%s: over shared memory: process %d, its memory %s, is %s",
		 shm_conn_name(conn).text, (int)conn->remote.sender.pid,
		 conn->remote.maps ? "may be mapped" : "is not mapped",
		 shm_conn_reach(conn) == SHM_REACH_KERNEL ? "copied by the kernel"
							  : "not copied by the kernel");
	shm_conn_end_setup(conn);
	core_ep_established(ep, peer);
	/* else a watermark has broken it: the service thread reports the end */
	if (shm_conn_state(conn) == SHM_ESTABLISHED)
		shm_engine_activate(conn->engine, conn);
}

/* Has the service thread report that the set-up failed. */
static void fail_later(struct shm_conn *conn, DAT_EVENT_NUMBER number)
{
	conn->setup->failure = number;
	shm_conn_serve_later(conn);
}

/* --- the active side --- */

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
	fill_side(conn, ep, param, &request->side);
	request->private_size = param->private_data_size;
	memcpy(request->private_data, param->private_data ? param->private_data : "",
	       param->private_data_size);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int connect_socket(struct shm_conn *conn)
{
	return shm_dir_connect(&conn->engine->dir, conn->fd, conn->setup->name);
}

/* The listener's backlog is full, or the kernel is short of something; the attempt goes on. */
static bool is_delay(int rc)
{
	return rc == -EAGAIN || rc == -ENOBUFS || rc == -EINTR;
}

/* Does no process of our user listen there, as far as we can see? */
static bool is_unanswered(int rc)
{
	return rc < 0 && rc != -EISCONN && !is_delay(rc) && !shm_is_shortage(rc);
}

static void try_again_later(struct shm_conn *conn)
{
	conn->setup->retry_ns = core_now_ns() + SHM_RETRY_NS;
	shm_conn_set_deadline(conn, earlier(conn->setup->retry_ns, conn->setup->give_up_ns));
}

/* Says why another path is not tried. */
static void tell_exclusion(const struct shm_conn *conn)
{
	const struct shm_setup *setup = conn->setup;
	const DAT_CONN_QUAL qual = setup->wire.request.qual;
	const char *setting = conn->engine->ia->settings.peers == CORE_PEERS_USER ? "peers=user"
										  : "transport=shm";

	if (!core_log_has(CORE_LOG_CONN | CORE_LOG_ERROR))
		return;
	if (soft_claim_exists(SOFT_CLAIM_TCP, &setup->address, qual) ||
	    soft_claim_exists(SOFT_CLAIM_USER, &setup->address, qual))
		core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
			 "%s: excluded by %s: the process that listens there is of another user, "
			 "or has another transport or socket_dir",
			 shm_conn_name(conn).text, setting);
	else
		core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
			 "%s: no process of this user listens there, and %s excludes all others",
			 shm_conn_name(conn).text, setting);
}

/* Sends the request if the socket is connected; rc says whether that has failed. EP locked. */
static void send_request(struct shm_conn *conn, int rc)
{
	if (rc == 0 || rc == -EISCONN) /* an earlier attempt connected, but could not send */
		rc = shm_conn_send(conn, &conn->setup->wire, NULL, 0);
	if (is_delay(rc)) {
		try_again_later(conn);
		return;
	}
	if (is_unanswered(rc) && !conn->setup->otherwise)
		tell_exclusion(conn);
	if (rc < 0 || shm_conn_epoll_add(conn) < 0) {
		fail_later(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	shm_conn_set_state(conn, SHM_REQUESTED);
	shm_conn_set_deadline(conn,
			      conn->setup->give_up_ns == UINT64_MAX ? 0 : conn->setup->give_up_ns);
}

static DAT_TIMEOUT time_left(const struct shm_conn *conn)
{
	uint64_t now = core_now_ns();

	if (conn->setup->give_up_ns == UINT64_MAX)
		return DAT_TIMEOUT_INFINITE;
	return conn->setup->give_up_ns > now ? (DAT_TIMEOUT)((conn->setup->give_up_ns - now) / 1000)
					     : 0;
}

/* CALLING, REQUESTED: the service point is not of our user. EP locked, service thread. */
static void go_elsewhere(struct shm_conn *conn, struct core_ep *ep)
{
	const struct shm_setup *setup = conn->setup;
	const struct shm_wire_request *request = &setup->wire.request;
	const struct transport_conn_param param = {
		.read_in = request->side.read_in,
		.read_out = request->side.read_out,
		.takes = conn->takes,
		.private_data = request->private_data,
		.private_data_size = request->private_size,
	};

	if (!setup->otherwise) {
		tell_exclusion(conn);
		shm_conn_fail_setup(conn, ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	shm_conn_set_deadline(conn, 0);
	shm_conn_get(conn);
	shm_conn_drop(conn, ep);
	if (setup->otherwise(ep, &setup->address, request->qual, time_left(conn), &param) < 0)
		core_ep_connect_failed(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	shm_conn_put(conn);
}

void shm_setup_retry(struct shm_conn *conn, struct core_ep *ep, uint64_t now)
{
	int rc;

	if (now < conn->setup->retry_ns) {
		shm_conn_set_deadline(conn,
				      earlier(conn->setup->retry_ns, conn->setup->give_up_ns));
		return;
	}
	rc = connect_socket(conn);
	if (is_unanswered(rc))
		go_elsewhere(conn, ep);
	else
		send_request(conn, rc);
}

static int create_active(struct shm_engine *engine, const union core_sockaddr *address,
			 DAT_CONN_QUAL qual, shm_otherwise *otherwise, struct shm_conn **conn_out)
{
	struct shm_conn *conn;
	int fd = soft_fd_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK);
	int rc;

	if (fd < 0)
		return fd;
	rc = shm_conn_create(engine, fd, &conn);
	if (rc < 0) {
		soft_fd_close(fd);
		return rc;
	}
	shm_socket_name_senders(fd);
	conn->setup->address = *address;
	conn->setup->otherwise = otherwise;
	shm_dir_name(&engine->dir, address, qual, conn->setup->name);
	*conn_out = conn;
	return 0;
}

/* Is the attempt over before the request is sent? -EHOSTUNREACH, or a shortage; else 0. */
static int is_over(int rc, shm_otherwise *otherwise)
{
	if (shm_is_shortage(rc))
		return rc;
	return is_unanswered(rc) && otherwise ? -EHOSTUNREACH : 0;
}

int shm_connect(struct shm_engine *engine, struct core_ep *ep, const union core_sockaddr *address,
		DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us,
		const struct transport_conn_param *param, shm_otherwise *otherwise)
{
	struct shm_conn *conn;
	int where = 0, rc, error;

	/* most peers have our own address; asking the system takes two sockets */
	if (!soft_address_is_same(address, &ep->ia->address))
		where = soft_address_find(address);
	if (where < 0 && where != -EHOSTUNREACH)
		return where;
	if (engine->dir.fd < 0)
		return -EHOSTUNREACH;
	rc = create_active(engine, address, qual, otherwise, &conn);
	if (rc < 0)
		return rc;
	error = connect_socket(conn);
	rc = is_over(error, otherwise);
	if (rc < 0) {
		shm_conn_put(conn);
		return rc;
	}
	if (timeout_us != DAT_TIMEOUT_INFINITE)
		conn->setup->give_up_ns = core_now_ns() + (uint64_t)timeout_us * 1000;
	fill_request(conn, ep, qual, param, &conn->setup->wire);
	shm_conn_attach(conn, ep);
	if (is_unanswered(error) && where < 0)
		fail_later(conn, DAT_CONNECTION_EVENT_UNREACHABLE);
	else
		send_request(conn, error);
	return 0;
}

/* Takes the descriptors of the answer: the segment and the key table, or -1. */
static int learn_peer(struct shm_conn *conn, const struct shm_packet *packet)
{
	int rc;

	shm_identity_learn(conn, packet);
	shm_setup_learn_side(conn, &packet->wire.accept.side);
	rc = shm_setup_take_keys(conn, packet->fds[1]);
	if (rc < 0)
		return rc;
	return shm_conn_map_segment(conn, packet->fds[0]);
}

/* Says that the connection is established, with our key table if the peer has sent its own. */
static int send_ready(struct shm_conn *conn)
{
	const int keys_fd = keys_fd_of(conn);
	union shm_wire wire;
	int rc;

	shm_wire_prepare(&wire, SHM_WIRE_READY);
	rc = shm_conn_send(conn, &wire, &keys_fd, keys_fd >= 0);
	if (rc != -ETOOMANYREFS)
		return rc;
	/* too many descriptors are in flight: the peer uses the rings */
	return shm_conn_send(conn, &wire, NULL, 0);
}

/* May the consumer get them? The peer's adapter may allow longer ones (CONN-GEN-11). */
static bool takes_private(const struct shm_conn *conn, uint32_t size)
{
	if (size <= conn->engine->private_max)
		return true;
	core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
		 "process %d accepts with %u bytes of private data, this adapter takes %u: refused",
		 (int)conn->remote.sender.pid, size, conn->engine->private_max);
	return false;
}

/* REQUESTED: an ACCEPT arrived. */
static int take_accept(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet)
{
	const struct shm_wire_accept *accept = &packet->wire.accept;
	const struct transport_conn_param peer = {
		.read_in = accept->side.read_in,
		.read_out = accept->side.read_out,
		.takes = accept->side.takes,
		.private_data = accept->private_data,
		.private_data_size = accept->private_size,
	};
	int rc;

	if (!is_of_our_user(packet)) {
		go_elsewhere(conn, ep);
		return 0;
	}
	if (!takes_private(conn, accept->private_size))
		return -EPROTO;
	rc = learn_peer(conn, packet);
	if (rc < 0)
		return rc;
	shm_packet_close_fds(packet);
	rc = send_ready(conn);
	if (rc < 0)
		return rc;
	establish(conn, ep, &peer);
	return 0;
}

/* --- the passive side --- */

void shm_setup_drop_silent(struct shm_conn *conn)
{
	shm_conn_epoll_remove(conn);
	shm_conn_set_deadline(conn, 0);
	shm_conn_set_state(conn, SHM_ENDED); /* no longer ARRIVING: it is not dropped twice */
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

/* Offers a valid request to the core. 0: the connection belongs to the core now. */
static int offer_request(struct shm_conn *conn, const struct shm_packet *packet)
{
	const struct shm_wire_request *wire = &packet->wire.request;
	struct core_ref sp = conn->setup->listener->sp;
	struct transport_request request = {
		.remote_port = wire->side.port,
		.conn_qual = wire->qual,
		.param = {.read_in = wire->side.read_in,
			  .read_out = wire->side.read_out,
			  .private_data = wire->private_data,
			  .private_data_size = wire->private_size},
		.transport = conn,
	};

	if (wire->qual != conn->setup->listener->qual)
		return -ECONNREFUSED;
	shm_identity_learn(conn, packet);
	shm_setup_learn_side(conn, &wire->side);
	request_address(wire, &request.remote_address);
	/* from here on the consumer may take any time */
	shm_conn_epoll_remove(conn);
	shm_conn_set_deadline(conn, 0);
	shm_conn_set_state(conn, SHM_OFFERED);
	return core_sp_request(sp, &request);
}

void shm_setup_arrived(struct shm_conn *conn, const struct shm_packet *packet)
{
	enum shm_wire_why why = SHM_WHY_STRANGER;

	if (packet && packet->wire.head.type == SHM_WIRE_REQUEST) {
		if (is_of_our_user(packet)) {
			if (!offer_request(conn, packet))
				return;
			why = SHM_WHY_PROVIDER;
		}
		shm_conn_send_word(conn, SHM_WIRE_REJECT, why);
	}
	shm_setup_drop_silent(conn);
}

void shm_setup_send_accept(struct shm_conn *conn)
{
	int fds[SHM_WIRE_FDS_MAX] = {conn->setup->segment_fd, keys_fd_of(conn)};
	int rc = shm_conn_send(conn, &conn->setup->wire, fds, fds[1] >= 0 ? 2 : 1);

	if (rc == -ETOOMANYREFS || rc == -ENOBUFS) {
		conn->setup->retry_ns = core_now_ns() + SHM_RETRY_NS;
		shm_conn_set_deadline(conn, conn->setup->retry_ns);
		return;
	}
	soft_fd_close(conn->setup->segment_fd);
	conn->setup->segment_fd = -1;
	conn->setup->is_answering = false;
	if (rc < 0)
		fail_later(conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	else
		shm_conn_set_deadline(conn, conn->setup->give_up_ns);
}

int shm_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param)
{
	struct shm_conn *conn = request;
	union shm_wire *wire = &conn->setup->wire;
	int rc = 0;

	/* an attempt that has failed can be repeated */
	if (!shm_conn_has_segment(conn))
		rc = shm_conn_make_segment(conn, &conn->setup->segment_fd);
	if (rc < 0)
		return rc;
	shm_wire_prepare(wire, SHM_WIRE_ACCEPT);
	wire->accept.private_size = param->private_data_size;
	memcpy(wire->accept.private_data, param->private_data ? param->private_data : "",
	       param->private_data_size);
	fill_side(conn, ep, param, &wire->accept.side);
	shm_conn_attach(conn, ep);
	/* the service thread waits for the endpoint's lock, which the caller holds */
	rc = shm_conn_epoll_add(conn);
	if (rc < 0) {
		shm_conn_unattach(conn, ep);
		return rc;
	}
	conn->setup->give_up_ns =
		core_now_ns() + conn->engine->settings.setup_timeout_ms * 1000000u;
	conn->setup->is_answering = true;
	shm_conn_set_state(conn, SHM_ACCEPTED);
	shm_setup_send_accept(conn);
	return 0;
}

/* Takes the key table that came with READY. */
static int take_ready(struct shm_conn *conn, struct shm_packet *packet)
{
	/* it may have given up its user since the request */
	if (!shm_identity_is_same(conn, packet))
		shm_conn_set_reach(conn, SHM_REACH_RING);
	return shm_setup_take_keys(conn, packet->fds[0]);
}

/* ACCEPTED: the peer is ready. */
static int take_ready_packet(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet)
{
	const struct transport_conn_param peer = {.read_in = conn->setup->peer.read_in,
						  .read_out = conn->setup->peer.read_out,
						  .takes = conn->setup->peer.takes};
	int rc;

	if (packet->wire.head.type != SHM_WIRE_READY || conn->setup->is_answering)
		return -EPROTO;
	rc = take_ready(conn, packet);
	if (rc < 0)
		return rc;
	shm_packet_close_fds(packet);
	establish(conn, ep, &peer);
	return 0;
}

void shm_reject(void *request, enum transport_reject why, const void *private_data, uint32_t size)
{
	struct shm_conn *conn = request;
	union shm_wire wire;

	shm_wire_prepare(&wire, SHM_WIRE_REJECT);
	wire.reject.why = why == TRANSPORT_REJECT_CONSUMER ? SHM_WHY_CONSUMER : SHM_WHY_PROVIDER;
	wire.reject.private_size = size;
	if (size)
		memcpy(wire.reject.private_data, private_data, size);
	(void)shm_conn_send(conn, &wire, NULL, 0);
	shm_conn_put(conn);
}

/* --- the answer, on either side --- */

int shm_setup_answer(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet)
{
	const union shm_wire *wire = &packet->wire;
	enum shm_state state = shm_conn_state(conn);

	if (state == SHM_ACCEPTED)
		return take_ready_packet(conn, ep, packet);
	if (state != SHM_REQUESTED)
		return -EPROTO;
	if (wire->head.type == SHM_WIRE_ACCEPT)
		return take_accept(conn, ep, packet);
	if (wire->head.type != SHM_WIRE_REJECT)
		return -EPROTO;
	if (wire->reject.why == SHM_WHY_STRANGER) {
		go_elsewhere(conn, ep);
		return 0;
	}
	core_ep_keep_rejection(ep, wire->reject.private_data, wire->reject.private_size);
	shm_conn_fail_setup(conn, ep,
			    wire->reject.why == SHM_WHY_CONSUMER
				    ? DAT_CONNECTION_EVENT_PEER_REJECTED
				    : DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	return 0;
}
