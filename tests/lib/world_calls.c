// SPDX-License-Identifier: BSD-2-Clause
/* Every call that takes a handle, as a function of that handle alone. */
#include "world.h"

#define WORLD_CALL(name, param, call)                                                              \
	static DAT_RETURN world_##name(DAT_HANDLE h)                                               \
	{                                                                                          \
		param;                                                                             \
		return call;                                                                       \
	}

#define WORLD_SEG                                                                                  \
	DAT_LMR_TRIPLET seg = {0};                                                                 \
	DAT_RMR_TRIPLET rseg = {0};                                                                \
	(void)rseg

WORLD_CALL(ia_query, , dat_ia_query(h, NULL, 0, NULL, 0, NULL))
WORLD_CALL(ia_sync_read, , dat_lmr_sync_rdma_read(h, NULL, 0))
WORLD_CALL(ia_sync_write, , dat_lmr_sync_rdma_write(h, NULL, 0))
WORLD_CALL(pz_query, DAT_PZ_PARAM param, dat_pz_query(h, DAT_PZ_FIELD_ALL, &param))
WORLD_CALL(lmr_query, DAT_LMR_PARAM param, dat_lmr_query(h, DAT_LMR_FIELD_ALL, &param))
WORLD_CALL(evd_query, DAT_EVD_PARAM param, dat_evd_query(h, DAT_EVD_FIELD_ALL, &param))
WORLD_CALL(ep_query, DAT_EP_PARAM param, dat_ep_query(h, DAT_EP_FIELD_ALL, &param))
WORLD_CALL(ep_status, , dat_ep_get_status(h, NULL, NULL, NULL))
WORLD_CALL(cr_query, DAT_CR_PARAM param, dat_cr_query(h, DAT_CR_FIELD_ALL, &param))
WORLD_CALL(psp_query, DAT_PSP_PARAM param, dat_psp_query(h, DAT_PSP_FIELD_ALL, &param))
WORLD_CALL(rsp_query, DAT_RSP_PARAM param, dat_rsp_query(h, DAT_RSP_FIELD_ALL, &param))
WORLD_CALL(evd_dequeue, DAT_EVENT event, dat_evd_dequeue(h, &event))
WORLD_CALL(evd_enable, , dat_evd_enable(h))
WORLD_CALL(evd_disable, , dat_evd_disable(h))
WORLD_CALL(evd_resize, , dat_evd_resize(h, 10))
WORLD_CALL(evd_set_unwaitable, , dat_evd_set_unwaitable(h))
WORLD_CALL(evd_clear_unwaitable, , dat_evd_clear_unwaitable(h))
WORLD_CALL(evd_wait, DAT_EVENT event; DAT_COUNT more, dat_evd_wait(h, 0, 1, &event, &more))
WORLD_CALL(evd_post_se, const DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT},
	   dat_evd_post_se(h, &event))
WORLD_CALL(evd_free, , dat_evd_free(h))
WORLD_CALL(ep_modify, DAT_EP_PARAM param = {0}, dat_ep_modify(h, 0, &param))
WORLD_CALL(ep_reset, , dat_ep_reset(h))
WORLD_CALL(ep_disconnect, , dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG))
WORLD_CALL(ep_send, WORLD_SEG, dat_ep_post_send(h, 1, &seg, dt_cookie(0), 0))
WORLD_CALL(ep_recv, WORLD_SEG, dat_ep_post_recv(h, 1, &seg, dt_cookie(0), 0))
WORLD_CALL(ep_read, WORLD_SEG, dat_ep_post_rdma_read(h, 1, &seg, dt_cookie(0), &rseg, 0))
WORLD_CALL(ep_write, WORLD_SEG, dat_ep_post_rdma_write(h, 1, &seg, dt_cookie(0), &rseg, 0))
WORLD_CALL(ep_free, , dat_ep_free(h))
WORLD_CALL(cr_accept, , dat_cr_accept(h, DAT_HANDLE_NULL, 0, NULL))
WORLD_CALL(cr_reject, , dat_cr_reject(h))
WORLD_CALL(cr_handoff, , dat_cr_handoff(h, 77))
WORLD_CALL(psp_free, , dat_psp_free(h))
WORLD_CALL(rsp_free, , dat_rsp_free(h))
WORLD_CALL(lmr_free, , dat_lmr_free(h))
WORLD_CALL(pz_free, , dat_pz_free(h))
WORLD_CALL(pz_create, DAT_PZ_HANDLE pz, dat_pz_create(h, &pz))
WORLD_CALL(evd_create, DAT_EVD_HANDLE evd,
	   dat_evd_create(h, 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd))
