// SPDX-License-Identifier: BSD-2-Clause
#include "tcp_pair.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The congestion control that OpenDAT uses on the loopback interface. A socket that has begun to
 * pace goes on, so this comes first. */
static int choose_reno(int fd)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
}

int tcp_pair(int sockets_out[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	sockets_out[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || sockets_out[0] < 0 || choose_reno(listener) != 0 ||
	    choose_reno(sockets_out[0]) != 0 ||
	    bind(listener, (struct sockaddr *)&address, len) != 0 || listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &len) != 0 ||
	    connect(sockets_out[0], (struct sockaddr *)&address, len) != 0)
		return -1;
	sockets_out[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (sockets_out[1] < 0)
		return -1;
	close(listener);
	for (unsigned i = 0; i < 2; i++)
		if (setsockopt(sockets_out[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0 ||
		    fcntl(sockets_out[i], F_SETFL, O_NONBLOCK) != 0)
			return -1;
	return 0;
}
