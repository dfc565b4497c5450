// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every entry point calls its slot of the provider table with its arguments in order and the
 * adapter's handle translated, and returns the slot's result.
 */
#include "mock_open.h"

struct mock mock;

#define RESULT ((DAT_RETURN)0x8006002au) /* the result of every slot */

/*
 * Call an entry point with patterns as arguments. The slot must receive the same bytes; for an
 * adapter's handle, the provider's.
 */
static unsigned char next_pattern;

static void pattern_set(void *variable, size_t size)
{
	memset(variable, next_pattern++, size);
}

#define EXPECT(function, slot_name, consumer, provider, ...)                                       \
	do {                                                                                       \
		struct mock_call expected = {.slot = offsetof(DAT_PROVIDER, slot_name)};           \
		DAT_HANDLE first = (provider);                                                     \
		MOCK_PUT(&expected, first, __VA_ARGS__);                                           \
		mock.calls = 0;                                                                    \
		must(function((consumer), __VA_ARGS__) == RESULT);                                 \
		must(mock.calls == 1);                                                             \
		must(memcmp(&mock.call, &expected, sizeof(expected)) == 0);                        \
	} while (0)

#define EXPECT_ALONE(function, slot_name, consumer, provider)                                      \
	do {                                                                                       \
		struct mock_call expected = {.slot = offsetof(DAT_PROVIDER, slot_name)};           \
		DAT_HANDLE first = (provider);                                                     \
		MOCK_PUT(&expected, first);                                                        \
		mock.calls = 0;                                                                    \
		must(function(consumer) == RESULT);                                                \
		must(mock.calls == 1);                                                             \
		must(memcmp(&mock.call, &expected, sizeof(expected)) == 0);                        \
	} while (0)

static void lmr_calls(void)
{
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_description;
	DAT_VLEN vlen;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv_flags;
	IN_2(DAT_VA_TYPE va_type = 7;)
	DAT_LMR_HANDLE *lmr_handles;
	DAT_LMR_CONTEXT *lmr_contexts;
	DAT_RMR_CONTEXT *rmr_contexts;
	DAT_VLEN *vlens;
	DAT_VADDR *vaddrs;
	DAT_LMR_PARAM_MASK lmr_param_mask;
	DAT_LMR_PARAM *lmr_params;
	const DAT_LMR_TRIPLET *lmr_triplets;

	mock.result = RESULT;
	pattern_set(&mem_type, sizeof(mem_type));
	pattern_set(&region_description, sizeof(region_description));
	pattern_set(&vlen, sizeof(vlen));
	pattern_set(&pz_handle, sizeof(pz_handle));
	pattern_set(&mem_priv_flags, sizeof(mem_priv_flags));
	pattern_set(&lmr_handles, sizeof(lmr_handles));
	pattern_set(&lmr_contexts, sizeof(lmr_contexts));
	pattern_set(&rmr_contexts, sizeof(rmr_contexts));
	pattern_set(&vlens, sizeof(vlens));
	pattern_set(&vaddrs, sizeof(vaddrs));
	pattern_set(&lmr_param_mask, sizeof(lmr_param_mask));
	pattern_set(&lmr_params, sizeof(lmr_params));
	pattern_set(&lmr_triplets, sizeof(lmr_triplets));
	EXPECT(dat_lmr_create, lmr_create_func, ia, mock.ia, mem_type, region_description, vlen,
	       pz_handle, mem_priv_flags, IN_2(va_type, ) lmr_handles, lmr_contexts, rmr_contexts,
	       vlens, vaddrs);
	EXPECT(dat_lmr_query, lmr_query_func, &object, &object, lmr_param_mask, lmr_params);
	EXPECT_ALONE(dat_lmr_free, lmr_free_func, &object, &object);
	EXPECT(dat_lmr_sync_rdma_read, lmr_sync_rdma_read_func, ia, mock.ia, lmr_triplets, vlen);
	EXPECT(dat_lmr_sync_rdma_write, lmr_sync_rdma_write_func, ia, mock.ia, lmr_triplets, vlen);
}

