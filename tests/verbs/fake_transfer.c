// SPDX-License-Identifier: BSD-2-Clause
/* The stand-in's transfers: how requests are carried out and completed. */
#include "fake_inner.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum ibv_wc_status fake_next_status;
static bool next_is_write;    /* fake_write_next */
static bool is_holding_reads; /* fake_hold_reads */
static bool is_silent_srq;    /* fake_silent_srqs */

void fake_status(enum ibv_wc_status status)
{
	pthread_mutex_lock(&fake_lock);
	fake_next_status = status;
	pthread_mutex_unlock(&fake_lock);
}

void fake_write_next(void)
{
	pthread_mutex_lock(&fake_lock);
	next_is_write = true;
	pthread_mutex_unlock(&fake_lock);
}

static enum ibv_wc_opcode done_opcode(const struct fake_work *work)
{
	bool is_write = next_is_write;

	if (work->is_recv) {
		next_is_write = false;
		return is_write || work->has_imm_only ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	}
	switch (work->opcode) {
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	default:
		return IBV_WC_SEND;
	}
}

void fake_complete(struct fake_qp *qp, struct ibv_cq *cq, struct fake_work *work,
		   enum ibv_wc_status status, uint32_t len, bool has_imm)
{
	struct ibv_wc wc = {.wr_id = work->wr_id,
			    .status = status,
			    .opcode = done_opcode(work),
			    .byte_len = len,
			    .qp_num = qp->qp.qp_num,
			    .wc_flags = has_imm ? IBV_WC_WITH_IMM : 0,
			    .imm_data = work->imm};

	if (status != IBV_WC_SUCCESS || work->is_recv || (work->flags & IBV_SEND_SIGNALED))
		fake_cq_add(cq, &wc);
	fake_work_free(work);
}

void fake_silent_srqs(bool is_silent)
{
	pthread_mutex_lock(&fake_lock);
	is_silent_srq = is_silent;
	pthread_mutex_unlock(&fake_lock);
}

void fake_flush_held(struct fake_qp *qp)
{
	struct fake_work *held;

	while ((held = fake_work_take(&qp->held)))
		fake_complete(qp, qp->qp.recv_cq, held, IBV_WC_WR_FLUSH_ERR, 0, false);
}

void fake_qp_error(struct fake_qp *qp)
{
	struct fake_work *work;

	if (qp->state == IBV_QPS_ERR)
		return;
	qp->state = IBV_QPS_ERR;
	while ((work = fake_work_take(&qp->sends)))
		fake_complete(qp, qp->qp.send_cq, work, IBV_WC_WR_FLUSH_ERR, 0, false);
	while ((work = fake_work_take(&qp->recvs)))
		fake_complete(qp, qp->qp.recv_cq, work, IBV_WC_WR_FLUSH_ERR, 0, false);
	if (is_silent_srq)
		fake_flush_held(qp);
	else if (qp->qp.srq)
		fake_async_locked(IBV_EVENT_QP_LAST_WQE_REACHED, &qp->qp);
}

/* A copy where the kernel lacks the call, as in emulators. */
static bool copy_through_pipe(uint8_t *to, const uint8_t *from, uint64_t len)
{
	uint64_t done = 0;
	int ends[2];

	if (pipe(ends))
		return false;
	while (done < len) {
		const uint64_t part = len - done < 4096 ? len - done : 4096;

		if (write(ends[1], from + done, part) != (ssize_t)part ||
		    read(ends[0], to + done, part) != (ssize_t)part)
			break;
		done += part;
	}
	close(ends[0]);
	close(ends[1]);
	return done == len;
}

/* Copies as a device does: memory that is gone fails the transfer, not the process. */
static bool copy_piece(uint64_t to, uint64_t from, uint64_t len)
{
	const struct iovec out = {(void *)(uintptr_t)to, len};
	const struct iovec in = {(void *)(uintptr_t)from, len};
	const ssize_t n = process_vm_writev(getpid(), &in, 1, &out, 1, 0);

	if (n < 0 && errno == ENOSYS)
		return copy_through_pipe(out.iov_base, in.iov_base, len);
	return n == (ssize_t)len;
}

static bool copy_sges(const struct fake_work *from, const struct fake_work *to, uint64_t len)
{
	uint64_t done = 0, in = 0, out = 0;
	uint32_t i = 0, j = 0;

	while (done < len) {
		uint64_t piece;

		if (in == from->sge[i].length) {
			i++;
			in = 0;
			continue;
		}
		if (out == to->sge[j].length) {
			j++;
			out = 0;
			continue;
		}
		piece = from->sge[i].length - in;
		if (piece > to->sge[j].length - out)
			piece = to->sge[j].length - out;
		if (!copy_piece(to->sge[j].addr + out, from->sge[i].addr + in, piece))
			return false;
		in += piece;
		out += piece;
		done += piece;
	}
	return true;
}

