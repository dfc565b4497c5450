// SPDX-License-Identifier: BSD-2-Clause
/* Sockets and segments that are kept for the next connection (keep.h). */
#include "soft/shm/connect/keep.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/shm/connect/identity.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/connect/process.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/state.h"
#include "soft/shm/wire.h"

#define KEEP_NS 50000000u
/* longer: the peer may have been stopped before it could close its end */
#define OFFER_NS 1000000000u
#define ACTIVE_MAX 4u	/* kept by the active side of an engine */
#define PASSIVE_MAX 16u /* by the passive side */

/* Did it end in order, on both sides? */
static bool is_worth_keeping(const struct shm_conn *conn)
{
	return conn->was_established && conn->is_end_agreed &&
	       conn->end == DAT_CONNECTION_EVENT_DISCONNECTED && !conn->is_peer_gone &&
	       !atomic_load(&conn->is_distrusted) && !conn->grow.file &&
	       conn->remote.sender.pid > 0 && /* else its next packet proves nothing */
	       (conn->listener ? shm_listener_is_open(conn->listener) : conn->peer_name != NULL) &&
	       !atomic_load(&conn->engine->is_stopping);
}

/* Creates a new object, which contains nothing of the old connection. */
static struct shm_conn *make_successor(struct shm_conn *conn)
{
	struct shm_conn *successor;

	if (shm_conn_create(conn->engine, conn->fd, (enum shm_index)conn->self, &successor) < 0)
		return NULL;
	successor->is_kept = true;
	successor->is_peer_idle = conn->is_peer_idle;
	successor->segment = conn->segment;
	successor->is_refusing = conn->is_refusing;
	successor->grow.is_small = conn->grow.is_small;
	successor->request_out = conn->request_out; /* both sides' indexes, for clear_ring */
	successor->response_out = conn->response_out;
	successor->remote = conn->remote;
	successor->remote.last_map = NULL;
	successor->listener = conn->listener;
	successor->peer_name = conn->peer_name;
	successor->peer_name_len = conn->peer_name_len;
	conn->fd = -1;
	conn->segment = NULL;
	conn->remote.view = NULL;
	conn->remote.process = NULL;
	conn->listener = NULL;
	conn->peer_name = NULL;
	return successor;
}

static void clear_ring(const struct shm_producer *ring)
{
	memset(ring->bytes, 0, ring->produced < ring->size ? ring->produced : ring->size);
}

/* The two sides exchanged descriptors according to the users that they had when they met. */
static bool is_same_user_still(const struct shm_conn *conn)
{
	return geteuid() == conn->remote.own_uid;
}

/* --- passive side --- */

bool shm_keep_claim(struct shm_conn *conn)
{
	if (!atomic_exchange(&conn->is_offered, false))
		return false;
	/* relaxed: only the count matters */
	atomic_fetch_sub_explicit(&conn->engine->kept_count, 1, memory_order_relaxed);
	return true;
}

static void keep_passive(struct shm_conn *successor)
{
	struct shm_engine *engine = successor->engine;

	atomic_store(&successor->is_offered, true);
	successor->give_up_ns = core_now_ns() + OFFER_NS;
	shm_conn_set_state(successor, SHM_ARRIVING);
	/* added to epoll last: from then on the service may drop it */
	if (atomic_fetch_add_explicit(&engine->kept_count, 1, memory_order_relaxed) >=
		    PASSIVE_MAX ||
	    shm_engine_add(engine, SHM_SLOT_CONN, successor, &successor->id) < 0 ||
	    shm_conn_send_word(successor, SHM_WIRE_IDLE, 0) < 0) {
		shm_conn_put(successor);
		return;
	}
	shm_conn_get(successor);
	if (shm_conn_epoll_add(successor) < 0)
		shm_conn_put(successor);
	else
		shm_conn_set_deadline(successor, successor->give_up_ns);
	shm_conn_put(successor);
}

static bool is_offered_by(const struct shm_conn *conn, uint64_t listener)
{
	return atomic_load(&conn->is_offered) &&
	       (!listener || (uintptr_t)conn->listener == listener);
}

void shm_keep_drop_listener(struct shm_engine *engine, const struct shm_listener *listener)
{
	struct shm_conn *conn;
	uint32_t index = 0;

	while ((conn = shm_engine_next_conn(engine, &index, is_offered_by, (uintptr_t)listener)) !=
	       NULL) {
		/* the service thread sees the end, and answers a request that came before */
		if (shm_keep_claim(conn))
			shutdown(conn->fd, SHUT_RD);
		shm_conn_put(conn);
	}
}

