// SPDX-License-Identifier: BSD-2-Clause
/* What plain TCP can do between two processes of one host that poll (raw.h). */
#include "raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

/* The congestion control that OpenDAT uses on the loopback interface. A socket that has begun to
 * pace goes on, so this comes first. */
static int choose_reno(int fd)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
}

void raw_tcp_connect(struct raw *raw)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	raw->sockets[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || raw->sockets[0] < 0 || choose_reno(listener) != 0 ||
	    choose_reno(raw->sockets[0]) != 0 ||
	    bind(listener, (struct sockaddr *)&address, len) != 0 || listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &len) != 0 ||
	    connect(raw->sockets[0], (struct sockaddr *)&address, len) != 0)
		raw_fail("connect");
	raw->sockets[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (raw->sockets[1] < 0)
		raw_fail("accept4");
	close(listener);
	for (unsigned i = 0; i < RAW_SIDES; i++)
		if (setsockopt(raw->sockets[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0 ||
		    fcntl(raw->sockets[i], F_SETFL, O_NONBLOCK) != 0)
			raw_fail("setsockopt or fcntl");
}

static bool is_not_ready(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* Moves `size` bytes, and polls until all have moved. */
static void move(struct raw *raw, ssize_t (*some)(int fd, char *bytes, size_t size))
{
	size_t done = 0;

	while (done < raw->size) {
		ssize_t part = some(raw->sockets[raw->side], raw->bytes + done, raw->size - done);

		if (part > 0)
			done += (size_t)part;
		else if (part == 0 || !is_not_ready())
			raw_fail("TCP");
	}
}

static ssize_t send_some(int fd, char *bytes, size_t size)
{
	return send(fd, bytes, size, MSG_NOSIGNAL);
}

static ssize_t receive_some(int fd, char *bytes, size_t size)
{
	return recv(fd, bytes, size, 0);
}

void raw_tcp_signal(struct raw *raw, uint32_t value)
{
	(void)value;
	move(raw, send_some);
}

void raw_tcp_wait(struct raw *raw, uint32_t value)
{
	(void)value;
	move(raw, receive_some);
}

void raw_tcp_send_stream(struct raw *raw, uint64_t count)
{
	while (count--)
		move(raw, send_some);
}

uint64_t raw_tcp_receive_stream(struct raw *raw, uint64_t count)
{
	uint64_t start = tool_now_ns();

	while (count--)
		move(raw, receive_some);
	return tool_now_ns() - start;
}
