// SPDX-License-Identifier: BSD-2-Clause
/* Keys of RMRs: memory windows of the device, or registrations (window.c). */
#ifndef VERBS_WINDOW_H
#define VERBS_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "core/transport.h"
#include "core/ep/ep.h"
#include "core/base/instance.h"
#include "verbs/adapter.h"
#include "verbs/conn.h"
#include "verbs/mem.h"

/* Decides whether binds use windows, by the device and the setting rmr_bind. */
void vrb_windows_choose(struct vrb_adapter *adapter, const struct ibv_device_attr *device);
/* The windows that the device has, for dat_ia_query. */
const char *vrb_windows_text(const struct vrb_adapter *adapter,
			     const struct ibv_device_attr *device);
/* Destroys the unbound windows of a zone, which is about to be destroyed. */
void vrb_windows_free(struct vrb_pz *pz);

/* transport_ops */
int vrb_rmr_key_create(struct core_ep *ep, const struct transport_window *wanted, void **key_out,
		       uint32_t *rkey_out);
bool vrb_rmr_key_retire(struct core_ep *ep, void *key);
void vrb_rmr_key_activate(struct core_ia *ia, void *key);
bool vrb_rmr_key_revoke(struct core_ia *ia, void *key);
void vrb_rmr_key_destroy(struct core_ia *ia, void *key);

/* Has its bind completed, or did it need no work request? */
bool vrb_window_is_ready(const struct vrb_window *window);
/* The position behind its bind; 0: it needed no work request. */
uint64_t vrb_window_end(const struct vrb_window *window);
/* Its bind has succeeded. EP locked. */
void vrb_window_bound(struct vrb_window *window);
/* Notes whether the connection's bind waits for another endpoint's. EP locked, or gone. */
void vrb_window_set_blocked(struct vrb_conn *conn, bool is_blocked);
/* Tries such binds again. No lock held. */
void vrb_windows_retry(struct vrb_adapter *adapter);
/* The work request that unbinds the connection's retiring window, if there is one, is over.
 * is_good: it has succeeded. EP locked, or gone. */
void vrb_window_retired(struct vrb_conn *conn, bool is_good);

#endif
