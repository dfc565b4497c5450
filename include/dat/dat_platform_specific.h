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

/*
 * Basic types and the marks of parameters. The marks show in prototypes what a call does with an
 * argument, and have no effect.
 */
typedef uint32_t DAT_UINT32;				/* 32 bits */
typedef uint64_t DAT_UINT64;				/* 64 bits */
__extension__ typedef unsigned long long DAT_UVERYLONG; /* at least 64 bits */
typedef void *DAT_PVOID;				/* a pointer to anything */
typedef int DAT_COUNT;					/* a number of things */
typedef DAT_UINT64 DAT_PADDR; /* a physical address; unused at user level */

#ifndef IN
#define IN /* the call reads the argument */
#endif
#ifndef OUT
#define OUT /* the call writes what the argument points to */
#endif
#ifndef INOUT
#define INOUT /* the call reads and writes what the argument points to */
#endif

/*
 * The alignment in bytes at which buffers are fastest. Buffers of any alignment work. It is the
 * largest value that optimal_buffer_alignment of a provider can have.
 */
#ifndef DAT_OPTIMAL_ALIGNMENT
#define DAT_OPTIMAL_ALIGNMENT 256
#endif

/*
 * Socket addresses, as in the C library. DAT_IA_ADDRESS_PTR points to one.
 */
typedef struct sockaddr DAT_SOCK_ADDR;	    /* of any family: check sa_family */
typedef struct sockaddr_in6 DAT_SOCK_ADDR6; /* of IPv6 */

#define DAT_AF_INET AF_INET   /* sa_family of a struct sockaddr_in */
#define DAT_AF_INET6 AF_INET6 /* sa_family of a struct sockaddr_in6 */

#endif /* _DAT_PLATFORM_SPECIFIC_H_ */
