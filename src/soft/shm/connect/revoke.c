// SPDX-License-Identifier: BSD-2-Clause
/*
 * Taking from a peer what it has access to: the end of a key, of a connection, and of an attempt. A
 * key is dead only when no peer copies through it any more; models/keys.pml models that and the
 * copies. A connection ends in two steps: shm_conn_close revokes the peer's access to our memory and
 * notifies the peer; shm_conn_finish waits, without blocking, until a copy of the peer that is under
 * way has ended, and only then reports the end to the core. models/close.pml models both.
 */
#include "soft/shm/connect/revoke.h"

#include <time.h>

#include "core/transport.h"
#include "core/base/clock.h"
#include "core/base/fence.h"
#include "core/base/log.h"
#include "shared/names.h"
#include "soft/key.h"
#include "soft/shm/instance.h"
#include "soft/shm/socket.h"
#include "soft/shm/state.h"
#include "soft/shm/bytes/wire.h"
#include "soft/shm/transfer/publish.h"

#define RECHECK_NS 1000000u
#define SPINS 200u
/*
 * Longer than one piece of a copy into our memory takes. That is microseconds of processor time,
 * but a virtual processor may be interrupted by its host, which the peer's kernel does not notice.
 */
#define PIECE_NS 20000000u

/* --- the end of a connection --- */

static bool is_end(DAT_EVENT_NUMBER number)
{
	return number == DAT_CONNECTION_EVENT_DISCONNECTED || number == DAT_CONNECTION_EVENT_BROKEN;
}

static void revoke(struct shm_conn *conn)
{
	/*
	 * sequentially consistent: the peer stores its announcement, then reads `revoked`; we store
	 * `revoked`, then read the announcement: one of us sees the other's store
	 */
	atomic_store(&conn->mine->revoked, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (shm_fence_is_peer_unfenced(conn))
		core_fence_heavy(CORE_FENCE_HOST);
}

static void log_close(const struct shm_conn *conn, DAT_EVENT_NUMBER end)
{
	unsigned int kinds =
		end == DAT_CONNECTION_EVENT_BROKEN ? CORE_LOG_CONN | CORE_LOG_ERROR : CORE_LOG_CONN;

	if (!conn->remote.sender.pid) /* not yet known: the core reports the failure */
		return;
	core_log(kinds, "%s: the connection with process %d ends: %s%s", shm_conn_name(conn).text,
		 (int)conn->remote.sender.pid, opendat_event_name(end),
		 conn->end.peer == SHM_PEER_GONE ? ", the process has died or closed its socket"
						 : "");
}

void shm_conn_close(struct shm_conn *conn, DAT_EVENT_NUMBER end)
{
	struct shm_engine *engine = conn->engine;
	enum shm_wire_why why =
		end == DAT_CONNECTION_EVENT_DISCONNECTED ? SHM_WHY_DISCONNECT : SHM_WHY_ERROR;

	if (shm_conn_state(conn) >= SHM_CLOSING)
		return;
	/* reports what was done for the peer before the end is reported (DTO-52) */
	if (shm_conn_state(conn) == SHM_ESTABLISHED)
		shm_conn_flush(conn, false);
	log_close(conn, end);
	shm_conn_set_state(conn, SHM_CLOSING);
	if (shm_conn_ep(conn).cell)
		core_handle_set_slow(shm_conn_ep(conn).cell, CORE_EP_SLOW_CONN);
	conn->end.event = end;
	conn->end.limit_ns = core_now_ns() + engine->settings.peer_timeout_ms * 1000000u;
	if (shm_conn_has_segment(conn))
		revoke(conn);
	if (atomic_exchange_explicit(&conn->wake.is_disarmed, false, memory_order_relaxed))
		atomic_fetch_sub(&engine->disarmed, 1);
	shm_engine_deactivate(engine, conn);
	if (conn->end.peer == SHM_PEER_HERE)
		shm_conn_send_word(conn, SHM_WIRE_CLOSE, why);
}

bool shm_conn_is_peer_copying(const struct shm_conn *conn, uint64_t unused)
{
	(void)unused;
	return shm_conn_announced(conn) != 0;
}

void shm_conn_finish(struct shm_conn *conn, struct core_ep *ep)
{
	uint64_t now;

	if (shm_conn_state(conn) != SHM_CLOSING)
		return;
	if (conn->end.peer != SHM_PEER_GONE && shm_conn_trust(conn) != SHM_DISTRUSTED &&
	    shm_conn_is_peer_copying(conn, 0)) {
		now = core_now_ns();
		if (now < conn->end.limit_ns) {
			shm_conn_set_deadline(conn, now + RECHECK_NS);
			return;
		}
	}
	shm_conn_set_deadline(conn, 0);
	/* the caller holds a reference of its own, or does not use the connection any more */
	{
		DAT_EVENT_NUMBER number = conn->end.event;

		shm_conn_drop(conn, ep);
		if (is_end(number))
			core_ep_ended(ep, number);
		else
			core_ep_connect_failed(ep, number);
	}
}

void shm_conn_fail_setup(struct shm_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	shm_conn_close(conn, number);
	shm_conn_finish(conn, ep);
}

/* --- the end of a key --- */

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
	return shm_conn_trust(conn) != SHM_DISTRUSTED && shm_conn_announced(conn) == key;
}

