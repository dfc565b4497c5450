// SPDX-License-Identifier: BSD-2-Clause
/* Each call as it is traced: its arguments in their order, and what it writes. */
#include "check/adapter.h"
#include "check/trace.h"

#define HANDLE(x)                                                                                  \
	{                                                                                          \
		.kind = TRACE_HANDLE, .name = #x, .at = (x)                                        \
	}
#define NUMBER(x)                                                                                  \
	{                                                                                          \
		.kind = TRACE_NUMBER, .name = #x, .value = (uint64_t)(x)                           \
	}
#define HEX(x)                                                                                     \
	{                                                                                          \
		.kind = TRACE_HEX, .name = #x, .value = (uint64_t)(x)                              \
	}
#define TIMEOUT(x)                                                                                 \
	{                                                                                          \
		.kind = TRACE_TIMEOUT, .name = #x, .value = (x)                                    \
	}
#define COOKIE(x)                                                                                  \
	{                                                                                          \
		.kind = TRACE_HEX, .name = #x, .value = (x).as_64                                  \
	}
#define FLAGS(x, kind_of)                                                                          \
	{                                                                                          \
		.kind = TRACE_FLAGS, .name = #x, .value = (unsigned)(x), .flags = kind_of          \
	}
#define TEXT(x)                                                                                    \
	{                                                                                          \
		.kind = TRACE_TEXT, .name = #x, .at = (x)                                          \
	}
#define ADDRESS(x)                                                                                 \
	{                                                                                          \
		.kind = TRACE_ADDRESS, .name = #x, .at = (x)                                       \
	}
#define BYTES(x, size)                                                                             \
	{                                                                                          \
		.kind = TRACE_BYTES, .name = #x, .at = (x), .value = (uint64_t)(size)              \
	}
#define SEGMENTS(x, count)                                                                         \
	{                                                                                          \
		.kind = TRACE_SEGMENTS, .name = #x, .at = (x), .value = (uint64_t)(count)          \
	}
#define TARGET(x)                                                                                  \
	{                                                                                          \
		.kind = TRACE_TARGET, .name = #x, .at = (x)                                        \
	}
#define POINTER(x)                                                                                 \
	{                                                                                          \
		.kind = TRACE_HEX, .name = #x, .value = (uintptr_t)(x)                             \
	}
#define AGENT(x)                                                                                   \
	{                                                                                          \
		.kind = TRACE_HEX, .name = #x, .value = (uintptr_t)(x).proxy_agent_func            \
	}
/* the first member of each kind of memory is a pointer */
#define MEMORY(x)                                                                                  \
	{                                                                                          \
		.kind = TRACE_HEX, .name = #x, .value = (uintptr_t)(x).for_va                      \
	}
#define OUTPUT(what, x)                                                                            \
	{                                                                                          \
		.kind = TRACE_##what, .name = #x, .at = (x)                                        \
	}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A call with its parameters, and what they are. */
