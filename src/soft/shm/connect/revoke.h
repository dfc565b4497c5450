// SPDX-License-Identifier: BSD-2-Clause
/* The end of a connection, of an attempt and of a key (revoke.c). */
#ifndef SHM_REVOKE_H
#define SHM_REVOKE_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/shm/conn.h"

/* --- a connection or an attempt; EP locked --- */

/*
 * Revokes the peer's access and sends CLOSE. Never calls the core; shm_conn_finish follows, now or
 * in the service thread (shm_conn_serve_later).
 */
void shm_conn_close(struct shm_conn *conn, DAT_EVENT_NUMBER end);
/* CLOSING: reports the end to the core unless the peer is still copying. */
void shm_conn_finish(struct shm_conn *conn, struct core_ep *ep);
/* Set-up failed: reports that to the core and releases the connection. */
void shm_conn_fail_setup(struct shm_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number);
/* Is the peer copying from or to our memory? (for shm_wait_copies) */
bool shm_conn_is_peer_copying(const struct shm_conn *conn, uint64_t unused);

/* --- a key; not locked --- */

/*
 * Does any peer copy through the key, which is dead already? Never blocks. A peer that is found
 * copying by one call after the other for longer than the peer time-out loses its connection.
 */
bool shm_engine_is_key_in_use(struct shm_engine *engine, uint32_t key);
/* Waits until no peer copies through the key any more; see transport_ops.lmr_destroy. */
void shm_engine_wait_key(struct shm_engine *engine, uint32_t key);
/* Waits until `is_copying` returns false or the peer is dead (true), or until that time (false). */
bool shm_wait_copies(struct shm_conn *conn, bool (*is_copying)(const struct shm_conn *, uint64_t),
		     uint64_t argument, uint64_t limit_ns);

#endif
