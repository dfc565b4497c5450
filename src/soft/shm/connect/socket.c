// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets, descriptors and epoll of a connection (socket.h).
 */
#include "soft/shm/connect/socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "shared/fd.h"
#include "soft/closer.h"
#include "soft/fds.h"
#include "soft/shm/connect/identity.h"
#include "soft/shm/state.h"
#include "soft/shm/wire.h"

#ifndef SO_PASSRIGHTS
#if defined(__sparc__)
#define SO_PASSRIGHTS 0x005c
#elif defined(__hppa__)
#define SO_PASSRIGHTS 0x4051
#else
#define SO_PASSRIGHTS 83
#endif
#endif

#define LEFT_MAX 256u /* taken from a socket before it is closed */

bool shm_socket_refuse_fds(int fd, bool is_refusing)
{
	const int is_passing = !is_refusing;

	return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &is_passing, sizeof(is_passing)) == 0;
}

bool shm_socket_name_senders(int fd)
{
	const int is_naming = 1;

	return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &is_naming, sizeof(is_naming)) == 0;
}

/* --- packets in --- */

void shm_packet_close_fds(struct shm_packet *packet)
{
	while (packet->fd_count) {
		int fd = packet->fds[--packet->fd_count];

		soft_closer_close_passed(fd, packet->is_peer_trusted);
	}
}

/* Takes the descriptors and the credentials that came with the packet. */
static void take_control(struct msghdr *message, struct shm_packet *packet)
{
	struct cmsghdr *header;

	for (header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS &&
		    header->cmsg_len == CMSG_LEN(sizeof(packet->sender)))
			memcpy(&packet->sender, CMSG_DATA(header), sizeof(packet->sender));
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		if (count > SHM_PACKET_FDS - packet->fd_count)
			count = SHM_PACKET_FDS - packet->fd_count;
		memcpy(packet->fds + packet->fd_count, CMSG_DATA(header), count * sizeof(int));
		for (; count; count--, packet->fd_count++)
			packet->fds[packet->fd_count] =
				opendat_fd_move(packet->fds[packet->fd_count]);
	}
	for (unsigned i = packet->fd_count; i < SHM_WIRE_FDS_MAX; i++)
		packet->fds[i] = -1;
}

/*
 * The packet came without its descriptors, because this process has reached its limit. 1: the
 * packet is still useful: the memory behind a key, or a pool, is not mapped then.
 */
static int decode_stripped(const void *bytes, size_t size, struct shm_packet *packet)
{
	union shm_wire *wire = &packet->wire;

	if (packet->fd_count || shm_wire_decode(bytes, size, 1, wire) < 0)
		return -EPROTO;
	switch (wire->head.type) {
	case SHM_WIRE_MAP_GIVE:
		wire->word.word = wire->give.key;
		wire->head.type = SHM_WIRE_MAP_REFUSE;
		return 1;
	case SHM_WIRE_POOL_GIVE: /* treated as a name that is not known here */
		wire->head.type = SHM_WIRE_POOL_NAME;
		return 1;
	default:
		return -EPROTO;
	}
}

/* What a look at the next packet shows. */
struct glance {
	bool has_fds;
	bool has_sender;
};

/*
 * The size of the next packet, which stays in the socket, or -errno. The buffer for control
 * messages is filled by the credentials, which come first. So the kernel only tells that there are
 * descriptors: none is received.
 */
static ssize_t peek(int fd, struct glance *glance_out)
{
	char byte;
	struct iovec iov = {&byte, 1};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t size;

	*glance_out = (struct glance){.has_fds = true}; /* unless it is known better */
	if (!shm_socket_name_senders(fd))
		return -ENOBUFS;
	size = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);
	glance_out->has_fds = size >= 0 && (message.msg_flags & MSG_CTRUNC);
	glance_out->has_sender = size >= 0 && CMSG_FIRSTHDR(&message);
	return size < 0 ? -errno : size;
}

/* Descriptors are for our own user. One is not: the segment, which the active side asks for. */
static bool is_to_send_fds(const struct shm_conn *conn)
{
	return conn->remote.is_trusted ||
	       (conn->self == SHM_ACTIVE && shm_conn_state(conn) == SHM_REQUESTED);
}

/* Are there descriptors in the next packet that must not be there? */
static bool is_next_refused(const struct shm_conn *conn)
{
	struct glance glance;

	if (conn->is_refusing || is_to_send_fds(conn))
		return false;
	(void)peek(conn->fd, &glance);
	return glance.has_fds;
}

