/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Platform-dependent definitions: integer and socket address types, the direction markers of the
 * specification's prototypes, and the optimal alignment of buffers.
 */
#ifndef _DAT_PLATFORM_SPECIFIC_H_
#define _DAT_PLATFORM_SPECIFIC_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <netinet/in.h>

#ifndef UINT64_C
#define UINT64_C(c) c##ULL
#endif

/* Directions of parameters, without effect. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

/* A buffer with this alignment in bytes is never copied to align it. */
#ifndef DAT_OPTIMAL_ALIGNMENT
#define DAT_OPTIMAL_ALIGNMENT 256
#endif

typedef uint32_t DAT_UINT32;
typedef uint64_t DAT_UINT64;
__extension__ typedef unsigned long long DAT_UVERYLONG; /* at least 64 bits */
typedef void *DAT_PVOID;
typedef int DAT_COUNT;
typedef DAT_UINT64 DAT_PADDR; /* physical address; unused at user level */

typedef struct sockaddr DAT_SOCK_ADDR; /* of any family: check sa_family */
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;

#define DAT_AF_INET AF_INET
#define DAT_AF_INET6 AF_INET6

#endif /* _DAT_PLATFORM_SPECIFIC_H_ */
