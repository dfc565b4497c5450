// SPDX-License-Identifier: BSD-2-Clause
/* The table of calls of DAT 2.0, and the calls that differ from those of DAT 1.2 in the return code
 * or in one member. */
#include "dat2/table.h"

#include "core/base/calls.h"
#include "core/base/instance.h"
#include "core/base/transport_param.h"
#include "core/conn/peer.h"
#include "core/ep/ep_attr.h"
#include "core/event/cno.h"
#include "dat2/convert.h"
#include "dat2/front.h"
#include "shared/opendat.h"

/* --- calls with the types of DAT 1.2 --- */

#define SAME_1(call, A)                                                                            \
	static DAT_RETURN same_##call(A a)                                                         \
	{                                                                                          \
		return dat2_status(core_##call(a));                                                \
	}
#define SAME_2(call, A, B)                                                                         \
	static DAT_RETURN same_##call(A a, B b)                                                    \
	{                                                                                          \
		return dat2_status(core_##call(a, b));                                             \
	}
#define SAME_3(call, A, B, C)                                                                      \
	static DAT_RETURN same_##call(A a, B b, C c)                                               \
	{                                                                                          \
		return dat2_status(core_##call(a, b, c));                                          \
	}
#define SAME_4(call, A, B, C, D)                                                                   \
	static DAT_RETURN same_##call(A a, B b, C c, D d)                                          \
	{                                                                                          \
		return dat2_status(core_##call(a, b, c, d));                                       \
	}
#define SAME_5(call, A, B, C, D, E)                                                                \
	static DAT_RETURN same_##call(A a, B b, C c, D d, E e)                                     \
	{                                                                                          \
		return dat2_status(core_##call(a, b, c, d, e));                                    \
	}
/* A query: ia_handle is the consumer's (D2-REG-16). */
#define QUERY(call, A, B, C)                                                                       \
	static DAT_RETURN same_##call(A a, B b, C *c)                                              \
	{                                                                                          \
		DAT_RETURN ret = core_##call(a, b, c);                                             \
                                                                                                   \
		if (ret == DAT_SUCCESS)                                                            \
			c->ia_handle = dat2_consumer_ia(c->ia_handle);                             \
		return dat2_status(ret);                                                           \
	}

SAME_2(ia_close, DAT_IA_HANDLE, DAT_CLOSE_FLAGS)
SAME_2(set_consumer_context, DAT_HANDLE, DAT_CONTEXT)
SAME_2(get_consumer_context, DAT_HANDLE, DAT_CONTEXT *)
SAME_2(get_handle_type, DAT_HANDLE, DAT_HANDLE_TYPE *)
SAME_3(cno_create, DAT_IA_HANDLE, DAT_OS_WAIT_PROXY_AGENT, DAT_CNO_HANDLE *)
SAME_2(cno_modify_agent, DAT_CNO_HANDLE, DAT_OS_WAIT_PROXY_AGENT)
SAME_1(cno_free, DAT_CNO_HANDLE)
SAME_3(cno_wait, DAT_CNO_HANDLE, DAT_TIMEOUT, DAT_EVD_HANDLE *)
SAME_3(cr_query, DAT_CR_HANDLE, DAT_CR_PARAM_MASK, DAT_CR_PARAM *)
SAME_4(cr_accept, DAT_CR_HANDLE, DAT_EP_HANDLE, DAT_COUNT, const DAT_PVOID)
SAME_2(cr_handoff, DAT_CR_HANDLE, DAT_CONN_QUAL)
SAME_5(evd_create, DAT_IA_HANDLE, DAT_COUNT, DAT_CNO_HANDLE, DAT_EVD_FLAGS, DAT_EVD_HANDLE *)
QUERY(evd_query, DAT_EVD_HANDLE, DAT_EVD_PARAM_MASK, DAT_EVD_PARAM)
SAME_2(evd_modify_cno, DAT_EVD_HANDLE, DAT_CNO_HANDLE)
SAME_1(evd_enable, DAT_EVD_HANDLE)
SAME_1(evd_disable, DAT_EVD_HANDLE)
SAME_2(evd_resize, DAT_EVD_HANDLE, DAT_COUNT)
SAME_1(evd_free, DAT_EVD_HANDLE)
SAME_1(evd_set_unwaitable, DAT_EVD_HANDLE)
SAME_1(evd_clear_unwaitable, DAT_EVD_HANDLE)
SAME_2(ep_disconnect, DAT_EP_HANDLE, DAT_CLOSE_FLAGS)
SAME_4(ep_get_status, DAT_EP_HANDLE, DAT_EP_STATE *, DAT_BOOLEAN *, DAT_BOOLEAN *)
SAME_1(ep_free, DAT_EP_HANDLE)
SAME_1(ep_reset, DAT_EP_HANDLE)
SAME_3(ep_recv_query, DAT_EP_HANDLE, DAT_COUNT *, DAT_COUNT *)
SAME_3(ep_set_watermark, DAT_EP_HANDLE, DAT_COUNT, DAT_COUNT)
SAME_1(lmr_free, DAT_LMR_HANDLE)
SAME_2(rmr_create, DAT_PZ_HANDLE, DAT_RMR_HANDLE *)
SAME_1(rmr_free, DAT_RMR_HANDLE)
SAME_5(psp_create, DAT_IA_HANDLE, DAT_CONN_QUAL, DAT_EVD_HANDLE, DAT_PSP_FLAGS, DAT_PSP_HANDLE *)
QUERY(psp_query, DAT_PSP_HANDLE, DAT_PSP_PARAM_MASK, DAT_PSP_PARAM)
SAME_1(psp_free, DAT_PSP_HANDLE)
SAME_5(psp_create_any, DAT_IA_HANDLE, DAT_CONN_QUAL *, DAT_EVD_HANDLE, DAT_PSP_FLAGS,
       DAT_PSP_HANDLE *)
SAME_5(rsp_create, DAT_IA_HANDLE, DAT_CONN_QUAL, DAT_EP_HANDLE, DAT_EVD_HANDLE, DAT_RSP_HANDLE *)
QUERY(rsp_query, DAT_RSP_HANDLE, DAT_RSP_PARAM_MASK, DAT_RSP_PARAM)
SAME_1(rsp_free, DAT_RSP_HANDLE)
SAME_2(pz_create, DAT_IA_HANDLE, DAT_PZ_HANDLE *)
QUERY(pz_query, DAT_PZ_HANDLE, DAT_PZ_PARAM_MASK, DAT_PZ_PARAM)
SAME_1(pz_free, DAT_PZ_HANDLE)
SAME_4(srq_create, DAT_IA_HANDLE, DAT_PZ_HANDLE, DAT_SRQ_ATTR *, DAT_SRQ_HANDLE *)
SAME_1(srq_free, DAT_SRQ_HANDLE)
QUERY(srq_query, DAT_SRQ_HANDLE, DAT_SRQ_PARAM_MASK, DAT_SRQ_PARAM)
SAME_2(srq_resize, DAT_SRQ_HANDLE, DAT_COUNT)
SAME_2(srq_set_lw, DAT_SRQ_HANDLE, DAT_COUNT)

static DAT_RETURN same_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE source, DAT_TIMEOUT timeout,
				      DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos)
{
	return dat2_status(core_ep_dup_connect(ep, source, timeout, size, data, qos));
}

/* --- calls that differ in one member --- */

/* D2-SRQ-01 */
static DAT_RETURN srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	DAT_RETURN ret = same_srq_query(srq, mask, param);

	if (ret == DAT_SUCCESS)
		param->srq_state = (DAT_SRQ_STATE)(param->srq_state == DAT_SRQ_STATE_OPERATIONAL
							   ? DAT2_SRQ_STATE_OPERATIONAL
							   : DAT2_SRQ_STATE_ERROR);
	return ret;
}

/* D2-CNO-13, D2-CNO-14 */
static DAT_RETURN cno_query(DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask,
			    struct dat2_cno_param *param)
{
	DAT_CNO_PARAM found;
	DAT_RETURN ret =
		core_cno_query(cno, mask <= DAT2_CNO_FIELD_MOST ? 0 : mask, param ? &found : NULL);
	int fd = core_cno_proxy_fd(cno);

	if (ret != DAT_SUCCESS)
		return dat2_status_of_failure(ret);
	if (!mask)
		return ret;
	param->ia_handle = dat2_consumer_ia(found.ia_handle);
	param->proxy_type =
		found.agent.proxy_agent_func ? DAT2_PROXY_TYPE_AGENT : DAT2_PROXY_TYPE_NONE;
	param->proxy.agent = found.agent;
	if (fd >= 0) {
		param->proxy_type = DAT2_PROXY_TYPE_FD;
		param->proxy.fd = fd;
	}
	return DAT_SUCCESS;
}

/* D2-CNO-12 */
static DAT_RETURN cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent)
{
	if (core_cno_proxy_fd(cno) >= 0)
		return dat2_status(core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE));
	return same_cno_modify_agent(cno, agent);
}

/* --- calls that DAT 1.2 does not have --- */

/* Of a call without a counterpart in the core. */
static DAT_RETURN unsupported(void)
{
	return core_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
}

static DAT_RETURN cno_fd_create(DAT_IA_HANDLE ia, int *fd, DAT_CNO_HANDLE *cno)
{
	DAT_RETURN ret;

	if (ia && !fd) /* D2-CNO-05: the handle first, which core_cno_create checks */
		return dat2_status(core_bad_null(CORE_ARG(cno_fd_create, 2, file_descriptor)));
	ret = core_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, cno);
	if (ret != DAT_SUCCESS)
		return dat2_status(ret);
	ret = core_cno_fd(*cno, fd);
	if (ret != DAT_SUCCESS) {
		(void)core_cno_free(*cno);
		*cno = DAT_HANDLE_NULL;
	}
	return dat2_status(ret);
}

