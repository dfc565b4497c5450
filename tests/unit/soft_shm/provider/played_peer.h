// SPDX-License-Identifier: BSD-2-Clause
/* A peer of the whole provider that the test plays, on the socket and in the segment. */
#ifndef TESTS_SOFT_SHM_PLAYED_PEER_H
#define TESTS_SOFT_SHM_PLAYED_PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "soft/fds.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/bytes/wire.h"
#include "soft/shm/connect/dir.h"

/* --- a peer that the test plays --- */

struct peer {
	int fd;
	int segment_fd;
	struct shm_segment *segment;
	union shm_wire wire; /* the last packet */
};

/* Opens the folder of names; name_out: that of a service point. */
static inline struct shm_dir open_names(DAT_CONN_QUAL qual, char name_out[SHM_DIR_NAME_MAX])
{
	const union core_sockaddr address = {
		.in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
	struct shm_dir dir;

	assert_int_equal(shm_dir_open("", &address, &dir), 0);
	shm_dir_name(&dir, &address, qual, name_out);
	return dir;
}

static inline void peer_send(const struct peer *peer, const union shm_wire *wire)
{
	assert_true(send(peer->fd, wire, shm_wire_size(wire), MSG_NOSIGNAL) > 0);
}

static inline void peer_word(const struct peer *peer, enum shm_wire_type type, uint32_t word)
{
	union shm_wire wire;

	shm_wire_prepare(&wire, type);
	if (type != SHM_WIRE_WAKE)
		wire.word.word = word;
	peer_send(peer, &wire);
}

/*
 * The type of the next packet, 0 at the end of the socket. Keeps the segment among its descriptors.
 */
static inline unsigned peer_receive(struct peer *peer)
{
	struct iovec iov = {&peer->wire, sizeof(peer->wire)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {.bytes = ""};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	struct pollfd ready = {.fd = peer->fd, .events = POLLIN};
	struct cmsghdr *header;
	int fds[2];

	assert_int_equal(poll(&ready, 1, (int)(WAIT_US / 1000)), 1);
	if (recvmsg(peer->fd, &message, MSG_CMSG_CLOEXEC) <= 0)
		return 0;
	header = CMSG_FIRSTHDR(&message);
	if (header) {
		size_t size = header->cmsg_len - CMSG_LEN(0);

		memcpy(fds, CMSG_DATA(header), size);
		for (size_t i = 1; i < size / sizeof(int); i++)
			close(fds[i]);
		if (peer->wire.head.type == SHM_WIRE_ACCEPT)
			peer->segment_fd = fds[0];
		else
			close(fds[0]);
	}
	return peer->wire.head.type;
}

static inline void peer_map(struct peer *peer)
{
	assert_true(peer->segment_fd >= 0);
	peer->segment = mmap(NULL, sizeof(*peer->segment), PROT_READ | PROT_WRITE, MAP_SHARED,
			     peer->segment_fd, 0);
	assert_ptr_not_equal(peer->segment, MAP_FAILED);
	close(peer->segment_fd);
}

static inline void peer_close(struct peer *peer)
{
	close(peer->fd);
	if (peer->segment)
		munmap(peer->segment, sizeof(*peer->segment));
}

static inline void peer_ask(const struct peer *peer)
{
	union shm_wire wire;

	shm_wire_prepare(&wire, SHM_WIRE_REQUEST);
	wire.request.family = AF_INET;
	wire.request.qual = stage.qual;
	wire.request.side.port = 1;
	peer_send(peer, &wire);
}

/* Calls our service point. */
static inline void peer_dial(struct peer *peer)
{
	char name[SHM_DIR_NAME_MAX];
	struct shm_dir dir = open_names(stage.qual, name);

	*peer = (struct peer){.segment_fd = -1};
	peer->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(peer->fd >= 0);
	assert_int_equal(shm_dir_connect(&dir, peer->fd, name), 0);
	soft_fd_close(dir.fd);
}

/* The peer, which sends no key table, connects to our service point and is accepted. */
static inline void peer_is_here(struct peer *peer)
{
	peer_dial(peer);
	peer_ask(peer);
	accept_request();
	assert_int_equal(peer_receive(peer), SHM_WIRE_ACCEPT);
	peer_map(peer);
	peer_word(peer, SHM_WIRE_READY, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
}

static inline int provide(void **state)
{
	(void)state;
	add_adapter("host", "127.0.0.1 transport=shm");
	return 0;
}

#endif
