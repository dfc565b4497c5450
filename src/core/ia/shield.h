// SPDX-License-Identifier: BSD-2-Clause
/*
 * The entry points of the provider table that run with cancellation off (shield.c). Each has the
 * type of the call that it covers.
 */
#ifndef CORE_SHIELD_H
#define CORE_SHIELD_H

#include "core/base/calls.h"

__typeof__(core_ia_open_safe) shield_ia_open_safe;
__typeof__(core_ia_open_unsafe) shield_ia_open_unsafe;
__typeof__(core_lmr_create) shield_lmr_create;
__typeof__(core_evd_create) shield_evd_create;
__typeof__(core_evd_modify_cno) shield_evd_modify_cno;
__typeof__(core_cno_create) shield_cno_create;
__typeof__(core_cno_modify_agent) shield_cno_modify_agent;
__typeof__(core_cno_query) shield_cno_query;
__typeof__(core_cno_free) shield_cno_free;
__typeof__(core_evd_enable) shield_evd_enable;
__typeof__(core_evd_disable) shield_evd_disable;
__typeof__(core_evd_set_unwaitable) shield_evd_set_unwaitable;
__typeof__(core_evd_clear_unwaitable) shield_evd_clear_unwaitable;
__typeof__(core_ia_query) shield_ia_query;
__typeof__(core_ia_close) shield_ia_close;
__typeof__(core_cr_query) shield_cr_query;
__typeof__(core_cr_accept) shield_cr_accept;
__typeof__(core_cr_reject) shield_cr_reject;
__typeof__(core_cr_handoff) shield_cr_handoff;
__typeof__(core_evd_resize) shield_evd_resize;
__typeof__(core_evd_post_se) shield_evd_post_se;
__typeof__(core_evd_query) shield_evd_query;
__typeof__(core_evd_free) shield_evd_free;
__typeof__(core_ep_create) shield_ep_create;
__typeof__(core_ep_query) shield_ep_query;
__typeof__(core_ep_modify) shield_ep_modify;
__typeof__(core_ep_connect) shield_ep_connect;
__typeof__(core_ep_dup_connect) shield_ep_dup_connect;
__typeof__(core_ep_disconnect) shield_ep_disconnect;
__typeof__(core_ep_get_status) shield_ep_get_status;
__typeof__(core_ep_free) shield_ep_free;
__typeof__(core_ep_reset) shield_ep_reset;
__typeof__(core_ep_create_with_srq) shield_ep_create_with_srq;
__typeof__(core_ep_recv_query) shield_ep_recv_query;
__typeof__(core_ep_set_watermark) shield_ep_set_watermark;
__typeof__(core_lmr_query) shield_lmr_query;
__typeof__(core_lmr_free) shield_lmr_free;
__typeof__(core_lmr_sync_rdma_read) shield_lmr_sync_rdma_read;
__typeof__(core_lmr_sync_rdma_write) shield_lmr_sync_rdma_write;
__typeof__(core_rmr_create) shield_rmr_create;
__typeof__(core_rmr_query) shield_rmr_query;
__typeof__(core_rmr_bind) shield_rmr_bind;
__typeof__(core_rmr_free) shield_rmr_free;
__typeof__(core_psp_create) shield_psp_create;
__typeof__(core_psp_create_any) shield_psp_create_any;
__typeof__(core_psp_query) shield_psp_query;
__typeof__(core_psp_free) shield_psp_free;
__typeof__(core_rsp_create) shield_rsp_create;
__typeof__(core_rsp_query) shield_rsp_query;
__typeof__(core_rsp_free) shield_rsp_free;
__typeof__(core_pz_create) shield_pz_create;
__typeof__(core_pz_query) shield_pz_query;
__typeof__(core_pz_free) shield_pz_free;
__typeof__(core_srq_create) shield_srq_create;
__typeof__(core_srq_free) shield_srq_free;
__typeof__(core_srq_query) shield_srq_query;
__typeof__(core_srq_resize) shield_srq_resize;
__typeof__(core_srq_set_lw) shield_srq_set_lw;

#endif
