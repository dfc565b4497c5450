// SPDX-License-Identifier: BSD-2-Clause
/*
 * Agents: functions of the consumer that notification objects call. One thread per adapter
 * instance, made when the first agent is set, calls them one after the other with no lock held, so
 * that calls of one object's agent neither overlap nor nest (CNO-CREATE-16). From inside an agent
 * every call is allowed, dat_ia_close of its own instance included.
 */
#ifndef CORE_AGENT_H
#define CORE_AGENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <dat/udat.h>

struct core_ia;

/* One armed or pending call; made when the agent is set, so that a trigger allocates nothing. */
struct core_agent_call {
	struct core_agent_call *next;
	DAT_OS_WAIT_PROXY_AGENT agent;
	DAT_CNO_HANDLE cno; /* whose agent it is */
	DAT_EVD_HANDLE evd; /* the argument */
};

struct core_agents; /* the thread and its queue */

/* Makes a call, and the instance's thread if this is the first; NULL: no memory. */
struct core_agent_call *core_agent_arm(struct core_ia *ia, const DAT_OS_WAIT_PROXY_AGENT *agent,
				       DAT_CNO_HANDLE cno);
/* Has the call made soon. Any lock may be held. */
void core_agent_run(struct core_ia *ia, struct core_agent_call *call, DAT_EVD_HANDLE evd);
/* Drops what is pending for a CNO that goes away, and waits for a call of its agent that runs in
 * another thread. No lock held. */
void core_agent_forget(struct core_ia *ia, DAT_CNO_HANDLE cno);
/* The instance is being closed, by one of its agents perhaps: core_agent_forget waits for that
 * agent no more, because the agent waits for the object to be gone. */
void core_agents_closing(struct core_ia *ia);
/* Makes all pending calls, then ends the thread. Called from an agent, the agent's own CNO gets no
 * further call, and the thread ends when the agent returns. No lock held. */
void core_agents_stop(struct core_ia *ia);

#endif
