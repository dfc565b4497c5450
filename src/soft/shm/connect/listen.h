// SPDX-License-Identifier: BSD-2-Clause
/* Service points (listen.c). */
#ifndef SHM_LISTEN_H
#define SHM_LISTEN_H

#include <stdbool.h>

#include "core/transport.h"

struct shm_engine;
struct shm_listener;

/* -EACCES: there is no folder for its name, or not any more. */
int shm_listen(struct shm_engine *engine, struct core_ref sp, DAT_CONN_QUAL *qual,
	       struct shm_listener **listener_out);
void shm_unlisten(struct shm_engine *engine, struct shm_listener *listener);

/* A listening socket is readable; runs in the service thread. */
void shm_listener_event(struct shm_listener *listener);
/* Service thread: its pause is over, or it has ended. Drops a reference. */
void shm_listener_resume(struct shm_listener *listener);

#endif
