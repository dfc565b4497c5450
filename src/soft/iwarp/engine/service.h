// SPDX-License-Identifier: BSD-2-Clause
/*
 * The service thread, and threads of the consumer that poll: they drive connections in place of
 * epoll.
 */
#ifndef IWARP_SERVICE_H
#define IWARP_SERVICE_H

#include "soft/iwarp/engine.h"

/* transport_ops.progress and arm. */
int iw_engine_progress(struct iw_engine *engine);
void iw_engine_arm(struct iw_engine *engine);
/* The thread that has armed them goes to sleep. If a connection was left to it meanwhile, the
 * service thread takes it back. */
void iw_engine_unattended(struct iw_engine *engine);

/* Starts the service thread unless it runs: 0 or -errno. */
int iw_engine_start(struct iw_engine *engine);

#endif
