// SPDX-License-Identifier: BSD-2-Clause
/*
 * Connections: the table by which completions find them, their queue pairs, and how they end. A
 * queue pair serves one connection. At the end it is moved to the error state, its completions are
 * taken, then it is destroyed, and only then the core is told: nothing touches memory any more.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/mem/pz.h"
#include "verbs/verbs.h"
#include "verbs/work.h"

#define SLOTS_MOST (VRB_KEY_INDEX_MASK + 1)
#define DRAIN_NS (300 * VRB_NS_PER_MS)
#define DRAIN_SRQ_NS (2 * VRB_NS_PER_MS)
#define SILENT_NS (500 * VRB_NS_PER_MS) /* a flush without a word of the connection manager */
#define RETRY_COUNT 7
#define RNR_FOR_EVER 7
#define RNR_TIMER_SHORT 12 /* 0.64 ms between two tries of a message that finds no Receive */

/* --- the table --- */

/* Never live: who follows it finds no endpoint. */
static struct core_handle nobody = {.lock = CORE_LOCK_INIT};

/* Relaxed: whoever follows it looks at the endpoint with its lock held. */
static void slot_tie_locked(struct vrb_adapter *adapter, uint32_t key, struct core_handle *cell)
{
	atomic_store_explicit(&adapter->ep_cells[key & VRB_KEY_INDEX_MASK], cell,
			      memory_order_relaxed);
}

int vrb_slots_create(struct vrb_adapter *adapter)
{
	/* zeroes: memory that nobody touches costs nothing */
	adapter->slots = calloc(SLOTS_MOST, sizeof(*adapter->slots));
	adapter->ep_cells = calloc(SLOTS_MOST, sizeof(*adapter->ep_cells));
	return adapter->slots && adapter->ep_cells ? 0 : -ENOMEM;
}

int vrb_slot_take(struct vrb_adapter *adapter, struct vrb_peer *object, uint32_t *key_out)
{
	struct vrb_slot *slot;
	uint32_t index;
	int rc = -ENOMEM;

	pthread_mutex_lock(&adapter->lock);
	if (adapter->slot_free || adapter->slot_count < SLOTS_MOST) {
		index = adapter->slot_free ? adapter->slot_free - 1 : adapter->slot_count++;
		slot = &adapter->slots[index];
		if (adapter->slot_free)
			adapter->slot_free = slot->next_free;
		slot->object = object;
		slot->generation = (slot->generation + 1) & VRB_KEY_GENERATION_MASK;
		*key_out = slot->generation << VRB_KEY_INDEX_BITS | index;
		slot_tie_locked(adapter, index, &nobody);
		rc = 0;
	}
	pthread_mutex_unlock(&adapter->lock);
	return rc;
}

void vrb_slot_free_locked(struct vrb_adapter *adapter, uint32_t key)
{
	uint32_t index = key & VRB_KEY_INDEX_MASK;

	slot_tie_locked(adapter, index, &nobody);
	adapter->slots[index].object = NULL;
	adapter->slots[index].next_free = adapter->slot_free;
	adapter->slot_free = index + 1;
}

/* --- life --- */

void vrb_conn_get(struct vrb_conn *conn)
{
	/* relaxed: the caller holds a reference, or the lock of the table */
	atomic_fetch_add_explicit(&conn->refs, 1, memory_order_relaxed);
}

void vrb_conn_put(struct vrb_conn *conn)
{
	/* acquire and release: whoever frees sees what the others have written */
	if (atomic_fetch_sub_explicit(&conn->refs, 1, memory_order_acq_rel) != 1)
		return;
	vrb_adapter_put(conn->adapter);
	free(conn->early);
	free(conn);
}

