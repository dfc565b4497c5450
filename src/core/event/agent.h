// SPDX-License-Identifier: BSD-2-Clause
/*
 * Agents: functions of the consumer that CNOs call. One thread per adapter instance, created when
 * the first agent is set, calls them one at a time with no lock held. So calls of one CNO's agent
 * neither overlap nor nest (CNO-CREATE-16). An agent may make every call, including dat_ia_close of
 * its own instance.
 */
#ifndef CORE_AGENT_H
#define CORE_AGENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <dat/udat.h>

struct core_ia;

/* An armed or pending call. Allocated when the agent is set: a trigger allocates nothing. */
struct core_agent_call {
	struct core_agent_call *next;
	DAT_OS_WAIT_PROXY_AGENT agent;
	DAT_CNO_HANDLE cno; /* the CNO of the agent */
	DAT_EVD_HANDLE evd; /* the argument of the call */
};

struct core_agents; /* the thread and its queue */

/* Allocates a call, and creates the instance's thread if there is none. NULL: no resources. */
struct core_agent_call *core_agent_arm(struct core_ia *ia, const DAT_OS_WAIT_PROXY_AGENT *agent,
				       DAT_CNO_HANDLE cno);
/* Queues the call for the thread. Any lock may be held. */
void core_agent_run(struct core_ia *ia, struct core_agent_call *call, DAT_EVD_HANDLE evd);
/* Drops the pending calls of a CNO that is being freed. Waits for its agent if that is running in
 * another thread. No lock held. */
void core_agent_forget(struct core_ia *ia, DAT_CNO_HANDLE cno);
/* Called when the instance is being closed. If one of its agents is the caller, core_agent_forget
 * no longer waits for that agent, because the agent waits for the CNO to be freed. */
void core_agents_closing(struct core_ia *ia);
/* Makes all pending calls, then ends the thread. If an agent is the caller, its own CNO gets no
 * further call, and the thread ends when the agent returns. No lock held. */
void core_agents_stop(struct core_ia *ia);

#endif