#define TRACE(which, parameters, ...)                                                              \
	const struct trace_arg args[] = {__VA_ARGS__};                                             \
	struct trace_call call = {                                                                 \
		.number = CHECK_CALL_##which, .args = args, .arg_count = COUNT_OF(args)};          \
	DAT_RETURN result;                                                                         \
                                                                                                   \
	check_traced_from = CHECK_RETURN;                                                          \
	trace_begin(&call);                                                                        \
	result = check_##which parameters;                                                         \
	check_traced_from = NULL;                                                                  \
	return trace_end(&call, result)

#define FLAG(value)                                                                                \
	{                                                                                          \
		value, #value                                                                      \
	}
#define NO_FLAG                                                                                    \
	{                                                                                          \
		0, NULL                                                                            \
	}

static const struct trace_flag completion[] = {FLAG(DAT_COMPLETION_DEFAULT_FLAG),
					       FLAG(DAT_COMPLETION_SUPPRESS_FLAG),
					       FLAG(DAT_COMPLETION_SOLICITED_WAIT_FLAG),
					       FLAG(DAT_COMPLETION_UNSIGNALLED_FLAG),
					       FLAG(DAT_COMPLETION_BARRIER_FENCE_FLAG),
					       FLAG(DAT_COMPLETION_EVD_THRESHOLD_FLAG),
					       NO_FLAG};
static const struct trace_flag connecting[] = {FLAG(DAT_CONNECT_DEFAULT_FLAG),
					       FLAG(DAT_CONNECT_MULTIPATH_FLAG), NO_FLAG};
static const struct trace_flag closing[] = {FLAG(DAT_CLOSE_ABRUPT_FLAG),
					    FLAG(DAT_CLOSE_GRACEFUL_FLAG), NO_FLAG};
static const struct trace_flag evd[] = {FLAG(DAT_EVD_SOFTWARE_FLAG),
					FLAG(DAT_EVD_CR_FLAG),
					FLAG(DAT_EVD_DTO_FLAG),
					FLAG(DAT_EVD_CONNECTION_FLAG),
					FLAG(DAT_EVD_RMR_BIND_FLAG),
					FLAG(DAT_EVD_ASYNC_FLAG),
					NO_FLAG};
static const struct trace_flag psp[] = {FLAG(DAT_PSP_CONSUMER_FLAG), FLAG(DAT_PSP_PROVIDER_FLAG),
					NO_FLAG};
static const struct trace_flag privilege[] = {
	FLAG(DAT_MEM_PRIV_NONE_FLAG),	     FLAG(DAT_MEM_PRIV_ALL_FLAG),
	FLAG(DAT_MEM_PRIV_LOCAL_READ_FLAG),  FLAG(DAT_MEM_PRIV_REMOTE_READ_FLAG),
	FLAG(DAT_MEM_PRIV_LOCAL_WRITE_FLAG), FLAG(DAT_MEM_PRIV_REMOTE_WRITE_FLAG),
	FLAG(DAT_MEM_PRIV_RO_DISABLE_FLAG),  NO_FLAG};
static const struct trace_flag memory[] = {FLAG(DAT_MEM_TYPE_VIRTUAL),
					   FLAG(DAT_MEM_TYPE_SO_VIRTUAL), FLAG(DAT_MEM_TYPE_LMR),
					   FLAG(DAT_MEM_TYPE_SHARED_VIRTUAL), NO_FLAG};
static const struct trace_flag qos[] = {FLAG(DAT_QOS_BEST_EFFORT), FLAG(DAT_QOS_HIGH_THROUGHPUT),
					FLAG(DAT_QOS_LOW_LATENCY), FLAG(DAT_QOS_ECONOMY),
					FLAG(DAT_QOS_PREMIUM),	   NO_FLAG};

/* The name of an instance is that of the adapter below. */
static DAT_RETURN open_traced(DAT_IA_OPEN_FUNC open_func, bool is_thread_safe, const char *name,
			      DAT_COUNT asynch_evd_min_qlen, DAT_EVD_HANDLE *asynch_evd_handle,
			      DAT_IA_HANDLE *ia_handle)
{
	const struct check_adapter *adapter = check_adapter_find(name, is_thread_safe);
	const struct trace_arg args[] = {
		{.kind = TRACE_TEXT, .name = "provider", .at = adapter ? adapter->below : name},
		NUMBER(asynch_evd_min_qlen),
		OUTPUT(NEW, asynch_evd_handle),
		OUTPUT(NEW, ia_handle)};
	struct trace_call call = {
		.number = CHECK_CALL_ia_open, .args = args, .arg_count = COUNT_OF(args)};

	trace_begin(&call);
	return trace_end(&call, open_func((DAT_NAME_PTR)name, asynch_evd_min_qlen,
					  asynch_evd_handle, ia_handle));
}

DAT_RETURN trace_ia_open_safe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd_handle,
			      DAT_IA_HANDLE *ia_handle)
{
	return open_traced(check_ia_open_safe, true, name, qlen, evd_handle, ia_handle);
}

