// SPDX-License-Identifier: BSD-2-Clause
/*
 * What both sides of a set-up share: the completions before a connection is established, and the
 * confirmation of iWARP.
 *
 * Confirmation. Over iWARP the passive side must send nothing before the active side has sent
 * something (RFC 5044, 7.1.2): what arrives together with the answer is lost, or breaks the set-up.
 * Its connection manager also reports "established" at once, whatever has become of the active
 * side. So an OpenDAT that accepts asks for a confirmation: a message of length 0 in front of all
 * others, for which the provider posts a Receive of its own. The connection is established when the
 * message arrives. The manager of InfiniBand has a third message for this.
 *
 * An endpoint with an SRQ cannot post such a Receive, and a foreign peer does not send the message.
 * There the event of the connection manager decides.
 */
#include "verbs/connect/setup.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "core/base/clock.h"
#include "core/base/handle.h"
#include "core/base/log.h"
#include "core/base/settings.h"
#include "core/ep/ep.h"
#include "core/srq/srq.h"
#include "verbs/device/adapter.h"
#include "verbs/device/cq.h"
#include "verbs/device/mem.h"
#include "verbs/device/srq.h"
#include "verbs/device/tuning.h"
#include "verbs/transfer/bind.h"
#include "verbs/transfer/complete.h"
#include "verbs/transfer/post.h"

static uint32_t at_least(uint32_t value, uint32_t least)
{
	return value > least ? value : least;
}

/* Entries for unbinding: the bind that has its turn unbinds another window, one at a time. */
static uint32_t retire_entries(const struct vrb_adapter *adapter)
{
	return adapter->has_windows ? 1 : 0;
}