/* D2-CNO-07, D2-CNO-08 */
static DAT_RETURN cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *evd)
{
	DAT_EVD_HANDLE found = DAT_HANDLE_NULL;
	DAT_RETURN ret = core_cno_wait(cno, 0, evd ? &found : NULL);

	if (evd)
		*evd = found;
	/* dat_cno_wait has the handle behind the time-out */
	return dat2_status(ret == core_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3)
				   ? core_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2)
				   : ret);
}

/* --- the table --- */

#define SAME(call) .call##_func = same_##call,
/* The slot has the type of DAT 1.2; the registry of DAT 2.0 calls it with its own. */
#define OTHER(call, function)                                                                      \
	.call##_func = (__typeof__(((DAT_PROVIDER *)0)->call##_func))(void (*)(void))(function),
#define OWN(call) OTHER(call, dat2_##call)
#define LATER(function) (void (*)(void))(function),

static DAT_RETURN ep_attr_default(DAT_IA_HANDLE ia, DAT_EP_ATTR *attr)
{
	DAT_EP_ATTR found;
	DAT_RETURN ret = core_ep_attr_default(ia, attr ? &found : NULL);

	if (ret == DAT_SUCCESS)
		dat2_ep_attr_out(&found, (struct dat2_ep_attr *)attr);
	return dat2_status(ret);
}

