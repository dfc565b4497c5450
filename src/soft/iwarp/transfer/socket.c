// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls that are no cancellation points (socket.h). The thread sanitizer does not see them.
 * It has to see recv and sendmsg, because what is sent and received orders the threads of a process
 * that talks to itself. It must not see recvmsg, which places bytes that the consumer may look at
 * at any time (COMPAT-46).
 */
#include "soft/iwarp/transfer/socket.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/tsan.h"

ssize_t iw_socket_recv(int fd, void *buffer, size_t size, int flags)
{
#ifdef CORE_HAS_TSAN
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
	return sendmsg(fd, message, flags);
#else
	return syscall(SYS_sendmsg, fd, message, flags);
#endif
}
