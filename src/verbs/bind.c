// SPDX-License-Identifier: BSD-2-Clause
/*
 * Binds in the request queue. The call that posts a bind has already posted the work request that
 * binds its window, or needed none (window.c). The bind has its turn when it is the oldest request.
 */
#include "core/base/clock.h"
#include "core/transport.h"
#include "core/ep/ep.h"
#include "core/mem/rmr.h"
#include "verbs/adapter.h"
#include "verbs/conn.h"
#include "verbs/post.h"
#include "verbs/service.h"
#include "verbs/window.h"
#include "verbs/work.h"

uint64_t vrb_bind_end(const struct core_req *req)
{
	return req->binding && req->binding->key ? vrb_window_end(req->binding->key) : 0;
}

static bool bind_is_ready(const struct core_req *req)
{
	return !req->binding->key || vrb_window_is_ready(req->binding->key);
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
		vrb_conn_set_deadline(conn, core_now_ns() + VRB_NS_PER_MS);
	if (result != CORE_BIND_DONE && conn->retiring)
		vrb_bind_note_end(conn, ep, req, conn->retire_end);
	return result;
}

void vrb_bind_continue(struct vrb_conn *conn, struct core_ep *ep)
{
	if (conn->is_binding && bind_is_ready(core_req_at(&ep->req, ep->req.head)))
		conn->is_binding = bind_run(conn, ep) != CORE_BIND_DONE;
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
	conn->is_binding = result == CORE_BIND_ORDERED;
	conn->post_next++;
	conn->extra--; /* the work request was counted when it was posted */
	return true;
}