int vrb_conn_create(struct vrb_adapter *adapter, enum vrb_state state, struct vrb_conn **conn_out)
{
	struct vrb_conn *conn = calloc(1, sizeof(*conn));
	int rc;

	if (!conn)
		return -ENOMEM;
	conn->peer.kind = VRB_KIND_CONN;
	conn->adapter = adapter;
	conn->inline_max = adapter->limits.inline_max;
	conn->is_direct = vrb_is_direct(adapter);
	conn->state = state;
	conn->deadline_ns = VRB_NEVER;
	conn->give_up_ns = VRB_NEVER;
	atomic_init(&conn->refs, 2);
	rc = vrb_slot_take(adapter, &conn->peer, &conn->key);
	if (rc) {
		free(conn);
		return rc;
	}
	vrb_adapter_get(adapter);
	pthread_mutex_lock(&adapter->lock);
	conn->next = adapter->first;
	if (conn->next)
		conn->next->prev = conn;
	adapter->first = conn;
	conn->is_listed = true;
	pthread_mutex_unlock(&adapter->lock);
	*conn_out = conn;
	return 0;
}

/* Off the table and the list; drops the table's reference. */
static void conn_forget(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	bool was_listed;

	pthread_mutex_lock(&adapter->lock);
	was_listed = conn->is_listed;
	if (was_listed) {
		if (conn->prev)
			conn->prev->next = conn->next;
		else
			adapter->first = conn->next;
		if (conn->next)
			conn->next->prev = conn->prev;
		conn->is_listed = false;
		vrb_slot_free_locked(adapter, conn->key);
	}
	pthread_mutex_unlock(&adapter->lock);
	if (was_listed)
		vrb_conn_put(conn);
}

struct core_ep *vrb_conn_enter(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	struct core_ref ref = {NULL, 0};
	struct core_ep *ep = NULL;

	pthread_mutex_lock(&adapter->lock);
	if (conn->has_ep)
		ref = conn->ep;
	pthread_mutex_unlock(&adapter->lock);
	if (ref.cell)
		ep = core_ep_enter(ref);
	if (ep && vrb_conn_of(ep) != conn) {
		core_ep_leave(ep);
		ep = NULL;
	}
	return ep;
}

void vrb_conn_leave(struct core_ep *ep)
{
	vrb_review(ep);
	core_ep_leave(ep);
}

/* Is more in the send queue than requests whose completions come in their order? */
static bool has_work(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return conn->post_next != ep->req.tail || conn->silent || ep->req.done ||
	       conn->has_marker || conn->is_binding || conn->binds_out || conn->retiring ||
	       conn->extra != conn->extra_done || /* or what is done has to be noted */
	       conn->sq_size <= ep->req.capacity; /* there may be no room for a request */
}

static uint16_t reasons_of(const struct vrb_conn *conn, const struct core_ep *ep)
{
	uint16_t reasons = 0;

	if (conn->state != VRB_ESTABLISHED || conn->is_graceful || !conn->is_direct)
		reasons |= CORE_EP_SLOW_CONN;
	if (has_work(conn, ep))
		reasons |= CORE_EP_SLOW_QUEUE;
	if (conn->recv_next != ep->recv.tail || conn->is_unconfirmed || !conn->is_receiving)
		reasons |= CORE_EP_SLOW_RECV;
	if (conn->is_flushed || conn->nudges) /* iWARP */
		reasons |= CORE_EP_SLOW_PEER;
	return reasons;
}

void vrb_review(struct core_ep *ep)
{
	const struct vrb_conn *conn = vrb_conn_of(ep);
	uint16_t reasons = conn ? reasons_of(conn, ep) : CORE_EP_SLOW_CONN;

	core_handle_put_slow(ep->cell, CORE_EP_SLOW_TRANSPORT, reasons);
}

void vrb_conn_attach(struct vrb_conn *conn, struct core_ep *ep)
{
	struct vrb_adapter *adapter = conn->adapter;

	((struct vrb_ep *)ep->transport)->conn = conn;
	pthread_mutex_lock(&adapter->lock);
	conn->has_ep = true;
	conn->ep = core_handle_ref(ep->cell);
	slot_tie_locked(adapter, conn->key, ep->cell);
	pthread_mutex_unlock(&adapter->lock);
}