static bool is_announcing_unfenced(const struct shm_conn *conn, uint64_t unused)
{
	(void)unused;
	return is_answered(conn) && shm_fence_is_peer_unfenced(conn);
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

static void distrust(struct shm_conn *conn, enum shm_trust trust)
{
	uint8_t old = atomic_load(&conn->end.trust);

	while (old < trust && !atomic_compare_exchange_weak(&conn->end.trust, &old, (uint8_t)trust))
		continue;
}

/* A peer that runs at this moment finishes its piece. All others store nothing from now on. */
static void close_gate(struct shm_conn *conn)
{
	struct shm_engine *engine = conn->engine;

	/* first: who sees it closed can also see why, and ends the connection */
	distrust(conn, SHM_SHUT);
	atomic_store(&conn->mine->revoked, 1);
	/* each processor answers: a virtual one that its host has stopped runs again */
	core_fence_heavy(CORE_FENCE_HOST);
	core_lock_acquire(&engine->lock);
	conn->stall.gate_closed_ns = core_now_ns();
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
	if (conn->stall.key != key || now - conn->stall.since_ns > 2 * limit_ns) {
		conn->stall.key = key;
		conn->stall.since_ns = now;
		conn->stall.gate_closed_ns = 0;
	}
	since_ns = conn->stall.since_ns;
	closed_ns = conn->stall.gate_closed_ns;
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
	distrust(conn, SHM_DISTRUSTED);
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

	if (!soft_keys_is_given(engine->adapter->keys, key))
		return;
	unfenced = shm_engine_next_conn(engine, NULL, is_announcing_unfenced, 0);
	if (!unfenced)
		return;
	core_fence_heavy(CORE_FENCE_HOST);
	shm_conn_put(unfenced);
}

bool shm_engine_is_key_in_use(struct shm_engine *engine, uint32_t key)
{
	bool is_in_use = false;
	struct shm_conn *conn = NULL;

	fence_peers(engine, key);
	while ((conn = shm_engine_next_conn(engine, conn, is_copying_through, key)) != NULL)
		if (!is_overdue(conn, key))
			is_in_use = true;
	return is_in_use;
}

void shm_engine_wait_key(struct shm_engine *engine, uint32_t key)
{
	/* one limit for all peers, however many are copying */
	uint64_t limit_ns = core_now_ns() + engine->settings.peer_timeout_ms * 1000000u;
	struct shm_conn *conn = NULL;

	fence_peers(engine, key);
	while ((conn = shm_engine_next_conn(engine, conn, is_copying_through, key)) != NULL) {
		if (!shm_wait_copies(conn, is_copying_through, key, limit_ns)) {
			struct core_ep *ep;

			/*
			 * LMR-FREE-21: a peer that is stopped in the middle of a copy loses the
			 * connection
			 */
			core_log(CORE_LOG_MEMORY | CORE_LOG_ERROR,
				 "key 0x%x: process %d is stopped in the middle of a copy; its "
				 "connection is broken",
				 key, (int)conn->remote.sender.pid);
			distrust(conn, SHM_DISTRUSTED);
			ep = shm_conn_enter(conn);
			if (ep) {
				shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
				shm_conn_finish(conn, ep);
				core_ep_leave(ep);
			}
			close_gate(conn);
			nanosleep(&(struct timespec){.tv_nsec = PIECE_NS}, NULL);
		}
	}
}
