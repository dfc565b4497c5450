// SPDX-License-Identifier: BSD-2-Clause
/*
 * The service thread of an adapter instance: set-up, ends, wake-ups, time-outs, and the progress of
 * connections that nobody polls. It sleeps without limit while every connection is armed and no
 * deadline runs, so that an idle process uses no CPU. It has all signals blocked.
 */
#include "soft/shm/conn.h"
#include "soft/shm/driven.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 64
#define PACKETS_MOST 16u /* of one connection in a row */
#define NS_PER_MS 1000000u
#define FDS_ROOM 253u /* the most that a packet can bring: the kernel shall drop none itself */

struct service {
	struct shm_engine *engine;
	struct shm_driven driven;
};

/* --- packets --- */

struct packet {
	union shm_wire wire;
	int fds[FDS_ROOM];
	unsigned fd_count;
};

/* A stranger's socket may be told to linger, and its last close would wait as long: not here. */
static void close_fds(struct packet *packet)
{
	static const struct linger at_once;

	while (packet->fd_count) {
		int fd = packet->fds[--packet->fd_count];

		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		close(fd);
	}
}

static void take_fds(struct msghdr *message, struct packet *packet)
{
	struct cmsghdr *header;

	for (header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		if (count > FDS_ROOM - packet->fd_count)
			count = FDS_ROOM - packet->fd_count;
		memcpy(packet->fds + packet->fd_count, CMSG_DATA(header), count * sizeof(int));
		packet->fd_count += (unsigned)count;
	}
}

/*
 * The packet came without its descriptors, because we may have no more of them. 1: it can do
 * without; the memory behind a key, or a pool, is just not mapped then.
 */
static int decode_stripped(const void *bytes, size_t size, struct packet *packet)
{
	union shm_wire *wire = &packet->wire;

	if (packet->fd_count || shm_wire_decode(bytes, size, 1, wire) < 0)
		return -EPROTO;
	switch (wire->head.type) {
	case SHM_WIRE_MAP_GIVE:
		wire->word.word = wire->give.key;
		wire->head.type = SHM_WIRE_MAP_REFUSE;
		return 1;
	case SHM_WIRE_POOL_GIVE: /* one that is not known here */
		wire->head.type = SHM_WIRE_POOL_NAME;
		return 1;
	default:
		return -EPROTO;
	}
}

/* One packet: 1, 0 at the end of the socket, -EAGAIN, -EPROTO. */
static int receive(struct shm_conn *conn, struct packet *packet)
{
	uint8_t bytes[sizeof(union shm_wire) + 1]; /* a byte more, so that a longer one is seen */
	struct iovec iov = {bytes, sizeof(bytes)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FDS_ROOM * sizeof(int))];
	} control;
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	unsigned resets = 0, ends = 0;
	ssize_t size;
	int rc;

	packet->fd_count = 0;
	do {
		message.msg_controllen = sizeof(control);
		size = recvmsg(conn->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		/*
		 * A peer that closed without reading all: what it sent before is still there. And
		 * the kernel looks for a packet, then for the end: what came with the end between
		 * the two is there, too.
		 */
	} while ((size < 0 && (errno == EINTR || (errno == ECONNRESET && !resets++))) ||
		 (size == 0 && !message.msg_controllen && !ends++));
	if (size < 0)
		return errno == EAGAIN ? -EAGAIN : 0;
	take_fds(&message, packet);
	if (size == 0) {
		/* a stranger's empty packet looks like the end, but can bring descriptors */
		close_fds(packet);
		return 0;
	}
	if (message.msg_flags & MSG_TRUNC)
		rc = -EPROTO;
	else if (message.msg_flags & MSG_CTRUNC)
		rc = decode_stripped(bytes, (size_t)size, packet);
	else
		rc = shm_wire_decode(bytes, (size_t)size, packet->fd_count, &packet->wire);
	if (rc < 0)
		close_fds(packet);
	return rc < 0 ? rc : 1;
}

void shm_conn_discard(struct shm_conn *conn)
{
	struct packet packet;
	int rc;

	/* ends: the socket is shut down, so nothing is added */
	while ((rc = receive(conn, &packet)) == 1 || rc == -EPROTO)
		close_fds(&packet);
}

int shm_conn_read_idle(struct shm_conn *conn)
{
	struct packet packet;
	unsigned i;

	/* some that the peer has sent before may be left */
	for (i = 0; i < PACKETS_MOST && !conn->is_peer_idle; i++) {
		int rc = receive(conn, &packet);

		if (rc <= 0)
			return rc == -EAGAIN ? 0 : -EPROTO;
		conn->is_peer_idle = packet.wire.head.type == SHM_WIRE_IDLE;
		close_fds(&packet);
	}
	return conn->is_peer_idle ? 1 : -EPROTO;
}

