// SPDX-License-Identifier: BSD-2-Clause
/*
 * Binds. First the keys of RMRs (docs/transports.md, "RMR binds and memory windows"). A bind makes
 * a memory window, bound by a work request of the endpoint, or registers the range. The window is
 * bound before the bind has its turn in the request queue, because the key is known only when the
 * work request is posted. This does no harm, since nobody uses the key before the bind has
 * completed. The window that the RMR was bound to before stays until the bind has its turn. Then a
 * second work request unbinds it.
 *
 * A window is reused only if all its work requests were carried out, and not for ever, because the
 * device counts its keys in 8 bits.
 */
#include "verbs/transfer/bind.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/ep/ep.h"
#include "core/mem/rmr.h"
#include "core/transport.h"
#include "verbs/device/mem.h"
#include "verbs/device/tuning.h"
#include "verbs/transfer/conn.h"
#include "verbs/transfer/queue.h"

/* --- work requests of windows --- */

static int remote_access(const struct vrb_adapter *adapter, DAT_MEM_PRIV_FLAGS priv)
{
	bool has_atomics = adapter->takes & TRANSPORT_TAKES_ATOMICS;

	return (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG ? IBV_ACCESS_REMOTE_READ : 0) |
	       (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG ? IBV_ACCESS_REMOTE_WRITE : 0) |
	       (has_atomics && (priv & CORE_MEM_PRIV_REMOTE_ATOMIC) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* Can the next request of the endpoint bind a window? */
static bool can_bind_window(const struct vrb_conn *conn, const struct core_ep *ep,
			    const struct transport_window *window)
{
	return conn && conn->state == VRB_ESTABLISHED && conn->adapter->has_windows &&
	       vrb_lmr_takes_windows(conn->adapter, window->lmr) && vrb_has_room(conn, ep, 1);
}

/* Binds a window by a work request. NULL: the range has to be registered. */
static struct vrb_window *bind_window(struct vrb_conn *conn, const struct core_ep *ep,
				      const struct transport_window *wanted)
{
	struct ibv_mw_bind bind = {
		.wr_id = vrb_work_id(VRB_WORK_REQUEST, conn->key, ep->req.tail),
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = ((struct vrb_lmr *)wanted->lmr->transport)->mr,
			      .addr = wanted->address,
			      .length = wanted->length,
			      .mw_access_flags =
				      (unsigned)remote_access(conn->adapter, wanted->priv)},
	};
	struct vrb_window *window = vrb_window_take(conn->adapter, wanted->lmr->pz->transport);
	int rc;

	if (!window)
		return NULL;
	if (wanted->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG)
		bind.send_flags |= IBV_SEND_FENCE;
	rc = ibv_bind_mw(conn->qp, window->mw, &bind);
	if (rc) { /* for example, the range is too long for a window */
		core_log(CORE_LOG_CONN, "queue pair %u: bind refused: %s", conn->qp->qp_num,
			 strerror(rc));
		vrb_window_give_back(conn->adapter, window);
		return NULL;
	}
	conn->sq.extra++; /* until the bind has its turn (queue.h) */
	conn->binds.out++;
	window->end = vrb_sq_posted(conn);
	window->region = bind.bind_info.mr;
	window->binds++;
	atomic_store(&window->state, VRB_WINDOW_NEW);
	return window;
}

/* Has its bind completed, or did it need no work request? */
static bool window_is_ready(const struct vrb_window *window)
{
	return window->mr || atomic_load(&window->state) != VRB_WINDOW_NEW;
}

/* The position behind its bind; 0: it needed no work request. */
static uint64_t window_end(const struct vrb_window *window)
{
	return window->mw ? window->end : 0;
}

void vrb_window_bound(struct vrb_window *window)
{
	atomic_store(&window->state, VRB_WINDOW_LIVE);
}

bool vrb_rmr_key_retire(struct core_ep *ep, void *key)
{
	struct vrb_conn *conn = vrb_conn_of(ep);
	struct vrb_window *window = key;
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		/* length 0 unbinds, but some libraries check the region */
		.bind_info = {.mr = window->region},
	};

	if (!conn || conn->binds.retiring == window)
		return conn;
	if (window->mr || atomic_load(&window->state) != VRB_WINDOW_LIVE || conn->binds.retiring ||
	    conn->state != VRB_ESTABLISHED)
		return false;
	bind.wr_id = vrb_work_id(VRB_WORK_MARKER, conn->key, VRB_MARKER_RETIRED);
	/* after a failure the window is destroyed, which takes longer */
	if (ibv_bind_mw(conn->qp, window->mw, &bind))
		return false;
	conn->sq.extra++;
	conn->binds.retiring = window;
	conn->binds.retire_end = vrb_sq_posted(conn);
	atomic_store(&window->state, VRB_WINDOW_RETIRING);
	return true;
}

void vrb_window_retired(struct vrb_conn *conn, bool is_good)
{
	struct vrb_window *window = conn->binds.retiring;

	if (!window)
		return;
	conn->binds.retiring = NULL;
	/* last: a thread that waits for this state frees the window */
	atomic_store(&window->state, is_good ? VRB_WINDOW_STALE : VRB_WINDOW_LOST);
}