static void evd_calls(void)
{
	DAT_COUNT count;
	DAT_CNO_HANDLE cno_handle;
	DAT_EVD_FLAGS evd_flags;
	DAT_EVD_HANDLE *evd_handles;
	DAT_TIMEOUT timeout;
	DAT_EVENT *events;
	DAT_COUNT *counts;
	DAT_EVD_PARAM_MASK evd_param_mask;
	DAT_EVD_PARAM *evd_params;

	mock.result = RESULT;
	pattern_set(&count, sizeof(count));
	pattern_set(&cno_handle, sizeof(cno_handle));
	pattern_set(&evd_flags, sizeof(evd_flags));
	pattern_set(&evd_handles, sizeof(evd_handles));
	pattern_set(&timeout, sizeof(timeout));
	pattern_set(&events, sizeof(events));
	pattern_set(&counts, sizeof(counts));
	pattern_set(&evd_param_mask, sizeof(evd_param_mask));
	pattern_set(&evd_params, sizeof(evd_params));
	EXPECT(dat_evd_create, evd_create_func, ia, mock.ia, count, cno_handle, evd_flags,
	       evd_handles);
	EXPECT(dat_evd_modify_cno, evd_modify_cno_func, &object, &object, cno_handle);
	EXPECT_ALONE(dat_evd_enable, evd_enable_func, &object, &object);
	EXPECT(dat_evd_wait, evd_wait_func, &object, &object, timeout, count, events, counts);
	EXPECT_ALONE(dat_evd_disable, evd_disable_func, &object, &object);
	EXPECT_ALONE(dat_evd_set_unwaitable, evd_set_unwaitable_func, &object, &object);
	EXPECT_ALONE(dat_evd_clear_unwaitable, evd_clear_unwaitable_func, &object, &object);
	EXPECT(dat_evd_resize, evd_resize_func, &object, &object, count);
	EXPECT(dat_evd_post_se, evd_post_se_func, &object, &object, events);
	EXPECT(dat_evd_dequeue, evd_dequeue_func, &object, &object, events);
	EXPECT(dat_evd_query, evd_query_func, &object, &object, evd_param_mask, evd_params);
	EXPECT_ALONE(dat_evd_free, evd_free_func, &object, &object);
}

static void cno_calls(void)
{
	DAT_OS_WAIT_PROXY_AGENT os_wait_proxy_agent;
	DAT_CNO_HANDLE *cno_handles;
	DAT_CNO_PARAM_MASK cno_param_mask;
	DAT_CNO_PARAM *cno_params;
	DAT_TIMEOUT timeout;
	DAT_EVD_HANDLE *evd_handles;

	mock.result = RESULT;
	pattern_set(&os_wait_proxy_agent, sizeof(os_wait_proxy_agent));
	pattern_set(&cno_handles, sizeof(cno_handles));
	pattern_set(&cno_param_mask, sizeof(cno_param_mask));
	pattern_set(&cno_params, sizeof(cno_params));
	pattern_set(&timeout, sizeof(timeout));
	pattern_set(&evd_handles, sizeof(evd_handles));
	EXPECT(dat_cno_create, cno_create_func, ia, mock.ia, os_wait_proxy_agent, cno_handles);
	EXPECT(dat_cno_modify_agent, cno_modify_agent_func, &object, &object, os_wait_proxy_agent);
	EXPECT(dat_cno_query, cno_query_func, &object, &object, cno_param_mask, cno_params);
	EXPECT_ALONE(dat_cno_free, cno_free_func, &object, &object);
	EXPECT(dat_cno_wait, cno_wait_func, &object, &object, timeout, evd_handles);
}