DAT_RETURN trace_ia_open_unsafe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd_handle,
				DAT_IA_HANDLE *ia_handle)
{
	return open_traced(check_ia_open_unsafe, false, name, qlen, evd_handle, ia_handle);
}

DAT_RETURN trace_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
			  DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr,
			  DAT_PROVIDER_ATTR_MASK provider_attr_mask,
			  DAT_PROVIDER_ATTR *provider_attr)
{
	TRACE(ia_query,
	      (ia_handle, async_evd_handle, ia_attr_mask, ia_attr, provider_attr_mask,
	       provider_attr),
	      HANDLE(ia_handle), OUTPUT(NEW, async_evd_handle), HEX(ia_attr_mask),
	      HEX(provider_attr_mask));
}

DAT_RETURN trace_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags)
{
	TRACE(ia_close, (ia_handle, close_flags), HANDLE(ia_handle), FLAGS(close_flags, closing));
}

DAT_RETURN trace_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context)
{
	TRACE(set_consumer_context, (dat_handle, context), HANDLE(dat_handle), COOKIE(context));
}

DAT_RETURN trace_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context)
{
	TRACE(get_consumer_context, (dat_handle, context), HANDLE(dat_handle),
	      OUTPUT(LONG, context));
}

DAT_RETURN trace_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type)
{
	TRACE(get_handle_type, (dat_handle, handle_type), HANDLE(dat_handle),
	      OUTPUT(TYPE, handle_type));
}

DAT_RETURN trace_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			    DAT_CNO_HANDLE *cno_handle)
{
	TRACE(cno_create, (ia_handle, agent, cno_handle), HANDLE(ia_handle), AGENT(agent),
	      OUTPUT(NEW, cno_handle));
}

DAT_RETURN trace_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	TRACE(cno_modify_agent, (cno_handle, agent), HANDLE(cno_handle), AGENT(agent));
}

DAT_RETURN trace_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK cno_param_mask,
			   DAT_CNO_PARAM *cno_param)
{
	TRACE(cno_query, (cno_handle, cno_param_mask, cno_param), HANDLE(cno_handle),
	      HEX(cno_param_mask));
}

DAT_RETURN trace_cno_free(DAT_CNO_HANDLE cno_handle)
{
	TRACE(cno_free, (cno_handle), HANDLE(cno_handle));
}

DAT_RETURN trace_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout,
			  DAT_EVD_HANDLE *evd_handle)
{
	TRACE(cno_wait, (cno_handle, timeout, evd_handle), HANDLE(cno_handle), TIMEOUT(timeout),
	      OUTPUT(NEW, evd_handle));
}

DAT_RETURN trace_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
			  DAT_CR_PARAM *cr_param)
{
	TRACE(cr_query, (cr_handle, cr_param_mask, cr_param), HANDLE(cr_handle),
	      HEX(cr_param_mask));
}

DAT_RETURN trace_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			   DAT_COUNT private_data_size, const DAT_PVOID private_data)
{
	TRACE(cr_accept, (cr_handle, ep_handle, private_data_size, private_data), HANDLE(cr_handle),
	      HANDLE(ep_handle), BYTES(private_data, private_data_size));
}

DAT_RETURN trace_cr_reject(DAT_CR_HANDLE cr_handle)
{
	TRACE(cr_reject, (cr_handle), HANDLE(cr_handle));
}

DAT_RETURN trace_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff)
{
	TRACE(cr_handoff, (cr_handle, handoff), HANDLE(cr_handle), NUMBER(handoff));
}

