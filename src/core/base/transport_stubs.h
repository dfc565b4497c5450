// SPDX-License-Identifier: BSD-2-Clause
/* Stubs for slots that a transport does not implement. They return -EOPNOTSUPP or do nothing. */
#ifndef CORE_TRANSPORT_STUBS_H
#define CORE_TRANSPORT_STUBS_H

#include "core/base/transport_ops.h"

void transport_no_progress_ep(struct core_ep *ep);
void transport_no_sleep_begin(struct core_ia *ia, struct core_sleep *sleep);
void transport_no_sleep_end(struct core_ia *ia, struct core_sleep *sleep);
bool transport_no_rmr_key_retire(struct core_ep *ep, void *key);
int transport_no_rmr_key_create(struct core_ep *ep, const struct transport_window *window,
				void **key_out, uint32_t *rkey_out);
void transport_no_rmr_key(struct core_ia *ia, void *key);
bool transport_no_rmr_key_revoke(struct core_ia *ia, void *key);

int transport_no_peer(struct core_ep *ep, void *request, struct transport_peer *peer_out);

int transport_no_srq_create(struct core_srq *srq);
void transport_no_srq_destroy(struct core_srq *srq);
int transport_no_srq_post(struct core_srq *srq, uint32_t index, const struct core_wqe *wqe);

#endif
