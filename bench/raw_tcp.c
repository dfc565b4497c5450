// SPDX-License-Identifier: BSD-2-Clause
/* What plain TCP can do between two processes of one host that poll (raw.h). */
#include "raw.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "common.h"
#include "tcp_pair.h"

void raw_tcp_connect(struct raw *raw)
{
	if (tcp_pair(raw->sockets) != 0)
		raw_fail("TCP");
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
