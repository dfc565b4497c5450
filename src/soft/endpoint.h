// SPDX-License-Identifier: BSD-2-Clause
/* What an endpoint and a connection request are to the two engines, shm/ and iwarp/. */
#ifndef SOFT_ENDPOINT_H
#define SOFT_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

struct iw_conn;
struct shm_conn;

/* The part of the engine of shared memory. */
struct shm_ep {
	struct shm_conn *conn; /* with a reference; NULL: not connected */
	bool is_detached;
};

/*
 * The transport's side of an endpoint (core_ep.transport). At most one of the two has a connection.
 */
struct soft_ep {
	struct shm_ep shm; /* first: that engine sees nothing else */
	struct iw_conn *tcp;
};

/*
 * What the core knows of a request over TCP: its connection, marked in the lowest bit, which is 0
 * in the address of one over shared memory.
 */
static inline void *soft_request_of_tcp(struct iw_conn *conn)
{
	return (void *)((uintptr_t)conn | 1);
}

#endif
