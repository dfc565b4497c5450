// SPDX-License-Identifier: BSD-2-Clause
/*
 * Drives one connection: makes passes and acts on what they tell; lets it sleep and wakes it up. EP
 * locked, unless a function says otherwise; the caller holds a reference of its own, or does not
 * use the connection any more.
 */
#ifndef SHM_DRIVE_H
#define SHM_DRIVE_H

#include <stdbool.h>

#include "soft/shm/transfer/pass.h"

struct core_req;
struct core_sleep;
struct shm_engine;
struct transport_peer;

/* A pass; ESTABLISHED. Reports the end, and sees to it that another one follows where it has to.
 * Returns how much was done. */
int shm_drive(struct shm_conn *conn, struct core_ep *ep);
/* Takes everything that is complete in the rings of a peer that has gone; ESTABLISHED. */
void shm_drain(struct shm_conn *conn, struct core_ep *ep);

/* Goes to sleep; false if there is work to do first. */
bool shm_conn_arm(struct shm_conn *conn);
/* Arms it, after passes as long as there is work. False: there still is, but other connections
 * come first. */
bool shm_settle(struct shm_conn *conn, struct core_ep *ep);
void shm_conn_disarm(struct shm_conn *conn);

/* The transport's slots sleep_begin and sleep_end, of a thread of the consumer; not locked. */
void shm_sleep_begin(struct shm_engine *engine, struct core_sleep *sleep);
void shm_sleep_end(struct core_sleep *sleep);

/* --- the endpoint slots of the transport table, for a connection over shared memory --- */

void shm_ep_detach(struct core_ep *ep);
void shm_ep_destroy(struct core_ep *ep);
void shm_ep_disconnect(struct core_ep *ep, bool is_graceful);
int shm_ep_peer(struct core_ep *ep, void *request, struct transport_peer *peer_out);
void shm_ep_post_request(struct core_ep *ep, struct core_req *req);
void shm_ep_post_recv(struct core_ep *ep);
void shm_ep_progress(struct core_ep *ep);
void shm_ep_abort(struct core_ep *ep);

#endif
