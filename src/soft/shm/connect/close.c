// SPDX-License-Identifier: BSD-2-Clause
/*
 * The end of a connection or of an attempt. It has two steps: shm_conn_close revokes the peer's
 * access to our memory and notifies the peer; shm_conn_finish waits, without blocking, until a copy
 * of the peer that is under way has ended, and only then reports the end to the core.
 * models/close.pml models both and the copies.
 */
#include "soft/shm/connect/close.h"

#include "core/base/clock.h"
#include "core/base/fence.h"
#include "core/base/log.h"
#include "core/transport.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/progress.h"
#include "shared/names.h"
#include "soft/shm/wire.h"

#define RECHECK_NS 1000000u

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
	/* release: all that was taken is copied out; pairs with shm_pool_release of the peer */
	atomic_store_explicit(&conn->mine->is_over, 1, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (shm_conn_is_peer_unfenced(conn))
		core_fence_heavy(CORE_FENCE_HOST);
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
	core_log(end == DAT_CONNECTION_EVENT_BROKEN ? CORE_LOG_CONN | CORE_LOG_ERROR
						    : CORE_LOG_CONN,
		 "connection %llu with process %d ends: %s%s", (unsigned long long)conn->id,
		 (int)conn->remote.pid, opendat_event_name(end),
		 conn->is_peer_gone ? ", the process has died or closed its socket" : "");
	shm_conn_set_state(conn, SHM_CLOSING);
	if (shm_conn_ep(conn).cell)
		core_handle_set_slow(shm_conn_ep(conn).cell, CORE_EP_SLOW_CONN);
	conn->end = end;
	conn->force_ns = core_now_ns() + engine->settings.peer_timeout_ms * 1000000u;
	if (shm_conn_has_segment(conn))
		revoke(conn);
	if (atomic_exchange_explicit(&conn->is_disarmed, false, memory_order_relaxed))
		atomic_fetch_sub(&engine->disarmed, 1);
	shm_engine_deactivate(engine, conn);
	if (!conn->is_peer_gone && !conn->has_peer_closed)
		shm_conn_send_word(conn, SHM_WIRE_CLOSE, why);
}

bool shm_conn_is_peer_unfenced(const struct shm_conn *conn)
{
	return shm_conn_has_segment(conn) && conn->remote.is_trusted &&
	       atomic_load_explicit(&conn->theirs->is_unfenced, memory_order_relaxed);
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
	if (!conn->is_peer_gone && !atomic_load(&conn->is_distrusted) &&
	    shm_conn_is_peer_copying(conn, 0)) {
		now = core_now_ns();
		if (now < conn->force_ns) {
			shm_conn_set_deadline(conn, now + RECHECK_NS);
			return;
		}
	}
	shm_conn_set_deadline(conn, 0);
	/* the caller holds a reference of its own, or does not use the connection any more */
	{
		DAT_EVENT_NUMBER number = conn->end;

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
