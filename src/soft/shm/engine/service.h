// SPDX-License-Identifier: BSD-2-Clause
/*
 * The service thread of an adapter instance: set-up, ends, wake-ups, time-outs, and the progress of
 * connections that no thread polls. It sleeps without limit while every connection is armed and no
 * deadline is set, so an idle process uses no CPU. All signals are blocked in it.
 */
#ifndef SHM_SERVICE_H
#define SHM_SERVICE_H

#include <stdbool.h>

#include "soft/shm/engine/engine.h"

struct shm_conn;

/* --- service.c --- */

/* The thread's main function. */
void *shm_service_run(void *engine);
/* Does a thread of the consumer drive the connections? */
bool shm_service_is_driven(struct shm_engine *engine);

/* --- packets.c --- */

/* The socket of a connection is readable. */
void shm_service_conn(struct shm_conn *conn);
/* The connection cannot continue; EP locked. */
void shm_service_give_up(struct shm_conn *conn, struct core_ep *ep);

/* --- deadlines.c --- */

/* Serves the connections whose deadline has passed. */
void shm_service_deadlines(struct shm_engine *engine);
/* Serves the connections on the list of shm_conn_serve_later. */
void shm_service_pending(struct shm_engine *engine);

#endif