void vrb_conn_detach(struct vrb_conn *conn, struct core_ep *ep)
{
	struct vrb_adapter *adapter = conn->adapter;

	((struct vrb_ep *)ep->transport)->conn = NULL;
	pthread_mutex_lock(&adapter->lock);
	conn->has_ep = false;
	if (conn->is_listed)
		slot_tie_locked(adapter, conn->key, &nobody);
	pthread_mutex_unlock(&adapter->lock);
}

static void conn_drop_qp(struct vrb_conn *conn)
{
	int rc;

	if (!conn->qp)
		return;
	vrb_qpn_remove(conn);
	vrb_cq_forget(conn->cq, conn->qp->qp_num);
	rc = ibv_destroy_qp(conn->qp);
	if (rc)
		core_log(CORE_LOG_ERROR, "queue pair: not freed: error %d", rc);
	conn->qp = NULL;
	vrb_window_retired(conn, false); /* whatever became of it */
	vrb_window_blocked(conn, false);
	if (conn->scratch_mr && ibv_dereg_mr(conn->scratch_mr))
		core_log(CORE_LOG_ERROR, "memory region: not freed: %m");
	conn->scratch_mr = NULL;
	vrb_cq_release(conn->adapter, conn->cq, conn->cq_entries);
}

static void qp_to_error(struct vrb_conn *conn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	/* a failure does no harm: it is destroyed soon */
	(void)ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE);
}

static void tell_peer(struct vrb_conn *conn)
{
	if (!conn->is_peer_told)
		(void)rdma_disconnect(conn->id); /* refused when the peer was first, or is gone */
	conn->is_peer_told = true;
}

/*
 * What is sent while the port is down is lost, and worse: the queue pair of rxe that carries the
 * management of all connections takes nothing in any more after it could not send (docs/verbs.md).
 */
static bool can_tell_peers(struct vrb_adapter *adapter)
{
	return adapter->is_iwarp || atomic_load(&adapter->is_dead) || vrb_device_is_up(adapter);
}

/* What may take its time on iWARP (below). */
static void conn_release(struct vrb_conn *conn)
{
	if (conn->id && conn->state == VRB_CLOSING)
		tell_peer(conn);
	if (conn->id && rdma_destroy_id(conn->id))
		core_log(CORE_LOG_ERROR, "connection identifier: not freed: %m");
	conn->id = NULL;
	conn_drop_qp(conn);
	conn->state = VRB_ENDED;
	conn_forget(conn);
	vrb_conn_put(conn);
}

static struct vrb_conn *lingering_take(struct vrb_adapter *adapter)
{
	struct vrb_conn *conn;

	pthread_mutex_lock(&adapter->lock);
	for (conn = adapter->first; conn && !conn->is_lingering;)
		conn = conn->next;
	if (conn)
		conn->is_lingering = false;
	pthread_mutex_unlock(&adapter->lock);
	return conn;
}

void vrb_conn_end_lingering(struct vrb_adapter *adapter)
{
	struct vrb_conn *conn;

	while ((conn = lingering_take(adapter)))
		conn_release(conn);
}

/* The queue pair goes now, the identifier when the port is up. */
static void conn_linger(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;

	conn_drop_qp(conn);
	pthread_mutex_lock(&adapter->lock);
	conn->is_lingering = true;
	pthread_mutex_unlock(&adapter->lock);
	if (can_tell_peers(adapter)) /* meanwhile: nobody may say so again */
		vrb_conn_end_lingering(adapter);
}

