// SPDX-License-Identifier: BSD-2-Clause
/* Claims of qualifiers (claim.h): abstract names of local sockets. */
#include "soft/claim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "soft/fds.h"

static socklen_t claim_name(enum soft_claim kind, const union core_sockaddr *address,
			    DAT_CONN_QUAL qual, struct sockaddr_un *name)
{
	static const char *const words[] = {
		[SOFT_CLAIM_TCP] = "tcp",
		[SOFT_CLAIM_USER] = "user",
	};
	char text[INET6_ADDRSTRLEN] = "";
	int len;

	if (address->sa.sa_family == AF_INET)
		inet_ntop(AF_INET, &address->in.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &address->in6.sin6_addr, text, sizeof(text));
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	/* a zero in front makes the name abstract; the one at the end is not part of it */
	len = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "opendat.%s.1/%s/%" PRIx64,
		       words[kind], text, (uint64_t)qual);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/*
 * Lets nothing into the queue of a socket. Anybody may send to an abstract name, also descriptors
 * that the close of the socket would have to close, which can block.
 */
static int refuse_packets(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = {.len = 1, .filter = &nothing};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/*
 * Sends a packet to the name: 0, or -errno. -EPIPE: the claim was given back, and only a child
 * between fork and exec has a copy of the socket, which is shut down (soft_claim_give). A socket
 * that is not drops the packet.
 */
static int send_to_claim(const struct sockaddr_un *name, socklen_t size)
{
	int fd = soft_fd_socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK);
	int rc = 0;

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)name, size) < 0 ||
	    send(fd, "", 1, MSG_NOSIGNAL) < 0)
		rc = -errno;
	soft_fd_close(fd);
	return rc;
}

int soft_claim_take(enum soft_claim kind, const union core_sockaddr *address, DAT_CONN_QUAL qual)
{
	struct sockaddr_un name;
	socklen_t size = claim_name(kind, address, qual, &name);
	int fd = soft_fd_socket(AF_UNIX, SOCK_DGRAM);
	int rc;

	if (fd < 0)
		return fd;
	if (!refuse_packets(fd) && !bind(fd, (struct sockaddr *)&name, size))
		return fd;
	rc = -errno;
	soft_fd_close(fd);
	return rc == -EADDRINUSE && send_to_claim(&name, size) == -EPIPE ? -EBUSY : rc;
}

void soft_claim_give(int fd)
{
	const int unused = 0;

	if (fd < 0)
		return;
	/* a filter would hide that it is shut down, which keeps packets away as well */
	(void)shutdown(fd, SHUT_RDWR);
	(void)setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
	soft_fd_close(fd);
}

bool soft_claim_exists(enum soft_claim kind, const union core_sockaddr *address, DAT_CONN_QUAL qual)
{
	struct sockaddr_un name;
	socklen_t size = claim_name(kind, address, qual, &name);

	return send_to_claim(&name, size) == 0;
}
