// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of the mock provider. All slots but open and close only record the call.
 */
#include "mock_slots.h"

#include "mock.h"

static DAT_RETURN called(const struct mock_call *call, void *param)
{
	mock.call = *call;
	mock.calls++;
	if (mock.fill && param)
		mock.fill(param);
	return mock.result;
}

#define RECORD(slot_name, param, ...)                                                              \
	struct mock_call call = {.slot = offsetof(DAT_PROVIDER, slot_name)};                       \
	MOCK_PUT(&call, __VA_ARGS__);                                                              \
	return called(&call, param)

/* A slot whose only argument is a handle. */
#define RECORD_HANDLE(name, type)                                                                  \
	static DAT_RETURN mock_##name(type handle)                                                 \
	{                                                                                          \
		RECORD(name##_func, NULL, handle);                                                 \
	}

/* In DAT 2.0 the registry asks for the extensions itself (D2-REG-24). */
static DAT_RETURN mock_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
				DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr,
				DAT_PROVIDER_ATTR_MASK provider_attr_mask,
				DAT_PROVIDER_ATTR *provider_attr)
{
	IN_2(if (!async_evd_handle && !provider_attr) {
		ia_attr->extension_supported = (DAT_EXTENSION)mock.extensions;
		return mock.query_result;
	})
	RECORD(ia_query_func, NULL, ia_handle, async_evd_handle, ia_attr_mask, ia_attr,
	       provider_attr_mask, provider_attr);
}

static DAT_RETURN mock_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context)
{
	RECORD(set_consumer_context_func, NULL, dat_handle, context);
}

static DAT_RETURN mock_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context)
{
	RECORD(get_consumer_context_func, NULL, dat_handle, context);
}

static DAT_RETURN mock_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type)
{
	RECORD(get_handle_type_func, NULL, dat_handle, handle_type);
}

static DAT_RETURN mock_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
				  DAT_CNO_HANDLE *cno_handle)
{
	RECORD(cno_create_func, NULL, ia_handle, agent, cno_handle);
}

static DAT_RETURN mock_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	RECORD(cno_modify_agent_func, NULL, cno_handle, agent);
}

static DAT_RETURN mock_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK cno_param_mask,
				 DAT_CNO_PARAM *cno_param)
{
	RECORD(cno_query_func, cno_param, cno_handle, cno_param_mask, cno_param);
}

RECORD_HANDLE(cno_free, DAT_CNO_HANDLE)

static DAT_RETURN mock_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout,
				DAT_EVD_HANDLE *evd_handle)
{
	RECORD(cno_wait_func, NULL, cno_handle, timeout, evd_handle);
}

static DAT_RETURN mock_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
				DAT_CR_PARAM *cr_param)
{
	RECORD(cr_query_func, NULL, cr_handle, cr_param_mask, cr_param);
}

static DAT_RETURN mock_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
				 DAT_COUNT private_data_size, const DAT_PVOID private_data)
{
	RECORD(cr_accept_func, NULL, cr_handle, ep_handle, private_data_size, private_data);
}

static DAT_RETURN mock_cr_reject(DAT_CR_HANDLE handle IN_2(, DAT_COUNT size, const DAT_PVOID data))
{
	RECORD(cr_reject_func, NULL, handle IN_2(, size, data));
}

static DAT_RETURN mock_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff)
{
	RECORD(cr_handoff_func, NULL, cr_handle, handoff);
}

static DAT_RETURN mock_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
				  DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags,
				  DAT_EVD_HANDLE *evd_handle)
{
	RECORD(evd_create_func, NULL, ia_handle, evd_min_qlen, cno_handle, evd_flags, evd_handle);
}

static DAT_RETURN mock_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
				 DAT_EVD_PARAM *evd_param)
{
	RECORD(evd_query_func, evd_param, evd_handle, evd_param_mask, evd_param);
}

static DAT_RETURN mock_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle)
{
	RECORD(evd_modify_cno_func, NULL, evd_handle, cno_handle);
}

RECORD_HANDLE(evd_enable, DAT_EVD_HANDLE)
RECORD_HANDLE(evd_disable, DAT_EVD_HANDLE)

