// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers of the tests of memory windows, on top of the rig. Endpoint b owns the windows: they
 * cover its buffer y and are bound on it. Endpoint a is the peer that accesses them from its buffer
 * x.
 */
#ifndef TESTS_BIND_UTIL_H
#define TESTS_BIND_UTIL_H

#include "dto_util.h"

#define BIND_LOCAL (DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define BIND_REMOTE (DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* --- windows --- */

DAT_RMR_HANDLE rmr_create(struct rig *rig);
DAT_RMR_COOKIE rmr_cookie(uint64_t value);
/* Posts a bind that must be accepted; returns the new context. */
DAT_RMR_CONTEXT bind_post(struct dt_ep *ep, DAT_RMR_HANDLE rmr, DAT_LMR_TRIPLET range,
			  DAT_MEM_PRIV_FLAGS priv, uint64_t cookie, DAT_COMPLETION_FLAGS flags);
void unbind_post(struct dt_ep *ep, DAT_RMR_HANDLE rmr, uint64_t cookie);
void bind_check_event(const DAT_EVENT *event, DAT_RMR_HANDLE rmr, uint64_t cookie,
		      DAT_DTO_COMPLETION_STATUS status);
void expect_bind(struct dt_ep *ep, DAT_RMR_HANDLE rmr, uint64_t cookie,
		 DAT_DTO_COMPLETION_STATUS status);
/* Posts a bind and waits for its completion. */
DAT_RMR_CONTEXT bind_now(struct dt_ep *ep, DAT_RMR_HANDLE rmr, DAT_LMR_TRIPLET range,
			 DAT_MEM_PRIV_FLAGS priv);
void unbind_now(struct dt_ep *ep, DAT_RMR_HANDLE rmr);
DAT_RMR_PARAM rmr_query(DAT_RMR_HANDLE rmr);
void rmr_check_bound(DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET *range, DAT_MEM_PRIV_FLAGS priv,
		     DAT_RMR_CONTEXT context);
void rmr_check_unbound(DAT_RMR_HANDLE rmr);

/* --- holding the queue of an endpoint --- */

/* A message for which the peer has no Receive: no request after it can complete. */
void hold_queue(struct rig *rig);
void release_queue(struct rig *rig);

/* --- the peer --- */

/* Bytes [offset, offset + len) of y, through a context. */
DAT_RMR_TRIPLET y_seg(struct rig *rig, DAT_RMR_CONTEXT context, size_t offset, size_t len);
void peer_writes(struct rig *rig, DAT_RMR_TRIPLET remote);
/* Connects both endpoints again after the connection broke. */
void rig_relink(struct rig *rig);
/* Reads and writes through the context; each must succeed or be refused as given. */
void peer_check(struct rig *rig, DAT_RMR_TRIPLET remote, bool may_read, bool may_write);
/* The context gives no access. */
void peer_locked_out(struct rig *rig, DAT_RMR_CONTEXT context);

#endif
