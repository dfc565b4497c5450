// SPDX-License-Identifier: BSD-2-Clause
/* The stand-in's queue pairs and shared receive queues, and what is posted to them. */
#include "fake_inner.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake_qp *fake_qps;
static unsigned posts, doorbells, fences, inlines, solicited;

static _Atomic bool is_raising_pipe;

void fake_raise_pipe(bool is_raising)
{
	atomic_store(&is_raising_pipe, is_raising);
}

unsigned fake_posts(void)
{
	return fake_read_count(&posts);
}

unsigned fake_doorbells(void)
{
	return fake_read_count(&doorbells);
}

unsigned fake_fences(void)
{
	return fake_read_count(&fences);
}

unsigned fake_inlines(void)
{
	return fake_read_count(&inlines);
}

unsigned fake_solicited(void)
{
	return fake_read_count(&solicited);
}

/* --- queue pairs --- */

struct ibv_qp *fake_qp(void)
{
	struct fake_qp *qp;

	pthread_mutex_lock(&fake_lock);
	for (qp = fake_qps; qp && qp->state != IBV_QPS_RTS; qp = qp->next)
		;
	pthread_mutex_unlock(&fake_lock);
	return qp ? &qp->qp : NULL;
}

struct fake_qp *fake_qp_by_number(uint32_t number)
{
	struct fake_qp *qp = fake_qps;

	while (qp && qp->qp.qp_num != number)
		qp = qp->next;
	return qp;
}

static void work_add(struct fake_work **queue, struct fake_work *work)
{
	while (*queue)
		queue = &(*queue)->next;
	*queue = work;
}

struct fake_work *fake_work_take(struct fake_work **queue)
{
	struct fake_work *work = *queue;

	if (work)
		*queue = work->next;
	return work;
}

void fake_work_free(struct fake_work *work)
{
	free(work->bind);
	free(work);
}

static void work_drop_all(struct fake_work **queue)
{
	struct fake_work *work;

	while ((work = fake_work_take(queue)))
		fake_work_free(work);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct fake_qp *qp = NULL;

	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		qp = calloc(1, sizeof(*qp));
		qp->qp = (struct ibv_qp){.context = pd->context,
					 .qp_context = init->qp_context,
					 .pd = pd,
					 .send_cq = init->send_cq,
					 .recv_cq = init->recv_cq,
					 .srq = init->srq,
					 .qp_num = ++fake_last_number,
					 .qp_type = init->qp_type};
		qp->cap = init->cap;
		qp->next = fake_qps;
		fake_qps = qp;
		fake_count(1);
	}
	pthread_mutex_unlock(&fake_lock);
	return qp ? &qp->qp : NULL;
}

int ibv_destroy_qp(struct ibv_qp *ibv_qp)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	struct fake_qp **link = &fake_qps;

	pthread_mutex_lock(&fake_lock);
	fake_drop_events(qp, &qp->events);
	while (*link != qp)
		link = &(*link)->next;
	*link = qp->next;
	fake_count(-1);
	work_drop_all(&qp->sends);
	work_drop_all(&qp->recvs);
	work_drop_all(&qp->held);
	if (qp->qp.srq) /* as libmlx5 */
		fake_cq_clean(qp->qp.recv_cq, qp->qp.qp_num);
	pthread_mutex_unlock(&fake_lock);
	free(qp);
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	(void)mask;
	(void)init;
	pthread_mutex_lock(&fake_lock);
	attr->qp_state = ((struct fake_qp *)qp)->state;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* --- posts --- */

static struct fake_work *work_make(uint64_t wr_id, const struct ibv_sge *sge, int count)
{
	struct fake_work *work = calloc(1, sizeof(*work));

	work->wr_id = wr_id;
	work->count = (uint32_t)count;
	if (count)
		memcpy(work->sge, sge, (size_t)count * sizeof(*sge));
	return work;
}

/* Copies inline data, which belong to the provider again after the call. */
static void take_inline(struct fake_work *work)
{
	unsigned char *to = work->bytes;

	for (uint32_t i = 0; i < work->count; i++) {
		memcpy(to, (void *)(uintptr_t)work->sge[i].addr, work->sge[i].length);
		work->sge[i].addr = (uintptr_t)to;
		to += work->sge[i].length;
	}
	work->is_inline = true;
}