DAT_RETURN trace_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			    DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags,
			    DAT_EVD_HANDLE *evd_handle)
{
	TRACE(evd_create, (ia_handle, evd_min_qlen, cno_handle, evd_flags, evd_handle),
	      HANDLE(ia_handle), NUMBER(evd_min_qlen), HANDLE(cno_handle), FLAGS(evd_flags, evd),
	      OUTPUT(NEW, evd_handle));
}

DAT_RETURN trace_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
			   DAT_EVD_PARAM *evd_param)
{
	TRACE(evd_query, (evd_handle, evd_param_mask, evd_param), HANDLE(evd_handle),
	      HEX(evd_param_mask));
}

DAT_RETURN trace_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle)
{
	TRACE(evd_modify_cno, (evd_handle, cno_handle), HANDLE(evd_handle), HANDLE(cno_handle));
}

DAT_RETURN trace_evd_enable(DAT_EVD_HANDLE evd_handle)
{
	TRACE(evd_enable, (evd_handle), HANDLE(evd_handle));
}

DAT_RETURN trace_evd_disable(DAT_EVD_HANDLE evd_handle)
{
	TRACE(evd_disable, (evd_handle), HANDLE(evd_handle));
}

DAT_RETURN trace_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			  DAT_EVENT *event, DAT_COUNT *n_more_events)
{
	TRACE(evd_wait, (evd_handle, timeout, threshold, event, n_more_events), HANDLE(evd_handle),
	      TIMEOUT(timeout), NUMBER(threshold), OUTPUT(EVENT, event),
	      OUTPUT(COUNT, n_more_events));
}

DAT_RETURN trace_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen)
{
	TRACE(evd_resize, (evd_handle, evd_min_qlen), HANDLE(evd_handle), NUMBER(evd_min_qlen));
}

DAT_RETURN trace_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	TRACE(evd_post_se, (evd_handle, event), HANDLE(evd_handle), POINTER(event));
}

DAT_RETURN trace_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	TRACE(evd_dequeue, (evd_handle, event), HANDLE(evd_handle), OUTPUT(EVENT, event));
}

DAT_RETURN trace_evd_free(DAT_EVD_HANDLE evd_handle)
{
	TRACE(evd_free, (evd_handle), HANDLE(evd_handle));
}

DAT_RETURN trace_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	TRACE(evd_set_unwaitable, (evd_handle), HANDLE(evd_handle));
}

DAT_RETURN trace_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	TRACE(evd_clear_unwaitable, (evd_handle), HANDLE(evd_handle));
}

DAT_RETURN trace_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			   DAT_EVD_HANDLE recv_completion_evd_handle,
			   DAT_EVD_HANDLE request_completion_evd_handle,
			   DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes,
			   DAT_EP_HANDLE *ep_handle)
{
	TRACE(ep_create,
	      (ia_handle, pz_handle, recv_completion_evd_handle, request_completion_evd_handle,
	       connect_evd_handle, ep_attributes, ep_handle),
	      HANDLE(ia_handle), HANDLE(pz_handle), HANDLE(recv_completion_evd_handle),
	      HANDLE(request_completion_evd_handle), HANDLE(connect_evd_handle),
	      OUTPUT(NEW, ep_handle));
}

DAT_RETURN trace_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				    DAT_EVD_HANDLE recv_completion_evd_handle,
				    DAT_EVD_HANDLE request_completion_evd_handle,
				    DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
				    const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	TRACE(ep_create_with_srq,
	      (ia_handle, pz_handle, recv_completion_evd_handle, request_completion_evd_handle,
	       connect_evd_handle, srq_handle, ep_attributes, ep_handle),
	      HANDLE(ia_handle), HANDLE(pz_handle), HANDLE(recv_completion_evd_handle),
	      HANDLE(request_completion_evd_handle), HANDLE(connect_evd_handle), HANDLE(srq_handle),
	      OUTPUT(NEW, ep_handle));
}

DAT_RETURN trace_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			  DAT_EP_PARAM *ep_param)
{
	TRACE(ep_query, (ep_handle, ep_param_mask, ep_param), HANDLE(ep_handle),
	      HEX(ep_param_mask));
}