WORLD_CALL(ep_create, DAT_EP_HANDLE ep,
	   dat_ep_create(h, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
			 NULL, &ep))
WORLD_CALL(rmr_query, DAT_RMR_PARAM param,
	   dat_rmr_query(h, (DAT_RMR_PARAM_MASK)(DAT_RMR_FIELD_IA_HANDLE | DAT_RMR_FIELD_PZ_HANDLE),
			 &param))
WORLD_CALL(rmr_bind, WORLD_SEG; DAT_RMR_CONTEXT rkey;
	   const DAT_RMR_COOKIE cookie = {.as_64 = 0},
	   dat_rmr_bind(h, &seg, DAT_MEM_PRIV_NONE_FLAG, DAT_HANDLE_NULL, cookie, 0, &rkey))
WORLD_CALL(rmr_free, , dat_rmr_free(h))
WORLD_CALL(rmr_create, DAT_RMR_HANDLE rmr, dat_rmr_create(h, &rmr))
WORLD_CALL(cno_query, DAT_CNO_PARAM param, dat_cno_query(h, DAT_CNO_FIELD_ALL, &param))
WORLD_CALL(cno_modify_agent, , dat_cno_modify_agent(h, DAT_OS_WAIT_PROXY_AGENT_NULL))
WORLD_CALL(cno_wait, DAT_EVD_HANDLE evd, dat_cno_wait(h, 0, &evd))
WORLD_CALL(cno_free, , dat_cno_free(h))
WORLD_CALL(cno_create, DAT_CNO_HANDLE cno, dat_cno_create(h, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno))
WORLD_CALL(evd_modify_cno, , dat_evd_modify_cno(h, DAT_HANDLE_NULL))
WORLD_CALL(srq_query, DAT_SRQ_PARAM param, dat_srq_query(h, DAT_SRQ_FIELD_ALL, &param))
WORLD_CALL(srq_post_recv, , dat_srq_post_recv(h, 0, NULL, dt_cookie(0)))
WORLD_CALL(srq_resize, , dat_srq_resize(h, 4))
WORLD_CALL(srq_set_lw, , dat_srq_set_lw(h, 0))
WORLD_CALL(srq_free, , dat_srq_free(h))
WORLD_CALL(srq_create, DAT_SRQ_HANDLE srq;
	   DAT_SRQ_ATTR attr = {0}, dat_srq_create(h, DAT_HANDLE_NULL, &attr, &srq))
WORLD_CALL(ep_create_with_srq, DAT_EP_HANDLE ep;
	   DAT_EP_ATTR attr = {0},
	   dat_ep_create_with_srq(h, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
				  DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &ep))
WORLD_CALL(ep_recv_query, DAT_COUNT held, dat_ep_recv_query(h, &held, NULL))
WORLD_CALL(ep_set_watermark, , dat_ep_set_watermark(h, DAT_HW_DEFAULT, DAT_HW_DEFAULT))
WORLD_CALL(ia_close, , dat_ia_close(h, DAT_CLOSE_ABRUPT_FLAG))

