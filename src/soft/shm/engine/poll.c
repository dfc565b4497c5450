// SPDX-License-Identifier: BSD-2-Clause
/*
 * Polls by threads of the consumer, on the fast path and on the slow path, and what such a thread
 * does before it sleeps.
 */
#include "soft/shm/engine/engine.h"

#include "core/transport.h"
#include "core/event/evd.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/transfer/fast.h"
#include "soft/shm/transfer/patience.h"
#include "soft/shm/transfer/progress.h"

/* A connection that a polling thread has found. */
struct candidate {
	/* valid only while its endpoint is locked and owns it; else only an address to compare */
	struct shm_conn *conn;
	struct core_ref ep;
	uint32_t at;	  /* its place on the list */
	bool is_its_turn; /* it was not checked out of turn */
	bool is_idle;	  /* no work in very many checks */
	bool is_stream;	  /* it had work at the previous check, too */
};

/*
 * Finds the next active connection that has work, or had none in so many checks that it should be
 * armed. *checks is how many connections may still be checked. False: there is none.
 */
CORE_INLINE bool next_candidate(struct shm_engine *engine, uint32_t *checks,
				struct candidate *candidate)
{
	bool is_found = false;

	core_lock_acquire(&engine->lock);
	while (*checks && !is_found && shm_active_count(engine)) {
		struct shm_conn *conn = shm_active_likely_locked(engine);

		candidate->is_its_turn = !conn;
		if (!conn)
			conn = shm_active_next_locked(engine);
		--*checks;
		candidate->is_idle = !shm_conn_has_work(conn);
		candidate->is_stream = !conn->idle_polls;
		if (!candidate->is_idle) {
			conn->idle_polls = 0;
			engine->is_likely = !candidate->is_its_turn;
		} else if (!candidate->is_its_turn || ++conn->idle_polls < SHM_IDLE_POLLS) {
			continue;
		} else {
			/* counts again if it stays on the list; not 0: it had no work */
			conn->idle_polls = 1;
		}
		candidate->at = shm_active_at(conn);
		engine->likely_next = candidate->at + 1;
		if (candidate->is_its_turn && !candidate->is_idle &&
		    shm_active_keep_locked(engine, candidate->at))
			++*checks;
		candidate->conn = conn;
		candidate->ep = shm_conn_ep(conn);
		is_found = true;
	}
	core_lock_release(&engine->lock);
	return is_found;
}

/* How many connections one poll checks. */
CORE_INLINE uint32_t checks_due(struct shm_engine *engine)
{
	/* the next call finds a connection that is added meanwhile */
	uint32_t checks = shm_active_count(engine);

	return checks < SHM_POLL_MAX ? checks : SHM_POLL_MAX;
}

/* Records that a thread of the consumer polls. */
CORE_INLINE void count_poll(struct shm_engine *engine)
{
	/*
	 * counted while all connections are armed, too: when one is woken, the service thread
	 * leaves it to the thread that polls
	 */
	soft_driven_count(&engine->driven, 1, SHM_DRIVEN_POLLS);
	if (atomic_load_explicit(&engine->is_unattended, memory_order_relaxed))
		atomic_store_explicit(&engine->is_unattended, false, memory_order_relaxed);
}

/* --- the slow path --- */

/*
 * Makes a pass over the connection, or arms it if it is idle, to make polls cheaper. The locked
 * endpoint keeps its connection alive.
 */
static int drive(struct shm_engine *engine, const struct candidate *candidate)
{
	struct shm_conn *conn = candidate->conn;
	struct core_ep *ep = core_ep_enter(candidate->ep);
	int handled = 0;

	if (!ep || !shm_conn_belongs_to(conn, ep)) {
		shm_engine_deactivate_stale(engine, conn, candidate->ep);
		if (ep)
			core_ep_leave(ep);
		return 0;
	}
	if (shm_conn_state(conn) == SHM_ESTABLISHED && candidate->is_idle)
		shm_conn_arm(conn, ep);
	else if (shm_conn_state(conn) == SHM_ESTABLISHED)
		handled = shm_conn_pass(conn, ep);
	core_ep_leave(ep);
	return handled;
}

int shm_engine_poll_all(struct shm_engine *engine)
{
	struct candidate candidate = {.conn = NULL};
	uint32_t checks = checks_due(engine);
	int handled = 0;

	while (checks && next_candidate(engine, &checks, &candidate))
		handled += drive(engine, &candidate);
	return handled;
}