DAT_RETURN trace_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			   const DAT_EP_PARAM *ep_param)
{
	TRACE(ep_modify, (ep_handle, ep_param_mask, ep_param), HANDLE(ep_handle),
	      HEX(ep_param_mask));
}

DAT_RETURN trace_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
			    DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
			    DAT_COUNT private_data_size, const DAT_PVOID private_data,
			    DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags)
{
	TRACE(ep_connect,
	      (ep_handle, remote_ia_address, remote_conn_qual, timeout, private_data_size,
	       private_data, quality_of_service, connect_flags),
	      HANDLE(ep_handle), ADDRESS(remote_ia_address), NUMBER(remote_conn_qual),
	      TIMEOUT(timeout), BYTES(private_data, private_data_size),
	      FLAGS(quality_of_service, qos), FLAGS(connect_flags, connecting));
}

DAT_RETURN trace_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
				DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
				const DAT_PVOID private_data, DAT_QOS quality_of_service)
{
	TRACE(ep_dup_connect,
	      (ep_handle, ep_dup_handle, timeout, private_data_size, private_data,
	       quality_of_service),
	      HANDLE(ep_handle), HANDLE(ep_dup_handle), TIMEOUT(timeout),
	      BYTES(private_data, private_data_size), FLAGS(quality_of_service, qos));
}

DAT_RETURN trace_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags)
{
	TRACE(ep_disconnect, (ep_handle, close_flags), HANDLE(ep_handle),
	      FLAGS(close_flags, closing));
}

DAT_RETURN trace_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			      DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			      DAT_COMPLETION_FLAGS completion_flags)
{
	TRACE(ep_post_send, (ep_handle, num_segments, local_iov, user_cookie, completion_flags),
	      HANDLE(ep_handle), SEGMENTS(local_iov, num_segments), COOKIE(user_cookie),
	      FLAGS(completion_flags, completion));
}

DAT_RETURN trace_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			      DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			      DAT_COMPLETION_FLAGS completion_flags)
{
	TRACE(ep_post_recv, (ep_handle, num_segments, local_iov, user_cookie, completion_flags),
	      HANDLE(ep_handle), SEGMENTS(local_iov, num_segments), COOKIE(user_cookie),
	      FLAGS(completion_flags, completion));
}

DAT_RETURN trace_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				   DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				   const DAT_RMR_TRIPLET *remote_iov,
				   DAT_COMPLETION_FLAGS completion_flags)
{
	TRACE(ep_post_rdma_read,
	      (ep_handle, num_segments, local_iov, user_cookie, remote_iov, completion_flags),
	      HANDLE(ep_handle), SEGMENTS(local_iov, num_segments), COOKIE(user_cookie),
	      TARGET(remote_iov), FLAGS(completion_flags, completion));
}

DAT_RETURN trace_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				    const DAT_RMR_TRIPLET *remote_iov,
				    DAT_COMPLETION_FLAGS completion_flags)
{
	TRACE(ep_post_rdma_write,
	      (ep_handle, num_segments, local_iov, user_cookie, remote_iov, completion_flags),
	      HANDLE(ep_handle), SEGMENTS(local_iov, num_segments), COOKIE(user_cookie),
	      TARGET(remote_iov), FLAGS(completion_flags, completion));
}

DAT_RETURN trace_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			       DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	TRACE(ep_get_status, (ep_handle, ep_state, recv_idle, request_idle), HANDLE(ep_handle),
	      OUTPUT(STATE, ep_state), OUTPUT(TRUTH, recv_idle), OUTPUT(TRUTH, request_idle));
}

DAT_RETURN trace_ep_free(DAT_EP_HANDLE ep_handle)
{
	TRACE(ep_free, (ep_handle), HANDLE(ep_handle));
}

