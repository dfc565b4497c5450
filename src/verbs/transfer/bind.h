// SPDX-License-Identifier: BSD-2-Clause
/* Binds: the keys of RMRs, and the turns of binds in the request queue. */
#ifndef VERBS_BIND_H
#define VERBS_BIND_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "core/base/instance.h"
#include "core/ep/ep.h"
#include "core/transport.h"
#include "verbs/device/adapter.h"
#include "verbs/device/mem.h"
#include "verbs/transfer/conn.h"

/* transport_ops */
int vrb_rmr_key_create(struct core_ep *ep, const struct transport_window *wanted, void **key_out,
		       uint32_t *rkey_out);
bool vrb_rmr_key_retire(struct core_ep *ep, void *key);
void vrb_rmr_key_activate(struct core_ia *ia, void *key);
bool vrb_rmr_key_revoke(struct core_ia *ia, void *key);
void vrb_rmr_key_destroy(struct core_ia *ia, void *key);

/* Its bind has succeeded. EP locked. */
void vrb_window_bound(struct vrb_window *window);
/* Stores whether the connection's bind waits for another endpoint's. EP locked, or gone. */
void vrb_window_set_blocked(struct vrb_conn *conn, bool is_blocked);
/* The work request that unbinds the connection's retiring window, if there is one, is over.
 * is_good: it has succeeded. EP locked, or gone. */
void vrb_window_retired(struct vrb_conn *conn, bool is_good);

/* --- binds in the request queue; EP locked --- */

/* Starts the bind that is the next request to post. False: it waits, and so do the requests behind
 * it. */
bool vrb_bind_begin(struct vrb_conn *conn, struct core_ep *ep, struct core_req *req);
/* Continues the bind that has begun, if there is one. */
void vrb_bind_continue(struct vrb_conn *conn, struct core_ep *ep);
/* The position behind the bind's work request, which dat_rmr_bind has posted. 0: it has none. */
uint64_t vrb_bind_end(const struct core_req *req);
/* Stores in the bind the position where it ends: `end`, or where everything is done if that is
 * later. */
void vrb_bind_note_end(const struct vrb_conn *conn, const struct core_ep *ep, struct core_req *req,
		       uint64_t end);

#endif