static void set_remote(struct fake_work *work, const struct ibv_send_wr *wr)
{
	if (!fake_is_atomic(work)) {
		work->remote_addr = wr->wr.rdma.remote_addr;
		work->rkey = wr->wr.rdma.rkey;
		return;
	}
	work->remote_addr = wr->wr.atomic.remote_addr;
	work->rkey = wr->wr.atomic.rkey;
	work->compare_add = wr->wr.atomic.compare_add;
	work->swap = wr->wr.atomic.swap;
}

int fake_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	int rc = 0;

	if (atomic_load(&is_raising_pipe))
		pthread_kill(pthread_self(), SIGPIPE);

	pthread_mutex_lock(&fake_lock);
	fake_count_cancellable();
	doorbells++;
	*bad = wr;
	if (fake_fails("ibv_post_send", ENOMEM))
		rc = ENOMEM;
	for (; wr && !rc; wr = wr->next) {
		struct fake_work *work = work_make(wr->wr_id, wr->sg_list, wr->num_sge);

		posts++;
		fences += (wr->send_flags & IBV_SEND_FENCE) != 0;
		inlines += (wr->send_flags & IBV_SEND_INLINE) != 0;
		solicited += (wr->send_flags & IBV_SEND_SOLICITED) != 0;
		work->flags = (int)wr->send_flags;
		work->opcode = wr->opcode;
		work->imm = wr->imm_data;
		set_remote(work, wr);
		if (wr->send_flags & IBV_SEND_INLINE)
			take_inline(work);
		if (qp->state == IBV_QPS_ERR)
			fake_complete(qp, qp->qp.send_cq, work, IBV_WC_WR_FLUSH_ERR, 0, false);
		else
			work_add(&qp->sends, work);
	}
	if (!rc)
		fake_progress(qp);
	fake_leave_if_asked(qp);
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

/* Does a request posted now, with a fence, have to wait for RDMA Reads? */
static bool has_reads(const struct fake_qp *qp)
{
	const struct fake_work *work = qp->sends;

	while (work && (work->opcode != IBV_WR_RDMA_READ || work->is_done))
		work = work->next;
	return work;
}

int fake_post_bind(struct ibv_qp *ibv_qp, const struct ibv_mw_bind *asked, struct fake_bind *bind)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	struct fake_work *work = work_make(asked->wr_id, NULL, 0);

	work->flags = (int)asked->send_flags;
	work->opcode = IBV_WR_BIND_MW;
	work->bind = bind;
	posts++;
	doorbells++;
	fences += (asked->send_flags & IBV_SEND_FENCE) != 0;
	if (qp->state == IBV_QPS_ERR) {
		fake_complete(qp, qp->qp.send_cq, work, IBV_WC_WR_FLUSH_ERR, 0, false);
		return 0;
	}
	if (fake_next_status == IBV_WC_SUCCESS &&
	    !((asked->send_flags & IBV_SEND_FENCE) && has_reads(qp)))
		(void)fake_mw_status(bind, qp->qp.pd);
	work_add(&qp->sends, work);
	fake_progress(qp);
	return 0;
}

bool fake_bind_is_queued(const struct fake_mw *mw)
{
	for (const struct fake_qp *qp = fake_qps; qp; qp = qp->next)
		for (const struct fake_work *work = qp->sends; work; work = work->next)
			if (work->bind && work->bind->mw == mw)
				return true;
	return false;
}

static struct fake_qp *qp_of_srq(void)
{
	struct fake_qp *qp = fake_qps;

	while (!qp->qp.srq)
		qp = qp->next;
	return qp;
}

static struct fake_work *buffer_take(struct fake_qp *qp)
{
	return fake_work_take(&((struct fake_srq *)qp->qp.srq)->recvs);
}

void fake_take_buffer(void)
{
	struct fake_work *buffer;
	struct fake_qp *qp;

	pthread_mutex_lock(&fake_lock);
	qp = qp_of_srq();
	buffer = buffer_take(qp);
	buffer->next = NULL;
	work_add(&qp->held, buffer);
	pthread_mutex_unlock(&fake_lock);
}