static void *reaper_run(void *argument)
{
	struct vrb_conn *conn = argument;
	struct vrb_adapter *adapter = conn->adapter;

	vrb_adapter_get(adapter);
	conn_release(conn);
	pthread_mutex_lock(&adapter->lock);
	if (!--adapter->reapers)
		pthread_cond_broadcast(&adapter->reaped);
	pthread_mutex_unlock(&adapter->lock);
	vrb_adapter_put(adapter);
	return NULL;
}

/*
 * The kernel's iWARP connection manager lets nobody destroy an identifier before the peer has
 * answered its request, or a time-out of its own has passed: a thread waits for that. The queue
 * pair, in the error state, cannot be connected any more. False: no thread.
 */
static bool conn_reap_later(struct vrb_conn *conn)
{
	struct vrb_adapter *adapter = conn->adapter;
	sigset_t all, before;
	pthread_t thread;
	int rc;

	qp_to_error(conn);
	pthread_mutex_lock(&adapter->lock);
	adapter->reapers++;
	pthread_mutex_unlock(&adapter->lock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* GEN-36 */
	rc = pthread_create(&thread, NULL, reaper_run, conn);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc) {
		pthread_detach(thread);
		return true;
	}
	pthread_mutex_lock(&adapter->lock);
	adapter->reapers--;
	pthread_mutex_unlock(&adapter->lock);
	return false;
}

void vrb_conn_wait_reapers(struct vrb_adapter *adapter)
{
	pthread_mutex_lock(&adapter->lock);
	while (adapter->reapers)
		pthread_cond_wait(&adapter->reaped, &adapter->lock);
	pthread_mutex_unlock(&adapter->lock);
}

void vrb_conn_destroy(struct vrb_conn *conn)
{
	if (conn->adapter->is_iwarp && conn->state == VRB_CALLING && conn->id && conn->qp &&
	    conn_reap_later(conn))
		return;
	if (conn->state == VRB_CLOSING && !can_tell_peers(conn->adapter))
		conn_linger(conn);
	else
		conn_release(conn);
}

/* --- deadlines --- */

void vrb_conn_at(struct vrb_conn *conn, uint64_t when_ns)
{
	struct vrb_adapter *adapter = conn->adapter;
	bool is_earliest;

	pthread_mutex_lock(&adapter->lock);
	conn->deadline_ns = when_ns;
	is_earliest = when_ns < atomic_load(&adapter->deadline_ns);
	if (is_earliest)
		atomic_store(&adapter->deadline_ns, when_ns);
	pthread_mutex_unlock(&adapter->lock);
	if (is_earliest)
		vrb_kick(adapter);
}

struct vrb_conn *vrb_conn_next_due(struct vrb_adapter *adapter, uint64_t now_ns)
{
	uint64_t earliest = VRB_NEVER;
	struct vrb_conn *due = NULL;

	pthread_mutex_lock(&adapter->lock);
	for (struct vrb_conn *conn = adapter->first; conn && !due; conn = conn->next) {
		if (conn->deadline_ns <= now_ns)
			due = conn;
		else if (conn->deadline_ns < earliest)
			earliest = conn->deadline_ns;
	}
	if (due) {
		due->deadline_ns = VRB_NEVER;
		vrb_conn_get(due);
	} else {
		atomic_store(&adapter->deadline_ns, earliest);
	}
	pthread_mutex_unlock(&adapter->lock);
	return due;
}

void vrb_conn_all_due(struct vrb_adapter *adapter)
{
	pthread_mutex_lock(&adapter->lock);
	for (struct vrb_conn *conn = adapter->first; conn; conn = conn->next)
		conn->deadline_ns = 0;
	atomic_store(&adapter->deadline_ns, 0);
	pthread_mutex_unlock(&adapter->lock);
}

/* --- queue pairs --- */

static uint32_t at_least(uint32_t value, uint32_t least)
{
	return value > least ? value : least;
}

/* A bind unbinds another window when it has its turn, one at a time. */
static uint32_t retire_places(const struct vrb_adapter *adapter)
{
	return adapter->has_windows ? 1 : 0;
}