static void ia_calls(void)
{
	DAT_EVD_HANDLE *evd_handles;
	DAT_IA_ATTR_MASK ia_attr_mask;
	DAT_IA_ATTR *ia_attrs;
	DAT_PROVIDER_ATTR_MASK provider_attr_mask;
	DAT_PROVIDER_ATTR *provider_attrs;

	mock.result = RESULT;
	pattern_set(&evd_handles, sizeof(evd_handles));
	pattern_set(&ia_attr_mask, sizeof(ia_attr_mask));
	pattern_set(&ia_attrs, sizeof(ia_attrs));
	pattern_set(&provider_attr_mask, sizeof(provider_attr_mask));
	pattern_set(&provider_attrs, sizeof(provider_attrs));
	EXPECT(dat_ia_query, ia_query_func, ia, mock.ia, evd_handles, ia_attr_mask, ia_attrs,
	       provider_attr_mask, provider_attrs);
}

static void any_calls(void)
{
	DAT_CONTEXT context;
	DAT_CONTEXT *contexts;
	DAT_HANDLE_TYPE *handle_types;

	mock.result = RESULT;
	pattern_set(&context, sizeof(context));
	pattern_set(&contexts, sizeof(contexts));
	pattern_set(&handle_types, sizeof(handle_types));
	EXPECT(dat_set_consumer_context, set_consumer_context_func, &object, &object, context);
	EXPECT(dat_set_consumer_context, set_consumer_context_func, ia, mock.ia, context);
	EXPECT(dat_get_consumer_context, get_consumer_context_func, &object, &object, contexts);
	EXPECT(dat_get_consumer_context, get_consumer_context_func, ia, mock.ia, contexts);
	EXPECT(dat_get_handle_type, get_handle_type_func, &object, &object, handle_types);
	EXPECT(dat_get_handle_type, get_handle_type_func, ia, mock.ia, handle_types);
}

static void cr_calls(void)
{
	DAT_CR_PARAM_MASK cr_param_mask;
	DAT_CR_PARAM *cr_params;
	DAT_EP_HANDLE ep_handle;
	DAT_COUNT count;
	DAT_PVOID pvoid;
	DAT_CONN_QUAL conn_qual;

	mock.result = RESULT;
	pattern_set(&cr_param_mask, sizeof(cr_param_mask));
	pattern_set(&cr_params, sizeof(cr_params));
	pattern_set(&ep_handle, sizeof(ep_handle));
	pattern_set(&count, sizeof(count));
	pattern_set(&pvoid, sizeof(pvoid));
	pattern_set(&conn_qual, sizeof(conn_qual));
	EXPECT(dat_cr_query, cr_query_func, &object, &object, cr_param_mask, cr_params);
	EXPECT(dat_cr_accept, cr_accept_func, &object, &object, ep_handle, count, pvoid);
#if DAT_VERSION_MAJOR == 2
	EXPECT(dat_cr_reject, cr_reject_func, &object, &object, count, pvoid);
#else
	EXPECT_ALONE(dat_cr_reject, cr_reject_func, &object, &object);
#endif
	EXPECT(dat_cr_handoff, cr_handoff_func, &object, &object, conn_qual);
}

