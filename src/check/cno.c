// SPDX-License-Identifier: BSD-2-Clause
/* Consumer notification objects. The agent of the program gets its own handle of the EVD. */
#include "check/object.h"

#include <pthread.h>

/*
 * The provider's agent for every CNO that has one; its instance data is our object. A CNO calls its
 * agent once.
 */
static void agent(DAT_PVOID instance_data, DAT_EVD_HANDLE evd_handle)
{
	struct check_object *cno = instance_data;
	DAT_OS_WAIT_PROXY_AGENT own = DAT_OS_WAIT_PROXY_AGENT_NULL;

	check_lock();
	if (cno->life) {
		own = cno->life->cno.agent;
		cno->life->cno.agent = (DAT_OS_WAIT_PROXY_AGENT)DAT_OS_WAIT_PROXY_AGENT_NULL;
	}
	check_unlock();
	if (own.proxy_agent_func)
		own.proxy_agent_func(own.instance_data, check_outer(evd_handle));
}

static DAT_OS_WAIT_PROXY_AGENT agent_of(struct check_object *cno,
					const DAT_OS_WAIT_PROXY_AGENT *own)
{
	/* the provider refuses data without a function */
	return own->proxy_agent_func ? (DAT_OS_WAIT_PROXY_AGENT){cno, agent} : *own;
}

DAT_RETURN check_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT own,
			    DAT_CNO_HANDLE *cno_handle)
{
	const DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;
	struct check_call call;
	struct check_object *ia, *cno;
	DAT_CNO_HANDLE inner;
	DAT_RETURN ret;

	ia = check_begin(&call, CHECK_CALL_cno_create, ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia || !cno_handle || !own.proxy_agent_func)
		ret = dat_cno_create(check_inner(ia_handle), own, cno_handle);
	else /* the agent needs the object, and the object the handle */
		ret = dat_cno_create(check_inner(ia_handle), none, cno_handle);
	if (ret != DAT_SUCCESS)
		return check_end(&call, ret);
	inner = *cno_handle;
	cno = ia ? check_object_make(call.name, ia, DAT_HANDLE_TYPE_CNO, inner) : NULL;
	if (cno) {
		cno->life->cno.agent = own;
		*cno_handle = cno;
	}
	if (ia && own.proxy_agent_func)
		ret = dat_cno_modify_agent(inner, cno ? agent_of(cno, &own) : own);
	if (ret != DAT_SUCCESS) {
		(void)dat_cno_free(inner);
		if (cno)
			check_object_kill(cno);
	}
	return check_end(&call, ret);
}

DAT_RETURN check_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT own)
{
	struct check_call call;
	struct check_object *cno;
	DAT_OS_WAIT_PROXY_AGENT before;
	DAT_RETURN ret;

	cno = check_begin(&call, CHECK_CALL_cno_modify_agent, cno_handle, DAT_HANDLE_TYPE_CNO);
	if (!cno)
		return check_end(&call, dat_cno_modify_agent(check_inner(cno_handle), own));
	check_lock();
	before = cno->life->cno.agent;
	cno->life->cno.agent = own;
	check_unlock();
	ret = dat_cno_modify_agent(cno->inner, agent_of(cno, &own));
	if (ret != DAT_SUCCESS) {
		check_lock();
		cno->life->cno.agent = before;
		check_unlock();
	}
	return check_end(&call, ret);
}

DAT_RETURN check_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK cno_param_mask,
			   DAT_CNO_PARAM *cno_param)
{
	struct check_call call;
	struct check_object *cno =
		check_begin(&call, CHECK_CALL_cno_query, cno_handle, DAT_HANDLE_TYPE_CNO);
	DAT_RETURN ret = dat_cno_query(check_inner(cno_handle), cno_param_mask, cno_param);

	if (ret == DAT_SUCCESS && cno && (cno_param_mask & DAT_CNO_FIELD_IA_HANDLE))
		cno_param->ia_handle = cno->ia;
	if (ret == DAT_SUCCESS && cno && (cno_param_mask & DAT_CNO_FIELD_AGENT)) {
		check_lock();
		cno_param->agent = cno->life->cno.agent;
		check_unlock();
	}
	return check_end(&call, ret);
}

DAT_RETURN check_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout,
			  DAT_EVD_HANDLE *evd_handle)
{
	struct check_call call;
	DAT_RETURN ret;

	check_begin(&call, CHECK_CALL_cno_wait, cno_handle, DAT_HANDLE_TYPE_CNO);
	pthread_setcancelstate(call.cancel_state, NULL);
	ret = dat_cno_wait(check_inner(cno_handle), timeout, evd_handle);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (ret == DAT_SUCCESS)
		*evd_handle = check_outer(*evd_handle);
	return check_end(&call, ret);
}

DAT_RETURN check_cno_free(DAT_CNO_HANDLE cno_handle)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_cno_free, cno_handle, DAT_HANDLE_TYPE_CNO);
	return check_end_free(&call, dat_cno_free(check_inner(cno_handle)));
}