static void qp_fill_caps(const struct vrb_adapter *adapter, const struct core_ep *ep,
			 struct ibv_qp_cap *cap)
{
	/* an iWARP Write may need a read behind it; and one place is the marker's */
	cap->max_send_wr =
		ep->req.capacity * (adapter->is_iwarp ? 2 : 1) + 2 + retire_places(adapter);
	/* the first Receive over iWARP may be ours (iwarp.c) */
	cap->max_recv_wr =
		ep->srq ? 0 : at_least(ep->recv.capacity + (adapter->is_iwarp ? 1 : 0), 1);
	cap->max_send_sge = at_least(ep->req.iov_max, 1);
	cap->max_recv_sge = ep->srq ? 0 : at_least(ep->recv.iov_max, 1);
	cap->max_inline_data = adapter->limits.inline_max;
	if (cap->max_send_wr > adapter->limits.max_wr)
		cap->max_send_wr = adapter->limits.max_wr;
	if (cap->max_recv_wr > adapter->limits.max_wr)
		cap->max_recv_wr = adapter->limits.max_wr;
}

static bool scratch_create(struct vrb_conn *conn, const struct core_ep *ep)
{
	if (conn->adapter->is_siw)
		conn->scratch_mr = ibv_reg_mr(vrb_pd(ep->pz), &conn->scratch, sizeof(conn->scratch),
					      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return conn->scratch_mr || !conn->adapter->is_siw;
}

int vrb_qp_create(struct vrb_conn *conn, struct core_ep *ep)
{
	struct vrb_adapter *adapter = conn->adapter;
	struct ibv_qp_init_attr init = {.qp_context = conn, .qp_type = IBV_QPT_RC};
	uint32_t entries;
	int rc;

	qp_fill_caps(adapter, ep, &init.cap);
	entries = init.cap.max_send_wr + init.cap.max_recv_wr;
	if (ep->srq) {
		const struct vrb_srq *srq = ep->srq->transport;

		init.srq = srq->srq;
		entries += srq->size; /* one endpoint may take them all */
	}
	if (adapter->is_iwarp && conn->state != VRB_ASKED && !conn->early) {
		conn->early_room = entries - init.cap.max_send_wr;
		conn->early = calloc(conn->early_room, sizeof(*conn->early));
		if (!conn->early)
			return -ENOMEM;
	}
	conn->early_count = 0;
	rc = vrb_cq_reserve(adapter, entries, &conn->cq);
	if (rc)
		return rc;
	conn->cq_entries = entries;
	init.send_cq = conn->cq->cq;
	init.recv_cq = conn->cq->cq;
	conn->sq_size = init.cap.max_send_wr - retire_places(adapter);
	errno = 0;
	conn->qp = scratch_create(conn, ep) ? ibv_create_qp(vrb_pd(ep->pz), &init) : NULL;
	if (!conn->qp) {
		rc = errno ? -errno : -ENOMEM;
		if (conn->scratch_mr)
			(void)ibv_dereg_mr(conn->scratch_mr);
		conn->scratch_mr = NULL;
		vrb_cq_release(adapter, conn->cq, entries);
		return rc == -EINVAL ? -ENOMEM : rc;
	}
	if (ep->srq)
		vrb_qpn_add(conn);
	conn->post_next = ep->req.tail;
	conn->sq_seen = ep->req.tail;
	conn->recv_next = ep->recv.head;
	vrb_fast_prepare(conn);
	return 0;
}

int vrb_qp_renew(struct vrb_conn *conn, struct core_ep *ep)
{
	struct vrb_adapter *adapter = conn->adapter;
	uint32_t key;
	int rc;

	/* what is left of the old one in the completion queue finds nothing */
	rc = vrb_slot_take(adapter, &conn->peer, &key);
	if (rc)
		return rc;
	pthread_mutex_lock(&adapter->lock);
	vrb_slot_free_locked(adapter, conn->key);
	conn->key = key;
	slot_tie_locked(adapter, key, ep->cell);
	pthread_mutex_unlock(&adapter->lock);
	conn_drop_qp(conn);
	conn->is_receiving = false;
	conn->recv_extra = 0;
	return vrb_qp_create(conn, ep);
}

static int qp_modify(struct vrb_conn *conn, enum ibv_qp_state state, struct ibv_qp_attr *attr,
		     int *mask)
{
	attr->qp_state = state;
	*mask = 0;
	return rdma_init_qp_attr(conn->id, attr, mask) ? -errno : 0;
}

int vrb_qp_to_init(struct vrb_conn *conn, struct core_ep *ep)
{
	struct ibv_qp_attr attr;
	int mask, rc;

	memset(&attr, 0, sizeof(attr));
	rc = qp_modify(conn, IBV_QPS_INIT, &attr, &mask);
	if (!rc) {
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
		if (conn->adapter->has_windows)
			attr.qp_access_flags |= IBV_ACCESS_MW_BIND;
		rc = -ibv_modify_qp(conn->qp, &attr, mask);
	}
	if (!rc && conn->answer.wants_confirmation && conn->state == VRB_ACCEPTED)
		rc = vrb_confirm_expect(conn);
	if (rc)
		return rc;
	conn->is_receiving = true;
	vrb_post_recv(conn, ep);
	return 0;
}

/* The pause that a peer makes whose message found no Receive: a sixth of the limit, if one is set.
 */
static uint8_t rnr_timer(const struct core_settings *settings)
{
	/* in units of 10 us, by code: the InfiniBand table */
	static const uint32_t pauses[] = {65536, 1,    2,    3,	    4,	   6,	  8,	 12,
					  16,	 24,   32,   48,    64,	   96,	  128,	 192,
					  256,	 384,  512,  768,   1024,  1536,  2048,	 3072,
					  4096,	 6144, 8192, 12288, 16384, 24576, 32768, 49152};
	uint64_t pause = settings->rnr_timeout_ms * 100 / 6;
	uint8_t code = 1;

	if (!settings->rnr_timeout_ms)
		return RNR_TIMER_SHORT;
	while (code < 31 && pauses[code] < pause)
		code++;
	return code;
}

int vrb_qp_to_send(struct vrb_conn *conn, uint32_t read_in, uint32_t read_out)
{
	struct ibv_qp_attr attr;
	int mask, rc;

	if (conn->adapter->is_iwarp) /* its connection manager does it */
		return 0;
	memset(&attr, 0, sizeof(attr));
	rc = qp_modify(conn, IBV_QPS_RTR, &attr, &mask);
	if (rc)
		return rc;
	attr.max_dest_rd_atomic = (uint8_t)read_in;
	attr.min_rnr_timer = rnr_timer(&conn->adapter->ia->settings);
	rc = -ibv_modify_qp(conn->qp, &attr, mask);
	if (rc)
		return rc;
	memset(&attr, 0, sizeof(attr));
	rc = qp_modify(conn, IBV_QPS_RTS, &attr, &mask);
	if (rc)
		return rc;
	attr.max_rd_atomic = (uint8_t)read_out;
	attr.retry_cnt = RETRY_COUNT;
	attr.rnr_retry =
		conn->adapter->ia->settings.rnr_timeout_ms ? RNR_FOR_EVER - 1 : RNR_FOR_EVER;
	return -ibv_modify_qp(conn->qp, &attr, mask);
}

bool vrb_conn_is_broken(const struct vrb_conn *conn)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (conn->has_failed)
		return true;
	if (conn->adapter->is_iwarp || ibv_query_qp(conn->qp, &attr, IBV_QP_STATE, &init))
		return false;
	return attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE;
}

