// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waiting for the copies of peers: a key is dead only when no peer copies through it any more.
 * models/keys.pml models this and the copies.
 */
#include "core/base/clock.h"
#include "soft/shm/engine/engine.h"

#include <time.h>

#include "core/base/fence.h"
#include "core/base/log.h"
#include "core/transport.h"
#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/state.h"

#define SPINS 200u
/*
 * Longer than one piece of a copy into our memory takes. That is microseconds of processor time,
 * but a virtual processor may be interrupted by its host, which the peer's kernel does not notice.
 */
#define PIECE_NS 20000000u

/* Can the peer have announced a copy in this state? */
static bool is_answered(const struct shm_conn *conn)
{
	enum shm_state state = shm_conn_state(conn);

	return shm_conn_has_segment(conn) && state != SHM_ARRIVING && state != SHM_CALLING;
}

static bool is_copying_through(const struct shm_conn *conn, uint64_t key)
{
	if (!is_answered(conn))
		return false;
	/*
	 * acquire: the copy is finished when the announcement is withdrawn. Our own announcement is
	 * never late
	 */
	if (atomic_load_explicit(&conn->local_announce, memory_order_acquire) == key)
		return true;
	return !atomic_load(&conn->is_distrusted) && shm_conn_announced(conn) == key;
}

static bool is_announcing_unfenced(const struct shm_conn *conn, uint64_t unused)
{
	(void)unused;
	return is_answered(conn) && shm_conn_is_peer_unfenced(conn);
}

bool shm_wait_copies(struct shm_conn *conn, bool (*is_copying)(const struct shm_conn *, uint64_t),
		     uint64_t argument, uint64_t limit_ns)
{
	unsigned round;

	for (round = 0; is_copying(conn, argument); round++) {
		struct timespec pause = {.tv_nsec = round < 2 * SPINS ? 50000 : 1000000};

		if (round < SPINS)
			continue;
		/* the kernel closes the socket of a dead peer after its last copy */
		if (shm_conn_has_hung_up(conn))
			return true;
		if (core_now_ns() >= limit_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* A peer that runs at this moment finishes its piece. All others store nothing from now on. */
static void close_gate(struct shm_conn *conn)
{
	struct shm_engine *engine = conn->engine;

	/* first: who sees it closed can also see why, and ends the connection */
	atomic_store(&conn->is_shut, true);
	atomic_store(&conn->mine->revoked, 1);
	/* each processor answers: a virtual one that its host has stopped runs again */
	core_fence_heavy(CORE_FENCE_HOST);
	core_lock_acquire(&engine->lock);
	conn->gate_closed_ns = core_now_ns();
	core_lock_release(&engine->lock);
}

/*
 * LMR-FREE-21 for a caller that must not block: true if the peer is dead, or has been in the middle
 * of a copy through this key for longer than the time-out. The service thread ends the connection,
 * also if the peer continues before it is overdue: behind a closed gate it can do nothing more.
 */
static bool is_overdue(struct shm_conn *conn, uint32_t key)
{
	struct shm_engine *engine = conn->engine;
	uint64_t limit_ns = engine->settings.peer_timeout_ms * 1000000u;
	uint64_t now = core_now_ns();
	uint64_t since_ns, closed_ns;

	core_lock_acquire(&engine->lock);
	/* an old record does not count: it is about an earlier key of this number, or our own
	 * threads did not run */
	if (conn->stalled_key != key || now - conn->stalled_since_ns > 2 * limit_ns) {
		conn->stalled_key = key;
		conn->stalled_since_ns = now;
		conn->gate_closed_ns = 0;
	}
	since_ns = conn->stalled_since_ns;
	closed_ns = conn->gate_closed_ns;
	core_lock_release(&engine->lock);
	/* the kernel closes the socket of a dead peer after its last copy */
	if (shm_conn_has_hung_up(conn))
		return true;
	if (now - since_ns < limit_ns)
		return false;
	/* revoke first, so that the peer does not copy when it continues */
	if (!closed_ns) {
		close_gate(conn);
		shm_conn_serve_later(conn);
		return false;
	}
	if (now - closed_ns < PIECE_NS)
		return false;
	atomic_store(&conn->is_distrusted, true);
	shm_conn_serve_later(conn);
	return true;
}

/*
 * The key is dead, and a full fence followed. When this returns, every peer that copies through the
 * key has visibly announced it. Only keys whose memory a peer got are announced without a fence.
 */
static void fence_peers(struct shm_engine *engine, uint32_t key)
{
	struct shm_conn *unfenced;
	uint32_t index = 0;

	if (!soft_keys_is_given(engine->adapter->keys, key))
		return;
	unfenced = shm_engine_next_conn(engine, &index, is_announcing_unfenced, 0);
	if (!unfenced)
		return;
	core_fence_heavy(CORE_FENCE_HOST);
	shm_conn_put(unfenced);
}

bool shm_engine_is_key_in_use(struct shm_engine *engine, uint32_t key)
{
	bool is_in_use = false;
	struct shm_conn *conn;
	uint32_t index = 0;

	fence_peers(engine, key);
	while ((conn = shm_engine_next_conn(engine, &index, is_copying_through, key)) != NULL) {
		if (!is_overdue(conn, key))
			is_in_use = true;
		shm_conn_put(conn);
	}
	return is_in_use;
}

void shm_engine_wait_key(struct shm_engine *engine, uint32_t key)
{
	/* one limit for all peers, however many are copying */
	uint64_t limit_ns = core_now_ns() + engine->settings.peer_timeout_ms * 1000000u;
	struct shm_conn *conn;
	uint32_t index = 0;

	fence_peers(engine, key);
	while ((conn = shm_engine_next_conn(engine, &index, is_copying_through, key)) != NULL) {
		if (!shm_wait_copies(conn, is_copying_through, key, limit_ns)) {
			struct core_ep *ep;

			/*
			 * LMR-FREE-21: a peer that is stopped in the middle of a copy loses the
			 * connection
			 */
			core_log(CORE_LOG_MEMORY | CORE_LOG_ERROR,
				 "key 0x%x: process %d is stopped in the middle of a copy; its "
				 "connection is broken",
				 key, (int)conn->remote.pid);
			atomic_store(&conn->is_distrusted, true);
			ep = shm_conn_enter(conn);
			if (ep) {
				shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
				shm_conn_finish(conn, ep);
				core_ep_leave(ep);
			}
			close_gate(conn);
			nanosleep(&(struct timespec){.tv_nsec = PIECE_NS}, NULL);
		}
		shm_conn_put(conn);
	}
}
