// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets, descriptors and epoll of a connection (socket.h).
 */
#include "soft/shm/socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "shared/fd.h"
#include "soft/fds.h"
#include "soft/shm/state.h"
#include "soft/shm/bytes/wire.h"

void shm_socket_name_senders(int fd)
{
	const int is_naming = 1;

	/* if it fails, the peer cannot show who it is */
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &is_naming, sizeof(is_naming));
}

/* --- packets in --- */

void shm_packet_close_fds(struct shm_packet *packet)
{
	while (packet->fd_count)
		close(packet->fds[--packet->fd_count]);
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
		if (count > SHM_WIRE_FDS_MAX - packet->fd_count)
			count = SHM_WIRE_FDS_MAX - packet->fd_count;
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
 * packet is still useful: the memory behind a key is not mapped then.
 */
static int decode_stripped(const void *bytes, size_t size, struct shm_packet *packet)
{
	union shm_wire *wire = &packet->wire;

	if (packet->fd_count || shm_wire_decode(bytes, size, 1, wire) < 0)
		return -EPROTO;
	if (wire->head.type != SHM_WIRE_MAP_GIVE)
		return -EPROTO;
	wire->word.word = wire->give.key;
	wire->head.type = SHM_WIRE_MAP_REFUSE;
	return 1;
}

int shm_packet_receive(struct shm_conn *conn, struct shm_packet *packet)
{
	uint8_t bytes[sizeof(union shm_wire) + 1]; /* one more byte, to detect longer packets */
	struct iovec iov = {bytes, sizeof(bytes)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred)) +
			   CMSG_SPACE(SHM_WIRE_FDS_MAX * sizeof(int))];
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
	packet->sender = (struct ucred){.uid = (uid_t)-1, .gid = (gid_t)-1};
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
		/* an empty packet, which no peer sends, looks like the end */
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

int shm_conn_epoll_add(struct shm_conn *conn)
{
	return soft_attention_watch(&conn->engine->attention, &conn->attended, EPOLL_CTL_ADD,
				    conn->fd, EPOLLIN | EPOLLRDHUP);
}

void shm_conn_epoll_remove(struct shm_conn *conn)
{
	soft_attention_unwatch(&conn->engine->attention, &conn->attended, conn->fd);
}

bool shm_conn_has_hung_up(const struct shm_conn *conn)
{
	struct pollfd end = {.fd = conn->fd};
	int state = core_cancel_off();
	bool has_hung_up = poll(&end, 1, 0) == 1 && (end.revents & (POLLHUP | POLLERR));

	core_cancel_restore(state);
	return has_hung_up;
}