static DAT_RETURN mock_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
				DAT_EVENT *event, DAT_COUNT *n_more_events)
{
	RECORD(evd_wait_func, event, evd_handle, timeout, threshold, event, n_more_events);
}

static DAT_RETURN mock_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen)
{
	RECORD(evd_resize_func, NULL, evd_handle, evd_min_qlen);
}

static DAT_RETURN mock_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	RECORD(evd_post_se_func, NULL, evd_handle, event);
}

static DAT_RETURN mock_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	RECORD(evd_dequeue_func, event, evd_handle, event);
}

RECORD_HANDLE(evd_free, DAT_EVD_HANDLE)

static DAT_RETURN mock_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				 DAT_EVD_HANDLE recv_completion_evd_handle,
				 DAT_EVD_HANDLE request_completion_evd_handle,
				 DAT_EVD_HANDLE connect_evd_handle,
				 const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	RECORD(ep_create_func, NULL, ia_handle, pz_handle, recv_completion_evd_handle,
	       request_completion_evd_handle, connect_evd_handle, ep_attributes, ep_handle);
}

static DAT_RETURN mock_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
				DAT_EP_PARAM *ep_param)
{
	RECORD(ep_query_func, ep_param, ep_handle, ep_param_mask, ep_param);
}

static DAT_RETURN mock_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
				 const DAT_EP_PARAM *ep_param)
{
	RECORD(ep_modify_func, NULL, ep_handle, ep_param_mask, ep_param);
}

static DAT_RETURN mock_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
				  DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
				  DAT_COUNT private_data_size, const DAT_PVOID private_data,
				  DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags)
{
	RECORD(ep_connect_func, NULL, ep_handle, remote_ia_address, remote_conn_qual, timeout,
	       private_data_size, private_data, quality_of_service, connect_flags);
}

static DAT_RETURN mock_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
				      DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
				      const DAT_PVOID private_data, DAT_QOS quality_of_service)
{
	RECORD(ep_dup_connect_func, NULL, ep_handle, ep_dup_handle, timeout, private_data_size,
	       private_data, quality_of_service);
}

static DAT_RETURN mock_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags)
{
	RECORD(ep_disconnect_func, NULL, ep_handle, close_flags);
}

static DAT_RETURN mock_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				    DAT_COMPLETION_FLAGS completion_flags)
{
	RECORD(ep_post_send_func, NULL, ep_handle, num_segments, local_iov, user_cookie,
	       completion_flags);
}

static DAT_RETURN mock_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				    DAT_COMPLETION_FLAGS completion_flags)
{
	RECORD(ep_post_recv_func, NULL, ep_handle, num_segments, local_iov, user_cookie,
	       completion_flags);
}

static DAT_RETURN mock_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					 DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
					 const DAT_RMR_TRIPLET *remote_iov,
					 DAT_COMPLETION_FLAGS completion_flags)
{
	RECORD(ep_post_rdma_read_func, NULL, ep_handle, num_segments, local_iov, user_cookie,
	       remote_iov, completion_flags);
}

static DAT_RETURN mock_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					  DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
					  const DAT_RMR_TRIPLET *remote_iov,
					  DAT_COMPLETION_FLAGS completion_flags)
{
	RECORD(ep_post_rdma_write_func, NULL, ep_handle, num_segments, local_iov, user_cookie,
	       remote_iov, completion_flags);
}

static DAT_RETURN mock_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
				     DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	RECORD(ep_get_status_func, NULL, ep_handle, ep_state, recv_idle, request_idle);
}

RECORD_HANDLE(ep_free, DAT_EP_HANDLE)

static DAT_RETURN mock_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
				  DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
				  DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
				  IN_2(DAT_VA_TYPE va_type, ) DAT_LMR_HANDLE *lmr_handle,
				  DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context,
				  DAT_VLEN *registered_length, DAT_VADDR *registered_address)
{
	RECORD(lmr_create_func, NULL, ia_handle, mem_type, region_description, length, pz_handle,
	       privileges, IN_2(va_type, ) lmr_handle, lmr_context, rmr_context, registered_length,
	       registered_address);
}

static DAT_RETURN mock_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
				 DAT_LMR_PARAM *lmr_param)
{
	RECORD(lmr_query_func, lmr_param, lmr_handle, lmr_param_mask, lmr_param);
}

