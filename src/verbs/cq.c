// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion queues. All endpoints of an instance share one as long as it has room, so that the
 * cost of a poll does not grow with the number of connections. A queue pair uses a queue that has
 * an entry for every completion that it can cause. When no queue has, another one is made.
 */
#include "verbs/cq.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "core/base/cancel.h"
#include "core/base/handle.h"
#include "core/base/log.h"
#include "core/transport.h"
#include "core/ep/ep.h"
#include "core/base/instance.h"
#include "verbs/completion.h"
#include "verbs/conn.h"
#include "verbs/srq.h"
#include "verbs/table.h"
#include "verbs/window.h"
#include "verbs/work.h"

#define CQ_ENTRIES 8192u
#define CQ_ENTRIES_SIW 32768u /* 1 MB: see vrb_cq_create */
/* most completions that one call takes, so that other queues get their turn */
#define POLL_MAX 256
#define ARRIVED_TRIES 100 /* to poll each queue at a time when no other thread does */

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
	/* release: pairs with the acquire in cq_first; without it a reader may see no `cq->cq` */
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
	uint32_t entries = adapter->is_siw ? CQ_ENTRIES_SIW : CQ_ENTRIES;
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

static struct vrb_cq *cq_first(struct vrb_adapter *adapter)
{
	/* acquire: pairs with the release in cq_publish */
	return atomic_load_explicit(&adapter->cqs, memory_order_acquire);
}

/* Reserves entries in a queue that has room; NULL: none has. */
static struct vrb_cq *cq_with_room(struct vrb_adapter *adapter, uint32_t entries)
{
	struct vrb_cq *cq;

	pthread_mutex_lock(&adapter->lock);
	for (cq = cq_first(adapter); cq; cq = atomic_load(&cq->next))
		if (entries <= cq->capacity - cq->reserved)
			break;
	if (cq)
		cq->reserved += entries;
	pthread_mutex_unlock(&adapter->lock);
	return cq;
}