void vrb_window_set_blocked(struct vrb_conn *conn, bool is_blocked)
{
	if (atomic_load(&conn->binds.is_blocked) == is_blocked)
		return;
	atomic_store(&conn->binds.is_blocked, is_blocked);
	if (is_blocked)
		atomic_fetch_add(&conn->adapter->blocked, 1);
	else
		atomic_fetch_sub(&conn->adapter->blocked, 1);
}

/* --- keys --- */

static int register_range(const struct transport_window *wanted, struct vrb_window **window_out)
{
	struct vrb_window *window = calloc(1, sizeof(*window));
	int rc;

	if (!window)
		return -ENOMEM;
	rc = vrb_mr_create(wanted->lmr->pz, wanted->address, wanted->length, wanted->priv,
			   &window->mr);
	if (rc) {
		free(window);
		return rc;
	}
	*window_out = window;
	return 0;
}

int vrb_rmr_key_create(struct core_ep *ep, const struct transport_window *wanted, void **key_out,
		       uint32_t *rkey_out)
{
	struct vrb_conn *conn = vrb_conn_of(ep);
	struct vrb_window *window = NULL;
	int rc;

	if (atomic_load(&vrb_adapter_of(ep->ia)->is_dead))
		return -ENODEV;
	if (can_bind_window(conn, ep, wanted))
		window = bind_window(conn, ep, wanted);
	if (!window) {
		rc = register_range(wanted, &window);
		if (rc)
			return rc;
	}
	*key_out = window;
	*rkey_out = window->mw ? window->mw->rkey : window->mr->rkey;
	return 0;
}

/*
 * Nothing to do. The key is valid from the start, because it is reported only after the bind was
 * posted. The core does not restore a key that was revoked, and an unbind that has begun is not
 * taken back.
 */
void vrb_rmr_key_activate(struct core_ia *ia, void *key)
{
	(void)ia;
	(void)key;
}

bool vrb_rmr_key_revoke(struct core_ia *ia, void *key)
{
	struct vrb_window *window = key;

	(void)ia;
	if (window->mr)
		vrb_mr_destroy(window->mr);
	window->mr = NULL;
	if (!window->mw)
		return true;
	switch (atomic_load(&window->state)) {
	case VRB_WINDOW_RETIRING:
		return false;
	case VRB_WINDOW_STALE:
		return true;
	default:
		/* ibv_dealloc_mw returns when no access is under way any more */
		vrb_window_destroy(window);
		return true;
	}
}

void vrb_rmr_key_destroy(struct core_ia *ia, void *key)
{
	struct vrb_window *window = key;

	(void)vrb_rmr_key_revoke(ia, key);
	if (window->mw && window->binds < VRB_BINDS_MAX) {
		vrb_window_give_back(vrb_adapter_of(ia), window);
		return;
	}
	if (window->mw)
		vrb_window_destroy(window);
	free(window);
}

/* --- binds in the request queue --- */

uint64_t vrb_bind_end(const struct core_req *req)
{
	return req->binding && req->binding->key ? window_end(req->binding->key) : 0;
}

static bool bind_is_ready(const struct core_req *req)
{
	return !req->binding->key || window_is_ready(req->binding->key);
}

/*
 * Stores the position at which the bind ends. Its work request may precede those of requests that
 * the bind itself follows. The bind is the oldest request, so it ends no earlier than everything
 * that is known to be done.
 */
void vrb_bind_note_end(const struct vrb_conn *conn, const struct core_ep *ep, struct core_req *req,
		       uint64_t end)
{
	uint64_t done = vrb_sq_done(conn, ep);

	vrb_note_extra(req, (end > done ? end : done) - (req->sequence + 1));
}

/* Runs the bind that is the oldest request, after something that it depends on may have changed. */
static enum core_bind bind_run(struct vrb_conn *conn, struct core_ep *ep)
{
	struct core_req *req = core_req_at(&ep->req, ep->req.head);
	uint64_t before = ep->req.head;
	enum core_bind result = core_bind_run(ep, req, bind_is_ready(req));

	vrb_follow_head(conn, ep, before);
	vrb_window_set_blocked(conn, result == CORE_BIND_BLOCKED);
	/* the bind continues even if no thread polls */
	if (result == CORE_BIND_BLOCKED && conn->state == VRB_ESTABLISHED)
		vrb_conn_set_deadline(conn, core_now_ns() + VRB_BLOCKED_NS);
	if (result != CORE_BIND_DONE && conn->binds.retiring)
		vrb_bind_note_end(conn, ep, req, conn->binds.retire_end);
	return result;
}

void vrb_bind_continue(struct vrb_conn *conn, struct core_ep *ep)
{
	if (conn->binds.is_running && bind_is_ready(core_req_at(&ep->req, ep->req.head)))
		conn->binds.is_running = bind_run(conn, ep) != CORE_BIND_DONE;
}

bool vrb_bind_begin(struct vrb_conn *conn, struct core_ep *ep, struct core_req *req)
{
	enum core_bind result;

	if (req->sequence != ep->req.head)
		return false; /* earlier requests are not done yet */
	vrb_bind_note_end(conn, ep, req, vrb_bind_end(req));
	result = bind_run(conn, ep);
	if (result == CORE_BIND_BLOCKED)
		return false;
	conn->binds.is_running = result == CORE_BIND_ORDERED;
	conn->sq.next++;
	conn->sq.extra--; /* the work request was counted when it was posted */
	return true;
}
