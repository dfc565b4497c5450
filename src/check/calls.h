// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of calls: the slot of the provider table and the MT-Level of its manual page. check_<name>
 * is the function in the slot; its file is that of the object in its name.
 */
#ifndef CHECK_CALLS_H
#define CHECK_CALLS_H

#include <dat/dat_registry.h>
#include <dat/opendat.h>
#include <dat/udat.h>

#include <stddef.h>

/* CALL(name, level): SAFE, several threads may call at once on one object; UNSAFE, they may not. */
#define CHECK_CALLS(CALL)                                                                          \
	CALL(ia_query, SAFE)                                                                       \
	CALL(ia_close, UNSAFE)                                                                     \
	CALL(set_consumer_context, UNSAFE)                                                         \
	CALL(get_consumer_context, UNSAFE)                                                         \
	CALL(get_handle_type, UNSAFE)                                                              \
	CALL(cno_create, SAFE)                                                                     \
	CALL(cno_modify_agent, UNSAFE)                                                             \
	CALL(cno_query, UNSAFE)                                                                    \
	CALL(cno_free, UNSAFE)                                                                     \
	CALL(cno_wait, SAFE)                                                                       \
	CALL(cr_query, SAFE)                                                                       \
	CALL(cr_accept, UNSAFE)                                                                    \
	CALL(cr_reject, UNSAFE)                                                                    \
	CALL(cr_handoff, UNSAFE)                                                                   \
	CALL(evd_create, SAFE)                                                                     \
	CALL(evd_query, UNSAFE)                                                                    \
	CALL(evd_modify_cno, UNSAFE)                                                               \
	CALL(evd_enable, SAFE)                                                                     \
	CALL(evd_disable, SAFE)                                                                    \
	CALL(evd_wait, SAFE)                                                                       \
	CALL(evd_resize, UNSAFE)                                                                   \
	CALL(evd_post_se, UNSAFE)                                                                  \
	CALL(evd_dequeue, SAFE)                                                                    \
	CALL(evd_free, UNSAFE)                                                                     \
	CALL(evd_set_unwaitable, SAFE)                                                             \
	CALL(evd_clear_unwaitable, SAFE)                                                           \
	CALL(ep_create, SAFE)                                                                      \
	CALL(ep_create_with_srq, SAFE)                                                             \
	CALL(ep_query, UNSAFE)                                                                     \
	CALL(ep_modify, UNSAFE)                                                                    \
	CALL(ep_connect, UNSAFE)                                                                   \
	CALL(ep_dup_connect, UNSAFE)                                                               \
	CALL(ep_disconnect, UNSAFE)                                                                \
	CALL(ep_post_send, UNSAFE)                                                                 \
	CALL(ep_post_recv, UNSAFE)                                                                 \
	CALL(ep_post_rdma_read, UNSAFE)                                                            \
	CALL(ep_post_rdma_write, UNSAFE)                                                           \
	CALL(ep_get_status, SAFE)                                                                  \
	CALL(ep_free, UNSAFE)                                                                      \
	CALL(ep_reset, UNSAFE)                                                                     \
	CALL(ep_recv_query, UNSAFE)                                                                \
	CALL(ep_set_watermark, UNSAFE)                                                             \
	CALL(lmr_create, SAFE)                                                                     \
	CALL(lmr_query, UNSAFE)                                                                    \
	CALL(lmr_free, UNSAFE)                                                                     \
	CALL(lmr_sync_rdma_read, UNSAFE)                                                           \
	CALL(lmr_sync_rdma_write, UNSAFE)                                                          \
	CALL(rmr_create, SAFE)                                                                     \
	CALL(rmr_query, UNSAFE)                                                                    \
	CALL(rmr_bind, UNSAFE)                                                                     \
	CALL(rmr_free, UNSAFE)                                                                     \
	CALL(psp_create, SAFE)                                                                     \
	CALL(psp_create_any, SAFE)                                                                 \
	CALL(psp_query, SAFE)                                                                      \
	CALL(psp_free, UNSAFE)                                                                     \
	CALL(rsp_create, SAFE)                                                                     \
	CALL(rsp_query, SAFE)                                                                      \
	CALL(rsp_free, UNSAFE)                                                                     \
	CALL(pz_create, SAFE)                                                                      \
	CALL(pz_query, SAFE)                                                                       \
	CALL(pz_free, UNSAFE)                                                                      \
	CALL(srq_create, SAFE)                                                                     \
	CALL(srq_free, UNSAFE)                                                                     \
	CALL(srq_query, UNSAFE)                                                                    \
	CALL(srq_resize, UNSAFE)                                                                   \
	CALL(srq_set_lw, UNSAFE)                                                                   \
	CALL(srq_post_recv, UNSAFE)

/* Posts of <dat/opendat.h>, which the table does not have. */
#define CHECK_EXTRA_CALLS(CALL)                                                                    \
	CALL(opendat_ep_take_immediate, UNSAFE)                                                    \
	CALL(opendat_ep_post_rdma_write_immed, UNSAFE)                                             \
	CALL(opendat_ep_post_fetch_and_add, UNSAFE)                                                \
	CALL(opendat_ep_post_cmp_and_swap, UNSAFE)                                                 \
	CALL(opendat_ep_post_send_invalidate, UNSAFE)

#define CHECK_NUMBER(name, level) CHECK_CALL_##name,
enum check_call_number {
	CHECK_CALLS(CHECK_NUMBER) CHECK_CALL_ia_open,
	CHECK_EXTRA_CALLS(CHECK_NUMBER) CHECK_CALL_COUNT
};
#undef CHECK_NUMBER

#define CHECK_DECLARE(name, level) __typeof__(*((DAT_PROVIDER *)NULL)->name##_func) check_##name;
CHECK_CALLS(CHECK_DECLARE)
#undef CHECK_DECLARE

/* In the extension of the table (provider.c). */
__typeof__(dat_opendat_ep_take_immediate) check_take_immediate;
__typeof__(dat_opendat_ep_post_rdma_write_immed) check_write_immediate;
__typeof__(dat_opendat_ep_post_fetch_and_add) check_fetch_add;
__typeof__(dat_opendat_ep_post_cmp_and_swap) check_compare_swap;
__typeof__(dat_opendat_ep_post_send_invalidate) check_send_invalidate;

/* ia_open_func gets only the name, so each registered thread safety has an entry of its own. */
__typeof__(*(DAT_IA_OPEN_FUNC)NULL) check_ia_open_safe, check_ia_open_unsafe;

#endif