static DAT_RETURN cno_fd(DAT_CNO_HANDLE cno, int *fd)
{
	return dat2_status(core_cno_fd(cno, fd));
}

static DAT_RETURN peer(DAT_HANDLE handle, DAT_OPENDAT_PEER *peer_out)
{
	return dat2_status(core_peer(handle, peer_out));
}

/* Its magic number tells a registry the generation of the table (D2-REG-08). */
static const struct opendat_extension extension = {
	.magic = OPENDAT_EXTENSION_2_MAGIC,
	.size = sizeof(struct opendat_extension),
	.cno_fd_func = cno_fd,
	.ia_name_func = core_ia_set_consumer_handle,
	.peer_func = peer,
	.ep_attr_default_func = ep_attr_default,
};

const struct core_front dat2_front = {
	.major = DAT2_VERSION_MAJOR,
	.open_unsafe = dat2_ia_open_unsafe,
	.open_safe = dat2_ia_open_safe,
	.open = dat2_instance_open,
	.close = dat2_instance_close,
	.mem_priv = (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | DAT2_MEM_PRIV_REMOTE_ATOMIC),
	.evd_flags = (DAT_EVD_FLAGS)DAT2_EVD_EXTENSION_BASE,
	.takes = TRANSPORT_TAKES_IMMEDIATE | TRANSPORT_TAKES_ATOMICS | TRANSPORT_TAKES_INVALIDATE,
	.tells_srq_end = true,
	.tells_reject_data = true,
	.table.provider =
		{.extension = (DAT_PVOID)(uintptr_t)&extension,
		 OWN(ia_query) SAME(ia_close) SAME(set_consumer_context) SAME(
			 get_consumer_context) SAME(get_handle_type) SAME(cno_create)
			 OTHER(cno_modify_agent, cno_modify_agent) OTHER(cno_query, cno_query) SAME(
				 cno_free) SAME(cno_wait) SAME(cr_query) SAME(cr_accept)
				 OWN(cr_reject) SAME(cr_handoff) SAME(evd_create) SAME(
					 evd_query) SAME(evd_modify_cno) SAME(evd_enable)
					 SAME(evd_disable) OWN(evd_wait) SAME(evd_resize) OWN(
						 evd_post_se) OWN(evd_dequeue) SAME(evd_free) OWN(ep_create)
						 OWN(ep_query) OWN(ep_modify) OWN(ep_connect) SAME(
							 ep_dup_connect) SAME(ep_disconnect) OWN(ep_post_send)
							 OWN(ep_post_recv) OWN(ep_post_rdma_read) OWN(
								 ep_post_rdma_write) SAME(ep_get_status)
								 SAME(ep_free) OWN(lmr_create) OWN(lmr_query) SAME(lmr_free) SAME(
									 rmr_create) OWN(rmr_query)
									 OWN(rmr_bind) SAME(rmr_free) SAME(
										 psp_create) SAME(psp_query) SAME(psp_free)
										 SAME(rsp_create) SAME(rsp_query) SAME(rsp_free) SAME(
											 pz_create) SAME(pz_query)
											 SAME(pz_free) SAME(psp_create_any) SAME(
												 ep_reset) SAME(evd_set_unwaitable)
												 SAME(evd_clear_unwaitable) OWN(lmr_sync_rdma_read) OWN(
													 lmr_sync_rdma_write) OWN(ep_create_with_srq)
													 SAME(ep_recv_query) SAME(ep_set_watermark) SAME(
														 srq_create) SAME(srq_free)
														 OWN(srq_post_recv) OTHER(
															 srq_query, srq_query)
															 SAME(srq_resize) SAME(srq_set_lw)},
	.table.later = {LATER(unsupported) /* csp_create */
			LATER(unsupported) /* csp_query */
			LATER(unsupported) /* csp_free */
			LATER(unsupported) /* ep_common_connect */
			LATER(unsupported) /* rmr_create_for_ep */
			LATER(dat2_ep_post_send_with_invalidate)
				LATER(unsupported) /* ep_post_rdma_read_to_rmr */
			LATER(cno_fd_create) LATER(cno_trigger)
				LATER(unsupported) /* ia_ha_related */
			LATER(dat2_extended_op)},
};

_Static_assert(sizeof(struct core_table) == 648, "D2-REG-06");

const struct core_front *const core_fronts[] = {&core_front_1, &dat2_front, NULL};
