// SPDX-License-Identifier: BSD-2-Clause
/*
 * The front of DAT 2.0: its table of calls. Each call of the table converts its parameters, calls
 * the core and converts what comes back. Calls whose types are those of DAT 1.2 only convert the
 * return code (table.c).
 */
#ifndef DAT2_FRONT_H
#define DAT2_FRONT_H

#include "core/base/front.h"
#include "dat2/types.h"

/* ia.c */
DAT_RETURN dat2_ia_open_safe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			     DAT_IA_HANDLE *ia_handle);
DAT_RETURN dat2_ia_open_unsafe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			       DAT_IA_HANDLE *ia_handle);
DAT_RETURN dat2_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd, uint64_t ia_mask,
			 struct dat2_ia_attr *ia_attr, uint64_t provider_mask,
			 struct dat2_provider_attr *provider_attr);

DAT_RETURN dat2_open_query(const char *name, DAT_HANDLE *handle_out, uint64_t ia_mask,
			   struct dat2_ia_attr *ia_attr, uint64_t provider_mask,
			   struct dat2_provider_attr *provider_attr);
DAT_RETURN dat2_close_query(DAT_HANDLE handle);

/* named.c: the named attributes of an instance (struct core_front) */
bool dat2_instance_open(struct core_ia *ia);
void dat2_instance_close(struct core_ia *ia);
DAT_NAMED_ATTR *dat2_named(struct core_ia *ia, DAT_COUNT *count_out);

/* ep.c */
DAT_RETURN dat2_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
			  DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
			  const struct dat2_ep_attr *attr, DAT_EP_HANDLE *ep);
DAT_RETURN dat2_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
				   DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
				   DAT_SRQ_HANDLE srq, const struct dat2_ep_attr *attr,
				   DAT_EP_HANDLE *ep);
DAT_RETURN dat2_ep_query(DAT_EP_HANDLE ep, uint64_t mask, struct dat2_ep_param *param);
DAT_RETURN dat2_ep_modify(DAT_EP_HANDLE ep, uint64_t mask, const struct dat2_ep_param *param);
DAT_RETURN dat2_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual,
			   DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos,
			   DAT_CONNECT_FLAGS flags);
DAT_RETURN dat2_cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID data);

/* mem.c */
DAT_RETURN dat2_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			   DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv,
			   uint32_t va_type, DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			   DAT_VADDR *registered_address);
DAT_RETURN dat2_lmr_query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask,
			  struct dat2_lmr_param *param);
DAT_RETURN dat2_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const struct dat2_lmr_triplet *segments,
				   DAT_VLEN count);
DAT_RETURN dat2_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const struct dat2_lmr_triplet *segments,
				    DAT_VLEN count);
DAT_RETURN dat2_rmr_query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask,
			  struct dat2_rmr_param *param);
DAT_RETURN dat2_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr,
			 const struct dat2_lmr_triplet *triplet, DAT_MEM_PRIV_FLAGS priv,
			 uint32_t va_type, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context);

/* data.c */
DAT_RETURN dat2_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT count, const struct dat2_lmr_triplet *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dat2_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT count, const struct dat2_lmr_triplet *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dat2_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT count,
				  const struct dat2_lmr_triplet *iov, DAT_DTO_COOKIE cookie,
				  const struct dat2_rmr_triplet *remote,
				  DAT_COMPLETION_FLAGS flags);
DAT_RETURN dat2_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT count,
				   const struct dat2_lmr_triplet *iov, DAT_DTO_COOKIE cookie,
				   const struct dat2_rmr_triplet *remote,
				   DAT_COMPLETION_FLAGS flags);
DAT_RETURN dat2_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT count,
			      const struct dat2_lmr_triplet *iov, DAT_DTO_COOKIE cookie);
DAT_RETURN dat2_ep_post_write_immediate(DAT_EP_HANDLE ep, DAT_COUNT count,
					const struct dat2_lmr_triplet *iov, DAT_DTO_COOKIE cookie,
					const struct dat2_rmr_triplet *remote, uint32_t immediate,
					DAT_COMPLETION_FLAGS flags);
DAT_RETURN dat2_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT count,
					     const struct dat2_lmr_triplet *iov,
					     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
					     DAT_BOOLEAN invalidates, DAT_RMR_CONTEXT context);
DAT_RETURN dat2_evd_dequeue(DAT_EVD_HANDLE evd, struct dat2_event *event);
DAT_RETURN dat2_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 struct dat2_event *event, DAT_COUNT *nmore);
DAT_RETURN dat2_evd_post_se(DAT_EVD_HANDLE evd, const struct dat2_event *event);

/* counters.c */
DAT_RETURN dat2_query_counters(DAT_HANDLE handle, int counter, uint64_t *values_out, int is_reset);
DAT_RETURN dat2_print_counters(DAT_HANDLE handle, int counter, int is_reset);
DAT_RETURN dat2_switch_counters(const char *call, DAT_HANDLE handle, int type);

/* extend.c */
DAT_RETURN dat2_extended_op(DAT_HANDLE handle, int operation, va_list args);

#endif
