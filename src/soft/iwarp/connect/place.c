// SPDX-License-Identifier: BSD-2-Clause
/*
 * The places of a qualifier: the TCP ports at which its listener may be. They are tried in order,
 * each on a socket of its own. A place that stays silent for a while is either an alien server or a
 * listener whose consumer has not answered yet. So the next place is tried, but the silent socket
 * stays open, and is looked at from time to time.
 */
#include "soft/iwarp/connect/place.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "soft/address.h"
#include "soft/claim.h"
#include "soft/fds.h"
#include "soft/iwarp/connect/setup.h"

#define SHARE_NS (2000 * IW_NS_PER_MS) /* longest time that a silent place is waited for alone */
#define LOOK_NS (50 * IW_NS_PER_MS)    /* between two looks at silent places */
#define PORT_NS (50 * IW_NS_PER_MS)    /* between two tries to get a local port */

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

/* --- one socket --- */

/* The request names the port of the first socket, as the endpoint does. */
static void learn_port(struct iw_active *active, int fd)
{
	union core_sockaddr own;
	socklen_t size = sizeof(own);

	if (!active->request.port && !getsockname(fd, &own.sa, &size))
		active->request.port = iw_get_port(&own);
}

/*
 * Starts to connect to the current place, from the adapter's address: 0 or -errno. -EADDRINUSE: no
 * local port is free, which is no matter of the peer; -EADDRNOTAVAIL: our address has gone.
 */
static int start_connect(struct iw_conn *conn, const struct core_ep *ep, int fd)
{
	struct iw_active *active = &conn->setup->active;
	union core_sockaddr own = ep->ia->address;
	union core_sockaddr to = active->address;
	const int yes = 1;
	int rc;

	rc = iw_setup_socket_options(fd, &conn->engine->settings);
	if (rc < 0)
		return rc;
	iw_setup_congestion_control(fd, conn->engine);
	/* so that one port serves many connections to different peers; fails on old kernels only */
	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
	iw_set_port(&own, 0);
	if (bind(fd, &own.sa, core_address_size(&own)) < 0)
		return -errno;
	iw_set_port(&to, cm_port(active->request.qual, active->index));
	rc = connect(fd, &to.sa, core_address_size(&to)) < 0 ? -errno : 0;
	learn_port(active, fd);
	if (rc == -EADDRNOTAVAIL)
		return -EADDRINUSE;
	return rc == -EINPROGRESS || rc == -EINTR ? 0 : rc;
}

/* Opens a socket for the current place. 0 or -errno; then there is none. */
static int open_socket(struct iw_conn *conn, const struct core_ep *ep)
{
	struct iw_place *place = iw_place_of(conn->setup);
	int fd = soft_fd_socket(ep->ia->address.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK);
	int rc;

	if (fd < 0)
		return fd;
	rc = start_connect(conn, ep, fd);
	if (rc < 0) {
		soft_fd_close(fd);
		return rc;
	}
	place->state = IW_PLACE_TRIED;
	place->is_requested = false;
	conn->fd = fd;
	conn->setup->is_sending = false;
	conn->setup->size = 0;
	conn->setup->active.answer_end_ns = IW_NEVER;
	iw_conn_set_state(conn, IW_CONNECTING);
	rc = iw_conn_watch(conn, EPOLLOUT);
	if (rc < 0) {
		soft_fd_close(fd);
		conn->fd = -1;
	}
	return rc;
}

int iw_place_connected(const struct iw_conn *conn)
{
	union core_sockaddr peer;
	socklen_t size = sizeof(peer);
	int error = 0;
	socklen_t error_size = sizeof(error);

	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &error_size) < 0)
		return -errno;
	if (error)
		return -error;
	/* the event may be one of an earlier socket */
	if (!getpeername(conn->fd, &peer.sa, &size))
		return 1;
	return errno == ENOTCONN ? 0 : -errno;
}

/* --- which place is next --- */

static unsigned find_next(const struct iw_active *active)
{
	if (active->is_out_of_ports)
		return active->index;
	for (unsigned i = 1; i <= CM_PORTS; i++) {
		unsigned index = (active->index + i) % CM_PORTS;

		if (active->places[index].state == IW_PLACE_UNTRIED)
			return index;
	}
	return CM_PORTS;
}

static unsigned count_untried(const struct iw_active *active)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CM_PORTS; i++)
		count += active->places[i].state == IW_PLACE_UNTRIED;
	return count;
}

