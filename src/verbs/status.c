// SPDX-License-Identifier: BSD-2-Clause
/* The status of a completion: the DAT status for what the device reports. */
#include "core/transport.h"
#include "core/ep/ep.h"
#include "core/mem/mem.h"
#include "core/mem/pz.h"
#include "verbs/adapter.h"
#include "verbs/completion.h"
#include "verbs/conn.h"
#include "verbs/device.h"

DAT_DTO_COMPLETION_STATUS vrb_status(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return DAT_DTO_SUCCESS;
	case IBV_WC_WR_FLUSH_ERR:
		return DAT_DTO_ERR_FLUSHED;
	case IBV_WC_LOC_LEN_ERR:
		return DAT_DTO_ERR_LOCAL_LENGTH;
	case IBV_WC_LOC_QP_OP_ERR:
	case IBV_WC_LOC_EEC_OP_ERR:
	case IBV_WC_LOC_RDD_VIOL_ERR:
	case IBV_WC_INV_EECN_ERR:
	case IBV_WC_INV_EEC_STATE_ERR:
		return DAT_DTO_ERR_LOCAL_EP;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	case IBV_WC_MW_BIND_ERR:
		return DAT_RMR_OPERATION_FAILED;
	case IBV_WC_BAD_RESP_ERR:
		return DAT_DTO_ERR_BAD_RESPONSE;
	case IBV_WC_REM_ACCESS_ERR:
		return DAT_DTO_ERR_REMOTE_ACCESS;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_INV_RD_REQ_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return DAT_DTO_ERR_REMOTE_RESPONDER;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return DAT_DTO_ERR_RECEIVER_NOT_READY;
	default: /* RETRY_EXC, FATAL, RESP_TIMEOUT, GENERAL, and values that are not defined yet */
		return DAT_DTO_ERR_TRANSPORT;
	}
}

/* Are the segments still valid, as they were when the call checked them? */
static bool segments_are_valid(struct core_ia *ia, const DAT_LMR_TRIPLET *iov, uint32_t count,
			       const struct core_pz *pz, enum core_mem_use use)
{
	for (uint32_t i = 0; i < count; i++) {
		struct core_lmr *lmr = core_mem_get(ia->mem, &iov[i], pz, use);

		if (!lmr)
			return false;
		core_mem_put(lmr);
	}
	return true;
}

/*
 * Some devices (rxe) report every fault of a work request as a "local queue pair operation error".
 * The core can check whether the memory is the cause. If it is not, a Receive was too small.
 */
static bool is_unspecific(enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_GENERAL_ERR ||
	       status == IBV_WC_FATAL_ERR;
}

DAT_DTO_COMPLETION_STATUS vrb_request_status(struct core_ep *ep, const struct core_req *req,
					     enum ibv_wc_status status)
{
	bool is_read = req->op == CORE_OP_RDMA_READ;

	if (is_unspecific(status) &&
	    !segments_are_valid(ep->ia, req->iov, req->segments, ep->pz,
				is_read ? CORE_MEM_TARGET : CORE_MEM_SOURCE))
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	if (is_unspecific(status) && !vrb_device_is_up(vrb_adapter_of(ep->ia)))
		return DAT_DTO_ERR_TRANSPORT; /* rxe reports this also when there is no route */
	return vrb_status(status);
}

/*
 * When the peer has closed the stream and the connection manager has not reported it yet, TCP
 * accepts nothing more and siw fails the request. A moment later siw would flush the same request.
 */
bool vrb_is_flush(struct vrb_conn *conn, struct core_ep *ep, const struct core_req *req,
		  enum ibv_wc_status status)
{
	return status == IBV_WC_WR_FLUSH_ERR ||
	       (conn->adapter->is_siw && status == IBV_WC_LOC_QP_OP_ERR &&
		vrb_request_status(ep, req, status) != DAT_DTO_ERR_LOCAL_PROTECTION);
}

DAT_DTO_COMPLETION_STATUS vrb_recv_status(struct core_ep *ep, const struct core_wqe *wqe,
					  enum ibv_wc_status status)
{
	if (is_unspecific(status) &&
	    !segments_are_valid(ep->ia, wqe->iov, wqe->segments, core_recv_pz(ep), CORE_MEM_TARGET))
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	if (status == IBV_WC_SUCCESS) /* an RDMA Write with immediate data, from a foreign peer */
		return DAT_DTO_ERR_BAD_RESPONSE;
	return status == IBV_WC_LOC_QP_OP_ERR ? DAT_DTO_ERR_LOCAL_LENGTH : vrb_status(status);
}