static void ep_setup_calls(void)
{
	DAT_PZ_HANDLE pz_handle;
	DAT_EVD_HANDLE evd_handle_1;
	DAT_EVD_HANDLE evd_handle_2;
	DAT_EVD_HANDLE evd_handle_3;
	const DAT_EP_ATTR *ep_attrs;
	DAT_EP_HANDLE *ep_handles;
	DAT_IA_ADDRESS_PTR ia_address_ptr;
	DAT_CONN_QUAL conn_qual;
	DAT_TIMEOUT timeout;
	DAT_COUNT count;
	DAT_PVOID pvoid;
	DAT_QOS qos;
	DAT_CONNECT_FLAGS connect_flags;
	DAT_SRQ_HANDLE srq_handle;

	mock.result = RESULT;
	pattern_set(&pz_handle, sizeof(pz_handle));
	pattern_set(&evd_handle_1, sizeof(evd_handle_1));
	pattern_set(&evd_handle_2, sizeof(evd_handle_2));
	pattern_set(&evd_handle_3, sizeof(evd_handle_3));
	pattern_set(&ep_attrs, sizeof(ep_attrs));
	pattern_set(&ep_handles, sizeof(ep_handles));
	pattern_set(&ia_address_ptr, sizeof(ia_address_ptr));
	pattern_set(&conn_qual, sizeof(conn_qual));
	pattern_set(&timeout, sizeof(timeout));
	pattern_set(&count, sizeof(count));
	pattern_set(&pvoid, sizeof(pvoid));
	pattern_set(&qos, sizeof(qos));
	pattern_set(&connect_flags, sizeof(connect_flags));
	pattern_set(&srq_handle, sizeof(srq_handle));
	EXPECT(dat_ep_create, ep_create_func, ia, mock.ia, pz_handle, evd_handle_1, evd_handle_2,
	       evd_handle_3, ep_attrs, ep_handles);
	EXPECT(dat_ep_connect, ep_connect_func, &object, &object, ia_address_ptr, conn_qual,
	       timeout, count, pvoid, qos, connect_flags);
	EXPECT(dat_ep_create_with_srq, ep_create_with_srq_func, ia, mock.ia, pz_handle,
	       evd_handle_1, evd_handle_2, evd_handle_3, srq_handle, ep_attrs, ep_handles);
}

static void ep_calls(void)
{
	DAT_EP_PARAM_MASK ep_param_mask;
	DAT_EP_PARAM *ep_params;
	DAT_EP_HANDLE ep_handle;
	DAT_TIMEOUT timeout;
	DAT_COUNT count_1;
	DAT_COUNT count_2;
	DAT_PVOID pvoid;
	DAT_QOS qos;
	DAT_CLOSE_FLAGS close_flags;
	DAT_EP_STATE *ep_states;
	DAT_BOOLEAN *booleans_1;
	DAT_BOOLEAN *booleans_2;
	DAT_COUNT *counts_1;
	DAT_COUNT *counts_2;

	mock.result = RESULT;
	pattern_set(&ep_param_mask, sizeof(ep_param_mask));
	pattern_set(&ep_params, sizeof(ep_params));
	pattern_set(&ep_handle, sizeof(ep_handle));
	pattern_set(&timeout, sizeof(timeout));
	pattern_set(&count_1, sizeof(count_1));
	pattern_set(&count_2, sizeof(count_2));
	pattern_set(&pvoid, sizeof(pvoid));
	pattern_set(&qos, sizeof(qos));
	pattern_set(&close_flags, sizeof(close_flags));
	pattern_set(&ep_states, sizeof(ep_states));
	pattern_set(&booleans_1, sizeof(booleans_1));
	pattern_set(&booleans_2, sizeof(booleans_2));
	pattern_set(&counts_1, sizeof(counts_1));
	pattern_set(&counts_2, sizeof(counts_2));
	EXPECT(dat_ep_query, ep_query_func, &object, &object, ep_param_mask, ep_params);
	EXPECT(dat_ep_modify, ep_modify_func, &object, &object, ep_param_mask, ep_params);
	EXPECT(dat_ep_dup_connect, ep_dup_connect_func, &object, &object, ep_handle, timeout,
	       count_1, pvoid, qos);
	EXPECT(dat_ep_disconnect, ep_disconnect_func, &object, &object, close_flags);
	EXPECT(dat_ep_get_status, ep_get_status_func, &object, &object, ep_states, booleans_1,
	       booleans_2);
	EXPECT_ALONE(dat_ep_free, ep_free_func, &object, &object);
	EXPECT_ALONE(dat_ep_reset, ep_reset_func, &object, &object);
	EXPECT(dat_ep_recv_query, ep_recv_query_func, &object, &object, counts_1, counts_2);
	EXPECT(dat_ep_set_watermark, ep_set_watermark_func, &object, &object, count_1, count_2);
}