DAT_RETURN trace_ep_reset(DAT_EP_HANDLE ep_handle)
{
	TRACE(ep_reset, (ep_handle), HANDLE(ep_handle));
}

DAT_RETURN trace_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
			       DAT_COUNT *bufs_alloc_span)
{
	TRACE(ep_recv_query, (ep_handle, nbufs_allocated, bufs_alloc_span), HANDLE(ep_handle),
	      OUTPUT(COUNT, nbufs_allocated), OUTPUT(COUNT, bufs_alloc_span));
}

DAT_RETURN trace_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
				  DAT_COUNT hard_high_watermark)
{
	TRACE(ep_set_watermark, (ep_handle, soft_high_watermark, hard_high_watermark),
	      HANDLE(ep_handle), NUMBER(soft_high_watermark), NUMBER(hard_high_watermark));
}

DAT_RETURN trace_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			    DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
			    DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			    DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			    DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			    DAT_VADDR *registered_address)
{
	TRACE(lmr_create,
	      (ia_handle, mem_type, region_description, length, pz_handle, privileges, lmr_handle,
	       lmr_context, rmr_context, registered_length, registered_address),
	      HANDLE(ia_handle), FLAGS(mem_type, memory), MEMORY(region_description),
	      NUMBER(length), HANDLE(pz_handle), FLAGS(privileges, privilege),
	      OUTPUT(NEW, lmr_handle), OUTPUT(KEY, lmr_context), OUTPUT(KEY, rmr_context),
	      OUTPUT(LONG, registered_length), OUTPUT(LONG, registered_address));
}

DAT_RETURN trace_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
			   DAT_LMR_PARAM *lmr_param)
{
	TRACE(lmr_query, (lmr_handle, lmr_param_mask, lmr_param), HANDLE(lmr_handle),
	      HEX(lmr_param_mask));
}

DAT_RETURN trace_lmr_free(DAT_LMR_HANDLE lmr_handle)
{
	TRACE(lmr_free, (lmr_handle), HANDLE(lmr_handle));
}

DAT_RETURN trace_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				    DAT_VLEN num_segments)
{
	TRACE(lmr_sync_rdma_read, (ia_handle, local_segments, num_segments), HANDLE(ia_handle),
	      SEGMENTS(local_segments, num_segments));
}

DAT_RETURN trace_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				     DAT_VLEN num_segments)
{
	TRACE(lmr_sync_rdma_write, (ia_handle, local_segments, num_segments), HANDLE(ia_handle),
	      SEGMENTS(local_segments, num_segments));
}

DAT_RETURN trace_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	TRACE(rmr_create, (pz_handle, rmr_handle), HANDLE(pz_handle), OUTPUT(NEW, rmr_handle));
}

DAT_RETURN trace_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
			   DAT_RMR_PARAM *rmr_param)
{
	TRACE(rmr_query, (rmr_handle, rmr_param_mask, rmr_param), HANDLE(rmr_handle),
	      HEX(rmr_param_mask));
}

DAT_RETURN trace_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *lmr_triplet,
			  DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle,
			  DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
			  DAT_RMR_CONTEXT *context)
{
	TRACE(rmr_bind,
	      (rmr_handle, lmr_triplet, mem_priv, ep_handle, user_cookie, completion_flags,
	       context),
	      HANDLE(rmr_handle), SEGMENTS(lmr_triplet, lmr_triplet ? 1 : 0),
	      FLAGS(mem_priv, privilege), HANDLE(ep_handle), COOKIE(user_cookie),
	      FLAGS(completion_flags, completion), OUTPUT(KEY, context));
}

DAT_RETURN trace_rmr_free(DAT_RMR_HANDLE rmr_handle)
{
	TRACE(rmr_free, (rmr_handle), HANDLE(rmr_handle));
}