void fake_fill_buffers(unsigned count)
{
	struct fake_qp *qp;

	pthread_mutex_lock(&fake_lock);
	qp = qp_of_srq();
	while (count--)
		fake_complete(qp, qp->qp.recv_cq, buffer_take(qp), IBV_WC_SUCCESS, 8, false);
	pthread_mutex_unlock(&fake_lock);
}

void fake_fail_srq(void)
{
	pthread_mutex_lock(&fake_lock);
	fake_async_of_srq_locked(qp_of_srq()->qp.srq);
	pthread_mutex_unlock(&fake_lock);
}

static void serve_senders(const struct ibv_srq *srq, uint32_t number)
{
	for (struct fake_qp *qp = fake_qps; qp; qp = qp->next) {
		struct fake_qp *remote = fake_qp_by_number(qp->remote);

		if (remote && (srq ? remote->qp.srq == srq : remote->qp.qp_num == number))
			fake_progress(qp);
	}
}

int fake_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	int rc = 0;

	pthread_mutex_lock(&fake_lock);
	fake_count_cancellable();
	*bad = wr;
	if (fake_fails("ibv_post_recv", ENOMEM))
		rc = ENOMEM;
	if (fake_is_iwarp() && !wr->num_sge) /* as siw */
		rc = EINVAL;
	for (; wr && !rc; wr = wr->next) {
		struct fake_work *work = work_make(wr->wr_id, wr->sg_list, wr->num_sge);

		work->is_recv = true;
		if (qp->state == IBV_QPS_ERR)
			fake_complete(qp, qp->qp.recv_cq, work, IBV_WC_WR_FLUSH_ERR, 0, false);
		else
			work_add(&qp->recvs, work);
	}
	serve_senders(NULL, qp->qp.qp_num);
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

int ibv_modify_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	int rc = 0;

	pthread_mutex_lock(&fake_lock);
	if (attr->qp_state == IBV_QPS_ERR) {
		fake_qp_error(qp);
	} else if (fake_fails(__func__, EINVAL)) {
		rc = EINVAL;
	} else {
		qp->state = attr->qp_state;
		if (qp->state == IBV_QPS_INIT)
			qp->access = attr->qp_access_flags;
		if (mask & IBV_QP_DEST_QPN)
			qp->remote = attr->dest_qp_num;
		if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
			qp->reads_most = attr->max_rd_atomic;
		if (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS)
			serve_senders(NULL, qp->qp.qp_num);
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

/* --- shared receive queues --- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct fake_srq *srq = NULL;

	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		srq = calloc(1, sizeof(*srq));
		srq->srq.srq_context = init->srq_context;
		srq->srq.context = pd->context;
		srq->srq.pd = pd;
		fake_count(1);
	}
	pthread_mutex_unlock(&fake_lock);
	return srq ? &srq->srq : NULL;
}

bool fake_pd_is_used(const struct ibv_pd *pd)
{
	const struct fake_qp *qp = fake_qps;

	while (qp && qp->qp.pd != pd)
		qp = qp->next;
	return qp;
}

static bool srq_is_used(const struct ibv_srq *srq)
{
	const struct fake_qp *qp = fake_qps;

	while (qp && qp->qp.srq != srq)
		qp = qp->next;
	return qp;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	bool is_used;

	pthread_mutex_lock(&fake_lock);
	is_used = srq_is_used(srq);
	if (!is_used) {
		fake_drop_events(srq, &((struct fake_srq *)srq)->events);
		fake_count(-1);
		work_drop_all(&((struct fake_srq *)srq)->recvs);
	}
	pthread_mutex_unlock(&fake_lock);
	if (is_used)
		return EBUSY;
	free(srq);
	return 0;
}

int fake_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_srq *srq = (struct fake_srq *)ibv_srq;
	int rc = 0;

	pthread_mutex_lock(&fake_lock);
	fake_count_cancellable();
	*bad = wr;
	if (fake_fails("ibv_post_srq_recv", ENOMEM)) {
		rc = ENOMEM;
	} else if (fake_is_iwarp() && !wr->num_sge) { /* as siw */
		rc = EINVAL;
	} else {
		struct fake_work *work = work_make(wr->wr_id, wr->sg_list, wr->num_sge);

		work->is_recv = true;
		work_add(&srq->recvs, work);
		serve_senders(ibv_srq, 0);
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}
