// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread of the consumer that sleeps on the bell of a connection, so that the peer wakes it
 * directly: one thread switch instead of two. It sleeps on the connection that was armed last,
 * where the next event is most likely. The service thread wakes it for all other connections, and
 * wakes any second sleeper.
 *
 * No wake-up is lost: the peer omits the packet only if the kernel says that ringing has woken a
 * thread. So a thread that has slept, for whatever reason it woke up, serves the connection as the
 * reader of a packet does. Whether the bell has changed does not matter: it may have been rung
 * before the sleep. models/bell.pml models this.
 */
#include "soft/shm/engine/sleep.h"

#include "core/transport.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/progress.h"

void shm_sleep_begin(struct shm_engine *engine, struct core_sleep *sleep)
{
	/* relaxed: a hint */
	uint64_t id = atomic_load_explicit(&engine->armed_last, memory_order_relaxed);
	enum shm_slot_kind kind;
	struct shm_conn *conn;

	if (!id)
		return;
	conn = shm_engine_find(engine, id, &kind);
	if (!conn)
		return;
	if (atomic_exchange(&conn->has_sleeper, true)) {
		shm_conn_put(conn);
		return;
	}
	sleep->transport = conn;
	sleep->seen = atomic_load(&conn->mine->bell);
	sleep->bell = &conn->mine->bell;
	/*
	 * full fence: the peer publishes, then reads `sleeps`; we store `sleeps`, then read what it
	 * has published
	 */
	atomic_store_explicit(&conn->mine->sleeps, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (shm_conn_state(conn) == SHM_ESTABLISHED && !shm_conn_has_work(conn))
		return;
	/* its packet is on the way, or the work was there before */
	shm_sleep_end(sleep);
	sleep->bell = NULL;
}

/* Serves the connection as the service thread does after a packet. */
static void serve_wake(struct shm_conn *conn)
{
	struct core_ep *ep = shm_conn_enter(conn);

	if (!ep)
		return;
	if (shm_conn_state(conn) == SHM_ESTABLISHED) {
		shm_conn_disarm(conn);
		shm_conn_pass(conn, ep);
		if (!shm_conn_settle(conn, ep))
			shm_engine_kick(conn->engine);
	}
	core_ep_leave(ep);
}

void shm_sleep_end(struct core_sleep *sleep)
{
	struct shm_conn *conn = sleep->transport;

	atomic_store_explicit(&conn->mine->sleeps, 0, memory_order_relaxed);
	if (sleep->has_slept)
		serve_wake(conn);
	atomic_store(&conn->has_sleeper, false);
	shm_conn_put(conn);
}

bool shm_sleep_wake(struct shm_conn *conn)
{
	/* relaxed: behind the fence of shm_conn_wake_if_armed */
	return atomic_load_explicit(&conn->theirs->sleeps, memory_order_relaxed) &&
	       core_bell_wake(&conn->theirs->bell);
}
