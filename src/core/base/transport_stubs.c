// SPDX-License-Identifier: BSD-2-Clause
/* Stubs for the slots that a transport does not implement (transport_stubs.h). */
#include "core/base/transport_stubs.h"

#include <errno.h>

void transport_no_progress_ep(struct core_ep *ep)
{
	(void)ep;
}

void transport_no_sleep_begin(struct core_ia *ia, struct core_sleep *sleep)
{
	(void)ia;
	(void)sleep;
}

void transport_no_sleep_end(struct core_ia *ia, struct core_sleep *sleep)
{
	(void)ia;
	(void)sleep;
}

bool transport_no_rmr_key_retire(struct core_ep *ep, void *key)
{
	(void)ep;
	(void)key;
	return false;
}

int transport_no_rmr_key_create(struct core_ep *ep, const struct transport_window *window,
				void **key_out, uint32_t *rkey_out)
{
	(void)ep;
	(void)window;
	(void)key_out;
	(void)rkey_out;
	return -EOPNOTSUPP;
}

void transport_no_rmr_key(struct core_ia *ia, void *key)
{
	(void)ia;
	(void)key;
}

bool transport_no_rmr_key_revoke(struct core_ia *ia, void *key)
{
	(void)ia;
	(void)key;
	return true;
}

int transport_no_peer(struct core_ep *ep, void *request, struct transport_peer *peer_out)
{
	(void)ep;
	(void)request;
	(void)peer_out;
	return -EOPNOTSUPP;
}

int transport_no_srq_create(struct core_srq *srq)
{
	(void)srq;
	return 0;
}

void transport_no_srq_destroy(struct core_srq *srq)
{
	(void)srq;
}

int transport_no_srq_post(struct core_srq *srq, uint32_t index, const struct core_wqe *wqe)
{
	(void)srq;
	(void)index;
	(void)wqe;
	return -EOPNOTSUPP;
}
