// SPDX-License-Identifier: BSD-2-Clause
/*
 * The requests of the peer: messages into posted Receives, RDMA Writes and Reads that come through
 * the ring (rx.c).
 */
#ifndef SHM_RX_H
#define SHM_RX_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/pins.h"
#include "soft/shm/ring.h"

struct core_ep;
struct shm_bytes;
struct shm_conn;

/* A message that arrives. */
struct shm_arrival {
	bool is_begun;	  /* the Receive at the head is being filled */
	bool is_pull;	  /* we fetch its bytes from `sources`, */
	bool is_supplied; /* or could not, and the sender puts all of them into the response ring */
	bool is_blocked;  /* no Receive: waits for post_recv */
	bool is_solicited;
	uint64_t length;
	uint64_t offset;
	uint64_t blocked_ns; /* since when, if there is a time limit */
	struct shm_source sources[SOFT_IOV_MAX];
};

/* An RDMA Write of the peer through the ring, or an RDMA Read that we answer. */
struct shm_inbound {
	bool is_begun;
	uint32_t key;
	uint64_t address;
	uint64_t length;
	uint64_t offset;
};

/* Carries out the entries of the request ring: > 0 work was done, 0, or -EPROTO. EP locked. */
int shm_rx_run(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget);

/*
 * Places bytes of an RDMA Write through the ring, at its offset, if its key is valid for all of it:
 * 0, or -errno. EP locked.
 */
int shm_rx_place(struct shm_conn *conn, const struct core_ep *ep, const struct shm_inbound *write,
		 const uint8_t *from, uint32_t count);
/* The same for an RDMA Read: copies bytes of ours, from its offset on. */
int shm_rx_fetch(struct shm_conn *conn, const struct core_ep *ep, const struct shm_inbound *read,
		 uint8_t *to, uint32_t count);

/* Takes bytes of a message from the response ring: 1, or -EPROTO; may close the connection. */
int shm_rx_supplied(struct shm_conn *conn, struct core_ep *ep, const struct shm_entry *entry,
		    const struct shm_bytes *bytes);

#endif
