/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Platform-dependent definitions: integer and socket address types, the direction markers of the
 * specification's prototypes, and the optimal alignment of buffers.
 */
#ifndef _DAT_PLATFORM_SPECIFIC_H_
#define _DAT_PLATFORM_SPECIFIC_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/socket.h>

typedef uint32_t DAT_UINT32;

#ifndef UINT64_C
#define UINT64_C(c) c##ULL
#endif

typedef uint64_t DAT_UINT64;

__extension__ typedef unsigned long long DAT_UVERYLONG;

typedef void *DAT_PVOID;
typedef int DAT_COUNT;

/* A file descriptor, see dat_cno_fd_create. */
typedef int DAT_FD;
typedef DAT_UINT64 DAT_PADDR;

#ifndef IN
#define IN /* the call reads the argument */
#endif

#ifndef OUT
#define OUT /* the call writes what the argument points to */
#endif

#ifndef INOUT
#define INOUT /* the call reads and writes what the argument points to */
#endif

#define DAT_EXPORT extern
#define DAT_API /* the calling convention is the usual one */

#ifndef DAT_OPTIMAL_ALIGNMENT
#define DAT_OPTIMAL_ALIGNMENT 256
#endif

typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;

/* A communicator: the domain, type and protocol of a socket that would reach the same peer. */
typedef struct dat_comm {
	int domain;
	int type;
	int protocol;
} DAT_COMM;

#define DAT_AF_INET AF_INET
#define DAT_AF_INET6 AF_INET6

#define DAT_IA_HANDLE_TO_UL(a) ((unsigned long)(a))

#define DAT_UL_TO_IA_HANDLE(a) ((DAT_IA_HANDLE)(a))

#endif /* _DAT_PLATFORM_SPECIFIC_H_ */
