// SPDX-License-Identifier: BSD-2-Clause
/*
 * Set-up of a connection on one host: REQUEST, ACCEPT (with the segment and the key table) or
 * REJECT, then READY (with the key table). Who gets a REQUEST or an ACCEPT that another user has
 * sent shares nothing with it: the attempt goes on over TCP. The consumer's calls only send; the
 * service thread reports results and failures. A peer that sends no request in time, or an invalid
 * one, is dropped.
 */
#ifndef SHM_SETUP_H
#define SHM_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/shm/conn.h"
#include "soft/shm/bytes/wire.h"
#include "soft/shm/connect/dir.h"

#define SHM_RETRY_NS 2000000u /* until a packet that could not be sent is tried again */

struct shm_packet;

/* --- transport slots --- */

/* -EHOSTUNREACH: no process of our user listens there, and `otherwise` is not NULL. */
int shm_connect(struct shm_engine *engine, struct core_ep *ep, const union core_sockaddr *address,
		DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us,
		const struct transport_conn_param *param, shm_otherwise *otherwise);
int shm_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param);
void shm_reject(void *request, enum transport_reject why, const void *private_data, uint32_t size);

/* --- in the service thread; descriptors stay the caller's --- */

/* ARRIVING: a packet, or the end of the socket (NULL). */
void shm_setup_arrived(struct shm_conn *conn, const struct shm_packet *packet);
/*
 * REQUESTED, ACCEPTED: the answer; EP locked. -errno: the set-up cannot continue. The descriptors
 * of the packet are closed before the connection is reported.
 */
int shm_setup_answer(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet);
/* CALLING: tries again if it is time; EP locked. */
void shm_setup_retry(struct shm_conn *conn, struct core_ep *ep, uint64_t now);
/* ARRIVING: drops the connection. */
void shm_setup_drop_silent(struct shm_conn *conn);
/* ACCEPTED: sends the answer, or has it sent later; EP locked. */
void shm_setup_send_accept(struct shm_conn *conn);

/* --- also for tests --- */

/* Maps the peer's key table. -1: none came; then the rings take all. */
int shm_setup_take_keys(struct shm_conn *conn, int keys_fd);
/* Stores what the peer says about its endpoint and process. */
void shm_setup_learn_side(struct shm_conn *conn, const struct shm_wire_side *side);

/*
 * --- who the peer is ---
 *
 * Shared memory is for processes of one user: both sides show by the credentials
 * that the kernel attaches to REQUEST and ACCEPT that they are of one. In a user namespace one
 * number stands for all users that are not mapped, so that user is nobody's peer.
 */

/*
 * Do peers get access to memory of this process? Not if the kernel keeps others of the user from it
 * (PR_SET_DUMPABLE), or with copy=ring.
 */
bool shm_identity_shares(const struct shm_engine *engine);

/*
 * Stores who has sent REQUEST or ACCEPT. Each side accesses memory of the other one if both share
 * it, and know each other's number: neither is in another PID namespace.
 */
void shm_identity_learn(struct shm_conn *conn, const struct shm_packet *packet);
/* Was the packet sent by that process, as the same user? */
bool shm_identity_is_same(const struct shm_conn *conn, const struct shm_packet *packet);
/* The slot `peer`. */
void shm_identity_tell(const struct shm_conn *conn, struct transport_peer *peer_out);

#endif
