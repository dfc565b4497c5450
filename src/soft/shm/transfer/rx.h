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
struct shm_room;

/*
 * Carries out the entries of the request ring: > 0 work was done, 0, or -EPROTO: the connection
 * breaks. EP locked.
 */
int shm_rx_run(struct shm_conn *conn, struct core_ep *ep, struct shm_pass *pass);

/*
 * Places the bytes of an entry of an RDMA Write if its key is valid for all that is left of the
 * Write: 0, or -errno. EP locked.
 */
int shm_rx_place(struct shm_conn *conn, const struct core_ep *ep, const struct shm_entry *write,
		 const uint8_t *from);
/* The same for an RDMA Read: fills the room with bytes of ours, from that offset on. */
int shm_rx_fetch(struct shm_conn *conn, const struct core_ep *ep, const struct shm_entry *read,
		 uint64_t offset, const struct shm_room *room);

#endif
