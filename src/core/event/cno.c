// SPDX-License-Identifier: BSD-2-Clause
/* CNOs (notification objects): dat_cno_create, _modify_agent, _query, _free, dat_opendat_cno_fd. */
#include "core/event/cno_trigger.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/instance.h"
#include "core/base/status.h"
#include "core/event/wait.h"
#include "shared/fd.h"

/* --- creation --- */

static bool agent_is_valid(const DAT_OS_WAIT_PROXY_AGENT *agent)
{
	return agent->proxy_agent_func || !agent->instance_data;
}

/* Allocates the armed call for an agent; NULL if there is no agent. */
static DAT_RETURN agent_prepare(struct core_ia *ia, const DAT_OS_WAIT_PROXY_AGENT *agent,
				DAT_CNO_HANDLE cno, struct core_agent_call **call_out)
{
	*call_out = NULL;
	if (!agent->proxy_agent_func)
		return DAT_SUCCESS;
	*call_out = core_agent_arm(ia, agent, cno);
	return *call_out ? DAT_SUCCESS : core_no_resources(DAT_RESOURCE_MEMORY);
}

static DAT_RETURN cno_new(struct core_ia *ia, const DAT_OS_WAIT_PROXY_AGENT *agent,
			  struct core_cno **cno_out)
{
	struct core_cno *cno = calloc(1, sizeof(*cno));
	DAT_RETURN ret = core_no_resources(DAT_RESOURCE_MEMORY);

	if (!cno)
		return ret;
	cno->ia = ia;
	cno->fd = -1;
	pthread_cond_init(&cno->idle, NULL);
	cno->cell = core_handle_alloc(&ia->adapter->provider, ia, cno);
	if (!cno->cell)
		goto free_cno;
	ret = agent_prepare(ia, agent, cno->cell, &cno->agent);
	if (ret != DAT_SUCCESS)
		goto release_cell;
	if (cno->agent)
		core_cno_request_arm(cno);
	ret = core_ia_add(ia, cno->cell, DAT_HANDLE_TYPE_CNO);
	if (ret != DAT_SUCCESS)
		goto free_agent;
	*cno_out = cno;
	return DAT_SUCCESS;

free_agent:
	free(cno->agent);
release_cell:
	core_handle_release(cno->cell);
free_cno:
	pthread_cond_destroy(&cno->idle);
	free(cno);
	return ret;
}

DAT_RETURN core_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			   DAT_CNO_HANDLE *cno_handle)
{
	CORE_NO_CANCELLATION;
	struct core_ia *ia = core_ia_enter(ia_handle);
	struct core_cno *cno = NULL;
	DAT_RETURN ret;

	if (!ia)
		return core_bad_handle(CORE_ARG(cno_create, 1, ia_handle), DAT_INVALID_HANDLE_IA,
				       ia_handle);
	if (!agent_is_valid(&agent))
		ret = core_bad_arg(CORE_ARG(cno_create, 2, agent),
				   "instance_data without proxy_agent_func");
	else if (!cno_handle)
		ret = core_bad_null(CORE_ARG(cno_create, 3, cno_handle));
	else
		ret = cno_new(ia, &agent, &cno);
	if (ret == DAT_SUCCESS)
		*cno_handle = cno->cell;
	core_ia_leave(ia);
	return ret;
}

DAT_RETURN core_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	CORE_NO_CANCELLATION;
	struct core_cno *cno = core_handle_lock(cno_handle, DAT_HANDLE_TYPE_CNO);
	struct core_agent_call *call = NULL, *old;
	struct core_ref ref;
	struct core_ia *ia;
	DAT_RETURN ret;

	if (!cno)
		return core_bad_handle(CORE_ARG(cno_modify_agent, 1, cno_handle),
				       DAT_INVALID_HANDLE_CNO, cno_handle);
	ref = core_handle_ref(cno->cell);
	ia = cno->ia;
	cno->busy++; /* keeps CNO and instance while agent_prepare runs unlocked */
	core_handle_unlock(ref.cell);
	ret = agent_is_valid(&agent) ? agent_prepare(ia, &agent, cno_handle, &call)
				     : core_bad_arg(CORE_ARG(cno_modify_agent, 2, agent),
						    "instance_data without proxy_agent_func");
	core_lock_acquire(&ref.cell->lock);
	core_cno_idle_locked(cno);
	if (ret == DAT_SUCCESS && cno->is_dying) {
		free(call);
		ret = core_bad_handle(CORE_ARG(cno_modify_agent, 1, cno_handle),
				      DAT_INVALID_HANDLE_CNO, cno_handle);
	} else if (ret == DAT_SUCCESS) {
		old = cno->agent;
		cno->agent = call;
		if (call)
			core_cno_request_arm(cno);
		free(old);
	}
	core_handle_unlock(ref.cell);
	return ret;
}

