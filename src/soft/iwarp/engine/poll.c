// SPDX-License-Identifier: BSD-2-Clause
/* Polls by threads of the consumer: the connections that they drive in place of epoll. */
#include <sys/epoll.h>

#include "core/transport.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/engine/engine.h"
#include "soft/iwarp/transfer/fast.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/transfer/tx.h"

#define PASSES_MAX 16u	  /* connections that one poll drives */
#define IDLE_POLLS 20000u /* a connection without work for so many polls is armed */
#define MOVED_PASS 4096u  /* to move so many bytes takes about as long as a pass */
#define DRIVEN_PASSES 4u  /* over each polled connection, in a millisecond */

/* Does a poll of an empty EVD find anything to do here? */
static void update_slow_poll_locked(struct iw_engine *engine)
{
	core_ia_set_slow_poll(engine->ia, atomic_load(&engine->polled_count) ||
						  atomic_load(&engine->held_count));
}

static void remove_locked(struct iw_engine *engine, struct iw_conn *conn)
{
	if (conn->next_polled == conn) {
		engine->polled_first = NULL;
	} else {
		conn->next_polled->prev_polled = conn->prev_polled;
		conn->prev_polled->next_polled = conn->next_polled;
		if (engine->polled_first == conn)
			engine->polled_first = conn->next_polled;
	}
	conn->is_polled = false;
	atomic_fetch_sub(&engine->polled_count, 1);
	update_slow_poll_locked(engine);
}

void iw_engine_add_polled(struct iw_engine *engine, struct iw_conn *conn)
{
	struct iw_conn *first;

	if (conn->is_polled || iw_pass_watch_polled(conn) < 0)
		return;
	iw_conn_get(conn);
	conn->idle_polls = 0;
	core_lock_acquire(&engine->lock);
	first = engine->polled_first;
	if (first) {
		conn->next_polled = first;
		conn->prev_polled = first->prev_polled;
		first->prev_polled->next_polled = conn;
		first->prev_polled = conn;
	} else {
		conn->next_polled = conn;
		conn->prev_polled = conn;
		engine->polled_first = conn;
	}
	conn->is_polled = true;
	atomic_fetch_add(&engine->polled_count, 1);
	update_slow_poll_locked(engine);
	core_lock_release(&engine->lock);
}

void iw_engine_remove_polled(struct iw_engine *engine, struct iw_conn *conn)
{
	bool was_polled;

	core_lock_acquire(&engine->lock);
	was_polled = conn->is_polled;
	if (was_polled)
		remove_locked(engine, conn);
	core_lock_release(&engine->lock);
	if (was_polled)
		iw_conn_put(conn);
}

/* The connection whose turn it is, with a reference; NULL: there is none. */
static struct iw_conn *next_polled(struct iw_engine *engine)
{
	struct iw_conn *conn;

	core_lock_acquire(&engine->lock);
	conn = engine->polled_first;
	if (conn) {
		engine->polled_first = conn->next_polled;
		iw_conn_get(conn);
	}
	core_lock_release(&engine->lock);
	return conn;
}

/* Has epoll wait for it again. EP locked. */
static void arm(struct iw_engine *engine, struct iw_conn *conn, struct core_ep *ep)
{
	iw_engine_remove_polled(engine, conn);
	if (iw_conn_state(conn) != IW_ESTABLISHED)
		return;
	iw_tx_tell(conn, ep);
	iw_pass_watch(conn);
	/* epoll does not report what was read already, nor what a send has found */
	if (conn->has_more || conn->is_lost)
		iw_conn_serve_later(conn);
}

/* A pass that moves many bytes counts for as many as could be made meanwhile. */
void iw_engine_count_pass(struct iw_engine *engine, uint32_t moved)
{
	uint32_t polled = atomic_load_explicit(&engine->polled_count, memory_order_relaxed);

	soft_driven_count(&engine->driven, 1 + moved / MOVED_PASS, DRIVEN_PASSES * polled);
}

