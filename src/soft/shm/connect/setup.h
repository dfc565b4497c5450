// SPDX-License-Identifier: BSD-2-Clause
/*
 * Set-up of a connection on one host: REQUEST, ACCEPT (with the segment and the key table) or
 * REJECT, then READY (with the key table). Only processes of one user exchange key tables. So a
 * service point takes no descriptor from a caller that was not accepted, or is of another user. The
 * consumer's calls only send; the service thread reports results and failures. A peer that sends no
 * request in time, or an invalid one, is dropped.
 */
#ifndef SHM_SETUP_H
#define SHM_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/shm/conn.h"
#include "soft/shm/wire.h"

#define SHM_RETRY_NS 2000000u /* until a packet that could not be sent is tried again */

struct shm_packet;

/* --- transport slots --- */

/* -EHOSTUNREACH: the peer is not found on this host, and there is another path to it. */
int shm_connect(struct shm_engine *engine, struct core_ep *ep, const union core_sockaddr *address,
		DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us,
		const struct transport_conn_param *param);
int shm_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param);
void shm_reject(void *request, enum transport_reject why);

/* --- in the service thread; descriptors stay the caller's --- */

/* ARRIVING: a packet, or the end of the socket (NULL). */
void shm_setup_arrived(struct shm_conn *conn, const struct shm_packet *packet);
/*
 * REQUESTED, ACCEPTED: the answer; EP locked. -errno: the set-up cannot continue. The descriptors
 * of the packet are closed before the connection is reported.
 */
int shm_setup_answer(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet);
/* CALLING: tries again if it is time; EP locked. */
void shm_setup_retry(struct shm_conn *conn, uint64_t now);
/* ARRIVING: drops the connection. */
void shm_setup_drop_silent(struct shm_conn *conn);
/* ACCEPTED: sends the answer, or has it sent later; EP locked. */
void shm_setup_send_accept(struct shm_conn *conn);

/* --- shared by request.c and accept.c --- */

/* Describes our endpoint and process to the peer. */
void shm_setup_fill_side(struct shm_conn *conn, struct core_ep *ep,
			 const struct transport_conn_param *param, struct shm_wire_side *side);
/*
 * Where our token is, for a process that may read it. Other users must not learn an address of this
 * process: 0 for them.
 */
uint64_t shm_setup_token_address(const struct shm_conn *conn);
/*
 * The descriptor of our key table. The table says where our memory is, which other users must not
 * learn: -1 for them.
 */
int shm_setup_keys_fd(const struct shm_conn *conn);
/* Stores what the peer says about its process. */
void shm_setup_learn_process(struct shm_conn *conn, const struct shm_wire_side *side);
/* Checks whether we can read and write the peer's memory; for both sides before they answer. */
void shm_setup_probe_process(struct shm_conn *conn);
/* What we tell the peer: enum shm_wire_ability. */
uint32_t shm_setup_ability(const struct shm_conn *conn);
/*
 * Trust is mutual: takes what the peer says about it, and maps its key table (-1: none came).
 * Without a table everything goes through the rings.
 */
int shm_setup_take_trust(struct shm_conn *conn, uint32_t ability, int keys_fd);
/* Stores what the peer says about its endpoint. */
void shm_setup_learn_endpoint(struct shm_conn *conn, const struct shm_wire_side *side);
/* The connection is established. */
void shm_setup_established(struct shm_conn *conn, struct core_ep *ep,
			   const struct transport_conn_param *peer);
/* Has the service thread report that the set-up failed. */
void shm_setup_fail_later(struct shm_conn *conn, DAT_EVENT_NUMBER number);
/* REQUESTED: an ACCEPT arrived. */
int shm_setup_accepted(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet);

#endif