static unsigned find_silent(const struct iw_active *active)
{
	unsigned i;

	for (i = 0; i < CM_PORTS; i++)
		if (active->places[i].fd >= 0)
			break;
	return i;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The next place is tried after a share of the time that is left, if there is one. */
static void set_share(struct iw_conn *conn)
{
	struct iw_active *active = &conn->setup->active;
	unsigned left = count_untried(active);
	uint64_t now = core_now_ns();
	uint64_t share = SHARE_NS;

	active->place_end_ns = IW_NEVER;
	if (!left)
		return;
	if (conn->give_up_ns != IW_NEVER)
		share = earlier(share,
				conn->give_up_ns > now ? (conn->give_up_ns - now) / (left + 1) : 0);
	active->place_end_ns = now + share;
}

static void set_deadline(struct iw_conn *conn)
{
	const struct iw_active *active = &conn->setup->active;
	uint64_t when =
		earlier(conn->give_up_ns, earlier(active->place_end_ns, active->answer_end_ns));

	if (find_silent(active) < CM_PORTS)
		when = earlier(when, core_now_ns() + LOOK_NS);
	iw_conn_set_deadline(conn, when == IW_NEVER ? 0 : when);
}

/* Is the current place silent, so that its socket can be put aside? */
static bool is_silent(const struct iw_conn *conn)
{
	const struct iw_setup *setup = conn->setup;

	return conn->fd >= 0 && !setup->is_sending && !setup->size;
}

static void put_aside(struct iw_conn *conn)
{
	struct iw_place *place = iw_place_of(conn->setup);

	if (conn->fd < 0)
		return;
	iw_conn_unwatch(conn);
	place->fd = conn->fd;
	place->is_requested = iw_conn_state(conn) == IW_REQUESTED;
	conn->fd = -1;
}

/* Goes on with a socket that was put aside. */
static void resume(struct iw_conn *conn, struct core_ep *ep, unsigned index)
{
	struct iw_active *active = &conn->setup->active;
	struct iw_place *place = &active->places[index];
	int rc;

	active->index = index;
	active->is_out_of_ports = false;
	conn->fd = place->fd;
	place->fd = -1;
	conn->setup->size = 0;
	conn->setup->is_sending = false;
	iw_conn_set_state(conn, place->is_requested ? IW_REQUESTED : IW_CONNECTING);
	/* what has happened meanwhile is reported now */
	rc = iw_conn_watch(conn, place->is_requested ? EPOLLIN : EPOLLOUT);
	if (rc < 0) {
		iw_setup_fail(conn, ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	set_share(conn);
	set_deadline(conn);
}

/* --- what an error means --- */

/* 0: another place is tried; else the event that ends the attempt. */
static DAT_EVENT_NUMBER judge(struct iw_place *place, int error)
{
	switch (error) {
	case 0:
	case -ETIMEDOUT:
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EPIPE:
		place->state = IW_PLACE_OVER;
		return 0;
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -EHOSTDOWN:
	case -ENETDOWN:
	case -ENONET:
	case -EACCES: /* a route of type prohibit */
	case -EPERM:  /* a filter of this host */
	case -EADDRNOTAVAIL:
	case -EINVAL: /* no route from the adapter's address, which is a loopback address */
		return DAT_CONNECTION_EVENT_UNREACHABLE;
	default:
		return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
	}
}

/* IWCM-68: a port may become free before the consumer's time is over. */
static void wait_for_port(struct iw_conn *conn)
{
	struct iw_active *active = &conn->setup->active;

	if (!active->is_out_of_ports)
		core_log(CORE_LOG_CONN | CORE_LOG_ERROR | CORE_LOG_WARNING,
			 "connect: %s: no local TCP port is free (net.ipv4.ip_local_port_range)",
			 core_address_text(&active->address, active->request.qual).text);
	active->is_out_of_ports = true;
	iw_place_of(conn->setup)->state = IW_PLACE_UNTRIED;
	active->place_end_ns = core_now_ns() + PORT_NS;
	set_deadline(conn);
}

/* Says what is known of a service point on this host that does not listen for TCP. */
static void tell_exclusion(const struct iw_conn *conn)
{
	const struct iw_active *active = &conn->setup->active;

	if (soft_claim_exists(SOFT_CLAIM_USER, &active->address, active->request.qual))
		core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
			 "%s: refused by peers=user: the process that listens there is of another "
			 "user, or has another socket_dir",
			 iw_conn_name(conn).text);
	else
		core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
			 "%s: no process listens there for this user (one of another user with "
			 "transport=shm would not be seen)",
			 iw_conn_name(conn).text);
}

static void fail_attempt(struct iw_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	const union core_sockaddr *address = &conn->setup->active.address;

	if (number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED && core_log_has(CORE_LOG_ERROR) &&
	    !soft_address_find(address))
		tell_exclusion(conn);
	iw_setup_fail(conn, ep, number);
}

/* The connection has no socket: opens the next place, or goes back to a silent one. */
static void next_place(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_active *active = &conn->setup->active;
	DAT_EVENT_NUMBER number = 0;
	unsigned index;

	while (!number && (index = find_next(active)) < CM_PORTS) {
		int rc;

		active->index = index;
		rc = open_socket(conn, ep);
		if (!rc) {
			active->is_out_of_ports = false;
			set_share(conn);
			set_deadline(conn);
			return;
		}
		if (rc == -EADDRINUSE) {
			wait_for_port(conn);
			return;
		}
		active->is_out_of_ports = false;
		number = judge(&active->places[index], rc);
	}
	index = find_silent(active);
	if (!number && index < CM_PORTS)
		resume(conn, ep, index);
	else /* IWCM-08 */
		fail_attempt(conn, ep, number ? number : DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

void iw_place_failed(struct iw_conn *conn, struct core_ep *ep, int error)
{
	struct iw_active *active = &conn->setup->active;
	DAT_EVENT_NUMBER number;

	if (error == -EADDRINUSE) {
		wait_for_port(conn);
		return;
	}
	number = judge(iw_place_of(conn->setup), error);
	/*
	 * IWCM-24: the kernel's limit for TCP, not the consumer's, so the place is tried again. Not
	 * once it has the request: the consumer there might see a second one (IWCM-26)
	 */
	if (error == -ETIMEDOUT && iw_conn_state(conn) == IW_CONNECTING)
		iw_place_of(conn->setup)->state = IW_PLACE_UNTRIED;
	if (number)
		core_log(CORE_LOG_CONN | CORE_LOG_ERROR, "connect: %s: %s",
			 core_address_text(&active->address, active->request.qual).text,
			 strerror(-error));
	else
		core_log(CORE_LOG_CONN, "connect: TCP port %u does not serve the qualifier: %s",
			 cm_port(active->request.qual, active->index), strerror(-error));
	iw_conn_close_socket(conn);
	iw_place_of(conn->setup)->revision = 2;
	if (number)
		iw_setup_fail(conn, ep, number);
	else
		next_place(conn, ep);
}

void iw_place_again(struct iw_conn *conn, struct core_ep *ep)
{
	int rc;

	iw_conn_close_socket(conn);
	iw_place_of(conn->setup)->revision = 1;
	rc = open_socket(conn, ep);
	if (rc < 0) {
		iw_place_failed(conn, ep, rc);
		return;
	}
	set_share(conn);
	set_deadline(conn);
}

int iw_place_first(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_active *active = &conn->setup->active;
	int rc;

	for (unsigned i = 0; i < CM_PORTS; i++) {
		active->places[i].revision = 2;
		if (!cm_port(active->request.qual, i) || (i && !iw_has_header(conn->engine)))
			active->places[i].state = IW_PLACE_OVER;
	}
	active->index = active->places[0].state == IW_PLACE_OVER ? 1 : 0;
	active->answer_end_ns = IW_NEVER;
	rc = open_socket(conn, ep);
	if (iw_setup_is_shortage(rc))
		return rc;
	active->error = rc;
	set_share(conn);
	if (!rc)
		set_deadline(conn);
	return 0;
}

/* --- time --- */

/* A silent socket where something has happened; CM_PORTS: none. */
static unsigned find_answer(const struct iw_active *active)
{
	for (unsigned i = 0; i < CM_PORTS; i++) {
		const struct iw_place *place = &active->places[i];
		struct pollfd poll_fd = {
			.fd = place->fd,
			.events = place->is_requested ? POLLIN : POLLOUT,
		};

		if (place->fd >= 0 && poll(&poll_fd, 1, 0) > 0)
			return i;
	}
	return CM_PORTS;
}

void iw_place_due(struct iw_conn *conn, struct core_ep *ep, uint64_t now)
{
	struct iw_active *active = &conn->setup->active;
	unsigned answer = find_answer(active);

	if (answer < CM_PORTS && (conn->fd < 0 || is_silent(conn))) {
		put_aside(conn);
		resume(conn, ep, answer);
		return;
	}
	if (now >= active->place_end_ns) {
		active->place_end_ns = IW_NEVER;
		if (conn->fd < 0 || is_silent(conn)) {
			put_aside(conn);
			next_place(conn, ep);
			return;
		}
	}
	set_deadline(conn);
}
