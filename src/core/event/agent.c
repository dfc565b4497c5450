// SPDX-License-Identifier: BSD-2-Clause
/* The thread that calls the agents (agent.h). */
#include "core/event/agent.h"

#include <stdlib.h>

#include "core/base/instance.h"

/* The lock (rank 9) guards all members. Freed by the caller of core_agents_stop, or by the thread
 * itself if an agent closed the instance. */
struct core_agents {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a call was queued, or the thread has to exit */
	pthread_cond_t done; /* a call returned */
	pthread_t thread;
	struct core_agent_call *first;
	struct core_agent_call *last;
	DAT_CNO_HANDLE running; /* the CNO whose agent runs, or DAT_HANDLE_NULL */
	bool is_closing;	/* the running agent is closing the instance */
	bool is_stopping;
	bool is_orphan; /* an agent closed the instance: the thread frees this itself */
};

static void agents_free(struct core_agents *agents)
{
	pthread_cond_destroy(&agents->done);
	pthread_cond_destroy(&agents->work);
	pthread_mutex_destroy(&agents->lock);
	free(agents);
}

/* Makes the first queued call, if any. The lock is held, and released during the call. */
static bool agents_call_one_locked(struct core_agents *agents)
{
	struct core_agent_call *call = agents->first;
	DAT_CNO_HANDLE outer = agents->running;

	if (!call)
		return false;
	agents->first = call->next;
	if (!agents->first)
		agents->last = NULL;
	agents->running = call->cno;
	pthread_mutex_unlock(&agents->lock);
	call->agent.proxy_agent_func(call->agent.instance_data, call->evd);
	free(call);
	pthread_mutex_lock(&agents->lock);
	agents->running = outer;
	pthread_cond_broadcast(&agents->done);
	return true;
}

static void *agents_thread(void *arg)
{
	struct core_agents *agents = arg;
	bool is_orphan;

	pthread_mutex_lock(&agents->lock);
	for (;;) {
		if (agents->is_orphan || (agents->is_stopping && !agents->first))
			break;
		if (!agents_call_one_locked(agents))
			pthread_cond_wait(&agents->work, &agents->lock);
	}
	is_orphan = agents->is_orphan;
	pthread_mutex_unlock(&agents->lock);
	if (is_orphan)
		agents_free(agents);
	return NULL;
}

static struct core_agents *agents_create(const struct core_ia *ia)
{
	const struct core_thread_form form = {.name = "dat-agent", .sched = ia->sched};
	struct core_agents *agents = calloc(1, sizeof(*agents));

	if (!agents)
		return NULL;
	pthread_mutex_init(&agents->lock, NULL);
	pthread_cond_init(&agents->work, NULL);
	pthread_cond_init(&agents->done, NULL);
	if (!core_thread_create(&agents->thread, &form, agents_thread, agents))
		return agents;
	agents_free(agents);
	return NULL;
}

/* The instance's thread, created on first use. */
static struct core_agents *agents_get(struct core_ia *ia)
{
	struct core_agents *agents;

	core_lock_acquire(&ia->cell->lock);
	if (!ia->agents)
		ia->agents = agents_create(ia);
	agents = ia->agents;
	core_lock_release(&ia->cell->lock);
	return agents;
}

struct core_agent_call *core_agent_arm(struct core_ia *ia, const DAT_OS_WAIT_PROXY_AGENT *agent,
				       DAT_CNO_HANDLE cno)
{
	struct core_agent_call *call;

	if (!agents_get(ia))
		return NULL;
	call = calloc(1, sizeof(*call));
	if (!call)
		return NULL;
	call->agent = *agent;
	call->cno = cno;
	return call;
}

void core_agent_run(struct core_ia *ia, struct core_agent_call *call, DAT_EVD_HANDLE evd)
{
	struct core_agents *agents = ia->agents;

	call->evd = evd;
	call->next = NULL;
	pthread_mutex_lock(&agents->lock);
	if (agents->last)
		agents->last->next = call;
	else
		agents->first = call;
	agents->last = call;
	pthread_cond_signal(&agents->work);
	pthread_mutex_unlock(&agents->lock);
}

static void agents_drop_locked(struct core_agents *agents, DAT_CNO_HANDLE cno)
{
	struct core_agent_call **link = &agents->first;

	agents->last = NULL;
	while (*link) {
		struct core_agent_call *call = *link;

		if (call->cno == cno) {
			*link = call->next;
			free(call);
		} else {
			agents->last = call;
			link = &call->next;
		}
	}
}

void core_agent_forget(struct core_ia *ia, DAT_CNO_HANDLE cno)
{
	struct core_agents *agents;

	core_lock_acquire(&ia->cell->lock);
	agents = ia->agents;
	core_lock_release(&ia->cell->lock);
	if (!agents)
		return;
	pthread_mutex_lock(&agents->lock);
	agents_drop_locked(agents, cno);
	while (agents->running == cno && !agents->is_closing &&
	       !pthread_equal(agents->thread, pthread_self()))
		pthread_cond_wait(&agents->done, &agents->lock);
	pthread_mutex_unlock(&agents->lock);
}

void core_agents_closing(struct core_ia *ia)
{
	struct core_agents *agents;

	core_lock_acquire(&ia->cell->lock);
	agents = ia->agents;
	core_lock_release(&ia->cell->lock);
	if (!agents || !pthread_equal(agents->thread, pthread_self()))
		return;
	pthread_mutex_lock(&agents->lock);
	agents->is_closing = true;
	pthread_cond_broadcast(&agents->done);
	pthread_mutex_unlock(&agents->lock);
}

void core_agents_stop(struct core_ia *ia)
{
	struct core_agents *agents = ia->agents;
	bool is_inside;

	if (!agents)
		return;
	pthread_mutex_lock(&agents->lock);
	is_inside = pthread_equal(agents->thread, pthread_self());
	agents->is_stopping = true;
	if (is_inside) {
		/* IA-CLOSE-27: makes the pending calls, but none of the agent that is closing */
		agents_drop_locked(agents, agents->running);
		while (agents_call_one_locked(agents))
			;
		agents->is_orphan = true;
		pthread_detach(agents->thread);
	}
	pthread_cond_signal(&agents->work);
	pthread_mutex_unlock(&agents->lock);
	if (is_inside)
		return;
	pthread_join(agents->thread, NULL);
	agents_free(agents);
}
