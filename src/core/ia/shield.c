// SPDX-License-Identifier: BSD-2-Clause
/*
 * The entry points as they stand in the provider table. A thread may be cancelled at any time, and
 * many system calls are cancellation points: what would be left behind is a lock that is held, or
 * an object half destroyed. So these calls run with cancellation off, and a request to cancel acts
 * when the call is over. dat_evd_wait and dat_cno_wait see to it themselves (wait.c), and the calls
 * of the data path where they come to such a system call (cancel.h).
 */
#include "core/ia/shield.h"

#include "core/base/cancel.h"

#define SHIELD(name, parameters, arguments)                                                        \
	DAT_RETURN shield_##name parameters                                                        \
	{                                                                                          \
		DAT_RETURN ret;                                                                    \
		int state = core_cancel_off();                                                     \
                                                                                                   \
		ret = core_##name arguments;                                                       \
		core_cancel_restore(state);                                                        \
		return ret;                                                                        \
	}

/* clang-format off */
SHIELD(ia_open_safe,
	(const DAT_NAME_PTR name, DAT_COUNT async_evd_qlen, DAT_EVD_HANDLE *async_evd_handle, DAT_IA_HANDLE *ia_handle),
	(name, async_evd_qlen, async_evd_handle, ia_handle))
SHIELD(ia_open_unsafe,
	(const DAT_NAME_PTR name, DAT_COUNT async_evd_qlen, DAT_EVD_HANDLE *async_evd_handle, DAT_IA_HANDLE *ia_handle),
	(name, async_evd_qlen, async_evd_handle, ia_handle))
SHIELD(lmr_create,
	(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region_description, DAT_VLEN length, DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length, DAT_VADDR *registered_address),
	(ia_handle, mem_type, region_description, length, pz_handle, privileges, lmr_handle, lmr_context, rmr_context, registered_length, registered_address))
SHIELD(evd_create,
	(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen, DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags, DAT_EVD_HANDLE *evd_handle),
	(ia_handle, evd_min_qlen, cno_handle, evd_flags, evd_handle))
SHIELD(evd_modify_cno,
	(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle),
	(evd_handle, cno_handle))
SHIELD(cno_create,
	(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE *cno_handle),
	(ia_handle, agent, cno_handle))
SHIELD(cno_modify_agent,
	(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent),
	(cno_handle, agent))
SHIELD(cno_query,
	(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK cno_param_mask, DAT_CNO_PARAM *cno_param),
	(cno_handle, cno_param_mask, cno_param))
SHIELD(cno_free,
	(DAT_CNO_HANDLE cno_handle),
	(cno_handle))
SHIELD(evd_enable,
	(DAT_EVD_HANDLE evd_handle),
	(evd_handle))
SHIELD(evd_disable,
	(DAT_EVD_HANDLE evd_handle),
	(evd_handle))
SHIELD(evd_set_unwaitable,
	(DAT_EVD_HANDLE evd_handle),
	(evd_handle))
SHIELD(evd_clear_unwaitable,
	(DAT_EVD_HANDLE evd_handle),
	(evd_handle))
SHIELD(ia_query,
	(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle, DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_attr_mask, DAT_PROVIDER_ATTR *provider_attr),
	(ia_handle, async_evd_handle, ia_attr_mask, ia_attr, provider_attr_mask, provider_attr))
SHIELD(ia_close,
	(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags),
	(ia_handle, close_flags))
SHIELD(cr_query,
	(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask, DAT_CR_PARAM *cr_param),
	(cr_handle, cr_param_mask, cr_param))
SHIELD(cr_accept,
	(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle, DAT_COUNT private_data_size, const DAT_PVOID private_data),
	(cr_handle, ep_handle, private_data_size, private_data))
SHIELD(cr_reject,
	(DAT_CR_HANDLE cr_handle),
	(cr_handle))
SHIELD(cr_handoff,
	(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff),
	(cr_handle, handoff))
SHIELD(evd_resize,
	(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen),
	(evd_handle, evd_min_qlen))
SHIELD(evd_post_se,
	(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event),
	(evd_handle, event))
SHIELD(evd_query,
	(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask, DAT_EVD_PARAM *evd_param),
	(evd_handle, evd_param_mask, evd_param))
SHIELD(evd_free,
	(DAT_EVD_HANDLE evd_handle),
	(evd_handle))
SHIELD(ep_create,
	(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_completion_evd_handle, DAT_EVD_HANDLE request_completion_evd_handle, DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle),
	(ia_handle, pz_handle, recv_completion_evd_handle, request_completion_evd_handle, connect_evd_handle, ep_attributes, ep_handle))
SHIELD(ep_query,
	(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask, DAT_EP_PARAM *ep_param),
	(ep_handle, ep_param_mask, ep_param))