int shm_keep_resume(struct shm_conn *conn, const struct ucred *sender)
{
	if (!shm_keep_claim(conn) || !shm_listener_is_open(conn->listener) ||
	    !is_same_user_still(conn) || !shm_identity_is_same(conn, sender))
		return -EAGAIN;
	clear_ring(&conn->request_out);
	clear_ring(&conn->response_out);
	shm_conn_make_rings(conn);
	shm_conn_set_has_segment(conn);
	return 0;
}

/* --- active side --- */

/*
 * Removes the first one from the list that has that name (NULL: any) and whose time ends by
 * `limit_ns`.
 */
static struct shm_conn *unlink_first(struct shm_engine *engine, const struct sockaddr_un *name,
				     socklen_t name_len, uint64_t limit_ns)
{
	struct shm_conn **link, *conn;

	core_lock_acquire(&engine->lock);
	for (link = &engine->kept_first; (conn = *link) != NULL; link = &conn->next_kept)
		if (conn->give_up_ns <= limit_ns &&
		    (!name ||
		     (conn->peer_name_len == name_len && !memcmp(conn->peer_name, name, name_len))))
			break;
	if (conn)
		*link = conn->next_kept;
	core_lock_release(&engine->lock);
	return conn;
}

/* Appends to the list; a full list drops its oldest. */
static void append_kept(struct shm_engine *engine, struct shm_conn *conn)
{
	struct shm_conn **link, *oldest = NULL;
	unsigned count = 0;

	conn->next_kept = NULL;
	core_lock_acquire(&engine->lock);
	for (link = &engine->kept_first; *link; link = &(*link)->next_kept)
		count++;
	*link = conn;
	if (count == ACTIVE_MAX) {
		oldest = engine->kept_first;
		engine->kept_first = oldest->next_kept;
	}
	core_lock_release(&engine->lock);
	if (oldest)
		shm_conn_put(oldest);
}

void shm_keep_expire(struct shm_engine *engine, uint64_t now)
{
	struct shm_conn *conn;

	while ((conn = unlink_first(engine, NULL, 0, now)) != NULL)
		shm_conn_put(conn);
}

static void keep_active(struct shm_conn *successor)
{
	struct shm_engine *engine = successor->engine;
	uint64_t until_ns = core_now_ns() + KEEP_NS;

	successor->give_up_ns = until_ns;
	append_kept(engine, successor);
	shm_engine_lower_deadline(engine, until_ns);
}

/* Makes it the object of a new connection. */
static bool prepare_kept(struct shm_conn *conn)
{
	conn->request = core_slab_alloc(sizeof(*conn->request));
	if (!conn->request || !is_same_user_still(conn) ||
	    shm_engine_add(conn->engine, SHM_SLOT_CONN, conn, &conn->id) < 0)
		return false;
	/* after it was added: shm_process_event has not found it before */
	if (conn->remote.process && atomic_load(&conn->remote.process->has_ended))
		return false;
	conn->give_up_ns = UINT64_MAX;
	conn->is_peer_idle = false;
	/* the words of both sides, because each side's rings start at the other side's words */
	memset(conn->segment->side, 0, sizeof(conn->segment->side));
	clear_ring(&conn->request_out);
	clear_ring(&conn->response_out);
	shm_conn_make_rings(conn);
	shm_conn_set_has_segment(conn);
	return true;
}

struct shm_conn *shm_keep_take(struct shm_engine *engine, const struct sockaddr_un *name,
			       socklen_t name_len)
{
	struct shm_conn *conn;
	unsigned tries;

	for (tries = 0; tries < ACTIVE_MAX; tries++) {
		int rc;

		conn = unlink_first(engine, name, name_len, UINT64_MAX);
		if (!conn)
			return NULL;
		rc = shm_conn_read_idle(conn);
		if (rc > 0 && prepare_kept(conn))
			return conn;
		if (rc == 0) {
			/* the peer still uses the segment */
			uint64_t until_ns = conn->give_up_ns;

			append_kept(engine, conn);
			shm_engine_lower_deadline(engine, until_ns);
		} else {
			shm_conn_put(conn);
		}
	}
	return NULL;
}

/* --- both --- */

void shm_keep_conn(struct shm_conn *conn)
{
	struct shm_conn *successor = is_worth_keeping(conn) ? make_successor(conn) : NULL;

	if (successor && successor->self == SHM_PASSIVE)
		keep_passive(successor);
	else if (successor)
		keep_active(successor);
}
