// SPDX-License-Identifier: BSD-2-Clause
/* The stage for connections between peers of one host that keep their sockets. */
#ifndef TESTS_SOFT_SHM_KEEP_STAGE_H
#define TESTS_SOFT_SHM_KEEP_STAGE_H

#include <arpa/inet.h>

#include "../../soft/stage.h"

#define LENGTH (sizeof(stage.memory) / 2) /* the source and the target */

static inline int open_stage(void **state)
{
	(void)state;
	return open_adapter("keep");
}

static inline void connect_to(DAT_CONN_QUAL qual)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	ok(core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&address, qual, WAIT_US, 0, NULL,
			   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static inline void take_request(void)
{
	DAT_EVENT event = next_of(stage.request_evd);

	stage.cr = event.event_data.cr_arrival_event_data.cr_handle;
}

static inline void accept_request(void)
{
	take_request();
	ok(core_cr_accept(stage.cr, stage.b, 0, NULL));
}

#endif