static void remote_failed(struct fake_qp *remote, enum ibv_event_type type)
{
	fake_async_locked(type, &remote->qp);
	fake_qp_error(remote);
}

/* False: the message waits for a Receive. */
static bool do_send(struct fake_qp *qp, struct fake_qp *remote, struct fake_work *work,
		    enum ibv_wc_status *status)
{
	struct fake_work **queue =
		remote->qp.srq ? &((struct fake_srq *)remote->qp.srq)->recvs : &remote->recvs;
	uint64_t len = fake_sges_len(work->sge, work->count);
	struct fake_work *recv;

	if (!*queue && fake_is_iwarp()) { /* it cannot wait */
		*status = IBV_WC_SUCCESS;
		remote_failed(remote, IBV_EVENT_QP_FATAL);
		return true;
	}
	recv = fake_work_take(queue);
	if (!recv)
		return false;
	if (len > fake_sges_len(recv->sge, recv->count)) {
		fake_complete(remote, remote->qp.recv_cq, recv, IBV_WC_LOC_LEN_ERR, 0, false);
		fake_qp_error(remote);
		*status = IBV_WC_REM_INV_REQ_ERR;
	} else if (!fake_sges_are_good(remote, recv->sge, recv->count, IBV_ACCESS_LOCAL_WRITE) ||
		   !copy_sges(work, recv, len)) {
		fake_complete(remote, remote->qp.recv_cq, recv, IBV_WC_LOC_PROT_ERR, 0, false);
		fake_qp_error(remote);
		*status = IBV_WC_REM_OP_ERR;
	} else {
		recv->imm = work->imm;
		fake_complete(remote, remote->qp.recv_cq, recv, IBV_WC_SUCCESS, (uint32_t)len,
			      work->opcode == IBV_WR_SEND_WITH_IMM);
	}
	(void)qp;
	return true;
}

static enum ibv_wc_status do_rdma(struct fake_qp *remote, const struct fake_work *work)
{
	bool is_read = work->opcode == IBV_WR_RDMA_READ;
	struct fake_work other = {.count = 1};
	uint64_t len = fake_sges_len(work->sge, work->count);

	int access = is_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;

	other.sge[0] = (struct ibv_sge){work->remote_addr, (uint32_t)len, work->rkey};
	if (len && !fake_mem_is_good(work->rkey, remote->qp.pd, work->remote_addr, len, access) &&
	    !fake_mw_is_good(work->rkey, remote->qp.pd, work->remote_addr, len, access)) {
		remote_failed(remote, IBV_EVENT_QP_ACCESS_ERR);
		return IBV_WC_REM_ACCESS_ERR;
	}
	if (is_read ? copy_sges(&other, work, len) : copy_sges(work, &other, len))
		return IBV_WC_SUCCESS;
	remote_failed(remote, IBV_EVENT_QP_FATAL);
	return IBV_WC_REM_OP_ERR;
}

/* The immediate data take a Receive behind the bytes. False: they wait for one. */
static bool do_write_imm(struct fake_qp *remote, const struct fake_work *work,
			 enum ibv_wc_status *status)
{
	struct fake_work **queue =
		remote->qp.srq ? &((struct fake_srq *)remote->qp.srq)->recvs : &remote->recvs;
	struct fake_work *recv;

	if (!*queue)
		return false;
	*status = do_rdma(remote, work);
	if (*status != IBV_WC_SUCCESS)
		return true;
	recv = fake_work_take(queue);
	recv->has_imm_only = true;
	recv->imm = work->imm;
	fake_complete(remote, remote->qp.recv_cq, recv, IBV_WC_SUCCESS,
		      (uint32_t)fake_sges_len(work->sge, work->count), true);
	return true;
}

static enum ibv_wc_status do_atomic(struct fake_qp *remote, const struct fake_work *work)
{
	uint64_t *word = (uint64_t *)(uintptr_t)work->remote_addr, before = work->compare_add;

