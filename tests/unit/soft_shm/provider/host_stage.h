// SPDX-License-Identifier: BSD-2-Clause
/* The stage for connections between peers of one host. */
#ifndef TESTS_SOFT_SHM_HOST_STAGE_H
#define TESTS_SOFT_SHM_HOST_STAGE_H

#include <arpa/inet.h>

#include "../../soft/stage.h"

static inline int open_stage(void **state)
{
	(void)state;
	return open_adapter("host");
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
