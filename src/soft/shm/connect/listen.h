// SPDX-License-Identifier: BSD-2-Clause
/* Service points (listen.c). */
#ifndef SHM_LISTEN_H
#define SHM_LISTEN_H

#include <stdbool.h>

#include "core/transport.h"

struct shm_conn;
struct shm_engine;
struct shm_listener;

int shm_listen(struct shm_engine *engine, struct core_ref sp, DAT_CONN_QUAL *qual,
	       void **listener_out);
void shm_unlisten(struct shm_engine *engine, void *listener);

/* A listening socket is readable; runs in the service thread. */
void shm_listener_event(struct shm_listener *listener);
struct core_ref shm_listener_sp(const struct shm_listener *listener);
DAT_CONN_QUAL shm_listener_qual(const struct shm_listener *listener);
/* The connection is none of the callers any more (soft/callers.h), if it was. */
void shm_listener_forget(struct shm_conn *conn);
/* Service thread: the listeners that take no callers do so again. */
void shm_listener_resume_all(struct shm_engine *engine);
void shm_listener_get(struct shm_listener *listener);
void shm_listener_put(struct shm_listener *listener);

#endif
