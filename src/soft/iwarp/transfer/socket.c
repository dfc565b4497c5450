// SPDX-License-Identifier: BSD-2-Clause
/* System calls that are no cancellation points (socket.h). */
#include "soft/iwarp/transfer/socket.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t iw_socket_recv(int fd, void *buffer, size_t size, int flags)
{
	return syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
}

ssize_t iw_socket_sendmsg(int fd, const struct msghdr *message, int flags)
{
	return syscall(SYS_sendmsg, fd, message, flags);
}