RECORD_HANDLE(lmr_free, DAT_LMR_HANDLE)

static DAT_RETURN mock_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	RECORD(rmr_create_func, NULL, pz_handle, rmr_handle);
}

static DAT_RETURN mock_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
				 DAT_RMR_PARAM *rmr_param)
{
	RECORD(rmr_query_func, rmr_param, rmr_handle, rmr_param_mask, rmr_param);
}

static DAT_RETURN mock_rmr_bind(DAT_RMR_HANDLE rmr_handle,
				IN_2(DAT_LMR_HANDLE lmr_handle, )
					const DAT_LMR_TRIPLET *lmr_triplet,
				DAT_MEM_PRIV_FLAGS mem_priv,
				IN_2(DAT_VA_TYPE va_type, ) DAT_EP_HANDLE ep_handle,
				DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
				DAT_RMR_CONTEXT *context)
{
	RECORD(rmr_bind_func, NULL, rmr_handle, IN_2(lmr_handle, ) lmr_triplet, mem_priv,
	       IN_2(va_type, ) ep_handle, user_cookie, completion_flags, context);
}

RECORD_HANDLE(rmr_free, DAT_RMR_HANDLE)

static DAT_RETURN mock_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
				  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
				  DAT_PSP_HANDLE *psp_handle)
{
	RECORD(psp_create_func, NULL, ia_handle, conn_qual, evd_handle, psp_flags, psp_handle);
}

static DAT_RETURN mock_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
				 DAT_PSP_PARAM *psp_param)
{
	RECORD(psp_query_func, psp_param, psp_handle, psp_param_mask, psp_param);
}

RECORD_HANDLE(psp_free, DAT_PSP_HANDLE)

static DAT_RETURN mock_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
				  DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
				  DAT_RSP_HANDLE *rsp_handle)
{
	RECORD(rsp_create_func, NULL, ia_handle, conn_qual, ep_handle, evd_handle, rsp_handle);
}

static DAT_RETURN mock_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
				 DAT_RSP_PARAM *rsp_param)
{
	RECORD(rsp_query_func, rsp_param, rsp_handle, rsp_param_mask, rsp_param);
}

RECORD_HANDLE(rsp_free, DAT_RSP_HANDLE)

static DAT_RETURN mock_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	RECORD(pz_create_func, NULL, ia_handle, pz_handle);
}

static DAT_RETURN mock_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
				DAT_PZ_PARAM *pz_param)
{
	RECORD(pz_query_func, pz_param, pz_handle, pz_param_mask, pz_param);
}

RECORD_HANDLE(pz_free, DAT_PZ_HANDLE)

static DAT_RETURN mock_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
				      DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
				      DAT_PSP_HANDLE *psp_handle)
{
	RECORD(psp_create_any_func, NULL, ia_handle, conn_qual, evd_handle, psp_flags, psp_handle);
}

RECORD_HANDLE(ep_reset, DAT_EP_HANDLE)
RECORD_HANDLE(evd_set_unwaitable, DAT_EVD_HANDLE)
RECORD_HANDLE(evd_clear_unwaitable, DAT_EVD_HANDLE)

static DAT_RETURN mock_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle,
					  const DAT_LMR_TRIPLET *local_segments,
					  DAT_VLEN num_segments)
{
	RECORD(lmr_sync_rdma_read_func, NULL, ia_handle, local_segments, num_segments);
}

static DAT_RETURN mock_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
					   const DAT_LMR_TRIPLET *local_segments,
					   DAT_VLEN num_segments)
{
	RECORD(lmr_sync_rdma_write_func, NULL, ia_handle, local_segments, num_segments);
}

static DAT_RETURN mock_ep_create_with_srq(
	DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_completion_evd_handle,
	DAT_EVD_HANDLE request_completion_evd_handle, DAT_EVD_HANDLE connect_evd_handle,
	DAT_SRQ_HANDLE srq_handle, const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	RECORD(ep_create_with_srq_func, NULL, ia_handle, pz_handle, recv_completion_evd_handle,
	       request_completion_evd_handle, connect_evd_handle, srq_handle, ep_attributes,
	       ep_handle);
}

