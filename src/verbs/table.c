// SPDX-License-Identifier: BSD-2-Clause
/* The table of connections and SRQs (table.h). */
#include "verbs/table.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/base/handle.h"
#include "verbs/conn.h"

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

/* --- queue pairs by number --- */

void vrb_qpn_add(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	struct vrb_conn **bucket;

	pthread_mutex_lock(&adapter->lock);
	bucket = &adapter->by_qpn[conn->qp->qp_num % VRB_QPN_BUCKETS];
	conn->qpn_next = *bucket;
	*bucket = conn;
	conn->has_qpn = true;
	pthread_mutex_unlock(&adapter->lock);
}

void vrb_qpn_remove(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	struct vrb_conn **link;

	pthread_mutex_lock(&adapter->lock);
	if (conn->has_qpn) {
		link = &adapter->by_qpn[conn->qp->qp_num % VRB_QPN_BUCKETS];
		while (*link != conn)
			link = &(*link)->qpn_next;
		*link = conn->qpn_next;
		conn->has_qpn = false;
	}
	pthread_mutex_unlock(&adapter->lock);
}

struct vrb_conn *vrb_qpn_find(struct vrb_adapter *adapter, uint32_t qp_num)
{
	struct vrb_conn *conn;

	pthread_mutex_lock(&adapter->lock);
	conn = adapter->by_qpn[qp_num % VRB_QPN_BUCKETS];
	while (conn && conn->qp->qp_num != qp_num)
		conn = conn->qpn_next;
	if (conn)
		vrb_conn_get(conn);
	pthread_mutex_unlock(&adapter->lock);
	return conn;
}
