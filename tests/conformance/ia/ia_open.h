// SPDX-License-Identifier: BSD-2-Clause
/*
 * Opening and closing instances, and the asynchronous EVD of one.
 */
#ifndef TESTS_IA_OPEN_H
#define TESTS_IA_OPEN_H

#include "conf.h"

#include <unistd.h>

static inline DAT_RETURN try_open(const char *name, DAT_COUNT qlen, DAT_EVD_HANDLE *async,
				  DAT_IA_HANDLE *ia)
{
	return dat_ia_open((DAT_NAME_PTR)(uintptr_t)name, qlen, async, ia);
}

static inline void close_ok(DAT_IA_HANDLE ia)
{
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/*
 * Causes an asynchronous event: in DISCONNECTED a posted Receive is flushed at once, and the second
 * one overflows an EVD of length 1. Returns that EVD. The caller frees `ep` with dt_ep_free.
 */
static inline DAT_EVD_HANDLE overflow(struct dt_ia *ia, struct dt_ep *ep)
{
	DAT_EP_ATTR attr;

	dt_ep_attr(ia, &attr);
	memset(ep, 0, sizeof(*ep));
	ep->recv = dt_evd_create(ia, 1, DAT_EVD_DTO_FLAG);
	ep->request = dt_evd_create(ia, 64, DAT_EVD_DTO_FLAG);
	ep->conn = dt_evd_create(ia, 8, DAT_EVD_CONNECTION_FLAG);
	dt_ok(dat_ep_create(ia->ia, ia->pz, ep->recv, ep->request, ep->conn, &attr, &ep->ep));
	dt_connect(ia, ep->ep, 1ull << 62 | (uint64_t)getpid());
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	for (int i = 0; i < 3; i++)
		dt_ok(dat_ep_post_recv(ep->ep, 0, NULL, dt_cookie(1), 0));
	return ep->recv;
}

#endif