/* --- what happens to a connection; EP locked --- */

void vrb_conn_established(struct vrb_conn *conn, struct core_ep *ep)
{
	struct transport_conn_param peer = {
		.read_in = conn->peer_read_in,
		.private_data = conn->answer.data,
		.private_data_size = conn->answer.size,
	};

	bool is_passive = conn->state == VRB_ACCEPTED;

	conn->state = VRB_ESTABLISHED;
	vrb_conn_at(conn, VRB_NEVER);
	core_ep_established(ep, &peer);
	if (conn->answer.wants_confirmation && !is_passive)
		vrb_confirm(conn, ep);
	vrb_completions_early(conn, ep);
	vrb_post_send(conn, ep);
}

void vrb_conn_fail(struct vrb_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	vrb_conn_detach(conn, ep);
	vrb_conn_destroy(conn);
	if (number == DAT_CONNECTION_EVENT_DISCONNECTED)
		core_ep_ended(ep, number);
	else
		core_ep_connect_failed(ep, number);
}

/* Was the completion of everything in the send queue seen, good or bad? */
static bool is_seen(const struct vrb_conn *conn, const struct core_ep *ep)
{
	uint64_t posted = vrb_sq_posted(conn);

	/* the fast path notes only what is done */
	return conn->sq_seen == posted || vrb_sq_done(conn, ep) == posted;
}

