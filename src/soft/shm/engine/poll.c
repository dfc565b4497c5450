// SPDX-License-Identifier: BSD-2-Clause
/*
 * Polls by threads of the consumer, on the fast path and on the slow path, and what such a thread
 * does before it sleeps.
 */
#include "soft/shm/engine/engine.h"

#include "core/base/clock.h"
#include "core/transport.h"
#include "core/event/evd_queue.h"
#include "soft/shm/state.h"
#include "soft/shm/engine/drive.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/fast.h"
#include "soft/shm/transfer/pass.h"

/* A connection that a polling thread has found. */
struct candidate {
	/* valid only while its endpoint is locked and owns it; else only an address to compare */
	struct shm_conn *conn;
	struct core_ref ep;
	uint32_t at;  /* its place on the list */
	bool is_idle; /* no work in very many checks */
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
		struct shm_conn *conn = shm_active_next_locked(engine);

		--*checks;
		candidate->is_idle = !shm_conn_has_work(conn);
		if (candidate->is_idle) {
			if (shm_conn_count_idle(conn) < SHM_IDLE_POLLS)
				continue;
			/* counts again if it stays on the list; not 0: it had no work */
			shm_conn_set_idle(conn, 1);
		}
		candidate->at = atomic_load_explicit(&conn->active_at, memory_order_relaxed) - 1;
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

/* For peers that have stopped polling while RDMA of ours waits in their rings. */
__attribute__((noinline)) static void hurry_all(struct shm_engine *engine)
{
	uint32_t count = shm_active_count(engine);

	for (; count; count--) {
		struct shm_conn *conn = shm_engine_rotate(engine);
		struct core_ep *ep = conn ? shm_conn_enter(conn) : NULL;

		if (ep && shm_conn_state(conn) == SHM_ESTABLISHED)
			shm_direct_hurry(conn, false);
		if (ep)
			core_ep_leave(ep);
		if (conn)
			shm_conn_put(conn);
	}
}

/*
 * Peers read when a thread here last polled in vain. A thread that has found a completion may do
 * something else next. All relaxed: hints.
 */
CORE_INLINE void store_pulse(struct shm_engine *engine, bool is_vain)
{
	bool is_set = atomic_load_explicit(engine->pulse, memory_order_relaxed) != 0;
	uint32_t polls;

	if (!is_vain) {
		if (is_set)
			atomic_store_explicit(engine->pulse, 0, memory_order_relaxed);
		return;
	}
	polls = atomic_load_explicit(&engine->vain_polls, memory_order_relaxed);
	atomic_store_explicit(&engine->vain_polls, polls + 1, memory_order_relaxed);
	if (!is_set || polls % SHM_PULSE_POLLS == 0)
		atomic_store_explicit(engine->pulse, core_now_ns(), memory_order_relaxed);
}

/*
 * Records that a thread of the consumer polls. is_vain: it has found no completion. True: a group
 * of polls has ended.
 */
CORE_INLINE bool count_poll(struct shm_engine *engine, bool is_vain)
{
	store_pulse(engine, is_vain);
	/*
	 * counted while all connections are armed, too: when one is woken, the service thread
	 * leaves it to the thread that polls
	 */
	if (atomic_load_explicit(&engine->is_unattended, memory_order_relaxed))
		atomic_store_explicit(&engine->is_unattended, false, memory_order_relaxed);
	return soft_driven_count(&engine->driven, 1, SHM_DRIVEN_POLLS);
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
	if (shm_conn_state(conn) == SHM_ESTABLISHED && candidate->is_idle) {
		shm_conn_arm(conn);
	} else if (shm_conn_state(conn) == SHM_ESTABLISHED) {
		shm_conn_set_idle(conn, 0);
		handled = shm_drive(conn, ep); /* may free it */
	}
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
	int handled = shm_active_count(engine) ? shm_engine_poll_all(engine) : 0;

	if (handled) /* it may have taken long */
		atomic_store_explicit(&engine->vain_polls, 0, memory_order_relaxed);
	if (count_poll(engine, true))
		hurry_all(engine);
	return handled;
}

/* --- the fast path --- */

/*
 * The slow path begins with the connection that the fast path has declined. Else it could use up
 * its checks on the others, and the next poll would find and decline the same one again, for ever.
 */
static void repeat_check(struct shm_engine *engine, const struct candidate *candidate)
{
	core_lock_acquire(&engine->lock);
	engine->active_next = candidate->at;
	core_lock_release(&engine->lock);
}

/* Polls the connection of that endpoint, which may have got another one meanwhile. */
static enum shm_poll check_candidate(const struct candidate *candidate,
				     struct core_dequeue *dequeue)
{
	struct core_handle *cell = candidate->ep.cell;
	enum shm_poll found = SHM_POLL_DECLINED;
	struct core_ep *ep;

