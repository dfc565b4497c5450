// SPDX-License-Identifier: BSD-2-Clause
/*
 * A device that costs next to nothing, on the stand-in for rdma-core (tests/verbs). Whatever is
 * posted succeeds at once, and no bytes move. So a measurement over it shows the cost of the calls
 * above it. Like a real device it takes a spinlock around each call.
 */
#include <sched.h>
#include <stdatomic.h>

#include "fake_inner.h"

static atomic_flag quick_lock = ATOMIC_FLAG_INIT;

static void quick_enter(void)
{
	while (atomic_flag_test_and_set_explicit(&quick_lock, memory_order_acquire))
		sched_yield();
}

static void quick_leave(void)
{
	atomic_flag_clear_explicit(&quick_lock, memory_order_release);
}

static void quick_complete(struct ibv_cq *ibv_cq, uint64_t wr_id, enum ibv_wc_opcode opcode,
			   const struct ibv_sge *sge, uint32_t qp_num)
{
	struct fake_cq *cq = (struct fake_cq *)ibv_cq;
	struct ibv_wc *wc = &cq->wc[cq->tail++ % 4096u];

	wc->wr_id = wr_id;
	wc->status = IBV_WC_SUCCESS;
	wc->opcode = opcode;
	wc->byte_len = sge ? sge->length : 0;
	wc->wc_flags = 0;
	wc->qp_num = qp_num;
}

static int quick_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)bad;
	quick_enter();
	for (; wr; wr = wr->next)
		if (wr->send_flags & IBV_SEND_SIGNALED)
			quick_complete(qp->send_cq, wr->wr_id,
				       wr->opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE,
				       NULL, qp->qp_num);
	quick_leave();
	return 0;
}

static int quick_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)bad;
	quick_enter();
	for (; wr; wr = wr->next)
		quick_complete(qp->recv_cq, wr->wr_id, IBV_WC_RECV, wr->sg_list, qp->qp_num);
	quick_leave();
	return 0;
}

static int quick_poll_cq(struct ibv_cq *ibv_cq, int count, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibv_cq;
	int found;

	quick_enter();
	for (found = 0; found < count && cq->head != cq->tail; found++)
		wc[found] = cq->wc[cq->head++ % 4096u];
	quick_leave();
	return found;
}

static void quick_take(struct ibv_context_ops *ops)
{
	ops->post_send = quick_post_send;
	ops->post_recv = quick_post_recv;
	ops->poll_cq = quick_poll_cq;
}

__attribute__((constructor)) static void quick_install(void)
{
	fake_other_ops = quick_take;
	fake_vendor = 0x0002c9; /* a vendor whose library makes no system call here */
}
