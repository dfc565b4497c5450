// SPDX-License-Identifier: BSD-2-Clause
/*
 * The claim of a qualifier: an abstract local socket whose name has the adapter's address and all
 * 64 bits, so that a qualifier is used once on a host and is free again when the process dies.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "soft/fds.h"
#include "soft/iwarp/connect/attempt.h"

#define BACKLOG 1 /* nobody connects but to see that there is a listener */

static socklen_t claim_name(const union core_sockaddr *address, DAT_CONN_QUAL qual,
			    struct sockaddr_un *name)
{
	char text[INET6_ADDRSTRLEN] = "";
	int len;

	if (address->sa.sa_family == AF_INET)
		inet_ntop(AF_INET, &address->in.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &address->in6.sin6_addr, text, sizeof(text));
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	/* a zero in front makes the name abstract; the one at the end is not part of it */
	len = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "opendat.tcp.1/%s/%" PRIx64,
		       text, (uint64_t)qual);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

int iw_claim(const union core_sockaddr *address, DAT_CONN_QUAL qual)
{
	struct sockaddr_un name;
	socklen_t size = claim_name(address, qual, &name);
	int fd = soft_fd_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK);
	int rc = 0;

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&name, size) < 0 || listen(fd, BACKLOG) < 0)
		rc = -errno;
	if (!rc)
		return fd;
	soft_fd_close(fd);
	return rc == -EADDRINUSE && soft_fd_is_stale(SOCK_STREAM, &name, size) ? -EBUSY : rc;
}
