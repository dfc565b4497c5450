// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table by which completions find connections and SRQs. A key is the index of a slot and the
 * slot's generation; work requests carry it in their IDs (work.h). The completion of an SRQ buffer
 * carries the SRQ's key and the number of the queue pair, by which the connection is found.
 */
#ifndef VERBS_TABLE_H
#define VERBS_TABLE_H

#include <stdint.h>

#include "verbs/adapter.h"

#define VRB_KEY_INDEX_BITS 16u
#define VRB_KEY_INDEX_MASK ((1u << VRB_KEY_INDEX_BITS) - 1)
#define VRB_KEY_GENERATION_MASK 0x3fffu
#define VRB_KEY_MASK 0x3fffffffu

enum vrb_kind {
	VRB_KIND_CONN,
	VRB_KIND_LISTENER,
	VRB_KIND_SRQ,
};

/* The first member of each object that a slot or the context of an rdma_cm_id points to. */
struct vrb_peer {
	enum vrb_kind kind;
};

struct vrb_slot {
	uint32_t generation;	 /* how often the slot was taken */
	uint32_t next_free;	 /* index + 1; 0: none */
	struct vrb_peer *object; /* NULL while free */
};

int vrb_slots_create(struct vrb_adapter *adapter);
int vrb_slot_take(struct vrb_adapter *adapter, struct vrb_peer *object, uint32_t *key_out);
void vrb_slot_free_locked(struct vrb_adapter *adapter, uint32_t key);
/* Sets the cell of the endpoint that completions with that key are for; NULL: no endpoint. */
void vrb_slot_set_cell_locked(struct vrb_adapter *adapter, uint32_t key, struct core_handle *cell);

/* Connections by the number of their queue pair. */
void vrb_qpn_add(struct vrb_conn *conn);
void vrb_qpn_remove(struct vrb_conn *conn);
/* The connection of that queue pair, with a reference; NULL: there is none. */
struct vrb_conn *vrb_qpn_find(struct vrb_adapter *adapter, uint32_t qp_num);

#endif
