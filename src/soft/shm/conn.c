// SPDX-License-Identifier: BSD-2-Clause
/*
 * The life of a connection object, and its endpoint.
 */
#include "soft/shm/state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "core/base/cancel.h"
#include "core/base/fence.h"
#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/fds.h"
#include "soft/key.h"
#include "soft/refs.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/connect/process.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/piece.h"

int shm_conn_create(struct shm_engine *engine, int fd, enum shm_index self,
		    struct shm_conn **conn_out)
{
	struct shm_conn *conn = core_slab_alloc(sizeof(*conn));

	if (!conn)
		return -ENOMEM;
	conn->engine = engine;
	shm_engine_get(engine);
	atomic_init(&conn->refs, 1);
	conn->fd = fd;
	conn->segment_fd = -1;
	conn->self = (uint8_t)self;
	conn->give_up_ns = UINT64_MAX;
	conn->retry_ns = UINT64_MAX;
	conn->caller.conn = conn;
	conn->can_skip_fence = core_fence_is_supported(CORE_FENCE_HOST);
	*conn_out = conn;
	return 0;
}

void shm_conn_get(struct shm_conn *conn)
{
	/* relaxed: the caller holds a reference, or the lock of a list that holds one */
	atomic_fetch_add_explicit(&conn->refs, 1, memory_order_relaxed);
}

bool shm_conn_get_unless_dead(struct shm_conn *conn)
{
	return soft_get_unless_dead(&conn->refs);
}

/* The engine keeps the counts of destroyed connections. */
static void keep_counters(struct shm_conn *conn)
{
	uint32_t i;

	for (i = 0; i < SHM_COUNT_END; i++)
		atomic_fetch_add_explicit(
			&conn->engine->counters[i],
			atomic_load_explicit(&conn->counters[i], memory_order_relaxed),
			memory_order_relaxed);
}

static void conn_destroy(struct shm_conn *conn)
{
	struct shm_engine *engine = conn->engine;
	int state = core_cancel_off();

	keep_counters(conn);
	if (conn->id)
		shm_engine_remove(engine, conn->id);
	shm_listener_forget(conn);
	shm_conn_epoll_remove(conn);
	shm_map_drop_all(conn);
	shm_pool_release(conn);
	shm_conn_close_socket(conn);
	soft_fd_close(conn->segment_fd);
	if (conn->remote.view)
		soft_view_put(conn->remote.view);
	shm_process_put(engine, conn->remote.process);
	shm_grow_end(conn);
	if (conn->segment)
		munmap(conn->segment, sizeof(*conn->segment));
	if (conn->listener)
		shm_listener_put(conn->listener);
	core_slab_free(conn->request, sizeof(*conn->request));
	core_slab_free(conn->peer_name, sizeof(struct sockaddr_un));
	core_slab_free(conn, sizeof(*conn));
	shm_engine_put(engine);
	core_cancel_restore(state);
}

void shm_conn_put(struct shm_conn *conn)
{
	/* acq_rel: the thread that destroys it sees what all others did */
	if (atomic_fetch_sub_explicit(&conn->refs, 1, memory_order_acq_rel) == 1)
		conn_destroy(conn);
}

/* --- endpoint --- */

void shm_conn_attach(struct shm_conn *conn, struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;

	conn->ep_ref = core_handle_ref(ep->cell);
	mine->conn = conn;
	/* release: pairs with the acquire in shm_conn_ep */
	atomic_store_explicit(&conn->has_ep, true, memory_order_release);
}

struct core_ep *shm_conn_enter(struct shm_conn *conn)
{
	struct core_ep *ep = core_ep_enter(shm_conn_ep(conn));

	if (!ep || shm_conn_belongs_to(conn, ep))
		return ep;
	core_ep_leave(ep);
	return NULL;
}

void shm_conn_drop(struct shm_conn *conn, struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;

	mine->conn = NULL;
	shm_conn_set_state(conn, SHM_ENDED);
	shm_conn_epoll_remove(conn);
	shm_conn_put(conn);
}

/* --- attention of the service thread --- */

void shm_conn_serve_later(struct shm_conn *conn)
{
	struct shm_engine *engine = conn->engine;

	core_lock_acquire(&engine->lock);
	if (!conn->is_pending) {
		conn->is_pending = true;
		shm_conn_get(conn);
		conn->next_pending = atomic_load(&engine->pending_first);
		atomic_store(&engine->pending_first, conn);
	}
	core_lock_release(&engine->lock);
	shm_engine_kick(engine);
}

void shm_conn_set_deadline(struct shm_conn *conn, uint64_t deadline_ns)
{
	/* sequentially consistent, and before the engine's: see shm_service_deadlines */
	atomic_store(&conn->deadline_ns, deadline_ns);
	if (deadline_ns)
		shm_engine_lower_deadline(conn->engine, deadline_ns);
}

void shm_conn_lower_deadline(struct shm_conn *conn, uint64_t deadline_ns)
{
	uint64_t now_set = atomic_load(&conn->deadline_ns);

	if (!now_set || deadline_ns < now_set)
		shm_conn_set_deadline(conn, deadline_ns);
}
