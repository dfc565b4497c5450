// SPDX-License-Identifier: BSD-2-Clause
/*
 * The system calls of the data path. Unlike those of the C library they are no cancellation points
 * (core/base/cancel.h), which costs four atomic operations for each.
 */
#ifndef IWARP_SOCKET_H
#define IWARP_SOCKET_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

ssize_t iw_socket_recv(int fd, void *buffer, size_t size, int flags);
ssize_t iw_socket_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);

/* The bytes of one TCP segment; 0: unknown. */
uint32_t iw_socket_mss(int fd);

#endif