	if (candidate->is_idle || !cell)
		return SHM_POLL_DECLINED;
	ep = core_handle_enter_fast(cell, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return SHM_POLL_DECLINED;
	if (shm_ep_conn(ep))
		found = shm_poll_fast(shm_ep_conn(ep), ep, dequeue);
	core_lock_leave(&cell->lock);
	return found;
}

/* Polls connections of the list in turn until the caller has a completion. */
__attribute__((noinline)) static enum transport_poll poll_list(struct shm_engine *engine,
							       struct core_dequeue *dequeue)
{
	struct core_evd *evd = dequeue->cell->object;
	struct candidate candidate = {.conn = NULL};
	uint32_t checks = checks_due(engine);

	while (checks && next_candidate(engine, &checks, &candidate)) {
		enum shm_poll found = check_candidate(&candidate, dequeue);

		if (dequeue->is_filled) {
			evd->last_ep = candidate.ep.cell;
			return TRANSPORT_POLL_FOUND;
		}
		if (found == SHM_POLL_DONE)
			continue;
		repeat_check(engine, &candidate);
		return TRANSPORT_POLL_SLOW;
	}
	return TRANSPORT_POLL_EMPTY;
}

/* Enters the endpoint of the last completion, if its connection is active. NULL: it is not. */
CORE_INLINE struct core_ep *enter_last(const struct shm_engine *engine, const struct core_evd *evd)
{
	struct core_handle *last = evd->last_ep;
	const struct shm_conn *conn;
	struct core_ep *ep;

	if (!last)
		return NULL;
	ep = core_handle_enter_fast(last, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return NULL;
	conn = shm_ep_conn(ep);
	/* the cell may have been given to an endpoint of another instance */
	if (conn && conn->engine == engine && shm_conn_is_active(conn))
		return ep;
	core_lock_leave(&last->lock);
	return NULL;
}

/*
 * Most programs wait for messages of the connection that the last completion came from. So it is
 * checked first, without the list. If it has work, and others are on the list, the next poll begins
 * with the list. If it has none, the list follows. If it is the only one on the list, that is left
 * out, except in one of SHM_LIST_AFTER polls: a check of the list finds more than this one does.
 */
CORE_INLINE enum transport_poll find_completion(struct shm_engine *engine,
						struct core_dequeue *dequeue)
{
	struct core_evd *evd = dequeue->cell->object;
	struct core_ep *ep = enter_last(engine, evd);
	enum shm_poll found;
	bool is_list_due;

	if (!ep)
		return poll_list(engine, dequeue);
	found = shm_poll_fast(shm_ep_conn(ep), ep, dequeue);
	is_list_due = shm_active_count(engine) != 1 ||
		      (found == SHM_POLL_NOTHING &&
		       shm_conn_count_idle(shm_ep_conn(ep)) % SHM_LIST_AFTER == 0);
	core_lock_leave(&ep->cell->lock);
	if (dequeue->is_filled) {
		if (is_list_due)
			evd->last_ep = NULL;
		return TRANSPORT_POLL_FOUND;
	}
	if (found == SHM_POLL_DECLINED)
		return TRANSPORT_POLL_SLOW;
	if (is_list_due || found == SHM_POLL_DONE)
		return poll_list(engine, dequeue);
	core_spin_pause();
	return TRANSPORT_POLL_EMPTY;
}

enum transport_poll shm_poll(struct shm_engine *engine, struct core_handle *cell, DAT_EVENT *event)
{
	struct core_dequeue dequeue = {.cell = cell, .event = event};
	enum transport_poll found = find_completion(engine, &dequeue);

	/*
	 * connections over TCP are polled on the slow path, a hint; and hurry_all locks endpoints,
	 * which a thread that holds an EVD must not wait for
	 */
	if (found == TRANSPORT_POLL_EMPTY &&
	    (atomic_load_explicit(&engine->ia->refuses_polls, memory_order_relaxed) ||
	     soft_driven_is_due(&engine->driven, SHM_DRIVEN_POLLS)))
		return TRANSPORT_POLL_SLOW;
	if (found != TRANSPORT_POLL_SLOW) /* the slow path counts itself */
		(void)count_poll(engine, found == TRANSPORT_POLL_EMPTY);
	return found;
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
		is_armed = shm_conn_arm(conn);
	core_ep_leave(ep);
	return is_armed;
}

int shm_engine_arm(struct shm_engine *engine)
{
	uint32_t count = shm_active_count(engine);

	for (; count; count--) {
		struct shm_conn *conn = shm_engine_rotate(engine);
		bool is_armed;

		if (!conn)
			break;
		is_armed = shm_engine_arm_one(engine, conn);
		shm_conn_put(conn);
		if (!is_armed) /* the first one that has work is enough */
			return 1;
	}
	/* shows that no thread polls. A hint: a thread that still polls resets it */
	atomic_store(&engine->is_unattended, true);
	/* the service thread may have left a connection to this one meanwhile */
	if (atomic_load(&engine->disarmed) > 0)
		core_service_kick(&engine->service);
	return 0;
}
