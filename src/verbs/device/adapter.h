// SPDX-License-Identifier: BSD-2-Clause
/*
 * One adapter instance of the provider over rdma-core.
 *
 * Threads. A thread that polls an EVD polls the completion queues of the instance. A service thread
 * (engine/service.c) polls them while no other thread does, and handles the events of the
 * connection manager and of the device.
 *
 * Locks. The endpoint's lock guards its connection. adapter->lock is a leaf: no other lock is taken
 * while it is held. Events of librdmacm and of the device are copied and acknowledged before any
 * lock is taken, because rdma_destroy_id and ibv_destroy_qp wait for the acknowledgement.
 */
#ifndef VERBS_ADAPTER_H
#define VERBS_ADAPTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "core/base/instance.h"
#include "core/base/service.h"
#include "core/base/transport_param.h"

#define VRB_SEGMENTS_MAX 32u /* of one operation: scatter lists are on the stack */
#define VRB_NEVER UINT64_MAX
#define VRB_VENDOR_RXE 0xffffffu /* vendor IDs of the software devices */
#define VRB_VENDOR_SIW 0x626d74u
#define VRB_QPN_BUCKETS 1024u

struct vrb_conn;
struct vrb_cq;
struct vrb_slot;

struct vrb_limits {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t max_sge_rd;
	uint32_t max_cqe;
	uint32_t inline_max; /* bytes that may be copied into a request */
	uint32_t reads_in;
	uint32_t reads_out;
	uint32_t request_room; /* bytes of private data in a request, and in an answer */
	uint32_t answer_room;
};

struct vrb_adapter {
	_Atomic uint32_t refs; /* one each: the instance, its thread, connections, listeners */
	/* set at creation */
	struct core_ia *ia;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *anchor; /* bound to our address: keeps the device open */
	struct ibv_context *context;
	struct ibv_comp_channel *completions;
	struct vrb_limits limits;
	bool is_iwarp;
	bool is_siw;	      /* the software iWARP device */
	bool has_windows;     /* RMRs are bound with memory windows */
	uint8_t takes;	      /* enum transport_takes: what the device can do */
	bool posts_in_kernel; /* posting may make a system call, a cancellation point */
	bool polls_in_kernel; /* polling, or posting a Receive, may make one too */
	struct core_service service;
	char device_text[64]; /* for dat_ia_query */
	char inline_text[16];
	DAT_NAMED_ATTR named[8];

	struct vrb_cq *_Atomic cqs;
	/* the first queue; the fast path polls it while it is the only one and a poll makes no
	 * system call (core_ia_set_slow_poll) */
	struct vrb_cq *_Atomic fast_cq;
	_Atomic bool has_posted; /* like vrb_cq.has_polled */
	_Atomic bool is_dead;	 /* the device has failed or was removed */
	_Atomic bool is_stopping;
	_Atomic uint32_t blocked; /* connections whose bind waits for a bind of another endpoint */
	_Atomic bool is_serving;  /* the service thread has to call core_srq_serve_all */
	_Atomic uint32_t device_events; /* unhandled events of the device: 1 << type */
	_Atomic uint64_t deadline_ns;	/* no connection has an earlier deadline */

	pthread_mutex_t lock; /* guards the rest; a leaf */
	struct vrb_slot *slots;
	/*
	 * For each slot the cell of the connection's endpoint, read without the lock by threads
	 * that take completions. The array never moves. An entry is NULL until the slot is first
	 * used, and points to a cell that is never live while the slot holds no connection with an
	 * endpoint.
	 */
	struct core_handle *_Atomic *ep_cells;
	uint32_t slot_count; /* slots that were ever used */
	uint32_t slot_free;
	struct vrb_conn *first;			  /* all connections */
	struct vrb_conn *by_qpn[VRB_QPN_BUCKETS]; /* those of endpoints with an SRQ */
	struct vrb_adapter *next; /* all instances of the process; device.c has the lock */
};

/* Sets has_polled or has_posted. Relaxed: the service thread may see it late. */
static inline void vrb_note_activity(_Atomic bool *has)
{
	atomic_store_explicit(has, true, memory_order_relaxed);
}

/* Can requests take the fast path: no system call to post or poll, no extra work for iWARP? */
static inline bool vrb_has_fast_path(const struct vrb_adapter *adapter)
{
	return !adapter->is_iwarp && !adapter->posts_in_kernel && !adapter->polls_in_kernel;
}

/* A foreign peer is taken to have what its device can do, but kills no key for us. */
static inline uint8_t vrb_foreign_takes(const struct vrb_adapter *adapter)
{
	return adapter->takes & (TRANSPORT_TAKES_IMMEDIATE | TRANSPORT_TAKES_ATOMICS);
}

static inline struct vrb_adapter *vrb_adapter_of(const struct core_ia *ia)
{
	return ia->transport;
}

void vrb_adapter_get(struct vrb_adapter *adapter);
void vrb_adapter_put(struct vrb_adapter *adapter);
/* Allocates the transport's part of an object, zeroed. -ENODEV: the device has failed. */
int vrb_object_create(const struct vrb_adapter *adapter, size_t size, void **object_out);

#endif
