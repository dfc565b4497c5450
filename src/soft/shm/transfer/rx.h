// SPDX-License-Identifier: BSD-2-Clause
/*
 * The requests of the peer: messages into posted Receives, RDMA Writes and Reads that come through
 * the ring (rx.c).
 */
#ifndef SHM_RX_H
#define SHM_RX_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/shm/conn.h"

struct core_ep;

struct shm_pass;

/*
 * Carries out the entries of the request ring: > 0 work was done, 0, or -EPROTO: the connection
 * breaks. EP locked.
 */
int shm_rx_run(struct shm_conn *conn, struct core_ep *ep, struct shm_pass *pass);

/*
 * Places bytes of an RDMA Write through the ring, at its offset, if its key is valid for all of it:
 * 0, or -errno. EP locked.
 */
int shm_rx_place(struct shm_conn *conn, const struct core_ep *ep, const struct shm_inbound *write,
		 const uint8_t *from, uint32_t count);
/* The same for an RDMA Read: copies bytes of ours, from its offset on. */
int shm_rx_fetch(struct shm_conn *conn, const struct core_ep *ep, const struct shm_inbound *read,
		 uint8_t *to, uint32_t count);

#endif
