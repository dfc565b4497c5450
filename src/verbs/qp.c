// SPDX-License-Identifier: BSD-2-Clause
/*
 * Queue pairs. The provider makes and modifies them itself, with the attributes that librdmacm
 * names, so that one queue pair serves several requests of one attempt (docs/verbs.md).
 */
#include "verbs/qp.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "core/base/log.h"
#include "core/base/settings.h"
#include "core/ep/ep.h"
#include "verbs/adapter.h"
#include "verbs/completion.h"
#include "verbs/cq.h"
#include "verbs/iwarp.h"
#include "verbs/mem.h"
#include "verbs/post.h"
#include "verbs/srq.h"
#include "verbs/table.h"
#include "verbs/window.h"

#define RNR_TIMER_SHORT 12 /* 0.64 ms until a message that found no Receive is sent again */

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
	/* an iWARP Write may need a Read behind it, and one entry is reserved for the marker */
	cap->max_send_wr =
		ep->req.capacity * (adapter->is_iwarp ? 2 : 1) + 2 + retire_entries(adapter);
	/* over iWARP the first Receive may be the provider's (iwarp.c) */
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
		entries += srq->size; /* one endpoint may take all buffers */
	}
	if (adapter->is_iwarp && conn->state != VRB_REQUESTED && !conn->early) {
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
	conn->sq_size = init.cap.max_send_wr - retire_entries(adapter);
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
	atomic_store(&conn->has_left_srq, false);
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
	conn->is_receiving = false;
	conn->recv_extra = 0;
	return vrb_qp_create(conn, ep);
}

void vrb_qp_destroy(struct vrb_conn *conn)
{
	int rc;

	if (!conn->qp)
		return;
	vrb_completions_drop_early(conn);
	vrb_qpn_remove(conn);
	vrb_cq_disown_qp(conn->cq, conn->qp->qp_num);
	rc = ibv_destroy_qp(conn->qp);
	if (rc)
		core_log(CORE_LOG_ERROR, "queue pair: not freed: %s", strerror(rc));
	conn->qp = NULL;
	vrb_window_retired(conn, false); /* the unbinding is over, successful or not */
	vrb_window_set_blocked(conn, false);
	if (conn->scratch_mr && ibv_dereg_mr(conn->scratch_mr))
		core_log(CORE_LOG_ERROR, "memory region: not freed: %m");
	conn->scratch_mr = NULL;
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
		if (conn->adapter->has_windows)
			attr.qp_access_flags |= IBV_ACCESS_MW_BIND;
		rc = -ibv_modify_qp(conn->qp, &attr, mask);
	}
	if (!rc && conn->answer.wants_confirmation && conn->state == VRB_ACCEPTED)
		rc = vrb_confirm_expect(conn);
	if (rc)
		return rc;
	conn->is_receiving = true;
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
		return RNR_TIMER_SHORT;
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

void vrb_qp_to_error(struct vrb_conn *conn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	/* a failure does not matter: the queue pair is destroyed soon */
	(void)ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE);
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
