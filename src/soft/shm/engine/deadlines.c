// SPDX-License-Identifier: BSD-2-Clause
/*
 * Connections whose deadline has passed, and connections that ask for the service thread.
 */
#include "core/base/clock.h"
#include "soft/shm/engine/service.h"

#include "core/transport.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/connect/setup.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/progress.h"

static void serve_locked(struct shm_conn *conn, struct core_ep *ep, uint64_t now)
{
	enum shm_state state = shm_conn_state(conn);

	if (state < SHM_ESTABLISHED && conn->failure) {
		shm_conn_fail_setup(conn, ep, conn->failure);
		return;
	}
	/* LMR-FREE-21 RMR-FREE-14: it was in the middle of a copy for too long */
	if (atomic_load(&conn->is_shut) || atomic_load(&conn->is_distrusted)) {
		shm_service_give_up(conn, ep);
		return;
	}
	switch (state) {
	case SHM_CALLING:
	case SHM_REQUESTED:
		if (now >= conn->give_up_ns)
			shm_conn_fail_setup(conn, ep, DAT_CONNECTION_EVENT_TIMED_OUT);
		else if (state == SHM_CALLING)
			shm_setup_retry(conn, now);
		break;
	case SHM_ACCEPTED:
		if (now >= conn->give_up_ns)
			shm_service_give_up(conn, ep);
		else if (conn->request && now >= conn->retry_ns)
			shm_setup_send_accept(conn);
		break;
	case SHM_ESTABLISHED:
		shm_conn_pass(conn, ep);
		break;
	default:
		shm_conn_finish(conn, ep);
	}
}

static void serve(struct shm_conn *conn, uint64_t now)
{
	struct core_ep *ep;

	if (shm_conn_state(conn) == SHM_ARRIVING) {
		if (now >= conn->give_up_ns)
			shm_setup_drop_silent(conn);
		return;
	}
	ep = shm_conn_enter(conn);
	if (ep) {
		serve_locked(conn, ep, now);
		core_ep_leave(ep);
	} else {
		shm_conn_set_deadline(conn, 0);
	}
}

static bool is_due(const struct shm_conn *conn, uint64_t now)
{
	uint64_t deadline = atomic_load(&conn->deadline_ns);

	return deadline && deadline <= now;
}

void shm_service_deadlines(struct shm_engine *engine)
{
	uint64_t now = core_now_ns();
	struct shm_conn *conn;
	uint32_t index = 0;

	if (now < atomic_load(&engine->deadline_ns))
		return;
	/* before the scan: a thread that sets a deadline stores it in the connection first */
	atomic_store(&engine->deadline_ns, UINT64_MAX);
	while ((conn = shm_engine_next_conn(engine, &index, is_due, now)) != NULL) {
		uint64_t due = atomic_load(&conn->deadline_ns);

		/*
		 * a deadline fires once; serve() or what it calls sets the next one. A deadline
		 * that another thread has set meanwhile stays
		 */
		if (due <= now)
			atomic_compare_exchange_strong(&conn->deadline_ns, &due, 0);
		serve(conn, now);
		shm_conn_put(conn);
	}
	if (now >= atomic_load(&engine->resume_ns))
		shm_listener_resume_all(engine);
	shm_engine_update_deadline(engine);
}

void shm_service_pending(struct shm_engine *engine)
{
	struct shm_conn *conn;

	while ((conn = shm_engine_next_pending(engine)) != NULL) {
		serve(conn, core_now_ns());
		shm_conn_put(conn);
	}
}
