// SPDX-License-Identifier: BSD-2-Clause
/* The three event streams of an endpoint. Each EVD counts its streams (evd.h). */
#ifndef CORE_EP_STREAM_H
#define CORE_EP_STREAM_H

#include "core/ep/ep.h"
#include "core/event/evd.h"

struct core_ep_streams {
	struct core_evd *recv;
	struct core_evd *request;
	struct core_evd *connect;
};

/*
 * Checks and attaches the EVDs in args: all of them, or none. `old`: the endpoint whose streams
 * they will replace, or NULL. Its EVDs stay attached until the caller detaches them, so that
 * meanwhile no other thread frees one of them, or attaches what conflicts with them.
 */
DAT_RETURN core_ep_streams_attach(struct core_ia *ia, const struct core_ep_args *args,
				  const DAT_EP_ATTR *attr, const struct core_ep *old,
				  struct core_ep_streams *streams_out);
void core_ep_streams_detach(const struct core_ep_streams *streams, const DAT_EP_ATTR *attr);

#endif