int vrb_cq_reserve(struct vrb_adapter *adapter, uint32_t entries, struct vrb_cq **cq_out)
{
	uint32_t size = entries > CQ_ENTRIES ? entries : CQ_ENTRIES;
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

/* --- polling --- */

/* Dispatches the completion of an SRQ buffer to the connection that has the queue pair. */
static void srq_dispatch(struct vrb_adapter *adapter, struct core_ref srq, const struct ibv_wc *wc)
{
	struct vrb_conn *conn = vrb_qpn_find(adapter, wc->qp_num);
	struct core_ep *ep = conn ? vrb_conn_enter(conn) : NULL;

	vrb_srq_taken(srq);
	if (ep) {
		vrb_completion(conn, ep, wc);
		vrb_conn_try_finish(conn, ep, false);
		vrb_conn_leave(ep);
	} else {
		core_srq_discard(srq, (uint32_t)wc->wr_id);
	}
	if (conn)
		vrb_conn_put(conn);
}

/*
 * Locks and returns the endpoint whose connection has that key; NULL: there is none. A cell is
 * never unmapped, so reading it is safe even if it belongs to another endpoint by now. With the
 * endpoint locked its connection cannot change, and the key decides.
 */
static struct core_ep *ep_enter_by_key(struct vrb_adapter *adapter, uint32_t key)
{
	struct core_handle *cell = atomic_load_explicit(
		&adapter->ep_cells[key & VRB_KEY_INDEX_MASK], memory_order_relaxed);
	const struct vrb_conn *conn;
	struct core_ep *ep;

	if (!cell)
		return NULL;
	ep = core_handle_lock_cell(cell, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return NULL;
	conn = vrb_conn_of(ep);
	if (conn && conn->key == key && conn->adapter == adapter)
		return ep;
	core_ep_leave(ep);
	return NULL;
}

/* The number of completions at the start that have the same key. */
static int count_same_key(const struct ibv_wc *wc, int count)
{
	int i = 1;

	while (i < count && vrb_work_key(&wc[i]) == vrb_work_key(wc))
		i++;
	return i;
}

/*
 * Dispatches the first completion and those directly after it with the same key. Returns how many.
 */
static int dispatch(struct vrb_adapter *adapter, const struct ibv_wc *wc, int count)
{
	uint32_t key = vrb_work_key(wc);
	struct core_ep *ep = ep_enter_by_key(adapter, key);
	struct vrb_conn *conn;
	struct core_ref srq;

	if (!ep && vrb_srq_by_key(adapter, key, &srq)) {
		srq_dispatch(adapter, srq, wc);
		return 1;
	}
	count = count_same_key(wc, count);
	if (!ep) /* from a queue pair that was destroyed, or is about to be */
		return count;
	conn = vrb_conn_of(ep);
	for (int i = 0; i < count; i++)
		vrb_completion(conn, ep, &wc[i]);
	vrb_conn_try_finish(conn, ep, false);
	vrb_conn_leave(ep);
	return count;
}

/* Dispatches the kept completions. Returns how many. The caller owns the queue. */
static int dispatch_kept(struct vrb_adapter *adapter, struct vrb_cq *cq)
{
	int count = cq->kept_count;

	while (cq->kept_count) {
		int done = dispatch(adapter, cq->kept, cq->kept_count);

		cq->kept += done;
		cq->kept_count -= (uint8_t)done;
	}
	return count;
}

static int cq_poll(struct vrb_adapter *adapter, struct vrb_cq *cq)
{
	int found, count;

	if (!vrb_cq_own(cq))
		return -EBUSY;
	found = dispatch_kept(adapter, cq);
	do {
		count = vrb_cq_fill(cq);
		found += dispatch_kept(adapter, cq);
	} while (count == VRB_POLL_BATCH && found < POLL_MAX);
	vrb_cq_disown(cq);
	return found;
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

int vrb_cq_progress(struct vrb_adapter *adapter)
{
	bool is_busy = false;
	int found = 0;

	for (struct vrb_cq *cq = cq_first(adapter); cq; cq = atomic_load(&cq->next)) {
		int rc = cq_poll(adapter, cq);

		if (rc < 0)
			is_busy = true;
		else
			found += rc;
	}
	return !found && is_busy ? -EBUSY : found;
}

/* Polls until the queue was empty, or has returned as many as it holds. False: another thread owns
 * it. */
static bool cq_poll_all(struct vrb_adapter *adapter, struct vrb_cq *cq)
{
	uint32_t found = 0;
	int count;

	do {
		count = cq_poll(adapter, cq);
		found += count > 0 ? (uint32_t)count : 0;
	} while (count >= POLL_MAX && found < cq->capacity);
	return count >= 0;
}

static bool poll_each(struct vrb_adapter *adapter)
{
	bool is_busy = false;

	for (struct vrb_cq *cq = cq_first(adapter); cq; cq = atomic_load(&cq->next))
		is_busy |= !cq_poll_all(adapter, cq);
	return !is_busy;
}

bool vrb_cq_take_arrived(struct vrb_adapter *adapter)
{
	for (int i = 0; i < ARRIVED_TRIES; i++) {
		if (poll_each(adapter))
			return true;
		sched_yield();
	}
	return false;
}

int vrb_progress(struct core_ia *ia)
{
	struct vrb_adapter *adapter = vrb_adapter_of(ia);
	int state = core_cancel_off(); /* cancellation: see post.c */
	int rc;

	vrb_note_activity(&cq_first(adapter)->has_polled);
	rc = vrb_cq_progress(adapter);
	/* relaxed: only what this thread has just dispatched matters */
	if (atomic_load_explicit(&adapter->blocked, memory_order_relaxed))
		vrb_windows_retry(adapter);
	core_cancel_restore(state);
	return rc; /* less than 0: another thread polls */
}

bool vrb_cq_was_polled(struct vrb_adapter *adapter)
{
	bool was = false;

	/* relaxed: it may be seen late */
	for (struct vrb_cq *cq = cq_first(adapter); cq; cq = atomic_load(&cq->next))
		was |= atomic_exchange_explicit(&cq->has_polled, false, memory_order_relaxed);
	return was;
}

int vrb_cq_arm(struct vrb_adapter *adapter)
{
	for (struct vrb_cq *cq = cq_first(adapter); cq; cq = atomic_load(&cq->next))
		if (ibv_req_notify_cq(cq->cq, 0))
			core_log(CORE_LOG_ERROR, "completion queue: no wake-up: %m");
	/*
	 * Polls once more, because a completion from before the request may cause no wake-up, and a
	 * completion that a thread has polled and kept causes none. Another thread that owns a
	 * queue may have polled before the request; then the caller has to try again.
	 */
	return vrb_cq_progress(adapter) ? 1 : 0;
}