SHIELD(ep_modify,
	(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask, const DAT_EP_PARAM *ep_param),
	(ep_handle, ep_param_mask, ep_param))
SHIELD(ep_connect,
	(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address, DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout, DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags),
	(ep_handle, remote_ia_address, remote_conn_qual, timeout, private_data_size, private_data, quality_of_service, connect_flags))
SHIELD(ep_dup_connect,
	(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle, DAT_TIMEOUT timeout, DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS quality_of_service),
	(ep_handle, ep_dup_handle, timeout, private_data_size, private_data, quality_of_service))
SHIELD(ep_disconnect,
	(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags),
	(ep_handle, close_flags))
SHIELD(ep_get_status,
	(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state, DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle),
	(ep_handle, ep_state, recv_idle, request_idle))
SHIELD(ep_free,
	(DAT_EP_HANDLE ep_handle),
	(ep_handle))
SHIELD(ep_reset,
	(DAT_EP_HANDLE ep_handle),
	(ep_handle))
SHIELD(ep_create_with_srq,
	(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle, DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle, const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle),
	(ia_handle, pz_handle, recv_evd_handle, request_evd_handle, connect_evd_handle, srq_handle, ep_attributes, ep_handle))
SHIELD(ep_recv_query,
	(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated, DAT_COUNT *bufs_alloc_span),
	(ep_handle, nbufs_allocated, bufs_alloc_span))
SHIELD(ep_set_watermark,
	(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark, DAT_COUNT hard_high_watermark),
	(ep_handle, soft_high_watermark, hard_high_watermark))
SHIELD(lmr_query,
	(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask, DAT_LMR_PARAM *lmr_param),
	(lmr_handle, lmr_param_mask, lmr_param))
SHIELD(lmr_free,
	(DAT_LMR_HANDLE lmr_handle),
	(lmr_handle))
SHIELD(lmr_sync_rdma_read,
	(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments, DAT_VLEN num_segments),
	(ia_handle, local_segments, num_segments))
SHIELD(lmr_sync_rdma_write,
	(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments, DAT_VLEN num_segments),
	(ia_handle, local_segments, num_segments))
SHIELD(rmr_create,
	(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle),
	(pz_handle, rmr_handle))
SHIELD(rmr_query,
	(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask, DAT_RMR_PARAM *rmr_param),
	(rmr_handle, rmr_param_mask, rmr_param))
SHIELD(rmr_bind,
	(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *lmr_triplet, DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags, DAT_RMR_CONTEXT *context),
	(rmr_handle, lmr_triplet, mem_priv, ep_handle, user_cookie, completion_flags, context))
SHIELD(rmr_free,
	(DAT_RMR_HANDLE rmr_handle),
	(rmr_handle))
SHIELD(psp_create,
	(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags, DAT_PSP_HANDLE *psp_handle),
	(ia_handle, conn_qual, evd_handle, psp_flags, psp_handle))
SHIELD(psp_create_any,
	(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags, DAT_PSP_HANDLE *psp_handle),
	(ia_handle, conn_qual, evd_handle, psp_flags, psp_handle))
SHIELD(psp_query,
	(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask, DAT_PSP_PARAM *psp_param),
	(psp_handle, psp_param_mask, psp_param))
SHIELD(psp_free,
	(DAT_PSP_HANDLE psp_handle),
	(psp_handle))
SHIELD(rsp_create,
	(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE *rsp_handle),
	(ia_handle, conn_qual, ep_handle, evd_handle, rsp_handle))
SHIELD(rsp_query,
	(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask, DAT_RSP_PARAM *rsp_param),
	(rsp_handle, rsp_param_mask, rsp_param))
SHIELD(rsp_free,
	(DAT_RSP_HANDLE rsp_handle),
	(rsp_handle))
SHIELD(pz_create,
	(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle),
	(ia_handle, pz_handle))
SHIELD(pz_query,
	(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask, DAT_PZ_PARAM *pz_param),
	(pz_handle, pz_param_mask, pz_param))
SHIELD(pz_free,
	(DAT_PZ_HANDLE pz_handle),
	(pz_handle))
SHIELD(srq_create,
	(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle),
	(ia_handle, pz_handle, srq_attr, srq_handle))
SHIELD(srq_free,
	(DAT_SRQ_HANDLE srq_handle),
	(srq_handle))
SHIELD(srq_query,
	(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask, DAT_SRQ_PARAM *srq_param),
	(srq_handle, srq_param_mask, srq_param))
SHIELD(srq_resize,
	(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto),
	(srq_handle, srq_max_recv_dto))
SHIELD(srq_set_lw,
	(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark),
	(srq_handle, low_watermark))
/* clang-format on */
