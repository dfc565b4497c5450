// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every parameter that a call can refuse with DAT_INVALID_PARAMETER: REFUSED(call, number of the
 * parameter, its name, the end of the line that the log must have, the call). In the calls, `w` is
 * the open world and `s` are the variables of test_refused_log.c. check_refused.py compares the
 * list with the comments in the headers.
 */
#define BITS "0xffffffff has bits other than 0x"
#define BIG "2147483647 is not from "

/* clang-format off */
#define REFUSED_CASES(REFUSED)                                                                     \
	REFUSED(ia_openv, 1, provider, "NULL", dat_ia_openv(NULL, 8, &s.evd, &s.ia, 1, 2, DAT_TRUE)) \
	REFUSED(ia_openv, 2, asynch_evd_min_qlen, "0 is not positive", dat_ia_openv((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 0, &s.none, &s.ia, 1, 2, DAT_TRUE)) \
	REFUSED(ia_openv, 3, asynch_evd_handle, "NULL", dat_ia_openv((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, NULL, &s.ia, 1, 2, DAT_TRUE)) \
	REFUSED(ia_openv, 4, ia_handle, "NULL", dat_ia_openv((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, &s.none, NULL, 1, 2, DAT_TRUE)) \
	REFUSED(ia_query, 3, ia_attr_mask, " has bits other than 0x", dat_ia_query(w->ia.ia, NULL, ~UINT64_C(0), &s.ia_attr, 0, NULL)) \
	REFUSED(ia_query, 4, ia_attr, "NULL", dat_ia_query(w->ia.ia, NULL, DAT_IA_FIELD_ALL, NULL, 0, NULL)) \
	REFUSED(ia_query, 5, provider_attr_mask, " has bits other than 0x", dat_ia_query(w->ia.ia, NULL, 0, NULL, ~UINT64_C(0), &s.provider)) \
	REFUSED(ia_query, 6, provider_attr, "NULL", dat_ia_query(w->ia.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, NULL)) \
	REFUSED(ia_close, 2, close_flags, "0x63 is neither DAT_CLOSE_GRACEFUL_FLAG nor DAT_CLOSE_ABRUPT_FLAG", dat_ia_close(w->ia.ia, (DAT_CLOSE_FLAGS)99)) \
	REFUSED(get_consumer_context, 2, context, "NULL", dat_get_consumer_context(w->cno, NULL)) \
	REFUSED(get_handle_type, 2, handle_type, "NULL", dat_get_handle_type(w->cno, NULL)) \
	REFUSED(cr_query, 2, cr_param_mask, BITS, dat_cr_query(w->cr, ANY_MASK, &s.cr_param)) \
	REFUSED(cr_query, 3, cr_param, "NULL", dat_cr_query(w->cr, DAT_CR_FIELD_ALL, NULL)) \
	REFUSED(cr_accept, 3, private_data_size, "-1 is not from 0 to ", dat_cr_accept(w->cr, s.idle.ep, -1, NULL)) \
	REFUSED(cr_accept, 4, private_data, "NULL", dat_cr_accept(w->cr, s.idle.ep, 1, NULL)) \
	REFUSED(cr_handoff, 2, handoff, "no service point of the instance takes requests for 0x7", dat_cr_handoff(w->cr, 7)) \
	REFUSED(evd_create, 2, evd_min_qlen, "0 is not positive", dat_evd_create(w->ia.ia, 0, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &s.evd)) \
	REFUSED(evd_create, 4, evd_flags, "0x0 has no flag", dat_evd_create(w->ia.ia, 1, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)0, &s.evd)) \
	REFUSED(evd_create, 5, evd_handle, "NULL", dat_evd_create(w->ia.ia, 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, NULL)) \
	REFUSED(evd_resize, 2, evd_min_qlen, BIG "1 to ", dat_evd_resize(s.idle.conn, INT32_MAX)) \
	REFUSED(evd_post_se, 1, evd_handle, " was created without DAT_EVD_SOFTWARE_FLAG", dat_evd_post_se(s.idle.conn, &s.software)) \
	REFUSED(evd_post_se, 2, event, "event_number 0x0 is not DAT_SOFTWARE_EVENT", dat_evd_post_se(s.idle.conn, &s.event)) \
	REFUSED(evd_dequeue, 2, event, "NULL", dat_evd_dequeue(s.idle.conn, NULL)) \
	REFUSED(evd_query, 2, evd_param_mask, BITS, dat_evd_query(s.idle.conn, ANY_MASK, &s.evd_param)) \
	REFUSED(evd_query, 3, evd_param, "NULL", dat_evd_query(s.idle.conn, DAT_EVD_FIELD_ALL, NULL)) \
	REFUSED(evd_wait, 3, threshold, "1000000 is not from 1 to ", dat_evd_wait(s.idle.conn, 0, 1000000, &s.event, &s.count)) \
	REFUSED(evd_wait, 4, event, "NULL", dat_evd_wait(s.idle.conn, 0, 1, NULL, &s.count)) \
	REFUSED(evd_wait, 5, n_more_events, "NULL", dat_evd_wait(s.idle.conn, 0, 1, &s.event, NULL)) \
	REFUSED(cno_create, 2, agent, "instance_data without proxy_agent_func", dat_cno_create(w->ia.ia, s.agent, &s.cno)) \
	REFUSED(cno_create, 3, cno_handle, "NULL", dat_cno_create(w->ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, NULL)) \
	REFUSED(cno_modify_agent, 2, agent, "instance_data without proxy_agent_func", dat_cno_modify_agent(w->cno, s.agent)) \
	REFUSED(cno_query, 2, cno_param_mask, BITS, dat_cno_query(w->cno, ANY_MASK, &s.cno_param)) \
	REFUSED(cno_query, 3, cno_param, "NULL", dat_cno_query(w->cno, DAT_CNO_FIELD_ALL, NULL)) \
	REFUSED(cno_wait, 3, evd_handle, "NULL", dat_cno_wait(w->cno, 0, NULL)) \
	REFUSED(opendat_cno_fd, 2, fd, "NULL", dat_opendat_cno_fd(w->cno, NULL)) \
	REFUSED(opendat_peer, 2, peer, "size 0 is less than ", dat_opendat_peer(w->active.ep, &s.peer)) \
	REFUSED(opendat_ep_post_rdma_write_immed, 2, num_segments, "-1 is not from 0 to ", dat_opendat_ep_post_rdma_write_immed(s.idle.ep, -1, &s.local, s.cookie, &s.remote, 1, 0)) \
	REFUSED(opendat_ep_post_rdma_write_immed, 3, local_iov, "NULL", dat_opendat_ep_post_rdma_write_immed(s.idle.ep, 1, NULL, s.cookie, &s.remote, 1, 0)) \
	REFUSED(opendat_ep_post_rdma_write_immed, 5, remote_iov, "NULL", dat_opendat_ep_post_rdma_write_immed(s.idle.ep, 0, NULL, s.cookie, NULL, 1, 0)) \
	REFUSED(opendat_ep_post_rdma_write_immed, 7, completion_flags, "0xffffffff has bits other than 0x", dat_opendat_ep_post_rdma_write_immed(s.idle.ep, 0, NULL, s.cookie, &s.remote, 1, (DAT_COMPLETION_FLAGS)~0u)) \
	REFUSED(opendat_ep_post_fetch_and_add, 3, local_iov, "NULL", dat_opendat_ep_post_fetch_and_add(s.idle.ep, 1, NULL, s.cookie, &s.remote, 0)) \
	REFUSED(opendat_ep_post_fetch_and_add, 5, remote_iov, "NULL", dat_opendat_ep_post_fetch_and_add(s.idle.ep, 1, &s.local, s.cookie, NULL, 0)) \
	REFUSED(opendat_ep_post_fetch_and_add, 6, completion_flags, "0xffffffff has bits other than 0x", dat_opendat_ep_post_fetch_and_add(s.idle.ep, 1, &s.local, s.cookie, &s.remote, (DAT_COMPLETION_FLAGS)~0u)) \
	REFUSED(opendat_ep_post_cmp_and_swap, 4, local_iov, "NULL", dat_opendat_ep_post_cmp_and_swap(s.idle.ep, 1, 2, NULL, s.cookie, &s.remote, 0)) \
	REFUSED(opendat_ep_post_cmp_and_swap, 6, remote_iov, "NULL", dat_opendat_ep_post_cmp_and_swap(s.idle.ep, 1, 2, &s.local, s.cookie, NULL, 0)) \
	REFUSED(opendat_ep_post_cmp_and_swap, 7, completion_flags, "0xffffffff has bits other than 0x", dat_opendat_ep_post_cmp_and_swap(s.idle.ep, 1, 2, &s.local, s.cookie, &s.remote, (DAT_COMPLETION_FLAGS)~0u)) \
	REFUSED(opendat_ep_post_send_invalidate, 2, num_segments, "-1 is not from 0 to ", dat_opendat_ep_post_send_invalidate(s.idle.ep, -1, &s.local, s.cookie, 0, 1)) \
	REFUSED(opendat_ep_post_send_invalidate, 3, local_iov, "NULL", dat_opendat_ep_post_send_invalidate(s.idle.ep, 1, NULL, s.cookie, 0, 1)) \
	REFUSED(opendat_ep_post_send_invalidate, 5, completion_flags, "0xffffffff has bits other than 0x", dat_opendat_ep_post_send_invalidate(s.idle.ep, 0, NULL, s.cookie, (DAT_COMPLETION_FLAGS)~0u, 1)) \
	REFUSED(opendat_dto_data, 1, event, "NULL", dat_opendat_dto_data(NULL, &s.dto_data)) \
	REFUSED(opendat_dto_data, 2, data, "size 0 is less than ", dat_opendat_dto_data(&s.completion, &s.dto_data)) \
	REFUSED(ep_create, 6, ep_attributes, "max_request_dtos " BIG "0 to ", create_with(w, &s.attr_dtos)) \
	REFUSED(ep_create, 7, ep_handle, "NULL", dat_ep_create(w->ia.ia, w->ia.pz, s.idle.recv, s.idle.request, s.idle.conn, NULL, NULL)) \
	REFUSED(ep_create_with_srq, 7, ep_attributes, "NULL", dat_ep_create_with_srq(w->ia.ia, w->ia.pz, s.idle.recv, s.idle.request, s.idle.conn, w->srq, NULL, &s.ep)) \
	REFUSED(ep_create_with_srq, 8, ep_handle, "NULL", dat_ep_create_with_srq(w->ia.ia, w->ia.pz, s.idle.recv, s.idle.request, s.idle.conn, w->srq, &s.attr, NULL)) \
	REFUSED(ep_query, 3, ep_param, "NULL", dat_ep_query(s.idle.ep, DAT_EP_FIELD_ALL, NULL)) \
	REFUSED(ep_modify, 2, ep_param_mask, " has bits other than 0x", dat_ep_modify(s.idle.ep, (DAT_EP_PARAM_MASK)~UINT64_C(0), &s.ep_param)) \
	REFUSED(ep_modify, 3, ep_param, "NULL", dat_ep_modify(s.idle.ep, DAT_EP_FIELD_PZ_HANDLE, NULL)) \
	REFUSED(ep_connect, 2, remote_ia_address, "NULL", dat_ep_connect(s.idle.ep, NULL, 1, 1, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)) \
	REFUSED(ep_connect, 4, timeout, "0", dat_ep_connect(s.idle.ep, w->ia.attr.ia_address_ptr, 1, 0, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)) \
	REFUSED(ep_connect, 5, private_data_size, "-1 is not from 0 to ", dat_ep_connect(s.idle.ep, w->ia.attr.ia_address_ptr, 1, 1, -1, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)) \
	REFUSED(ep_connect, 6, private_data, "NULL", dat_ep_connect(s.idle.ep, w->ia.attr.ia_address_ptr, 1, 1, 1, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)) \
	REFUSED(ep_connect, 8, connect_flags, "0x8 has bits other than 0x", dat_ep_connect(s.idle.ep, w->ia.attr.ia_address_ptr, 1, 1, 0, NULL, DAT_QOS_BEST_EFFORT, (DAT_CONNECT_FLAGS)8)) \
	REFUSED(ep_dup_connect, 3, timeout, "0", dat_ep_dup_connect(s.idle.ep, w->active.ep, 0, 0, NULL, DAT_QOS_BEST_EFFORT)) \
	REFUSED(ep_dup_connect, 4, private_data_size, "-1 is not from 0 to ", dat_ep_dup_connect(s.idle.ep, w->active.ep, 1, -1, NULL, DAT_QOS_BEST_EFFORT)) \
	REFUSED(ep_dup_connect, 5, private_data, "NULL", dat_ep_dup_connect(s.idle.ep, w->active.ep, 1, 1, NULL, DAT_QOS_BEST_EFFORT)) \
	REFUSED(ep_disconnect, 2, close_flags, "0x63 is neither DAT_CLOSE_GRACEFUL_FLAG nor DAT_CLOSE_ABRUPT_FLAG", dat_ep_disconnect(s.idle.ep, (DAT_CLOSE_FLAGS)99)) \
	REFUSED(ep_post_send, 2, num_segments, "-1 is not from 0 to ", dat_ep_post_send(s.idle.ep, -1, &s.local, s.cookie, 0)) \
	REFUSED(ep_post_send, 3, local_iov, "NULL", dat_ep_post_send(s.idle.ep, 1, NULL, s.cookie, 0)) \
	REFUSED(ep_post_send, 5, completion_flags, "0xffffffff has bits other than 0x", dat_ep_post_send(s.idle.ep, 0, NULL, s.cookie, (DAT_COMPLETION_FLAGS)~0u)) \
	REFUSED(ep_post_recv, 1, ep_handle, " receives into the buffers of its SRQ: post them by dat_srq_post_recv", dat_ep_post_recv(s.with_srq.ep, 1, &s.local, s.cookie, 0)) \
	REFUSED(ep_post_recv, 2, num_segments, BIG "0 to ", dat_ep_post_recv(s.idle.ep, INT32_MAX, &s.local, s.cookie, 0)) \
	REFUSED(ep_post_recv, 3, local_iov, "NULL", dat_ep_post_recv(s.idle.ep, 1, NULL, s.cookie, 0)) \
	REFUSED(ep_post_recv, 5, completion_flags, "0x2 has bits other than 0x0", dat_ep_post_recv(s.idle.ep, 0, NULL, s.cookie, DAT_COMPLETION_SOLICITED_WAIT_FLAG)) \
	REFUSED(ep_post_rdma_read, 2, num_segments, "-1 is not from 0 to ", dat_ep_post_rdma_read(s.idle.ep, -1, &s.local, s.cookie, &s.remote, 0)) \
	REFUSED(ep_post_rdma_read, 3, local_iov, "NULL", dat_ep_post_rdma_read(s.idle.ep, 1, NULL, s.cookie, &s.remote, 0)) \
	REFUSED(ep_post_rdma_read, 5, remote_iov, "NULL", dat_ep_post_rdma_read(s.idle.ep, 0, NULL, s.cookie, NULL, 0)) \
	REFUSED(ep_post_rdma_read, 6, completion_flags, "0xffffffff has bits other than 0x", dat_ep_post_rdma_read(s.idle.ep, 0, NULL, s.cookie, &s.remote, (DAT_COMPLETION_FLAGS)~0u)) \
	REFUSED(ep_post_rdma_write, 2, num_segments, "-1 is not from 0 to ", dat_ep_post_rdma_write(s.idle.ep, -1, &s.local, s.cookie, &s.remote, 0)) \
	REFUSED(ep_post_rdma_write, 3, local_iov, "NULL", dat_ep_post_rdma_write(s.idle.ep, 1, NULL, s.cookie, &s.remote, 0)) \
	REFUSED(ep_post_rdma_write, 5, remote_iov, "NULL", dat_ep_post_rdma_write(s.idle.ep, 0, NULL, s.cookie, NULL, 0)) \
	REFUSED(ep_post_rdma_write, 6, completion_flags, "0xffffffff has bits other than 0x", dat_ep_post_rdma_write(s.idle.ep, 0, NULL, s.cookie, &s.remote, (DAT_COMPLETION_FLAGS)~0u)) \
	REFUSED(ep_set_watermark, 2, soft_high_watermark, "-7 is negative and not DAT_WATERMARK_INFINITE", dat_ep_set_watermark(s.idle.ep, -7, DAT_WATERMARK_INFINITE)) \
	REFUSED(ep_set_watermark, 3, hard_high_watermark, "-7 is negative and not DAT_WATERMARK_INFINITE", dat_ep_set_watermark(s.idle.ep, DAT_WATERMARK_INFINITE, -7)) \
	REFUSED(lmr_create, 2, mem_type, "99 is no DAT_MEM_TYPE", register_as(w, 99, w->buf.p, 1, DAT_MEM_PRIV_NONE_FLAG, &s.lmr)) \
	REFUSED(lmr_create, 3, region_description, ": NULL, or beyond the address space", register_as(w, DAT_MEM_TYPE_VIRTUAL, NULL, 1, DAT_MEM_PRIV_NONE_FLAG, &s.lmr)) \
	REFUSED(lmr_create, 4, length, "0", register_as(w, DAT_MEM_TYPE_VIRTUAL, w->buf.p, 0, DAT_MEM_PRIV_NONE_FLAG, &s.lmr)) \
	REFUSED(lmr_create, 6, privileges, BITS, register_as(w, DAT_MEM_TYPE_VIRTUAL, w->buf.p, 1, ~0u, &s.lmr)) \
	REFUSED(lmr_create, 7, lmr_handle, "NULL", register_as(w, DAT_MEM_TYPE_VIRTUAL, w->buf.p, 1, DAT_MEM_PRIV_NONE_FLAG, NULL)) \
	REFUSED(lmr_query, 2, lmr_param_mask, BITS, dat_lmr_query(w->buf.lmr, ANY_MASK, &s.lmr_param)) \
	REFUSED(lmr_query, 3, lmr_param, "NULL", dat_lmr_query(w->buf.lmr, DAT_LMR_FIELD_ALL, NULL)) \
	REFUSED(lmr_sync_rdma_read, 2, local_segments, "segment 0 is not inside a region", dat_lmr_sync_rdma_read(w->ia.ia, &s.wrong, 1)) \
	REFUSED(lmr_sync_rdma_write, 2, local_segments, "NULL", dat_lmr_sync_rdma_write(w->ia.ia, NULL, 1)) \
	REFUSED(rmr_create, 2, rmr_handle, "NULL", dat_rmr_create(w->ia.pz, NULL)) \
	REFUSED(rmr_query, 2, rmr_param_mask, "DAT_RMR_FIELD_LMR_TRIPLET, but nothing is bound", dat_rmr_query(w->rmr, DAT_RMR_FIELD_ALL, &s.rmr_param)) \
	REFUSED(rmr_query, 3, rmr_param, "NULL", dat_rmr_query(w->rmr, DAT_RMR_FIELD_PZ_HANDLE, NULL)) \
	REFUSED(rmr_bind, 2, lmr_triplet, "NULL", dat_rmr_bind(w->rmr, NULL, DAT_MEM_PRIV_NONE_FLAG, s.idle.ep, s.cookie, 0, &s.context)) \
	REFUSED(rmr_bind, 3, mem_priv, BITS, dat_rmr_bind(w->rmr, &s.local, (DAT_MEM_PRIV_FLAGS)~0u, s.idle.ep, s.cookie, 0, &s.context)) \
	REFUSED(rmr_bind, 6, completion_flags, BITS, dat_rmr_bind(w->rmr, &s.local, DAT_MEM_PRIV_NONE_FLAG, s.idle.ep, s.cookie, (DAT_COMPLETION_FLAGS)~0u, &s.context)) \
	REFUSED(rmr_bind, 7, context, "NULL", dat_rmr_bind(w->rmr, &s.local, DAT_MEM_PRIV_NONE_FLAG, s.idle.ep, s.cookie, 0, NULL)) \
	REFUSED(psp_create, 2, conn_qual, "0", dat_psp_create(w->ia.ia, 0, w->listener.evd, DAT_PSP_CONSUMER_FLAG, &s.psp)) \
	REFUSED(psp_create, 3, evd_handle, " receives events that need DAT_COMPLETION_SOLICITED_WAIT_FLAG", dat_psp_create(w->ia.ia, 1, s.solicited, DAT_PSP_CONSUMER_FLAG, &s.psp)) \
	REFUSED(psp_create, 4, psp_flags, "0x63 is neither DAT_PSP_CONSUMER_FLAG nor DAT_PSP_PROVIDER_FLAG", dat_psp_create(w->ia.ia, 1, w->listener.evd, (DAT_PSP_FLAGS)99, &s.psp)) \
	REFUSED(psp_create, 5, psp_handle, "NULL", dat_psp_create(w->ia.ia, 1, w->listener.evd, DAT_PSP_CONSUMER_FLAG, NULL)) \
	REFUSED(psp_create_any, 2, conn_qual, "NULL", dat_psp_create_any(w->ia.ia, NULL, w->listener.evd, DAT_PSP_CONSUMER_FLAG, &s.psp)) \
	REFUSED(psp_create_any, 3, evd_handle, " receives events that need DAT_COMPLETION_SOLICITED_WAIT_FLAG", dat_psp_create_any(w->ia.ia, &s.qual, s.solicited, DAT_PSP_CONSUMER_FLAG, &s.psp)) \
	REFUSED(psp_create_any, 4, psp_flags, "0x63 is neither DAT_PSP_CONSUMER_FLAG nor DAT_PSP_PROVIDER_FLAG", dat_psp_create_any(w->ia.ia, &s.qual, w->listener.evd, (DAT_PSP_FLAGS)99, &s.psp)) \
	REFUSED(psp_create_any, 5, psp_handle, "NULL", dat_psp_create_any(w->ia.ia, &s.qual, w->listener.evd, DAT_PSP_CONSUMER_FLAG, NULL)) \
	REFUSED(psp_query, 2, psp_param_mask, BITS, dat_psp_query(w->listener.psp, ANY_MASK, &s.psp_param)) \
	REFUSED(psp_query, 3, psp_param, "NULL", dat_psp_query(w->listener.psp, DAT_PSP_FIELD_ALL, NULL)) \
	REFUSED(rsp_create, 2, conn_qual, "0", dat_rsp_create(w->ia.ia, 0, s.idle.ep, w->listener.evd, &s.rsp)) \
	REFUSED(rsp_create, 4, evd_handle, " receives events that need DAT_COMPLETION_SOLICITED_WAIT_FLAG", dat_rsp_create(w->ia.ia, 1, s.idle.ep, s.solicited, &s.rsp)) \
	REFUSED(rsp_create, 5, rsp_handle, "NULL", dat_rsp_create(w->ia.ia, 1, s.idle.ep, w->listener.evd, NULL)) \
	REFUSED(rsp_query, 2, rsp_param_mask, BITS, dat_rsp_query(w->rsp, ANY_MASK, &s.rsp_param)) \
	REFUSED(rsp_query, 3, rsp_param, "NULL", dat_rsp_query(w->rsp, DAT_RSP_FIELD_ALL, NULL)) \
	REFUSED(pz_create, 2, pz_handle, "NULL", dat_pz_create(w->ia.ia, NULL)) \
	REFUSED(pz_query, 2, pz_param_mask, BITS, dat_pz_query(w->ia.pz, ANY_MASK, &s.pz_param)) \
	REFUSED(pz_query, 3, pz_param, "NULL", dat_pz_query(w->ia.pz, DAT_PZ_FIELD_ALL, NULL)) \
	REFUSED(srq_create, 3, srq_attr, "low_watermark 1 is not DAT_SRQ_LW_DEFAULT", dat_srq_create(w->ia.ia, w->ia.pz, &s.srq_attr, &s.srq)) \
	REFUSED(srq_create, 4, srq_handle, "NULL", dat_srq_create(w->ia.ia, w->ia.pz, &s.srq_attr, NULL)) \
	REFUSED(srq_post_recv, 2, num_segments, "-1 is not from 0 to 1", dat_srq_post_recv(w->srq, -1, &s.local, s.cookie)) \
	REFUSED(srq_post_recv, 3, local_iov, "NULL", dat_srq_post_recv(w->srq, 1, NULL, s.cookie)) \
	REFUSED(srq_query, 2, srq_param_mask, BITS, dat_srq_query(w->srq, ANY_MASK, &s.srq_param)) \
	REFUSED(srq_query, 3, srq_param, "NULL", dat_srq_query(w->srq, DAT_SRQ_FIELD_ALL, NULL)) \
	REFUSED(srq_resize, 2, srq_max_recv_dto, "0 is not from 1 to ", dat_srq_resize(w->srq, 0)) \
	REFUSED(srq_set_lw, 2, low_watermark, "-1 is not from 0 to 4", dat_srq_set_lw(w->srq, -1)) \
	REFUSED(registry_list_providers, 1, max_to_return, "0 is not positive", dat_registry_list_providers(0, &s.count, s.infos)) \
	REFUSED(registry_list_providers, 2, entries_returned, "NULL", dat_registry_list_providers(1, NULL, s.infos)) \
	REFUSED(registry_list_providers, 3, dat_provider_list, "NULL, or one of its first 1 pointers is", dat_registry_list_providers(1, &s.count, NULL)) \
	REFUSED(registry_add_provider, 1, provider, "NULL", dat_registry_add_provider(NULL, &s.info)) \
	REFUSED(registry_add_provider, 2, provider_info, "NULL, or its ia_name is empty or not terminated", dat_registry_add_provider(&s.table, NULL)) \
	REFUSED(registry_remove_provider, 1, provider, "NULL", dat_registry_remove_provider(NULL, &s.info)) \
	REFUSED(registry_remove_provider, 2, provider_info, "absent is not registered with this version and thread safety", dat_registry_remove_provider(&s.table, &s.info)) \
	REFUSED(strerror, 1, return_value, "0xff000000 is no return code", dat_strerror(0xff000000u, &s.text, &s.text)) \
	REFUSED(strerror, 2, major_message, "NULL", dat_strerror(DAT_SUCCESS, NULL, &s.text))
/* clang-format on */
