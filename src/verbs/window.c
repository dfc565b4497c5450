// SPDX-License-Identifier: BSD-2-Clause
/*
 * The keys of RMRs (docs/transports.md, "RMR binds and memory windows"). A bind makes a memory
 * window, bound by a work request of the endpoint, or registers the range. The window is bound
 * before the bind has its turn in the request queue, because the key is known only when the work
 * request is posted. This does no harm, since nobody uses the key before the bind has completed.
 * The window that the RMR was bound to before stays until the bind has its turn. Then a second work
 * request unbinds it.
 *
 * A window is reused only if all its work requests were carried out, and not for ever, because the
 * device counts its keys in 8 bits.
 */
#include "verbs/window.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/settings.h"
#include "core/transport.h"
#include "verbs/conn.h"
#include "verbs/mem.h"
#include "verbs/post.h"
#include "verbs/work.h"

#define BINDS_MAX 100u /* of one window; binding and unbinding take one key each */

enum window_state {
	WINDOW_NEW,	 /* its bind is under way */
	WINDOW_LIVE,	 /* bound */
	WINDOW_RETIRING, /* the work request that unbinds it is under way */
	WINDOW_STALE,	 /* unbound */
	WINDOW_LOST,	 /* a work request was dropped: bound or not, it is destroyed */
};

struct vrb_window {
	struct ibv_mr *mr;     /* a registration, until it is revoked; NULL: a window */
	struct ibv_mw *mw;     /* a window, until it is destroyed; NULL: a registration */
	struct ibv_mr *region; /* the region that the window is bound to */
	struct vrb_pz *pz;
	struct vrb_window *next; /* in the zone's list */
	uint64_t end;		 /* the position behind its bind (work.h) */
	uint32_t binds;
	_Atomic enum window_state state; /* of a window */
};

/* --- window or registration --- */

/*
 * rxe checks a window's privileges, but the bounds of its region instead of its own. A peer could
 * access memory outside of the window.
 */
static bool has_unchecked_bounds(const struct vrb_adapter *adapter,
				 const struct ibv_device_attr *device)
{
	return !adapter->is_iwarp && device->vendor_id == VRB_VENDOR_RXE;
}

/* Devices report whether they have windows, libraries do not. */
static bool can_allocate(struct vrb_adapter *adapter)
{
	struct ibv_pd *pd = ibv_alloc_pd(adapter->context);
	struct ibv_mw *mw = pd ? ibv_alloc_mw(pd, IBV_MW_TYPE_1) : NULL;

	if (mw)
		(void)ibv_dealloc_mw(mw);
	if (pd)
		(void)ibv_dealloc_pd(pd);
	return mw;
}

static bool has_type_1(const struct ibv_device_attr *device)
{
	return device->max_mw > 0 && (device->device_cap_flags & IBV_DEVICE_MEM_WINDOW);
}

void vrb_windows_choose(struct vrb_adapter *adapter, const struct ibv_device_attr *device)
{
	uint64_t wanted = adapter->ia->settings.rmr_bind;

	adapter->has_windows =
		wanted != CORE_RMR_REGISTRATION && has_type_1(device) &&
		(wanted == CORE_RMR_WINDOW || !has_unchecked_bounds(adapter, device)) &&
		can_allocate(adapter);
	if (wanted == CORE_RMR_WINDOW && !adapter->has_windows)
		core_log(CORE_LOG_ERROR,
			 "%s: no memory windows of type 1: rmr_bind=window is as "
			 "rmr_bind=registration",
			 adapter->ia->device);
}

const char *vrb_windows_text(const struct vrb_adapter *adapter,
			     const struct ibv_device_attr *device)
{
	if (device->max_mw <= 0)
		return "none";
	if (!has_type_1(device))
		return "type 2, which serves no RMR";
	return has_unchecked_bounds(adapter, device) ? "type 1, bounds unchecked" : "type 1";
}

/* --- windows of the device --- */

static void window_destroy(struct vrb_window *window)
{
	int rc = ibv_dealloc_mw(window->mw);

	if (rc)
		core_log(CORE_LOG_ERROR, "memory window: not freed: %s", strerror(rc));
	window->mw = NULL;
}

void vrb_windows_free(struct vrb_pz *pz)
{
	while (pz->windows) {
		struct vrb_window *window = pz->windows;

		pz->windows = window->next;
		window_destroy(window);
		free(window);
	}
}

/* Takes an unbound window from the zone, or makes one. NULL: not possible. */
static struct vrb_window *window_take(struct vrb_adapter *adapter, struct vrb_pz *pz)
{
	struct vrb_window *window;

	pthread_mutex_lock(&adapter->lock);
	window = pz->windows;
	if (window)
		pz->windows = window->next;
	pthread_mutex_unlock(&adapter->lock);
	if (window)
		return window;
	window = calloc(1, sizeof(*window));
	if (!window)
		return NULL;
	window->pz = pz;
	window->mw = ibv_alloc_mw(pz->pd, IBV_MW_TYPE_1);
	atomic_init(&window->state, WINDOW_STALE);
	if (window->mw)
		return window;
	free(window);
	return NULL;
}