static void ep_post_calls(void)
{
	DAT_COUNT count;
	DAT_LMR_TRIPLET *lmr_triplets;
	DAT_DTO_COOKIE dto_cookie;
	DAT_COMPLETION_FLAGS completion_flags;
	const DAT_RMR_TRIPLET *rmr_triplets;

	mock.result = RESULT;
	pattern_set(&count, sizeof(count));
	pattern_set(&lmr_triplets, sizeof(lmr_triplets));
	pattern_set(&dto_cookie, sizeof(dto_cookie));
	pattern_set(&completion_flags, sizeof(completion_flags));
	pattern_set(&rmr_triplets, sizeof(rmr_triplets));
	EXPECT(dat_ep_post_send, ep_post_send_func, &object, &object, count, lmr_triplets,
	       dto_cookie, completion_flags);
	EXPECT(dat_ep_post_recv, ep_post_recv_func, &object, &object, count, lmr_triplets,
	       dto_cookie, completion_flags);
	EXPECT(dat_ep_post_rdma_read, ep_post_rdma_read_func, &object, &object, count, lmr_triplets,
	       dto_cookie, rmr_triplets, completion_flags);
	EXPECT(dat_ep_post_rdma_write, ep_post_rdma_write_func, &object, &object, count,
	       lmr_triplets, dto_cookie, rmr_triplets, completion_flags);
}

static void rmr_calls(void)
{
	DAT_RMR_HANDLE *rmr_handles;
	DAT_RMR_PARAM_MASK rmr_param_mask;
	DAT_RMR_PARAM *rmr_params;
	const DAT_LMR_TRIPLET *lmr_triplets;
	DAT_MEM_PRIV_FLAGS mem_priv_flags;
	DAT_EP_HANDLE ep_handle;
	DAT_RMR_COOKIE rmr_cookie;
	DAT_COMPLETION_FLAGS completion_flags;
	DAT_RMR_CONTEXT *rmr_contexts;
	IN_2(DAT_LMR_HANDLE lmr_handle = &object;)
	IN_2(DAT_VA_TYPE va_type = 7;)

	mock.result = RESULT;
	pattern_set(&rmr_handles, sizeof(rmr_handles));
	pattern_set(&rmr_param_mask, sizeof(rmr_param_mask));
	pattern_set(&rmr_params, sizeof(rmr_params));
	pattern_set(&lmr_triplets, sizeof(lmr_triplets));
	pattern_set(&mem_priv_flags, sizeof(mem_priv_flags));
	pattern_set(&ep_handle, sizeof(ep_handle));
	pattern_set(&rmr_cookie, sizeof(rmr_cookie));
	pattern_set(&completion_flags, sizeof(completion_flags));
	pattern_set(&rmr_contexts, sizeof(rmr_contexts));
	EXPECT(dat_rmr_create, rmr_create_func, &object, &object, rmr_handles);
	EXPECT(dat_rmr_query, rmr_query_func, &object, &object, rmr_param_mask, rmr_params);
	EXPECT(dat_rmr_bind, rmr_bind_func, &object, &object, IN_2(lmr_handle, ) lmr_triplets,
	       mem_priv_flags, IN_2(va_type, ) ep_handle, rmr_cookie, completion_flags,
	       rmr_contexts);
	EXPECT_ALONE(dat_rmr_free, rmr_free_func, &object, &object);
}

static void psp_calls(void)
{
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_PSP_FLAGS psp_flags;
	DAT_PSP_HANDLE *psp_handles;
	DAT_CONN_QUAL *conn_quals;
	DAT_PSP_PARAM_MASK psp_param_mask;
	DAT_PSP_PARAM *psp_params;

	mock.result = RESULT;
	pattern_set(&conn_qual, sizeof(conn_qual));
	pattern_set(&evd_handle, sizeof(evd_handle));
	pattern_set(&psp_flags, sizeof(psp_flags));
	pattern_set(&psp_handles, sizeof(psp_handles));
	pattern_set(&conn_quals, sizeof(conn_quals));
	pattern_set(&psp_param_mask, sizeof(psp_param_mask));
	pattern_set(&psp_params, sizeof(psp_params));
	EXPECT(dat_psp_create, psp_create_func, ia, mock.ia, conn_qual, evd_handle, psp_flags,
	       psp_handles);
	EXPECT(dat_psp_create_any, psp_create_any_func, ia, mock.ia, conn_quals, evd_handle,
	       psp_flags, psp_handles);
	EXPECT(dat_psp_query, psp_query_func, &object, &object, psp_param_mask, psp_params);
	EXPECT_ALONE(dat_psp_free, psp_free_func, &object, &object);
}