DAT_RETURN trace_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			    DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			    DAT_PSP_HANDLE *psp_handle)
{
	TRACE(psp_create, (ia_handle, conn_qual, evd_handle, psp_flags, psp_handle),
	      HANDLE(ia_handle), NUMBER(conn_qual), HANDLE(evd_handle), FLAGS(psp_flags, psp),
	      OUTPUT(NEW, psp_handle));
}

DAT_RETURN trace_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
				DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
				DAT_PSP_HANDLE *psp_handle)
{
	TRACE(psp_create_any, (ia_handle, conn_qual, evd_handle, psp_flags, psp_handle),
	      HANDLE(ia_handle), OUTPUT(LONG, conn_qual), HANDLE(evd_handle), FLAGS(psp_flags, psp),
	      OUTPUT(NEW, psp_handle));
}

DAT_RETURN trace_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
			   DAT_PSP_PARAM *psp_param)
{
	TRACE(psp_query, (psp_handle, psp_param_mask, psp_param), HANDLE(psp_handle),
	      HEX(psp_param_mask));
}

DAT_RETURN trace_psp_free(DAT_PSP_HANDLE psp_handle)
{
	TRACE(psp_free, (psp_handle), HANDLE(psp_handle));
}

DAT_RETURN trace_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			    DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			    DAT_RSP_HANDLE *rsp_handle)
{
	TRACE(rsp_create, (ia_handle, conn_qual, ep_handle, evd_handle, rsp_handle),
	      HANDLE(ia_handle), NUMBER(conn_qual), HANDLE(ep_handle), HANDLE(evd_handle),
	      OUTPUT(NEW, rsp_handle));
}

DAT_RETURN trace_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
			   DAT_RSP_PARAM *rsp_param)
{
	TRACE(rsp_query, (rsp_handle, rsp_param_mask, rsp_param), HANDLE(rsp_handle),
	      HEX(rsp_param_mask));
}

DAT_RETURN trace_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	TRACE(rsp_free, (rsp_handle), HANDLE(rsp_handle));
}

DAT_RETURN trace_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	TRACE(pz_create, (ia_handle, pz_handle), HANDLE(ia_handle), OUTPUT(NEW, pz_handle));
}

DAT_RETURN trace_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
			  DAT_PZ_PARAM *pz_param)
{
	TRACE(pz_query, (pz_handle, pz_param_mask, pz_param), HANDLE(pz_handle),
	      HEX(pz_param_mask));
}

DAT_RETURN trace_pz_free(DAT_PZ_HANDLE pz_handle)
{
	TRACE(pz_free, (pz_handle), HANDLE(pz_handle));
}

DAT_RETURN trace_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			    DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle)
{
	TRACE(srq_create, (ia_handle, pz_handle, srq_attr, srq_handle), HANDLE(ia_handle),
	      HANDLE(pz_handle), OUTPUT(NEW, srq_handle));
}

DAT_RETURN trace_srq_free(DAT_SRQ_HANDLE srq_handle)
{
	TRACE(srq_free, (srq_handle), HANDLE(srq_handle));
}

DAT_RETURN trace_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
			   DAT_SRQ_PARAM *srq_param)
{
	TRACE(srq_query, (srq_handle, srq_param_mask, srq_param), HANDLE(srq_handle),
	      HEX(srq_param_mask));
}

DAT_RETURN trace_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_queue_length)
{
	TRACE(srq_resize, (srq_handle, srq_queue_length), HANDLE(srq_handle),
	      NUMBER(srq_queue_length));
}

DAT_RETURN trace_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_low_watermark)
{
	TRACE(srq_set_lw, (srq_handle, srq_low_watermark), HANDLE(srq_handle),
	      NUMBER(srq_low_watermark));
}

DAT_RETURN trace_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
			       DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie)
{
	TRACE(srq_post_recv, (srq_handle, num_segments, local_iov, user_cookie), HANDLE(srq_handle),
	      SEGMENTS(local_iov, num_segments), COOKIE(user_cookie));
}