static void window_give_back(struct vrb_adapter *adapter, struct vrb_window *window)
{
	pthread_mutex_lock(&adapter->lock);
	window->next = window->pz->windows;
	window->pz->windows = window;
	pthread_mutex_unlock(&adapter->lock);
}

static int remote_access(DAT_MEM_PRIV_FLAGS priv)
{
	return (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG ? IBV_ACCESS_REMOTE_READ : 0) |
	       (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG ? IBV_ACCESS_REMOTE_WRITE : 0);
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
			      .mw_access_flags = (unsigned)remote_access(wanted->priv)},
	};
	struct vrb_window *window = window_take(conn->adapter, wanted->lmr->pz->transport);
	int rc;

	if (!window)
		return NULL;
	if (wanted->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG)
		bind.send_flags |= IBV_SEND_FENCE;
	rc = ibv_bind_mw(conn->qp, window->mw, &bind);
	if (rc) { /* for example, the range is too long for a window */
		core_log(CORE_LOG_CONN, "queue pair %u: bind refused: %s", conn->qp->qp_num,
			 strerror(rc));
		window_give_back(conn->adapter, window);
		return NULL;
	}
	conn->extra++; /* until the bind has its turn (work.h) */
	conn->binds_out++;
	window->end = vrb_sq_posted(conn);
	window->region = bind.bind_info.mr;
	window->binds++;
	atomic_store(&window->state, WINDOW_NEW);
	return window;
}

bool vrb_window_is_ready(const struct vrb_window *window)
{
	return window->mr || atomic_load(&window->state) != WINDOW_NEW;
}

uint64_t vrb_window_end(const struct vrb_window *window)
{
	return window->mw ? window->end : 0;
}

void vrb_window_bound(struct vrb_window *window)
{
	atomic_store(&window->state, WINDOW_LIVE);
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

	if (!conn || conn->retiring == window)
		return conn;
	if (window->mr || atomic_load(&window->state) != WINDOW_LIVE || conn->retiring ||
	    conn->state != VRB_ESTABLISHED)
		return false;
	bind.wr_id = vrb_work_id(VRB_WORK_MARKER, conn->key, VRB_MARKER_RETIRED);
	/* after a failure the window is destroyed, which takes longer */
	if (ibv_bind_mw(conn->qp, window->mw, &bind))
		return false;
	conn->extra++;
	conn->retiring = window;
	conn->retire_end = vrb_sq_posted(conn);
	atomic_store(&window->state, WINDOW_RETIRING);
	return true;
}

void vrb_window_retired(struct vrb_conn *conn, bool is_good)
{
	struct vrb_window *window = conn->retiring;

	if (!window)
		return;
	conn->retiring = NULL;
	/* last: a thread that waits for this state frees the window */
	atomic_store(&window->state, is_good ? WINDOW_STALE : WINDOW_LOST);
}

void vrb_window_set_blocked(struct vrb_conn *conn, bool is_blocked)
{
	if (atomic_load(&conn->is_blocked) == is_blocked)
		return;
	atomic_store(&conn->is_blocked, is_blocked);
	if (is_blocked)
		atomic_fetch_add(&conn->adapter->blocked, 1);
	else
		atomic_fetch_sub(&conn->adapter->blocked, 1);
}

void vrb_windows_retry(struct vrb_adapter *adapter)
{
	struct vrb_conn *found[8];
	uint32_t count = 0;

	pthread_mutex_lock(&adapter->lock);
	for (struct vrb_conn *conn = adapter->first; conn && count < 8; conn = conn->next)
		if (atomic_load(&conn->is_blocked)) {
			vrb_conn_get(conn);
			found[count++] = conn;
		}
	pthread_mutex_unlock(&adapter->lock);
	while (count--) {
		struct core_ep *ep = vrb_conn_enter(found[count]);

		if (ep) {
			if (found[count]->state == VRB_ESTABLISHED)
				vrb_post_requests(found[count], ep);
			vrb_conn_leave(ep);
		}
		vrb_conn_put(found[count]);
	}
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
	case WINDOW_RETIRING:
		return false;
	case WINDOW_STALE:
		return true;
	default:
		/* ibv_dealloc_mw returns when no access is under way any more */
		window_destroy(window);
		return true;
	}
}

void vrb_rmr_key_destroy(struct core_ia *ia, void *key)
{
	struct vrb_window *window = key;

	(void)vrb_rmr_key_revoke(ia, key);
	if (window->mw && window->binds < BINDS_MAX) {
		window_give_back(vrb_adapter_of(ia), window);
		return;
	}
	if (window->mw)
		window_destroy(window);
	free(window);
}
