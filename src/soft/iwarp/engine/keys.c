// SPDX-License-Identifier: BSD-2-Clause
/*
 * The end of a region of ours: waiting for threads that use its key for a peer, and for the kernel,
 * which may still send from it.
 */
#include <sched.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/engine/engine.h"
#include "soft/iwarp/transfer/tx.h"
#include "soft/iwarp/transfer/zerocopy.h"

#define LOOK_NS 50000	     /* from one look to the next, */
#define LOOK_MOST_NS 5000000 /* later */

bool iw_engine_is_key_in_use(struct iw_engine *engine, uint32_t key)
{
	const struct iw_conn *conn;
	bool is_used = false;

	if (!atomic_load(&engine->is_started))
		return false;
	core_lock_acquire(&engine->lock);
	for (conn = engine->first; conn && !is_used; conn = conn->next)
		/* acquire: what was placed through the key is placed */
		is_used = atomic_load_explicit(&conn->announced, memory_order_acquire) == key;
	core_lock_release(&engine->lock);
	return is_used;
}

void iw_engine_wait_key(struct iw_engine *engine, uint32_t key)
{
	/* a thread of ours holds it for one copy or one read of a socket, which does not block */
	while (iw_engine_is_key_in_use(engine, key))
		sched_yield();
}

/* --- what the kernel sends --- */

/* The connection behind that one, or the first, with a reference; drops that of the one before. */
static struct iw_conn *next_conn(struct iw_engine *engine, struct iw_conn *before)
{
	struct iw_conn *conn;

	core_lock_acquire(&engine->lock);
	conn = before ? before->next : engine->first;
	while (conn && !iw_conn_get_unless_dead(conn))
		conn = conn->next;
	core_lock_release(&engine->lock);
	if (before)
		iw_conn_put(before);
	return conn;
}

/* Ends the connection of the request, so that the kernel drops what it has not sent. */
static void stop_sending(struct iw_conn *conn, struct core_ep *ep, struct core_req *req)
{
	if (iw_conn_state(conn) == IW_ESTABLISHED && !req->is_done)
		iw_tx_fail(conn, ep, req, DAT_DTO_ERR_LOCAL_PROTECTION); /* DTO-96 */
	else
		iw_zerocopy_end(conn);
}

/* Does the kernel send from the region of that key for the connection? If it is late, it is
 * stopped. */
static bool is_sending(struct iw_conn *conn, uint32_t key, bool is_late)
{
	struct core_req *req;
	struct core_ep *ep;
	bool is_reset;

	if (!atomic_load(&conn->is_sending))
		return false;
	ep = iw_conn_enter(conn);
	if (!ep) /* another thread releases it, and waits, too */
		return true;
	req = iw_zerocopy_find(conn, ep, key);
	is_reset = conn->stream.tx.zerocopy.is_reset;
	if (req && is_late && !is_reset)
		stop_sending(conn, ep, req);
	if (req || is_reset) /* its passes take the notices, and may end the connection */
		iw_conn_serve_later(conn);
	core_ep_leave(ep);
	return req || is_reset;
}

/* `end`: when all connections are late; each gets a moment of its own. */
static void wait_sent(struct iw_conn *conn, uint32_t key, uint64_t end)
{
	uint64_t limit = iw_zerocopy_limit_ns(conn->engine);
	struct timespec look = {.tv_nsec = LOOK_NS};
	uint64_t now = core_now_ns();

	if (end < now + LOOK_MOST_NS)
		end = now + LOOK_MOST_NS;
	while (is_sending(conn, key, now >= end) && now < end + limit) {
		nanosleep(&look, NULL);
		if (look.tv_nsec < LOOK_MOST_NS)
			look.tv_nsec *= 2;
		now = core_now_ns();
	}
}

void iw_engine_wait_sent(struct iw_engine *engine, uint32_t key)
{
	struct iw_conn *conn = NULL;
	uint64_t end;

	if (!atomic_load(&engine->sending_count))
		return;
	end = core_now_ns() + iw_zerocopy_limit_ns(engine);
	while ((conn = next_conn(engine, conn)) != NULL)
		wait_sent(conn, key, end);
}