/* The caller keeps the instance alive: it holds an EVD or a CNO of it. */
int shm_engine_progress(struct shm_engine *engine)
{
	count_poll(engine);
	if (!shm_active_count(engine))
		return 0;
	return shm_engine_poll_all(engine);
}

/* --- the fast path --- */

/* False: the connection needs the slow path. */
CORE_INLINE bool drive_fast(const struct candidate *candidate, struct core_dequeue *dequeue)
{
	struct shm_conn *conn = candidate->conn;
	struct core_ep *ep;
	bool is_done;

	if (candidate->is_idle || !candidate->ep.cell)
		return false;
	ep = core_handle_enter_fast(candidate->ep.cell, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return false;
	is_done = shm_conn_belongs_to(conn, ep) &&
		  shm_poll_fast(conn, ep, candidate->is_stream ? SHM_BATCH : 1, dequeue);
	core_lock_leave(&ep->cell->lock);
	return is_done;
}

/*
 * The slow path begins with the connection that the fast path has declined, or comes to it with the
 * next check out of turn. Else it could use up its checks on the others, and the next poll would
 * find and decline the same one again, for ever.
 */
static void repeat_check(struct shm_engine *engine, const struct candidate *candidate)
{
	core_lock_acquire(&engine->lock);
	if (candidate->is_its_turn)
		engine->active_next = candidate->at;
	else
		engine->likely_next = candidate->at;
	core_lock_release(&engine->lock);
}

enum transport_poll shm_poll(struct shm_engine *engine, struct core_handle *cell, DAT_EVENT *event)
{
	struct core_dequeue dequeue = {.cell = cell, .event = event};
	struct candidate candidate = {.conn = NULL};
	uint32_t checks;

	count_poll(engine);
	checks = checks_due(engine);
	while (checks && !dequeue.is_filled && next_candidate(engine, &checks, &candidate)) {
		if (drive_fast(&candidate, &dequeue))
			continue;
		if (dequeue.is_filled)
			break;
		repeat_check(engine, &candidate);
		soft_driven_uncount(&engine->driven); /* the slow path counts it */
		return TRANSPORT_POLL_SLOW;
	}
	return dequeue.is_filled ? TRANSPORT_POLL_FOUND : TRANSPORT_POLL_EMPTY;
}

bool shm_engine_arm_one(struct shm_engine *engine, struct shm_conn *conn)
{
	struct core_ep *ep = shm_conn_enter(conn);
	bool is_armed = true;

	if (!ep) {
		shm_engine_deactivate(engine, conn);
		return true;
	}
	if (shm_conn_state(conn) == SHM_ESTABLISHED)
		is_armed = shm_conn_arm(conn, ep);
	core_ep_leave(ep);
	return is_armed;
}

/*
 * Is a connection of the list patient still? A connection may leave its turn to another one while a
 * thread arms all of them, because others turn the list, too.
 */
static bool has_patient(struct shm_engine *engine)
{
	bool is_found = false;
	uint32_t i;

	core_lock_acquire(&engine->lock);
	for (i = 0; i < engine->active_end && !is_found; i++) {
		const struct shm_conn *conn = engine->active[i];

		is_found = conn && shm_patience_is_set(conn);
	}
	core_lock_release(&engine->lock);
	return is_found;
}

int shm_engine_arm(struct shm_engine *engine)
{
	uint32_t count;
	int busy = 0;

	/* full fence: see transfer/patience.h */
	atomic_thread_fence(memory_order_seq_cst);
	count = shm_active_count(engine);
	/* the first one that has work is enough, but no other may stay patient */
	for (; count && (!busy || has_patient(engine)); count--) {
		struct shm_conn *conn = shm_engine_rotate(engine);

		if (!conn)
			break;
		if (!busy || shm_patience_is_set(conn))
			busy |= !shm_engine_arm_one(engine, conn);
		shm_conn_put(conn);
	}
	if (!busy)
		busy = has_patient(engine);
	if (busy)
		return busy;
	/* shows that no thread polls. A hint: a thread that still polls resets it */
	atomic_store(&engine->is_unattended, true);
	/* the service thread may have left a connection to this one meanwhile */
	if (atomic_load(&engine->disarmed) > 0)
		shm_engine_kick(engine);
	return 0;
}