	if (work->count != 1 || work->sge->length != sizeof(before))
		return IBV_WC_LOC_LEN_ERR;
	if (!(remote->access & IBV_ACCESS_REMOTE_ATOMIC) || work->remote_addr % sizeof(before) ||
	    (!fake_mem_is_good(work->rkey, remote->qp.pd, work->remote_addr, sizeof(before),
			       IBV_ACCESS_REMOTE_ATOMIC) &&
	     !fake_mw_is_good(work->rkey, remote->qp.pd, work->remote_addr, sizeof(before),
			      IBV_ACCESS_REMOTE_ATOMIC))) {
		remote_failed(remote, IBV_EVENT_QP_ACCESS_ERR);
		return IBV_WC_REM_ACCESS_ERR;
	}
	if (work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		before = __atomic_fetch_add(word, work->compare_add, __ATOMIC_SEQ_CST);
	else
		(void)__atomic_compare_exchange_n(word, &before, work->swap, false,
						  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	memcpy((void *)(uintptr_t)work->sge->addr, &before, sizeof(before));
	return IBV_WC_SUCCESS;
}

/*
 * Finds the oldest request that is not carried out and may start now. A Read that is held back
 * starts here, and does not prevent the next one from starting. NULL: none, or it has to wait.
 */
static struct fake_work *next_work(const struct fake_qp *qp)
{
	uint32_t reads = 0; /* in flight */

	for (struct fake_work *work = qp->sends; work; work = work->next) {
		if (work->is_done && work->status != IBV_WC_SUCCESS)
			return NULL;
		if (work->is_done)
			continue;
		if (reads && (work->flags & IBV_SEND_FENCE))
			return NULL;
		if (work->opcode != IBV_WR_RDMA_READ || !is_holding_reads)
			return work;
		if (qp->reads_most && reads >= qp->reads_most)
			return NULL;
		work->is_in_flight = true;
		reads++;
	}
	return NULL;
}

/* The privileges that the target of an RDMA Read needs. */
static int sink_access(void)
{
	return IBV_ACCESS_LOCAL_WRITE | (fake_is_iwarp() ? IBV_ACCESS_REMOTE_WRITE : 0);
}

/* False: the request has to wait. */
static bool do_request(struct fake_qp *qp, struct fake_qp *remote, struct fake_work *work,
		       enum ibv_wc_status *status)
{
	switch (work->opcode) {
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		*status = do_atomic(remote, work);
		return true;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		*status = do_rdma(remote, work);
		return true;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return do_write_imm(remote, work, status);
	default:
		return do_send(qp, remote, work, status);
	}
}

static bool carry_out(struct fake_qp *qp, struct fake_qp *remote, struct fake_work *work)
{
	enum ibv_wc_status status = fake_next_status;
	bool is_read = work->opcode == IBV_WR_RDMA_READ || fake_is_atomic(work);

	fake_next_status = IBV_WC_SUCCESS;
	if (status == IBV_WC_SUCCESS && work->bind)
		status = fake_mw_status(work->bind, qp->qp.pd);
	else if (status == IBV_WC_SUCCESS && !work->is_inline &&
		 !fake_sges_are_good(qp, work->sge, work->count, is_read ? sink_access() : 0))
		status = IBV_WC_LOC_PROT_ERR;
	else if (status == IBV_WC_SUCCESS && !do_request(qp, remote, work, &status))
		return false;
	work->is_done = true;
	work->status = status;
	return true;
}

/* Requests complete in their order. */
static void complete_done(struct fake_qp *qp)
{
	while (qp->sends && qp->sends->is_done) {
		struct fake_work *work = fake_work_take(&qp->sends);
		enum ibv_wc_status status = work->status;

		fake_complete(qp, qp->qp.send_cq, work, status, 0, false);
		if (status != IBV_WC_SUCCESS)
			fake_qp_error(qp);
	}
}

void fake_progress(struct fake_qp *qp)
{
	struct fake_qp *remote = fake_qp_by_number(qp->remote);
	bool has_peer = remote && (remote->state == IBV_QPS_RTR || remote->state == IBV_QPS_RTS);

	while (qp->state == IBV_QPS_RTS) {
		struct fake_work *work = next_work(qp);

		/* a bind concerns no peer */
		if (!work || (!has_peer && !work->bind) || !carry_out(qp, remote, work))
			return;
		complete_done(qp);
	}
}

void fake_hold_reads(bool hold)
{
	pthread_mutex_lock(&fake_lock);
	is_holding_reads = hold;
	for (struct fake_qp *qp = fake_qps; qp; qp = qp->next)
		fake_progress(qp);
	pthread_mutex_unlock(&fake_lock);
}

unsigned fake_reads(void)
{
	unsigned count = 0;

	pthread_mutex_lock(&fake_lock);
	for (const struct fake_qp *qp = fake_qps; qp; qp = qp->next)
		for (const struct fake_work *work = qp->sends; work; work = work->next)
			count += work->is_in_flight && !work->is_done;
	pthread_mutex_unlock(&fake_lock);
	return count;
}
