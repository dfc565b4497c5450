// SPDX-License-Identifier: BSD-2-Clause
/* Binds of memory windows, which are requests of an endpoint. mem/rmr.h has the windows. */
#ifndef CORE_BIND_H
#define CORE_BIND_H

#include "core/ep/ep.h"

enum core_bind {
	CORE_BIND_DONE,
	CORE_BIND_ORDERED, /* not done, but the transport may start later requests: the device
			    * executes them after the bind */
	CORE_BIND_BLOCKED, /* not done, and the transport must not start later requests */
};

/*
 * Executes a request of CORE_OP_BIND, which must be the oldest outstanding one: the failure of an
 * earlier request would flush the bind, and a flushed bind has no effect (rmr.h). The transport
 * calls this again, soon, until it returns CORE_BIND_DONE. is_ready says that the new key can be
 * activated; without it the function only starts to invalidate the old key (rmr_key_retire).
 */
enum core_bind core_bind_run(struct core_ep *ep, struct core_req *req, bool is_ready);

/* Cancels a flushed bind and leaves the window as it was. EP locked, or being destroyed. */
void core_bind_drop(struct core_ep *ep, struct core_req *req);

enum core_kill {
	CORE_KILL_NONE, /* no window of the endpoint's zone has that key */
	CORE_KILL_DONE, /* the window is unbound */
	CORE_KILL_WAIT, /* the key is dead, but a peer still copies through it: call again, soon */
};

/* Unbinds a window, for a message of the peer (D2-INV-07). EP locked. */
enum core_kill core_bind_kill(struct core_ep *ep, DAT_RMR_CONTEXT rkey);

#endif
