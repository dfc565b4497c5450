// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of calls. core_<name> is the provider's entry point for the public function dat_<name>
 * and has the type of its slot, <name>_func, in the provider table (provider.c). Its file is that
 * of the object in its name.
 */
#ifndef CORE_CALLS_H
#define CORE_CALLS_H

#include <stddef.h>

#include <dat/udat.h>
#include <dat/dat_registry.h>

/* These run with cancellation of the thread disabled (cancel.h). */
#define CORE_CONTROL_CALLS(CALL)                                                                   \
	CALL(ia_query)                                                                             \
	CALL(ia_close)                                                                             \
	CALL(cno_create)                                                                           \
	CALL(cno_modify_agent)                                                                     \
	CALL(cno_query)                                                                            \
	CALL(cno_free)                                                                             \
	CALL(cr_query)                                                                             \
	CALL(cr_accept)                                                                            \
	CALL(cr_reject)                                                                            \
	CALL(cr_handoff)                                                                           \
	CALL(evd_create)                                                                           \
	CALL(evd_query)                                                                            \
	CALL(evd_modify_cno)                                                                       \
	CALL(evd_enable)                                                                           \
	CALL(evd_disable)                                                                          \
	CALL(evd_resize)                                                                           \
	CALL(evd_post_se)                                                                          \
	CALL(evd_free)                                                                             \
	CALL(evd_set_unwaitable)                                                                   \
	CALL(evd_clear_unwaitable)                                                                 \
	CALL(ep_create)                                                                            \
	CALL(ep_query)                                                                             \
	CALL(ep_modify)                                                                            \
	CALL(ep_connect)                                                                           \
	CALL(ep_dup_connect)                                                                       \
	CALL(ep_disconnect)                                                                        \
	CALL(ep_get_status)                                                                        \
	CALL(ep_free)                                                                              \
	CALL(ep_reset)                                                                             \
	CALL(ep_create_with_srq)                                                                   \
	CALL(ep_recv_query)                                                                        \
	CALL(ep_set_watermark)                                                                     \
	CALL(lmr_create)                                                                           \
	CALL(lmr_query)                                                                            \
	CALL(lmr_free)                                                                             \
	CALL(lmr_sync_rdma_read)                                                                   \
	CALL(lmr_sync_rdma_write)                                                                  \
	CALL(rmr_create)                                                                           \
	CALL(rmr_query)                                                                            \
	CALL(rmr_bind)                                                                             \
	CALL(rmr_free)                                                                             \
	CALL(psp_create)                                                                           \
	CALL(psp_query)                                                                            \
	CALL(psp_free)                                                                             \
	CALL(psp_create_any)                                                                       \
	CALL(rsp_create)                                                                           \
	CALL(rsp_query)                                                                            \
	CALL(rsp_free)                                                                             \
	CALL(pz_create)                                                                            \
	CALL(pz_query)                                                                             \
	CALL(pz_free)                                                                              \
	CALL(srq_create)                                                                           \
	CALL(srq_free)                                                                             \
	CALL(srq_query)                                                                            \
	CALL(srq_resize)                                                                           \
	CALL(srq_set_lw)

/* These disable it only around system calls: the data path, and calls that make none. */
#define CORE_DATA_CALLS(CALL)                                                                      \
	CALL(set_consumer_context)                                                                 \
	CALL(get_consumer_context)                                                                 \
	CALL(get_handle_type)                                                                      \
	CALL(cno_wait)                                                                             \
	CALL(evd_wait)                                                                             \
	CALL(evd_dequeue)                                                                          \
	CALL(ep_post_send)                                                                         \
	CALL(ep_post_recv)                                                                         \
	CALL(ep_post_rdma_read)                                                                    \
	CALL(ep_post_rdma_write)                                                                   \
	CALL(srq_post_recv)

#define CORE_CALL_DECLARE(name) __typeof__(*((DAT_PROVIDER *)NULL)->name##_func) core_##name;
CORE_CONTROL_CALLS(CORE_CALL_DECLARE)
CORE_DATA_CALLS(CORE_CALL_DECLARE)
#undef CORE_CALL_DECLARE

/* ia_open_func gets only the name, so each registered thread safety has an entry of its own. */
__typeof__(*(DAT_IA_OPEN_FUNC)NULL) core_ia_open_safe, core_ia_open_unsafe;

#endif
