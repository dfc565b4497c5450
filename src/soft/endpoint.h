// SPDX-License-Identifier: BSD-2-Clause
/* What an endpoint is to the engine (core_ep.transport). */
#ifndef SOFT_ENDPOINT_H
#define SOFT_ENDPOINT_H

#include <stdbool.h>

struct shm_conn;

struct shm_ep {
	struct shm_conn *conn; /* with a reference; NULL: not connected */
	bool is_detached;
};

#endif
