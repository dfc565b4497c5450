// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion queues, and the table by which their completions find connections and SRQs. All
 * endpoints of an instance share a queue as long as it has room, so that the cost of a poll does
 * not grow with the number of connections. A queue pair uses a queue that has an entry for every
 * completion that it can cause. When no queue has, another one is made.
 */
#include "verbs/device/cq.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/base/handle.h"
#include "core/base/log.h"

/* --- making --- */

static int cq_make(struct vrb_adapter *adapter, uint32_t entries, struct vrb_cq **cq_out)
{
	struct vrb_cq *cq = calloc(1, sizeof(*cq));
	int rc;

	if (!cq)
		return -ENOMEM;
	errno = 0;
	cq->cq = ibv_create_cq(adapter->context, (int)entries, NULL, adapter->completions, 0);
	if (!cq->cq) {
		rc = errno ? -errno : -ENOMEM;
		free(cq);
		return rc;
	}
	cq->adapter = adapter;
	cq->ep_cells = adapter->ep_cells;
	cq->capacity = (uint32_t)cq->cq->cqe < entries ? (uint32_t)cq->cq->cqe : entries;
	rc = ibv_req_notify_cq(cq->cq, 0);
	if (rc) {
		ibv_destroy_cq(cq->cq);
		free(cq);
		return -ENODEV;
	}
	*cq_out = cq;
	return 0;
}

static void cq_publish(struct vrb_adapter *adapter, struct vrb_cq *cq)
{
	cq->next = atomic_load_explicit(&adapter->cqs, memory_order_relaxed);
	/*
	 * release: pairs with the acquire in vrb_cq_first; without it a reader may see no `cq->cq`
	 */
	atomic_store_explicit(&adapter->cqs, cq, memory_order_release);
	if (!cq->next)
		atomic_store_explicit(&adapter->fast_cq, cq, memory_order_release);
	/* with a second queue a poll has to poll all of them */
	core_ia_set_slow_poll(adapter->ia, cq->next || adapter->polls_in_kernel);
}

/*
 * Makes the first queue of an instance. siw's library fails to map a queue whose offset in the
 * device's file is 0x90000, and then no further queue pair can be made. The kernel assigns offsets
 * one after the other. So this queue, the first one, is large enough to cover that offset.
 */
int vrb_cq_create(struct vrb_adapter *adapter)
{
	uint32_t entries = adapter->is_siw ? VRB_CQ_ENTRIES_SIW : VRB_CQ_ENTRIES;
	uint32_t most = adapter->limits.max_cqe;
	struct vrb_cq *cq = NULL;
	int rc = cq_make(adapter, most < entries ? most : entries, &cq);

	if (rc)
		return rc;
	cq_publish(adapter, cq);
	return 0;
}

void vrb_cq_destroy_all(struct vrb_adapter *adapter)
{
	struct vrb_cq *cq = atomic_load(&adapter->cqs);

	core_ia_set_slow_poll(adapter->ia, true);
	atomic_store(&adapter->cqs, NULL);
	atomic_store(&adapter->fast_cq, NULL);
	while (cq) {
		struct vrb_cq *next = atomic_load(&cq->next);

		if (ibv_destroy_cq(cq->cq))
			core_log(CORE_LOG_ERROR, "completion queue: not freed: %m");
		free(cq);
		cq = next;
	}
}

/* Reserves entries in a queue that has room; NULL: none has. */
static struct vrb_cq *cq_with_room(struct vrb_adapter *adapter, uint32_t entries)
{
	struct vrb_cq *cq;

	pthread_mutex_lock(&adapter->lock);
	for (cq = vrb_cq_first(adapter); cq; cq = atomic_load(&cq->next))
		if (entries <= cq->capacity - cq->reserved)
			break;
	if (cq)
		cq->reserved += entries;
	pthread_mutex_unlock(&adapter->lock);
	return cq;
}