static void qp_fill_caps(const struct vrb_adapter *adapter, const struct core_ep *ep,
			 struct ibv_qp_cap *cap)
{
	/* an iWARP Write may need a Read after it, and one entry is reserved for the marker */
	cap->max_send_wr =
		ep->req.capacity * (adapter->is_iwarp ? 2 : 1) + 2 + retire_entries(adapter);
	/* over iWARP the first Receive may be the provider's (setup.c) */
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

static bool scratch_create(struct vrb_conn *conn, struct ibv_pd *pd)
{
	if (conn->adapter->is_siw)
		conn->siw.scratch_mr = ibv_reg_mr(pd, &conn->siw.scratch, sizeof(conn->siw.scratch),
						  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return conn->siw.scratch_mr || !conn->adapter->is_siw;
}

/* Prepares the work requests of the fast path (engine/fast.c), for a new queue pair or key. */
static void fast_prepare(struct vrb_conn *conn)
{
	conn->fast.send_wr =
		(struct ibv_send_wr){.wr_id = vrb_work_id(VRB_WORK_REQUEST, conn->key, 0),
				     .sg_list = &conn->fast.sge,
				     .num_sge = 1,
				     .opcode = IBV_WR_SEND};
	conn->fast.write_wr = conn->fast.send_wr;
	conn->fast.write_wr.opcode = IBV_WR_RDMA_WRITE;
	conn->fast.recv_wr = (struct ibv_recv_wr){.wr_id = vrb_work_id(VRB_WORK_RECV, conn->key, 0),
						  .sg_list = &conn->fast.recv_sge,
						  .num_sge = 1};
}

int vrb_qp_create(struct vrb_conn *conn, struct core_ep *ep)
{
	struct vrb_adapter *adapter = conn->adapter;
	struct ibv_qp_init_attr init = {.qp_context = conn, .qp_type = IBV_QPT_RC};
	struct vrb_srq *srq = ep->srq ? ep->srq->transport : NULL;
	struct vrb_pz *pz = vrb_pz_of(ep->pz);
	uint32_t entries;
	int rc;

	qp_fill_caps(adapter, ep, &init.cap);
	entries = init.cap.max_send_wr + init.cap.max_recv_wr;
	if (srq) {
		init.srq = srq->srq;
		entries += srq->size; /* one endpoint may take all buffers */
	}
	if (adapter->is_iwarp && conn->state != VRB_REQUESTED && !conn->early.wc) {
		conn->early.room = entries - init.cap.max_send_wr;
		conn->early.wc = calloc(conn->early.room, sizeof(*conn->early.wc));
		if (!conn->early.wc)
			return -ENOMEM;
	}
	conn->early.count = 0;
	rc = vrb_cq_reserve(adapter, entries, &conn->cq);
	if (rc)
		return rc;
	conn->cq_entries = entries;
	init.send_cq = conn->cq->cq;
	init.recv_cq = conn->cq->cq;
	conn->sq.size = init.cap.max_send_wr - retire_entries(adapter);
	errno = 0;
	conn->qp = scratch_create(conn, pz->pd) ? ibv_create_qp(pz->pd, &init) : NULL;
	if (!conn->qp) {
		rc = errno ? -errno : -ENOMEM;
		if (conn->siw.scratch_mr)
			(void)ibv_dereg_mr(conn->siw.scratch_mr);
		conn->siw.scratch_mr = NULL;
		vrb_cq_release(adapter, conn->cq, entries);
		return rc == -EINVAL ? -ENOMEM : rc;
	}
	conn->pz = vrb_pz_get(pz);
	conn->srq = srq ? vrb_srq_get(srq) : NULL;
	atomic_store(&conn->end.has_left_srq, false);
	if (srq)
		vrb_qpn_add(conn);
	conn->sq.next = ep->req.tail;
	conn->sq.seen = ep->req.tail;
	conn->rq.next = ep->recv.head;
	fast_prepare(conn);
	return 0;
}

int vrb_qp_renew(struct vrb_conn *conn, struct core_ep *ep)
{
	struct vrb_adapter *adapter = conn->adapter;
	uint32_t key;
	int rc;

	/* with a new key, completions of the old queue pair find no connection */
	rc = vrb_slot_take(adapter, &conn->peer, &key);
	if (rc)
		return rc;
	pthread_mutex_lock(&adapter->lock);
	vrb_slot_free_locked(adapter, conn->key);
	conn->key = key;
	vrb_slot_set_cell_locked(adapter, key, ep->cell);
	pthread_mutex_unlock(&adapter->lock);
	vrb_qp_destroy(conn);
	conn->rq.is_open = false;
	conn->rq.extra = 0;
	return vrb_qp_create(conn, ep);
}

void vrb_qp_destroy(struct vrb_conn *conn)
{
	int rc;

	if (!conn->qp)
		return;
	vrb_early_drop(conn);
	vrb_qpn_remove(conn);
	vrb_cq_disown_qp(conn->cq, conn->qp->qp_num);
	rc = ibv_destroy_qp(conn->qp);
	if (rc)
		core_log(CORE_LOG_ERROR, "queue pair: not freed: %s", strerror(rc));
	conn->qp = NULL;
	vrb_window_retired(conn, false); /* the unbinding is over, successful or not */
	vrb_window_set_blocked(conn, false);
	if (conn->siw.scratch_mr && ibv_dereg_mr(conn->siw.scratch_mr))
		core_log(CORE_LOG_ERROR, "memory region: not freed: %m");
	conn->siw.scratch_mr = NULL;
	if (conn->srq)
		vrb_srq_put(conn->srq);
	vrb_pz_put(conn->pz);
	vrb_cq_release(conn->adapter, conn->cq, conn->cq_entries);
}

/* --- states --- */

static int qp_attr_init(struct vrb_conn *conn, enum ibv_qp_state state, struct ibv_qp_attr *attr,
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
	rc = qp_attr_init(conn, IBV_QPS_INIT, &attr, &mask);
	if (!rc) {
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
		if (conn->takes & TRANSPORT_TAKES_ATOMICS)
			attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
		if (conn->adapter->has_windows)
			attr.qp_access_flags |= IBV_ACCESS_MW_BIND;
		rc = -ibv_modify_qp(conn->qp, &attr, mask);
	}
	if (!rc && conn->setup.answer.wants_confirmation && conn->state == VRB_ACCEPTED)
		rc = vrb_confirm_expect(conn);
	if (rc)
		return rc;
	conn->rq.is_open = true;
	vrb_post_recvs(conn, ep);
	return 0;
}

/*
 * How long a peer pauses before it sends a message again that found no Receive: a sixth of the
 * limit, if one is set.
 */
static uint8_t rnr_timer(const struct core_settings *settings)
{
	/* the InfiniBand table of codes, in units of 10 us */
	static const uint32_t pauses[] = {65536, 1,    2,    3,	    4,	   6,	  8,	 12,
					  16,	 24,   32,   48,    64,	   96,	  128,	 192,
					  256,	 384,  512,  768,   1024,  1536,  2048,	 3072,
					  4096,	 6144, 8192, 12288, 16384, 24576, 32768, 49152};
	uint64_t pause = settings->rnr_timeout_ms * 100 / 6;
	uint8_t code = 1;

	if (!settings->rnr_timeout_ms)
		return VRB_RNR_TIMER_SHORT;
	while (code < 31 && pauses[code] < pause)
		code++;
	return code;
}

int vrb_qp_to_send(struct vrb_conn *conn, uint32_t read_in, uint32_t read_out)
{
	struct ibv_qp_attr attr;
	int mask, rc;

	if (conn->adapter->is_iwarp) /* the connection manager modifies it */
		return 0;
	memset(&attr, 0, sizeof(attr));
	rc = qp_attr_init(conn, IBV_QPS_RTR, &attr, &mask);
	if (rc)
		return rc;
	attr.max_dest_rd_atomic = (uint8_t)read_in;
	attr.min_rnr_timer = rnr_timer(&conn->adapter->ia->settings);
	rc = -ibv_modify_qp(conn->qp, &attr, mask);
	if (rc)
		return rc;
	memset(&attr, 0, sizeof(attr));
	rc = qp_attr_init(conn, IBV_QPS_RTS, &attr, &mask);
	if (rc)
		return rc;
	attr.max_rd_atomic = (uint8_t)read_out;
	attr.retry_cnt = VRB_RETRY_COUNT;
	attr.rnr_retry = conn->adapter->ia->settings.rnr_timeout_ms ? VRB_RNR_FOR_EVER - 1
								    : VRB_RNR_FOR_EVER;
	return -ibv_modify_qp(conn->qp, &attr, mask);
}

/* --- release --- */

void vrb_conn_release(struct vrb_conn *conn)
{
	if (conn->id && conn->state == VRB_CLOSING)
		vrb_conn_notify_peer(conn);
	if (conn->id && rdma_destroy_id(conn->id))
		core_log(CORE_LOG_ERROR, "connection identifier: not freed: %m");
	conn->id = NULL;
	vrb_qp_destroy(conn);
	conn->state = VRB_ENDED;
	vrb_conn_forget(conn);
	vrb_conn_put(conn);
}

static const uint32_t pauses_ms[VRB_CONFIRM_PAUSES] = VRB_CONFIRM_PAUSES_MS;

/* --- messages that arrive early --- */

/* Handles the completions that were kept until the connection was established. */
static void early_complete(struct vrb_conn *conn, struct core_ep *ep)
{
	uint32_t count = conn->early.count;

	conn->early.count = 0;
	for (uint32_t i = 0; i < count; i++)
		vrb_completion(conn, ep, &conn->early.wc[i]);
}

void vrb_early_drop(struct vrb_conn *conn)
{
	struct core_ref srq;

	for (uint32_t i = 0; i < conn->early.count; i++)
		if (vrb_srq_by_key(conn->adapter, vrb_work_key(&conn->early.wc[i]), &srq))
			core_srq_discard(srq, (uint32_t)conn->early.wc[i].wr_id);
	conn->early.count = 0;
}

/* --- established --- */

/* Active side: sends the confirmation. */
static void confirm(struct vrb_conn *conn, struct core_ep *ep)
{
	vrb_post_marker(conn, ep, IBV_WR_SEND);
	conn->setup.confirm_retries = VRB_CONFIRM_PAUSES;
	vrb_conn_set_deadline(conn, core_now_ns() + pauses_ms[0] * VRB_NS_PER_MS);
}

void vrb_conn_established(struct vrb_conn *conn, struct core_ep *ep, const void *private_data,
			  uint32_t size)
{
	struct transport_conn_param peer = {
		.read_in = conn->setup.peer_read_in,
		.private_data = private_data,
		.private_data_size = size,
		.takes = conn->setup.peer_takes & conn->adapter->takes,
	};

	bool is_passive = conn->state == VRB_ACCEPTED;

	conn->state = VRB_ESTABLISHED;
	vrb_conn_set_deadline(conn, VRB_NEVER);
	core_ep_set_path(ep, OPENDAT_PATH_VERBS);
	core_ep_established(ep, &peer);
	if (conn->setup.answer.wants_confirmation && !is_passive)
		confirm(conn, ep);
	early_complete(conn, ep);
	vrb_post_requests(conn, ep);
}

/* --- the confirmation --- */

bool vrb_confirm_is_needed(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return conn->adapter->is_iwarp && conn->is_opendat && !ep->srq;
}

int vrb_confirm_expect(struct vrb_conn *conn)
{
	struct ibv_sge nothing = {0};
	struct ibv_recv_wr *bad, wr = {
					 .wr_id = vrb_work_id(VRB_WORK_RECV, conn->key, 0),
					 .sg_list = &nothing,
					 .num_sge = 1,
				 };
	int rc;

	conn->rq.extra++;
	conn->setup.is_unconfirmed = true;
	rc = ibv_post_recv(conn->qp, &wr, &bad);
	if (!rc)
		return 0;
	core_log(CORE_LOG_CONN, "queue pair %u: Receive refused: %s", conn->qp->qp_num,
		 strerror(rc));
	conn->rq.extra--;
	conn->setup.is_unconfirmed = false;
	return -rc;
}

/* Passive side: the completion of the Receive for the confirmation. */
static void confirm_received(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	if (conn->state != VRB_ACCEPTED)
		return;
	if (wc->status == IBV_WC_SUCCESS) {
		conn->setup.is_unconfirmed = false;
		vrb_conn_established(conn, ep, NULL, 0);
	} else {
		/*
		 * The active side is gone. The service thread reports it, after the call that
		 * posted this Receive has returned.
		 */
		conn->setup.failure = DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
		vrb_conn_set_deadline(conn, 0);
	}
}

void vrb_confirm_retry(struct vrb_conn *conn, struct core_ep *ep)
{
	if (!conn->setup.confirm_retries)
		return;
	if (!conn->marker.is_out) /* otherwise the last one has not completed yet */
		vrb_post_marker(conn, ep, IBV_WR_RDMA_WRITE);
	if (--conn->setup.confirm_retries)
		vrb_conn_set_deadline(
			conn, core_now_ns() +
				      pauses_ms[VRB_CONFIRM_PAUSES - conn->setup.confirm_retries] *
					      VRB_NS_PER_MS);
}

/* --- completions --- */

/*
 * Keeps the completion of a message that arrived before the connection was established, and drops
 * any other that comes before or after the connection. False: the completion belongs to the
 * connection.
 */
static bool is_outside_connection(struct vrb_conn *conn, struct core_ep *ep,
				  const struct ibv_wc *wc)
{
	bool is_recv = vrb_work_of(wc) == VRB_WORK_RECV;

	if (conn->state == VRB_ESTABLISHED || conn->state == VRB_CLOSING)
		return false;
	if (conn->state == VRB_CONNECTING && is_recv && wc->status == IBV_WC_SUCCESS &&
	    conn->early.count < conn->early.room) {
		conn->early.wc[conn->early.count++] = *wc;
		return true;
	}
	if (is_recv && ep->srq)
		core_srq_discard(core_handle_ref(ep->srq->cell), (uint32_t)wc->wr_id);
	else if (is_recv)
		conn->rq.extra--;
	return true;
}

bool vrb_setup_completion(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	if (conn->setup.is_unconfirmed && vrb_work_of(wc) == VRB_WORK_RECV) {
		conn->rq.extra--;
		confirm_received(conn, ep, wc);
		return true;
	}
	/* the first message may overtake the confirmation (CR-ACCEPT-24) */
	if (conn->state == VRB_ACCEPTED && wc->status == IBV_WC_SUCCESS)
		vrb_conn_established(conn, ep, NULL, 0);
	return is_outside_connection(conn, ep, wc);
}