const struct world_call world_calls[WORLD_CALLS] = {
	{"ia_query", DAT_HANDLE_TYPE_IA, world_ia_query, true},
	{"lmr_sync_rdma_read", DAT_HANDLE_TYPE_IA, world_ia_sync_read, true},
	{"lmr_sync_rdma_write", DAT_HANDLE_TYPE_IA, world_ia_sync_write, true},
	{"pz_query", DAT_HANDLE_TYPE_PZ, world_pz_query, true},
	{"lmr_query", DAT_HANDLE_TYPE_LMR, world_lmr_query, true},
	{"evd_query", DAT_HANDLE_TYPE_EVD, world_evd_query, true},
	{"ep_query", DAT_HANDLE_TYPE_EP, world_ep_query, true},
	{"ep_get_status", DAT_HANDLE_TYPE_EP, world_ep_status, true},
	{"cr_query", DAT_HANDLE_TYPE_CR, world_cr_query, true},
	{"psp_query", DAT_HANDLE_TYPE_PSP, world_psp_query, true},
	{"rsp_query", DAT_HANDLE_TYPE_RSP, world_rsp_query, true},
	{"evd_enable", DAT_HANDLE_TYPE_EVD, world_evd_enable, true},
	{"evd_clear_unwaitable", DAT_HANDLE_TYPE_EVD, world_evd_clear_unwaitable, true},
	{"evd_disable", DAT_HANDLE_TYPE_EVD, world_evd_disable, false},
	{"evd_set_unwaitable", DAT_HANDLE_TYPE_EVD, world_evd_set_unwaitable, false},
	{"evd_dequeue", DAT_HANDLE_TYPE_EVD, world_evd_dequeue, false},
	{"evd_resize", DAT_HANDLE_TYPE_EVD, world_evd_resize, false},
	{"evd_wait", DAT_HANDLE_TYPE_EVD, world_evd_wait, false},
	{"evd_post_se", DAT_HANDLE_TYPE_EVD, world_evd_post_se, false},
	{"evd_free", DAT_HANDLE_TYPE_EVD, world_evd_free, false},
	{"ep_modify", DAT_HANDLE_TYPE_EP, world_ep_modify, false},
	{"ep_reset", DAT_HANDLE_TYPE_EP, world_ep_reset, false},
	{"ep_disconnect", DAT_HANDLE_TYPE_EP, world_ep_disconnect, false},
	{"ep_post_send", DAT_HANDLE_TYPE_EP, world_ep_send, false},
	{"ep_post_recv", DAT_HANDLE_TYPE_EP, world_ep_recv, false},
	{"ep_post_rdma_read", DAT_HANDLE_TYPE_EP, world_ep_read, false},
	{"ep_post_rdma_write", DAT_HANDLE_TYPE_EP, world_ep_write, false},
	{"ep_free", DAT_HANDLE_TYPE_EP, world_ep_free, false},
	{"cr_accept", DAT_HANDLE_TYPE_CR, world_cr_accept, false},
	{"cr_reject", DAT_HANDLE_TYPE_CR, world_cr_reject, false},
	{"cr_handoff", DAT_HANDLE_TYPE_CR, world_cr_handoff, false},
	{"psp_free", DAT_HANDLE_TYPE_PSP, world_psp_free, false},
	{"rsp_free", DAT_HANDLE_TYPE_RSP, world_rsp_free, false},
	{"lmr_free", DAT_HANDLE_TYPE_LMR, world_lmr_free, false},
	{"pz_free", DAT_HANDLE_TYPE_PZ, world_pz_free, false},
	{"pz_create", DAT_HANDLE_TYPE_IA, world_pz_create, false},
	{"evd_create", DAT_HANDLE_TYPE_IA, world_evd_create, false},
	{"ep_create", DAT_HANDLE_TYPE_IA, world_ep_create, false},
	{"rmr_query", DAT_HANDLE_TYPE_RMR, world_rmr_query, true},
	{"rmr_bind", DAT_HANDLE_TYPE_RMR, world_rmr_bind, false},
	{"rmr_free", DAT_HANDLE_TYPE_RMR, world_rmr_free, false},
	{"rmr_create", DAT_HANDLE_TYPE_PZ, world_rmr_create, false},
	{"cno_query", DAT_HANDLE_TYPE_CNO, world_cno_query, true},
	{"cno_modify_agent", DAT_HANDLE_TYPE_CNO, world_cno_modify_agent, true},
	{"cno_wait", DAT_HANDLE_TYPE_CNO, world_cno_wait, false},
	{"cno_free", DAT_HANDLE_TYPE_CNO, world_cno_free, false},
	{"cno_create", DAT_HANDLE_TYPE_IA, world_cno_create, false},
	{"evd_modify_cno", DAT_HANDLE_TYPE_EVD, world_evd_modify_cno, true},
	{"srq_query", DAT_HANDLE_TYPE_SRQ, world_srq_query, true},
	{"srq_resize", DAT_HANDLE_TYPE_SRQ, world_srq_resize, true},
	{"srq_set_lw", DAT_HANDLE_TYPE_SRQ, world_srq_set_lw, true},
	{"srq_post_recv", DAT_HANDLE_TYPE_SRQ, world_srq_post_recv, false},
	{"srq_free", DAT_HANDLE_TYPE_SRQ, world_srq_free, false},
	{"srq_create", DAT_HANDLE_TYPE_IA, world_srq_create, false},
	{"ep_create_with_srq", DAT_HANDLE_TYPE_IA, world_ep_create_with_srq, false},
	{"ep_recv_query", DAT_HANDLE_TYPE_EP, world_ep_recv_query, true},
	{"ep_set_watermark", DAT_HANDLE_TYPE_EP, world_ep_set_watermark, true},
	{"ia_close", DAT_HANDLE_TYPE_IA, world_ia_close, false},
};

DAT_RETURN world_query(DAT_HANDLE_TYPE type, DAT_HANDLE handle)
{
	for (size_t i = 0; i < WORLD_CALLS; i++)
		if (world_calls[i].type == type && strstr(world_calls[i].name, "_query"))
			return world_calls[i].fn(handle);
	fail();
	return DAT_INTERNAL_ERROR;
}
