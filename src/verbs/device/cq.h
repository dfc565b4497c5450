// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion queues, the table by which completions find connections and SRQs, and the IDs of work
 * requests.
 *
 * One thread at a time owns a queue and polls it, so that completions are dispatched in order.
 * Other threads do not wait for it.
 *
 * A key is the index of a slot and the slot's generation. The upper half of an ID is the kind of
 * work (enum vrb_work) and the key of the connection or SRQ. The lower half is a value that depends
 * on the kind. The completion of an SRQ buffer carries the SRQ's key and the number of the queue
 * pair, by which the connection is found.
 */
#ifndef VERBS_CQ_H
#define VERBS_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "core/base/instance.h"
#include "core/base/same.h"
#include "verbs/device/adapter.h"
#include "verbs/device/tuning.h"

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

static inline struct vrb_cq *vrb_cq_first(struct vrb_adapter *adapter)
{
	/* acquire: pairs with the release in cq_publish */
	return atomic_load_explicit(&adapter->cqs, memory_order_acquire);
}

int vrb_cq_create(struct vrb_adapter *adapter);
void vrb_cq_destroy_all(struct vrb_adapter *adapter);
/* Finds or makes a queue with room for that many entries, and reserves them. */
int vrb_cq_reserve(struct vrb_adapter *adapter, uint32_t entries, struct vrb_cq **cq_out);
void vrb_cq_release(struct vrb_adapter *adapter, struct vrb_cq *cq, uint32_t entries);
/* Has a consumer thread polled since the last call? */
bool vrb_cq_was_polled(struct vrb_adapter *adapter);
/* Removes the number of a queue pair, which is about to be destroyed, from the kept completions of
 * SRQ buffers. */
void vrb_cq_disown_qp(struct vrb_cq *cq, uint32_t qp_num);
/* Requests a wake-up by the next completion of each queue. */
void vrb_cq_notify(struct vrb_adapter *adapter);

/* --- the table --- */

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

/* --- IDs of work requests --- */

enum vrb_work {
	VRB_WORK_REQUEST, /* of the endpoint; the value is the low half of its sequence */
	VRB_WORK_PART,	  /* one of two for a request; its success completes nothing */
	VRB_WORK_MARKER,  /* of the provider; the value is VRB_MARKER_* */
	/* a Receive; the value is the low half of its sequence, or the index of an SRQ buffer */
	VRB_WORK_RECV,
};

/* Immediate data of a Send that asks for a notification. */
#define VRB_SOLICITED_IMM 0x6f445357u

#define VRB_MARKER_PLAIN 0u
#define VRB_MARKER_RETIRED 1u /* the work request that unbinds a window */

CORE_INLINE uint32_t vrb_work_name(enum vrb_work work, uint32_t key)
{
	return (uint32_t)work << 30 | key;
}

CORE_INLINE uint64_t vrb_work_id(enum vrb_work work, uint32_t key, uint64_t value)
{
	return (uint64_t)vrb_work_name(work, key) << 32 | (uint32_t)value;
}

static inline enum vrb_work vrb_work_of(const struct ibv_wc *wc)
{
	return (enum vrb_work)(wc->wr_id >> 62);
}

/* The upper half of the ID of a completion or a work request. Reads only that half. */
CORE_INLINE uint32_t vrb_name_of(const uint64_t *wr_id)
{
	uint32_t name;

	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the upper half is the second");
	memcpy(&name, (const char *)wr_id + sizeof(name), sizeof(name));
	return name;
}

static inline uint32_t vrb_work_key(const struct ibv_wc *wc)
{
	return (uint32_t)(wc->wr_id >> 32) & VRB_KEY_MASK;
}

/*
 * Is it the successful completion of a message? An RDMA Write with immediate data takes a Receive
 * too, but its length does not concern the buffer. One comparison checks status and opcode.
 */
CORE_INLINE bool vrb_is_message(const struct ibv_wc *wc)
{
	uint64_t both;

	_Static_assert(offsetof(struct ibv_wc, opcode) ==
			       offsetof(struct ibv_wc, status) + sizeof(uint32_t),
		       "side by side");
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the status is the low half");
	memcpy(&both, (const char *)wc + offsetof(struct ibv_wc, status), sizeof(both));
	return both == ((uint64_t)IBV_WC_RECV << 32 | IBV_WC_SUCCESS);
}

#endif