static void rsp_calls(void)
{
	DAT_CONN_QUAL conn_qual;
	DAT_EP_HANDLE ep_handle;
	DAT_EVD_HANDLE evd_handle;
	DAT_RSP_HANDLE *rsp_handles;
	DAT_RSP_PARAM_MASK rsp_param_mask;
	DAT_RSP_PARAM *rsp_params;

	mock.result = RESULT;
	pattern_set(&conn_qual, sizeof(conn_qual));
	pattern_set(&ep_handle, sizeof(ep_handle));
	pattern_set(&evd_handle, sizeof(evd_handle));
	pattern_set(&rsp_handles, sizeof(rsp_handles));
	pattern_set(&rsp_param_mask, sizeof(rsp_param_mask));
	pattern_set(&rsp_params, sizeof(rsp_params));
	EXPECT(dat_rsp_create, rsp_create_func, ia, mock.ia, conn_qual, ep_handle, evd_handle,
	       rsp_handles);
	EXPECT(dat_rsp_query, rsp_query_func, &object, &object, rsp_param_mask, rsp_params);
	EXPECT_ALONE(dat_rsp_free, rsp_free_func, &object, &object);
}

static void pz_calls(void)
{
	DAT_PZ_HANDLE *pz_handles;
	DAT_PZ_PARAM_MASK pz_param_mask;
	DAT_PZ_PARAM *pz_params;

	mock.result = RESULT;
	pattern_set(&pz_handles, sizeof(pz_handles));
	pattern_set(&pz_param_mask, sizeof(pz_param_mask));
	pattern_set(&pz_params, sizeof(pz_params));
	EXPECT(dat_pz_create, pz_create_func, ia, mock.ia, pz_handles);
	EXPECT(dat_pz_query, pz_query_func, &object, &object, pz_param_mask, pz_params);
	EXPECT_ALONE(dat_pz_free, pz_free_func, &object, &object);
}

static void srq_calls(void)
{
	DAT_PZ_HANDLE pz_handle;
	DAT_SRQ_ATTR *srq_attrs;
	DAT_SRQ_HANDLE *srq_handles;
	DAT_COUNT count;
	DAT_LMR_TRIPLET *lmr_triplets;
	DAT_DTO_COOKIE dto_cookie;
	DAT_SRQ_PARAM_MASK srq_param_mask;
	DAT_SRQ_PARAM *srq_params;

	mock.result = RESULT;
	pattern_set(&pz_handle, sizeof(pz_handle));
	pattern_set(&srq_attrs, sizeof(srq_attrs));
	pattern_set(&srq_handles, sizeof(srq_handles));
	pattern_set(&count, sizeof(count));
	pattern_set(&lmr_triplets, sizeof(lmr_triplets));
	pattern_set(&dto_cookie, sizeof(dto_cookie));
	pattern_set(&srq_param_mask, sizeof(srq_param_mask));
	pattern_set(&srq_params, sizeof(srq_params));
	EXPECT(dat_srq_create, srq_create_func, ia, mock.ia, pz_handle, srq_attrs, srq_handles);
	EXPECT_ALONE(dat_srq_free, srq_free_func, &object, &object);
	EXPECT(dat_srq_post_recv, srq_post_recv_func, &object, &object, count, lmr_triplets,
	       dto_cookie);
	EXPECT(dat_srq_query, srq_query_func, &object, &object, srq_param_mask, srq_params);
	EXPECT(dat_srq_resize, srq_resize_func, &object, &object, count);
	EXPECT(dat_srq_set_lw, srq_set_lw_func, &object, &object, count);
}