int shm_packet_receive(struct shm_conn *conn, struct shm_packet *packet)
{
	uint8_t bytes[sizeof(union shm_wire) + 1]; /* one more byte, to detect longer packets */
	struct iovec iov = {bytes, sizeof(bytes)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred)) +
			   CMSG_SPACE(SHM_PACKET_FDS * sizeof(int))];
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
	packet->sender = (struct ucred){.pid = 0};
	packet->is_peer_trusted = conn->remote.is_trusted;
	if (is_next_refused(conn))
		return -EPROTO;
	do {
		message.msg_controllen = sizeof(control);
		size = recvmsg(conn->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		/*
		 * ECONNRESET: the peer closed without reading everything; what it sent before is
		 * still there. Zero bytes: the kernel checks for a packet first, then for the end,
		 * so a packet that came between the two checks is still there, too.
		 */
	} while ((size < 0 && (errno == EINTR || (errno == ECONNRESET && !resets++))) ||
		 (size == 0 && !message.msg_controllen && !ends++));
	if (size < 0)
		return errno == EAGAIN ? -EAGAIN : 0;
	take_control(&message, packet);
	if (size == 0) {
		/*
		 * an empty packet of a hostile peer looks like the end, but can bring descriptors
		 */
		shm_packet_close_fds(packet);
		return 0;
	}
	if (message.msg_flags & MSG_TRUNC)
		rc = -EPROTO;
	else if (message.msg_flags & MSG_CTRUNC)
		rc = decode_stripped(bytes, (size_t)size, packet);
	else
		rc = shm_wire_decode(bytes, (size_t)size, packet->fd_count, &packet->wire);
	if (rc < 0)
		shm_packet_close_fds(packet);
	return rc < 0 ? rc : 1;
}

/* --- packets out --- */

int shm_conn_send(struct shm_conn *conn, const union shm_wire *wire, const int *fds, unsigned count)
{
	struct iovec iov = {(void *)wire, shm_wire_size(wire)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(SHM_WIRE_FDS_MAX * sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	int state, rc;

	if (count) {
		struct cmsghdr *header;

		memset(&control, 0, sizeof(control));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	}
	state = core_cancel_off();
	do
		rc = sendmsg(conn->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
	while (rc == -EINTR);
	core_cancel_restore(state);
	return rc;
}

int shm_conn_send_word(struct shm_conn *conn, enum shm_wire_type type, uint32_t word)
{
	union shm_wire wire;

	shm_wire_prepare(&wire, type);
	if (type != SHM_WIRE_WAKE)
		wire.word.word = word;
	return shm_conn_send(conn, &wire, NULL, 0);
}

/* --- the socket --- */

/* Zero bytes were read: was that the end? An empty packet brings its sender. */
static bool is_at_end(int fd)
{
	struct glance glance;

	return peek(fd, &glance) == 0 && !glance.has_sender;
}

/*
 * Takes what is left in a socket that was shut down, up to the first packet with descriptors. True:
 * nothing is left.
 */
static bool is_emptied(int fd)
{
	unsigned i, resets = 0;

	for (i = 0; i < LEFT_MAX; i++) {
		struct glance glance;
		ssize_t size = peek(fd, &glance);
		char byte;

		if (size == -EINTR || (size == -ECONNRESET && !resets++)) /* reported once */
			continue;
		if (size < 0)
			return size != -ENOMEM;
		if (glance.has_fds)
			return false;
		if (size == 0 && is_at_end(fd))
			return true;
		(void)recv(fd, &byte, 1, MSG_DONTWAIT);
	}
	return false;
}

/*
 * Takes what a peer of our user has left in the socket. Such a peer may have sent memory files, as
 * the protocol demands, which need no thread to be closed.
 */
static void discard_left(struct shm_conn *conn)
{
	struct shm_packet packet;
	unsigned i;

	for (i = 0; i < LEFT_MAX; i++) {
		int rc = shm_packet_receive(conn, &packet);

		if (rc != 1 && rc != -EPROTO)
			return;
		shm_packet_close_fds(&packet);
	}
}

void shm_conn_close_socket(struct shm_conn *conn)
{
	if (conn->fd < 0)
		return;
	/* nothing is added to a socket that is shut down */
	shutdown(conn->fd, SHUT_RDWR);
	if (conn->remote.is_trusted)
		discard_left(conn);
	shm_socket_close(conn->fd);
	conn->fd = -1;
}

void shm_socket_close(int fd)
{
	int state = core_cancel_off();

	/* also ends the connection while a child that is about to exec holds a copy */
	shutdown(fd, SHUT_RDWR);
	if (is_emptied(fd))
		soft_fd_close(fd);
	else
		soft_closer_close_listed(fd);
	core_cancel_restore(state);
}

int shm_conn_epoll_add(struct shm_conn *conn)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u64 = conn->id};

	/*
	 * set before: the service thread may remove it, or destroy an arriving connection, at once
	 */
	atomic_store_explicit(&conn->is_in_epoll, true, memory_order_relaxed);
	if (!epoll_ctl(conn->engine->service.epoll_fd, EPOLL_CTL_ADD, conn->fd, &event))
		return 0;
	atomic_store_explicit(&conn->is_in_epoll, false, memory_order_relaxed);
	return -errno;
}

void shm_conn_epoll_remove(struct shm_conn *conn)
{
	/* explicitly: a copy of the socket in a child would keep the entry alive */
	if (atomic_exchange_explicit(&conn->is_in_epoll, false, memory_order_relaxed))
		epoll_ctl(conn->engine->service.epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
}

bool shm_conn_has_hung_up(const struct shm_conn *conn)
{
	struct pollfd end = {.fd = conn->fd};
	int state = core_cancel_off();
	bool has_hung_up = poll(&end, 1, 0) == 1 && (end.revents & (POLLHUP | POLLERR));

	core_cancel_restore(state);
	return has_hung_up;
}
