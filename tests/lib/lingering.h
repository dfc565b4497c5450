// SPDX-License-Identifier: BSD-2-Clause
/*
 * Descriptors whose last close blocks: until the test releases it, but not longer than `seconds`.
 * Include after cmocka.h.
 */
#ifndef TESTS_LINGERING_H
#define TESTS_LINGERING_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct lingering {
	int fd;	   /* the one whose last close blocks */
	int other; /* closing it releases a close that blocks */
};

/* A TCP socket with unsent bytes. */
static inline void lingering_open(struct lingering *lingering, int seconds)
{
	const struct linger linger = {1, seconds};
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char bytes[65536];
	socklen_t len = sizeof(any);

	assert_true(server >= 0 && fd >= 0);
	assert_int_equal(bind(server, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(server, 1), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&any, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	lingering->other = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	assert_true(lingering->other >= 0);
	close(server);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		continue;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	lingering->fd = fd;
}

/*
 * A local socket in whose queue such a socket is; SO_LINGER of the local socket has no effect. Its
 * other end, *sender_out, hangs up (POLLHUP) just before the close blocks.
 */
static inline void lingering_open_watched(struct lingering *lingering, int seconds, int *sender_out)
{
	struct iovec iov = {(char[]){"x"}, 1};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int pair[2];

	lingering_open(lingering, seconds);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	memset(&control, 0, sizeof(control));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &lingering->fd, sizeof(int));
	assert_int_equal(sendmsg(pair[0], &message, 0), 1);
	close(lingering->fd);
	lingering->fd = pair[1];
	*sender_out = pair[0];
}

/* Ends a close that blocks; a later one does not block. */
static inline void lingering_release(struct lingering *lingering)
{
	close(lingering->other);
}

#endif