DAT_RETURN core_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param)
{
	CORE_NO_CANCELLATION;
	struct core_cno *cno = core_handle_lock(cno_handle, DAT_HANDLE_TYPE_CNO);
	DAT_RETURN ret;

	if (!cno)
		return core_bad_handle(CORE_ARG(cno_query, 1, cno_handle), DAT_INVALID_HANDLE_CNO,
				       cno_handle);
	ret = core_check_query(CORE_ARG(cno_query, 2, cno_param_mask), mask, DAT_CNO_FIELD_ALL,
			       CORE_ARG(cno_query, 3, cno_param), param);
	if (ret == DAT_SUCCESS) {
		param->ia_handle = cno->ia->cell;
		param->agent = cno->agent ? cno->agent->agent : DAT_OS_WAIT_PROXY_AGENT_NULL;
	}
	core_handle_unlock(cno->cell);
	return ret;
}

DAT_RETURN core_cno_fd(DAT_CNO_HANDLE handle, int *fd)
{
	struct core_cno *cno = core_handle_lock(handle, DAT_HANDLE_TYPE_CNO);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!cno)
		return core_bad_handle(CORE_ARG(opendat_cno_fd, 1, cno_handle),
				       DAT_INVALID_HANDLE_CNO, handle);
	if (!fd) {
		ret = core_bad_null(CORE_ARG(opendat_cno_fd, 2, fd));
	} else {
		if (cno->fd < 0)
			cno->fd = opendat_fd_move(
				eventfd(cno->first ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK));
		if (cno->fd < 0)
			ret = core_no_resources(DAT_RESOURCE_DEVICE);
		else
			core_cno_request_arm(cno);
	}
	if (ret == DAT_SUCCESS)
		*fd = cno->fd;
	core_handle_unlock(cno->cell);
	return ret;
}

int core_cno_proxy_fd(DAT_CNO_HANDLE handle)
{
	struct core_cno *cno = core_handle_lock(handle, DAT_HANDLE_TYPE_CNO);
	int fd;

	if (!cno)
		return -1;
	fd = cno->agent ? -1 : cno->fd;
	core_handle_unlock(cno->cell);
	return fd;
}

/* --- destruction --- */

/* The CNO's handle is dead and its agent disarmed. */
static void cno_delete(struct core_cno *cno)
{
	struct core_handle *cell = cno->cell;
	struct core_ia *ia = cno->ia;

	core_lock_acquire(&cell->lock);
	while (cno->busy)
		core_lock_wait(&cell->lock, &cno->idle);
	while (cno->first) /* triggers of EVDs that use another CNO by now */
		(void)core_cno_pop_trigger_locked(cno);
	core_lock_release(&cell->lock);
	core_cno_remove_sleeper(cno);
	pthread_cond_destroy(&cno->idle);
	if (cno->fd >= 0)
		close(cno->fd);
	free(cno->agent);
	free(cno);
	core_ia_remove(ia, cell, DAT_HANDLE_TYPE_CNO);
	core_handle_release(cell);
}

void core_cno_destroy_locked(struct core_cno *cno)
{
	struct core_handle *cell = cno->cell;

	core_handle_kill_locked(cell);
	cno->is_dying = true;
	core_cno_release_all_locked(cno);
	core_cno_call_agent_locked(cno, DAT_HANDLE_NULL);
	core_handle_unlock(cell);
	cno_delete(cno);
}

DAT_RETURN core_cno_free(DAT_CNO_HANDLE cno_handle)
{
	CORE_NO_CANCELLATION;
	struct core_cno *cno = core_handle_lock(cno_handle, DAT_HANDLE_TYPE_CNO);
	struct core_wait_cancel cancel;
	struct core_ia *ia;

	if (!cno)
		return core_bad_handle(CORE_ARG(cno_free, 1, cno_handle), DAT_INVALID_HANDLE_CNO,
				       cno_handle);
	if (cno->users || cno->waiters) {
		core_handle_unlock(cno->cell);
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
	}
	ia = cno->ia;
	core_handle_kill_locked(cno->cell);
	cno->is_dying = true;
	cno->is_freed = true;
	core_handle_unlock(cno->cell);
	core_wait_cancel_off(&cancel); /* the thread must not be cancelled while it waits here */
	core_agent_forget(ia, cno_handle);
	cno_delete(cno);
	core_wait_cancel_restore(&cancel);
	return DAT_SUCCESS;
}
