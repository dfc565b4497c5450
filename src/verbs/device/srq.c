// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared receive queues of the device. The work request ID of a completion names the SRQ and the
 * buffer; the number of the queue pair names the endpoint.
 */
#include "verbs/device/srq.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/handle.h"
#include "core/base/log.h"
#include "core/ep/ep.h"
#include "verbs/device/mem.h"
#include "verbs/device/cq.h"

static void slot_free(struct vrb_adapter *adapter, const struct vrb_srq *side)
{
	pthread_mutex_lock(&adapter->lock);
	vrb_slot_free_locked(adapter, side->key);
	pthread_mutex_unlock(&adapter->lock);
}

int vrb_srq_create(struct core_srq *srq)
{
	struct vrb_adapter *adapter = vrb_adapter_of(srq->ia);
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = srq->queue.capacity, .max_sge = srq->iov_max ? srq->iov_max : 1},
	};
	struct vrb_srq *side;
	int rc = vrb_object_create(adapter, sizeof(*side), (void **)&side);

	if (rc)
		return rc;
	atomic_init(&side->refs, 1);
	side->peer.kind = VRB_KIND_SRQ;
	side->ref = core_handle_ref(srq->cell);
	side->size = srq->queue.capacity;
	rc = vrb_slot_take(adapter, &side->peer, &side->key);
	if (rc)
		goto free_side;
	/* the key: a queue pair may keep the SRQ longer than the core does */
	init.srq_context = (void *)(uintptr_t)side->key;
	errno = 0;
	side->srq = ibv_create_srq(vrb_pz_of(srq->pz)->pd, &init);
	if (!side->srq) {
		rc = errno ? -errno : -ENOMEM;
		goto free_slot;
	}
	side->pz = vrb_pz_get(vrb_pz_of(srq->pz));
	srq->transport = side;
	return 0;
free_slot:
	slot_free(adapter, side);
free_side:
	free(side);
	return rc == -EINVAL ? -ENOMEM : rc;
}

void vrb_srq_destroy(struct core_srq *srq)
{
	struct vrb_adapter *adapter = vrb_adapter_of(srq->ia);
	struct vrb_srq *side = srq->transport;

	slot_free(adapter, side);
	srq->transport = NULL;
	vrb_srq_put(side);
}

struct vrb_srq *vrb_srq_get(struct vrb_srq *srq)
{
	/* relaxed: the caller holds a reference */
	atomic_fetch_add_explicit(&srq->refs, 1, memory_order_relaxed);
	return srq;
}

void vrb_srq_put(struct vrb_srq *srq)
{
	int rc;

	if (atomic_fetch_sub_explicit(&srq->refs, 1, memory_order_acq_rel) != 1)
		return;
	rc = ibv_destroy_srq(srq->srq);
	if (rc)
		core_log(CORE_LOG_ERROR, "shared receive queue: not freed: %s", strerror(rc));
	vrb_pz_put(srq->pz);
	free(srq);
}

static int post_buffer(struct core_srq *srq, uint32_t index, const struct core_wqe *wqe)
{
	struct vrb_srq *side = srq->transport;
	struct ibv_sge sge[VRB_SEGMENTS_MAX];
	struct ibv_recv_wr *bad, wr = {
					 .wr_id = vrb_work_id(VRB_WORK_RECV, side->key, index),
					 .sg_list = sge,
				 };
	int rc;

	if (side->posted == side->size)
		return -ENOSPC;
	wr.num_sge = vrb_recv_segments(srq->ia, wqe, sge);
	rc = ibv_post_srq_recv(side->srq, &wr, &bad);
	if (rc) {
		core_log(CORE_LOG_ERROR, "shared receive queue: post refused: %s", strerror(rc));
		return -rc;
	}
	side->posted++;
	return 0;
}

int vrb_srq_post(struct core_srq *srq, uint32_t index, const struct core_wqe *wqe)
{
	/* on any device: a buffer is posted too rarely for the cost to matter */
	int state = core_cancel_off();
	int rc = post_buffer(srq, index, wqe);

	core_cancel_restore(state);
	return rc;
}

bool vrb_srq_by_key(struct vrb_adapter *adapter, uint32_t key, struct core_ref *ref_out)
{
	const struct vrb_srq *side;
	uint32_t index = key & VRB_KEY_INDEX_MASK;
	bool is_srq = false;

	pthread_mutex_lock(&adapter->lock);
	if (index < adapter->slot_count &&
	    adapter->slots[index].generation == key >> VRB_KEY_INDEX_BITS &&
	    adapter->slots[index].object && adapter->slots[index].object->kind == VRB_KIND_SRQ) {
		side = (const struct vrb_srq *)adapter->slots[index].object;
		*ref_out = side->ref;
		is_srq = true;
	}
	pthread_mutex_unlock(&adapter->lock);
	return is_srq;
}

void vrb_srq_taken(struct core_ref ref)
{
	struct core_srq *srq = core_handle_lock_ref(ref, DAT_HANDLE_TYPE_SRQ);

	if (!srq)
		return;
	((struct vrb_srq *)srq->transport)->posted--;
	core_handle_unlock(ref.cell);
}
