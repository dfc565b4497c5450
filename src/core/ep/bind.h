// SPDX-License-Identifier: BSD-2-Clause
/* Binds of memory windows, as requests of an endpoint. The windows are in mem/rmr.h. */
#ifndef CORE_BIND_H
#define CORE_BIND_H

#include "core/ep/ep.h"

enum core_bind {
	CORE_BIND_DONE,
	CORE_BIND_ORDERED, /* not done; what is posted behind it starts after it all the same */
	CORE_BIND_BLOCKED, /* not done, and nothing behind it may start */
};

/*
 * A request of CORE_OP_BIND has its turn: it is the oldest outstanding one, since a failure of one
 * before it would take it back (rmr.h). Asked again soon until it is done. is_ready: its own key
 * can become live; until then only the end of the one before it is prepared (rmr_key_retire).
 */
enum core_bind core_bind_run(struct core_ep *ep, struct core_req *req, bool is_ready);

/* The bind will not happen (flush): the window stays as it was. EP locked, or going away. */
void core_bind_drop(struct core_ep *ep, struct core_req *req);

#endif