/* The connection cannot go on; EP locked. */
static void give_up(struct shm_conn *conn, struct core_ep *ep)
{
	switch (shm_conn_state(conn)) {
	case SHM_CALLING:
	case SHM_REQUESTED:
		shm_conn_fail_setup(conn, ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		break;
	case SHM_ACCEPTED:
		shm_conn_fail_setup(conn, ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		break;
	case SHM_ESTABLISHED:
		shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
		/* fall through */
	default:
		shm_conn_finish(conn, ep);
	}
}

/* The peer says that it is over; EP locked. */
static void peer_closed(struct shm_conn *conn, struct core_ep *ep, uint32_t why)
{
	conn->has_peer_closed = true;
	if (shm_conn_state(conn) == SHM_ESTABLISHED) {
		shm_conn_drain(conn, ep);
		shm_conn_close(conn, why == SHM_WHY_DISCONNECT ? DAT_CONNECTION_EVENT_DISCONNECTED
							       : DAT_CONNECTION_EVENT_BROKEN);
	}
	give_up(conn, ep);
}

/* The socket ended: the peer is dead, or has closed before; EP locked. */
static void peer_gone(struct shm_conn *conn, struct core_ep *ep)
{
	conn->is_peer_gone = true;
	if (shm_conn_state(conn) == SHM_ESTABLISHED)
		shm_conn_drain(conn, ep);
	give_up(conn, ep);
}

/* Does a thread of the consumer do the work? */
static bool is_driven(struct service *service)
{
	struct shm_engine *engine = service->engine;
	uint64_t polls = atomic_load_explicit(&engine->polls, memory_order_relaxed);

	return shm_is_driven(&service->driven, polls, shm_now_ns()) &&
	       !atomic_load(&engine->is_left);
}

/* The peer has published something. */
static void answer(struct shm_conn *conn, struct core_ep *ep)
{
	shm_conn_disarm(conn);
	shm_conn_pass(conn, ep);
}

static void established_packet(struct shm_conn *conn, struct core_ep *ep, struct packet *packet)
{
	const union shm_wire *wire = &packet->wire;

	switch (wire->head.type) {
	case SHM_WIRE_WAKE:
	case SHM_WIRE_MAP_ASK: /* answered already */
		break;
	case SHM_WIRE_MAP_GIVE:
		shm_map_given(conn, &wire->give, packet->fds[0]);
		break;
	case SHM_WIRE_MAP_REFUSE:
		shm_map_refused(conn, wire->word.word);
		break;
	case SHM_WIRE_KEY_GONE:
		shm_map_gone(conn, wire->word.word);
		break;
	case SHM_WIRE_POOL_NAME:
		shm_pool_named(conn, &wire->pool);
		break;
	case SHM_WIRE_POOL_GIVE:
		shm_pool_given(conn, &wire->pool, packet->fds[0]);
		break;
	case SHM_WIRE_POOL_HAVE:
		shm_pool_answered(conn, &wire->pool);
		break;
	default:
		give_up(conn, ep);
		return;
	}
	/* whatever it was: the peer sends no WAKE into a socket that is full of others. A WAKE that
	 * service_conn has answered needs nothing, unless somebody has armed the connection since
	 */
	if (packet->wire.head.type != SHM_WIRE_WAKE ||
	    !atomic_load_explicit(&conn->is_disarmed, memory_order_relaxed))
		answer(conn, ep);
}

static void dispatch_locked(struct shm_conn *conn, struct core_ep *ep, struct packet *packet)
{
	switch (shm_conn_state(conn)) {
	case SHM_REQUESTED:
	case SHM_ACCEPTED:
		/* a WAKE may overtake nothing, but CLOSE and others may come instead of an answer
		 */
		if (shm_setup_answer(conn, ep, &packet->wire, packet->fds) < 0)
			give_up(conn, ep);
		break;
	case SHM_ESTABLISHED:
		if (packet->wire.head.type == SHM_WIRE_CLOSE)
			peer_closed(conn, ep, packet->wire.word.word);
		else
			established_packet(conn, ep, packet);
		break;
	default: /* CLOSING: only the end of the socket matters */
		break;
	}
}

/* False when there is nothing more to read from this connection, as mostly behind a WAKE: if there
 * is, epoll tells. */
static bool one_packet(struct shm_conn *conn)
{
	struct packet packet;
	struct core_ep *ep;
	int rc = receive(conn, &packet);

	if (rc == -EAGAIN)
		return false;
	if (shm_conn_state(conn) == SHM_ARRIVING) {
		shm_setup_arrived(conn, rc > 0 ? &packet.wire : NULL, packet.fds);
		close_fds(&packet);
		return false;
	}
	if (rc > 0 && packet.wire.head.type == SHM_WIRE_IDLE)
		conn->is_peer_idle = true;
	/* no lock is needed for this one, and it is slow */
	if (rc > 0 && packet.wire.head.type == SHM_WIRE_MAP_ASK)
		shm_map_asked(conn, packet.wire.word.word);
	if (rc == 0)
		shm_conn_unwatch(conn);
	ep = shm_conn_enter(conn);
	if (!ep) {
		shm_conn_unwatch(conn);
	} else {
		if (rc > 0)
			dispatch_locked(conn, ep, &packet);
		else if (rc == 0)
			peer_gone(conn, ep);
		else
			give_up(conn, ep);
		core_ep_leave(ep);
	}
	close_fds(&packet);
	return ep && rc > 0 && packet.wire.head.type != SHM_WIRE_WAKE;
}

/* The endpoint of a connection that stands, locked; NULL: it does not. */
static struct core_ep *enter_established(struct shm_conn *conn)
{
	struct core_ep *ep = shm_conn_ep(conn).cell ? shm_conn_enter(conn) : NULL;

	if (ep && shm_conn_state(conn) != SHM_ESTABLISHED) {
		core_ep_leave(ep);
		return NULL;
	}
	return ep;
}

/*
 * The socket of a connection has something: most often a WAKE, for what the peer has put into its
 * rings. That is dealt with first, because the peer may be waiting for it, and the packet is read
 * behind it. If nobody polls here the connection is armed again at once, so that the next wake-up
 * is a packet and not a tick.
 */
static void service_conn(struct service *service, struct shm_conn *conn)
{
	struct core_ep *ep = enter_established(conn);
	unsigned i;

	if (ep) {
		answer(conn, ep);
		core_ep_leave(ep);
	}
	for (i = 0; i < PACKETS_MOST && one_packet(conn); i++)
		;
	if (is_driven(service))
		return;
	ep = enter_established(conn);
	if (ep) {
		shm_conn_settle(conn, ep);
		core_ep_leave(ep);
	}
}

static void service_event(struct service *service, uint64_t id)
{
	struct shm_engine *engine = service->engine;
	enum shm_slot_kind kind;
	void *object = shm_engine_find(engine, id, &kind);

	if (!object)
		return;
	if (kind == SHM_SLOT_LISTENER) {
		shm_listener_event(object);
		shm_listener_put(object);
		return;
	}
	service_conn(service, object);
	shm_conn_put(object);
}

/* --- deadlines and requests for attention --- */

static void attend_locked(struct shm_conn *conn, struct core_ep *ep, uint64_t now)
{
	enum shm_state state = shm_conn_state(conn);

	if (state < SHM_ESTABLISHED && conn->failure) {
		shm_conn_fail_setup(conn, ep, conn->failure);
		return;
	}
	switch (state) {
	case SHM_CALLING:
	case SHM_REQUESTED:
		if (now >= conn->give_up_ns)
			shm_conn_fail_setup(conn, ep, DAT_CONNECTION_EVENT_TIMED_OUT);
		else if (state == SHM_CALLING)
			shm_setup_retry(conn, now);
		break;
	case SHM_ACCEPTED:
		if (now >= conn->give_up_ns)
			give_up(conn, ep);
		break;
	case SHM_ESTABLISHED:
		if (atomic_load(&conn->is_distrusted))
			give_up(conn, ep);
		else
			shm_conn_pass(conn, ep);
		break;
	default:
		shm_conn_finish(conn, ep);
	}
}

static void attend(struct shm_conn *conn, uint64_t now)
{
	struct core_ep *ep;

	if (shm_conn_state(conn) == SHM_ARRIVING) {
		if (now >= conn->give_up_ns)
			shm_setup_drop_silent(conn);
		return;
	}
	ep = shm_conn_enter(conn);
	if (ep) {
		attend_locked(conn, ep, now);
		core_ep_leave(ep);
	} else {
		shm_conn_at(conn, 0);
	}
}

static bool is_due(const struct shm_conn *conn, uint64_t now)
{
	uint64_t deadline = atomic_load(&conn->deadline_ns);

	return deadline && deadline <= now;
}

static void service_deadlines(struct shm_engine *engine)
{
	uint64_t now = shm_now_ns();
	struct shm_conn *conn;
	uint32_t index = 0;

	if (now < atomic_load(&engine->deadline_ns))
		return;
	/* before the scan: whoever sets a deadline stores it in the connection first */
	atomic_store(&engine->deadline_ns, UINT64_MAX);
	while ((conn = shm_engine_next_conn(engine, &index, is_due, now)) != NULL) {
		uint64_t due = atomic_load(&conn->deadline_ns);

		/* one shot; attend() or what it calls sets the next one. One that another thread
		 * has set meanwhile stays */
		if (due <= now)
			atomic_compare_exchange_strong(&conn->deadline_ns, &due, 0);
		attend(conn, now);
		shm_conn_put(conn);
	}
	shm_keep_expire(engine, now);
	shm_engine_earliest(engine);
}

static void service_todo(struct shm_engine *engine)
{
	struct shm_conn *conn;

	while ((conn = shm_engine_take_todo(engine)) != NULL) {
		attend(conn, shm_now_ns());
		shm_conn_put(conn);
	}
}

static void service_kicked(struct shm_engine *engine)
{
	uint64_t count;
	ssize_t size = read(engine->kick_fd, &count, sizeof(count));

	(void)size; /* EAGAIN: nothing was lost */
	/*
	 * After the read, or it would swallow the write of one who kicks in between, whose mark
	 * then keeps everybody else from writing. Sequentially consistent, and before what was
	 * asked for is looked at: see shm_engine_kick.
	 */
	atomic_store(&engine->is_kicked, false);
}

/* --- progress --- */

/* Nobody polls: arms every connection that has nothing to do. */
static void arm_all(struct shm_engine *engine)
{
	uint32_t count = atomic_load_explicit(&engine->active_count, memory_order_relaxed);

	for (; count; count--) {
		struct shm_conn *conn = shm_engine_rotate(engine);
		struct core_ep *ep;

		if (!conn)
			return;
		ep = shm_conn_enter(conn);
		if (!ep) {
			shm_engine_deactivate(engine, conn);
		} else {
			if (shm_conn_state(conn) == SHM_ESTABLISHED && !shm_conn_arm(conn))
				atomic_store_explicit(&engine->has_more, true,
						      memory_order_relaxed);
			core_ep_leave(ep);
		}
		shm_conn_put(conn);
	}
}

/* Drives the active connections unless a thread of the consumer does. */
static void service_progress(struct service *service)
{
	struct shm_engine *engine = service->engine;

	if (is_driven(service))
		return;
	atomic_store_explicit(&engine->has_more, false, memory_order_relaxed);
	shm_engine_look(engine);
	arm_all(engine);
}

static int service_timeout(struct service *service)
{
	struct shm_engine *engine = service->engine;
	uint64_t deadline = atomic_load(&engine->deadline_ns);
	uint64_t now, wait_ms;

	if (atomic_load_explicit(&engine->has_more, memory_order_relaxed))
		return is_driven(service) ? 1 : 0;
	if (atomic_load(&engine->disarmed) > 0)
		return 1;
	if (deadline == UINT64_MAX)
		return -1;
	now = shm_now_ns();
	if (deadline <= now)
		return 0;
	wait_ms = (deadline - now + NS_PER_MS - 1) / NS_PER_MS;
	return wait_ms > 60000 ? 60000 : (int)wait_ms;
}

static bool is_arriving(const struct shm_conn *conn, uint64_t unused)
{
	(void)unused;
	return shm_conn_state(conn) == SHM_ARRIVING;
}

static void drop_arriving(struct shm_engine *engine)
{
	struct shm_conn *conn;
	uint32_t index = 0;

	while ((conn = shm_engine_next_conn(engine, &index, is_arriving, 0)) != NULL) {
		shm_setup_drop_silent(conn);
		shm_conn_put(conn);
	}
	while ((conn = shm_engine_take_todo(engine)) != NULL)
		shm_conn_put(conn);
}

void *shm_service_run(void *argument)
{
	struct service service = {.engine = argument};
	struct shm_engine *engine = argument;
	struct epoll_event events[EVENTS];
	struct soft_guard guard;

	soft_is_library_thread = true;
	soft_guard_begin(&guard, engine->adapter->keys);
	while (!atomic_load(&engine->is_stopping)) {
		int count = epoll_wait(engine->epoll_fd, events, EVENTS, service_timeout(&service));
		int i;

		for (i = 0; i < count && !atomic_load(&engine->is_stopping); i++) {
			if (events[i].data.u64 == SHM_ID_KICK)
				service_kicked(engine);
			else
				service_event(&service, events[i].data.u64);
		}
		if (atomic_load(&engine->is_stopping))
			break;
		if (atomic_exchange(&engine->is_serving, false))
			core_srq_serve_all(engine->ia);
		service_todo(engine);
		service_deadlines(engine);
		if (atomic_load(&engine->disarmed) > 0 ||
		    atomic_load_explicit(&engine->has_more, memory_order_relaxed))
			service_progress(&service);
	}
	drop_arriving(engine);
	shm_keep_expire(engine, UINT64_MAX);
	soft_guard_end(&guard);
	shm_engine_put(engine);
	return NULL;
}