/* When to end without having heard of every work request. */
static uint64_t drained_by(const struct vrb_conn *conn, const struct core_ep *ep)
{
	/* nobody counts what an endpoint took out of an SRQ: what was taken is told by then */
	return vrb_now_ns() + (ep->srq && is_seen(conn, ep) ? DRAIN_SRQ_NS : DRAIN_NS);
}

static bool is_drained(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return !ep->srq && !vrb_recv_out(conn, ep) && is_seen(conn, ep);
}

void vrb_conn_close(struct vrb_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER why)
{
	if (conn->state != VRB_ESTABLISHED)
		return;
	core_log(CORE_LOG_CONN, "queue pair %u: ends: %s", conn->qp->qp_num,
		 why == DAT_CONNECTION_EVENT_BROKEN ? "broken" : "disconnected");
	conn->state = VRB_CLOSING;
	conn->why = why;
	/*
	 * An iWARP device sends what it has taken, then ends the stream, when it is asked to; in
	 * the error state it just drops the stream.
	 */
	if (!conn->adapter->is_iwarp || why == DAT_CONNECTION_EVENT_BROKEN)
		qp_to_error(conn);
	/*
	 * A device may tell of an error before it has answered the peer with it: it has when it has
	 * flushed, and only then the peer may hear of the end. iWARP does that in its stream.
	 */
	if (conn->adapter->is_iwarp ||
	    (why != DAT_CONNECTION_EVENT_BROKEN && can_tell_peers(conn->adapter)))
		tell_peer(conn);
	vrb_conn_at(conn, is_drained(conn, ep) ? 0 : drained_by(conn, ep));
}

void vrb_conn_flushed(struct vrb_conn *conn, struct core_ep *ep)
{
	if (conn->state != VRB_ESTABLISHED)
		return;
	if (!conn->adapter->is_iwarp) {
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
		return;
	}
	/* the end of the peer's stream does that too: the connection manager will say */
	if (conn->is_flushed)
		return;
	conn->is_flushed = true;
	conn->give_up_ns = vrb_now_ns() + SILENT_NS;
	vrb_conn_at(conn, conn->give_up_ns);
}

void vrb_conn_try_finish(struct vrb_conn *conn, struct core_ep *ep, bool is_forced)
{
	DAT_EVENT_NUMBER why = conn->why;

	if (conn->state != VRB_CLOSING)
		return;
	if (!is_forced && !is_drained(conn, ep)) {
		if (ep->srq)
			vrb_conn_at(conn, drained_by(conn, ep));
		return;
	}
	vrb_conn_detach(conn, ep);
	vrb_conn_destroy(conn);
	core_ep_ended(ep, why);
}