#if DAT_VERSION_MAJOR == 2
static void calls_of_2(void)
{
	DAT_FD *fds;
	DAT_HANDLE *handles;
	DAT_IA_ADDRESS_PTR address;
	DAT_TIMEOUT timeout;
	DAT_COUNT count;
	DAT_PVOID pvoid;
	DAT_LMR_TRIPLET *lmr_triplets;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	DAT_BOOLEAN invalidates;
	DAT_RMR_CONTEXT context;
	const DAT_RMR_TRIPLET *local, *remote;
	DAT_COMM *comm;
	DAT_EVD_HANDLE evd_handle;
	DAT_CSP_PARAM_MASK mask;
	DAT_CSP_PARAM *csp_params;
	DAT_EXTENDED_OP operation = 1;
	DAT_UINT64 argument;

	mock.result = RESULT;
	pattern_set(&fds, sizeof(fds));
	pattern_set(&handles, sizeof(handles));
	pattern_set(&address, sizeof(address));
	pattern_set(&timeout, sizeof(timeout));
	pattern_set(&count, sizeof(count));
	pattern_set(&pvoid, sizeof(pvoid));
	pattern_set(&lmr_triplets, sizeof(lmr_triplets));
	pattern_set(&cookie, sizeof(cookie));
	pattern_set(&flags, sizeof(flags));
	pattern_set(&invalidates, sizeof(invalidates));
	pattern_set(&context, sizeof(context));
	pattern_set(&local, sizeof(local));
	pattern_set(&remote, sizeof(remote));
	pattern_set(&comm, sizeof(comm));
	pattern_set(&evd_handle, sizeof(evd_handle));
	pattern_set(&mask, sizeof(mask));
	pattern_set(&csp_params, sizeof(csp_params));
	pattern_set(&argument, sizeof(argument));
	EXPECT(dat_cno_fd_create, cno_fd_create_func, ia, mock.ia, fds, handles);
	EXPECT(dat_cno_trigger, cno_trigger_func, &object, &object, handles);
	EXPECT(dat_ep_common_connect, ep_common_connect_func, &object, &object, address, timeout,
	       count, pvoid);
	EXPECT(dat_ep_post_send_with_invalidate, ep_post_send_with_invalidate_func, &object,
	       &object, count, lmr_triplets, cookie, flags, invalidates, context);
	EXPECT(dat_ep_post_rdma_read_to_rmr, ep_post_rdma_read_to_rmr_func, &object, &object, local,
	       cookie, remote, flags);
	EXPECT(dat_rmr_create_for_ep, rmr_create_for_ep_func, &object, &object, handles);
	EXPECT(dat_csp_create, csp_create_func, ia, mock.ia, comm, address, evd_handle, handles);
	EXPECT(dat_csp_query, csp_query_func, &object, &object, mask, csp_params);
	EXPECT_ALONE(dat_csp_free, csp_free_func, &object, &object);
	EXPECT(dat_extension_op, handle_extendedop_func, &object, &object, operation, argument);
	EXPECT(dat_extension_op, handle_extendedop_func, ia, mock.ia, operation, argument);
}
#endif

static void all_calls(void)
{
	IN_2(mock.extensions = DAT_EXTENSION_IB;)
	mock_open("MOCK_FOREIGN");
	IN_2(calls_of_2();)
	lmr_calls();
	evd_calls();
	cno_calls();
	ia_calls();
	any_calls();
	cr_calls();
	ep_setup_calls();
	ep_calls();
	ep_post_calls();
	rmr_calls();
	psp_calls();
	rsp_calls();
	pz_calls();
	srq_calls();
}

/* GEN-29 D2-REG-26: a provider built separately is reached by every entry point, through its handles. */
static void every_call__mock_provider__reaches_its_slot(void **state)
{
	(void)state;
	child_run(all_calls);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call__mock_provider__reaches_its_slot),
	};

	return cmocka_run_group_tests_name("registry dispatch", tests, NULL, NULL);
}