static DAT_RETURN mock_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
				     DAT_COUNT *bufs_alloc_span)
{
	RECORD(ep_recv_query_func, NULL, ep_handle, nbufs_allocated, bufs_alloc_span);
}

static DAT_RETURN mock_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
					DAT_COUNT hard_high_watermark)
{
	RECORD(ep_set_watermark_func, NULL, ep_handle, soft_high_watermark, hard_high_watermark);
}

static DAT_RETURN mock_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				  DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle)
{
	RECORD(srq_create_func, NULL, ia_handle, pz_handle, srq_attr, srq_handle);
}

RECORD_HANDLE(srq_free, DAT_SRQ_HANDLE)

static DAT_RETURN mock_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
				     DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie)
{
	RECORD(srq_post_recv_func, NULL, srq_handle, num_segments, local_iov, user_cookie);
}

static DAT_RETURN mock_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
				 DAT_SRQ_PARAM *srq_param)
{
	RECORD(srq_query_func, srq_param, srq_handle, srq_param_mask, srq_param);
}

static DAT_RETURN mock_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_queue_length)
{
	RECORD(srq_resize_func, NULL, srq_handle, srq_queue_length);
}

static DAT_RETURN mock_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_low_watermark)
{
	RECORD(srq_set_lw_func, NULL, srq_handle, srq_low_watermark);
}

#if DAT_VERSION_MAJOR == 2
static DAT_RETURN mock_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *fd, DAT_CNO_HANDLE *cno)
{
	RECORD(cno_fd_create_func, NULL, ia_handle, fd, cno);
}

static DAT_RETURN mock_cno_trigger(DAT_CNO_HANDLE cno_handle, DAT_EVD_HANDLE *evd_handle)
{
	RECORD(cno_trigger_func, NULL, cno_handle, evd_handle);
}

static DAT_RETURN mock_ep_common_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR address,
					 DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data)
{
	RECORD(ep_common_connect_func, NULL, ep_handle, address, timeout, size, data);
}

static DAT_RETURN mock_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT count,
						    DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
						    DAT_COMPLETION_FLAGS flags,
						    DAT_BOOLEAN invalidates,
						    DAT_RMR_CONTEXT context)
{
	RECORD(ep_post_send_with_invalidate_func, NULL, ep_handle, count, iov, cookie, flags,
	       invalidates, context);
}

static DAT_RETURN mock_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle,
						const DAT_RMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
						const DAT_RMR_TRIPLET *remote,
						DAT_COMPLETION_FLAGS flags)
{
	RECORD(ep_post_rdma_read_to_rmr_func, NULL, ep_handle, local, cookie, remote, flags);
}

static DAT_RETURN mock_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	RECORD(rmr_create_for_ep_func, NULL, pz_handle, rmr_handle);
}

static DAT_RETURN mock_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm,
				  DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd_handle,
				  DAT_CSP_HANDLE *csp_handle)
{
	RECORD(csp_create_func, NULL, ia_handle, comm, address, evd_handle, csp_handle);
}

static DAT_RETURN mock_csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK mask,
				 DAT_CSP_PARAM *csp_param)
{
	RECORD(csp_query_func, csp_param, csp_handle, mask, csp_param);
}

RECORD_HANDLE(csp_free, DAT_CSP_HANDLE)

/* The first argument of an operation is an integer here. */
static DAT_RETURN mock_handle_extendedop(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list args)
{
	DAT_UINT64 first = operation == DAT_CLOSE_EXTENSION_BASE ? 0 : va_arg(args, DAT_UINT64);

	if (operation == DAT_OPEN_EXTENSION_BASE)
		*(DAT_HANDLE *)(uintptr_t)first = mock.ia = &mock.query;
	RECORD(handle_extendedop_func, NULL, handle, operation, first);
}
#endif

