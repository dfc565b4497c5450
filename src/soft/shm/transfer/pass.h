// SPDX-License-Identifier: BSD-2-Clause
/*
 * One pass over a connection: what the peer has done for us, what it requests, what we request; then
 * what this side has taken and produced becomes visible to the peer, and wakes it. A pass changes
 * the connection and tells what has to follow; the engine acts on that (engine/drive.c). EP locked
 * unless a function says otherwise.
 */
#ifndef SHM_PASS_H
#define SHM_PASS_H

#include "soft/shm/conn.h"
#include "soft/shm/state.h"

#define SHM_BUDGET (1024u * 1024u) /* bytes that one pass moves at most */
/* bytes that each part of a pass may move, whatever the parts before it have moved */
#define SHM_BUDGET_MIN (SHM_BUDGET / 8)
#define SHM_BATCH 32u /* entries of each kind that one pass takes at most */

/* What a pass may still move, and what has come of it. */
struct shm_pass {
	uint64_t budget;      /* bytes */
	uint64_t granted;     /* bytes that the parts so far were permitted */
	uint64_t again_ns;    /* look again at that time; UINT64_MAX: it is not needed */
	int handled;	      /* how much was done */
	bool has_more;	      /* the budget is used up: another pass has to follow */
	DAT_EVENT_NUMBER end; /* the connection has to end with that event; 0: it goes on */
};
#define SHM_PASS_NEW                                                                               \
	((struct shm_pass){.budget = SHM_BUDGET, .granted = SHM_BUDGET, .again_ns = UINT64_MAX})

static inline void shm_pass_again(struct shm_pass *pass, uint64_t at_ns)
{
	if (at_ns < pass->again_ns)
		pass->again_ns = at_ns;
}

/*
 * One pass over everything that can move; ESTABLISHED. is_final: the peer has gone, and no request
 * of ours starts any more. A call into the core may have ended the connection: then it is CLOSING.
 */
struct shm_pass shm_pass_run(struct shm_conn *conn, struct core_ep *ep, bool is_final);
/* After a change outside the fast path: updates what polls check, and the endpoint's
 * slow_reasons. */
void shm_conn_update_reasons(struct shm_conn *conn, struct core_ep *ep);
/* Counts messages and RDMA of the peer that a poll has placed, if they are many (soft/driven.h). */
void shm_conn_count_placed(struct shm_conn *conn, int entries);

/* Does something of ours wait for the end of an earlier request, which a pass would notice? */
static inline bool shm_conn_is_pass_awaited(const struct shm_conn *conn, const struct core_ep *ep)
{
	return conn->tx.next != ep->req.tail || conn->end.ending != SHM_ENDING_NONE;
}

#endif
