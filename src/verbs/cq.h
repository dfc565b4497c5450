// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion queues. One thread at a time owns a queue and polls it, so that completions are
 * dispatched in order. Other threads do not wait for it.
 */
#ifndef VERBS_CQ_H
#define VERBS_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "core/base/instance.h"
#include "verbs/adapter.h"

#define VRB_POLL_BATCH 16 /* completions of one poll at most */

/* Exists until the instance is closed. */
struct vrb_cq {
	_Atomic bool is_owned;	 /* by the thread that polls it */
	_Atomic bool has_polled; /* a consumer thread has polled it since the last check */
	/* set at creation */
	struct ibv_cq *cq;
	struct vrb_adapter *adapter;
	struct core_handle *_Atomic *ep_cells; /* the adapter's */
	/*
	 * Completions of the last poll that are not dispatched yet: kept_count entries, starting at
	 * `kept`. Guarded by is_owned; they may stay here while no thread owns the queue.
	 */
	uint8_t kept_count;
	struct ibv_wc *kept;
	struct ibv_wc wc[VRB_POLL_BATCH];
	uint32_t capacity;
	uint32_t reserved; /* entries reserved for queue pairs; adapter->lock */
	struct vrb_cq *_Atomic next;
};

/* False: another thread owns it. */
CORE_INLINE bool vrb_cq_own(struct vrb_cq *cq)
{
	/* acquire, with the release below: the next owner sees what this one has dispatched */
	return !atomic_exchange_explicit(&cq->is_owned, true, memory_order_acquire);
}

CORE_INLINE void vrb_cq_disown(struct vrb_cq *cq)
{
	atomic_store_explicit(&cq->is_owned, false, memory_order_release);
}

/* Polls the device for a batch of completions; none may be kept. Returns how many there are. The
 * caller owns the queue. */
CORE_INLINE int vrb_cq_fill(struct vrb_cq *cq)
{
	int count;

	cq->kept = cq->wc; /* before the call: otherwise the value occupies a register across it */
	count = ibv_poll_cq(cq->cq, VRB_POLL_BATCH, cq->wc);
	if (count <= 0)
		return 0;
	cq->kept_count = (uint8_t)count;
	return count;
}

int vrb_cq_create(struct vrb_adapter *adapter);
void vrb_cq_destroy_all(struct vrb_adapter *adapter);
/* Finds or makes a queue with room for that many entries, and reserves them. */
int vrb_cq_reserve(struct vrb_adapter *adapter, uint32_t entries, struct vrb_cq **cq_out);
void vrb_cq_release(struct vrb_adapter *adapter, struct vrb_cq *cq, uint32_t entries);
/* transport_ops.progress */
int vrb_progress(struct core_ia *ia);
/* Has a consumer thread polled since the last call? */
bool vrb_cq_was_polled(struct vrb_adapter *adapter);
/* Dispatches kept completions, then polls all queues and dispatches what they return. > 0: some
 * were dispatched; -EBUSY: none were, and another thread owns one of the queues. Cancellation is
 * off. */
int vrb_cq_progress(struct vrb_adapter *adapter);
/*
 * Takes the completions that have arrived. False: another thread has taken some from a queue and
 * not dispatched them yet.
 */
bool vrb_cq_take_arrived(struct vrb_adapter *adapter);
/* Removes the number of a queue pair, which is about to be destroyed, from the kept completions of
 * SRQ buffers. */
void vrb_cq_disown_qp(struct vrb_cq *cq, uint32_t qp_num);
/* Requests a wake-up by the next completion, then polls once more. > 0: call it again. */
int vrb_cq_arm(struct vrb_adapter *adapter);

#endif
