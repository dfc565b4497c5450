// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues (srq.c). */
#ifndef VERBS_SRQ_H
#define VERBS_SRQ_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "core/srq/srq.h"
#include "verbs/device/adapter.h"
#include "verbs/device/cq.h"

/* core_srq.transport */
struct vrb_srq {
	struct vrb_peer peer;  /* first */
	_Atomic uint32_t refs; /* one each: the core's SRQ, queue pairs */
	struct core_ref ref;
	struct vrb_pz *pz; /* with a reference */
	uint32_t key;
	struct ibv_srq *srq;
	uint32_t size;
	uint32_t posted; /* buffers in the device's queue. SRQ locked */
};

int vrb_srq_create(struct core_srq *srq);
void vrb_srq_destroy(struct core_srq *srq);
/* Returns its argument, with another reference. */
struct vrb_srq *vrb_srq_get(struct vrb_srq *srq);
/* Drops a reference; with the last one the device's SRQ is freed. */
void vrb_srq_put(struct vrb_srq *srq);
/* Posts a buffer; cancellation may be on. */
int vrb_srq_post(struct core_srq *srq, uint32_t index, const struct core_wqe *wqe);
/* Is it the key of a live SRQ? */
bool vrb_srq_by_key(struct vrb_adapter *adapter, uint32_t key, struct core_ref *ref_out);
/* The device has consumed one buffer: its queue has room again. */
void vrb_srq_taken(struct core_ref ref);

#endif