int vrb_cq_reserve(struct vrb_adapter *adapter, uint32_t entries, struct vrb_cq **cq_out)
{
	uint32_t size = entries > VRB_CQ_ENTRIES ? entries : VRB_CQ_ENTRIES;
	struct vrb_cq *cq = cq_with_room(adapter, entries);
	int rc;

	if (!cq) {
		if (size > adapter->limits.max_cqe)
			size = adapter->limits.max_cqe;
		if (entries > size)
			return -ENOMEM;
		rc = cq_make(adapter, size, &cq);
		if (rc)
			return rc;
		cq->reserved = entries;
		pthread_mutex_lock(&adapter->lock);
		cq_publish(adapter, cq);
		pthread_mutex_unlock(&adapter->lock);
	}
	*cq_out = cq;
	return 0;
}

void vrb_cq_release(struct vrb_adapter *adapter, struct vrb_cq *cq, uint32_t entries)
{
	pthread_mutex_lock(&adapter->lock);
	cq->reserved -= entries;
	pthread_mutex_unlock(&adapter->lock);
}

void vrb_cq_disown_qp(struct vrb_cq *cq, uint32_t qp_num)
{
	/* the owner is dispatching completions and may wait for a lock that we hold */
	if (!vrb_cq_own(cq))
		return;
	for (int i = 0; i < cq->kept_count; i++)
		if (cq->kept[i].qp_num == qp_num)
			cq->kept[i].qp_num = 0; /* no queue pair has this number */
	vrb_cq_disown(cq);
}

bool vrb_cq_was_polled(struct vrb_adapter *adapter)
{
	bool was = false;

	/* relaxed: it may be seen late */
	for (struct vrb_cq *cq = vrb_cq_first(adapter); cq; cq = atomic_load(&cq->next))
		was |= atomic_exchange_explicit(&cq->has_polled, false, memory_order_relaxed);
	return was;
}

void vrb_cq_notify(struct vrb_adapter *adapter)
{
	for (struct vrb_cq *cq = vrb_cq_first(adapter); cq; cq = atomic_load(&cq->next))
		if (ibv_req_notify_cq(cq->cq, 0))
			core_log(CORE_LOG_ERROR, "completion queue: no wake-up: %m");
}

/* --- the table --- */

#define SLOTS_MAX (VRB_KEY_INDEX_MASK + 1)

/* Never live: a thread that locks it finds no endpoint. */
static struct core_handle no_endpoint = {.lock = CORE_LOCK_INIT};

void vrb_slot_set_cell_locked(struct vrb_adapter *adapter, uint32_t key, struct core_handle *cell)
{
	/* relaxed: a reader checks the endpoint's connection with the endpoint locked */
	atomic_store_explicit(&adapter->ep_cells[key & VRB_KEY_INDEX_MASK],
			      cell ? cell : &no_endpoint, memory_order_relaxed);
}

int vrb_slots_create(struct vrb_adapter *adapter)
{
	/* calloc: pages that are never used take no memory */
	adapter->slots = calloc(SLOTS_MAX, sizeof(*adapter->slots));
	adapter->ep_cells = calloc(SLOTS_MAX, sizeof(*adapter->ep_cells));
	return adapter->slots && adapter->ep_cells ? 0 : -ENOMEM;
}

int vrb_slot_take(struct vrb_adapter *adapter, struct vrb_peer *object, uint32_t *key_out)
{
	struct vrb_slot *slot;
	uint32_t index;
	int rc = -ENOMEM;

	pthread_mutex_lock(&adapter->lock);
	if (adapter->slot_free || adapter->slot_count < SLOTS_MAX) {
		index = adapter->slot_free ? adapter->slot_free - 1 : adapter->slot_count++;
		slot = &adapter->slots[index];
		if (adapter->slot_free)
			adapter->slot_free = slot->next_free;
		slot->object = object;
		slot->generation = (slot->generation + 1) & VRB_KEY_GENERATION_MASK;
		*key_out = slot->generation << VRB_KEY_INDEX_BITS | index;
		vrb_slot_set_cell_locked(adapter, index, NULL);
		rc = 0;
	}
	pthread_mutex_unlock(&adapter->lock);
	return rc;
}

void vrb_slot_free_locked(struct vrb_adapter *adapter, uint32_t key)
{
	uint32_t index = key & VRB_KEY_INDEX_MASK;

	vrb_slot_set_cell_locked(adapter, index, NULL);
	adapter->slots[index].object = NULL;
	adapter->slots[index].next_free = adapter->slot_free;
	adapter->slot_free = index + 1;
}