DAT_PROVIDER mock_table = {
	.device_name = "mock",
	.ia_open_func = mock_ia_open,
	.ia_query_func = mock_ia_query,
	.ia_close_func = mock_ia_close,
	.set_consumer_context_func = mock_set_consumer_context,
	.get_consumer_context_func = mock_get_consumer_context,
	.get_handle_type_func = mock_get_handle_type,
	.cno_create_func = mock_cno_create,
	.cno_modify_agent_func = mock_cno_modify_agent,
	.cno_query_func = mock_cno_query,
	.cno_free_func = mock_cno_free,
	.cno_wait_func = mock_cno_wait,
	.cr_query_func = mock_cr_query,
	.cr_accept_func = mock_cr_accept,
	.cr_reject_func = mock_cr_reject,
	.cr_handoff_func = mock_cr_handoff,
	.evd_create_func = mock_evd_create,
	.evd_query_func = mock_evd_query,
	.evd_modify_cno_func = mock_evd_modify_cno,
	.evd_enable_func = mock_evd_enable,
	.evd_disable_func = mock_evd_disable,
	.evd_wait_func = mock_evd_wait,
	.evd_resize_func = mock_evd_resize,
	.evd_post_se_func = mock_evd_post_se,
	.evd_dequeue_func = mock_evd_dequeue,
	.evd_free_func = mock_evd_free,
	.ep_create_func = mock_ep_create,
	.ep_query_func = mock_ep_query,
	.ep_modify_func = mock_ep_modify,
	.ep_connect_func = mock_ep_connect,
	.ep_dup_connect_func = mock_ep_dup_connect,
	.ep_disconnect_func = mock_ep_disconnect,
	.ep_post_send_func = mock_ep_post_send,
	.ep_post_recv_func = mock_ep_post_recv,
	.ep_post_rdma_read_func = mock_ep_post_rdma_read,
	.ep_post_rdma_write_func = mock_ep_post_rdma_write,
	.ep_get_status_func = mock_ep_get_status,
	.ep_free_func = mock_ep_free,
	.lmr_create_func = mock_lmr_create,
	.lmr_query_func = mock_lmr_query,
	.lmr_free_func = mock_lmr_free,
	.rmr_create_func = mock_rmr_create,
	.rmr_query_func = mock_rmr_query,
	.rmr_bind_func = mock_rmr_bind,
	.rmr_free_func = mock_rmr_free,
	.psp_create_func = mock_psp_create,
	.psp_query_func = mock_psp_query,
	.psp_free_func = mock_psp_free,
	.rsp_create_func = mock_rsp_create,
	.rsp_query_func = mock_rsp_query,
	.rsp_free_func = mock_rsp_free,
	.pz_create_func = mock_pz_create,
	.pz_query_func = mock_pz_query,
	.pz_free_func = mock_pz_free,
	.psp_create_any_func = mock_psp_create_any,
	.ep_reset_func = mock_ep_reset,
	.evd_set_unwaitable_func = mock_evd_set_unwaitable,
	.evd_clear_unwaitable_func = mock_evd_clear_unwaitable,
	.lmr_sync_rdma_read_func = mock_lmr_sync_rdma_read,
	.lmr_sync_rdma_write_func = mock_lmr_sync_rdma_write,
	.ep_create_with_srq_func = mock_ep_create_with_srq,
	.ep_recv_query_func = mock_ep_recv_query,
	.ep_set_watermark_func = mock_ep_set_watermark,
	.srq_create_func = mock_srq_create,
	.srq_free_func = mock_srq_free,
	.srq_post_recv_func = mock_srq_post_recv,
	.srq_query_func = mock_srq_query,
	.srq_resize_func = mock_srq_resize,
	.srq_set_lw_func = mock_srq_set_lw,
#if DAT_VERSION_MAJOR == 2 /* ia_ha_related_func is one that a provider lacks */
	.cno_fd_create_func = mock_cno_fd_create,
	.cno_trigger_func = mock_cno_trigger,
	.ep_common_connect_func = mock_ep_common_connect,
	.ep_post_send_with_invalidate_func = mock_ep_post_send_with_invalidate,
	.ep_post_rdma_read_to_rmr_func = mock_ep_post_rdma_read_to_rmr,
	.rmr_create_for_ep_func = mock_rmr_create_for_ep,
	.csp_create_func = mock_csp_create,
	.csp_query_func = mock_csp_query,
	.csp_free_func = mock_csp_free,
	.handle_extendedop_func = mock_handle_extendedop,
#endif
};
