// SPDX-License-Identifier: BSD-2-Clause
/* The end of a connection or of an attempt (close.c). All with the endpoint locked. */
#ifndef SHM_CLOSE_H
#define SHM_CLOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/shm/conn.h"

/*
 * Revokes the peer's access and sends CLOSE. Never calls the core; shm_conn_finish follows, now or
 * in the service thread (shm_conn_serve_later).
 */
void shm_conn_close(struct shm_conn *conn, DAT_EVENT_NUMBER end);
/* CLOSING: reports the end to the core unless the peer is still copying. */
void shm_conn_finish(struct shm_conn *conn, struct core_ep *ep);
/* Set-up failed: reports that to the core and releases the connection. */
void shm_conn_fail_setup(struct shm_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number);
/* Does the peer announce its copies without a fence? */
bool shm_conn_is_peer_unfenced(const struct shm_conn *conn);
/* Is the peer copying from or to our memory? (for shm_wait_copies) */
bool shm_conn_is_peer_copying(const struct shm_conn *conn, uint64_t unused);

#endif