static int drive(struct iw_engine *engine, struct iw_conn *conn)
{
	struct core_ep *ep = iw_conn_enter(conn);
	int handled = 0;

	if (!ep) {
		iw_engine_remove_polled(engine, conn);
		return 0;
	}
	if (iw_conn_state(conn) == IW_ESTABLISHED) {
		conn->moved = 0;
		if (!iw_poll_fast(conn, ep, &handled))
			handled = iw_pass_behind(conn, ep, handled);
		iw_engine_count_pass(engine, conn->moved);
	}
	if (handled)
		conn->idle_polls = 0;
	else if (conn->is_polled && ++conn->idle_polls >= IDLE_POLLS)
		arm(engine, conn, ep);
	core_ep_leave(ep);
	return handled;
}

/* --- connections whose last messages wait for more --- */

void iw_engine_add_held(struct iw_engine *engine, struct iw_conn *conn)
{
	if (atomic_load_explicit(&conn->is_held, memory_order_relaxed))
		return;
	iw_conn_get(conn);
	core_lock_acquire(&engine->lock);
	atomic_store_explicit(&conn->is_held, true, memory_order_relaxed);
	conn->next_held = engine->held_first;
	engine->held_first = conn;
	atomic_fetch_add(&engine->held_count, 1);
	update_slow_poll_locked(engine);
	core_lock_release(&engine->lock);
}

/* Removes the connection that the pointer names, with its reference. */
static struct iw_conn *remove_held_locked(struct iw_engine *engine, struct iw_conn **at)
{
	struct iw_conn *conn = *at;

	if (!conn)
		return NULL;
	*at = conn->next_held;
	atomic_store_explicit(&conn->is_held, false, memory_order_relaxed);
	atomic_fetch_sub(&engine->held_count, 1);
	update_slow_poll_locked(engine);
	return conn;
}

void iw_engine_remove_held(struct iw_engine *engine, struct iw_conn *conn)
{
	struct iw_conn **at = &engine->held_first;
	struct iw_conn *removed;

	core_lock_acquire(&engine->lock);
	while (*at && *at != conn)
		at = &(*at)->next_held;
	removed = remove_held_locked(engine, at);
	core_lock_release(&engine->lock);
	if (removed)
		iw_conn_put(removed);
}

static void send_held(struct iw_engine *engine)
{
	uint32_t count = atomic_load_explicit(&engine->held_count, memory_order_relaxed);

	for (; count; count--) {
		struct iw_conn *conn;
		struct core_ep *ep;

		core_lock_acquire(&engine->lock);
		conn = remove_held_locked(engine, &engine->held_first);
		core_lock_release(&engine->lock);
		if (!conn)
			break;
		ep = iw_conn_enter(conn);
		if (ep && iw_conn_state(conn) == IW_ESTABLISHED)
			iw_pass_requests(conn, ep);
		if (ep)
			core_ep_leave(ep);
		iw_conn_put(conn);
	}
}

/* --- all of them --- */

/* The caller keeps the instance alive: it holds an EVD or a CNO of it. */
int iw_engine_progress(struct iw_engine *engine)
{
	uint32_t count = atomic_load_explicit(&engine->polled_count, memory_order_relaxed);
	int handled = 0;

	send_held(engine);
	if (count > PASSES_MAX)
		count = PASSES_MAX;
	for (; count; count--) {
		struct iw_conn *conn = next_polled(engine);

		if (!conn)
			break;
		handled += drive(engine, conn);
		iw_conn_put(conn);
	}
	return handled;
}

void iw_engine_arm(struct iw_engine *engine)
{
	struct iw_conn *conn;

	send_held(engine);
	while ((conn = next_polled(engine)) != NULL) {
		struct core_ep *ep = iw_conn_enter(conn);

		if (ep) {
			arm(engine, conn, ep);
			core_ep_leave(ep);
		} else {
			iw_engine_remove_polled(engine, conn);
		}
		iw_conn_put(conn);
	}
}

void iw_engine_unattended(struct iw_engine *engine)
{
	/* sequentially consistent, like the store of is_unattended: one side sees the other's */
	if (atomic_load(&engine->polled_count))
		iw_engine_kick(engine);
}
