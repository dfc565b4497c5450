// SPDX-License-Identifier: BSD-2-Clause
/*
 * The engine of one adapter instance. This folder drives connections: threads that poll, the service
 * thread, and waits for peers. instance.h has the engine's data, its locks, and how it progresses.
 */
#ifndef SHM_ENGINE_H
#define SHM_ENGINE_H

#include "soft/shm/instance.h"

/* --- service.c --- */

int shm_engine_create(struct soft_adapter *adapter, struct shm_engine **engine_out);
/* Ends the service thread and drops the adapter; see transport_ops.ia_close. */
void shm_engine_close(struct shm_engine *engine);
/* An event of epoll. */
void shm_service_event(struct shm_engine *engine, struct soft_attended *attended);
/* The socket of a connection is readable. */
void shm_service_conn(struct shm_conn *conn);
/* Serves the connections whose deadline has passed. */
void shm_service_deadlines(struct shm_engine *engine);
/* Serves the connections on the list of shm_conn_serve_later. */
void shm_service_pending(struct shm_engine *engine);

/* --- poll.c --- */

/* The transport's slots progress and arm. */
int shm_engine_progress(struct shm_engine *engine);
int shm_engine_arm(struct shm_engine *engine);
/* A poll on the fast path: transport_poll (core/ep/data_path.h). */
enum transport_poll shm_poll(struct shm_engine *engine, struct core_handle *cell, DAT_EVENT *event);
/* Arms one connection of the list. False: it has work. */
bool shm_engine_arm_one(struct shm_engine *engine, struct shm_conn *conn);
/* Polls every active connection once; returns how much was done. */
int shm_engine_poll_all(struct shm_engine *engine);

#endif
