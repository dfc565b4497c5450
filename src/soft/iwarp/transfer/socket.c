// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls that are no cancellation points (socket.h). The thread sanitizer does not see them.
 * It has to see recv and sendmsg, because what is sent and received orders the threads of a process
 * that talks to itself. So it gets those of the C library, with cancellation disabled. It must not
 * see recvmsg, which places bytes that the consumer may look at at any time (COMPAT-46).
 */
#include "soft/iwarp/transfer/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/tsan.h"

ssize_t iw_socket_recv(int fd, void *buffer, size_t size, int flags)
{
#ifdef CORE_HAS_TSAN
	CORE_NO_CANCELLATION;

	return recv(fd, buffer, size, flags);
#else
	return syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
#endif
}

ssize_t iw_socket_recvmsg(int fd, struct msghdr *message, int flags)
{
	return syscall(SYS_recvmsg, fd, message, flags);
}

ssize_t iw_socket_sendmsg(int fd, const struct msghdr *message, int flags)
{
#ifdef CORE_HAS_TSAN
	CORE_NO_CANCELLATION;

	return sendmsg(fd, message, flags);
#else
	return syscall(SYS_sendmsg, fd, message, flags);
#endif
}

uint32_t iw_socket_mss(int fd)
{
	int mss = 0;
	socklen_t size = sizeof(mss);

	if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &size) < 0 || mss < 0)
		return 0;
	return (uint32_t)mss;
}
