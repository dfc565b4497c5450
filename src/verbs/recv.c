// SPDX-License-Identifier: BSD-2-Clause
/* The slow path of Receives: those of the endpoint are posted in order. */
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/log.h"
#include "core/ep/ep.h"
#include "verbs/adapter.h"
#include "verbs/conn.h"
#include "verbs/mem.h"
#include "verbs/post.h"
#include "verbs/work.h"

#define RECV_BATCH 16u

void vrb_recv_refused(struct vrb_conn *conn, struct core_ep *ep, int rc)
{
	core_log(CORE_LOG_CONN, "queue pair %u: Receive refused: %s", conn->qp->qp_num,
		 strerror(rc));
	if (conn->state == VRB_ESTABLISHED)
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
}

void vrb_post_recvs(struct vrb_conn *conn, struct core_ep *ep)
{
	struct ibv_sge sge[RECV_BATCH][VRB_SEGMENTS_MAX];
	struct ibv_recv_wr wr[RECV_BATCH], *bad;
	uint32_t count;
	int rc;

	if (ep->srq || !conn->is_receiving)
		return;
	while (conn->recv_next != ep->recv.tail) {
		for (count = 0; count < RECV_BATCH && conn->recv_next != ep->recv.tail; count++) {
			const struct core_wqe *wqe =
				&ep->recv.slots[conn->recv_next & ep->recv.mask];

			wr[count] = (struct ibv_recv_wr){
				.wr_id = vrb_work_id(VRB_WORK_RECV, conn->key, conn->recv_next),
				.sg_list = sge[count],
				.num_sge = vrb_recv_segments(ep->ia, wqe, sge[count]),
			};
			if (count)
				wr[count - 1].next = &wr[count];
			conn->recv_next++;
		}
		rc = ibv_post_recv(conn->qp, wr, &bad);
		if (!rc)
			continue;
		for (const struct ibv_recv_wr *i = bad; i; i = i->next)
			conn->recv_extra--;
		vrb_recv_refused(conn, ep, rc);
		return;
	}
}

void vrb_post_recv(struct core_ep *ep)
{
	struct vrb_conn *conn = vrb_conn_of(ep);
	int state;

	if (!conn)
		return;
	state = core_cancel_off();
	vrb_post_recvs(conn, ep);
	vrb_update_slow_reasons(ep);
	core_cancel_restore(state);
}

void vrb_post_last_recv(struct vrb_conn *conn, const struct core_ep *ep)
{
	struct ibv_recv_wr *bad, wr = {.wr_id = vrb_work_id(VRB_WORK_RECV, conn->key, 0)};

	if (!ep->srq && !vrb_recv_out(conn, ep) && !conn->adapter->is_iwarp &&
	    !ibv_post_recv(conn->qp, &wr, &bad))
		conn->recv_extra++;
}
